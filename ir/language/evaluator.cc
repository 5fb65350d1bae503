#include "ir/language/evaluator.h"

#include <algorithm>
#include <limits>

#include "ir/language/constants.h"
#include "ir/loop/build.h"
#include "ir/loop/operand_mismatch.h"
#include "support/text.h"

namespace tc::language {
namespace {

// What builders of expressions refuse is the formula's fault.
template <class F>
Expr build(const Place& at, F&& f) {
  try {
    return f();
  } catch (const OperandMismatch& e) {
    fail(at, e.what());
  }
}

bool is_zero(const Meaning& m) {
  const int64_t* i = std::get_if<int64_t>(&m);
  return i && *i == 0;
}

void need_arguments(const Formula& f, size_t n) {
  if (f.args.size() == n) return;
  fail(f.at, f.word + " takes " + tc::to_text(int64_t(n)) + " argument" + (n == 1 ? "" : "s") + ", not " +
                 tc::to_text(int64_t(f.args.size())));
}

}  // namespace

void fail(const Place& at, std::string message) { throw FormulaError{{at, std::move(message)}}; }

std::string kind_of(const Meaning& m) {
  static constexpr const char* kNames[] = {"", "an integer", "a number", "a truth value", "a text", "a list", "a list"};
  if (const Expr* e = std::get_if<Expr>(&m)) return std::string(info((*e)->dtype).name);
  return kNames[m.index()];
}

std::optional<DType> element_type_of(const std::string& name, Mode mode) {
  for (int k = 1; k <= int(DType::I2); k++) {
    const DType t = DType(k);
    if (info(t).name == name && (t != DType::String || mode == Mode::Fn) && !is_complex(t)) return t;
  }
  return std::nullopt;
}

std::optional<Op> function_named(const std::string& name, Mode mode) {
  for (int k = 0; k < int(Op::ReduceAdd); k++)
    if (const OpInfo& row = info(Op(k)); row.name == name && row.c_infix.empty())
      if (!is_text_op(row.op) || mode == Mode::Fn) return row.op;
  return std::nullopt;
}

std::optional<Op> infix_named(const std::string& symbol, bool unary) {
  if (symbol == "//") return Op::FloorDiv;
  if (symbol == "%") return Op::FloorMod;
  for (int k = 0; k < kOpCount; k++)
    if (const OpInfo& row = info(Op(k)); row.c_infix == symbol && (row.arity == 1) == unary) return row.op;
  return std::nullopt;
}

std::optional<DType> Evaluator::type_named(const std::string& name) const {
  if (const auto t = names_.types.find(name); t != names_.types.end()) return t->second;
  return element_type_of(name, mode_);
}

Meaning Evaluator::meaning(const Formula& f) {
  switch (f.kind) {
    case Formula::Kind::Integer: return f.integer;
    case Formula::Kind::Number: return f.number;
    case Formula::Kind::Text: return f.word;
    case Formula::Kind::Name: return name(f);
    case Formula::Kind::Spread: fail(f.at, "'*" + f.word + "' stands in an index or among sizes only");
    case Formula::Kind::Load: return load(f);
    case Formula::Kind::Call: return call(f);
    case Formula::Kind::Unary: return unary(f);
    case Formula::Kind::Binary: return binary(f);
  }
  fail(f.at, "no formula");
}

Meaning Evaluator::name(const Formula& f) {
  if (const auto a = names_.axes.find(f.word); a != names_.axes.end()) {
    if (names_.spread.count(f.word))
      fail(f.at, "'" + f.word + "' is a list of axes; it stands as '*" + f.word + "' in an index");
    return a->second[0];
  }
  if (const auto c = names_.constants.find(f.word); c != names_.constants.end()) return c->second;
  if (f.word == "inf") return std::numeric_limits<double>::infinity();
  if (f.word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (f.word == "true" || f.word == "false") return f.word == "true";
  if (names_.tensors.count(f.word))
    fail(f.at, "'" + f.word + "' is a tensor; its elements are read as in " + f.word + "[i]");
  fail(f.at, "nothing is called '" + f.word + "' here");
}

Expr Evaluator::as_type(const Meaning& m, DType type, const Place& at) const {
  const Expr* e = std::get_if<Expr>(&m);
  if (!e && type == DType::Undefined) fail(at, kind_of(m) + " has no element type here; give it one, as in f32(...)");
  if (!e) return constant_expr(m, type, at);
  if (type != DType::Undefined && (*e)->dtype != type) {
    const std::string to(info(type).name);
    fail(at, "this is " + std::string(info((*e)->dtype).name) + ", but " + to + " is needed; " + to + "(...) converts");
  }
  return *e;
}

Expr Evaluator::value(const Formula& f, DType type) { return as_type(meaning(f), type, f.at); }

int64_t Evaluator::integer(const Formula& f) {
  const Meaning m = meaning(f);
  if (const int64_t* i = std::get_if<int64_t>(&m)) return *i;
  if (std::holds_alternative<double>(m))
    fail(f.at, "a whole number is needed here; // divides integers and leaves the remainder out");
  fail(f.at, "a whole number is needed that is known while compiling");
}

bool Evaluator::truth(const Formula& f) {
  const Meaning m = meaning(f);
  if (const bool* b = std::get_if<bool>(&m)) return *b;
  fail(f.at, "a condition is needed that is known while compiling");
}

Dims Evaluator::sizes(const Formulas& list) {
  Dims dims;
  for (const Formula& f : list) {
    if (f.kind == Formula::Kind::Spread) {
      const auto l = names_.lists.find(f.word);
      if (l == names_.lists.end()) fail(f.at, "no list of sizes is called '" + f.word + "'");
      dims.insert(dims.end(), l->second.begin(), l->second.end());
      continue;
    }
    const int64_t n = integer(f);
    if (n < 0 && mode_ != Mode::Trial) fail(f.at, "the size " + to_text(f) + " is negative: " + tc::to_text(n));
    dims.push_back(mode_ == Mode::Trial ? std::max<int64_t>(n, 1) : n);
  }
  return dims;
}

Expr Evaluator::index_value(const Formula& f) {
  const Meaning m = meaning(f);
  const Expr* e = std::get_if<Expr>(&m);
  if (e && mode_ != Mode::Fn && is_int((*e)->dtype)) return cast(DType::I64, *e);
  return as_type(m, DType::I64, f.at);
}

Exprs Evaluator::index(const Formula& f) {
  Exprs list;
  for (const Formula& a : f.args) {
    if (a.kind != Formula::Kind::Spread) {
      list.push_back(index_value(a));
      continue;
    }
    const auto axes = names_.axes.find(a.word);
    if (axes == names_.axes.end()) fail(a.at, "no list of axes is called '" + a.word + "' here");
    list.insert(list.end(), axes->second.begin(), axes->second.end());
  }
  return list;
}

Meaning Evaluator::load(const Formula& f) {
  const auto t = names_.tensors.find(f.word);
  if (t == names_.tensors.end()) return element(f);
  const bool unsure = mode_ == Mode::Trial && names_.optional.count(f.word) && !present_.count(f.word);
  if (!t->second || unsure)
    fail(f.at,
         "operand '" + f.word + "' may be absent; read it as in where(has(" + f.word + "), " + to_text(f) + ", 0)");
  const Exprs at = index(f);
  const size_t rank = t->second->shape.size();
  if (at.size() != rank)
    fail(f.at, "'" + f.word + "' has rank " + tc::to_text(int64_t(rank)) + ", not " + tc::to_text(int64_t(at.size())));
  if (access_) access_(f.at, t->second, at, facts_);
  const Expr e = tc::load(t->second, at);
  return mode_ != Mode::Fn && is_narrow_float(e->dtype) ? cast(DType::F32, e) : e;
}

// An element of an attribute or of a list of sizes.
Meaning Evaluator::element(const Formula& f) {
  const auto c = names_.constants.find(f.word);
  const auto l = names_.lists.find(f.word);
  const std::vector<int64_t>* ints = l != names_.lists.end() ? &l->second : nullptr;
  const std::vector<double>* numbers = nullptr;
  if (c != names_.constants.end()) {
    ints = std::get_if<std::vector<int64_t>>(&c->second);
    numbers = std::get_if<std::vector<double>>(&c->second);
  }
  if (!ints && !numbers) {
    if (names_.later.count(f.word)) fail(f.at, "'" + f.word + "' is read before it is defined");
    fail(f.at, "no tensor is called '" + f.word + "' here");
  }
  need_arguments(f, 1);
  const int64_t at = integer(f.args[0]);
  const size_t size = ints ? ints->size() : numbers->size();
  if (mode_ == Mode::Trial) return ints ? Meaning(int64_t(1)) : Meaning(1.0);
  if (at < 0 || size_t(at) >= size)
    fail(f.at, "'" + f.word + "' has " + tc::to_text(int64_t(size)) + " elements, there is none at " + tc::to_text(at));
  return ints ? Meaning((*ints)[size_t(at)]) : Meaning((*numbers)[size_t(at)]);
}

Meaning Evaluator::call(const Formula& f) {
  if (f.word == "where") return where(f);
  if (f.word == "has" || f.word == "len") {
    need_arguments(f, 1);
    const std::string& name = f.args[0].word;
    const bool plain = f.args[0].kind == Formula::Kind::Name;
    if (f.word == "has") {
      const auto t = names_.tensors.find(name);
      if (!plain || t == names_.tensors.end()) fail(f.at, "has(x) asks for an operand");
      return mode_ == Mode::Trial || t->second != nullptr;
    }
    if (const auto l = names_.lists.find(name); plain && l != names_.lists.end()) return int64_t(l->second.size());
    const auto c = names_.constants.find(name);
    const Meaning* m = plain && c != names_.constants.end() ? &c->second : nullptr;
    if (m && std::holds_alternative<std::vector<int64_t>>(*m))
      return int64_t(std::get<std::vector<int64_t>>(*m).size());
    if (m && std::holds_alternative<std::vector<double>>(*m)) return int64_t(std::get<std::vector<double>>(*m).size());
    fail(f.at, "len(l) asks for a list: an attribute of type ints or floats, or sizes");
  }
  if (f.word == "lowest" || f.word == "highest") {
    need_arguments(f, 1);
    const auto t = type_named(f.args[0].word);
    if (f.args[0].kind != Formula::Kind::Name || !t) fail(f.args[0].at, f.word + "(T) asks for an element type");
    const DType c = mode_ != Mode::Fn && is_narrow_float(*t) ? DType::F32 : *t;
    return f.word == "lowest" ? lowest(c) : highest(c);
  }
  if (const auto t = type_named(f.word)) return converted(f, *t);
  if (const auto t = f.word.starts_with("bits_") ? type_named(f.word.substr(5)) : std::nullopt) {
    need_arguments(f, 1);
    const Expr e = value(f.args[0], DType::Undefined);
    if (info(e->dtype).bytes != info(*t).bytes) fail(f.at, "bits_ is between types of one size");
    return build(f.at, [&] { return bitcast(*t, e); });
  }
  if (const auto op = function_named(f.word, mode_)) return function(f, *op);
  if (names_.tensors.count(f.word)) fail(f.at, "'" + f.word + "' is a tensor; its index stands in brackets, [...]");
  fail(f.at, "no function is called '" + f.word + "'");
}

// f32(x), or u8(x, wrap) for what must not be clamped.
Meaning Evaluator::converted(const Formula& f, DType to) {
  const bool wraps = f.args.size() == 2 && f.args[1].kind == Formula::Kind::Name && f.args[1].word == "wrap";
  if (!wraps) need_arguments(f, 1);
  const Meaning m = meaning(f.args[0]);
  const DType t = mode_ == Mode::Op || mode_ == Mode::Trial ? (is_narrow_float(to) ? DType::F32 : to) : to;
  if (is_constant(m)) {
    const Expr e = constant_expr(m, to, f.args[0].at);
    return t == to ? e : make_const(t, *as_const_number(e));
  }
  const Expr e = build(f.at, [&] { return cast(to, std::get<Expr>(m), !wraps); });
  return t == to ? e : cast(t, e);
}

Meaning Evaluator::function(const Formula& f, Op op) {
  const OpInfo& row = info(op);
  need_arguments(f, size_t(row.arity));
  if (op == Op::Index) {
    const Expr i = index_value(f.args[0]), n = index_value(f.args[1]);
    return tc::apply(op, {i, n});
  }
  Meaning a = meaning(f.args[0]);
  if (row.arity == 2) return apply(f, op, std::move(a), meaning(f.args[1]));
  if (is_constant(a)) {
    if (auto r = constant_function(f.at, op, {a})) return *r;
    fail(f.at, kind_of(a) + " has no element type here; give it one, as in " + f.word + "(f32(...))");
  }
  return build(f.at, [&] { return tc::apply(op, {std::get<Expr>(a)}); });
}

Meaning Evaluator::apply(const Formula& f, Op op, Meaning a, Meaning b) {
  if (is_constant(a) && is_constant(b)) {
    if (f.kind == Formula::Kind::Binary) {
      // The samples of sizes in a trial need not divide each other.
      const bool divides = f.word == "/" || f.word == "//" || f.word == "%";
      if (mode_ == Mode::Trial && divides && std::holds_alternative<int64_t>(a) && std::holds_alternative<int64_t>(b))
        return is_zero(b) ? a : constant_infix(f.at, "//", a, b);
      return constant_infix(f.at, f.word, a, b);
    }
    if (auto r = constant_function(f.at, op, {a, b})) return *r;
    fail(f.at, kind_of(a) + " has no element type here; give it one, as in f32(...)");
  }
  const DType t = std::get<Expr>(is_constant(a) ? b : a)->dtype;
  const Expr x = is_constant(a) ? constant_expr(a, t, f.at) : std::get<Expr>(a);
  const Expr y = is_constant(b) ? constant_expr(b, t, f.at) : std::get<Expr>(b);
  return build(f.at, [&] { return tc::apply(op, {x, y}); });
}

Meaning Evaluator::unary(const Formula& f) {
  const Meaning m = meaning(f.args[0]);
  if (const Expr* e = std::get_if<Expr>(&m)) {
    const Op op = *infix_named(f.word, true);
    if (op == Op::Not && (*e)->dtype != DType::Bool) fail(f.at, "'!' is of bool, not of " + kind_of(m));
    return build(f.at, [&] { return tc::apply(op, {*e}); });
  }
  if (f.word == "!" && std::holds_alternative<bool>(m)) return !std::get<bool>(m);
  if (f.word == "-" && std::holds_alternative<double>(m)) return -std::get<double>(m);
  if (f.word == "-" && is_number(m)) return constant_infix(f.at, "-", int64_t(0), m);
  if (f.word == "~" && std::holds_alternative<int64_t>(m)) return ~std::get<int64_t>(m);
  fail(f.at, "'" + f.word + "' does not take " + kind_of(m));
}

Meaning Evaluator::binary(const Formula& f) {
  if (f.word == "&&" || f.word == "||") return logic(f);
  Meaning a = meaning(f.args[0]);
  return apply(f, *infix_named(f.word, false), std::move(a), meaning(f.args[1]));
}

// The second operand is evaluated only if the first does not decide.
Meaning Evaluator::logic(const Formula& f) {
  const bool both = f.word == "&&";
  const Meaning a = meaning(f.args[0]);
  const auto truth_value = [&](const Meaning& m, const Place& at) {
    const Expr* e = std::get_if<Expr>(&m);
    if (e ? (*e)->dtype != DType::Bool : !std::holds_alternative<bool>(m))
      fail(at, "'" + f.word + "' is of conditions, not of " + kind_of(m));
  };
  truth_value(a, f.args[0].at);
  if (const bool* c = std::get_if<bool>(&a); c && *c != both && mode_ != Mode::Trial) return *c;
  Evaluator second = *this;
  if (const Expr* e = std::get_if<Expr>(&a)) second.facts_.assume(*e, both);
  if (both) second.presume(f.args[0]);
  const Meaning b = second.meaning(f.args[1]);
  truth_value(b, f.args[1].at);
  if (is_constant(a) && is_constant(b))
    return both ? std::get<bool>(a) && std::get<bool>(b) : std::get<bool>(a) || std::get<bool>(b);
  return build(f.at, [&] {
    return tc::apply(both ? Op::And : Op::Or, {as_type(a, DType::Bool, f.at), as_type(b, DType::Bool, f.at)});
  });
}

// Operands that `condition`, if true, says are there.
void Evaluator::presume(const Formula& condition) {
  if (condition.kind == Formula::Kind::Call && condition.word == "has" && condition.args.size() == 1)
    present_.insert(condition.args[0].word);
  if (condition.kind == Formula::Kind::Binary && condition.word == "&&")
    for (const Formula& part : condition.args) presume(part);
}

// Only the side that is chosen is evaluated; one that is known never to be chosen need not make sense.
Meaning Evaluator::where(const Formula& f) {
  need_arguments(f, 3);
  const Meaning c = meaning(f.args[0]);
  Evaluator first = *this, second = *this;
  first.presume(f.args[0]);
  if (f.args[0].kind == Formula::Kind::Unary && f.args[0].word == "!") second.presume(f.args[0].args[0]);
  const bool* known = std::get_if<bool>(&c);
  if (known && mode_ != Mode::Trial) return *known ? first.meaning(f.args[1]) : second.meaning(f.args[2]);
  const Expr* condition = std::get_if<Expr>(&c);
  if (!known && (!condition || (*condition)->dtype != DType::Bool))
    fail(f.args[0].at, "where needs a condition, not " + kind_of(c));
  if (condition) first.facts_.assume(*condition, true), second.facts_.assume(*condition, false);
  const Meaning a = first.meaning(f.args[1]), b = second.meaning(f.args[2]);
  if (is_constant(a) && is_constant(b)) {
    if (known) return *known ? a : b;
    fail(f.at, "neither side of where has an element type; give it one, as in f32(...)");
  }
  const DType t = std::get<Expr>(is_constant(a) ? b : a)->dtype;
  const Expr x = as_type(a, t, f.args[1].at), y = as_type(b, t, f.args[2].at);
  if (known) return *known ? x : y;
  return build(f.at, [&] { return select(*condition, x, y); });
}

}  // namespace tc::language
