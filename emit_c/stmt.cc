#include "emit_c/stmt.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

bool is_single(const Stmt& s) { return as<Store>(s) || as<For>(s) || as<Prefetch>(s) || as<Intrin>(s); }

std::string c_type(const Expr& e) {
  if (e->vector) return vector_type(e->dtype);
  if (e->dtype == DType::Bool) return "int";
  return std::string(info(e->dtype).c_type);
}

bool is_vector_access(const Store& k) { return k.value->vector || (!k.index.empty() && as<Ramp>(k.index.back())); }

// Is `view` used by what stays in this function? Parallel loops become functions that declare it themselves.
bool used_outside_parts(const Stmt& body, const Buffer& view) {
  bool used = false;
  walk(
      body,
      [&](const Stmt& s) {
        if (const For* f = as<For>(s); f && f->kind == ForKind::Parallel) return false;
        if (const Store* k = as<Store>(s)) used |= k->buffer == view;
        if (const Alias* k = as<Alias>(s)) used |= k->base == view;
        if (const Prefetch* k = as<Prefetch>(s)) used |= k->buffer == view;
        if (const Intrin* k = as<Intrin>(s))
          used |= std::find(k->buffers.begin(), k->buffers.end(), view) != k->buffers.end();
        return !used;
      },
      [&](const Expr& e) {
        if (const Load* k = as<Load>(e)) used |= k->buffer == view;
        return !used;
      });
  return used;
}

/// Does C see that this condition is 0 or 1? Calls and names of type int may be anything to it.
bool is_seen_as_bit(const Expr& e) {
  if (const auto* k = as<Select>(e)) return is_seen_as_bit(k->yes) && is_seen_as_bit(k->no);
  if (as<Load>(e) || as<IntImm>(e) || as<Cast>(e)) return true;
  const auto* k = as<Apply>(e);
  const bool call = k && k->op == Op::Eq && k->args[0]->dtype == DType::String;
  return k && !call && !info(k->op).c_infix.empty();
}

}  // namespace

bool is_written(const Stmt& s, const Buffer& b) {
  bool written = false;
  walk(s, [&](const Stmt& x) {
    if (const Store* k = as<Store>(x)) written |= k->buffer == b;
    if (const Alias* k = as<Alias>(x)) written |= k->base == b && is_written(k->body, k->view);
    if (const Intrin* k = as<Intrin>(x)) written |= !k->buffers.empty() && k->buffers[0] == b;
    return !written;
  });
  return written;
}

void StmtPrinter::print(const Stmt& s) {
  if (!s) return;
  visit(
      s, [&](const Store& k) { store(k); }, [&](const For& k) { print_for(k); },
      [&](const While& k) { print_block("while (" + expr_.value(k.condition) + ")", k.body); },
      [&](const If& k) {
        print_block("if (" + expr_.condition(k.condition) + ")", k.then);
        if (k.otherwise) print_block("else", k.otherwise);
      },
      [&](const Let& k) {
        declare(k);
        around_.push_back(s);
        print(k.body);
        around_.pop_back();
      },
      [&](const Alloc& k) { print_alloc(k); },
      [&](const Alias& k) {
        if (loop_depth_ > 0 || used_outside_parts(k.body, k.view)) declare(k);
        around_.push_back(s);
        print(k.body);
        around_.pop_back();
      },
      [&](const Seq& k) {
        for (const Stmt& x : k.list) print(x);
      },
      [&](const Barrier& k) { print_barrier(k); }, [&](const Prefetch& k) { print_prefetch(k); },
      [&](const Intrin& k) { print_intrin(k); },
      [&](const Launch& k) { throw InternalError("no launch on a CPU: " + k.kernel); },
      [&](const Comment& k) {
        out_.line("/* " + k.text + " */");
        print(k.body);
      });
}

void StmtPrinter::print_barrier(const Barrier&) { throw InternalError("no barrier on a CPU"); }

// dot4(sum[i], a, b; first lane, n): tc_dot4_u8(sum[i][v], a, b), with _n where there are less than four
// load_strided(to, from; first, stride): to = tc_load_stride(from + first, stride), tc_load_even(...) for every second one
void StmtPrinter::print_intrin(const Intrin& k) {
  const IntrinCall c = parse(k);
  if (k.name == "load_strided") {
    const IntrinOperand &to = c.operands.at(0), &from = c.operands.at(1);
    const Expr first = from.index.empty() ? c.scalars.at(0) : from.index[0] + c.scalars.at(0);
    const std::string p = expr_.pointer(from.buffer, first), stride = expr_.index(c.scalars.at(1));
    const std::string call = stride == "2" ? "tc_load_even(" + p + ")" : "tc_load_stride(" + p + ", " + stride + ")";
    return out_.line(expr_.element(to.buffer, {ramp(0)}) + " = " + call + ";");
  }
  if (k.name == "load_transposed" || k.name == "load_unriffled" || k.name == "transpose_tile" ||
      k.name == "store_riffled")
    return print_transposition(k.name, c);
  if (k.name != "dot4") throw InternalError("no C text for the instruction " + k.name);
  needs_.ints = true;
  const IntrinOperand &sum = c.operands.at(0), &a = c.operands.at(1), &b = c.operands.at(2);
  Exprs at = sum.index;
  at.push_back(ramp(c.scalars.at(0)));
  const std::string target = expr_.element(sum.buffer, at),
                    n = is_const(c.scalars.at(1), 4) ? "" : expr_.index(c.scalars[1]);
  out_.line(target + " = tc_dot4_" + std::string(info(a.buffer->dtype).name) + (n.empty() ? "(" : "_n(") + target +
            ", " + expr_.pointer(a.buffer, a.index.at(0)) + ", " + expr_.pointer(b.buffer, b.index.at(0)) +
            (n.empty() ? ");" : ", " + n + ");"));
}

// load_transposed(tile, from; stride): tc_load_transposed(tile, from, stride)
// load_unriffled(rows, from; n): tc_load_unriffled_3(rows, from)
// store_riffled(to, rows; n): tc_store_riffled_2(to, rows)
// transpose_tile(to, from; strides of both): tc_transpose_2(to, stride, from, stride), of elements of two bytes
void StmtPrinter::print_transposition(const std::string& name, const IntrinCall& c) {
  needs_.transposes = true;
  const IntrinOperand &to = c.operands.at(0), &from = c.operands.at(1);
  if (name == "store_riffled")
    return out_.line("tc_store_riffled_" + expr_.index(c.scalars.at(0)) + "(" +
                     expr_.pointer(to.buffer, to.index.at(0)) + ", " + from.buffer->name + ");");
  const std::string p = expr_.pointer(from.buffer, from.index.at(0)), stride = expr_.index(c.scalars.at(0));
  if (name == "load_unriffled")
    return out_.line("tc_load_unriffled_" + stride + "(" + to.buffer->name + ", " + p + ");");
  if (name == "load_transposed")
    return out_.line("tc_load_transposed(" + to.buffer->name + ", " + p + ", " + stride + ");");
  out_.line("tc_transpose_" + to_text(int64_t(info(to.buffer->dtype).bytes)) + "(" +
            expr_.pointer(to.buffer, to.index.at(0)) + ", " + stride + ", " + p + ", " + expr_.index(c.scalars.at(1)) +
            ");");
}

void StmtPrinter::print_prefetch(const Prefetch& k) {
  out_.line("TC_PREFETCH(" + expr_.pointer(k.buffer, k.index.at(0)) + ");");
}

// Arithmetic on loop variables and sizes, as loop variables are: no tensor's data in it.
bool StmtPrinter::is_index(const Expr& e) const {
  bool index = e->dtype == DType::I64 && !e->vector && !expr_.is_data(e);
  walk(e, [&](const Expr& x) {
    const VarRef* v = as<VarRef>(x);
    const auto n = as_const_int(x);  // no count: a number that the model stores, or the start of a search for the least
    const bool is_long = n && !wide_ && (*n > INT32_MAX || *n < INT32_MIN);
    index = index && !is_long && !as<Load>(x) && !as<Cast>(x) && !as<Bitcast>(x) &&
            !(v && expr_.long_vars.count(v->var.get()) != 0);
    return index;
  });
  return index;
}

// Nobody reads a checked position along an axis of one element, but the check stays.
static bool is_check_alone(const Let& k) {
  const Apply* call = as<Apply>(k.value);
  return call && call->op == Op::Index && !uses_var(k.body, k.var);
}

void StmtPrinter::declare(const Let& k) {
  if (is_check_alone(k)) return out_.line("(void)" + expr_.value(k.value) + ";");
  if (is_index(k.value)) {
    const std::string value = wide_ ? "int64_t " + k.var->name + " = " + expr_.index(k.value)
                                    : "int " + k.var->name + " = " + expr_.int_index(k.value);
    out_.line("const " + value + ";");
    return;
  }
  if (k.value->dtype == DType::I64) expr_.long_vars.insert(k.var.get());
  if (expr_.is_data(k.value)) expr_.data_vars.insert(k.var.get());
  const bool test = k.value->dtype == DType::Bool && !k.value->vector;
  out_.line("const " + c_type(k.value) + " " + k.var->name + " = " +
            (test ? expr_.condition(k.value) : expr_.value(k.value)) + ";");
}

void StmtPrinter::declare(const Alias& k) {
  const std::string type(info(k.view->dtype).c_type);
  const bool written = is_written(k.body, k.view);
  const std::string pointer = (written ? "" : "const ") + type + " *";
  std::string value = expr_.pointer(k.base, k.offset);
  if (k.view->dtype != k.base->dtype)
    value = "(" + pointer + ")(" + (written ? "" : "const ") + "void *)(" + value + ")";
  out_.line(pointer + k.view->name + " = " + value + ";");
}

void StmtPrinter::print_block(const std::string& head, const Stmt& body) {
  loop_depth_++;
  if (is_single(body)) {
    out_.line(head);
    out_.indent();
    print(body);
    out_.dedent();
  } else {
    out_.line(head + " {");
    out_.indent();
    print(body);
    out_.close();
  }
  loop_depth_--;
}

void StmtPrinter::print_for(const For& k) {
  if (k.kind == ForKind::Parallel && loop_depth_ == 0) {
    parts.push_back({k, around_});
    std::string call = part_call;
    auto fill = [&](std::string_view hole, const std::string& text) {
      if (const size_t at = call.find(hole); at != std::string::npos) call.replace(at, hole.size(), text);
    };
    fill("{part}", "part" + (parts.size() > 1 ? to_text(int64_t(parts.size())) : ""));
    fill("{chunks}", expr_.index(k.extent));
    needs_.parallel = true;
    out_.line(call);
    return;
  }
  print_block(k.kind == ForKind::Unroll ? "TC_UNROLL " + loop_head(k) : loop_head(k), k.body);
}

std::string StmtPrinter::loop_head(const For& k) {
  const std::string type = wide_ ? "int64_t " : "int ", v = k.var->name;
  const std::string begin = !wide_ && is_index(k.begin) ? expr_.int_index(k.begin) : expr_.index(k.begin);
  return "for (" + type + v + " = " + begin + "; " + v + " < " + expr_.index(simplify(k.begin + k.extent), 10) + "; " +
         v + "++)";
}

void StmtPrinter::print_alloc(const Alloc& k) {
  const Buffer& b = k.buffer;
  const bool vectors = b->scope == Scope::Register && holds_vectors(k.body, b);
  const bool single = vectors && holds_single_vectors(k.body, b);
  if (vectors) vector_buffers_.push_back(b.get());
  if (single) expr_.single_vectors.insert(b.get());
  std::string s = (vectors ? vector_type(b->dtype) : std::string(info(b->dtype).c_type)) + " " + b->name;
  const Dims dims = static_dims(b->shape);
  for (size_t i = 0; i < dims.size(); i++) {
    const bool last = vectors && i + 1 == dims.size();
    if (last && single) break;
    const std::string n = to_text(dims[i]);
    s += !last ? "[" + n + "]" : dims[i] % 16 == 0 ? "[" + n + " / TC_VL]" : "[TC_VECTORS(" + n + ")]";
  }
  // the first store of a scalar is its initial value
  const Seq* q = as<Seq>(k.body);
  const Store* first = q ? as<Store>(q->list[0]) : as<Store>(k.body);
  if (dims.empty() && first && first->buffer == b && !first->reduce) {
    out_.line(s + " = " + value_of(*first) + ";");
    if (q)
      for (size_t i = 1; i < q->list.size(); i++) print(q->list[i]);
  } else {
    out_.line(s + ";");
    print(k.body);
  }
  if (vectors) vector_buffers_.pop_back();
}

std::string StmtPrinter::value_of(const Store& k) {
  const std::string v = expr_.value(k.value);
  if (k.buffer->dtype == DType::Bool && !is_seen_as_bit(k.value))
    return "(uint8_t)(" + (as<Select>(k.value) ? "(" + v + ")" : v) + " != 0)";  // gcc folds `isnan(x) != 0` to an int
  const bool small = info(k.buffer->dtype).bytes < 4 && k.buffer->dtype != DType::Bool && !k.value->vector;
  return small && !as<Load>(k.value) && !as<IntImm>(k.value) && !as<Cast>(k.value)
             ? "(" + std::string(info(k.buffer->dtype).c_type) + ")(" + v + ")"
             : v;
}

void StmtPrinter::operator_store(const Store& k, const std::string& target) {
  const Op op = *k.reduce;
  const DType t = k.buffer->dtype;
  const bool infix = (op == Op::Add || op == Op::Sub || op == Op::Mul) && is_float(t);
  if (infix) return out_.line(target + " " + std::string(info(op).c_infix) + "= " + expr_.value(k.value) + ";");
  // everything else through the expression printer, which knows wrapping, min and max
  const Expr old = load(k.buffer, k.index);
  Store plain = k;
  plain.value = apply(op, {old, k.value});
  plain.reduce.reset();
  out_.line(target + " = " + value_of(plain) + ";");
}

// Of a vector in registers: the lanes beyond keep what they have.
void StmtPrinter::partial_store(const Store& k, const std::string& target) {
  check(k.buffer->dtype == DType::F32, "vectors in registers are partly stored as floats");
  needs_.tails = true;
  const Expr value = k.reduce ? apply(*k.reduce, {load(k.buffer, k.index), k.value}) : k.value;
  out_.line(target + " = tc_sel_n(" + expr_.index(k.count) + ", " + expr_.vector_operand(value) + ", " + target + ");");
}

void StmtPrinter::vector_store(const Store& k) {
  const Ramp* r = as<Ramp>(k.index.back());
  check(r != nullptr, "a vector is stored at a ramp");
  Expr v = k.value;
  if (k.reduce)
    v = apply(*k.reduce, {k.count ? partial(load(k.buffer, k.index), k.count) : load(k.buffer, k.index), v});
  if (k.buffer->dtype == DType::F32 && k.count.get()) needs_.tails = true;
  const std::string f = "tc_store" + lanes_suffix(k.buffer->dtype, needs_), p = expr_.pointer(k.buffer, r->base);
  const std::string text = expr_.vector_operand(v);
  out_.line(k.count ? f + "_n(" + p + ", " + text + ", " + expr_.index(k.count) + ");"
                    : f + "(" + p + ", " + text + ");");
}

void StmtPrinter::store(const Store& k) {
  if (k.buffer->scope != Scope::Register && is_vector_access(k)) return vector_store(k);
  const std::string target = expr_.element(k.buffer, k.index);
  if (k.count.get()) return partial_store(k, target);
  if (k.reduce) return operator_store(k, target);
  const Broadcast* same = as<Broadcast>(k.value);
  const bool vectors = k.buffer->scope == Scope::Register && std::find(vector_buffers_.begin(), vector_buffers_.end(),
                                                                       k.buffer.get()) != vector_buffers_.end();
  if (same || (vectors && !k.value->vector)) return out_.line(target + " = " + expr_.vector_operand(k.value) + ";");
  out_.line(target + " = " + value_of(k) + ";");
}

}  // namespace tc
