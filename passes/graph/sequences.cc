// Lists of tensors that are known while compiling. Nodes that make lists stay in the graph until the end, so that their
// tensors stay in use. A Loop that carries a list, as SequenceMap is defined by, is
// unrolled one iteration at a time: what an iteration made is then known when the next one is looked at.
//
// Preconditions: every position, split and trip count is a constant of one element, negative ones count from the end; a
// position lies inside of the list (else Error TC0201); at most kMostTensors in a list and kMostIterations of a loop that
// carries one (else TC0304). Tensors of a list may differ in shape, not in type.
#include "passes/graph/sequences.h"

#include <algorithm>

#include "ir/ops/op.h"
#include "ir/ops/regions.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

constexpr int64_t kMostTensors = 1024;  // in one list

[[noreturn]] void refuse(const Node& n, const std::string& why, int input = -1, std::vector<std::string> notes = {}) {
  throw Error(problem_of(n, "TC0304", ExitCode::Unsupported, why, std::move(notes), input));
}

[[noreturn]] void reject(const Node& n, const std::string& why) {
  throw Error(problem_of(n, "TC0201", ExitCode::Rejected, why));
}

bool is_list(const Value* v) {
  return v && (v->type.kind == ValueType::Kind::Sequence || v->type.kind == ValueType::Kind::Optional);
}

bool has(const Node& n, size_t k) { return k < n.inputs.size() && n.inputs[k]; }

/// The integer in operand k, `otherwise` where it is absent.
int64_t position(const Node& n, size_t k, int64_t otherwise) {
  if (!has(n, k)) return otherwise;
  const auto v = ints_of(n.inputs[k]);
  if (!v) refuse(n, "a position in a sequence must be known when the model is compiled", int(k));
  if (v->size() != 1) reject(n, "a position is one number");
  return v->front();
}

/// A position from the end made one from the front; `count` is how many there are.
size_t checked_index(const Node& n, int64_t at, int64_t length, int64_t count) {
  if (at < -length || at >= count)
    reject(n, "position " + to_text(at) + " lies outside of a sequence of " + to_text(length));
  return size_t(at < 0 ? at + length : at);
}

/// A list to be typed: what its elements are does not matter once they are known.
ValueType list_type(bool sequence) {
  ValueType t;
  t.kind = sequence ? ValueType::Kind::Sequence : ValueType::Kind::Optional;
  t.element = std::make_shared<const ValueType>();
  return t;
}

/// A node of one output, `n`'s first, in the place of `n`.
Node* put_in_place(Graph& g, Node* n, std::string op, std::vector<Value*> inputs, Attrs attrs = {}) {
  Value* out = n->outputs.at(0);
  Node* made = insert_for(g, *n, n, std::move(op), std::move(inputs), {out->name}, std::move(attrs));
  g.replace_uses(out, made->outputs[0]);
  g.erase(n);
  return made;
}

Value* number(Graph& g, const ModelText& name, int64_t v) {
  return g.add_constant(name, scalar_constant(DType::I64, double(v)));
}

}  // namespace

const Sequences::Contents& Sequences::contents_of(const Node& n, size_t k) const {
  if (!has(n, k)) reject(n, "input " + to_text(int64_t(k)) + " is missing");
  const auto it = held_.find(n.inputs[k]->id);
  if (it == held_.end()) {
    std::vector<std::string> notes;
    if (!n.inputs[k]->producer)
      notes.push_back("say what the input holds: --elements " + printable(n.inputs[k]->name.raw()) +
                      "=3x4,5x4 (for example)");
    refuse(n, "what this sequence or optional holds is known only when the model runs", int(k), std::move(notes));
  }
  return it->second;
}

/// Output 0 of `n` holds `c`.
void Sequences::hold(Graph& g, Node* n, Contents c) {
  if (int64_t(c.tensors.size()) > kMostTensors)
    refuse(*n, "a sequence of more than " + to_text(kMostTensors) + " tensors");
  Value* out = n->outputs.at(0);
  if (!is_list(out)) g.set_type(out, list_type(c.sequence));
  held_[out->id] = std::move(c);
}

/// An Identity of a list's tensor in the place of `n`.
Node* Sequences::take_tensor(Graph& g, Node* n, Value* tensor) {
  if (!tensor) refuse(*n, "the sizes of this tensor are known only when the model runs", 0);
  return put_in_place(g, n, "Identity", {tensor});
}

/// Operands [first, last) of `n`, which are tensors.
std::vector<Value*> Sequences::tensors_of(const Node& n, size_t first, size_t last) const {
  std::vector<Value*> tensors;
  for (size_t k = first; k < last; k++) {
    if (!has(n, k) || is_list(n.inputs[k])) refuse(n, "a sequence holds tensors", int(k));
    tensors.push_back(n.inputs[k]);
  }
  return tensors;
}

Node* Sequences::insert_or_erase(Graph& g, Node* n, bool insert) {
  Contents c = contents_of(*n, 0);
  const auto length = int64_t(c.tensors.size());
  if (insert) {
    const size_t at = checked_index(*n, position(*n, 2, length), length, length + 1);
    c.tensors.insert(c.tensors.begin() + std::ptrdiff_t(at), tensors_of(*n, 1, 2)[0]);
  } else {
    const size_t at = checked_index(*n, position(*n, 1, -1), length, length);
    c.tensors.erase(c.tensors.begin() + std::ptrdiff_t(at));
  }
  hold(g, n, std::move(c));
  return nullptr;
}

/// SplitToSequence is a Split; without sizes, into slices of 1, which lose the axis unless keepdims says otherwise.
Node* Sequences::split(Graph& g, Node* n) {
  Value* x = n->inputs.at(0);
  if (!x->type.is_static_tensor() || sizes_.is_counted(x))
    refuse(*n, "the sizes of this tensor must be known when the model is compiled", 0);
  const Dims dims = dims_of(x);
  const int64_t axis = int64_t(checked_index(*n, n->attr_int("axis", 0), int64_t(dims.size()), int64_t(dims.size())));
  const int64_t size = dims[size_t(axis)];
  std::vector<int64_t> sizes;
  if (!has(*n, 1)) {
    if (size > kMostTensors) refuse(*n, "a sequence of more than " + to_text(kMostTensors) + " tensors");
    sizes.assign(size_t(size), 1);
  } else if (const auto given = ints_of(n->inputs[1]); !given) {
    if (rank_of(n->inputs[1]) != 1 || !n->inputs[1]->type.is_static_tensor())
      refuse(*n, "the number of parts must be known when the model is compiled", 1);
    Contents c;  // how many there are is all that can be told of them
    c.tensors.assign(size_t(std::min(dims_of(n->inputs[1])[0], kMostTensors + 1)), nullptr);
    hold(g, n, std::move(c));
    return nullptr;
  } else if (n->inputs[1]->type.shape.empty()) {
    const int64_t each = given->front();
    if (each < 1) reject(*n, "the size of the parts must be positive");
    if (size / each > kMostTensors) refuse(*n, "a sequence of more than " + to_text(kMostTensors) + " tensors");
    for (int64_t at = 0; at < size; at += each) sizes.push_back(std::min(each, size - at));
  } else {
    sizes = *given;
  }
  std::vector<ModelText> names;
  for (size_t k = 0; k < sizes.size(); k++) names.push_back(derived(n->outputs.at(0)->name, "_" + to_text(int64_t(k))));
  Contents c;
  if (!names.empty()) {
    Value* each = g.add_constant(derived(n->outputs[0]->name, "_sizes"), int64_constant(sizes));
    Node* parts = insert_for(g, *n, n, "Split", {x, each}, names, {{"axis", axis}});
    infer_types(g, *parts);
    c.tensors = parts->outputs;
  }
  if (!has(*n, 1) && n->attr_int("keepdims", 1) == 0)
    for (Value*& v : c.tensors)
      v = add_op(g, n, "Squeeze", {v, g.add_constant(derived(v->name, "_axis"), int64_constant({axis}))},
                 derived(v->name, "_squeezed"));
  Node* list = put_in_place(g, n, "SequenceConstruct", c.tensors);
  hold(g, list, std::move(c));
  return nullptr;
}

Node* Sequences::concat(Graph& g, Node* n) {
  std::vector<Value*> parts = contents_of(*n, 0).tensors;
  if (parts.empty()) reject(*n, "a sequence without elements cannot be joined");
  if (std::count(parts.begin(), parts.end(), nullptr) > 0)
    refuse(*n, "the sizes of its tensors are known only when the model runs", 0);
  int64_t axis = n->attr_int("axis", 0);
  if (n->attr_int("new_axis", 0) != 0) {
    const int64_t rank = rank_of(parts[0]) + 1;
    axis = int64_t(checked_index(*n, axis, rank, rank));
    const ModelText& name = n->outputs.at(0)->name;
    Value* axes = g.add_constant(derived(name, "_axis"), int64_constant({axis}));
    for (size_t k = 0; k < parts.size(); k++)
      parts[k] = add_op(g, n, "Unsqueeze", {parts[k], axes}, derived(name, "_part" + to_text(int64_t(k))));
  }
  return put_in_place(g, n, "Concat", parts, {{"axis", axis}});
}

Node* Sequences::optional(Graph& g, Node* n) {
  if (n->is("Optional")) {
    Contents c;
    if (!has(*n, 0)) {
      c.present = false;
    } else if (is_list(n->inputs[0])) {
      c = contents_of(*n, 0);
    } else {
      c.sequence = false;
      c.tensors = tensors_of(*n, 0, 1);
    }
    hold(g, n, std::move(c));
    return nullptr;
  }
  const Contents& c = contents_of(*n, 0);
  if (n->is("OptionalHasElement")) {
    const bool yes = c.present;
    replace_node(g, n, g.add_constant(n->outputs.at(0)->name, scalar_constant(DType::Bool, yes)));
    return nullptr;
  }
  if (!c.present) reject(*n, "the optional is empty");
  if (!c.sequence) return take_tensor(g, n, c.tensors.at(0));
  hold(g, n, Contents(c));
  return nullptr;
}

Node* Sequences::resolve(Graph& g, Node* n) {
  if (!n->domain.empty()) return n;
  const bool reads = std::any_of(n->inputs.begin(), n->inputs.end(), is_list);
  if (n->is("Identity") && reads) {
    hold(g, n, Contents(contents_of(*n, 0)));
    return nullptr;
  }
  if (n->is("Optional") || (reads && (n->is("OptionalHasElement") || n->is("OptionalGetElement"))))
    return optional(g, n);
  if (n->is("SequenceEmpty") || n->is("SequenceConstruct")) {
    Contents c;
    c.tensors = tensors_of(*n, 0, n->inputs.size());
    hold(g, n, std::move(c));
    return nullptr;
  }
  if (n->is("SequenceInsert") || n->is("SequenceErase")) return insert_or_erase(g, n, n->is("SequenceInsert"));
  if (n->is("SplitToSequence")) return split(g, n);
  if (n->is("ConcatFromSequence")) return concat(g, n);
  if (n->is("SequenceAt")) {
    const Contents& c = contents_of(*n, 0);
    const auto length = int64_t(c.tensors.size());
    return take_tensor(g, n, c.tensors[checked_index(*n, position(*n, 1, 0), length, length)]);
  }
  if (n->is("SequenceLength")) {
    const auto length = int64_t(contents_of(*n, 0).tensors.size());
    replace_node(g, n, number(g, n->outputs.at(0)->name, length));
    return nullptr;
  }
  return n;
}

bool Sequences::carries_lists(const Node& n) const {
  if (!n.is("Loop")) return false;
  return unroller_.has_begun(n) || std::any_of(n.inputs.begin(), n.inputs.end(), is_list);
}

NodeIterator Sequences::unroll(Graph& g, Node* n) {
  return unroller_.step(g, n, [&](const Value* state, const Value* copy) {
    if (const auto it = held_.find(state->id); it != held_.end()) held_[copy->id] = Contents(it->second);
  });
}

std::vector<Node*> Sequences::finish(Graph& g) {
  std::vector<Value*> outputs;
  std::vector<Node*> copies;
  bool changed = false;
  for (Value* v : g.outputs()) {
    const auto it = is_list(v) ? held_.find(v->id) : held_.end();
    if (it == held_.end()) {
      outputs.push_back(v);
      continue;
    }
    changed = true;
    for (size_t k = 0; k < it->second.tensors.size(); k++) {
      Value* tensor = it->second.tensors[k];
      if (!tensor || !tensor->type.is_tensor())
        throw Error("TC0304", ExitCode::Unsupported,
                    "output \"" + printable(v->name.raw()) + "\" holds a tensor whose sizes are not known");
      const ModelText name = it->second.sequence ? derived(v->name, "_" + to_text(int64_t(k))) : v->name;
      Node* copy = g.append("Identity", {tensor}, {name});
      g.set_type(copy->outputs[0], tensor->type);
      outputs.push_back(copy->outputs[0]);
      copies.push_back(copy);
    }
  }
  if (changed) g.set_outputs(std::move(outputs));
  for (auto it = g.nodes().end(); it != g.nodes().begin();) {
    Node* n = std::prev(it)->get();
    const bool unused =
        std::none_of(n->outputs.begin(), n->outputs.end(), [](const Value* v) { return v && v->is_used(); });
    if (!n->outputs.empty() && is_list(n->outputs[0]) && unused)
      g.erase(n);
    else
      --it;
  }
  return copies;
}

}  // namespace tc
