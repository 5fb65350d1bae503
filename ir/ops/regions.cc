// Types of If, Loop and Scan: operand types flow into the bodies, the bodies' output types flow out.
#include "ir/ops/regions.h"

#include <algorithm>

#include "ir/graph/origin.h"
#include "ir/ops/op.h"

namespace tc {
namespace {

[[noreturn]] void raise(const Node& n, const char* code, ExitCode exit, const std::string& why,
                        std::vector<std::string> notes = {}) {
  throw Error(problem_of(n, code, exit, why, std::move(notes)));
}

void require(const Node& n, bool ok, const std::string& why) {
  if (!ok) raise(n, "TC0201", ExitCode::Rejected, why);
}

/// A state, or what is stacked: it has memory of a known size.
void require_sizes(const Node& n, const Value& v) {
  if (!v.type.is_static_tensor() || info(v.type.dtype).bytes == 0)
    raise(n, "TC0301", ExitCode::Unsupported,
          "only numbers in tensors of known sizes can go from one iteration to the next or be stacked, not \"" +
              printable(v.name.raw()) + "\", a " + to_text(v.type));
}

void require_one(const Node& n, const Value& v, DType t, const std::string& what) {
  require(n, v.type.is_static_tensor() && v.type.dtype == t && has_one_element(static_dims(v.type.shape)),
          what + " is " + to_text(v.type) + ", not one element of " + std::string(info(t).name));
}

void infer_body(Graph& body) {
  for (const auto& n : body.nodes()) infer_types(body, *n);
}

/// What is known of a value that has one of two types.
ValueType join_types(const Node& n, const ValueType& a, const ValueType& b) {
  if (a == b) return a;
  require(n, a.kind == b.kind && a.dtype == b.dtype, "the two branches give " + to_text(a) + " and " + to_text(b));
  if (!a.is_tensor()) return a;
  ValueType t = a;
  if (!a.has_rank || !b.has_rank || a.shape.size() != b.shape.size()) {
    t.has_rank = false;
    t.shape.clear();
    return t;
  }
  for (size_t d = 0; d < t.shape.size(); d++)
    if (!(a.shape[d] == b.shape[d])) t.shape[d] = Dim();
  return t;
}

/// The number or truth value of a constant, -1 for what is known only when the model runs.
int64_t known(const Value* v) {
  v = behind_identities(v);
  return v->is_constant() && v->constant->size() == 1 ? std::max<int64_t>(0, v->constant->as_int(0)) : -1;
}

void infer_if(Graph& g, Node& n) {
  for (const auto& r : n.regions) {
    for (size_t i = 0; i < r->inputs().size(); i++) r->set_type(r->inputs()[i], n.inputs[i + 1]->type);
    infer_body(*r);
  }
  for (size_t k = 0; k < n.outputs.size(); k++)
    if (n.outputs[k])
      g.set_type(n.outputs[k], join_types(n, n.regions[0]->outputs()[k]->type, n.regions[1]->outputs()[k]->type));
}

/// What a Loop stacks, if its number of iterations is no constant: as declared, if the model says so.
ValueType stacked(const Node& n, const Value& out, const ValueType& part) {
  const ValueType& d = out.type;
  const bool fits = d.is_static_tensor() && part.is_static_tensor() && d.dtype == part.dtype &&
                    d.shape.size() == part.shape.size() + 1 &&
                    std::equal(part.shape.begin(), part.shape.end(), d.shape.begin() + 1);
  if (fits) return d;
  if (out.is_used())
    raise(n, "TC0301", ExitCode::Unsupported,
          "the number of iterations, which is the size of \"" + printable(out.name.raw()) +
              "\", is known only when the model runs",
          {"give the loop a constant trip count, or one that is computed from sizes: then there is room for as many",
           "declare the shape of this output in the model; a run with another number of iterations then fails"});
  ValueType t = part;
  if (t.has_rank) t.shape.insert(t.shape.begin(), Dim::symbolic("trips_" + to_text(int64_t(n.id))));
  return t;
}

/// Declared lengths of what one loop stacks are the same.
void require_one_length(const Node& n, size_t states, const LoopFacts& facts) {
  Dim length;
  for (size_t k = states; k < n.outputs.size() && !facts.exact() && n.attrs.count("capacity") == 0; k++) {
    if (!n.outputs[k] || !n.outputs[k]->type.is_static_tensor()) continue;
    const Dim d = n.outputs[k]->type.shape.at(0);
    require(n, !length.is_const() || d == length, "the declared lengths of its results differ");
    length = d;
  }
}

void infer_loop(Graph& g, Node& n) {
  const int states = int(own_inputs(n)) - 2;
  Graph& body = *n.regions[0];
  const auto& in = body.inputs();
  if (n.inputs[0]) require_one(n, *n.inputs[0], DType::I64, "the trip count");
  if (n.inputs[1]) require_one(n, *n.inputs[1], DType::Bool, "the condition");
  body.set_type(in[0], ValueType::tensor(DType::I64, {}));
  body.set_type(in[1], ValueType::tensor(DType::Bool, {}));
  for (size_t i = 2; i < in.size(); i++) body.set_type(in[i], n.inputs[i]->type);
  infer_body(body);
  require_one(n, *body.outputs()[0], DType::Bool, "the body's condition");
  for (int s = 0; s < states; s++) {
    const ValueType &before = in[size_t(2 + s)]->type, &after = body.outputs()[size_t(1 + s)]->type;
    require(n, before.kind == after.kind && before.dtype == after.dtype,
            "a state of type " + to_text(before) + " becomes " + to_text(after));
    if (!(before == after))
      raise(
          n, "TC0301", ExitCode::Unsupported,
          "a state's shape changes from one iteration to the next: " + to_text(before) + " becomes " + to_text(after),
          {"a state may grow by the same number of elements in every iteration, where the trip count is a constant or "
           "computed from sizes; otherwise such a loop is unrolled where it is known when the model is compiled how "
           "often it runs, at most 256 times; else let the state have room for all and write into it (ScatterND), or "
           "stack what is new as a scan output"});
    require_sizes(n, *in[size_t(2 + s)]);
    if (n.outputs[size_t(s)]) g.set_type(n.outputs[size_t(s)], after);
  }
  const LoopFacts facts = loop_facts(n);
  if (!facts.ends()) raise(n, "TC3103", ExitCode::Rejected, "this loop never ends");
  for (size_t k = size_t(states); k < n.outputs.size(); k++) {
    if (!n.outputs[k]) continue;
    require_sizes(n, *body.outputs()[1 + k]);
    ValueType t = body.outputs()[1 + k]->type;
    const int64_t capacity = n.attr_int("capacity", facts.exact() ? facts.limit : -1);
    require(n, capacity < 0 || capacity >= facts.limit, "it has room for fewer iterations than there are");
    if (capacity >= 0 && t.has_rank)
      t.shape.insert(t.shape.begin(), Dim(capacity));
    else
      t = stacked(n, *n.outputs[k], t);
    g.set_type(n.outputs[k], t);
  }
  require_one_length(n, size_t(states), facts);
}

void infer_scan(Graph& g, Node& n) {
  const int64_t scanned = n.attr_int("num_scan_inputs", 0), states = int64_t(own_inputs(n)) - scanned;
  Graph& body = *n.regions[0];
  const auto& in = body.inputs();
  require_directions(n);
  Dim length;
  for (size_t i = 0; i < in.size(); i++) {
    ValueType t = n.inputs[i]->type;
    if (int64_t(i) >= states && int64_t(i) < states + scanned) {
      require(n, t.is_tensor() && t.has_rank && !t.shape.empty(), "a scanned input needs an axis to scan");
      const int64_t a = scan_axis(n, "scan_input_axes", i - size_t(states), t.shape.size());
      const Dim d = t.shape[size_t(a)];
      require(n, !length.is_const() || !d.is_const() || length == d, "the scanned inputs have different lengths");
      if (!length.is_const()) length = d;
      t.shape.erase(t.shape.begin() + a);
    }
    body.set_type(in[i], t);
  }
  for (size_t i = 0; i < size_t(states + scanned); i++) require_sizes(n, *n.inputs[i]);
  infer_body(body);
  for (size_t k = 0; k < n.outputs.size(); k++) {
    ValueType t = body.outputs()[k]->type;
    require_sizes(n, *body.outputs()[k]);
    if (int64_t(k) < states) {
      require(n, t == in[k]->type, "a state of type " + to_text(in[k]->type) + " becomes " + to_text(t));
    } else if (t.has_rank) {
      const int64_t a = scan_axis(n, "scan_output_axes", k - size_t(states), t.shape.size() + 1);
      t.shape.insert(t.shape.begin() + a, length);
    }
    if (n.outputs[k]) g.set_type(n.outputs[k], t);
  }
}

}  // namespace

const Value* behind_identities(const Value* v) {
  while (v->producer && v->producer->is("Identity")) v = v->producer->inputs[0];
  return v;
}

int64_t scan_axis(const Node& n, const std::string& attr, size_t k, size_t rank) {
  const std::vector<int64_t> axes = n.attr_ints(attr);
  int64_t a = k < axes.size() ? axes[k] : 0;
  require(n, a >= -int64_t(rank) && a < int64_t(rank), attr + " is out of range");
  return a < 0 ? a + int64_t(rank) : a;
}

void require_directions(const Node& n) {
  const auto scanned = size_t(n.attr_int("num_scan_inputs", 0));
  const size_t states = own_inputs(n) - scanned;
  auto check = [&](const std::string& attr, size_t count) {
    const std::vector<int64_t> list = n.attr_ints(attr, std::vector<int64_t>(count, 0));
    require(n,
            list.size() == count && std::all_of(list.begin(), list.end(), [](int64_t d) { return d == 0 || d == 1; }),
            attr + " does not say 0 or 1 for each of " + to_text(int64_t(count)));
  };
  check("scan_input_directions", scanned);
  check("scan_output_directions", n.outputs.size() - states);
}

LoopFacts loop_facts(const Node& n) {
  const Graph& body = *n.regions.at(0);
  const int64_t trips = n.inputs[0] ? known(n.inputs[0]) : -1, start = n.inputs[1] ? known(n.inputs[1]) : 1;
  const int64_t next = behind_identities(body.outputs()[0]) == body.inputs()[1] ? 1 : known(body.outputs()[0]);
  LoopFacts f;
  f.limit = start == 0 ? 0 : trips == INT64_MAX ? -1 : trips;  // exporters write "no limit" as a number
  if (f.limit == 0) return f;
  f.asks_limit = n.inputs[0] && trips < 0;
  f.asks_start = start < 0;
  if (next == 0 && !f.asks_limit) f.limit = 1;
  f.asks_end = next < 0 || (next == 0 && f.asks_limit);
  return f;
}

void require_regions(const Node& n) {
  const int64_t own = int64_t(n.inputs.size()) - n.captures, results = int64_t(n.outputs.size());
  int64_t states = 0, handed = n.captures;  // what the first body takes
  size_t first = 0;                         // operand that a body reads
  if (n.is("If")) {
    require(n, n.regions.size() == 2 && own == 1, "If takes a condition and two branches");
  } else if (n.is("Loop")) {
    require(n, n.regions.size() == 1 && own >= 2, "Loop takes a trip count, a condition and its states");
    states = own - 2, handed += own, first = 2;
  } else if (n.is("Scan")) {
    const int64_t scanned = n.attr_int("num_scan_inputs", 0);
    require(n, n.regions.size() == 1 && scanned >= 1 && scanned <= own, "num_scan_inputs does not fit the inputs");
    states = own - scanned, handed += own;
  } else {
    raise(n, "TC0300", ExitCode::Unsupported, "this operator is not supported");
  }
  const int64_t given = results + (n.is("Loop") ? 1 : 0);  // a Loop's body says first whether it goes on
  for (const auto& r : n.regions)
    require(n, int64_t(r->inputs().size()) == handed && int64_t(r->outputs().size()) == given && results >= states,
            n.is("If") ? "a branch does not give one value for each output"
                       : "the body's inputs and outputs do not fit the node's");
  for (size_t k = first; k < n.inputs.size(); k++) require(n, n.inputs[k] != nullptr, "an operand is missing");
}

void infer_region_types(Graph& g, Node& n) {
  require_regions(n);
  if (n.is("If")) return infer_if(g, n);
  n.is("Loop") ? infer_loop(g, n) : infer_scan(g, n);
}

}  // namespace tc
