// Arithmetic over batches. Compiled with more optimisation than the rest: these loops are the interpreter's time.
#include <cstring>

#include "ir/interpreter/machine.h"
#include "ir/interpreter/scalar.h"
#include "ir/interpreter/strings.h"

namespace tc::interp {
namespace {

template <class R, class T, class F>
void binary_batch(Machine& m, const Instr& i, F f) {
  int n = m.count(i);
  R* __restrict d = m.reg<R>(i.dst);
  const T *a = m.reg<T>(i.a), *b = m.reg<T>(i.b);
  if (i.a_step && i.b_step) {
    for (int k = 0; k < n; ++k) d[k] = R(f(a[k], b[k]));
  } else if (i.b_step) {
    const T x = *a;
    for (int k = 0; k < n; ++k) d[k] = R(f(x, b[k]));
  } else if (i.a_step) {
    const T y = *b;
    for (int k = 0; k < n; ++k) d[k] = R(f(a[k], y));
  } else {
    const R r = R(f(*a, *b));
    for (int k = 0; k < n; ++k) d[k] = r;
  }
}

template <class R, class T, class F>
void unary_batch(Machine& m, const Instr& i, F f) {
  int n = m.count(i);
  R* __restrict d = m.reg<R>(i.dst);
  const T* a = m.reg<T>(i.a);
  for (int k = 0; k < n; ++k) d[k] = R(f(a[k]));
}

template <Op op, class T>
void unary(Machine& m, const Instr& i) {
  unary_batch<T, T>(m, i, [](T a) { return scalar::unary<op, T>(a); });
}
template <Op op, class T>
void binary(Machine& m, const Instr& i) {
  binary_batch<T, T>(m, i, [](T a, T b) { return scalar::binary<op, T>(a, b); });
}
template <Op op, class T>
void compare(Machine& m, const Instr& i) {
  binary_batch<int64_t, T>(m, i, [](T a, T b) { return scalar::compare<op, T>(a, b); });
}
template <Op op, class T>
void shift(Machine& m, const Instr& i) {
  int n = m.count(i);
  for (int k = 0; k < n; ++k) {
    T a = m.reg<T>(i.a)[i.a_step ? k : 0];
    m.reg<T>(i.dst)[k] = scalar::shift<op, T>(a, m.reg<int64_t>(i.b)[i.b_step ? k : 0], i.aux);
  }
}
template <class T>
void isnan(Machine& m, const Instr& i) {
  unary_batch<int64_t, T>(m, i, [](T a) { return a != a; });
}
template <class T>
void isinf(Machine& m, const Instr& i) {
  unary_batch<int64_t, T>(m, i, [](T a) { return std::isinf(a); });
}

// Lane l joins with lane l + width / 2, then l + width / 4 ...; an odd middle lane waits.
template <Op op, class T>
void lane_reduce(Machine& m, const Instr& i) {
  int lanes = m.lanes_of(i), width = i.width;
  m.steps += int64_t(lanes) * width;
  std::vector<T> t(static_cast<size_t>(width));
  for (int l = 0; l < lanes; ++l) {
    const T* a = m.reg<T>(i.a) + l * width;
    std::copy(a, a + width, t.begin());
    for (int n = width; n > 1; n = (n + 1) / 2) {
      int half = (n + 1) / 2;
      for (int k = 0; k + half < n; ++k) t[size_t(k)] = scalar::binary<op, T>(t[size_t(k)], t[size_t(k + half)]);
    }
    m.reg<T>(i.dst)[l] = t[0];
  }
}

// The function for `op` among `ops`, made by K<op, T>.
#define TC_PICK(name, maker)                                   \
  template <class T, Op... ops>                                \
  Fn name(Op op) {                                             \
    Fn r = nullptr;                                            \
    ((op == ops ? (r = &maker<ops, T>, true) : false) || ...); \
    return r;                                                  \
  }
TC_PICK(pick_unary, unary)
TC_PICK(pick_binary, binary)
TC_PICK(pick_compare, compare)
TC_PICK(pick_reduce, lane_reduce)
#undef TC_PICK

template <class T>
Fn unary_of(Op op) {
  using enum Op;
  if (Fn f = pick_unary<T, Neg, Abs, Sign, Ceil, Floor, Round, Trunc>(op)) return f;
  if constexpr (scalar::kFloat<T>) {
    if (Fn f = pick_unary<T, Sqrt, Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan>(op)) return f;
    return pick_unary<T, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Erf, Sigmoid>(op);
  } else {
    return pick_unary<T, Not, BitNot>(op);
  }
}

template <class T>
Fn binary_of(Op op) {
  using enum Op;
  if (Fn f = pick_binary<T, Add, Sub, Mul, Div, FloorDiv, Mod, FloorMod, Min, Max, Pow>(op)) return f;
  if constexpr (scalar::kFloat<T>)
    return pick_binary<T, Atan2, Quotient>(op);
  else
    return pick_binary<T, BitAnd, BitOr, BitXor, And, Or>(op);
}

template <class T>
Fn compare_of(Op op) {
  using enum Op;
  return pick_compare<T, Eq, Ne, Lt, Le, Gt, Ge>(op);
}

template <class T>
Fn reduce_of(Op op) {
  if (op == Op::ReduceAdd) return &lane_reduce<Op::Add, T>;
  return op == Op::ReduceMax ? &lane_reduce<Op::Max, T> : &lane_reduce<Op::Min, T>;
}

template <class T>
void select(Machine& m, const Instr& i) {
  int n = m.count(i);
  const int64_t* c = m.reg<int64_t>(i.a);
  const T *yes = m.reg<T>(i.b), *no = m.reg<T>(i.c);
  T* __restrict d = m.reg<T>(i.dst);
  // aux: which operands step, bit 0 yes, bit 1 no
  bool sy = i.aux & 1, sn = i.aux & 2;
  for (int k = 0; k < n; ++k) d[k] = c[i.a_step ? k : 0] ? yes[sy ? k : 0] : no[sn ? k : 0];
}

template <class T>
void move(Machine& m, const Instr& i) {
  int n = m.count(i);
  if (i.a_step)
    std::memmove(m.reg<T>(i.dst), m.reg<T>(i.a), size_t(n) * sizeof(T));
  else
    std::fill_n(m.reg<T>(i.dst), n, *m.reg<T>(i.a));
}

}  // namespace

Class class_of(DType t) {
  if (t == DType::F64) return Class::D;
  if (is_float(t)) return Class::F;
  check(t != DType::Undefined && !is_complex(t), "the interpreter has no values of this type");
  return t == DType::U64 ? Class::U : Class::I;
}

#define TC_BY_CLASS(f)                     \
  switch (c) {                             \
    case Class::F: return f<float>(op);    \
    case Class::D: return f<double>(op);   \
    case Class::I: return f<int64_t>(op);  \
    case Class::U: return f<uint64_t>(op); \
  }                                        \
  return nullptr
Fn unary_fn(Op op, Class c) { TC_BY_CLASS(unary_of); }
Fn binary_fn(Op op, Class c) { TC_BY_CLASS(binary_of); }
Fn compare_fn(Op op, Class c) { TC_BY_CLASS(compare_of); }
Fn lane_reduce_fn(Op op, Class c) { TC_BY_CLASS(reduce_of); }
#undef TC_BY_CLASS

namespace {
template <class F>
void compare_strings(Machine& m, const Instr& i, F f) {
  const int n = m.count(i);
  const int64_t *a = m.reg<int64_t>(i.a), *b = m.reg<int64_t>(i.b);
  for (int k = 0; k < n; ++k)
    m.reg<int64_t>(i.dst)[k] = f(StringPool::text(a[i.a_step ? k : 0]).compare(StringPool::text(b[i.b_step ? k : 0])));
}
}  // namespace

// Strings are ordered by their bytes; std::string compares bytes without a sign.
Fn string_compare_fn(Op op) {
  switch (op) {
    case Op::Lt: return [](Machine& m, const Instr& i) { compare_strings(m, i, [](int c) { return c < 0; }); };
    case Op::Le: return [](Machine& m, const Instr& i) { compare_strings(m, i, [](int c) { return c <= 0; }); };
    case Op::Gt: return [](Machine& m, const Instr& i) { compare_strings(m, i, [](int c) { return c > 0; }); };
    case Op::Ge: return [](Machine& m, const Instr& i) { compare_strings(m, i, [](int c) { return c >= 0; }); };
    default: return compare_fn(op, Class::I);  // equal strings have equal handles
  }
}

Fn shift_fn(Op op, Class c) {
  if (c == Class::U) return op == Op::Shl ? &shift<Op::Shl, uint64_t> : &shift<Op::Shr, uint64_t>;
  return op == Op::Shl ? &shift<Op::Shl, int64_t> : &shift<Op::Shr, int64_t>;
}

Fn test_fn(Op op, Class c) {
  if (c == Class::F) return op == Op::IsNan ? &isnan<float> : &isinf<float>;
  return op == Op::IsNan ? &isnan<double> : &isinf<double>;
}

namespace {
template <class T>
void merge(Machine& m, const Instr& i) {
  int lanes = m.lanes_of(i);
  m.steps += int64_t(lanes) * i.width;
  for (int l = 0; l < lanes; ++l) {
    if (!m.active(l)) continue;
    for (int v = l * i.width; v < (l + 1) * i.width; ++v) m.reg<T>(i.dst)[v] = m.reg<T>(i.a)[v];
  }
}
}  // namespace
Fn merge_fn(int bytes) { return bytes == 4 ? &merge<uint32_t> : &merge<uint64_t>; }

void set_constant(Machine& m, const Instr& i) {
  if (i.aux == 4)
    *m.reg<int32_t>(i.dst) = i.a;
  else
    *m.reg<int64_t>(i.dst) = int64_t(uint64_t(uint32_t(i.a)) | uint64_t(uint32_t(i.b)) << 32);
}

Fn select_fn(int bytes) { return bytes == 4 ? &select<uint32_t> : &select<uint64_t>; }
Fn move_fn(int bytes) { return bytes == 4 ? &move<uint32_t> : &move<uint64_t>; }

void wrap_ints(Machine& m, const Instr& i) {
  int n = m.count(i);
  int64_t* d = m.reg<int64_t>(i.dst);
  DType t = DType(i.aux);
  auto all = [&](auto narrow) {
    for (int k = 0; k < n; ++k) d[k] = decltype(narrow)(d[k]);
  };
  switch (t) {
    case DType::I8: return all(int8_t());
    case DType::U8: return all(uint8_t());
    case DType::I16: return all(int16_t());
    case DType::U16: return all(uint16_t());
    case DType::I32: return all(int32_t());
    case DType::U32: return all(uint32_t());
    default:
      for (int k = 0; k < n; ++k) d[k] = wrap_int(t, d[k]);
  }
}

void index_op(Machine& m, const Instr& i) {
  int n = m.count(i);
  for (int k = 0; k < n; ++k) {
    int64_t v = m.reg<int64_t>(i.a)[i.a_step ? k : 0], size = m.reg<int64_t>(i.b)[i.b_step ? k : 0];
    if (v < 0) v += size;
    bool ok = v >= 0 && v < size;
    if (!ok && (!i.varying || m.active(k / i.width))) m.status = 1;
    m.reg<int64_t>(i.dst)[k] = ok ? v : 0;
  }
}

void eval_line(Machine& m, const Instr& i) {
  ++m.steps;
  *m.reg<int64_t>(i.dst) = m.eval(m.program.lines[size_t(i.aux)]);
}

// dst[lane] = line(aux) + lane * line(b).constant
void line_lanes(Machine& m, const Instr& i) {
  int n = m.count(i);
  int64_t base = m.eval(m.program.lines[size_t(i.aux)]), step = m.program.lines[size_t(i.b)].constant;
  int64_t* d = m.reg<int64_t>(i.dst);
  for (int k = 0; k < n; ++k) d[k] = base + k * step;
}

namespace {
template <class T, class F>
void by_lane(Machine& m, const Instr& i, F f) {
  int lanes = m.lanes_of(i);
  m.steps += int64_t(lanes) * i.width;
  for (int l = 0; l < lanes; ++l)
    for (int v = 0; v < i.width; ++v) m.reg<T>(i.dst)[l * i.width + v] = f(l, v);
}
}  // namespace

void spread(Machine& m, const Instr& i) {
  auto f = [&]<class T>(T) {
    const T* a = m.reg<T>(i.a);
    by_lane<T>(m, i, [&](int l, int) { return a[i.a_step ? l : 0]; });
  };
  i.aux == 4 ? f(uint32_t()) : f(uint64_t());
}

void tile(Machine& m, const Instr& i) {
  auto f = [&]<class T>(T) {
    const T* a = m.reg<T>(i.a);
    by_lane<T>(m, i, [&](int, int v) { return a[v]; });
  };
  i.aux == 4 ? f(uint32_t()) : f(uint64_t());
}

void ramp(Machine& m, const Instr& i) {
  const int64_t* a = m.reg<int64_t>(i.a);
  by_lane<int64_t>(m, i, [&](int l, int v) { return a[i.a_step ? l : 0] + v; });
}

void keep_first(Machine& m, const Instr& i) {
  auto f = [&]<class T>(T) {
    const T* a = m.reg<T>(i.a);
    const int64_t* n = m.reg<int64_t>(i.b);
    by_lane<T>(m, i, [&](int l, int v) { return v < n[i.b_step ? l : 0] ? a[l * i.width + v] : T(0); });
  };
  i.aux == 4 ? f(uint32_t()) : f(uint64_t());
}

}  // namespace tc::interp
