// Invariants of graphs: see ir/verify.h.
#include <map>
#include <set>

#include "ir/graph/bodies.h"
#include "ir/ops/regions.h"
#include "ir/verify.h"
#include "support/text.h"

namespace tc {
namespace {

[[noreturn]] void wrong(const std::string& what) { throw InternalError("verify: " + what); }

std::string label(const Node& n) { return "node \"" + printable(n.name.raw()) + "\" (" + n.op + ")"; }
std::string label(const Value& v) { return "value \"" + printable(v.name.raw()) + "\""; }

class GraphVerifier {
 public:
  GraphVerifier(const Graph& g, bool typed) : g_(g), typed_(typed) {}

  void run() {
    std::set<int> ids;
    for (const auto& v : g_.values()) {
      owned_.insert(v.get());
      if (!ids.insert(v->id).second) wrong(label(*v) + " shares its id");
      if (v->is_constant()) constant(*v);
    }
    for (const Value* v : g_.inputs()) {
      if (v->producer || v->is_constant()) wrong(label(*v) + " is an input and has a producer");
      typed(*v);
      ready_.insert(v);
    }
    for (const auto& n : g_.nodes()) node(*n);
    for (const Value* v : g_.outputs())
      if (!v || !ready_.contains(v)) wrong("an output of the graph is not computed");
    for (const auto& v : g_.values()) users(*v);
  }

 private:
  void constant(const Value& v) {
    if (v.producer) wrong(label(v) + " is a constant and has a producer");
    ready_.insert(&v);
    if (!v.type.is_static_tensor()) return;  // sequences and such
    if (v.type.dtype != v.constant->dtype || static_dims(v.type.shape) != v.constant->dims)
      wrong(label(v) + ": the type is not that of the constant");
  }

  void typed(const Value& v) {
    if (typed_ && v.type.kind == ValueType::Kind::None) wrong(label(v) + " has no type");
  }

  void node(const Node& n) {
    if (n.self->get() != &n) wrong(label(n) + " is not where it says it is");
    for (const Value* v : n.inputs) {
      if (!v) continue;
      if (!owned_.contains(v)) wrong(label(n) + " reads a value of another graph");
      if (!ready_.contains(v)) wrong(label(n) + " reads " + label(*v) + " before it is computed");
      ++uses_[v][&n];
    }
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      const Value* v = n.outputs[k];
      if (!v) continue;
      if (!owned_.contains(v) || v->producer != &n || v->index != int(k))
        wrong(label(*v) + " does not know its producer");
      typed(*v);
      if (!ready_.insert(v).second) wrong(label(*v) + " is computed twice");
    }
    if (!n.regions.empty()) regions(n);
  }

  // What a region gets and gives, see Node. The regions themselves are verified by the caller.
  void regions(const Node& n) {
    if (n.captures < 0 || size_t(n.captures) > n.inputs.size()) wrong(label(n) + " has more captures than inputs");
    for (const auto& r : n.regions) {
      size_t inputs = n.op == "If" ? size_t(n.captures) : n.inputs.size();
      size_t outputs = n.outputs.size() + (n.op == "Loop" ? 1 : 0);
      // The numbers of an imported model may be wrong: inference says so.
      const bool known = typed_ && (n.op == "If" || n.op == "Loop" || n.op == "Scan");
      if (known && r->inputs().size() != inputs) wrong(label(n) + ": the region takes another number of inputs");
      if (known && r->outputs().size() != outputs) wrong(label(n) + ": the region gives another number of outputs");
      if (known) region_types(n, *r);
    }
  }

  // What a node hands to its body is of the type that the body expects; a state stays of one type.
  void region_types(const Node& n, const Graph& body) {
    auto agree = [&](const Value* a, const Value* b) {
      if (a && b && !(a->type == b->type))
        wrong(label(n) + ": " + label(*a) + " and " + label(*b) + " are of two types");
    };
    const size_t own = own_inputs(n), first = body.inputs().size() - size_t(n.captures);
    for (size_t k = 0; k < size_t(n.captures); ++k) agree(n.inputs[own + k], body.inputs()[first + k]);
    const size_t skip = n.op == "Loop" ? 2 : 0, scanned = n.op == "Scan" ? size_t(n.attr_int("num_scan_inputs", 0)) : 0;
    if (n.op == "If" || own < skip + scanned) return;
    for (size_t k = 0; skip + k < own - scanned; ++k) {
      agree(n.inputs[skip + k], body.inputs()[skip + k]);
      agree(body.inputs()[skip + k], body.outputs().at((n.op == "Loop" ? 1 : 0) + k));
      agree(body.inputs()[skip + k], n.outputs.at(k));
    }
  }

  void users(const Value& v) {
    std::map<const Node*, int> listed;
    for (const Node* n : v.users) ++listed[n];
    if (listed != uses_[&v]) wrong(label(v) + ": its users are not the nodes that read it");
  }

  const Graph& g_;
  const bool typed_;
  std::set<const Value*> owned_, ready_;
  std::map<const Value*, std::map<const Node*, int>> uses_;
};

}  // namespace

void verify(const Graph& g, bool typed) {
  for (const Graph* next : with_bodies(g)) GraphVerifier(*next, typed).run();
}

}  // namespace tc
