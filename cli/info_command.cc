#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "ir/ops/macs.h"
#include "ir/ops/operator_table.h"
#include "passes/graph/passes.h"
#include "support/json_text.h"

namespace tc {
namespace {

/// Multiply-accumulates need the sizes of all values, so the model is imported; where that fails, they are not known
/// and the reason is kept.
struct Work {
  std::optional<int64_t> macs;
  std::string why_not;
};

Work work_of(const CommandLine& c) {
  Diagnostics problems;
  PassContext cx{traits_of(c.request.target), c.request.options, &problems};
  try {
    Graph g = import_model(c.model, c.request.import, problems);
    if (!problems.has_errors()) dynamic_to_static(g, cx);
    if (!problems.has_errors()) dead_code(g, cx);
    if (!problems.has_errors()) return {multiply_accumulates(g), ""};
  } catch (const Error& e) {
    problems.add(e.diagnostic());
  }
  for (const Diagnostic& d : problems.list())
    if (!d.warning) return {std::nullopt, "unknown (" + d.code + ": " + printable(d.message) + ")"};
  return {};
}

std::string as_json(const ModelFacts& f, const Work& work) {
  nlohmann::ordered_json j;
  j["graph"] = f.graph_name.raw();
  j["producer"] = f.producer.raw();
  j["ir_version"] = f.ir_version;
  j["opsets"] = nlohmann::ordered_json::object();
  for (const auto& [domain, version] : f.opsets) j["opsets"][domain.empty() ? "ai.onnx" : domain] = version;
  j["parameters"] = f.parameters;
  j["macs"] = work.macs ? nlohmann::ordered_json(*work.macs) : nlohmann::ordered_json();
  auto ports = [](const std::vector<ModelFacts::Port>& list) {
    nlohmann::ordered_json a = nlohmann::ordered_json::array();
    for (const auto& p : list) a.push_back({{"name", p.name.raw()}, {"type", to_text(p.type)}});
    return a;
  };
  j["inputs"] = ports(f.inputs);
  j["outputs"] = ports(f.outputs);
  j["operators"] = nlohmann::ordered_json::object();
  for (const auto& [op, count] : f.operators) j["operators"][op] = count;
  return json_text(j, 1) + "\n";
}

std::string as_table(const ModelFacts& f, const Work& work) {
  std::string s = "graph       \"" + printable(f.graph_name.raw()) + "\"";
  if (!f.producer.empty()) s += " by \"" + printable(f.producer.raw()) + "\"";
  s += "\nopset      ";
  for (const auto& [domain, version] : f.opsets)
    s += " " + (domain.empty() ? std::string("ai.onnx") : printable(domain)) + " " + to_text(version);
  s += "\nparameters  " + to_text(f.parameters) + "\n";
  s += "MACs        " + (work.macs ? to_text(*work.macs) : work.why_not) + "\n";
  for (const auto& p : f.inputs) s += "input       \"" + printable(p.name.raw()) + "\" " + to_text(p.type) + "\n";
  for (const auto& p : f.outputs) s += "output      \"" + printable(p.name.raw()) + "\" " + to_text(p.type) + "\n";
  s += "operators  ";
  for (const auto& [op, count] : f.operators) s += " " + to_text(count) + " " + printable(op);
  return s + "\n";
}

}  // namespace

ExitCode info_command(const CommandLine& c) {
  if (c.model.empty()) throw Error("TC0001", ExitCode::Usage, "no model given");
  Diagnostics problems;
  const ModelFacts f = read_facts(c.model, problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  const Work work = work_of(c);
  print_out(c.json ? as_json(f, work) : as_table(f, work));
  return ExitCode::Ok;
}

ExitCode ops_command(const CommandLine& c) {
  const std::vector<std::shared_ptr<const OpRow>>& own = c.request.import.ops;
  if (!has_operator(c.model, own))
    throw Error("TC0001", ExitCode::Usage,
                "no supported operator has '" + printable(c.model) + "' in its domain and name");
  print_out(c.json ? operator_json(c.model, own) : operator_table(c.model, own));
  return ExitCode::Ok;
}

}  // namespace tc
