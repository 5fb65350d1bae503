#include "emit_c/stmt.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

// Is it printed as one statement? Whoever starts chunks may have something to tell them, and an index of a GPU is a line by itself.
bool is_single(const Stmt& s) {
  const For* f = as<For>(s);
  const bool is_loop = f && (f->kind == ForKind::Serial || f->kind == ForKind::Unroll || f->kind == ForKind::Vector);
  return as<Store>(s) || is_loop || as<Prefetch>(s) || as<Intrin>(s);
}

std::string c_type(const Expr& e) {
  if (e->vector) return vector_type(e->dtype);
  if (e->dtype == DType::Bool) return "int";
  return std::string(info(e->dtype).c_type);
}

bool is_vector_access(const Store& k) { return k.value->vector || (!k.index.empty() && as<Ramp>(k.index.back())); }

// Text with {holes}: what stands for each name.
std::string filled(std::string_view text, const std::vector<std::string>& names,
                   const std::vector<std::string>& texts) {
  std::string s;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('{', at), text.size());
    s += text.substr(at, open - at);
    if (open == text.size()) break;
    const size_t close = text.find('}', open);
    check(close != std::string_view::npos, "a hole that is closed");
    const auto name = std::find(names.begin(), names.end(), text.substr(open + 1, close - open - 1));
    check(name != names.end(), "a hole that names an operand");
    s += texts[size_t(name - names.begin())];
    at = close + 1;
  }
  return s;
}

}  // namespace

bool is_written(const Stmt& s, const Buffer& b) {
  bool written = false;
  walk(s, [&](const Stmt& x) {
    if (const Store* k = as<Store>(x)) written |= k->buffer == b;
    if (const Alias* k = as<Alias>(x)) written |= k->base == b && is_written(k->body, k->view);
    if (const Intrin* k = as<Intrin>(x))
      for (size_t i = 0; i < k->buffers.size(); i++) written |= k->buffers[i] == b && writes_operand(*k, i);
    return !written;
  });
  return written;
}

const ParallelPart& part_of(const std::vector<ParallelPart>& parts, const For& chunks) {
  for (const ParallelPart& p : parts)
    if (p.chunk == chunks.var) return p;
  throw InternalError("a parallel loop that last_loop_passes() have not seen");
}

StmtPrinter::StmtPrinter(SourceWriter& out, Needs& needs, const Kernel& k)
    : out_(out), expr_(needs), needs_(needs), outlined_(k.parts), wide_(k.wide_index) {
  expr_.wide = wide_;
  for (const Buffer& b : k.vectors) vector_buffers_.insert(b.get());
  for (const Buffer& b : k.single_vectors) expr_.single_vectors.insert(b.get());
  for (const Param& p : k.params)
    if (p.by_value) expr_.numbers.insert(p.buffer.get());
  for (const CheckedSize& z : k.checked_sizes) expr_.data_vars.sizes.insert(z.buffer.get());
  for (const Buffer& b : k.part_views) part_views_.insert(b.get());
  for (const Var& v : k.part_names) part_names_.insert(v.get());
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
        if (part_names_.count(k.var.get()) == 0) declare(k);
        print(k.body);
      },
      [&](const Alloc& k) { print_alloc(k); },
      [&](const Alias& k) {
        if (part_views_.count(k.view.get()) == 0) declare(k);
        print(k.body);
      },
      [&](const Seq& k) {
        for (const Stmt& x : k.list) print(x);
      },
      [&](const Barrier& k) { print_barrier(k); }, [&](const Prefetch& k) { print_prefetch(k); },
      [&](const Intrin& k) { out_.line(intrin_text(k) + ";"); },
      [&](const Launch& k) { throw InternalError("no launch on a CPU: " + k.kernel); },
      [&](const Comment& k) {
        out_.line("/* " + k.text + " */");
        print(k.body);
      });
}

void StmtPrinter::print_barrier(const Barrier&) { throw InternalError("no barrier on a CPU"); }

// Where a program's memory begins for an instruction: "x + i * 4".
std::string StmtPrinter::memory_operand(const Buffer& b, const Exprs& index) {
  return expr_.pointer(b, index.empty() ? Expr(0) : index[0]);
}

std::string StmtPrinter::operand_text(const InstructionOperand& row, const IntrinCall& c, const IntrinOperand& o) {
  Exprs at = o.index;
  const Expr shift = row.offset < 0 ? Expr() : c.scalars.at(size_t(row.offset));
  switch (row.form) {
    case OperandForm::Memory:
      if (bool(shift) && at.empty())
        at.push_back(shift);
      else if (bool(shift))
        at[0] = at[0] + shift;
      return memory_operand(o.buffer, at);
    case OperandForm::Vector: at.push_back(ramp(shift ? shift : Expr(0))); return expr_.element(o.buffer, at);
    case OperandForm::Rows: return o.buffer->name + (is_const(at.at(0), 0) ? "" : " + " + expr_.index(at[0]));
    case OperandForm::Registers:
    case OperandForm::Scalar: return expr_.register_element(o.buffer, at);
    case OperandForm::Tile: break;
  }
  throw InternalError("tiles of a warp have no text");
}

// "tc_cp_async16(&tile[k][0], x + k * 64)": as its row of the table spells it.
std::string StmtPrinter::intrin_text(const Intrin& k) {
  const Instruction& row = instruction(k);
  const IntrinCall c = parse(k);
  needs_.byte_products |= row.byte_products;
  needs_.ints |= row.support == SupportText::IntegerVectors;
  needs_.few_bits |= row.support == SupportText::FewBits;
  needs_.byte_tiles |= row.support == SupportText::ByteTiles;
  needs_.transposes |= row.support == SupportText::Transposes;
  const Spelling* spelling = nullptr;
  for (const Spelling& s : spellings(row))
    if (!spelling && (!s.where_last || is_const(c.scalars.back(), *s.where_last))) spelling = &s;
  if (!spelling) throw InternalError("no text for the instruction " + k.name);
  std::vector<std::string> names, texts;
  for (size_t i = 0; i < c.operands.size(); i++) {
    names.emplace_back(row.operand(i).name);
    texts.push_back(operand_text(row.operand(i), c, c.operands[i]));
  }
  for (size_t i = 0; i < c.scalars.size(); i++) {
    names.emplace_back(row.scalars[i].name);
    texts.push_back(row.scalars[i].is_data ? expr_.condition(c.scalars[i]) : expr_.index(c.scalars[i]));
  }
  if (spelling->text.empty()) return "tc_" + k.name + "(" + join(texts, ", ") + ")";
  for (size_t i = 0; i < c.operands.size(); i++) {
    const DTypeInfo& type = info(c.operands[i].buffer->dtype);
    names.push_back(names[i] + ".type"), texts.emplace_back(type.name);
    names.push_back(names[i] + ".bytes"), texts.push_back(to_text(int64_t(type.bytes)));
  }
  return filled(spelling->text, names, texts);
}

void StmtPrinter::print_prefetch(const Prefetch& k) {
  const char* const name = k.level > 1 ? "TC_PREFETCH_L2" : k.level == 0 ? "TC_PREFETCH_WRITE" : "TC_PREFETCH";
  out_.line(std::string(name) + "(" + expr_.pointer(k.buffer, k.index.at(0)) + ");");
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
  bool checks = false;
  walk(k.value, [&](const Expr& x) {
    const Apply* call = as<Apply>(x);
    checks = checks || (call && call->op == Op::Index);
    return !checks;
  });
  return checks && !uses_var(k.body, k.var);
}

void StmtPrinter::declare(const Let& k) {
  if (is_check_alone(k)) {
    const std::string check = expr_.value(k.value);
    const Apply* a = as<Apply>(k.value);
    const bool is_call = a && a->op == Op::Index;
    return out_.line(is_call ? "(void)" + check + ";" : "(void)(" + check + ");");
  }
  if (is_index(k.value)) {
    const std::string value = wide_ ? "int64_t " + k.var->name + " = " + expr_.index(k.value)
                                    : "int " + k.var->name + " = " + expr_.int_index(k.value);
    out_.line("const " + value + ";");
    return;
  }
  if (k.value->dtype == DType::I64) expr_.long_vars.insert(k.var.get());
  note_name(expr_.data_vars, k.var, k.value);
  const bool test = k.value->dtype == DType::Bool && !k.value->vector;
  std::string value = test ? expr_.condition(k.value) : expr_.value(k.value);
  if (test && !is_seen_as_bit(k.value)) value = (as<Select>(k.value) ? "(" + value + ")" : value) + " != 0";
  out_.line("const " + c_type(k.value) + " " + k.var->name + " = " + value + ";");
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
}

void StmtPrinter::print_for(const For& k) {
  if (k.kind == ForKind::Parallel) {
    parts.push_back(k);
    std::string call = part_call;
    auto fill = [&](std::string_view hole, const std::string& text) {
      if (const size_t at = call.find(hole); at != std::string::npos) call.replace(at, hole.size(), text);
    };
    fill("{part}", "part" + (parts.size() > 1 ? to_text(int64_t(parts.size())) : ""));
    fill("{chunks}", expr_.index(k.extent));
    needs_.parallel = true;
    for (const Var& c : part_of(outlined_, k).counters) out_.line("arguments." + c->name + " = " + c->name + ";");
    out_.line(call);
    return;
  }
  print_block(k.kind == ForKind::Unroll ? "TC_UNROLL " + loop_head(k) : loop_head(k), k.body);
}

std::string StmtPrinter::loop_head(const For& k) {
  const std::string type = wide_ ? "int64_t " : "int ", v = k.var->name;
  const std::string begin = wide_               ? expr_.index(k.begin)
                            : is_index(k.begin) ? expr_.int_index(k.begin)
                                                : expr_.count(k.begin);
  return "for (" + type + v + " = " + begin + "; " + v + " < " + expr_.index(simplify(k.begin + k.extent), 10) + "; " +
         v + "++)";
}

void StmtPrinter::print_alloc(const Alloc& k) {
  const Buffer& b = k.buffer;
  const bool vectors = vector_buffers_.count(b.get()) != 0, single = expr_.single_vectors.count(b.get()) != 0;
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
  const bool pairs = t == DType::F64 && is_vector_access(k);  // a structure
  const bool infix = (op == Op::Add || op == Op::Sub || op == Op::Mul) && is_float(t) && !pairs;
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
  const DType t = k.buffer->dtype;
  check(is_float(t), "vectors in registers are partly stored as floats");
  (t == DType::F64 ? needs_.doubles : needs_.tails) = true;
  const Expr value = k.reduce ? apply(*k.reduce, {load(k.buffer, k.index), k.value}) : k.value;
  out_.line(target + " = tc_" + (t == DType::F64 ? "d" : "") + "sel_n(" + expr_.count(k.count) + ", " +
            expr_.vector_operand(value) + ", " + target + ");");
}

namespace {

// A vector of halves is one of f32 while it is in registers: its store rounds, a half that is copied is widened.
Expr in_registers(const Expr& halves) {
  const Broadcast* same = as<Broadcast>(halves);
  const Expr& one = same ? same->value : halves;
  const Cast* rounded = as<Cast>(one);
  return rounded && rounded->value->dtype == DType::F32 ? rounded->value : cast(DType::F32, one);
}

}  // namespace

void StmtPrinter::vector_store(const Store& k) {
  const Ramp* r = as<Ramp>(k.index.back());
  check(r != nullptr, "a vector is stored at a ramp");
  Expr v = k.value;
  if (k.reduce)
    v = apply(*k.reduce, {k.count ? partial(load(k.buffer, k.index), k.count) : load(k.buffer, k.index), v});
  if (k.buffer->dtype == DType::F32 && k.count.get()) needs_.tails = true;
  const std::string f = "tc_store" + lanes_suffix(k.buffer->dtype, needs_), p = expr_.pointer(k.buffer, r->base);
  if (is_half(k.buffer->dtype)) v = in_registers(v);
  const std::string text = expr_.vector_operand(v);
  out_.line(k.count ? f + "_n(" + p + ", " + text + ", " + expr_.count(k.count) + ");"
                    : f + "(" + p + ", " + text + ");");
}

void StmtPrinter::store(const Store& k) {
  if (k.buffer->scope != Scope::Register && is_vector_access(k)) return vector_store(k);
  const std::string target = expr_.element(k.buffer, k.index);
  if (k.count.get()) return partial_store(k, target);
  if (k.reduce) return operator_store(k, target);
  const Broadcast* same = as<Broadcast>(k.value);
  const bool vectors = vector_buffers_.count(k.buffer.get()) != 0;
  if (same || (vectors && !k.value->vector)) return out_.line(target + " = " + expr_.vector_operand(k.value) + ";");
  out_.line(target + " = " + value_of(k) + ";");
}

}  // namespace tc
