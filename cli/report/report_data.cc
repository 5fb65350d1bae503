#include "cli/report/report_data.h"

#include <nlohmann/json.hpp>

#include "emit_c/manifest.h"
#include "emit_c/names.h"
#include "support/json_text.h"

namespace tc {
namespace {

using Json = nlohmann::ordered_json;

Json tensors(const std::vector<PackageFacts::Tensor>& list) {
  Json a = Json::array();
  for (const PackageFacts::Tensor& t : list)
    a.push_back({{"name", t.name},
                 {"field", t.field},
                 {"dtype", t.dtype},
                 {"shape", shape_json(t.shape)},
                 {"at", t.at},
                 {"bytes", byte_size(t)}});
  return a;
}

Json kernels(const PackageFacts& p) {
  Json a = Json::array();
  for (const PackageFacts::Kernel& k : p.kernels)
    a.push_back({{"name", k.name},
                 {"schedule", k.schedule},
                 {"steps", k.steps},
                 {"macs", k.macs},
                 {"bytes", k.bytes},
                 {"floor_us", k.floor_ns * 1e-3},
                 {"text", k.text}});
  return a;
}

/// Puts the time of one run to each kernel that was measured; the rest is what was measured as a whole.
Json add_times(const KernelTimes& t, Json& kernels) {
  for (Json& k : kernels)
    for (const KernelTimes::Row& r : t.rows)
      if (k["name"] == r.kernel) {
        k["time_us"] = r.us;
        k["timed_calls"] = r.calls;
        if (r.floor_share > 0) k["floor_share"] = r.floor_share;
      }
  return {{"runs", t.runs}, {"run_us", t.run_us}, {"other_us", t.other_us}, {"threads", t.threads}};
}

Json steps(const PackageFacts& p) {
  Json a = Json::array();
  for (const PackageFacts::Step& s : p.steps) {
    a.push_back({{"kind", s.kind}, {"kernel", s.kernel}, {"reads", s.reads}, {"writes", s.writes}, {"nodes", s.nodes}});
    if (s.inside >= 0) a.back()["in"] = s.inside;
    if (!s.branch.empty()) a.back()["branch"] = s.branch;
    if (!s.note.empty()) a.back()["note"] = s.note;
  }
  return a;
}

Json nodes(const ModelStory& story, const std::map<std::string, std::string>& stored) {
  Json a = Json::array();
  for (const ModelStory::ModelNode& n : story.nodes) {
    Json inputs = Json::array(), outputs = Json::array(), attrs = Json::array();
    for (const ModelStory::Source& s : n.inputs)
      inputs.push_back({{"name", s.name}, {"node", s.node}, {"constant", s.constant}});
    for (const ModelStory::Result& r : n.outputs) {
      outputs.push_back({{"name", r.name}, {"type", r.type}});
      if (const auto it = stored.find(r.name); it != stored.end()) outputs.back()["tensor"] = it->second;
    }
    for (const auto& [key, value] : n.attrs) attrs.push_back({key, value});
    a.push_back({{"name", n.name},
                 {"op", n.op},
                 {"attrs", attrs},
                 {"inputs", inputs},
                 {"outputs", outputs},
                 {"origins", n.origins},
                 {"bodies", n.bodies}});
  }
  return a;
}

Json passes(const ModelStory& story) {
  Json a = Json::array();
  for (const ModelStory::Pass& p : story.passes) {
    Json ops = Json::array();
    for (const auto& [op, count] : p.ops) ops.push_back({op, count});
    a.push_back({{"name", p.name},
                 {"summary", p.summary},
                 {"before", p.before},
                 {"after", p.after},
                 {"changed", p.changed},
                 {"ops", ops},
                 {"gone", p.gone},
                 {"fresh", p.fresh}});
  }
  return a;
}

/// What steps call the tensors of the model that are stored, by the model's names.
std::map<std::string, std::string> stored_tensors(const Program& p) {
  const ProgramNames n(p);
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < p.slots.size(); i++)
    if (p.slots[i].suffix.empty()) names.emplace(p.slots[i].name.raw(), "at." + n.slots[i]);
  for (size_t i = 0; i < p.outputs.size(); i++) names.emplace(p.outputs[i].name.raw(), "out." + n.outputs[i]);
  return names;
}

/// "at.x > at.y": why the kernel that writes y reads x from memory.
Json reasons(const ModelStory& story, const std::map<std::string, std::string>& stored) {
  Json j = Json::object();
  for (const KeptEdge& e : story.kept) {
    const auto from = stored.find(e.value.raw()), to = stored.find(e.result.raw());
    if (from != stored.end() && to != stored.end()) j[from->second + " > " + to->second] = e.why;
  }
  return j;
}

}  // namespace

std::string report_data(const PackageFacts& p, const Program* program, const ModelStory* story,
                        const KernelTimes* times) {
  Json j = {{"name", p.name},       {"target", p.target},   {"cpu", p.cpu},
            {"version", p.version}, {"options", p.options}, {"macs", p.macs}};
  j["memory"] = Json::object();
  for (const auto& [key, value] : p.memory) j["memory"][key] = value;
  j["inputs"] = tensors(p.inputs);
  j["outputs"] = tensors(p.outputs);
  j["kernels"] = kernels(p);
  if (times) j["times"] = add_times(*times, j["kernels"]);
  j["tensors"] = tensors(p.tensors);
  j["weights"] = tensors(p.weights);
  j["steps"] = steps(p);
  if (story && program) {
    const std::map<std::string, std::string> stored = stored_tensors(*program);
    j["reasons"] = reasons(*story, stored);
    j["nodes"] = nodes(*story, stored);
    j["passes"] = passes(*story);
  }
  std::string s;
  for (const char ch : json_text(j)) {
    if (ch == '<' || ch == '>' || ch == '&')
      s += ch == '<' ? "\\u003c" : ch == '>' ? "\\u003e" : "\\u0026";
    else
      s += ch;
  }
  return s;
}

}  // namespace tc
