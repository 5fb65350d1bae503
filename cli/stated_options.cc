#include "cli/stated_options.h"

#include <algorithm>

#include "cli/option_table.h"

namespace tc {
namespace {

constexpr std::string_view kStated[] = {"--precision", "--jit",          "--cuda-graphs", "--single-file",
                                        "--weights",   "--string-bytes", "--activations", "--fp",
                                        "-O",          "--disable-pass"};

const Option& row(std::string_view flag) {
  const Option* o = find_option(flag);
  check(o != nullptr, "an option of the table");
  return *o;
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
  const CommandLine usual;
  std::vector<std::string> words;
  for (const std::string_view flag : kStated) {
    if ((flag == "--jit" && c.jit) || (flag == "--single-file" && c.single_file)) words.emplace_back(flag);
    const Option& o = row(flag);
    if (!o.stated || o.stated(c) == o.stated(usual)) continue;
    for (std::string& value : o.stated(c)) {
      words.emplace_back(flag);
      words.push_back(std::move(value));
    }
  }
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
