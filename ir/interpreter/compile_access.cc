// Where loads and stores go: each index as an affine line in the lane where possible.
#include "ir/interpreter/compiler.h"
#include "ir/loop/linear.h"
#include "support/text.h"

namespace tc::interp {
namespace {

// Row-major strides in elements where the buffer has none of its own.
std::vector<int64_t> strides_of(const BufferDef& b) {
  if (!b.strides.empty()) return b.strides;
  std::vector<int64_t> s(b.shape.size(), 1);
  for (size_t d = b.shape.size(); d-- > 1;) {
    check(b.shape[d].value >= 0, "buffer \"" + printable(b.name) + "\" has a size that is not known");
    s[d - 1] = checked_mul(s[d], b.shape[d].value);
  }
  return s;
}

}  // namespace

bool Compiler::line(const Expr& e, Line& out, int64_t& step) {
  Linear l = linear_form(e);
  out.constant = l.constant;
  step = 0;
  for (const auto& t : l.terms) {
    auto* v = as<VarRef>(t.atom);
    if (v && v->var.get() == lane_var_) {
      out.terms.push_back({t.coefficient, lane_base_.reg});
      step = t.coefficient;
      continue;
    }
    Operand o = expr(t.atom);
    if (o.varying || o.vector) return false;
    out.terms.push_back({t.coefficient, o.reg});
  }
  return true;
}

AccessDim Compiler::dimension(const Expr& index, bool& varying, bool& vector) {
  AccessDim d;
  auto* r = as<Ramp>(index);
  const Expr& base = r ? r->base : index;
  if (!base->vector && base->dtype == DType::I64 && line(base, d.base, d.lane_step)) {
    d.vector_step = r ? 1 : 0;
    varying |= d.lane_step != 0;
    vector |= r != nullptr;
    return d;
  }
  d.base = {};
  d.lane_step = 0;
  Operand o = expr(index);
  check(class_of(o.dtype) == Class::I, "an index is not a signed integer");
  d.reg = o.reg, d.reg_varying = o.varying, d.reg_vector = o.vector;
  varying |= o.varying, vector |= o.vector;
  return d;
}

int Compiler::access(const Buffer& b, const Exprs& index, const Expr& count, bool is_store, bool& varying,
                     bool& vector) {
  auto it = buffers_.find(b.get());
  check(it != buffers_.end(), "buffer \"" + printable(b->name) + "\" is not bound");
  check(index.size() == b->shape.size(), "rank of an index of buffer \"" + printable(b->name) + "\"");
  Access x;
  x.buffer = it->second;
  x.is_store = is_store;
  std::vector<int64_t> strides = strides_of(*b);
  for (size_t d = 0; d < index.size(); ++d) {
    AccessDim dim = dimension(index[d], varying, vector);
    dim.extent = b->shape[d].value;
    dim.stride = strides[d];
    x.affine &= dim.reg < 0;
    x.dims.push_back(std::move(dim));
  }
  if (count) {
    Operand n = expr(count);
    x.count = n.reg, x.count_varying = n.varying;
    varying |= n.varying, vector = true;
  }
  const BufferSlot& slot = program_.buffers[size_t(x.buffer)];
  varying |= slot.sharing != Sharing::All;
  varying |= in_threads_ && slot.tracked;  // every thread's own access counts
  x.vector = vector;
  program_.accesses.push_back(std::move(x));
  return int(program_.accesses.size()) - 1;
}

}  // namespace tc::interp
