#include "cli/stated_options.h"

#include <algorithm>

#include "cli/option_table.h"

namespace tc {
namespace {

constexpr std::string_view kStated[] = {"--precision", "--jit", "--single-file", "--string-bytes",
                                        "--fp",        "-O",    "--disable-pass"};

std::string_view precision_name(Precision p) {
  switch (p) {
    case Precision::F32: return "fp32";
    case Precision::Tf32: return "tf32";
    case Precision::F16: return "fp16";
    case Precision::Bf16: return "bf16";
    case Precision::Int8: return "int8";
  }
  return "";
}

const Option& row(std::string_view flag) {
  const auto it = std::find_if(options().begin(), options().end(), [&](const Option& o) { return o.flag == flag; });
  check(it != options().end(), "an option of the table");
  return *it;
}

/// Sizes that the model leaves open are those of the package's inputs.
void take_sizes(CommandLine& c, const PackageFacts& p) {
  if (c.was_given("--dim") || c.was_given("--input-shape")) return;
  Diagnostics ignored;  // whoever compiles the model tells them
  for (const ModelFacts::Port& port : read_facts(c.model, ignored).inputs)
    for (const PackageFacts::Tensor& t : p.inputs) {
      if (t.name != port.name.raw() || !port.type.is_tensor() || port.type.shape.size() != t.shape.size()) continue;
      for (size_t k = 0; k < t.shape.size(); k++)
        if (!port.type.shape[k].is_const()) c.request.import.dims[t.name + ":" + to_text(int64_t(k))] = t.shape[k];
    }
}

}  // namespace

std::vector<std::string> stated_options(const CommandLine& c) {
  const Options& o = c.request.options;
  const Options usual;
  std::vector<std::string> words;
  const auto say = [&words](std::string flag, std::string value) {
    words.push_back(std::move(flag));
    words.push_back(std::move(value));
  };
  if (o.precision != usual.precision) say("--precision", std::string(precision_name(o.precision)));
  if (c.jit) words.push_back("--jit");
  if (c.single_file) words.push_back("--single-file");
  if (o.string_bytes != usual.string_bytes) say("--string-bytes", to_text(o.string_bytes));
  if (o.strict_fp) say("--fp", "strict");
  if (o.opt_level != usual.opt_level) say("-O", to_text(int64_t(o.opt_level)));
  for (const std::string& pass : o.disabled) say("--disable-pass", pass);
  return words;
}

void take_stated_options(CommandLine& c, const PackageFacts& p, const std::string& where) {
  const auto take = [&c](std::string_view flag, const std::string& value) {
    if (!c.was_given(flag)) row(flag).apply(c, value);
  };
  try {
    if (!c.was_given("--target")) {
      take("--target", p.target);
      take(p.target == "c" ? "--cpu" : "--arch", p.cpu);
    }
    take("--name", p.name);
    for (size_t i = 0; i < p.options.size(); i++) {
      const std::string& flag = p.options[i];
      if (std::find(std::begin(kStated), std::end(kStated), flag) == std::end(kStated))
        usage("there is no option '" + printable(flag) + "'");
      const bool valued = !row(flag).value.empty();
      if (valued && i + 1 == p.options.size()) usage("option '" + flag + "' needs a value");
      take(flag, valued ? p.options[++i] : "");
    }
  } catch (const Error& e) {
    throw Error({"TC0604",
                 ExitCode::Io,
                 {},
                 printable(where) + " was made with options that this version does not have: " + e.diagnostic().message,
                 {"give the options that the model is to be emitted with"},
                 false});
  }
  c.request.import.number_labels = c.request.target.is_cuda();
  take_sizes(c, p);
}

}  // namespace tc
