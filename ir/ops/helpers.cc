#include "ir/ops/helpers.h"

#include <algorithm>

namespace tc {

DType compute_type(DType t) { return is_narrow_float(t) ? DType::F32 : t; }
DType sum_type(DType t) { return is_int(t) && info(t).bits < 32 ? DType::I64 : compute_type(t); }

Expr widen(Expr e) {
  const DType t = compute_type(e->dtype);
  return cast(t, std::move(e));
}

std::string snake_case(std::string_view op) {
  auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  std::string w;
  for (size_t i = 0; i < op.size(); i++) {
    const bool starts = upper(op[i]) && i > 0 && (!upper(op[i - 1]) || (i + 1 < op.size() && !upper(op[i + 1])));
    if (starts) w += '_';
    w += upper(op[i]) ? char(op[i] - 'A' + 'a') : op[i];
  }
  return w;
}

std::string stage_label(const OpBuilder& b) {
  const OpRow* row = row_of(b.node());
  return row && !row->label.empty() ? std::string(row->label) : snake_case(b.node().op);
}

OpRow marked(OpTrait t, OpRow row) {
  row.traits.push_back(t);
  if (t == OpTrait::Activation) row.traits.push_back(OpTrait::SameSizes);
  return row;
}

OpFamily all_marked(OpTrait t, OpFamily rows) {
  for (OpRow& row : rows) row = marked(t, std::move(row));
  return rows;
}

OpRow joins_nothing(std::string_view neutral, OpRow row) {
  row.neutral = neutral;
  return row;
}

OpFamily joined(std::vector<OpFamily> parts) {
  OpFamily all;
  for (OpFamily& part : parts) all.insert(all.end(), std::move_iterator(part.begin()), std::move_iterator(part.end()));
  return all;
}

Dims broadcast_dims(const OpBuilder& b, const std::vector<Tensor>& tensors) {
  Dims result;
  for (const Tensor& t : tensors) {
    const Dims d = t.dims();
    if (d.size() > result.size()) result.insert(result.begin(), d.size() - result.size(), 1);
    const size_t first = result.size() - d.size();
    for (size_t k = 0; k < d.size(); k++) {
      int64_t& r = result[first + k];
      if (r == 1)
        r = d[k];
      else if (d[k] != 1 && d[k] != r)
        b.reject("shapes do not broadcast: sizes " + to_text(r) + " and " + to_text(d[k]) + " meet");
    }
  }
  return result;
}

void require_broadcast(OpBuilder& b, int input, const Dims& dims) {
  const Dims d = b.in(input).dims();
  bool fits = d.size() <= dims.size();
  for (size_t k = 0; k < d.size() && fits; k++) fits = d[k] == 1 || d[k] == dims[dims.size() - d.size() + k];
  if (!fits) b.reject("this input does not broadcast to the result", input);
}

std::vector<Tensor> operands(OpBuilder& b) {
  std::vector<Tensor> list;
  for (int i = 0; i < b.num_inputs(); i++)
    if (b.has(i)) list.push_back(b.in(i));
  if (list.empty()) b.reject("at least one input is needed");
  return list;
}

void require_number(const OpBuilder& b, DType t, int input) {
  if (!is_float(t) && !is_int(t)) b.reject("numbers are needed here, not " + std::string(info(t).onnx_name), input);
}
void require_float(const OpBuilder& b, DType t, int input) {
  if (!is_float(t)) b.reject("floats are needed here, not " + std::string(info(t).onnx_name), input);
}

namespace {

void define_unary(OpBuilder& b, bool gives_bool, const std::function<Expr(Expr)>& f) {
  const Tensor x = b.in(0);
  if (x.dtype() == DType::String) b.reject("the operator takes numbers, not strings", 0);
  const DType t = gives_bool ? DType::Bool : x.dtype();
  b.output(0, b.compute(stage_label(b), t, x.dims(), [&](const Exprs& i) { return cast(t, f(widen(x(i)))); }));
}

void define_binary(OpBuilder& b, bool gives_bool, const std::function<Expr(Expr, Expr)>& f) {
  const Tensor x = b.in(0), y = b.in(1);
  if (x.dtype() != y.dtype())
    b.reject("the inputs have different types, " + std::string(info(x.dtype()).onnx_name) + " and " +
             std::string(info(y.dtype()).onnx_name));
  if (x.dtype() == DType::String && !b.node().is("Equal")) b.reject("the operator takes numbers, not strings", 0);
  const DType t = gives_bool ? DType::Bool : x.dtype();
  b.output(0, b.compute(stage_label(b), t, broadcast_dims(b, {x, y}), [&](const Exprs& i) {
    return cast(t, f(widen(x.broadcast_at(i)), widen(y.broadcast_at(i))));
  }));
}

}  // namespace

Define elementwise(std::function<Expr(Expr)> f) {
  return [f](OpBuilder& b) { define_unary(b, false, f); };
}
Define elementwise(std::function<Expr(OpBuilder&, Expr)> f) {
  return [f](OpBuilder& b) { define_unary(b, false, [&](Expr x) { return f(b, std::move(x)); }); };
}
Define elementwise(std::function<Expr(Expr, Expr)> f) {
  return [f](OpBuilder& b) { define_binary(b, false, f); };
}
Define elementwise(std::function<Expr(OpBuilder&, Expr, Expr)> f) {
  return
      [f](OpBuilder& b) { define_binary(b, false, [&](Expr x, Expr y) { return f(b, std::move(x), std::move(y)); }); };
}
Define predicate(std::function<Expr(Expr)> f) {
  return [f](OpBuilder& b) { define_unary(b, true, f); };
}
Define predicate(std::function<Expr(Expr, Expr)> f) {
  return [f](OpBuilder& b) { define_binary(b, true, f); };
}

Expr linear_index(const Exprs& index, const Dims& dims) {
  Expr linear = 0;
  for (size_t d = 0; d < dims.size(); d++) linear = dims[d] == 1 ? linear : linear * Expr(dims[d]) + index[d];
  return linear;
}

Exprs delinearize(const Expr& linear, const Dims& dims) {
  Exprs index(dims.size(), Expr(0));
  Expr rest = linear;
  size_t first = 0;  // the outermost axis that is longer than 1 needs no modulo
  while (first < dims.size() && dims[first] == 1) first++;
  for (size_t d = dims.size(); d-- > first;) {
    if (dims[d] <= 1) continue;
    index[d] = d == first ? rest : floor_mod(rest, dims[d]);
    rest = floor_div(rest, dims[d]);
  }
  return index;
}

Exprs reshape_index(const Exprs& index, const Dims& to, const Dims& from) {
  Exprs at(from.size(), Expr(0));
  if (has_no_elements(from)) return at;
  size_t t = 0, f = 0;
  while (t < to.size() || f < from.size()) {
    // The shortest groups of neighbouring axes, one of each shape, with equally many elements.
    const size_t t0 = t, f0 = f;
    int64_t n_to = t < to.size() ? to[t++] : 1, n_from = f < from.size() ? from[f++] : 1;
    while (n_to != n_from) {
      if (n_to < n_from)
        n_to *= to[t++];
      else
        n_from *= from[f++];
    }
    const Dims sub_to(to.begin() + int64_t(t0), to.begin() + int64_t(t));
    const Dims sub_from(from.begin() + int64_t(f0), from.begin() + int64_t(f));
    const Exprs sub_index(index.begin() + int64_t(t0), index.begin() + int64_t(t));
    const Exprs part = delinearize(linear_index(sub_index, sub_to), sub_from);
    std::copy(part.begin(), part.end(), at.begin() + int64_t(f0));
  }
  return at;
}

Stmt for_each_index(const Dims& dims, const std::function<Stmt(const Exprs& i)>& body, const std::string& hint) {
  std::vector<Var> vars;
  for (size_t d = 0; d < dims.size(); d++) vars.push_back(make_var(hint + to_text(int64_t(d))));
  Stmt s = body(Exprs(vars.begin(), vars.end()));
  for (size_t d = dims.size(); d-- > 0;) s = loop(vars[d], dims[d], s);
  return s;
}

Exprs with_axis(Exprs index, int axis, Expr value) {
  index.at(size_t(axis)) = std::move(value);
  return index;
}

Exprs insert_axis(Exprs index, int axis, Expr value) {
  index.insert(index.begin() + axis, std::move(value));
  return index;
}

Exprs remove_axis(Exprs index, int axis) {
  index.erase(index.begin() + axis);
  return index;
}

Dims without_axis(Dims dims, int axis) {
  dims.erase(dims.begin() + axis);
  return dims;
}

Exprs concat(Exprs a, const Exprs& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Exprs Reduction::at(const Exprs& i, const Exprs& r) const {
  Exprs index;
  size_t next_i = 0, next_r = 0;
  for (bool reduced : over) {
    index.push_back(reduced ? r[next_r++] : i[next_i]);
    if (!reduced || keepdims) next_i++;
  }
  return index;
}

Exprs Reduction::result_at(const Exprs& input) const {
  Exprs index;
  for (size_t d = 0; d < over.size(); d++) {
    if (!over[d])
      index.push_back(input[d]);
    else if (keepdims)
      index.emplace_back(0);
  }
  return index;
}

Reduction reduction_over(const OpBuilder& b, const Dims& dims, const std::vector<int64_t>& axes, bool keepdims) {
  Reduction result;
  result.keepdims = keepdims;
  result.over.assign(dims.size(), false);
  for (int64_t a : axes) {
    const auto d = size_t(b.axis(a, int(dims.size())));
    if (result.over[d]) b.reject("axis " + to_text(a) + " is given twice");
    result.over[d] = true;
  }
  for (size_t d = 0; d < dims.size(); d++) {
    if (result.over[d]) result.raxes.push_back(dims[d]);
    if (!result.over[d] || keepdims) result.out.push_back(result.over[d] ? 1 : dims[d]);
  }
  return result;
}

Tensor reduce_over(OpBuilder& b, const std::string& name, Op op, DType t, const Reduction& over,
                   const OpBuilder::Point& f) {
  if (over.raxes.empty()) return b.compute(name, t, over.out, [&](const Exprs& i) { return f(over.at(i, {})); });
  return b.reduce(name, op, t, over.out, over.raxes, [&](const Exprs& i, const Exprs& r) { return f(over.at(i, r)); });
}

Expr element(OpBuilder& b, int input, int64_t k) {
  if (b.constant(input)) return Expr(b.const_ints(input).at(size_t(k)));
  const Tensor t = b.in(input);
  if (!is_int(t.dtype())) b.reject("integers are needed here", input);
  if (t.rank() > 1 || k >= num_elements(t.dims())) b.reject("this input has too few elements or too many axes", input);
  return cast(DType::I64, t.rank() == 0 ? t({}) : t({Expr(k)}));
}

int64_t length_of(OpBuilder& b, int input) {
  const Tensor t = b.in(input);
  if (t.rank() > 1) b.reject("a list is needed here", input);
  return num_elements(t.dims());
}

Expr run_time_axis(const Expr& axis, int rank) { return select(axis < Expr(0), axis + Expr(rank), axis); }

Expr out_of_range(DType t) { return cast(t, apply(Op::Index, {Expr(1), Expr(1)})); }

Tensor choose(OpBuilder& b, const std::string& name, const std::vector<Candidate>& candidates) {
  check(!candidates.empty(), "choose: no candidates");
  const Tensor& first = candidates[0].result;
  return b.compute(name, first.dtype(), first.dims(), [&](const Exprs& i) {
    Expr e = out_of_range(first.dtype());
    for (size_t k = candidates.size(); k-- > 0;) e = select(candidates[k].condition, candidates[k].result(i), e);
    return e;
  });
}

Tensor convert(OpBuilder& b, const Tensor& x, DType t, const std::string& name) {
  if (x.dtype() == t) return x;
  return b.compute(name, t, x.dims(), [&](const Exprs& i) { return cast(t, x(i)); });
}

Expr checked_index(Expr value, int64_t n) { return apply(Op::Index, {cast(DType::I64, std::move(value)), Expr(n)}); }

}  // namespace tc
