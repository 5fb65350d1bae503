#include "emit_c/manifest.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/open_size.h"
#include "support/json_text.h"

namespace tc {
namespace {

using Json = nlohmann::ordered_json;

std::string dtype_text(DType t) { return std::string(info(t).onnx_name); }

// Which size an axis has: one that the caller chooses, an output that counts, or a sum; of this, what the instance counts is
// called by the name of the size.
Json counted(const IoSize& z, const std::vector<IoTensor>& list, const std::vector<IoTensor>& inputs) {
  Json c = {{"axis", z.axis}};
  if (!z.of_inputs()) {
    c["by"] = list[size_t(z.count)].name.raw();
  } else if (z.sum.is_one()) {
    c["by_input"] = inputs[z.sum.terms[0].input].name.raw();
  } else {
    for (const SizeSum::Term& t : z.sum.terms)
      c["by_sum"].push_back({{"size", inputs[t.input].name.raw()}, {"times", t.factor}});
    c["plus"] = z.sum.addend;
  }
  return c;
}

// `inputs`: those of the program, which may count.
Json ports(const std::vector<IoTensor>& list, const std::vector<std::string>& fields,
           const std::vector<IoTensor>& inputs) {
  Json a = Json::array();
  for (size_t i = 0; i < list.size(); i++) {
    const IoTensor& t = list[i];
    if (t.is_kept()) continue;
    Json port = {{"name", t.name.raw()}, {"dtype", dtype_text(t.dtype)}, {"shape", shape_json(t.dims)}};
    if (fields[i] != t.name.raw()) port["field"] = fields[i];
    if (t.is_size) port["size"] = {{"least", t.least}, {"most", is_open(t.most) ? Json() : Json(t.most)}};
    for (const IoSize& z : t.sizes) port["counted"].push_back(counted(z, list, inputs));
    a.push_back(std::move(port));
  }
  return a;
}

bool is_tensor(const Param& p) {
  return p.role == Param::Role::Input || p.role == Param::Role::Weight || p.role == Param::Role::Output;
}

/// The steps in the order in which they are printed. One inside an If or a loop says which step that is.
class Steps {
 public:
  Steps(const Program& p, const ProgramNames& n) : p_(p), n_(n) {}

  std::vector<Json> list(const std::vector<Step>& steps) {
    add(steps, -1, "");
    return std::move(list_);
  }

 private:
  void add(const std::vector<Step>& steps, int64_t inside, const char* branch) {
    for (const Step& s : steps) {
      Json j = Json::object();
      std::visit([&](const auto& k) { fill(k, j); }, s.kind);
      if (inside >= 0) j["in"] = inside;
      if (*branch) j["branch"] = branch;
      const auto at = int64_t(list_.size());
      list_.push_back(std::move(j));
      if (const auto* c = std::get_if<IfStep>(&s.kind)) {
        add(c->then, at, "then");
        add(c->otherwise, at, "else");
      } else if (const auto* l = std::get_if<LoopStep>(&s.kind)) {
        add(l->body, at, "");
      }
    }
  }

  void fill(const Call& c, Json& j) {
    const Kernel& k = p_.kernels[size_t(c.kernel)];
    j["kernel"] = k.name;
    for (size_t v = 0; v < c.by_variant.size(); v++)
      if (c.by_variant[v] != c.kernel) j["kernels"][p_.variants[v].cpu] = p_.kernels[size_t(c.by_variant[v])].name;
    std::vector<const Operand*> read, written;
    for (size_t i = 0; i < k.params.size(); i++)
      if (is_tensor(k.params[i])) (k.params[i].role == Param::Role::Output ? written : read).push_back(&c.operands[i]);
    edges(j, read, written);
    nodes(j, c.origins);
    if (!c.note.empty()) j["note"] = c.note;
  }
  void fill(const CopyStep& c, Json& j) {
    j["copy"] = c.bytes;
    edges(j, {&c.from}, {&c.to});
    nodes(j, c.origins);
  }
  void fill(const IfStep& c, Json& j) {
    if (!c.size.terms.empty()) {
      j["if"] = "in." + n_.inputs[c.size.terms[0].input] + " == 1";
      return nodes(j, c.origins);
    }
    j["if"] = name(c.condition);
    edges(j, {&c.condition}, {});
    nodes(j, c.origins);
  }
  void fill(const LoopStep& l, Json& j) {
    j["loop"] = l.trips >= 0 ? Json(l.trips) : Json();
    std::vector<const Operand*> read, written;
    if (l.trip_count) read.push_back(&*l.trip_count);
    if (l.start) read.push_back(&*l.start);
    if (l.iteration) written.push_back(&*l.iteration);
    edges(j, read, written);
    nodes(j, l.origins);
  }
  void fill(const ContinueStep& c, Json& j) {
    j["continue"] = name(c.condition);
    edges(j, {&c.condition}, {});
  }

  std::string name(const Operand& o) const {
    const size_t i = size_t(o.index);
    switch (o.kind) {
      case Operand::Kind::Input: return "in." + n_.inputs[i];
      case Operand::Kind::Output: return "out." + n_.outputs[i];
      case Operand::Kind::Slot: return "at." + n_.slots[i];
      case Operand::Kind::Weight: return "w." + n_.weights[i];
      case Operand::Kind::Scratch:
      case Operand::Kind::Status:
      case Operand::Kind::Strings: break;
    }
    return "";
  }

  // A result that takes over an operand's memory is one parameter: what lay there before is read, too. A part of another
  // tensor is written as such; a part that nobody has written is read where the whole was.
  void edges(Json& j, const std::vector<const Operand*>& read, const std::vector<const Operand*>& written) {
    Json reads = Json::array(), writes = Json::array();
    for (const Operand* o : read) {
      reads.push_back(name(*o));
      const Slot* s = o->kind == Operand::Kind::Slot ? &p_.slots[size_t(o->index)] : nullptr;
      if (s && s->within >= 0 && written_.count(o->index) == 0) reads.push_back("at." + n_.slots[size_t(s->alias_of)]);
    }
    for (const Operand* o : written) {
      const Slot* part = o->kind == Operand::Kind::Slot ? &p_.slots[size_t(o->index)] : nullptr;
      if (part && part->within >= 0) {
        written_.insert(o->index);
        writes.push_back("at." + n_.slots[size_t(part->alias_of)]);
      } else if (part) {
        const Slot& s = *part;
        const int root = s.alias_of >= 0 ? s.alias_of : o->index;
        const auto holder = holder_.try_emplace(root, root).first;
        if (s.alias_of >= 0) reads.push_back("at." + n_.slots[size_t(holder->second)]);
        holder->second = o->index;
      }
      writes.push_back(name(*o));
    }
    j["reads"] = std::move(reads);
    j["writes"] = std::move(writes);
  }

  static void nodes(Json& j, const std::vector<ModelText>& origins) {
    Json a = Json::array();
    for (const ModelText& t : origins) a.push_back(t.raw());
    j["nodes"] = std::move(a);
  }

  const Program& p_;
  const ProgramNames& n_;
  std::vector<Json> list_;
  std::map<int, int> holder_;  // by root: the slot whose value lies there
  std::set<int> written_;      // parts of others
};

std::vector<Json> tensors(const Program& p, const ProgramNames& n) {
  std::vector<Json> list;
  for (size_t i = 0; i < p.slots.size(); i++) {
    const Slot& s = p.slots[i];
    list.push_back({{"name", n.slots[i]},
                    {"dtype", dtype_text(s.dtype)},
                    {"shape", shape_json(s.dims)},
                    {"at", open_number(s.offset).rest}});
    if (const int64_t times = open_number(s.offset).times; times > 0) list.back()["at_each"] = times;
    if (s.within >= 0) list.back()["part_of"] = n.slots[size_t(s.alias_of)];
  }
  return list;
}

std::vector<Json> weights(const Program& p, const ProgramNames& n) {
  std::vector<Json> list;
  for (size_t i = 0; i < p.weights.size(); i++) {
    const Weight& w = p.weights[i];
    list.push_back({{"name", n.weights[i]}, {"dtype", dtype_text(w.data->dtype)}, {"shape", w.data->dims}});
    if (w.data->dtype != DType::String) list.back()["at"] = w.offset;  // strings are tables in the source
  }
  return list;
}

// ,\n "steps": [ with one element a line.
std::string lines(const char* key, const std::vector<Json>& list) {
  std::string s = std::string(",\n \"") + key + "\": [";
  for (size_t i = 0; i < list.size(); i++) s += (i == 0 ? "\n  " : ",\n  ") + json_text(list[i]);
  return s + (list.empty() ? "]" : "\n ]");
}

}  // namespace

nlohmann::ordered_json shape_json(const Dims& dims) {
  Json a = Json::array();
  for (const int64_t d : dims) a.push_back(is_open(d) ? Json(open_text(d, "n")) : Json(d));
  return a;
}

std::string manifest(const Program& p, const ProgramNames& n, const PackageOptions& o,
                     const std::vector<OutputFile>& files, uint64_t layout_id, const std::string& target,
                     const std::vector<Variant>& variants) {
  Json j;
  j["generator"] = "tc-emit";
  j["format"] = 1;
  if (!o.version.empty()) j["version"] = o.version;
  j["name"] = p.name;
  j["target"] = target;
  j[target == "c" ? "cpu" : "arch"] = o.any_cpu ? std::string("any") : p.cpu;
  for (const Variant& v : variants) {
    j["variants"].push_back({{"name", v.name}, {"flags", v.flags}});
    if (v.schedule >= 0) j["variants"].back()["cpu"] = p.variants.at(size_t(v.schedule)).cpu;
  }
  if (!o.options.empty()) j["options"] = o.options;
  j["layout_id"] = hex(layout_id, 16);
  const auto fixed = [](int64_t bytes) { return open_number(bytes).rest; };
  j["memory"] = {{"workspace_bytes", fixed(p.workspace_bytes)},
                 {"tensors_bytes", fixed(p.arena_bytes)},
                 {"tensors_without_reuse_bytes", fixed(p.naive_bytes)},
                 {"largest_live_set_bytes", fixed(p.lower_bound_bytes)},
                 {"scratch_bytes", p.scratch_bytes},
                 {"weights_bytes", p.weights_bytes}};
  if (const int64_t grows = open_number(p.workspace_bytes).times; grows > 0)  // for each of a size without bounds
    j["memory"]["workspace_bytes_of_each"] = grows;
  j["macs"] = p.macs;
  j["inputs"] = ports(p.inputs, n.inputs, p.inputs);
  j["outputs"] = ports(p.outputs, n.outputs, p.inputs);
  for (const IoTensor& t : p.inputs)  // in the order of NAME_state()
    if (t.is_kept())
      j["states"].push_back({{"name", t.name.raw()},
                             {"dtype", dtype_text(t.dtype)},
                             {"shape", shape_json(t.dims)},
                             {"counts", t.is_size}});
  Json kernels = Json::array();
  for (const Kernel& k : p.kernels)
    kernels.push_back({{"name", k.name},
                       {"schedule", k.schedule},
                       {"steps", k.schedule_steps},
                       {"macs", k.work.macs},
                       {"bytes", k.work.bytes},
                       {"floor_ns", k.work.floor_ns}});
  for (size_t i = 0; i < p.kernels.size(); i++)
    for (const int v : p.kernels[i].variants) kernels[i]["cpus"].push_back(p.variants.at(size_t(v)).cpu);
  j["kernels"] = std::move(kernels);
  std::vector<Json> names;
  for (const OutputFile& f : files) names.push_back(f.path);
  names.push_back("manifest.json");
  std::string s = json_text(j, 1);
  s.resize(s.size() - 2);  // the closing line
  s += lines("tensors", tensors(p, n)) + lines("weights", weights(p, n)) + lines("steps", Steps(p, n).list(p.steps));
  return s + lines("files", names) + "\n}\n";
}

}  // namespace tc
