#include <cstring>

#include "ir/interpreter/compiler.h"
#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc::interp {
namespace {

// May evaluating it fault or raise the status? Then an untaken branch must not be evaluated.
bool may_fault(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    auto* a = as<Apply>(x);
    found |= as<Load>(x) || (a && a->op == Op::Index);
    return !found;
  });
  return found;
}

}  // namespace

int32_t Compiler::new_reg(bool varying, bool vector, int bytes) {
  int64_t n = int64_t(varying ? program_.batch : 1) * width(vector) * bytes;
  int32_t at = top_;
  check(int64_t(top_) + n < int64_t(1) << 30, "too many registers");
  top_ += int32_t((n + 63) / 64 * 64);
  program_.arena_bytes = std::max<int64_t>(program_.arena_bytes, top_);
  return at;
}

Operand Compiler::new_operand(DType t, bool varying, bool vector) {
  return {new_reg(varying, vector, bytes_of(class_of(t))), t, varying, vector};
}

Instr& Compiler::emit(Fn fn, const Operand& dst) {
  check(fn != nullptr, "the interpreter lacks an operation");
  Instr i;
  i.fn = fn;
  i.dst = dst.reg;
  i.varying = dst.varying;
  i.width = width(dst.vector);
  program_.code.push_back(i);
  return program_.code.back();
}

size_t Compiler::emit_jump(Fn fn, int32_t a, bool a_step, int32_t b) {
  Instr i;
  i.fn = fn;
  i.a = a;
  i.a_step = a_step;
  i.b = b;
  program_.code.push_back(i);
  return program_.code.size() - 1;
}

int Compiler::add_line(Line l) {
  program_.lines.push_back(std::move(l));
  return int(program_.lines.size()) - 1;
}

void Compiler::forget(size_t mark) {
  while (memo_.order.size() > mark) {
    memo_.map.erase(memo_.order.back());
    memo_.order.pop_back();
  }
}

Operand Compiler::expr(const Expr& e) {
  if (auto it = memo_.map.find(e.get()); it != memo_.map.end()) return it->second.second;
  Operand o = compute(e);
  memo_.map.emplace(e.get(), std::pair(e, o));
  memo_.order.push_back(e.get());
  return o;
}

Operand Compiler::compute(const Expr& e) {
  return visit(
      e, [&](const IntImm& k) { return constant(e->dtype, 0, k.value); },
      [&](const FloatImm& k) { return constant(e->dtype, k.value, 0); }, [&](const VarRef& v) { return variable(v); },
      [&](const Apply& a) { return application(e, a); },
      [&](const Select& s) { return lazy(e, s.condition, s.yes, s.no); }, [&](const Cast& c) { return cast(e, c); },
      [&](const Bitcast& b) {
        Operand a = expr(b.value);
        return unary_instr(&bitcast_op, a, e->dtype, 0, int32_t(a.dtype), int32_t(e->dtype));
      },
      [&](const Load& l) { return load(e, l, Expr()); },
      [&](const Ramp& r) {
        Operand base = expr(r.base), d = new_operand(DType::I64, base.varying, true);
        Instr& i = emit(&ramp, d);
        i.a = base.reg, i.a_step = base.varying;
        return d;
      },
      [&](const Broadcast& b) {
        Operand v = expr(b.value);
        return shaped(v, v.varying, true);
      },
      [&](const Lanes&) { return constant(DType::I64, 0, program_.vl); },
      [&](const Partial& p) {
        if (auto* l = as<Load>(p.value)) return load(p.value, *l, p.count);
        Operand v = expr(p.value), n = expr(p.count);
        v = shaped(v, v.varying || n.varying, true);
        Operand d = new_operand(v.dtype, v.varying, true);
        Instr& i = emit(&keep_first, d);
        i.a = v.reg, i.b = n.reg, i.b_step = n.varying, i.aux = bytes_of(class_of(v.dtype));
        return d;
      });
}

// Constants lie in the initial image, where nobody else writes; when that is full, an instruction sets them.
Operand Compiler::constant(DType t, double number, int64_t integer) {
  Class c = class_of(t);
  int64_t bits = integer;
  if (c == Class::D) bits = std::bit_cast<int64_t>(number);
  if (c == Class::F) bits = std::bit_cast<int32_t>(float(number));
  auto known = constants_.find({bytes_of(c), bits});
  if (known != constants_.end()) return {known->second, t, false, false};
  if (constant_top_ + 8 <= kConstantBytes) {
    int32_t at = constant_top_;
    constant_top_ += 8;
    program_.image.resize(size_t(constant_top_));
    std::memcpy(program_.image.data() + at, &bits, 8);  // the low bytes first, as in a float's register
    constants_[{bytes_of(c), bits}] = at;
    return {at, t, false, false};
  }
  Operand o = new_operand(t, false, false);
  Instr& i = emit(&set_constant, o);
  i.aux = bytes_of(c), i.a = int32_t(bits), i.b = int32_t(bits >> 32);
  return o;
}

Operand Compiler::variable(const VarRef& v) {
  auto it = vars_.find(v.var.get());
  check(it != vars_.end(), "variable \"" + printable(v.var->name) + "\" has no value here");
  return it->second;
}

Operand Compiler::shaped(const Operand& o, bool varying, bool vector) {
  if (o.varying == varying && o.vector == vector) return o;
  Operand d = new_operand(o.dtype, varying, vector);
  int bytes = bytes_of(class_of(o.dtype));
  Fn fn = o.vector ? &tile : vector ? &spread : move_fn(bytes);
  Instr& i = emit(fn, d);
  i.a = o.reg, i.a_step = o.varying, i.aux = bytes;
  return d;
}

void Compiler::wrap(const Operand& o) {
  if (class_of(o.dtype) != Class::I || o.dtype == DType::I64) return;
  emit(&wrap_ints, o).aux = int32_t(o.dtype);
}

Operand Compiler::unary_instr(Fn fn, const Operand& a, DType result, int32_t aux, int32_t b, int32_t c) {
  Operand d = new_operand(result, a.varying, a.vector);
  Instr& i = emit(fn, d);
  i.a = a.reg, i.b = b, i.c = c, i.aux = aux;
  return d;
}

Operand Compiler::binary_instr(Fn fn, Operand a, Operand b, DType result, int32_t aux) {
  bool varying = a.varying || b.varying, vector = a.vector || b.vector;
  // A uniform scalar is read again and again; anything else takes the full shape.
  auto full = [&](Operand& o) {
    bool single = !o.varying && !o.vector;
    if (!single || (!varying && !vector)) o = shaped(o, varying, vector);
  };
  full(a), full(b);
  Operand d = new_operand(result, varying, vector);
  Instr& i = emit(fn, d);
  i.a = a.reg, i.b = b.reg, i.aux = aux;
  i.a_step = a.varying || a.vector || (!varying && !vector);
  i.b_step = b.varying || b.vector || (!varying && !vector);
  return d;
}

Operand Compiler::application(const Expr& e, const Apply& a) {
  bool logic = a.op == Op::And || a.op == Op::Or;
  if (logic && !e->vector && may_fault(a.args[1])) {
    Expr yes = a.op == Op::And ? a.args[1] : make_int(DType::Bool, 1),
         no = a.op == Op::And ? make_int(DType::Bool, 0) : a.args[1];
    return lazy(e, a.args[0], yes, no);
  }
  bool sum = a.op == Op::Add || a.op == Op::Sub || a.op == Op::Neg || a.op == Op::Mul;
  if (sum && e->dtype == DType::I64 && !e->vector) {
    Line l;
    int64_t step = 0;
    if (linear_form(e).single().get() != e.get() && line(e, l, step)) {
      Operand d = new_operand(DType::I64, step != 0, false);
      int at = add_line(std::move(l));
      Instr& i = emit(step ? &line_lanes : &eval_line, d);
      i.aux = at;
      if (step) i.b = add_line({step, {}});
      return d;
    }
  }
  Operand x = expr(a.args[0]);
  Class c = class_of(x.dtype);
  const OpInfo& row = info(a.op);
  if (a.op == Op::ReduceAdd || a.op == Op::ReduceMax || a.op == Op::ReduceMin) {
    Operand d = new_operand(e->dtype, x.varying, false);
    Instr& i = emit(lane_reduce_fn(a.op, c), d);
    i.a = x.reg, i.width = width(x.vector);
    wrap(d);
    return d;
  }
  if (a.op == Op::IsNan || a.op == Op::IsInf) {
    check(c == Class::F || c == Class::D, "isnan of an integer");
    return unary_instr(test_fn(a.op, c), x, DType::Bool);
  }
  if (row.arity == 1 && is_text_op(a.op)) return unary_instr(text_fn(a.op), x, e->dtype);
  if (row.arity == 1) {
    Operand d = unary_instr(unary_fn(a.op, c), x, e->dtype);
    if (may_leave_type(a.op)) wrap(d);
    return d;
  }
  Operand y = expr(a.args[1]);
  if (is_text_op(a.op)) return binary_instr(text_fn(a.op), x, y, e->dtype);
  if (a.op == Op::Shl || a.op == Op::Shr) {
    Operand d = binary_instr(shift_fn(a.op, c), x, y, e->dtype, info(x.dtype).bits);
    if (a.op == Op::Shl) wrap(d);
    return d;
  }
  if (a.op == Op::Index) return binary_instr(&index_op, x, y, e->dtype);
  if (row.compares && !logic && x.dtype == DType::String) return binary_instr(string_compare_fn(a.op), x, y, e->dtype);
  if (row.compares && !logic) return binary_instr(compare_fn(a.op, c), x, y, e->dtype);
  if (a.op == Op::Pow && class_of(y.dtype) != c) return mixed_pow(x, y, e->dtype);
  Operand d = binary_instr(binary_fn(a.op, c), x, y, e->dtype);
  if (may_leave_type(a.op)) wrap(d);
  return d;
}

// Exponents of another type: both become double, unless both are integers.
Operand Compiler::mixed_pow(const Operand& x, const Operand& y, DType result) {
  if (!is_float(x.dtype) && !is_float(y.dtype)) {
    Operand d = binary_instr(binary_fn(Op::Pow, class_of(x.dtype)), x, y, result);
    wrap(d);
    return d;
  }
  Operand a = unary_instr(cast_fn(x.dtype, DType::F64), x, DType::F64);
  Operand b = unary_instr(cast_fn(y.dtype, DType::F64), y, DType::F64);
  Operand d = binary_instr(binary_fn(Op::Pow, Class::D), a, b, DType::F64);
  DType target = is_narrow_float(result) ? DType::F32 : result;
  Operand r = unary_instr(cast_fn(DType::F64, target), d, target, int32_t(target) | 1 << 8);
  r.dtype = result;
  return r;
}

Operand Compiler::cast(const Expr& e, const Cast& c) {
  Operand a = expr(c.value);
  return unary_instr(cast_fn(a.dtype, e->dtype), a, e->dtype, int32_t(e->dtype) | (c.saturate ? 1 << 8 : 0));
}

Operand Compiler::blend(const Operand& c, Operand yes, Operand no, int32_t into) {
  bool varying = c.varying || yes.varying || no.varying, vector = c.vector || yes.vector || no.vector;
  auto single = [](const Operand& o) { return !o.varying && !o.vector; };
  Operand condition = single(c) ? c : shaped(c, varying, vector);
  if (!single(yes)) yes = shaped(yes, varying, vector);
  if (!single(no)) no = shaped(no, varying, vector);
  Operand d = into >= 0 ? Operand{into, yes.dtype, varying, vector} : new_operand(yes.dtype, varying, vector);
  Instr& i = emit(select_fn(bytes_of(class_of(yes.dtype))), d);
  i.a = condition.reg, i.b = yes.reg, i.c = no.reg;
  i.a_step = !single(condition);
  i.aux = (single(yes) ? 0 : 1) | (single(no) ? 0 : 2);
  return d;
}

Operand Compiler::lazy(const Expr& e, const Expr& condition, const Expr& yes, const Expr& no) {
  Operand c = expr(condition);
  // A vector condition selects, as the emitted text does: both sides are evaluated.
  bool eager = c.vector || (!may_fault(yes) && !may_fault(no));
  if (eager) {
    Operand y = expr(yes), n = expr(no);
    return blend(c, y, n);
  }
  if (c.varying && may_fault(yes) != may_fault(no)) return guarded(c, yes, no);
  return branches(e, c, yes, no);
}

// One side only may fault: it is evaluated where it is taken, the other one everywhere.
Operand Compiler::guarded(const Operand& c, const Expr& yes, const Expr& no) {
  bool first = may_fault(yes);
  Operand safe = expr(first ? no : yes);
  size_t mark = memo_.order.size();
  size_t skip = emit_jump(&mask_push, c.reg, true, first ? 0 : 1);
  Operand risky = expr(first ? yes : no);
  emit_jump(&mask_pop);
  land(skip);
  forget(mark);
  return first ? blend(c, risky, safe) : blend(c, safe, risky);
}

// Each side is evaluated only for the lanes that take it, then moved into the result.
Operand Compiler::branches(const Expr& e, const Operand& c, const Expr& yes, const Expr& no) {
  bool varying = in_lanes(), vector = e->vector;
  Operand d = new_operand(e->dtype, varying, vector);
  auto side = [&](const Expr& x, int32_t invert) {
    size_t mark = memo_.order.size(), skip;
    if (c.varying) {
      skip = emit_jump(&mask_push, c.reg, true, invert);
    } else if (invert) {
      skip = emit_jump(&jump_if_nonzero, c.reg);
    } else {
      skip = emit_jump(&jump_if_zero, c.reg);
    }
    Operand v = shaped(expr(x), varying, vector);
    if (c.varying) {
      Instr& i = emit(merge_fn(bytes_of(class_of(e->dtype))), d);
      i.a = v.reg;
      emit_jump(&mask_pop);
    } else {
      Instr& i = emit(move_fn(bytes_of(class_of(e->dtype))), d);
      i.a = v.reg;
    }
    forget(mark);
    land(skip);
  };
  side(yes, 0);
  side(no, 1);
  return d;
}

Operand Compiler::load(const Expr& e, const Load& l, const Expr& count) {
  bool varying = false, vector = bool(count);
  int at = access(l.buffer, l.index, count, false, varying, vector);
  Operand d = new_operand(e->dtype, varying, vector);
  emit(load_fn(e->dtype), d).aux = at;
  return d;
}

}  // namespace tc::interp
