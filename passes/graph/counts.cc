#include "passes/graph/counts.h"

#include <algorithm>
#include <numeric>

#include "ir/loop/linear.h"

namespace tc {
namespace {

/// How many choices of counts are tried for the ends of a form.
constexpr int64_t kMostChoices = 1 << 14;

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
  const Derived& d = derived_.at(size_t(-1 - id));
  const int64_t end = end_of(d.form, upper);
  if (d.kind == Derived::Kind::Quotient) return floor_div_int(end, d.divisor);
  const int64_t other = end_of(d.other, upper);
  return d.kind == Derived::Kind::Lesser ? std::min(end, other) : std::max(end, other);
}

int64_t Counts::end_of(const SizeForm& f, bool upper) const {
  int64_t n = f.addend;
  for (const auto& [ids, factor] : f.terms) {
    int64_t product = factor;
    for (const int id : ids) product = checked_mul(product, end_of_atom(id, upper == (factor > 0)));
    n = checked_add(n, product);
  }
  if (const auto tried = end_by_trying(f, upper)) n = upper ? std::min(n, *tried) : std::max(n, *tried);
  const auto limit = upper ? limits_.find(f) : limits_.end();
  return limit == limits_.end() ? n : std::min(n, limit->second);
}

void Counts::collect(const SizeForm& f, Parts& parts) const {
  for (const auto& [ids, factor] : f.terms) {
    parts.falls = parts.falls || factor < 0;
    for (const int id : ids) {
      if (id >= 0) {
        parts.counts.insert(id);
        continue;
      }
      parts.derived = true;
      collect(derived_.at(size_t(-1 - id)).form, parts);
      collect(derived_.at(size_t(-1 - id)).other, parts);
    }
  }
}

int64_t Counts::at_atom(int id, const std::map<int, int64_t>& counts) const {
  if (id >= 0) return counts.at(id);
  const Derived& d = derived_.at(size_t(-1 - id));
  const int64_t n = at(d.form, counts);
  if (d.kind == Derived::Kind::Quotient) return floor_div_int(n, d.divisor);
  const int64_t other = at(d.other, counts);
  return d.kind == Derived::Kind::Lesser ? std::min(n, other) : std::max(n, other);
}

int64_t Counts::at(const SizeForm& f, const std::map<int, int64_t>& counts) const {
  int64_t n = f.addend;
  for (const auto& [ids, factor] : f.terms) {
    int64_t product = factor;
    for (const int id : ids) product = checked_mul(product, at_atom(id, counts));
    n = checked_add(n, product);
  }
  return n;
}

// n - 4 floor(n / 4) is 3 at most, which the ends of its parts don't say.
std::optional<int64_t> Counts::end_by_trying(const SizeForm& f, bool upper) const {
  Parts parts;
  collect(f, parts);
  if (!parts.falls || !parts.derived || f.terms.size() < 2) return std::nullopt;
  if (const auto known = tried_.find({f, upper}); known != tried_.end()) return known->second;
  int64_t choices = 1;
  std::map<int, int64_t> counts;
  for (const int id : parts.counts) {
    const Count& c = counts_.at(id);
    if (c.most - c.least >= kMostChoices || (choices *= std::max<int64_t>(1, c.most - c.least + 1)) > kMostChoices)
      return std::nullopt;
    counts[id] = c.least;
  }
  int64_t end = at(f, counts);
  for (auto it = counts.begin(); it != counts.end();) {  // an odometer
    if (++it->second > counts_.at(it->first).most) {
      it->second = counts_.at(it->first).least;
      ++it;
      continue;
    }
    it = counts.begin();
    end = upper ? std::max(end, at(f, counts)) : std::min(end, at(f, counts));
  }
  return tried_[{f, upper}] = end;
}

std::optional<std::pair<const Value*, const Value*>> Counts::equal_if(const SizeForm& a, const SizeForm& b) const {
  const SizeForm d = a - b;
  if (d.addend != 0 || d.terms.size() != 2) return std::nullopt;
  const auto& [first, times] = *d.terms.begin();
  const auto& [second, other] = *d.terms.rbegin();
  if (times != -other || first.size() != 1 || second.size() != 1 || first[0] < 0 || second[0] < 0) return std::nullopt;
  return std::pair(counts_.at(first[0]).value, counts_.at(second[0]).value);
}

std::optional<Multiples> Counts::where_equal(const SizeForm& a, const SizeForm& b) const {
  Parts parts;
  collect(a, parts);
  collect(b, parts);
  if (parts.counts.size() != 1) return std::nullopt;
  const int id = *parts.counts.begin();
  const Count& c = counts_.at(id);
  const auto equal = [&](int64_t n) { return at(a, {{id, n}}) == at(b, {{id, n}}); };
  constexpr int64_t kMostFactor = 1024;
  constexpr int64_t kFewestTried =
      64;  // multiples: few of them meet by chance, as those of 30 do where 90 to 180 are halved twice
  for (int64_t factor = 2; factor < kMostFactor; factor++) {
    const int64_t least = floor_div_int(checked_add(c.least, factor - 1), factor), most = floor_div_int(c.most, factor);
    if (most - least >= kMostChoices) continue;
    bool all = least <= most;
    for (int64_t k = least; all && k <= std::max(most, least + kFewestTried); k++) all = equal(k * factor);
    if (all) return Multiples{c.value, factor, least, most};
  }
  return std::nullopt;
}

namespace {

/// The atom that a form is, if it is one.
std::optional<int> only_atom(const SizeForm& f) {
  const bool alone =
      f.addend == 0 && f.terms.size() == 1 && f.terms.begin()->second == 1 && f.terms.begin()->first.size() == 1;
  return alone ? std::optional(f.terms.begin()->first[0]) : std::nullopt;
}

}  // namespace

std::optional<int64_t> Counts::end_within(const SizeForm& f, const SizeForm& other) const {
  const auto atom = only_atom(f);
  if (!atom || *atom >= 0) return std::nullopt;
  const Derived& d = derived_[size_t(-1 - *atom)];
  if (d.kind != Derived::Kind::Lesser) return std::nullopt;
  const SizeForm& end = d.form == other ? d.other : d.form;
  return (d.form == other || d.other == other) && end.fixed() ? std::optional(end.addend) : std::nullopt;
}

const Value* Counts::only_count(const SizeForm& f) const {
  const auto atom = only_atom(f);
  return atom && *atom >= 0 ? counts_.at(*atom).value : nullptr;
}

int64_t Counts::bound(const SizeForm& f) const { return end_of(f, true); }

int64_t Counts::least(const SizeForm& f) const { return end_of(f, false); }

SizeForm Counts::simplest(const SizeForm& f) const {
  const int64_t most = f.fixed() ? f.addend : bound(f);
  return f.fixed() || least(f) != most ? f : fixed_size(most);
}

// floor((5 h + 3) / 2) = 2 h + 1 + floor((h + 1) / 2), and floor((floor(h / 2) + 1) / 2) = floor((h + 2) / 4): what is left
// has one form for equal numbers, as far as that is easy to see. floor(-h / 4) = -floor((h + 3) / 4), which is known by its ends.
SizeForm Counts::quotient(const SizeForm& a, int64_t n) {
  check(n > 0, "quotient: no divisor");
  SizeForm whole = fixed_size(floor_div_int(a.addend, n)), rest = fixed_size(a.addend - checked_mul(whole.addend, n));
  const bool falls = std::all_of(a.terms.begin(), a.terms.end(),
                                 [&](const auto& t) { return t.second % n <= 0 && -2 * (t.second % n) < n; });
  int64_t common = n;
  for (const auto& [ids, factor] : a.terms) {
    const int64_t q = falls ? factor / n : floor_div_int(factor, n), r = factor - q * n;
    if (q != 0) whole.terms[ids] = q;
    if (r != 0) rest.terms[ids] = r;
    common = std::gcd(common, r);
  }
  if (rest.fixed()) return whole;
  if (falls) return whole - quotient(rest * -1 + fixed_size(n - 1), n);
  for (auto& [ids, factor] : rest.terms) factor /= common;
  rest.addend /= common;
  n /= common;
  const auto& [ids, factor] = *rest.terms.begin();
  if (rest.terms.size() == 1 && factor == 1 && ids.size() == 1 && ids[0] < 0) {
    const Derived inner = derived_[size_t(-1 - ids[0])];
    if (inner.kind == Derived::Kind::Quotient)
      return whole +
             quotient(inner.form + fixed_size(checked_mul(rest.addend, inner.divisor)), checked_mul(inner.divisor, n));
  }
  return whole + derived_atom({Derived::Kind::Quotient, rest, n, {}, nullptr});
}

SizeForm Counts::derived_atom(const Derived& d) {
  const auto twin = std::find_if(derived_.begin(), derived_.end(), [&](const Derived& o) {
    return o.kind == d.kind && o.form == d.form && o.divisor == d.divisor && o.other == d.other;
  });
  const int id = -1 - int(twin - derived_.begin());
  if (twin == derived_.end()) derived_.push_back(d);
  return SizeForm{{{{id}, 1}}, 0};
}

SizeForm Counts::lesser(const SizeForm& a, const SizeForm& b) {
  if (least(b - a) >= 0) return a;
  if (least(a - b) >= 0) return b;
  check(least(a) >= 0 && least(b) >= 0, "lesser: a number that may be negative");
  return derived_atom({Derived::Kind::Lesser, std::min(a, b), 1, std::max(a, b), nullptr});
}

SizeForm Counts::larger(const SizeForm& a, const SizeForm& b) {
  if (least(a - b) >= 0) return a;
  if (least(b - a) >= 0) return b;
  check(least(a) >= 0 || least(b) >= 0, "larger: two numbers that may be negative");
  return derived_atom({Derived::Kind::Larger, std::min(a, b), 1, std::max(a, b), nullptr});
}

Value* Counts::value_of_atom(Graph& g, Node* before, int id, const ModelText& name) {
  if (id >= 0) return counts_.at(id).value;
  const auto at = size_t(-1 - id);
  if (derived_[at].value) return derived_[at].value;
  const Derived d = derived_[at];
  const auto part = [&](const SizeForm& f, const std::string& suffix) {
    return f.fixed() ? g.add_constant(derived(name, suffix), make_constant(DType::I64, {}, &f.addend))
                     : value_of(g, before, f, derived(name, suffix));
  };
  Value* form = part(d.form, "_dividend");
  Value* value =
      d.kind == Derived::Kind::Quotient
          ? add_op(g, before, "Div", {form, part(fixed_size(d.divisor), "_divisor")}, derived(name, "_quotient"))
          : add_op(g, before, d.kind == Derived::Kind::Lesser ? "Min" : "Max", {form, part(d.other, "_other")},
                   derived(name, "_end"));
  derived_[at].value = value;
  forms_[value->id] = SizeForm{{{{id}, 1}}, 0};
  new_.push_back(value);
  return value;
}

Value* Counts::value_of(Graph& g, Node* before, const SizeForm& f, const ModelText& name) {
  check(!f.fixed(), "value_of: a fixed size");
  if (const auto atom = only_atom(f)) return value_of_atom(g, before, *atom, name);
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
  check(sum != nullptr, "value_of: no terms");
  values_[f] = sum;
  forms_[sum->id] = f;
  new_.push_back(sum);
  return sum;
}

}  // namespace tc
