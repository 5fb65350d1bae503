// parts: a Concat writes through its producers.
//
//   a [1,14,14,32] = conv(x)   b [1,14,14,64] = conv(y)   c [1,14,14,96] = concat(a, b)
//
// a and b are stored where c needs them, as rows of 32 and of 64 numbers in rows of 96 (BufferDef::strides of the kernels'
// operands), and nothing is left to copy. Whoever else reads a or b reads them there. In the same way a tensor lies in the
// interior of what it is padded to, of which a kernel fills the border alone, and a slice is a view of what it is cut from.
// A Concat of what the next one begins with (the layers of a dense block) is a view of the first columns of that one.
// Operands for which this cannot be are copied to their place, one by one; a Concat all of whose operands would be
// stays one kernel. Nothing is computed otherwise: addresses change, values do not.
//
// Preconditions, of v that becomes part of w: v is made by a function of this graph, and is no output, no view of another
// tensor, and has no views; w is no output; strings and types of less than a byte are left alone, and so is w of less
// than kLeastBytes; the sizes are known. Where rows of v are no longer side by side, the loops of all kernels that read or
// write v take strides (Backend::takes_strides), and rows have kLeastRow elements at least. A padded tensor: sums of
// products that read it as well would have shorter rows, so that nobody else is one.
//
// Needs: the graph that becomes a program. Leaves: the graph as it was.
#include "passes/program/parts.h"

#include <algorithm>
#include <set>

#include "ir/graph/views.h"
#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/row_major.h"
#include "passes/graph/groups.h"
#include "passes/graph/match.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

constexpr int64_t kLeastBytes = 4096;  // less is copied in no time
constexpr int64_t kLeastRow = 8;       // shorter rows leave vectors empty

/// Empty where they are those of a tensor of its own.
std::vector<int64_t> proper(std::vector<int64_t> strides, const Dims& dims) {
  const std::vector<int64_t> own = row_major(dims);
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != 1 && strides[d] != own[d]) return strides;
  return {};
}

bool is_plain(const Value* v) {
  return v->type.is_static_tensor() && v->type.dtype != DType::String && info(v->type.dtype).bits >= 8;
}

/// The loads at the leaves of selects, and the number beside them; false if there is something else.
bool leaves_of(const Expr& e, std::vector<const Load*>& loads, Expr& number) {
  if (const Select* s = as<Select>(e)) return leaves_of(s->yes, loads, number) && leaves_of(s->no, loads, number);
  if (const Load* l = as<Load>(e)) {
    loads.push_back(l);
    return true;
  }
  if (!as_const_number(e) || (bool(number) && !structurally_equal(number, e))) return false;
  number = e;
  return true;
}

/// Where element 0 of the load lies: begin, if index d is axis d less begin[d].
std::optional<Dims> begin_of(const Load& l, const Stage& s) {
  if (l.index.size() != s.axes.size()) return std::nullopt;
  Dims begin;
  for (size_t d = 0; d < s.axes.size(); ++d) {
    const bool single = l.buffer->shape[d] == Dim(1) && s.axes[d].extent == Dim(1);
    const auto f = affine_in(l.index[d], {s.axes[d].var});
    const auto rest = f ? as_const_int(f->rest) : std::nullopt;
    if (!rest || (f->coefficients[0] != 1 && !single)) return std::nullopt;
    begin.push_back(-*rest);
  }
  return begin;
}

/// Is the value just that load wherever the load's operand has an element?
bool is_there(const Expr& value, const Load& l, const Stage& s, const Dims& begin) {
  Ranges box;
  for (size_t d = 0; d < begin.size(); ++d) {
    const int64_t n = l.buffer->shape[d].value;
    if (begin[d] < 0 || begin[d] + n > s.axes[d].extent.value) return false;
    box[s.axes[d].var.get()] = {begin[d], begin[d] + n - 1};
  }
  const Expr here = simplify(value, box);
  const Load* read = as<Load>(here);
  if (!read || read->buffer != l.buffer) return false;
  for (size_t d = 0; d < begin.size(); ++d)
    if (!structurally_equal(simplify(read->index[d], box), simplify(l.index[d], box))) return false;
  return true;
}

int64_t bytes_of(const Value* v) {
  return checked_mul(num_elements(static_dims(v->type.shape)), info(v->type.dtype).bytes);
}

int64_t offset_of(const Dims& begin, const std::vector<int64_t>& strides) {
  int64_t offset = 0;
  for (size_t d = 0; d < begin.size(); ++d) offset += begin[d] * strides[d];
  return offset;
}

const Load* single_load(const Node& n) {
  if (!is_fused(&n) || n.fn->stages.size() != 1 || n.outputs.size() != 1 ||
      n.fn->outputs[0] != n.fn->stages[0].outputs[0])
    return nullptr;
  const Stage& s = n.fn->stages[0];
  return s.kind == Stage::Kind::Compute && s.scan < 0 ? as<Load>(s.values[0]) : nullptr;
}

size_t operand_index(const Node& n, const Buffer& b) {
  const auto& in = n.fn->inputs;
  const auto k = size_t(std::find(in.begin(), in.end(), b) - in.begin());
  return n.fn->operands.empty() ? k : size_t(n.fn->operands[k]);
}

}  // namespace

/// How the result of a node is put together from its operands; nothing if it is made otherwise.
std::optional<Parts::Layout> Parts::layout_of(const Node& n) {
  if (!is_fused(&n) || n.outputs.size() != 1 || n.fn->stages.size() != 1) return std::nullopt;
  const Stage& s = n.fn->stages[0];
  const Value* w = n.outputs[0];
  if (s.kind != Stage::Kind::Compute || s.scan >= 0 || n.fn->outputs[0] != s.outputs[0] || !as<Select>(s.values[0]) ||
      !is_plain(w))
    return std::nullopt;
  std::vector<const Load*> loads;
  Layout l;
  if (!leaves_of(s.values[0], loads, l.border) || (bool(l.border) && loads.size() != 1)) return std::nullopt;
  int64_t covered = 0;
  for (const Load* load : loads) {
    const auto begin = begin_of(*load, s);
    if (!begin || !is_static(load->buffer->shape) || !is_there(s.values[0], *load, s, *begin)) return std::nullopt;
    covered += num_elements(static_dims(load->buffer->shape));
    l.boxes.push_back({operand_index(n, load->buffer), *begin});
  }
  if (!l.border && covered != num_elements(static_dims(w->type.shape))) return std::nullopt;
  return l;
}

const Part* Parts::of(const Value* v) const {
  const auto it = parts_.find(v);
  return it == parts_.end() ? nullptr : &it->second;
}

const Assembly* Parts::assembly(const Node* n) const {
  const auto it = assemblies_.find(n);
  return it == assemblies_.end() ? nullptr : &it->second;
}

/// With strides that are never empty.
Part Parts::home_of(const Value* v) const {
  Part p = of(v) ? *of(v) : Part{v, 0, {}};
  if (p.strides.empty()) p.strides = row_major(static_dims(v->type.shape));
  return p;
}

void Parts::place(const Value* v, Part at) {
  at.strides = proper(std::move(at.strides), static_dims(v->type.shape));
  shared_[v] = shared_[at.whole] = true;
  parts_[v] = std::move(at);
}

bool Parts::readers_take(const Value* v, const Node* but, const std::vector<int64_t>& strides) const {
  return std::all_of(v->users.begin(), v->users.end(), [&](const Node* u) {
    return u == but || (is_fused(u) && (strides.empty() || backend_->takes_strides(*u->fn, false)));
  });
}

bool Parts::may_move(const Value* v, const Node* reader, const std::vector<int64_t>& strides) const {
  if (!is_fused(v->producer) || of(v) || outputs_.count(v) || viewed_.count(v) || !is_plain(v)) return false;
  const Dims dims = static_dims(v->type.shape);
  if (has_no_elements(dims)) return false;
  const std::vector<int64_t> apart = proper(strides, dims);
  if (!apart.empty() && (dims.back() < kLeastRow || !backend_->takes_strides(*v->producer->fn, true))) return false;
  return readers_take(v, reader, apart);
}

/// A Concat whose operands lie side by side already.
bool Parts::continue_whole(const Node& n, const Layout& l) {
  const Value* w = n.outputs[0];
  if (bool(l.border) || of(w) || shared(w) || viewed_.count(w)) return false;
  const Part* first = of(n.inputs[l.boxes[0].operand]);
  if (!first) return false;
  Part whole = home_of(n.inputs[l.boxes[0].operand]);
  whole.offset -= offset_of(l.boxes[0].begin, whole.strides);
  for (const Box& b : l.boxes) {
    const Value* v = n.inputs[b.operand];
    Part at = whole;
    at.offset += offset_of(b.begin, whole.strides);
    at.strides = proper(at.strides, static_dims(v->type.shape));
    if (!of(v) || *of(v) != at) return false;
  }
  if (!readers_take(w, nullptr, proper(whole.strides, static_dims(w->type.shape)))) return false;
  place(w, whole);
  assemblies_[&n] = {};
  return true;
}

void Parts::assemble(const Node& n) {
  const auto l = layout_of(n);
  const Value* w = n.outputs.empty() ? nullptr : n.outputs[0];
  if (!l || bytes_of(w) < kLeastBytes || outputs_.count(w) || continue_whole(n, *l)) return;
  const Part home = home_of(w);
  Assembly a;
  bool placed = false;
  for (const Box& b : l->boxes) {
    const Value* v = n.inputs[b.operand];
    const auto is_product = [&](const Node* u) { return u != &n && traits_of(*u).kind == GroupKind::Contraction; };
    Part at = home;
    at.offset += offset_of(b.begin, home.strides);
    const bool others = bool(l->border) && std::any_of(v->users.begin(), v->users.end(), is_product);
    if (!others && may_move(v, &n, home.strides)) {
      place(v, at);
      placed = true;
    } else {
      at.strides = proper(at.strides, static_dims(v->type.shape));
      a.copies.push_back({b.operand, at});
    }
  }
  if (!placed) return;
  if (l->border) {
    a.border = l->border;
    a.begin = l->boxes[0].begin;
    for (size_t d = 0; d < a.begin.size(); ++d)
      a.end.push_back(a.begin[d] + static_dims(n.inputs[l->boxes[0].operand]->type.shape)[d]);
  }
  shared_[w] = true;
  assemblies_[&n] = std::move(a);
}

/// A slice that nobody has brought elsewhere.
void Parts::view(const Node& n) {
  const Load* l = single_load(n);
  if (!l) return;
  const Value *s = n.outputs[0], *x = n.inputs[operand_index(n, l->buffer)], *root = root_of(x);
  const auto from = begin_of(*l, n.fn->stages[0]);
  if (!from || !is_fused(root->producer) || outputs_.count(root) || root->type.dtype != s->type.dtype || !is_plain(s) ||
      of(s) || outputs_.count(s) || viewed_.count(s) || bytes_of(s) < kLeastBytes)
    return;
  Part at = home_of(x);
  at.whole = of(x) ? at.whole : root;  // what is viewed lies in memory of its own
  Dims begin = *from;
  for (int64_t& b : begin) b = -b;
  at.offset += offset_of(begin, at.strides);
  const Dims dims = static_dims(s->type.shape);
  const std::vector<int64_t> apart = proper(at.strides, dims);
  if ((!apart.empty() && dims.back() < kLeastRow) || !readers_take(s, nullptr, apart)) return;
  place(s, at);
  assemblies_[&n] = {};
}

Parts::Parts(const Graph& g, const Backend& backend) : backend_(&backend) {
  for (const Value* v : g.outputs()) outputs_[root_of(v)] = true;
  for (const auto& n : g.nodes())
    if (is_view(*n)) viewed_[n->inputs[0]] = viewed_[n->outputs[0]] = true;
  for (auto it = g.nodes().rbegin(); it != g.nodes().rend(); ++it) assemble(**it);
  for (const auto& n : g.nodes()) view(*n);
}

TensorFn Parts::strided(const TensorFn& fn, const std::vector<const Value*>& operands,
                        const std::vector<Value*>& results) const {
  const auto with = [&](const Buffer& b, const Value* v) {
    const Part* p = v ? of(v) : nullptr;
    if (!p || p->strides.empty()) return b;
    auto d = std::make_shared<BufferDef>(*b);
    d->strides = p->strides;
    return Buffer(std::move(d));
  };
  TensorFn r = fn;
  BufferMap map;
  for (size_t i = 0; i < fn.inputs.size(); ++i)
    if (const Buffer b = with(fn.inputs[i], operands.at(i)); b != fn.inputs[i])
      map[fn.inputs[i].get()] = r.inputs[i] = b;
  for (size_t k = 0; k < fn.outputs.size(); ++k)
    if (const Buffer b = with(fn.outputs[k], results.at(k)); b != fn.outputs[k])
      map[fn.outputs[k].get()] = r.outputs[k] = b;
  if (map.empty()) return fn;
  for (Stage& s : r.stages) {
    for (Buffer& b : s.outputs)
      if (const auto it = map.find(b.get()); it != map.end()) b = it->second;
    for (Exprs* list : {&s.values, &s.init})
      for (Expr& e : *list) e = substitute_buffers(e, map);
    if (s.nest) s.nest = substitute_buffers(s.nest, map);
  }
  return r;
}

}  // namespace tc
