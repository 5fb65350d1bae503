// Loads and stores of batches: strided copies when the index is affine in the lane, one by one otherwise.
#include "ir/interpreter/elements.h"
#include "ir/interpreter/machine.h"
#include "ir/interpreter/scalar.h"
#include "support/text.h"

namespace tc::interp {
namespace {

[[noreturn]] void out_of_bounds(const BufferSlot& s, size_t dim, int64_t index, int64_t extent) {
  throw InternalError("index " + to_text(index) + " of dimension " + to_text(int64_t(dim)) + " of buffer \"" +
                      printable(s.buffer->name) + "\" is outside [0, " + to_text(extent) + ")");
}

void check_bounds(const BufferSlot& s, const Access& x, size_t dim, int64_t low, int64_t high) {
  int64_t extent = x.dims[dim].extent;
  if (low < 0) out_of_bounds(s, dim, low, extent);
  if (extent >= 0 && high >= extent) out_of_bounds(s, dim, high, extent);
}

int64_t scale(const Machine& m, const BufferSlot& s) {
  return s.sharing == Sharing::Lane ? m.program.batch : s.sharing == Sharing::Warp ? (m.program.batch + 31) / 32 : 1;
}

// The lanes first .. last are those that matter: an affine index is monotonic in the lane.
void resolve_strided(Machine& m, const BufferSlot& s, const Access& x, int first, int last, int width, Strided& out) {
  int64_t offset = s.buffer->offset;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    const AccessDim& dim = x.dims[d];
    int64_t base = m.eval(dim.base), a = base + dim.lane_step * first, b = base + dim.lane_step * last;
    check_bounds(s, x, d, std::min(a, b), std::max(a, b) + dim.vector_step * (width - 1));
    offset += base * dim.stride;
    out.lane_step += dim.lane_step * dim.stride;
    out.vector_step += dim.vector_step * dim.stride;
  }
  int64_t n = scale(m, s);
  out = {offset * n, out.lane_step * n + (s.sharing == Sharing::Lane), out.vector_step * n, nullptr};
}

// One element: lane l, vector lane v.
int64_t address(Machine& m, const BufferSlot& s, const Access& x, int l, int v, int width) {
  int64_t offset = s.buffer->offset;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    const AccessDim& dim = x.dims[d];
    int64_t index;
    if (dim.reg < 0)
      index = m.eval(dim.base) + l * dim.lane_step + v * dim.vector_step;
    else
      index =
          m.reg<int64_t>(dim.reg)[(dim.reg_varying ? l * (dim.reg_vector ? width : 1) : 0) + (dim.reg_vector ? v : 0)];
    check_bounds(s, x, d, index, index);
    offset += index * dim.stride;
  }
  if (s.sharing == Sharing::Lane) return offset * m.program.batch + l;
  return s.sharing == Sharing::Warp ? offset * scale(m, s) + l / 32 : offset;
}

template <class C>
void load(Machine& m, const Instr& i) {
  using S = typename C::S;
  using R = typename C::R;
  const Access& x = m.program.accesses[size_t(i.aux)];
  int lanes = m.lanes_of(i), n = m.count(i);
  const S* p = reinterpret_cast<const S*>(m.program.buffers[size_t(x.buffer)].bytes);
  R* __restrict d = m.reg<R>(i.dst);
  Strided s;
  if (!resolve(m, x, lanes, i.width, s)) {
    for (int k = 0; k < n; ++k) d[k] = m.addresses[size_t(k)] < 0 ? R(0) : C::get(p[m.addresses[size_t(k)]]);
    return;
  }
  p += s.offset;
  if (s.mask) {
    for (int k = 0; k < n; ++k) d[k] = s.mask[k] ? C::get(p[k * s.lane_step]) : R(0);
  } else if (i.width == 1 && s.lane_step == 1) {
    for (int k = 0; k < n; ++k) d[k] = C::get(p[k]);
  } else if (i.width == 1) {
    for (int k = 0; k < n; ++k) d[k] = C::get(p[k * s.lane_step]);
  } else {
    for (int l = 0; l < lanes; ++l)
      for (int v = 0; v < i.width; ++v) d[l * i.width + v] = C::get(p[l * s.lane_step + v * s.vector_step]);
  }
}

template <class C>
void store(Machine& m, const Instr& i) {
  using S = typename C::S;
  using R = typename C::R;
  const Access& x = m.program.accesses[size_t(i.aux)];
  int lanes = m.lanes_of(i), n = m.count(i);
  S* p = reinterpret_cast<S*>(m.program.buffers[size_t(x.buffer)].bytes);
  const R* a = m.reg<R>(i.a);
  int64_t step = i.a_step ? 1 : 0;
  Strided s;
  if (!resolve(m, x, lanes, i.width, s)) {
    for (int k = 0; k < n; ++k)
      if (m.addresses[size_t(k)] >= 0) p[m.addresses[size_t(k)]] = C::put(a[k * step]);
    return;
  }
  p += s.offset;
  if (s.mask) {
    for (int k = 0; k < n; ++k)
      if (s.mask[k]) p[k * s.lane_step] = C::put(a[k * step]);
  } else if (i.width == 1 && s.lane_step == 1 && step == 1) {
    for (int k = 0; k < n; ++k) p[k] = C::put(a[k]);
  } else if (i.width == 1) {
    for (int k = 0; k < n; ++k) p[k * s.lane_step] = C::put(a[k * step]);
  } else {
    for (int l = 0; l < lanes; ++l)
      for (int v = 0; v < i.width; ++v) p[l * s.lane_step + v * s.vector_step] = C::put(a[(l * i.width + v) * step]);
  }
}

// Joins the numbers of a register into elements, in order.
template <class C, class F>
void reduce_with(Machine& m, const Instr& i, F f) {
  using S = typename C::S;
  using R = typename C::R;
  const Access& x = m.program.accesses[size_t(i.aux)];
  int lanes = m.lanes_of(i), n = m.count(i);
  S* p = reinterpret_cast<S*>(m.program.buffers[size_t(x.buffer)].bytes);
  const R* a = m.reg<R>(i.a);
  int64_t step = i.a_step ? 1 : 0;
  auto join = [&](S& element, R v) { element = C::put(f(C::get(element), v)); };
  Strided s;
  if (!resolve(m, x, lanes, i.width, s)) {
    for (int k = 0; k < n; ++k)
      if (m.addresses[size_t(k)] >= 0) join(p[m.addresses[size_t(k)]], a[k * step]);
    return;
  }
  p += s.offset;
  if (s.mask) {
    for (int k = 0; k < n; ++k)
      if (s.mask[k]) join(p[k * s.lane_step], a[k * step]);
  } else if (i.width == 1 && s.lane_step == 0) {
    S element = *p;
    for (int k = 0; k < n; ++k) join(element, a[k * step]);
    *p = element;
  } else if (i.width == 1 && s.lane_step == 1 && step == 1) {
    for (int k = 0; k < n; ++k) join(p[k], a[k]);
  } else {
    for (int l = 0; l < lanes; ++l)
      for (int v = 0; v < i.width; ++v) join(p[l * s.lane_step + v * s.vector_step], a[(l * i.width + v) * step]);
  }
}

template <class C, Op op>
void reduce_store(Machine& m, const Instr& i) {
  using R = typename C::R;
  reduce_with<C>(m, i, [](R a, R b) { return scalar::binary<op, R>(a, b); });
}

template <class C>
Fn reduce_fn(Op op) {
  switch (op) {
    case Op::Add: return &reduce_store<C, Op::Add>;
    case Op::Sub: return &reduce_store<C, Op::Sub>;
    case Op::Mul: return &reduce_store<C, Op::Mul>;
    case Op::Min: return &reduce_store<C, Op::Min>;
    case Op::Max: return &reduce_store<C, Op::Max>;
    default: break;
  }
  if constexpr (!scalar::kFloat<typename C::R>) {
    switch (op) {
      case Op::And: return &reduce_store<C, Op::And>;
      case Op::Or: return &reduce_store<C, Op::Or>;
      case Op::BitAnd: return &reduce_store<C, Op::BitAnd>;
      case Op::BitOr: return &reduce_store<C, Op::BitOr>;
      case Op::BitXor: return &reduce_store<C, Op::BitXor>;
      default: break;
    }
  }
  return nullptr;
}

}  // namespace

bool resolve(Machine& m, const Access& x, int lanes, int width, Strided& out) {
  BufferSlot& s = m.program.buffers[size_t(x.buffer)];
  check(s.bytes != nullptr || s.elements == 0, "a buffer is used outside of its Alloc");
  bool masked = m.mask && lanes > 1;
  bool strided = x.affine && x.count < 0 && !s.tracked && s.sharing != Sharing::Warp;
  if (strided && !masked) {
    resolve_strided(m, s, x, 0, lanes - 1, width, out);
    return true;
  }
  if (strided && width == 1) {
    int first = 0, last = lanes - 1;
    while (!m.mask[first]) ++first;  // a mask has an active lane
    while (!m.mask[last]) --last;
    resolve_strided(m, s, x, first, last, 1, out);
    out.mask = m.mask;
    return true;
  }
  m.addresses.assign(size_t(lanes) * size_t(width), -1);
  for (int l = 0; l < lanes; ++l) {
    if (masked && !m.mask[l]) continue;
    int64_t count = x.count < 0 ? width : m.reg<int64_t>(x.count)[x.count_varying ? l : 0];
    for (int v = 0; v < width && v < count; ++v) {
      int64_t at = address(m, s, x, l, v, width);
      if (s.tracked) track(m, s, m.in_batch ? 0 : l, at, x.is_store);
      if (s.sharing == Sharing::Warp) {
        check(x.is_store || s.stored[size_t(at)] != 0,
              "an element of a warp's buffer \"" + printable(s.buffer->name) + "\" is read that no lane has stored");
        s.stored[size_t(at)] = 1;
      }
      m.addresses[size_t(l) * size_t(width) + size_t(v)] = at;
    }
  }
  return false;
}

Fn load_fn(DType t) {
  return with_element(t, []<class C>() -> Fn { return &load<C>; });
}
Fn store_fn(DType t) {
  return with_element(t, []<class C>() -> Fn { return &store<C>; });
}
Fn reduce_store_fn(DType t, Op op) {
  return with_element(t, [op]<class C>() -> Fn { return reduce_fn<C>(op); });
}

}  // namespace tc::interp
