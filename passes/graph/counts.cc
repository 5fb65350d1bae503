#include "passes/graph/counts.h"

#include <algorithm>
#include <numeric>

#include "ir/loop/linear.h"

namespace tc {
namespace {

void add_term(SizeForm& f, const std::vector<int>& ids, int64_t factor) {
  int64_t& sum = f.terms[ids];
  sum = checked_add(sum, factor);
  if (sum == 0) f.terms.erase(ids);
}

std::vector<int> merged(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> all;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

/// The last one by degree, then by ids: an order that products keep.
std::pair<std::vector<int>, int64_t> leading_term(const SizeForm& f) {
  const auto last = std::max_element(f.terms.begin(), f.terms.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.size(), a.first) < std::pair(b.first.size(), b.first);
  });
  return last == f.terms.end() ? std::pair(std::vector<int>(), f.addend) : std::pair(last->first, last->second);
}

}  // namespace

SizeForm operator+(const SizeForm& a, const SizeForm& b) {
  SizeForm r = a;
  r.addend = checked_add(a.addend, b.addend);
  for (const auto& [ids, factor] : b.terms) add_term(r, ids, factor);
  return r;
}

SizeForm operator-(const SizeForm& a, const SizeForm& b) { return a + b * -1; }

SizeForm operator*(const SizeForm& a, int64_t factor) {
  SizeForm r = fixed_size(checked_mul(a.addend, factor));
  if (factor == 0) return r;
  for (const auto& [ids, f] : a.terms) r.terms[ids] = checked_mul(f, factor);
  return r;
}

SizeForm operator*(const SizeForm& a, const SizeForm& b) {
  SizeForm r = a * b.addend;
  for (const auto& [ids, factor] : b.terms) {
    if (a.addend != 0) add_term(r, ids, checked_mul(a.addend, factor));
    for (const auto& [others, f] : a.terms) add_term(r, merged(ids, others), checked_mul(factor, f));
  }
  return r;
}

// a = q b: the leading terms, those of the highest degree, give a term of q; what is left goes on.
std::optional<SizeForm> exact_quotient(const SizeForm& a, const SizeForm& b) {
  if (b == fixed_size(0)) return std::nullopt;
  const auto [ids, factor] = leading_term(b);
  SizeForm q, rest = a;
  while (rest != fixed_size(0)) {
    const auto [from, f] = leading_term(rest);
    if (f % factor != 0 || !std::includes(from.begin(), from.end(), ids.begin(), ids.end())) return std::nullopt;
    std::vector<int> left;
    std::set_difference(from.begin(), from.end(), ids.begin(), ids.end(), std::back_inserter(left));
    SizeForm term;
    if (left.empty())
      term.addend = f / factor;
    else
      term.terms[left] = f / factor;
    rest = rest - term * b;
    q = q + term;
  }
  return q;
}

void Counts::add(Value* v, int64_t most, int64_t least) {
  if (!forms_.count(v->id) && counts_.try_emplace(v->id, Count{v, least, most}).second) new_.push_back(v);
}

std::optional<SizeForm> Counts::find(const Value* v) const {
  if (const auto it = forms_.find(v->id); it != forms_.end()) return it->second;
  if (!counts_.count(v->id)) return std::nullopt;
  return SizeForm{{{{v->id}, 1}}, 0};
}

void Counts::limit(const SizeForm& f, int64_t bound) {
  const auto [it, is_new] = limits_.try_emplace(f, bound);
  if (!is_new) it->second = std::min(it->second, bound);
}

int64_t Counts::end_of_atom(int id, bool upper) const {
  if (id >= 0) return upper ? counts_.at(id).most : counts_.at(id).least;
  const Quotient& q = quotients_.at(size_t(-1 - id));
  return floor_div_int(end_of(q.form, upper), q.divisor);
}

int64_t Counts::end_of(const SizeForm& f, bool upper) const {
  int64_t n = f.addend;
  for (const auto& [ids, factor] : f.terms) {
    int64_t product = factor;
    for (const int id : ids) product = checked_mul(product, end_of_atom(id, upper == (factor > 0)));
    n = checked_add(n, product);
  }
  const auto limit = upper ? limits_.find(f) : limits_.end();
  return limit == limits_.end() ? n : std::min(n, limit->second);
}

int64_t Counts::bound(const SizeForm& f) const { return end_of(f, true); }

int64_t Counts::least(const SizeForm& f) const { return end_of(f, false); }

// floor((5 h + 3) / 2) = 2 h + 1 + floor((h + 1) / 2), and floor((floor(h / 2) + 1) / 2) = floor((h + 2) / 4): what is left
// has one form for equal numbers, as far as that is easy to see.
SizeForm Counts::quotient(const SizeForm& a, int64_t n) {
  check(n > 0, "quotient: no divisor");
  SizeForm whole = fixed_size(floor_div_int(a.addend, n)), rest = fixed_size(a.addend - checked_mul(whole.addend, n));
  int64_t common = n;
  for (const auto& [ids, factor] : a.terms) {
    const int64_t q = floor_div_int(factor, n), r = factor - q * n;
    if (q != 0) whole.terms[ids] = q;
    if (r != 0) rest.terms[ids] = r;
    common = std::gcd(common, r);
  }
  if (rest.fixed()) return whole;
  for (auto& [ids, factor] : rest.terms) factor /= common;
  rest.addend /= common;
  n /= common;
  const auto& [ids, factor] = *rest.terms.begin();
  if (rest.terms.size() == 1 && factor == 1 && ids.size() == 1 && ids[0] < 0) {
    const Quotient inner = quotients_[size_t(-1 - ids[0])];
    return whole +
           quotient(inner.form + fixed_size(checked_mul(rest.addend, inner.divisor)), checked_mul(inner.divisor, n));
  }
  const auto twin = std::find_if(quotients_.begin(), quotients_.end(),
                                 [&](const Quotient& q) { return q.form == rest && q.divisor == n; });
  const int id = -1 - int(twin - quotients_.begin());
  if (twin == quotients_.end()) quotients_.push_back({rest, n, nullptr});
  add_term(whole, {id}, 1);
  return whole;
}

Value* Counts::value_of_atom(Graph& g, Node* before, int id, const ModelText& name) {
  if (id >= 0) return counts_.at(id).value;
  const auto at = size_t(-1 - id);
  if (quotients_[at].value) return quotients_[at].value;
  const Quotient q = quotients_[at];
  Value* form = value_of(g, before, q.form, derived(name, "_dividend"));
  Value* divisor = g.add_constant(derived(name, "_divisor"), make_constant(DType::I64, {}, &q.divisor));
  Value* value = add_op(g, before, "Div", {form, divisor}, derived(name, "_quotient"));
  quotients_[at].value = value;
  forms_[value->id] = SizeForm{{{{id}, 1}}, 0};
  new_.push_back(value);
  return value;
}

Value* Counts::value_of(Graph& g, Node* before, const SizeForm& f, const ModelText& name) {
  check(!f.fixed(), "value_of: a fixed size");
  if (f.addend == 0 && f.terms.size() == 1 && f.terms.begin()->second == 1 && f.terms.begin()->first.size() == 1)
    return value_of_atom(g, before, f.terms.begin()->first[0], name);
  if (const auto known = values_.find(f); known != values_.end()) return known->second;
  const auto number = [&](const std::string& suffix, int64_t n) {
    return g.add_constant(derived(name, suffix), make_constant(DType::I64, {}, &n));
  };
  Value* sum = nullptr;
  int64_t index = 0;
  for (const auto& [ids, factor] : f.terms) {
    const std::string part = to_text(index++);
    Value* term = nullptr;
    for (size_t k = 0; k < ids.size(); k++) {
      Value* atom = value_of_atom(g, before, ids[k], derived(name, "_atom" + part));
      term = term ? add_op(g, before, "Mul", {term, atom}, derived(name, "_product" + part)) : atom;
    }
    if (factor != 1)
      term = add_op(g, before, "Mul", {term, number("_factor" + part, factor)}, derived(name, "_times" + part));
    sum = sum ? add_op(g, before, "Add", {sum, term}, derived(name, "_sum" + part)) : term;
  }
  if (f.addend != 0) sum = add_op(g, before, "Add", {sum, number("_more", f.addend)}, derived(name, "_total"));
  values_[f] = sum;
  forms_[sum->id] = f;
  new_.push_back(sum);
  return sum;
}

}  // namespace tc
