#include "cli/ir_options.h"

#include "cli/option_table.h"

namespace tc {
namespace {

std::string shape_text(const std::vector<int64_t>& sizes) {
  std::vector<std::string> parts;
  for (const int64_t n : sizes) parts.push_back(to_text(n));
  return join(parts, "x");
}

std::string elements_of(const ListElements& e) {
  if (!e.present) return "none";
  std::vector<std::string> parts;
  for (const auto& shape : e.shapes) parts.push_back(shape.empty() ? "scalar" : shape_text(shape));
  return join(parts, ",");
}

// NAME=VALUE for each entry of a table.
template <class T, class F>
std::vector<std::string> pairs(const std::map<std::string, T>& table, const F& text) {
  std::vector<std::string> list;
  for (const auto& [name, value] : table) list.push_back(name + "=" + text(value));
  return list;
}

}  // namespace

std::vector<std::string> stated_target(const CommandLine& c) { return {c.request.target.is_cuda() ? "cuda" : "c"}; }
std::vector<std::string> stated_cpu(const CommandLine& c) {
  std::string list;
  for (const CpuModel& m : c.request.target.others) list += std::string(m.name) + ",";
  return {c.any_cpu ? "any" : list + std::string(c.request.target.cpu.name)};
}
std::vector<std::string> stated_arch(const CommandLine& c) { return {std::string(c.request.target.gpu.name)}; }

std::vector<std::string> stated_precision(const CommandLine& c) {
  switch (c.request.options.precision) {
    case Precision::F32: return {"fp32"};
    case Precision::Tf32: return {"tf32"};
    case Precision::F16: return {"fp16"};
    case Precision::Bf16: return {"bf16"};
    case Precision::Int8: return {"int8"};
  }
  return {};
}

std::vector<std::string> stated_name(const CommandLine& c) {
  return {c.request.name.empty() ? default_name(c.model) : c.request.name};
}
std::vector<std::string> stated_dims(const CommandLine& c) {
  return pairs(c.request.import.dims, [](const SizeRange& r) { return to_text(r); });
}
std::vector<std::string> stated_states(const CommandLine& c) {
  std::vector<std::string> list;
  for (const auto& [before, after] : c.request.import.states) list.push_back(before + "=" + after);
  return list;
}
std::vector<std::string> stated_shapes(const CommandLine& c) {
  return pairs(c.request.import.input_shapes, shape_text);
}
std::vector<std::string> stated_elements(const CommandLine& c) { return pairs(c.request.import.elements, elements_of); }
std::vector<std::string> stated_input_values(const CommandLine& c) {
  return pairs(c.request.import.input_values, [](const std::vector<std::string>& v) { return join(v, ","); });
}
std::vector<std::string> stated_string_bytes(const CommandLine& c) { return {to_text(c.request.options.string_bytes)}; }
std::vector<std::string> stated_weights(const CommandLine& c) {
  return {c.request.external_weights ? "external" : "linked"};
}
std::vector<std::string> stated_activations(const CommandLine& c) {
  return {c.request.int8_activations ? "int8" : "model"};
}
std::vector<std::string> stated_fp(const CommandLine& c) { return {c.request.options.strict_fp ? "strict" : "fast"}; }
std::vector<std::string> stated_level(const CommandLine& c) { return {to_text(int64_t(c.request.options.opt_level))}; }
std::vector<std::string> stated_disabled(const CommandLine& c) {
  return {c.request.options.disabled.begin(), c.request.options.disabled.end()};
}

std::vector<std::pair<std::string, std::string>> options_of_ir(const CommandLine& c) {
  const OptionTarget other = c.request.target.is_cuda() ? OptionTarget::C : OptionTarget::Cuda;
  std::vector<std::pair<std::string, std::string>> all;
  for (const Option& o : options())
    if (o.stated && o.target != other)
      for (std::string& value : o.stated(c)) all.emplace_back(o.flag, std::move(value));
  return all;
}

}  // namespace tc
