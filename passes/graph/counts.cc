#include "passes/graph/counts.h"

#include <algorithm>

namespace tc {

SizeForm operator+(const SizeForm& a, const SizeForm& b) {
  SizeForm r = a;
  r.addend = checked_add(a.addend, b.addend);
  for (const auto& [id, factor] : b.factors)
    if ((r.factors[id] = checked_add(r.factors[id], factor)) == 0) r.factors.erase(id);
  return r;
}

SizeForm operator*(const SizeForm& a, int64_t factor) {
  SizeForm r = fixed_size(checked_mul(a.addend, factor));
  if (factor == 0) return r;
  for (const auto& [id, f] : a.factors) r.factors[id] = checked_mul(f, factor);
  return r;
}

bool never_negative(const SizeForm& a) {
  return a.addend >= 0 && std::all_of(a.factors.begin(), a.factors.end(), [](const auto& f) { return f.second > 0; });
}

std::optional<SizeForm> product(const SizeForm& a, const SizeForm& b) {
  if (!a.fixed() && !b.fixed()) return std::nullopt;
  return a.fixed() ? b * a.addend : a * b.addend;
}

std::optional<SizeForm> quotient(const SizeForm& a, int64_t n) {
  if (n <= 0 || a.addend % n != 0) return std::nullopt;
  SizeForm r = fixed_size(a.addend / n);
  for (const auto& [id, f] : a.factors) {
    if (f % n != 0) return std::nullopt;
    r.factors[id] = f / n;
  }
  return r;
}

void Counts::add(Value* v, int64_t bound) {
  if (!forms_.count(v->id)) counts_.try_emplace(v->id, Count{v, bound});
}

std::optional<SizeForm> Counts::find(const Value* v) const {
  if (const auto it = forms_.find(v->id); it != forms_.end()) return it->second;
  if (!counts_.count(v->id)) return std::nullopt;
  return SizeForm{{{v->id, 1}}, 0};
}

void Counts::limit(const SizeForm& f, int64_t bound) {
  const auto [it, is_new] = limits_.try_emplace({f.factors, f.addend}, bound);
  if (!is_new) it->second = std::min(it->second, bound);
}

int64_t Counts::bound(const SizeForm& f) const {
  int64_t n = f.addend;
  for (const auto& [id, factor] : f.factors)
    if (factor > 0) n = checked_add(n, checked_mul(factor, counts_.at(id).bound));
  const auto limit = limits_.find({f.factors, f.addend});
  return limit == limits_.end() ? n : std::min(n, limit->second);
}

Value* Counts::value_of(Graph& g, Node* before, const SizeForm& f, const ModelText& name) {
  check(!f.fixed(), "value_of: a fixed size");
  if (f.addend == 0 && f.factors.size() == 1 && f.factors.begin()->second == 1)
    return counts_.at(f.factors.begin()->first).value;
  Value*& known = values_[{f.factors, f.addend}];
  if (known) return known;
  const auto number = [&](const std::string& suffix, int64_t n) {
    return g.add_constant(derived(name, suffix), make_constant(DType::I64, {}, &n));
  };
  Value* sum = nullptr;
  int64_t index = 0;
  for (const auto& [id, factor] : f.factors) {
    Value* term = counts_.at(id).value;
    const std::string part = to_text(index++);
    if (factor != 1)
      term = add_op(g, before, "Mul", {term, number("_factor" + part, factor)}, derived(name, "_times" + part));
    sum = sum ? add_op(g, before, "Add", {sum, term}, derived(name, "_sum" + part)) : term;
  }
  if (f.addend != 0) sum = add_op(g, before, "Add", {sum, number("_more", f.addend)}, derived(name, "_total"));
  known = sum;
  forms_[sum->id] = f;
  return sum;
}

}  // namespace tc
