#include "ir/language/function_text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "ir/language/elaborate.h"
#include "ir/language/nest.h"
#include "ir/language/parser.h"
#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc::language {
namespace {

/// What the language has no words for.
struct Unspeakable {
  std::string why;
};

using Kind = Formula::Kind;

Formula named(const std::string& word) {
  Formula f{Kind::Name};
  f.word = word;
  return f;
}
Formula whole(int64_t v) {
  Formula f{Kind::Integer};
  f.integer = v;
  return f;
}
Formula node(Kind kind, std::string word, Formulas args) {
  Formula f{kind};
  f.word = std::move(word);
  f.args = std::move(args);
  return f;
}
Formula call(std::string word, Formulas args) { return node(Kind::Call, std::move(word), std::move(args)); }

std::string type_word(DType t) {
  const std::string name(info(t).name);
  if (!element_type_of(name, Mode::Fn)) throw Unspeakable{"there are no formulas of " + name};
  return name;
}

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }
bool is_constant_expr(const Expr& e) { return as<IntImm>(e) || as<FloatImm>(e); }

/// Distinct names in order of appearance: b, b~2.
class NameGiver {
 public:
  const std::string& name(const void* id, const std::string& hint) {
    std::string& n = names_[id];
    if (!n.empty()) return n;
    if (!is_name(hint) || hint.find('~') != hint.npos) throw Unspeakable{"\"" + printable(hint) + "\" is no name"};
    n = hint;
    for (int k = 2; !taken_.insert(n).second; k++) n = hint + "~" + tc::to_text(int64_t(k));
    return n;
  }

 private:
  std::map<const void*, std::string> names_;  // looked up only
  std::set<std::string> taken_;
};

class FunctionPrinter {
 public:
  explicit FunctionPrinter(const TensorFn& fn) : fn_(fn) {}

  Definition run(const std::string& name) {
    Definition d;
    d.is_op = false;
    d.name = name;
    for (size_t k = 0; k < fn_.inputs.size(); k++) {
      d.inputs.push_back(operand(fn_.inputs[k]));
      if (!fn_.operands.empty()) d.inputs.back().operand = fn_.operands[k];
    }
    for (const Stage& s : fn_.stages) d.stages.push_back(stage(s));
    for (const Buffer& b : fn_.outputs) d.outputs.push_back(operand(b));
    return d;
  }

 private:
  const std::string& buffer(const Buffer& b) {
    const bool plain = b->strides.empty() && b->offset == 0 && (b->scope == Scope::Global || own_.count(b.get())) &&
                       is_static(b->shape);
    if (!plain) throw Unspeakable{"buffer " + b->name + " has a layout of its own"};
    return buffers_.name(b.get(), b->name);
  }

  Operand operand(const Buffer& b) {
    Operand o;
    o.name = buffer(b);
    o.type = type_word(b->dtype);
    for (const int64_t n : static_dims(b->shape)) o.sizes.push_back(whole(n));
    return o;
  }

  std::vector<AxisSyntax> axes(const std::vector<Axis>& list) {
    std::vector<AxisSyntax> l;
    for (const Axis& a : list)
      l.push_back({{}, variables_.name(a.var.get(), a.var->name), false, whole(a.extent.value)});
    return l;
  }

  StageSyntax stage(const Stage& s) {
    variables_ = {};
    if (s.kind == Stage::Kind::Nest) return nest(s);
    StageSyntax r;
    r.scan = s.scan;
    for (const Buffer& b : s.outputs) r.targets.push_back({{}, buffer(b), type_word(b->dtype)});
    r.label = label_of(s);
    r.axes = axes(s.axes);
    if (s.kind == Stage::Kind::Reduce) reduction(s, r);
    for (const Expr& e : s.values) r.values.push_back(bare(e));
    return r;
  }

  static std::string label_of(const Stage& s) {
    if (s.name == s.outputs[0]->name) return "";
    if (!is_name(s.name) || s.name.find('~') != s.name.npos)
      throw Unspeakable{"\"" + printable(s.name) + "\" is no name"};
    return s.name;
  }

  // --- loops
  StageSyntax nest(const Stage& s) {
    const bool plain = s.axes.empty() && s.raxes.empty() && s.values.empty() && s.init.empty() && s.scan < 0;
    if (!plain) throw Unspeakable{"stage " + s.name + " is made of loops and of formulas"};
    StageSyntax r;
    for (const Buffer& b : s.outputs) {
      r.results.push_back(operand(b));
      r.targets.push_back({{}, r.results.back().name, r.results.back().type});
    }
    r.label = label_of(s);
    block(s.nest, r.loops);
    return r;
  }

  void block(const Stmt& s, std::vector<LoopSyntax>& list) {
    if (!s) return;
    if (const Seq* q = as<Seq>(s)) {
      for (const Stmt& x : q->list) block(x, list);
      return;
    }
    LoopSyntax l;
    statement(s, l);
    list.push_back(std::move(l));
  }

  void statement(const Stmt& s, LoopSyntax& l) {
    using Kind = LoopSyntax::Kind;
    visit(
        s, [&](const Store& k) { store(k, l); },
        [&](const For& k) {
          l.kind = Kind::For;
          if (k.kind != ForKind::Serial) l.how = kind_name(k.kind);
          if (!loop_kind_named(l.how)) throw Unspeakable{"a loop of kind " + l.how};
          l.values = {bare(k.extent)};
          if (!is_const(k.begin, 0)) l.values.push_back(bare(k.begin));
          l.word = variables_.name(k.var.get(), k.var->name);
          block(k.body, l.body);
        },
        [&](const While& k) {
          l.kind = Kind::While;
          l.values = {bare(k.condition)};
          block(k.body, l.body);
        },
        [&](const If& k) {
          l.kind = Kind::If;
          l.values = {bare(k.condition)};
          block(k.then, l.body);
          block(k.otherwise, l.otherwise);
        },
        [&](const Let& k) {
          l.kind = Kind::Let;
          l.type = type_word(k.var->dtype);
          l.values = {bare(k.value)};
          l.word = variables_.name(k.var.get(), k.var->name);
          block(k.body, l.body);
        },
        [&](const Alloc& k) {
          l.kind = Kind::Alloc;
          own_.insert(k.buffer.get());
          const Operand o = operand(k.buffer);
          l.word = o.name;
          l.type = o.type;
          l.args = o.sizes;
          l.how = scope_name(k.buffer->scope);
          if (!scope_named(l.how)) throw Unspeakable{"a tensor in " + l.how};
          block(k.body, l.body);
        },
        [&](const Comment& k) {
          l.kind = Kind::Note;
          l.word = k.text;
          block(k.body, l.body);
        },
        [&](const auto&) { throw Unspeakable{"a statement of kernels"}; });
  }

  void store(const Store& k, LoopSyntax& l) {
    if (bool(k.count) || k.value->vector) throw Unspeakable{"vectors are for loops"};
    l.word = buffer(k.buffer);
    for (const Expr& i : k.index) l.args.push_back(bare(i));
    l.values = {bare(k.value)};
    if (k.reduce) l.how = info(*k.reduce).c_infix.empty() ? info(*k.reduce).name : info(*k.reduce).c_infix;
  }

  void reduction(const Stage& s, StageSyntax& r) {
    static const std::map<Op, std::string> words = {{Op::Add, "sum"}, {Op::Mul, "product"}, {Op::Max, "max"},
                                                    {Op::Min, "min"}, {Op::And, "all"},     {Op::Or, "any"}};
    r.reduction = "fold";
    if (s.combiner.op) {
      const auto word = words.find(*s.combiner.op);
      if (word == words.end() || s.values.size() != 1) throw Unspeakable{"stage " + s.name + " joins in its own way"};
      r.reduction = word->second;
    }
    const bool plain = s.combiner.op && structurally_equal(s.init[0], identity_of(*s.combiner.op, s.values[0]->dtype));
    if (!plain)
      for (const Expr& e : s.init) r.init.push_back(bare(e));
    r.raxes = axes(s.raxes);
    for (const Var& v : s.combiner.lhs) r.lhs.push_back(variables_.name(v.get(), v->name));
    for (const Var& v : s.combiner.rhs) r.rhs.push_back(variables_.name(v.get(), v->name));
    for (const Expr& e : s.combiner.result) r.result.push_back(bare(e));
  }

  // --- expressions
  // The digits that are read as this number again.
  static Formula number(double v, DType t) {
    if (std::isinf(v)) {
      if (!same_bits(v, as<FloatImm>(make_const(t, v))->value))
        throw Unspeakable{"an infinity that its type does not have"};
      return v < 0 ? node(Kind::Unary, "-", {named("inf")}) : named("inf");
    }
    if (std::isnan(v)) {
      if (!same_bits(v, as<FloatImm>(make_const(t, std::nan("")))->value)) throw Unspeakable{"a NaN of another kind"};
      return named("nan");
    }
    Formula f{Kind::Number};
    const std::string digits = t == DType::F32 ? tc::to_text(float(v)) : tc::to_text(v);
    std::from_chars(digits.data(), digits.data() + digits.size(), f.number);
    if (!same_bits(as<FloatImm>(make_const(t, f.number))->value, v)) f.number = v;
    if (!same_bits(as<FloatImm>(make_const(t, f.number))->value, v))
      throw Unspeakable{"a number that its type does not have"};
    return f;
  }

  /// Where the type is known from elsewhere.
  Formula bare(const Expr& e) {
    if (const FloatImm* f = as<FloatImm>(e)) return number(f->value, e->dtype);
    const IntImm* i = as<IntImm>(e);
    if (!i) return typed(e);
    if (e->dtype == DType::String) return Formula{Kind::Text};  // the empty one is the only constant
    if (e->dtype == DType::Bool) return named(i->value != 0 ? "true" : "false");
    for (const char* word : {"lowest", "highest"}) {
      const bool far = i->value == INT64_MIN || (e->dtype == DType::U64 && i->value < 0);
      const Expr end = *word == 'l' ? lowest(e->dtype) : highest(e->dtype);
      if (far && as_const_int(end) == i->value) return call(word, {named(type_word(e->dtype))});
    }
    if (e->dtype == DType::U64 && i->value < 0) throw Unspeakable{"an integer of more than 63 bits"};
    return whole(i->value);
  }

  Formula typed(const Expr& e) {
    if (is_constant_expr(e)) {
      Formula f = bare(e);
      return f.kind == Kind::Call ? f : call(type_word(e->dtype), {std::move(f)});
    }
    if (e->vector) throw Unspeakable{"vectors are for loops"};
    return visit(
        e, [&](const VarRef& k) { return named(variables_.name(k.var.get(), k.var->name)); },
        [&](const Apply& k) { return application(k); },
        [&](const Select& k) {
          return call("where", {bare(k.condition), beside(k.yes, k.no), beside(k.no, k.yes)});
        },
        [&](const Cast& k) {
          Formulas args{typed(k.value)};
          if (!k.saturate) args.push_back(named("wrap"));
          return call(type_word(e->dtype), std::move(args));
        },
        [&](const Bitcast& k) { return call("bits_" + type_word(e->dtype), {typed(k.value)}); },
        [&](const Load& k) {
          Formulas index;
          for (const Expr& i : k.index) index.push_back(bare(i));
          return node(Kind::Load, buffer(k.buffer), std::move(index));
        },
        [&](const auto&) -> Formula { throw Unspeakable{"vectors are for loops"}; });
  }

  /// A constant takes the type of what it stands beside.
  Formula beside(const Expr& e, const Expr& other) { return is_constant_expr(other) ? typed(e) : bare(e); }

  Formula application(const Apply& k) {
    const OpInfo& row = info(k.op);
    if (row.c_infix.empty() && !function_named(std::string(row.name), Mode::Fn))
      throw Unspeakable{"no function is " + std::string(row.name)};
    const bool mixed = k.op == Op::Shl || k.op == Op::Shr || k.op == Op::Pow || is_text_op(k.op);
    Formulas args;
    if (row.arity == 1)
      args.push_back(typed(k.args[0]));
    else
      for (size_t i = 0; i < 2; i++) args.push_back(mixed ? typed(k.args[i]) : beside(k.args[i], k.args[1 - i]));
    if (k.op == Op::Index) args = {bare(k.args[0]), bare(k.args[1])};
    if (k.op == Op::FloorDiv || k.op == Op::FloorMod)
      return node(Kind::Binary, k.op == Op::FloorDiv ? "//" : "%", std::move(args));
    if (row.c_infix.empty()) return call(std::string(row.name), std::move(args));
    return node(row.arity == 1 ? Kind::Unary : Kind::Binary, std::string(row.c_infix), std::move(args));
  }

  const TensorFn& fn_;
  NameGiver buffers_, variables_;
  std::set<const BufferDef*> own_;  // allocated by a nest; looked up only
};

}  // namespace

FunctionText function_text(const TensorFn& fn, const std::string& name) {
  try {
    return {to_text(FunctionPrinter(fn).run(name)), ""};
  } catch (const Unspeakable& u) {
    return {"", u.why};
  }
}

FunctionText braced_function_text(const TensorFn& fn) {
  FunctionText f = function_text(fn, "");
  if (f.text.empty()) return f;
  f.text.insert(f.text.find('\n'), " {");
  f.text += "}\n";
  return f;
}

std::optional<TensorFn> parse_function(std::string_view text, Problems& problems) {
  const std::vector<Definition> all = parse(text, problems);
  if (problems.empty() && all.size() != 1) problems.push_back({{}, "one fn is needed"});
  return problems.empty() ? function_of(all[0], problems) : std::nullopt;
}

std::optional<TensorFn> function_of(const Definition& d, Problems& problems) {
  const size_t before = problems.size();
  if (d.is_op || !d.types.empty() || !d.attributes.empty()) {
    problems.push_back({d.at, "a fn is needed, without types and attributes"});
    return std::nullopt;
  }
  TensorFn fn;
  Names names;
  try {
    for (const Operand& o : d.inputs) {
      const auto t = element_type_of(o.type, Mode::Fn);
      if (!t) fail(o.at, "no element type is called '" + o.type + "'");
      const Dims dims = Evaluator(names, Mode::Fn).sizes(o.sizes);
      fn.inputs.push_back(make_buffer(o.name.substr(0, o.name.find('~')), *t, to_shape(dims)));
      if (!names.tensors.emplace(o.name, fn.inputs.back()).second) fail(o.at, "'" + o.name + "' is an operand already");
      if (o.operand >= 0) fn.operands.push_back(o.operand);
    }
    if (!fn.operands.empty() && fn.operands.size() != fn.inputs.size())
      fail(d.at, "'@' stands at all operands or at none");
    Elaborated e = elaborate(d, names, Mode::Fn, problems);
    fn.stages = std::move(e.stages);
    fn.outputs = std::move(e.outputs);
  } catch (const FormulaError& e) {
    problems.push_back(e.problem);
  }
  return problems.size() == before ? std::optional(std::move(fn)) : std::nullopt;
}

}  // namespace tc::language
