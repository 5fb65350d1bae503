#include "ir/loop/data.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"

namespace tc {

namespace {

constexpr int kMostBits = 62;  // of a number to which others may be added
constexpr int kSizeBits = 31;

int width(int64_t n) { return std::bit_width(uint64_t(n < 0 ? -(n + 1) : n)); }

bool has_variables(const Exprs& list) {
  bool found = false;
  for (const Expr& e : list) walk(e, [&](const Expr& x) { return !(found = found || as<VarRef>(x)); });
  return found;
}

/// max(min(n, most), least), where n is one number in memory and both limits are 0 or more and have 31 bits, or are what stands for a
/// size without an upper bound: how many there are of something. Products of such a number and sizes do not wrap; those of a tensor's elements may, however they are bounded.
/// Its bits; nothing if it is none.
std::optional<int> count_bits(const Expr& e) {
  const auto limit = [](const Apply* k) {
    const auto n = k ? as_const_int(k->args[1]) : std::nullopt;
    return n && *n >= 0 && (*n <= std::numeric_limits<int32_t>::max() || *n == kOpenSize) ? n : std::nullopt;
  };
  const Apply* a = as<Apply>(e);
  const Apply* inner = a && a->op == Op::Max ? as<Apply>(a->args[0]) : nullptr;
  const Load* n = inner && inner->op == Op::Min ? as<Load>(inner->args[0]) : nullptr;
  if (!n || !limit(a) || !limit(inner) || has_variables(n->index)) return std::nullopt;
  return std::max(1, width(std::max(*limit(a), *limit(inner))));
}

/// A number of at most 32 bits, in memory that the kernel has for itself: its bits; nothing if it is none.
std::optional<int> own_bits(const Expr& e) {
  const Cast* c = e->dtype == DType::I64 ? as<Cast>(e) : nullptr;
  const Load* n = c ? as<Load>(c->value) : nullptr;
  if (!n || n->buffer->scope != Scope::Workspace || !is_int(n->buffer->dtype) || info(n->buffer->dtype).bits > 32)
    return std::nullopt;
  return info(n->buffer->dtype).bits;
}

/// How many bits of an expression come from memory; 0: none. What loop variables and sizes add is a place in memory.
class DataBits {
 public:
  explicit DataBits(const DataVars& vars) : vars_(vars) {}

  int of(const Expr& e) const {
    if (const VarRef* v = as<VarRef>(e)) {
      if (e->dtype != DType::I64 && e->dtype != DType::Bool) return kAnyBits;
      const auto known = vars_.bits.find(v->var.get());
      return known == vars_.bits.end() ? 0 : known->second;
    }
    if (const Load* l = as<Load>(e)) return vars_.sizes.contains(l->buffer.get()) ? kSizeBits : kAnyBits;
    if (const Apply* a = as<Apply>(e)) return a->op == Op::Index ? 0 : applied(*a);
    int most = 0;  // of what it is made of
    walk(e, [&](const Expr& x) {
      if (x.same_as(e)) return true;
      most = std::max(most, of(x));
      return false;
    });
    return most;
  }

 private:
  int applied(const Apply& a) const {
    int most = 0, sum = 0, widest = 0;
    for (const Expr& x : a.args) {
      const auto n = as_const_int(x);
      const int bits = of(x), all = n ? width(*n) : bits;
      most = std::max(most, bits), widest = std::max(widest, all), sum += all;
    }
    if (most == 0 || most > kMostBits) return most;
    if (a.op == Op::Add || a.op == Op::Sub || a.op == Op::Neg) return widest + 1;
    if (a.op == Op::Mul) return sum;
    if (a.op == Op::Shl || a.op == Op::Pow) return kAnyBits;
    return widest;
  }

  const DataVars& vars_;
};

}  // namespace

bool holds_data(const Expr& e, const DataVars& vars) { return DataBits(vars).of(e) > kMostBits; }

void note_name(DataVars& vars, const Var& name, const Expr& value) {
  const int bits = count_bits(value).value_or(own_bits(value).value_or(DataBits(vars).of(value)));
  if (bits > 0) vars.bits[name.get()] = bits;
}

DataVars data_vars(const Stmt& s) {
  DataVars vars;
  walk(s, [&](const Stmt& x) {
    if (const Let* k = as<Let>(x)) note_name(vars, k->var, k->value);
    return true;
  });
  return vars;
}

}  // namespace tc
