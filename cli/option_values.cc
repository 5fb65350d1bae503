#include "cli/option_values.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "cli/option_table.h"
#include "ir/open_size.h"
#include "passes/graph/passes.h"
#include "passes/loop/loop_pass.h"
#include "support/reserved.h"

namespace tc {

int64_t integer(std::string_view what, std::string_view text) {
  int64_t v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size())
    usage(std::string(what) + " needs a whole number, not '" + printable(text) + "'");
  return v;
}

int64_t limit(std::string_view what, std::string_view text, int64_t most) {
  const int64_t v = integer(what, text);
  if (v < 1 || v > most) usage(std::string(what) + " needs a number from 1 to " + to_text(most));
  return v;
}

double number(std::string_view what, std::string_view text) {
  double v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || !(v >= 0))
    usage(std::string(what) + " needs a number, not '" + printable(text) + "'");
  return v;
}

namespace {

std::pair<std::string, std::string> key_value(std::string_view what, const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) usage(std::string(what) + " needs NAME=VALUE, not '" + printable(text) + "'");
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace

void set_dim(CommandLine& c, const std::string& v) {
  const auto [name, size] = key_value("--dim", v);
  if (const auto sum = parse_size_expression(size)) {
    c.request.import.dims[name] = *sum;
    return;
  }
  const size_t dots = size.find("..");
  const int64_t least = integer("--dim", size.substr(0, dots));
  const bool open = dots != std::string::npos && dots + 2 == size.size();
  const int64_t most = dots == std::string::npos ? least : open ? kOpenSize : integer("--dim", size.substr(dots + 2));
  if (!open && is_open(most))
    usage("--dim needs a size below " + to_text(kOpenSize / 2) + ", not " + to_text(most) +
          "; one without an upper bound is written " + to_text(least) + "..");
  if (least < 0) usage("--dim needs a size of at least 0, not " + to_text(least));
  if (most < least) usage("--dim needs a range that is not empty, not " + printable(size));
  c.request.import.dims[name] = {least, most};
}

void set_state(CommandLine& c, const std::string& v) { c.request.import.states.push_back(key_value("--state", v)); }

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

namespace {

// "3x4" is {3, 4}.
std::vector<int64_t> shape_of(std::string_view what, std::string_view text) {
  std::vector<int64_t> sizes;
  for (const std::string_view part : parts_of(text, 'x')) {
    if (part.find(',') != part.npos) usage(std::string(what) + " has an x between sizes, as in 1x3x8x8, no comma");
    sizes.push_back(integer(what, part));
    if (sizes.back() < 0) usage(std::string(what) + " needs sizes of at least 0");
  }
  return sizes;
}

}  // namespace

// X=3x4,5x4: two tensors; X=: none; X=none: an optional without a value.
void set_elements(CommandLine& c, const std::string& v) {
  const auto [name, text] = key_value("--elements", v);
  ListElements e;
  e.present = text != "none";
  if (e.present)
    for (const std::string_view part : parts_of(text, ',')) {
      if (part.empty()) usage("--elements needs the shape of each tensor, or scalar");
      e.shapes.push_back(part == "scalar" ? std::vector<int64_t>() : shape_of("--elements", part));
    }
  c.request.import.elements[name] = std::move(e);
}

void set_shape(CommandLine& c, const std::string& v) {
  const auto [name, sizes] = key_value("--input-shape", v);
  c.request.import.input_shapes[name] = shape_of("--input-shape", sizes);
}

// X=1,2.5: the numbers of an input.
void set_input_value(CommandLine& c, const std::string& v) {
  const auto [name, text] = key_value("--input-value", v);
  std::vector<std::string>& numbers = c.request.import.input_values[name];
  numbers.clear();
  for (const std::string_view part : parts_of(text, ',')) numbers.emplace_back(part);
}

namespace {

const CpuModel& cpu_row(const std::string& v, bool in_list) {
  const CpuModel* row = in_list ? find_cpu(v) : v == "native" ? &native_cpu() : v == "any" ? &any_cpu() : find_cpu(v);
  if (row) return *row;
  std::vector<std::string_view> names;
  if (!in_list) names = {"any", "native"};
  for (const CpuModel& m : cpu_models()) names.push_back(m.name);
  std::string list;
  for (const std::string_view n : names) list += (list.empty() ? "" : ", ") + std::string(n);
  const std::string guess = did_you_mean(v, names);
  usage("unknown --cpu '" + printable(v) + "'" + guess + (guess.empty() ? "; known: " : " Known: ") + list);
}

/// A processor of a list, unless it stands for others, or cannot be beside them.
void refuse_in_list(const std::string& v, const std::vector<CpuModel>& before) {
  if (v.empty()) usage("--cpu needs names between its commas");
  if (v == "any") usage("--cpu any is a package for several processors already: leave it out of the list");
  if (v == "native")
    usage("a list of --cpu names processors, and native is the one of this machine: say " +
          std::string(native_cpu().name));
  const CpuModel& row = cpu_row(v, true);
  for (const CpuModel& other : before) {
    const std::string both = std::string(other.name) + " and " + std::string(row.name);
    if (other.name == row.name) usage("--cpu has " + v + " twice");
    const bool arm = row.name == "aarch64" || other.name == "aarch64";
    if (arm && (row.march.empty() || other.march.empty()))
      usage("--cpu " + both + ": aarch64 is what every 64-bit ARM processor has; give it alone");
    if (arm) usage("--cpu " + both + ": no program runs on both x86-64 and 64-bit ARM; make a package for each");
  }
}

/// "A,B": the best is the target, and the others follow it. Of the same instructions the one that stands last in the table is the best.
void set_cpu_list(CommandLine& c, const std::string& v) {
  std::vector<CpuModel> rows;
  for (const std::string_view part : parts_of(v, ',')) {
    refuse_in_list(std::string(part), rows);
    rows.push_back(*find_cpu(part));
  }
  const auto rank = [](const CpuModel& m) {
    return std::tuple(!m.march.empty(), m.vector_lanes, m.byte_dot, find_cpu(m.name) - cpu_models().data());
  };
  std::sort(rows.begin(), rows.end(), [&](const CpuModel& a, const CpuModel& b) { return rank(a) < rank(b); });
  c.request.target.cpu = rows.back();
  rows.pop_back();
  c.request.target.others = std::move(rows);
  c.native = c.any_cpu = false;
}

}  // namespace

void set_cpu(CommandLine& c, const std::string& v) {
  if (v.find(',') != std::string::npos) return set_cpu_list(c, v);
  c.request.target.cpu = cpu_row(v, false);
  c.request.target.others.clear();
  c.native = v == "native";
  c.any_cpu = v == "any";
}

void set_arch(CommandLine& c, const std::string& v) {
  const CudaModel* row = find_arch(v);
  if (!row) {
    std::vector<std::string_view> names;
    for (const CudaModel& m : cuda_models()) names.push_back(m.name);
    std::string list;
    for (const std::string_view n : names) list += (list.empty() ? "" : ", ") + std::string(n);
    usage("unknown --arch '" + printable(v) + "'; known: " + list);
  }
  c.request.target.gpu = *row;
}

void set_target(CommandLine& c, const std::string& v) {
  if (v == "c")
    c.request.target.kind = Target::Kind::C;
  else if (v == "cuda")
    c.request.target.kind = Target::Kind::Cuda;
  else
    usage("unknown --target '" + printable(v) + "'" + did_you_mean(v, {"c", "cuda"}));
}

void set_fp(CommandLine& c, const std::string& v) {
  if (v != "strict" && v != "fast") usage("--fp is strict or fast, not '" + printable(v) + "'");
  c.request.options.strict_fp = v == "strict";
}

void set_activations(CommandLine& c, const std::string& v) {
  if (v != "model" && v != "int8") usage("--activations is model or int8, not '" + printable(v) + "'");
  c.request.int8_activations = v == "int8";
}

void set_weights(CommandLine& c, const std::string& v) {
  if (v != "linked" && v != "external") usage("--weights is linked or external, not '" + printable(v) + "'");
  c.request.external_weights = v == "external";
}

void set_precision(CommandLine& c, const std::string& v) {
  constexpr std::pair<std::string_view, Precision> kNames[] = {{"fp32", Precision::F32},
                                                               {"tf32", Precision::Tf32},
                                                               {"fp16", Precision::F16},
                                                               {"bf16", Precision::Bf16},
                                                               {"int8", Precision::Int8}};
  for (const auto& [name, precision] : kNames) {
    if (v != name) continue;
    c.request.options.precision = precision;
    return;
  }
  usage("--precision is fp32, tf32, fp16, bf16 or int8, not '" + printable(v) + "'");
}

void set_fill(CommandLine& c, const std::string& v) {
  if (v != "random" && v != "zeros" && v != "ones")
    usage("--fill-mode is random, zeros or ones, not '" + printable(v) + "'");
  c.fill = v == "zeros" ? FillMode::Zeros : v == "ones" ? FillMode::Ones : FillMode::Random;
  c.fill_given = true;
}

void set_progress(CommandLine& c, const std::string& v) {
  if (v != "auto" && v != "plain" && v != "none")
    usage("--progress is auto, plain or none, not '" + printable(v) + "'");
  c.progress = v == "auto" ? ProgressMode::Auto : v == "plain" ? ProgressMode::Plain : ProgressMode::None;
}

void set_name(CommandLine& c, const std::string& v) {
  std::string lower = v;
  for (char& ch : lower)
    if (ch >= 'A' && ch <= 'Z') ch = char(ch - 'A' + 'a');
  if (make_identifier(v, 40) == v + "_")
    usage("--name '" + v + "' is a word of C, C++ or CUDA, or may be a macro; try '" +
          (make_identifier(lower, 40) == lower ? lower : lower + "_model") + "'");
  if (make_identifier(v, 40) != v)
    usage("--name needs a C identifier of at most 40 characters, not '" + printable(v) + "'");
  if (is_library_name(lower))
    usage("--name '" + v + "' is a name of the C library or of the emitted text; try '" + v + "_model'");
  c.request.name = v;
}

void set_level(CommandLine& c, const std::string& v) {
  const int64_t level = integer("-O", v);
  if (level < 0 || level > 3) usage("-O needs 0 to 3, not " + to_text(level));
  c.request.options.opt_level = int(level);
}

namespace {

std::string known_pass(const std::string& v, const std::vector<std::string_view>& names) {
  if (std::find(names.begin(), names.end(), v) != names.end()) return v;
  usage("no pass is called '" + printable(v) + "'" + did_you_mean(v, names) + "; tc-emit passes lists them");
}

}  // namespace

void disable_pass(CommandLine& c, const std::string& v) {
  std::vector<std::string_view> names;
  for (const PassInfo& p : graph_passes()) names.push_back(p.name);
  for (const std::string_view p : loop_pass_names())
    if (v == p) usage("'" + v + "' is a loop pass, and nothing can be printed without it");
  if (is_needed(v)) usage("'" + v + "' is no optimisation: what comes behind it needs it");
  c.request.options.disabled.insert(known_pass(v, names));
}

// "fold_constant#2"; the first of a name may be called #1.
std::string known_label(std::string v) {
  if (v.ends_with("#1")) v.resize(v.size() - 2);
  std::vector<std::string> labels;
  for (size_t k = 0; k < graph_passes().size(); k++) labels.push_back(pass_label(graph_passes(), k));
  for (const std::string_view p : loop_pass_names())
    if (v == p) usage("'" + v + "' is a loop pass; graphs are written and end behind graph passes");
  return known_pass(v, {labels.begin(), labels.end()});
}

void print_after(CommandLine& c, const std::string& v) {
  std::vector<std::string_view> names = loop_pass_names();
  if (v.find('#') != v.npos) {
    c.request.options.print_after.insert(known_label(v));
    return;
  }
  for (const PassInfo& p : graph_passes()) names.push_back(p.name);
  names.push_back("all");
  c.request.options.print_after.insert(known_pass(v, names));
}

}  // namespace tc
