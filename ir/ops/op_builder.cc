// OpBuilder: turns the calls of a define() into the stages of a TensorFn. Stages that no wanted output needs are
// dropped, so a define() writes down every output without asking.
#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "ir/graph/origin.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/operand_mismatch.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "ir/ops/attributes.h"
#include "ir/ops/helpers.h"
#include "ir/ops/op.h"

namespace tc {
namespace {

/// Calls f for every buffer that the expression reads. Shared subtrees are visited once.
void for_each_load(const Expr& e, std::set<const ExprNode*>& seen, const std::function<void(const Buffer&)>& f) {
  walk(e, [&](const Expr& x) {
    if (!seen.insert(x.get()).second) return false;
    if (const Load* l = as<Load>(x)) f(l->buffer);
    return true;
  });
}

void for_each_read(const Stage& s, const std::function<void(const Buffer&)>& f) {
  std::set<const ExprNode*> seen;
  for (const Expr& e : s.values) for_each_load(e, seen, f);
  for (const Expr& e : s.init) for_each_load(e, seen, f);
  if (!s.nest) return;
  walk(
      s.nest, [](const Stmt&) { return true; },
      [&](const Expr& e) {
        if (!seen.insert(e.get()).second) return false;
        if (const Load* l = as<Load>(e)) f(l->buffer);
        return true;
      });
}

Expr start_of(Op op, DType t) {
  const Expr e = identity_of(op, t);
  check(bool(e), "a reduction with an operation that has no identity");
  return e;
}

Exprs as_exprs(const std::vector<Axis>& axes) {
  Exprs e;
  for (const Axis& a : axes) e.emplace_back(a.var);
  return e;
}

std::vector<Var> make_vars(const std::string& prefix, const std::vector<DType>& types) {
  std::vector<Var> vars;
  for (size_t k = 0; k < types.size(); k++) vars.push_back(make_var(prefix + to_text(int64_t(k)), types[k]));
  return vars;
}

Exprs as_exprs(const std::vector<Var>& vars) { return Exprs(vars.begin(), vars.end()); }

}  // namespace

Expr Tensor::broadcast_at(const Exprs& index) const {
  const Dims d = dims();
  check(index.size() >= d.size(), "broadcast_at: the index is shorter than the tensor's rank");
  Exprs at;
  for (size_t k = 0; k < d.size(); k++) at.push_back(d[k] == 1 ? Expr(0) : index[index.size() - d.size() + k]);
  return load(buffer_, at);
}

OpBuilder::OpBuilder(const Node& node, std::vector<Buffer> inputs)
    : node_(node), buffers_(std::move(inputs)), outputs_(node.outputs.size()) {
  check(buffers_.size() == node.inputs.size(), "OpBuilder: one buffer per operand");
}

Tensor OpBuilder::in(int i) {
  if (!has(i)) reject("input " + to_text(int64_t(i)) + " is missing", i);
  if (!buffers_[size_t(i)]) {
    const ValueType& t = node_.inputs[size_t(i)]->type;
    if (!t.is_tensor()) unsupported("only tensors can be compiled here, not a " + to_text(t), i);
    unsupported("the element type or the sizes of this input cannot be compiled: " + to_text(t), i);
  }
  return Tensor(buffers_[size_t(i)]);
}

Constant OpBuilder::constant(int i) const { return has(i) ? node_.inputs[size_t(i)]->constant : nullptr; }

std::vector<int64_t> OpBuilder::const_ints(int i) const {
  if (!has(i)) reject("input " + to_text(int64_t(i)) + " is missing", i);
  const Constant c = constant(i);
  if (!c) unsupported("this input must be known when the model is compiled", i);
  if (!is_int(c->dtype) && c->dtype != DType::Bool) reject("this input must hold integers", i);
  return c->as_ints();
}

Dims OpBuilder::declared_dims(int k, int input) const {
  if (declares(k)) return static_dims(node_.outputs[size_t(k)]->type.shape);
  unsupported(
      "this input must be known when the model is compiled, or the model must declare the result's shape; where it "
      "follows from a size that --dim gives as a range, give that size as a number; where the model computes it from "
      "data, let the "
      "model end in front of this node",
      input);
}

template <class T>
const T* OpBuilder::find_attr(const std::string& name) const {
  return tc::find_attr<T>(node_, name);
}

bool OpBuilder::has_attr(const std::string& name) const {
  auto it = node_.attrs.find(name);
  return it != node_.attrs.end() && it->second.index() != 0;
}

int64_t OpBuilder::attr_int(const std::string& name, int64_t otherwise) const {
  const int64_t* v = find_attr<int64_t>(name);
  return v ? *v : otherwise;
}

float OpBuilder::attr_float(const std::string& name, float otherwise) const {
  const float* v = find_attr<float>(name);
  return v ? *v : otherwise;
}

std::string OpBuilder::attr_string(const std::string& name, const std::string& otherwise) const {
  const std::string* v = find_attr<std::string>(name);
  return v ? *v : otherwise;
}

std::vector<int64_t> OpBuilder::attr_ints(const std::string& name, const std::vector<int64_t>& otherwise) const {
  const std::vector<int64_t>* v = find_attr<std::vector<int64_t>>(name);
  return v ? *v : otherwise;
}

std::vector<float> OpBuilder::attr_floats(const std::string& name, const std::vector<float>& otherwise) const {
  const std::vector<float>* v = find_attr<std::vector<float>>(name);
  return v ? *v : otherwise;
}

int OpBuilder::axis(int64_t value, int rank) const {
  if (value < -rank || value >= rank)
    reject("axis is " + to_text(value) + " but must lie in " + to_text(int64_t(-rank)) + ".." +
           to_text(int64_t(rank - 1)));
  return int(value < 0 ? value + rank : value);
}

std::vector<Axis> OpBuilder::make_axes(const Dims& shape, const std::vector<std::string>& names, bool reduced) const {
  static constexpr std::string_view kAxes[] = {"i", "j", "k", "l", "m", "n"}, kReduced[] = {"r", "s", "t", "u"};
  std::vector<Axis> axes;
  for (size_t d = 0; d < shape.size(); d++) {
    std::string name;
    if (d < names.size())
      name = names[d];
    else if (reduced)
      name = d < std::size(kReduced) ? std::string(kReduced[d]) : "r" + to_text(int64_t(d));
    else
      name = d < std::size(kAxes) ? std::string(kAxes[d]) : "i" + to_text(int64_t(d));
    if (shape[d] < 0) reject("a size of the result is negative");
    axes.push_back({make_var(std::move(name)), Dim(shape[d])});
  }
  return axes;
}

namespace {

void check_type(bool same, const std::string& stage) {
  if (!same) throw OperandMismatch("stage " + stage + ": a value has another type than its buffer");
}
Combiner joined_by(Op op, DType t) {
  check_truth_values(op, t);
  Combiner c;
  c.op = op;
  return c;
}
/// A stage without work reads nothing: an empty reduction is its identity, an empty result needs no value.
void drop_empty_work(Stage& s) {
  auto empty = [](const std::vector<Axis>& axes) {
    return std::any_of(axes.begin(), axes.end(), [](const Axis& a) { return a.extent == Dim(0); });
  };
  if (s.kind == Stage::Kind::Nest || s.scan >= 0 || s.outputs.size() != 1 || !(empty(s.axes) || empty(s.raxes))) return;
  s.values = {s.kind == Stage::Kind::Reduce ? s.init[0] : zero(s.outputs[0]->dtype)};
  s.kind = Stage::Kind::Compute;
  s.raxes.clear();
  s.init.clear();
  s.combiner = {};
}
}  // namespace

void OpBuilder::add(Stage s) {
  s.scan = scan_;
  drop_empty_work(s);
  stages_.push_back(std::move(s));
}

Tensor OpBuilder::declare(std::string name, DType t, Dims shape) {
  for (int64_t d : shape)
    if (d < 0) reject("a size of the result is negative");
  if (!has_several_open(shape)) (void)num_elements(shape);
  return Tensor(make_buffer(std::move(name), t, to_shape(shape)));
}

void OpBuilder::define(const Tensor& declared, const Point& f, std::vector<std::string> names) {
  Stage s;
  s.kind = Stage::Kind::Compute;
  s.name = declared.buffer()->name;
  s.axes = make_axes(declared.dims(), names, false);
  s.values = {f(as_exprs(s.axes))};
  check_type(s.values[0]->dtype == declared.dtype(), s.name);
  s.outputs = {declared.buffer()};
  add(std::move(s));
}

Tensor OpBuilder::compute(std::string name, DType t, Dims shape, const Point& f, std::vector<std::string> names) {
  Tensor y = declare(std::move(name), t, std::move(shape));
  define(y, f, std::move(names));
  return y;
}

void OpBuilder::define_reduce(const Tensor& declared, Op op, Dims raxes, const ReducePoint& f, Expr init) {
  Stage s;
  s.kind = Stage::Kind::Reduce;
  s.name = declared.buffer()->name;
  s.axes = make_axes(declared.dims(), {}, false);
  s.raxes = make_axes(raxes, {}, true);
  s.values = {f(as_exprs(s.axes), as_exprs(s.raxes))};
  check_type(s.values[0]->dtype == declared.dtype(), s.name);
  s.combiner = joined_by(op, declared.dtype());
  s.init = {init ? init : start_of(op, declared.dtype())};
  s.outputs = {declared.buffer()};
  add(std::move(s));
}

Tensor OpBuilder::reduce(std::string name, Op op, DType t, Dims shape, Dims raxes, const ReducePoint& f,
                         std::vector<std::string> names, Expr init) {
  Tensor y = declare(std::move(name), t, shape);
  Stage s;
  s.kind = Stage::Kind::Reduce;
  s.name = y.buffer()->name;
  s.axes = make_axes(shape, names, false);
  const size_t used = std::min(names.size(), shape.size());
  s.raxes = make_axes(raxes, {names.begin() + std::ptrdiff_t(used), names.end()}, true);
  s.values = {f(as_exprs(s.axes), as_exprs(s.raxes))};
  check_type(s.values[0]->dtype == t, s.name);
  s.combiner = joined_by(op, t);
  s.init = {init ? init : start_of(op, t)};
  s.outputs = {y.buffer()};
  add(std::move(s));
  return y;
}

std::vector<Tensor> OpBuilder::reduce_tuple(std::string name, std::vector<DType> types, Dims shape, Dims raxes,
                                            const std::function<Exprs(const Exprs& i, const Exprs& r)>& f, Exprs init,
                                            const std::function<Exprs(const Exprs& lhs, const Exprs& rhs)>& combine) {
  std::vector<Tensor> result;
  Stage s;
  s.kind = Stage::Kind::Reduce;
  s.name = name;
  s.axes = make_axes(shape, {}, false);
  s.raxes = make_axes(raxes, {}, true);
  s.values = f(as_exprs(s.axes), as_exprs(s.raxes));
  s.combiner.lhs = make_vars("a", types);
  s.combiner.rhs = make_vars("b", types);
  s.combiner.result = combine(as_exprs(s.combiner.lhs), as_exprs(s.combiner.rhs));
  s.init = std::move(init);
  check(s.values.size() == types.size() && s.init.size() == types.size() && s.combiner.result.size() == types.size(),
        "stage " + name + ": one value, identity and result per component");
  for (size_t k = 0; k < types.size(); k++) {
    check_type(s.values[k]->dtype == types[k], name);
    result.push_back(declare(name + "_" + to_text(int64_t(k)), types[k], shape));
    s.outputs.push_back(result.back().buffer());
  }
  add(std::move(s));
  return result;
}

// y[...] = ""
static Stmt empty_strings(const Buffer& y) {
  return for_each_index(
      static_dims(y->shape), [&](const Exprs& i) { return store(y, i, zero(DType::String)); }, "e");
}

// "chosen taken" names two results; "top_k", of a nest with two, is top_k_0 and top_k_1.
static std::vector<std::string> nest_names(const std::string& name, size_t results) {
  std::istringstream words(name);
  std::vector<std::string> names(std::istream_iterator<std::string>(words), {});
  if (names.size() == results) return names;
  check(names.size() == 1, "a nest names itself or all of its results");
  for (size_t k = 1; k < results; k++) names.push_back(name + "_" + to_text(int64_t(k)));
  if (results > 1) names[0] += "_0";
  return names;
}

std::vector<Tensor> OpBuilder::nest(std::string name, std::vector<ValueType> outputs,
                                    const std::function<Stmt(const std::vector<Buffer>&)>& body) {
  Stage s;
  s.kind = Stage::Kind::Nest;
  const std::vector<std::string> names = nest_names(name, outputs.size());
  std::vector<Tensor> result;
  for (size_t k = 0; k < outputs.size(); k++) {
    result.push_back(declare(names[k], outputs[k].dtype, static_dims(outputs[k].shape)));
    s.outputs.push_back(result.back().buffer());
  }
  s.name = name.substr(0, name.find(' '));
  // An element that a nest leaves out holds garbage: of a number it means nothing, of a string it would be a view of memory.
  Stmts all;
  for (const Buffer& b : s.outputs)
    if (b->dtype == DType::String) all.push_back(empty_strings(b));
  all.push_back(body(s.outputs));
  s.nest = seq(std::move(all));
  add(std::move(s));
  return result;
}

void OpBuilder::begin_scan() {
  check(scan_ < 0, "scans do not nest");
  scan_ = scans_++;
}

void OpBuilder::end_scan() { scan_ = -1; }

void OpBuilder::output(int k, const Tensor& t) {
  if (wants(k)) outputs_.at(size_t(k)) = t.buffer();
}

void OpBuilder::reject(const std::string& why, int input) const {
  throw Error(problem_of(node_, "TC0201", ExitCode::Rejected, why, {}, input));
}

void OpBuilder::unsupported(const std::string& why, int input) const {
  throw Error(problem_of(node_, "TC0301", ExitCode::Unsupported, why, {}, input));
}

TensorFn OpBuilder::take() {
  TensorFn fn;
  std::set<const BufferDef*> needed;
  for (size_t k = 0; k < outputs_.size(); k++) {
    if (!node_.outputs[k]) continue;
    if (!outputs_[k] && node_.domain == "com.microsoft")  // no schema of ONNX has counted them
      reject("the operator has no output " + to_text(int64_t(k)));
    check(outputs_[k] != nullptr, "define() of " + node_.op + " left output " + to_text(int64_t(k)) + " open");
    fn.outputs.push_back(outputs_[k]);
    needed.insert(outputs_[k].get());
  }
  // A stage of a scan may be needed by an earlier one of its group, hence the repetition.
  std::vector<bool> keep(stages_.size());
  for (bool again = true; again;) {
    again = false;
    for (size_t s = stages_.size(); s-- > 0;) {
      const Stage& stage = stages_[s];
      const bool wanted = std::any_of(stage.outputs.begin(), stage.outputs.end(),
                                      [&](const Buffer& b) { return needed.count(b.get()) != 0; });
      if (keep[s] || !wanted) continue;
      keep[s] = again = true;
      for_each_read(stage, [&](const Buffer& b) { needed.insert(b.get()); });
    }
  }
  for (size_t s = 0; s < stages_.size(); s++)
    if (keep[s]) fn.stages.push_back(std::move(stages_[s]));
  for (size_t i = 0; i < buffers_.size(); i++)
    if (buffers_[i] && needed.count(buffers_[i].get())) {
      fn.inputs.push_back(buffers_[i]);
      fn.operands.push_back(int(i));
    }
  return fn;
}

}  // namespace tc
