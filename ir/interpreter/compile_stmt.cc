#include <algorithm>

#include "ir/interpreter/compiler.h"
#include "ir/loop/build.h"
#include "ir/loop/expand_intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc::interp {
namespace {

int64_t physical_elements(const BufferDef& b) {
  int64_t last = b.offset, product = 1;
  for (size_t d = 0; d < b.shape.size(); ++d) {
    int64_t n = b.shape[d].value;
    check(n >= 0, "buffer \"" + printable(b.name) + "\" has a size that is not known");
    if (n == 0) return 0;
    product = checked_mul(product, n);
    if (!b.strides.empty()) last = checked_add(last, checked_mul(n - 1, b.strides[d]));
  }
  return b.strides.empty() ? checked_add(b.offset, product) : checked_add(last, 1);
}

// Sets a member for the lifetime of a scope.
template <class T>
class Restore {
 public:
  explicit Restore(T& where) : where_(where), old_(where) {}
  ~Restore() { where_ = old_; }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& where_;
  T old_;
};

}  // namespace

void Compiler::bind(const Binding& b) {
  buffers_[b.buffer.get()] = int(program_.buffers.size());
  BufferSlot s;
  s.buffer = b.buffer;
  s.bytes = b.bytes;
  s.elements = physical_elements(*b.buffer);
  s.tracked = options_.check_races;
  program_.buffers.push_back(std::move(s));
}

void Compiler::stmt(const Stmt& s) {
  if (!s) return;
  forget(0);
  Restore top(top_);
  visit(
      s, [&](const Store& k) { store(k); }, [&](const For& k) { for_loop(k); }, [&](const While& k) { while_loop(k); },
      [&](const If& k) { branch(k); }, [&](const Let& k) { let(k); }, [&](const Alloc& k) { alloc(k); },
      [&](const Alias& k) { alias(k); },
      [&](const Seq& k) {
        for (const Stmt& x : k.list) stmt(x);
      },
      [&](const Barrier&) { emit_jump(&barrier_op); }, [&](const Prefetch&) {},
      [&](const Intrin& k) {
        if (const auto* r = meaning_as<ThreadReduction>(k)) return allreduce(k, r->op);
        if (const auto* x = meaning_as<WarpShuffle>(k)) return warp_exchange(k, x->form);
        if (!warp_instruction(k)) stmt(expand_intrin(k));
      },
      [&](const Launch& k) { throw InternalError("the interpreter does not know kernel " + k.kernel); },
      [&](const Comment& k) { stmt(k.body); });
  forget(0);
}

// Every thread of a group combines its value with that of the thread across, then across a half, and so on.
void Compiler::allreduce(const Intrin& k, Op op) {
  const Buffer& value = k.buffers.at(0);
  const auto group = as_const_int(k.args.at(0));
  check(group && threads_.total() % *group == 0, "groups of threads divide the block");
  const Class c = class_of(value->dtype);
  Operand v = shaped(expr(tc::load(value, {})), true, false);
  for (int64_t across = *group / 2; across > 0; across /= 2) {
    const Operand other = new_operand(value->dtype, true, false);
    Instr& i = emit(&lane_exchange, other);
    i.a = v.reg, i.b = int32_t(across), i.aux = bytes_of(c);
    v = binary_instr(binary_fn(op, c), v, other, value->dtype);
    wrap(v);
  }
  const Var all = make_var("all", value->dtype);
  with_variable(all, v, tc::store(value, {}, Expr(all)));
}

// Every lane of a warp gets the value that another one gives.
void Compiler::warp_exchange(const Intrin& k, ShuffleForm form) {
  const Buffer& to = k.buffers.at(0);
  const Operand v = shaped(expr(k.args.at(0)), true, false), by = shaped(expr(k.args.at(1)), true, false);
  const Operand got = new_operand(to->dtype, true, false);
  Instr& i = emit(&warp_shuffle, got);
  i.a = v.reg, i.b = int32_t(form), i.c = by.reg, i.aux = bytes_of(class_of(to->dtype));
  const Var value = make_var("got", to->dtype);
  with_variable(value, got, tc::store(to, {}, Expr(value)));
}

void Compiler::store(const Store& s) {
  Operand v = expr(s.value);
  bool varying = v.varying, vector = false;
  int at = access(s.buffer, s.index, s.count, true, varying, vector);
  check(vector || !v.vector, "a vector is stored at a scalar index of buffer \"" + printable(s.buffer->name) + "\"");
  varying |= in_lanes() && s.reduce.has_value();  // every lane joins
  bool single = !v.varying && !v.vector;
  if (!single) v = shaped(v, varying, vector);
  DType t = s.buffer->dtype;
  Fn fn = s.reduce ? reduce_store_fn(t, *s.reduce) : store_fn(t);
  Instr& i = emit(fn, Operand{0, t, varying, vector});
  i.a = v.reg, i.a_step = !single, i.aux = at;
}

void Compiler::with_variable(const Var& v, const Operand& o, const Stmt& body) {
  auto old = vars_.find(v.get());
  std::optional<Operand> before;
  if (old != vars_.end()) before = old->second;
  vars_[v.get()] = o;
  stmt(body);
  if (before)
    vars_[v.get()] = *before;
  else
    vars_.erase(v.get());
}

// Moves a result to the bottom of the free registers, so that those of its parts can be reused.
Operand Compiler::settle(const Operand& v, int32_t mark) {
  forget(0);
  top_ = mark;
  Operand d = new_operand(v.dtype, v.varying, v.vector);
  if (d.reg != v.reg) emit(move_fn(bytes_of(class_of(v.dtype))), d).a = v.reg;
  return d;
}

void Compiler::let(const Let& l) {
  int32_t mark = top_;
  Operand v = expr(l.value);
  with_variable(l.var, settle(v, mark), l.body);
}

void Compiler::for_loop(const For& f) {
  switch (f.kind) {
    case ForKind::BlockX:
    case ForKind::BlockY:
    case ForKind::BlockZ: return block_loop(f);
    case ForKind::ThreadX:
    case ForKind::ThreadY:
    case ForKind::ThreadZ: return thread_loop(f);
    case ForKind::Fragment: return fragment_loop(f);
    default: break;
  }
  if (!in_lanes()) return runs_in_lanes(f) ? lane_loop(f) : serial_loop(f);
  Operand begin = expr(f.begin), extent = expr(f.extent);
  if (begin.varying || extent.varying)
    masked_loop(f, begin, extent);
  else
    serial_loop(f);
}

void Compiler::serial_loop(const For& f) {
  Operand var = new_operand(DType::I64, false, false), end = new_operand(DType::I64, false, false);
  Operand begin = expr(f.begin), extent = expr(f.extent);
  emit(move_fn(8), var).a = begin.reg;
  size_t skip = emit_jump(&for_begin, extent.reg, true, end.reg);
  program_.code[skip].dst = var.reg;
  int32_t body = int32_t(program_.code.size());
  if (f.kind == ForKind::BlockX || f.kind == ForKind::BlockY || f.kind == ForKind::BlockZ) emit_jump(&next_block);
  with_variable(f.var, var, f.body);
  Instr& next = emit(&for_next, var);
  next.b = end.reg, next.aux = body;
  land(skip);
}

void Compiler::lane_loop(const For& f) {
  Operand base = new_operand(DType::I64, false, false), end = new_operand(DType::I64, false, false);
  Operand var = new_operand(DType::I64, true, false);
  Operand begin = expr(f.begin), extent = expr(f.extent);
  emit(move_fn(8), base).a = begin.reg;
  size_t skip = emit_jump(&for_begin, extent.reg, true, end.reg);
  program_.code[skip].dst = base.reg;
  int32_t batch = int32_t(program_.code.size());
  Instr& first = emit(&lanes_begin, base);
  first.b = end.reg, first.a = var.reg;
  {
    Restore context(lane_context_);
    Restore lane_var(lane_var_);
    lane_context_ = true, lane_var_ = f.var.get(), lane_base_ = base;
    with_variable(f.var, var, f.body);
  }
  Instr& next = emit(&lanes_next, base);
  next.b = end.reg, next.aux = batch;
  land(skip);
}

// Lanes have different bounds: all of them go around together, those that are done are masked.
void Compiler::masked_loop(const For& f, const Operand& begin, const Operand& extent) {
  Operand trip = new_operand(DType::I64, false, false), one = constant(DType::I64, 0, 1),
          zero = constant(DType::I64, 0, 0);
  emit(move_fn(8), trip).a = zero.reg;
  int32_t again = int32_t(program_.code.size());
  Operand more = shaped(binary_instr(compare_fn(Op::Lt, Class::I), trip, extent, DType::Bool), true, false);
  size_t leave = emit_jump(&mask_push, more.reg);
  Operand var = binary_instr(binary_fn(Op::Add, Class::I), begin, trip, DType::I64);
  with_variable(f.var, var, f.body);
  emit_jump(&mask_pop);
  Instr& step = emit(binary_fn(Op::Add, Class::I), trip);
  step.a = trip.reg, step.b = one.reg;
  program_.code[emit_jump(&jump)].aux = again;
  land(leave);
}

// What follows a launch sees everything that it stored, also where it is no launch itself.
void Compiler::block_loop(const For& f) {
  const bool outermost = !in_blocks_;
  Restore blocks(in_blocks_);
  if (outermost) emit_jump(&next_launch);
  in_blocks_ = true;
  serial_loop(f);
  if (outermost) emit_jump(&next_launch);
}

void Compiler::thread_loop(const For& f) {
  bool outermost = !in_threads_;
  Restore threads(in_threads_);
  Restore context(lane_context_);
  Restore lane_var(lane_var_);
  if (outermost) enter_threads(f);
  int axis = f.kind == ForKind::ThreadX ? 0 : f.kind == ForKind::ThreadY ? 1 : 2;
  int64_t sizes[] = {threads_.x, threads_.y, threads_.z};
  Operand var = thread_index_[axis], begin = expr(f.begin), extent = expr(f.extent);
  bool whole = as_const_int(f.extent) == sizes[axis], from_zero = is_const(f.begin, 0);
  if (from_zero && sizes[axis] == threads_.total()) lane_var_ = f.var.get(), lane_base_ = zero_;
  size_t skip = 0;
  if (!whole) {
    Operand inside = binary_instr(compare_fn(Op::Lt, Class::I), var, extent, DType::Bool);
    skip = emit_jump(&mask_push, inside.reg);
  }
  if (!from_zero) var = binary_instr(binary_fn(Op::Add, Class::I), var, begin, DType::I64);
  with_variable(f.var, var, f.body);
  if (!whole) {
    emit_jump(&mask_pop);
    land(skip);
  }
  if (!outermost) return;
  program_.code[emit_jump(&lanes_set)].aux = 1;
  if (!in_blocks_) emit_jump(&next_launch);
}

// Eight groups of four lanes take turns in a loop over rows, the lanes of a group in the one inside: one of the ways to share
// them, and not that of the machine, so that nothing depends on it.
void Compiler::fragment_loop(const For& f) {
  check(in_threads_ && threads_.total() % 32 == 0, "warps of a block share the turns of a fragment loop");
  check(fragment_loops_ < 2, "a fragment loop over rows has one over columns inside");
  Restore depth(fragment_loops_);
  const Operand group = new_operand(DType::I64, true, false);
  Instr& i = emit(&thread_ids, group);
  i.a = fragment_loops_ == 0 ? 4 : 1, i.b = fragment_loops_ == 0 ? 8 : 4;
  fragment_loops_++;
  const Var iterations = make_var("turns_of_lane");
  const Expr own = eq(floor_mod(Expr(f.var), i.b), Expr(iterations));
  with_variable(iterations, group, loop(f.var, f.extent, if_then(own, f.body), ForKind::Serial, f.begin));
}

// All threads of a block are lanes; x runs fastest.
void Compiler::enter_threads(const For& f) {
  if (!in_blocks_) emit_jump(&next_launch);
  threads_ = threads_of(loop(f.var, f.extent, f.body, f.kind, f.begin));
  in_threads_ = lane_context_ = true;
  lane_var_ = nullptr;
  zero_ = constant(DType::I64, 0, 0);
  program_.thread_loop += (program_.thread_loop.empty() ? "\"" : ", \"") + printable(f.var->name) + "\"";
  program_.code[emit_jump(&lanes_set)].aux = int32_t(threads_.total());
  int64_t sizes[] = {threads_.x, threads_.y, threads_.z}, below = 1;
  for (int k = 0; k < 3; ++k) {
    thread_index_[k] = new_operand(DType::I64, true, false);
    Instr& i = emit(&thread_ids, thread_index_[k]);
    i.a = int32_t(below), i.b = int32_t(sizes[k]);
    below *= sizes[k];
  }
}

void Compiler::while_loop(const While& w) {
  int32_t again = int32_t(program_.code.size()), mark = top_;
  Operand c = expr(w.condition);
  size_t leave = emit_jump(c.varying ? &mask_push : &jump_if_zero, c.reg);
  top_ = mark;
  stmt(w.body);
  if (c.varying) emit_jump(&mask_pop);
  program_.code[emit_jump(&jump)].aux = again;
  land(leave);
}

void Compiler::branch(const If& s) {
  int32_t mark = top_;
  Operand c = settle(expr(s.condition), mark);
  size_t skip = emit_jump(c.varying ? &mask_push : &jump_if_zero, c.reg);
  stmt(s.then);
  if (c.varying) {
    emit_jump(&mask_pop);
    land(skip);
    if (!s.otherwise) return;
    skip = emit_jump(&mask_push, c.reg, true, 1);
    stmt(s.otherwise);
    emit_jump(&mask_pop);
  } else if (s.otherwise) {
    size_t done = emit_jump(&jump);
    land(skip);
    stmt(s.otherwise);
    skip = done;
  }
  land(skip);
}

void Compiler::alloc(const Alloc& a) {
  BufferSlot s;
  s.buffer = a.buffer;
  s.elements = physical_elements(*a.buffer);
  Scope scope = a.buffer->scope;
  const bool of_rows = scope == Scope::Fragment && a.buffer->shape.back() == Dim(1);  // TileOperation
  bool own = scope == Scope::Register || scope == Scope::Stack || of_rows;
  if (in_threads_)
    s.sharing = own ? Sharing::Lane : scope == Scope::Warp || scope == Scope::Fragment ? Sharing::Warp : Sharing::All;
  else if (in_lanes())
    s.sharing = Sharing::Lane;
  s.tracked = options_.check_races && (scope == Scope::Shared || scope == Scope::Global);
  int at = int(program_.buffers.size());
  program_.buffers.push_back(std::move(s));
  buffers_[a.buffer.get()] = at;
  program_.code[emit_jump(&alloc_local)].aux = at;
  stmt(a.body);
  buffers_.erase(a.buffer.get());
}

// A view of another type is a pointer; one of the same type reads and writes its base, wherever the lanes' views start.
void Compiler::alias(const Alias& a) {
  const bool shared = a.view->scope == Scope::Shared && a.base->scope == Scope::Shared;
  if (a.view->dtype == a.base->dtype && !shared) {
    check(a.view->shape.size() == 1 && a.base->shape.size() == 1, "views are flat");
    Var start = make_var(a.view->name + "_start");
    auto moved = [&](const Exprs& index) -> Exprs {
      if (auto* r = as<Ramp>(index[0])) return {ramp(r->base + Expr(start))};
      return {index[0]->vector ? index[0] + broadcast(start) : index[0] + Expr(start)};
    };
    auto fe = [&](const Expr& e) -> Expr {
      auto* l = as<Load>(e);
      return l && l->buffer == a.view ? tc::load(a.base, moved(l->index)) : Expr();
    };
    auto stored = [&](const Stmt& s) -> Stmt {
      auto* k = as<Store>(s);
      return k && k->buffer == a.view ? tc::store(a.base, moved(k->index), k->value, k->reduce, k->count) : Stmt();
    };
    auto fs = [&](const Stmt& s) -> Stmt {
      auto* k = as<Intrin>(s);
      const bool reads = k && std::find(k->buffers.begin(), k->buffers.end(), a.view) != k->buffers.end();
      return reads ? rewrite(expand_intrin(*k), fe, stored) : stored(s);
    };
    return let(Let{start, a.offset, rewrite(a.body, fe, fs)});
  }
  auto base = buffers_.find(a.base.get());
  check(base != buffers_.end(), "buffer \"" + printable(a.base->name) + "\" is not bound");
  Operand offset = expr(a.offset);
  check(!offset.varying && program_.buffers[size_t(base->second)].sharing == Sharing::All,
        "views of threads' own buffers");
  BufferSlot s;
  s.buffer = a.view;
  s.elements = physical_elements(*a.view);
  s.tracked = shared && program_.buffers[size_t(base->second)].tracked;
  int at = int(program_.buffers.size());
  program_.buffers.push_back(std::move(s));
  buffers_[a.view.get()] = at;
  size_t i = emit_jump(shared ? &begin_shared_view : &alias_op, offset.reg);
  program_.code[i].b = base->second, program_.code[i].aux = at;
  stmt(a.body);
  buffers_.erase(a.view.get());
}

}  // namespace tc::interp
