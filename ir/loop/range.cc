// Intervals of integer expressions. The ends of int64 are "not bounded" and stay so under arithmetic.
#include <algorithm>
#include <bit>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/op_rules.h"

namespace tc {
namespace {

constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;
constexpr int64_t kMaxLanes = 64;                // of a scalable vector, at most
constexpr int64_t kMaxTrips = int64_t(1) << 48;  // no loop counts further: memory has no more elements
bool infinite(int64_t v) { return v == kMin || v == kMax; }

int64_t sat_add(int64_t a, int64_t b) {
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? (a > 0 ? kMax : kMin) : r;
}

int64_t sat_mul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t r;
  bool negative = (a < 0) != (b < 0);
  if (infinite(a) || infinite(b) || __builtin_mul_overflow(a, b, &r)) return negative ? kMin : kMax;
  return r;
}

Range type_range(DType t) {
  if (t == DType::Bool) return {0, 1};
  const DTypeInfo& i = info(t);
  if (i.bits >= 64 || i.is_float || t == DType::Undefined || t == DType::String || i.bits == 0) return kAnything;
  if (i.is_unsigned_int) return {0, (int64_t(1) << i.bits) - 1};
  return {-(int64_t(1) << (i.bits - 1)), (int64_t(1) << (i.bits - 1)) - 1};
}

// A result computed without wrapping, seen through a type that may wrap.
Range fit(DType t, Range r) {
  if (t == DType::U64) return r.min >= 0 && bounded(r) ? r : kAnything;
  Range all = type_range(t);
  return r.min < all.min || r.max > all.max ? all : r;
}

bool nonnegative(const Range& r) { return r.min >= 0; }
bool positive(const Range& r) { return r.min > 0; }

Range divide(const Range& a, const Range& b, bool floors) {
  if (!positive(b)) return kAnything;
  auto q = [&](int64_t x, int64_t y) {
    if (infinite(x)) return x;
    if (infinite(y)) return x < 0 && floors ? int64_t(-1) : int64_t(0);
    return floors ? floor_div_int(x, y) : x / y;
  };
  return {std::min(q(a.min, b.min), q(a.min, b.max)), std::max(q(a.max, b.min), q(a.max, b.max))};
}

Range modulo(const Range& a, const Range& b, bool floors) {
  if (!positive(b)) return kAnything;
  if (nonnegative(a) && a.max < b.min) return a;
  int64_t top = infinite(b.max) ? kMax : b.max - 1;
  if (nonnegative(a)) return {0, std::min(a.max, top)};
  return floors ? Range{0, top} : Range{infinite(top) ? kMin : -top, top};
}

Range shift_left(const Range& a, const Range& b) {
  if (b.min < 0 || b.max > 62) return kAnything;
  return a * Range{int64_t(1) << b.min, int64_t(1) << b.max};
}

// Nonnegative, and of no more bits than `most`.
Range same_bits(int64_t most) { return {0, infinite(most) ? kMax : int64_t(std::bit_ceil(uint64_t(most) + 1) - 1)}; }

bool may_leave_64_bits(Op op) {
  return op == Op::Add || op == Op::Sub || op == Op::Mul || op == Op::Neg || op == Op::Abs || op == Op::Shl;
}

class Intervals {
 public:
  Intervals(const Ranges& ranges, bool wraps) : ranges_(ranges), wraps_(wraps) {}

  Range of(const Expr& e) const {
    if (!e || is_float(e->dtype)) return kAnything;
    return visit(
        e,
        [&](const IntImm& i) {
          const Range r{i.value, i.value};
          return e->dtype == DType::U64 ? fit(DType::U64, r) : r;
        },
        [&](const FloatImm&) { return kAnything; },
        [&](const VarRef& v) {
          auto it = ranges_.find(v.var.get());
          return it == ranges_.end() ? type_range(e->dtype) : it->second;
        },
        [&](const Apply& a) {
          const Range r = fit(e->dtype, apply(e, a));
          return wraps_ && e->dtype == DType::I64 && may_leave_64_bits(a.op) && !bounded(r) ? kAnything : r;
        },
        [&](const Select& s) { return join(of(s.yes), of(s.no)); },
        [&](const Cast& c) { return is_float(c.value->dtype) ? type_range(e->dtype) : fit(e->dtype, of(c.value)); },
        [&](const Bitcast&) { return type_range(e->dtype); }, [&](const Load&) { return type_range(e->dtype); },
        [&](const Ramp& r) {
          return of(r.base) + Range{0, kMaxLanes - 1};
        },
        [&](const Broadcast& b) { return of(b.value); },
        [&](const Lanes&) {
          return Range{1, kMaxLanes};
        },
        [&](const Partial& p) {
          return join(of(p.value), {0, 0});
        });
  }

 private:
  Range apply(const Expr& e, const Apply& a) const {
    if (info(a.op).compares) return {0, 1};
    Range x = of(a.args[0]), y = a.args.size() > 1 ? of(a.args[1]) : Range{0, 0};
    switch (a.op) {
      case Op::Neg: return Range{-1, -1} * x;
      case Op::Abs: return nonnegative(x) ? x : Range{0, std::max(sat_mul(x.min, -1), x.max)};
      case Op::Sign: return {-1, 1};
      case Op::Not:
      case Op::And:
      case Op::Or:
      case Op::IsNan:
      case Op::IsInf: return {0, 1};
      case Op::Add: return x + y;
      case Op::Sub: return x + Range{-1, -1} * y;
      case Op::Mul: return x * y;
      case Op::Div: return divide(x, y, false);
      case Op::FloorDiv: return divide(x, y, true);
      case Op::Mod: return modulo(x, y, false);
      case Op::FloorMod: return modulo(x, y, true);
      case Op::Min: return {std::min(x.min, y.min), std::min(x.max, y.max)};
      case Op::Max: return {std::max(x.min, y.min), std::max(x.max, y.max)};
      case Op::BitAnd: return nonnegative(x) && nonnegative(y) ? Range{0, std::min(x.max, y.max)} : kAnything;
      case Op::BitOr:
      case Op::BitXor: return nonnegative(x) && nonnegative(y) ? same_bits(std::max(x.max, y.max)) : kAnything;
      case Op::Shl: return shift_left(x, y);
      case Op::Shr: return nonnegative(x) ? Range{0, x.max} : kAnything;
      case Op::Index: {  // one that is out of range is 0
        const int64_t last = infinite(y.max) ? kMax : std::max<int64_t>(0, y.max - 1);
        return {0, x.min >= 0 ? std::min(last, std::max<int64_t>(0, x.max)) : last};
      }
      case Op::ReduceMax:
      case Op::ReduceMin:
      case Op::Round:
      case Op::Floor:
      case Op::Ceil:
      case Op::Trunc: return x;
      default: return type_range(e->dtype);
    }
  }

  const Ranges& ranges_;
  const bool wraps_;
};

Range sum_of(const Linear& l, const Intervals& atoms) {
  Range sum{l.constant, l.constant};
  for (const Linear::Term& t : l.terms) {
    Range r = atoms.of(t.atom) * Range{t.coefficient, t.coefficient};
    if (infinite(sum.min) || infinite(r.min)) sum.min = r.min = kMin;
    if (infinite(sum.max) || infinite(r.max)) sum.max = r.max = kMax;
    sum = sum + r;
  }
  return sum;
}

void narrow(Ranges& ranges, const Var& v, Range by) {
  auto it = ranges.find(v.get());
  Range old = it == ranges.end() ? type_range(v->dtype) : it->second;
  Range r{std::max(old.min, by.min), std::min(old.max, by.max)};
  if (r.min <= r.max) ranges[v.get()] = r;  // an empty range is dead code, which nobody runs
}

// coefficient * v + constant <op> 0
void assume_term(Ranges& ranges, const Var& v, int64_t c, int64_t constant, Op op) {
  if (infinite(constant) || c == kMin) return;
  if (c < 0) {
    c = -c, constant = -constant;
    op = mirrored(op);
  }
  int64_t below = floor_div_int(-constant, c),
          above = -floor_div_int(constant, c);  // floor and ceiling of -constant / c
  if (op == Op::Lt) narrow(ranges, v, {kMin, above - 1});
  if (op == Op::Le) narrow(ranges, v, {kMin, below});
  if (op == Op::Gt) narrow(ranges, v, {below + 1, kMax});
  if (op == Op::Ge) narrow(ranges, v, {above, kMax});
  if (op == Op::Eq) narrow(ranges, v, {above, below});
}

}  // namespace

Range operator+(const Range& a, const Range& b) { return {sat_add(a.min, b.min), sat_add(a.max, b.max)}; }

Range operator*(const Range& a, const Range& b) {
  int64_t p[] = {sat_mul(a.min, b.min), sat_mul(a.min, b.max), sat_mul(a.max, b.min), sat_mul(a.max, b.max)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

Range join(const Range& a, const Range& b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

Range interval(const Expr& e, const Ranges& ranges) {
  if (e.get() && e->dtype == DType::I64 && !e->vector) return interval(linear_form(e), ranges);
  return Intervals(ranges, false).of(e);
}

Range interval(const Linear& l, const Ranges& ranges) { return sum_of(l, Intervals(ranges, false)); }

Range value_interval(const Expr& e, const Ranges& ranges) {
  const Intervals all(ranges, true);
  if (!e || e->dtype != DType::I64 || e->vector) return all.of(e);
  const Linear l = linear_form(e);
  const Range r = sum_of(l, all);
  const bool is_term = l.terms.size() == 1 && l.terms[0].coefficient == 1 && l.constant == 0;
  return bounded(r) || is_term ? r : kAnything;
}

std::optional<Range> range_of(const Expr& e, const Ranges& ranges) {
  Range r = value_interval(e, ranges);
  if (r.min == kMin && r.max == kMax) return std::nullopt;
  return r;
}

void assume(Ranges& ranges, const Expr& condition, bool holds) {
  auto* a = as<Apply>(condition);
  if (!a || condition->vector) return;
  if (a->op == Op::Not) return assume(ranges, a->args[0], !holds);
  if (a->op == (holds ? Op::And : Op::Or)) {
    assume(ranges, a->args[0], holds);
    return assume(ranges, a->args[1], holds);
  }
  if (!info(a->op).compares || a->args.size() != 2 || a->args[0]->dtype != DType::I64) return;
  Linear difference = linear_form(a->args[0]);
  difference.add(linear_form(a->args[1]), -1);
  if (difference.terms.size() != 1) return;
  if (auto* v = as<VarRef>(difference.terms[0].atom)) {
    Op op = holds ? a->op : opposite(a->op);
    assume_term(ranges, v->var, difference.terms[0].coefficient, difference.constant, op);
  }
}

Range loop_range(const For& f, const Ranges& ranges) {
  Range begin = interval(f.begin, ranges), extent = interval(f.extent, ranges);
  int64_t trips = std::min(extent.max, kMaxTrips);
  return begin + Range{0, std::max<int64_t>(0, trips - 1)};
}

}  // namespace tc
