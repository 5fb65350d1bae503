// vectorize_loops: memory is accessed up to 16 bytes at a time (CUDA).
//
//   vector j in 0 .. +4:                                alloc b_v[4], y_v[4]
//     y[n + j] = max(acc[i, j] + b[n + j], 0)     ->      load4(b_v, b[n])
//                                                         unroll j in 0 .. +4: y_v[j] = max(acc[i, j] + b_v[j], 0)
//                                                         store4(y[n], y_v)
//
// A loop of kind Vector with so many iterations that the elements stored have 2, 4, 8 or 16 bytes together, whose body
// stores to a run of global or scratch memory that moves by one element an iteration and begins at a multiple of these
// bytes, as it follows from the coefficients of the index and from what the lets around say. Reads of the same form
// that are made in every iteration are gathered too; others stay. Results that are a row of registers already are
// stored from there. Of a loop that stores to registers the reads are gathered, also those of `inside ? x[..] : 0`, where the
// condition is the same for all iterations. A loop of another form is unrolled, one of a run-time extent stays
// as it is. Arrays begin at multiples of 16 bytes. Needs: flattened buffers; runs before pointers are hoisted. Leaves: no loop
// of kind Vector.
#include "passes/loop/vectorize_loops.h"

#include <map>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr int64_t kBytes = 16;  // at most

}  // namespace

int64_t multiple_of(const Expr& e, const Multiples& known) {
  if (const auto n = as_const_int(e)) return std::abs(*n);
  if (const VarRef* v = as<VarRef>(e)) {
    const auto it = known.find(v->var.get());
    return it == known.end() ? 1 : it->second;
  }
  const Apply* k = as<Apply>(e);
  if (!k || k->args.size() != 2) return 1;
  const int64_t a = multiple_of(k->args[0], known), b = multiple_of(k->args[1], known);
  switch (k->op) {
    case Op::Add:
    case Op::Sub: return std::gcd(a, b);
    case Op::Mul: return a * b < 1 << 20 ? a * b : std::max(a, b);
    case Op::Mod:
    case Op::FloorMod: return as_const_int(k->args[1]) ? std::gcd(a, b) : 1;
    case Op::Div:
    case Op::FloorDiv: return as_const_int(k->args[1]) && b > 0 && a % b == 0 ? a / b : 1;
    default: return 1;
  }
}

namespace {

class Vectorizer {
 public:
  Stmt stmt(const Stmt& s) {
    if (!s) return s;
    if (const Let* k = as<Let>(s)) {
      multiples_[k->var.get()] = multiple_of(k->value, multiples_);
      return let(k->var, k->value, stmt(k->body));
    }
    if (const For* k = as<For>(s)) {
      if (k->kind == ForKind::Vector) return vector_loop(*k);
      return loop(k->var, k->extent, stmt(k->body), k->kind, k->begin);
    }
    if (const Seq* k = as<Seq>(s)) {
      Stmts list;
      for (const Stmt& x : k->list) list.push_back(stmt(x));
      return seq(std::move(list));
    }
    if (const If* k = as<If>(s)) return if_then(k->condition, stmt(k->then), stmt(k->otherwise));
    if (const While* k = as<While>(s)) return while_loop(k->condition, stmt(k->body));
    if (const Alloc* k = as<Alloc>(s)) return alloc(k->buffer, stmt(k->body));
    if (const Alias* k = as<Alias>(s)) return alias(k->view, k->base, k->offset, stmt(k->body));
    if (const Comment* k = as<Comment>(s)) return comment(k->text, stmt(k->body));
    return s;
  }

 private:
  static bool in_memory(const Buffer& b) { return b->scope == Scope::Global || b->scope == Scope::Workspace; }

  // The index of the first iteration, if `index` is that plus the loop's variable, on 16 bytes.
  Expr first_of(const Buffer& b, const Exprs& index, const For& f) const {
    if (!in_memory(b) || index.size() != 1 || info(b->dtype).bits < 8) return {};
    const int64_t n = as_const_int(f.extent).value_or(0), bytes = n * info(b->dtype).bytes;
    if (n < 2 || bytes < 2 || bytes > kBytes || (bytes & (bytes - 1)) != 0) return {};
    const auto at = affine_in(index[0], {f.var});
    if (!at || at->coefficients[0] != 1) return {};
    const Expr first = simplify(at->rest + f.begin);
    return multiple_of(first, multiples_) % n == 0 ? first : Expr();
  }

  Stmt vector_loop(const For& f) {
    lanes_ = as_const_int(f.extent).value_or(0);
    // Compilers warn of an unrolling that they cannot do.
    if (lanes_ == 0) return loop(f.var, f.extent, f.body, ForKind::Serial, f.begin);
    const Stmt unrolled = loop(f.var, f.extent, f.body, ForKind::Unroll, f.begin);
    std::vector<std::pair<Var, Expr>> lets;
    Stmt body = f.body;
    while (const Let* k = as<Let>(body)) {
      lets.push_back({k->var, k->value});
      body = k->body;
    }
    const Store* out = as<Store>(body);
    const Expr first = out && !out->reduce && !out->count ? first_of(out->buffer, out->index, f) : Expr();
    const Expr lane = Expr(f.var) - f.begin;
    gathered_.clear();
    if (!first) return out && lets.empty() ? into_registers(f, *out, lane) : unrolled;
    out_ = {out->buffer, {first}};
    for (auto& [v, value] : lets) value = gather(value, f, lane);
    const Expr value = gather(out->value, f, lane);
    const IntrinOperand to{out->buffer, {first}};
    Stmt s;
    if (const auto row = lets.empty() ? row_of_registers(value, lane) : std::nullopt) {
      s = store_vector(to, *row);
    } else {
      const Buffer result = array_like(out->buffer);
      s = store(result, {lane}, value);
      for (size_t i = lets.size(); i-- > 0;) s = let(lets[i].first, lets[i].second, s);
      s = loop(f.var, f.extent, s, ForKind::Unroll, f.begin);
      s = alloc(result, seq({s, store_vector(to, {result, {}})}));
    }
    return behind_loads(s, f);
  }

  // What is joined into registers: its reads are gathered.
  Stmt into_registers(const For& f, const Store& out, const Expr& lane) {
    Stmt unrolled = loop(f.var, f.extent, f.body, ForKind::Unroll, f.begin);
    if (out.buffer->scope != Scope::Register || bool(out.count)) return unrolled;
    out_ = {out.buffer, {}}, fills_ = true;
    const Expr value = gather(out.value, f, lane);
    fills_ = false;
    if (gathered_.empty()) return unrolled;
    const Stmt each = store(out.buffer, out.index, value, out.reduce);
    return behind_loads(loop(f.var, f.extent, each, ForKind::Unroll, f.begin), f);
  }

  // `s` behind the reads of all arrays.
  Stmt behind_loads(Stmt s, const For& f) const {
    for (size_t i = gathered_.size(); i-- > 0;) {
      const Gathered& g = gathered_[i];
      Stmt read = intrin("load" + to_text(lanes_), {{g.array, {}}, {g.from, {g.first}}});
      if (g.inside) {
        const Expr lane = Expr(f.var) - f.begin;
        const Stmt fill = loop(f.var, f.extent, store(g.array, {lane}, g.otherwise), ForKind::Unroll, f.begin);
        read = seq({fill, if_then(g.inside, read)});
      }
      s = alloc(g.array, seq({read, s}));
    }
    return s;
  }

  // The row of registers whose elements the iterations read one after the other: there is nothing left to gather.
  std::optional<IntrinOperand> row_of_registers(const Expr& value, const Expr& lane) const {
    const Load* l = as<Load>(value);
    if (!l || l->buffer->scope != Scope::Register || l->index.empty() || l->buffer->shape.back().value != lanes_)
      return {};
    if (!structurally_equal(simplify(l->index.back()), simplify(lane))) return {};
    return IntrinOperand{l->buffer, Exprs(l->index.begin(), l->index.end() - 1)};
  }
  Stmt store_vector(const IntrinOperand& to, const IntrinOperand& from) const {
    return intrin("store" + to_text(lanes_), {to, from});
  }

  // Reads that are made in every iteration come from arrays.
  Expr gather(const Expr& e, const For& f, const Expr& lane) {
    if (const Load* l = as<Load>(e)) {
      const Expr first = first_of(l->buffer, l->index, f);
      // Of the tensor that is written, only the elements that this very vector replaces are sure to be old.
      const bool old = bool(first) && (l->buffer != out_.buffer || structurally_equal(first, out_.index[0]));
      return old ? load(array_of(l->buffer, first), {lane}) : e;
    }
    if (const Apply* k = as<Apply>(e)) {
      if (k->op == Op::And || k->op == Op::Or || k->op == Op::Index) return e;
      Exprs args;
      bool changed = false;
      for (const Expr& a : k->args) {
        args.push_back(gather(a, f, lane));
        changed |= !args.back().same_as(a);
      }
      return changed ? apply(k->op, std::move(args)) : e;
    }
    if (const Cast* k = as<Cast>(e)) {
      const Expr v = gather(k->value, f, lane);
      return v.same_as(k->value) ? e : cast(e->dtype, v, k->saturate);
    }
    if (const Select* k = as<Select>(e)) {  // its sides are read or not
      if (const Expr read = fills_ ? gather_inside(*k, f, lane) : Expr()) return cast(e->dtype, read);
      const Expr c = gather(k->condition, f, lane);
      return select(c, gathered(k->yes, f, lane), gathered(k->no, f, lane));
    }
    return e;
  }

  // `inside ? x[..] : number`, where all iterations are inside or none: the array has the number where nothing is read. Null:
  // of another form.
  Expr gather_inside(const Select& k, const For& f, const Expr& lane) {
    const Cast* widened = as<Cast>(k.yes);
    const Load* l = as<Load>(widened ? widened->value : k.yes);
    const auto number = as_const_number(k.no);
    if (!l || !number || uses_var(k.condition, f.var)) return {};
    if (widened && !(is_narrow_float(l->buffer->dtype) && k.yes->dtype == DType::F32)) return {};
    const Expr first = l->buffer == out_.buffer ? Expr() : first_of(l->buffer, l->index, f);
    const Expr otherwise = make_const(l->buffer->dtype, *number);
    if (!first || as_const_number(otherwise) != number) return {};
    gathered_.push_back({array_like(l->buffer), l->buffer, first, k.condition, otherwise});
    return load(gathered_.back().array, {lane});
  }

  // What is in arrays already comes from there.
  Expr gathered(const Expr& e, const For& f, const Expr& lane) const {
    return rewrite(e, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      const Expr first = l ? first_of(l->buffer, l->index, f) : Expr();
      if (!first) return {};
      for (const Gathered& g : gathered_)
        if (!g.inside && g.from == l->buffer && structurally_equal(g.first, first)) return load(g.array, {lane});
      return {};
    });
  }

  struct Gathered {
    Buffer array, from;
    Expr first;
    Expr inside = {}, otherwise = {};  // where something is read, and what there is elsewhere; null: everywhere
  };
  Buffer array_of(const Buffer& from, const Expr& first) {
    for (const Gathered& g : gathered_)
      if (!g.inside && g.from == from && structurally_equal(g.first, first)) return g.array;
    gathered_.push_back({array_like(from), from, first});
    return gathered_.back().array;
  }
  Buffer array_like(const Buffer& b) const {
    return make_buffer(b->name + "_v", b->dtype, {Dim(lanes_)}, Scope::Register);
  }

  Multiples multiples_;
  IntrinOperand out_;  // where the vector goes
  int64_t lanes_ = 0;
  bool fills_ = false;  // arrays may be filled where a condition holds
  std::vector<Gathered> gathered_;
};

}  // namespace

Stmt vectorize_loops(const Stmt& s) { return Vectorizer().stmt(s); }

}  // namespace tc
