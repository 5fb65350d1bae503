#include "emit_c/expr.h"

#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"
#include "passes/loop/lower_lanes.h"
#include "passes/loop/vectorize_loops.h"
#include "support/text.h"

namespace tc {
namespace {

std::string parens(std::string s, bool needed) { return needed ? "(" + std::move(s) + ")" : s; }

std::string helper(std::string_view op, DType t) { return "tc_" + std::string(op) + "_" + std::string(info(t).name); }

// v of v * VL, and i * (16 / VL) of i * 16; the index of a vector in a Register buffer counts vectors.
Expr in_vectors(const Expr& e) {
  if (is_const(e, 0)) return e;
  if (const Apply* k = as<Apply>(e)) {
    if (k->op == Op::Mul && as<Lanes>(k->args[1])) return k->args[0];
    if (k->op == Op::Mul && as<Lanes>(k->args[0])) return k->args[1];
    if (k->op == Op::Add) return in_vectors(k->args[0]) + in_vectors(k->args[1]);
    const auto n = k->op == Op::Mul ? as_const_int(k->args[1]) : std::nullopt;
    if (n && *n % kMaxLanes == 0) return k->args[0] * floor_div(k->args[1], lanes());
  }
  if (as<Lanes>(e)) return 1;
  check(multiple_of(e, {}) % kMaxLanes == 0, "a vector in registers sits at a multiple of VL");
  return floor_div(e, lanes());
}

/// The function of tc_double.h: "tc_dexp" beside "tc_exp".
std::string double_function(const OpInfo& row) {
  return "tc_d" + std::string(row.c_vector.empty() ? row.name : row.c_vector.substr(3));
}

/// The same number in all lanes? NaN is none.
bool is_number(const Expr& e) {
  const Broadcast* b = as<Broadcast>(e);
  const FloatImm* f = b ? as<FloatImm>(b->value) : nullptr;
  return f && !std::isnan(f->value);
}

}  // namespace

void Needs::add(const Needs& n) {
  math |= n.math;
  vector_math |= n.vector_math;
  tails |= n.tails;
  transposes |= n.transposes;
  ints |= n.ints;
  doubles |= n.doubles;
  halves |= n.halves;
  byte_products |= n.byte_products;
  few_bits |= n.few_bits;
  byte_tiles |= n.byte_tiles;
  scalar |= n.scalar;
  runtime |= n.runtime;
  types |= n.types;
  parallel |= n.parallel;
  strings |= n.strings;
  letters |= n.letters;
}

std::string vector_type(DType t) {
  return t == DType::F32 || is_half(t) ? "tc_vf" : t == DType::F64 ? "tc_vd" : t == DType::Bool ? "tc_vm" : "tc_vi";
}

std::string lanes_suffix(DType t, Needs& needs) {
  if (t == DType::F32) return "";
  check(has_lanes(t) || is_half(t) || t == DType::Bool,
        "vectors are of floats, integers of the vector header, or masks");
  (t == DType::F64 ? needs.doubles : is_half(t) ? needs.halves : needs.ints) = true;
  return "_" + std::string(info(t).name);
}

std::string ExprPrinter::condition(const Expr& e) {
  bool plain = !e->vector && !is_data(e);
  walk(e, [&](const Expr& x) {
    const auto n = as_const_int(x);
    const Load* l = as<Load>(x);
    const bool data = l && !data_vars.sizes.contains(l->buffer.get());
    plain = plain && (x->dtype == DType::I64 || x->dtype == DType::Bool) && !data && !as<Cast>(x) && !as<Bitcast>(x) &&
            (!n || (*n > INT32_MIN && *n < INT32_MAX));
    return plain;
  });
  return plain ? index(e) : value(e);
}

std::string ExprPrinter::print(const Expr& e, int parent, Context c) {
  return visit(
      e,
      [&](const IntImm& k) -> std::string {
        if (e->dtype == DType::String) return "tc_no_string()";
        const bool is_plain = k.value != INT64_MIN && (k.value >= 0 || e->dtype != DType::U64);  // as C has literals
        if (e->dtype == DType::Bool || (c != Context::Value && is_plain)) return to_text(k.value);
        return c_literal_int(k.value, info(e->dtype).bytes * 8, is_signed_int(e->dtype));
      },
      [&](const FloatImm& k) {
        std::string s = e->dtype == DType::F64 ? c_literal(k.value) : c_literal(float(k.value));
        if (s.find("NAN") != std::string::npos || s.find("INF") != std::string::npos) needs_.math = true;
        return parens(s, parent > 12 && s[0] == '-');
      },
      [&](const VarRef& k) {
        const bool count = e->dtype == DType::I64 && !is_data(e) && long_vars.count(k.var.get()) == 0;
        return c == Context::Value && count && parent >= 11 ? "(int64_t)" + k.var->name : k.var->name;
      },
      [&](const Lanes&) { return std::string("TC_VL"); }, [&](const Apply& k) { return apply(e, k, parent, c); },
      [&](const Select& k) {
        if (k.condition->vector)
          return vector_select(e->dtype, vector_operand(k.condition), vector_operand(k.yes), vector_operand(k.no));
        const std::string s = print(k.condition, 4, Context::Index) + " ? " +
                              (e->vector ? vector_operand(k.yes) : print(k.yes, 4, c)) + " : " +
                              (e->vector ? vector_operand(k.no) : print(k.no, 3, c));
        return parens(s, parent > 3);
      },
      [&](const Cast& k) { return e->vector ? vector_conversion(e, k) : conversion(e, k); },
      [&](const Bitcast& k) {
        // Stored alike: the narrow floats are kept as their bits.
        if (info(k.value->dtype).c_type == info(e->dtype).c_type) return print(k.value, parent, c);
        needs_.scalar = true;
        return "tc_bits_" + std::string(info(k.value->dtype).name) + "_" + std::string(info(e->dtype).name) + "(" +
               print(k.value, 0, c) + ")";
      },
      [&](const Load& k) { return element(k.buffer, k.index); },
      [&](const Ramp&) -> std::string { throw InternalError("a ramp stands in an index only"); },
      [&](const Broadcast& k) { return print(k.value, parent, c); },
      [&](const Partial& k) {
        const Load* l = as<Load>(k.value);
        check(l && l->index.size() == 1 && as<Ramp>(l->index[0]), "Partial wraps a vector load");
        const DType t = l->buffer->dtype;
        if (t == DType::F32) needs_.tails = true;
        return "tc_load" + lanes_suffix(t, needs_) + "_n(" + pointer(l->buffer, as<Ramp>(l->index[0])->base) + ", " +
               count(k.count) + ")";
      });
}

std::string ExprPrinter::count(const Expr& e) {
  bool is_long = false;
  walk(e, [&](const Expr& x) {
    const VarRef* v = as<VarRef>(x);
    is_long = is_long || (v && (wide || long_vars.contains(v->var.get()))) || (as<Load>(x) && x->dtype == DType::I64);
    return !is_long;
  });
  constexpr int kCast = 12;
  return is_long ? "(int)" + index(e, kCast) : index(e);
}

std::string ExprPrinter::vector_operand(const Expr& e) {
  const Expr v = as<Broadcast>(e) ? as<Broadcast>(e)->value : e;
  if (v->vector) return print(v, 0, Context::Value);
  if (v->dtype == DType::Bool) return "tc_mask(" + print(v, 0, Context::Value) + ")";
  if (has_integer_lanes(v->dtype)) needs_.ints = true;
  if (v->dtype == DType::F64) needs_.doubles = true;
  const std::string set = has_integer_lanes(v->dtype) ? "tc_iset(" : v->dtype == DType::F64 ? "tc_dset(" : "tc_set(";
  return set + print(v, 0, Context::Value) + ")";
}

bool is_seen_as_bit(const Expr& e) {
  if (const auto* k = as<Select>(e)) return is_seen_as_bit(k->yes) && is_seen_as_bit(k->no);
  if (as<Load>(e) || as<IntImm>(e) || as<Cast>(e)) return true;
  const auto* k = as<Apply>(e);
  const bool call = k && k->op == Op::Eq && k->args[0]->dtype == DType::String;
  return k && !call && !info(k->op).c_infix.empty();
}

std::string ExprPrinter::bit(const Expr& e, int parent, Context c) {
  const bool truth = e->dtype == DType::Bool && !e->vector && !as<VarRef>(e) && !is_seen_as_bit(e);
  return truth ? "(" + print(e, 11, c) + " != 0)" : print(e, parent, c);
}

std::string ExprPrinter::call(std::string_view f, const Exprs& args, Context c) {
  std::string s = std::string(f) + "(";
  for (size_t i = 0; i < args.size(); i++) s += (i > 0 ? ", " : "") + bit(args[i], 0, c);
  return s + ")";
}

std::string ExprPrinter::infix(const Apply& k, int parent, Context c) {
  const OpInfo& row = info(k.op);
  if (row.arity == 1) {
    std::string operand = print(k.args[0], row.precedence, c);
    if (k.op == Op::Neg && operand[0] == '-') operand = "(" + operand + ")";
    return parens(std::string(row.c_infix) + operand, row.precedence < parent);
  }
  // a - (b + c), a / (b * c), and gcc's wish for parentheses between && and ||, & and +, != and !=
  const bool mixed = row.precedence <= 9, bits = row.precedence >= 6 && row.precedence <= 8;
  const int left = bits ? 12 : mixed ? 11 : row.precedence, right = bits ? 12 : mixed ? 11 : row.precedence + 1;
  // a && b && c and a | b | c read as they stand, but a != b != c is not what it looks like.
  const bool chains = row.precedence < 9 && as<Apply>(k.args[0]) && as<Apply>(k.args[0])->op == k.op;
  // A condition is what is not 0, a number is 1.
  const bool numbers = row.compares && k.op != Op::And && k.op != Op::Or;
  const auto operand = [&](const Expr& e, int parent) { return numbers ? bit(e, parent, c) : print(e, parent, c); };
  std::string s = operand(k.args[0], chains ? row.precedence : left);
  if (row.compares && s[0] == '!') s = "(" + s + ")";  // !a != b looks like !(a != b)
  s += " " + std::string(row.c_infix) + " " + operand(k.args[1], right);
  return parens(s, row.precedence < parent);
}

std::string ExprPrinter::lane_count(const Expr& e, int parent, Context c) {
  const Apply* k = as<Apply>(e);
  if (!k || (k->op != Op::FloorDiv && k->op != Op::Div)) return "";
  if (const auto n = as_const_int(k->args[1]); n && *n > 0 && as<Lanes>(k->args[0]))
    return parens("TC_VL / " + to_text(*n), parent > 12);
  if (!as<Lanes>(k->args[1])) return "";
  if (const auto n = as_const_int(k->args[0])) return parens(to_text(*n) + " / TC_VL", parent > 12);
  // (n + VL - 1) / VL
  Linear n = linear_form(k->args[0]);
  std::erase_if(n.terms, [](const Linear::Term& t) { return as<Lanes>(t.atom) && t.coefficient == 1; });
  if (n.terms.size() + 1 != linear_form(k->args[0]).terms.size()) return "";
  n.constant++;
  return "TC_VECTORS(" + print(to_expr(n), 0, c) + ")";
}

std::string ExprPrinter::apply(const Expr& e, const Apply& k, int parent, Context c) {
  const OpInfo& row = info(k.op);
  const DType t = k.args[0]->dtype;
  if (k.op == Op::ReduceAdd || k.op == Op::ReduceMax || k.op == Op::ReduceMin)
    return (t == DType::F64 ? double_function(row) : std::string(row.c_vector)) + "(" + vector_operand(k.args[0]) + ")";
  if (e->vector) return vector_apply(k, parent);
  if (k.op == Op::Index) {
    needs_.runtime = true;
    return "tc_index(" + print(k.args[0], 0, Context::Value) + ", " + print(k.args[1], 0, c) + ", status)";
  }
  if (k.op == Op::And || k.op == Op::Or || k.op == Op::Not) return infix(k, parent, c);
  if (is_text_op(k.op)) return text_operation(k);
  if (t == DType::String) return string_comparison(k, parent);
  if (row.compares && !row.c_infix.empty()) return infix(k, parent, c);
  if (is_int(t) || t == DType::Bool) return integer_apply(e, k, parent, c);
  if (!row.c_infix.empty()) return infix(k, parent, c);
  const std::string_view f = t == DType::F64 ? row.c_f64 : row.c_f32;
  if (f.empty()) {
    needs_.scalar = true;
    return call(helper(row.name, t), k.args, c);
  }
  needs_.math = true;
  return call(f, k.args, c);
}

// text_join(a, b): tc_string_join(a, b, made)
std::string ExprPrinter::text_operation(const Apply& k) {
  needs_.strings = true;
  if (k.op == Op::TextLower || k.op == Op::TextUpper) needs_.letters = true;
  std::string s = "tc_string_" + std::string(info(k.op).name.substr(5)) + "(";
  for (size_t i = 0; i < k.args.size(); i++) s += (i > 0 ? ", " : "") + print(k.args[i], 0, Context::Value);
  return s + (makes_string(k.op) ? ", made)" : ")");
}

std::string ExprPrinter::string_comparison(const Apply& k, int parent) {
  const bool equal = k.op == Op::Eq || k.op == Op::Ne;
  std::string s = call(equal ? "tc_string_equal" : "tc_string_compare", k.args, Context::Value);
  if (equal) return k.op == Op::Eq ? s : "!" + s;
  const OpInfo& row = info(k.op);
  return parens(s + " " + std::string(row.c_infix) + " 0", row.precedence < parent);
}

std::string ExprPrinter::integer_vector_apply(const Apply& k) {
  needs_.ints = true;
  Exprs args = k.args;
  std::string f = "tc_i" + std::string(info(k.op).name);
  if (k.op == Op::Gt || k.op == Op::Ge) {
    std::swap(args[0], args[1]);
    f = k.op == Op::Gt ? "tc_ilt" : "tc_ile";
  }
  if (k.op == Op::Neg) {
    f = "tc_isub";
    args.insert(args.begin(), zero(args[0]->dtype));
  }
  return f + "(" + vector_operand(args[0]) + ", " + vector_operand(args[1]) + ")";
}

std::string ExprPrinter::vector_select(DType t, const std::string& mask, const std::string& yes,
                                       const std::string& no) {
  if (t != DType::F32) needs_.ints = true;
  return (t == DType::F32 ? "tc_sel(" : "tc_isel(") + mask + ", " + yes + ", " + no + ")";
}

// Bytes lie in lanes of 32 bits, so that only what is computed from them needs a conversion.
std::string ExprPrinter::vector_conversion(const Expr& e, const Cast& k) {
  if (is_half(k.value->dtype)) return vector_operand(k.value);  // floats since they were loaded
  if (is_half(e->dtype)) {
    needs_.halves = true;
    return "tc_round_" + std::string(info(e->dtype).name) + "(" + vector_operand(k.value) + ")";
  }
  if (k.value->dtype == DType::Bool)
    return vector_select(e->dtype, vector_operand(k.value), vector_operand(make_const(e->dtype, 1)),
                         vector_operand(zero(e->dtype)));
  if (e->dtype == DType::Bool) return vector_operand(tc::apply(Op::Ne, {k.value, broadcast(zero(k.value->dtype))}));
  const bool from_float = k.value->dtype == DType::F32, to_float = e->dtype == DType::F32;
  if (from_float != to_float) needs_.ints = true;
  if (const Apply* a = as<Apply>(k.value); a && a->op == Op::Round && from_float && !to_float)
    return "tc_int_nearest(" + vector_operand(a->args[0]) + ")";
  const std::string value = vector_operand(k.value);
  return from_float == to_float ? value : (to_float ? "tc_float(" : "tc_int(") + value + ")";
}

// a * b + c is one call, so that the compiler may contract it.
std::string ExprPrinter::double_vector_apply(const Apply& k) {
  needs_.doubles = true;
  Exprs args = k.args;
  std::string f = double_function(info(k.op));
  if ((k.op == Op::Min || k.op == Op::Max) && is_number(args[1])) f.pop_back();
  for (size_t i = 0; k.op == Op::Add && i < 2; i++) {
    const Apply* product = as<Apply>(args[i]);
    if (!product || product->op != Op::Mul || !args[i]->vector) continue;
    args = {product->args[0], product->args[1], args[1 - i]};
    f = "tc_dmuladd";
    break;
  }
  for (size_t i = 0; i < args.size(); i++) f += (i > 0 ? ", " : "(") + vector_operand(args[i]);
  return f + ")";
}

std::string ExprPrinter::vector_apply(const Apply& k, int parent) {
  if (has_integer_lanes(k.args[0]->dtype)) return integer_vector_apply(k);
  if (k.args[0]->dtype == DType::F64) return double_vector_apply(k);
  const OpInfo& row = info(k.op);
  const bool arithmetic = k.op == Op::Add || k.op == Op::Sub || k.op == Op::Mul || k.op == Op::Div || k.op == Op::Neg;
  if (arithmetic) {
    const auto is_scalar = [](const Expr& e) { return as<Broadcast>(e) != nullptr; };
    return std::all_of(k.args.begin(), k.args.end(), is_scalar) ? "tc_set(" + infix(k, 0, Context::Value) + ")"
                                                                : infix(k, parent, Context::Value);
  }
  std::string f(row.c_vector);
  if (row.compares && f.empty() && k.args[0]->dtype == DType::Bool) {
    check(k.op == Op::Ne || k.op == Op::Eq, "masks are equal or not");
    const std::string differ = "tc_xor(" + vector_operand(k.args[0]) + ", " + vector_operand(k.args[1]) + ")";
    return k.op == Op::Ne ? differ : "tc_not(" + differ + ")";
  }
  if (row.compares && f.empty()) f = "tc_" + std::string(row.name);
  check(!f.empty(), "an operation without a vector form in a vector expression");
  const bool simple = k.op == Op::Abs || k.op == Op::Sign || k.op == Op::Min || k.op == Op::Max || k.op == Op::Floor ||
                      k.op == Op::Ceil || k.op == Op::Round || k.op == Op::Trunc || k.op == Op::Quotient ||
                      row.compares;
  if (!simple) needs_.vector_math = true;
  if ((k.op == Op::Min || k.op == Op::Max) && is_number(k.args[1])) f.pop_back();
  std::string s = f + "(";
  for (size_t i = 0; i < k.args.size(); i++) s += (i > 0 ? ", " : "") + vector_operand(k.args[i]);
  return s + ")";
}

std::string ExprPrinter::integer_apply(const Expr& e, const Apply& k, int parent, Context c) {
  const OpInfo& row = info(k.op);
  const DType t = k.args[0]->dtype;
  if (std::string s = lane_count(e, parent, c); !s.empty()) return s;
  const bool plain = t == DType::I64 && !is_data(e);
  const bool exact = k.op == Op::Add || k.op == Op::Sub || k.op == Op::Mul || k.op == Op::Neg;
  const bool divides = k.op == Op::Div || k.op == Op::Mod;
  if (plain && (exact || (divides && (as<Lanes>(k.args[1]) || as_const_int(k.args[1]).value_or(0) > 0)))) {
    if (k.op != Op::Mod) return infix(k, parent, c);
    return parens(print(k.args[0], 12, c) + " % " + print(k.args[1], 13, c), parent > 12);
  }
  if (k.op == Op::BitAnd || k.op == Op::BitOr || k.op == Op::BitXor) {
    // C computes with what is narrower as an int.
    if (plain || info(t).bits >= 32) return infix(k, parent, c);
    const std::string s = infix(k, 0, c);
    return "(" + std::string(info(t).c_type) + ")(" + s + ")";
  }
  needs_.scalar = true;
  return call(helper(row.name, t == DType::Bool ? DType::U8 : c == Context::Int && plain ? DType::I32 : t), k.args, c);
}

std::string ExprPrinter::conversion(const Expr& e, const Cast& k) {
  const DType from = k.value->dtype, to = e->dtype;
  const std::string f = "tc_" + std::string(info(to).name) + "_from_" + std::string(info(from).name) + "(";
  const std::string plain = bit(k.value, 0, Context::Value);
  if (is_narrow_float(from) || is_narrow_float(to)) {
    check(from == DType::F32 || to == DType::F32, "narrow floats are converted through f32");
    needs_.types = true;
    const bool f8 = info(to).bits == 8 && to != DType::F8E8M0;
    return f + plain + (f8 ? (k.saturate ? ", 1)" : ", 0)") : ")");
  }
  if (to == DType::Bool) return "(" + print(k.value, 10, Context::Value) + " != 0)";
  if (is_int(to) && info(to).bits < 8) {
    needs_.scalar = true;
    const std::string whole =
        is_float(from) ? "tc_i64_from_" + std::string(info(from).name) + "(" + plain + ")" : plain;
    return "tc_" + std::string(info(to).name) + "_wrap(" + whole + ")";
  }
  if (is_float(from) && is_int(to)) {
    needs_.scalar = true;
    return f + plain + ")";
  }
  const bool counter = to == DType::I32 && as<VarRef>(k.value) && from == DType::I64;  // an int already, or cut here
  return "(" + std::string(info(to).c_type) + ")" + bit(k.value, 13, counter ? Context::Index : Context::Value);
}

std::string ExprPrinter::pointer(const Buffer& b, const Expr& i) {
  check(numbers.count(b.get()) == 0, "a parameter that is a number has no address");
  return is_const(i, 0) ? b->name : b->name + " + " + index(i, 11);
}

std::string ExprPrinter::register_element(const Buffer& b, const Exprs& index_list) {
  std::string s = b->name;
  const size_t count = index_list.size() - (single_vectors.count(b.get()) != 0 ? 1 : 0);
  for (const Expr& i : Exprs(index_list.begin(), index_list.begin() + std::ptrdiff_t(count)))
    s += "[" + index(as<Ramp>(i) ? in_vectors(as<Ramp>(i)->base) : i) + "]";
  return s;
}

std::string ExprPrinter::element(const Buffer& b, const Exprs& index_list) {
  if (b->scope == Scope::Register || b->scope == Scope::Shared) return register_element(b, index_list);
  if (numbers.count(b.get()) != 0) return b->name;
  check(index_list.size() == 1, "buffers are flat when they are printed");
  if (const Ramp* r = as<Ramp>(index_list[0]))
    return "tc_load" + lanes_suffix(b->dtype, needs_) + "(" + pointer(b, r->base) + ")";
  return b->name + "[" + index(index_list[0]) + "]";
}

}  // namespace tc
