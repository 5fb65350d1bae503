// A tensor whose size is chosen at run time has room for the largest size; a run needs the first elements only. A loop
// whose iterations from some number on compute nothing but others ends there. No tail needs a guard: what a tile
// computes beyond the last element has memory of its own.
//   for (i = 0; i < 8; i++)            ->   n = min(max(count, 0), 48)
//     y[6 * i .. 6 * i + 5, :] = ...        for (i = 0; i < (n + 5) / 6; i++) ...
// Chunks of a parallel loop are as many as before, and those behind the last do nothing. Where the largest size is no size that
// a run could have, chunks share what is needed:
//   for (i = part * 123; i < min(part * 123 + 123, n); i++)   ->   each = (n + 7) / 8
//                                                                  for (i = part * each; i < min(part * each + each, n); i++)
// Where iterations are no whole elements of the axis (a chunk of 8192 of [batch][9]), what is needed is the first elements in
// memory:
//   for (v = 0; v < 8192 / VL; v++)       ->   if (part * 8192 < n * 9)
//     y[part * 8192 + v * VL + lanes]            for (v = 0; v < (min(8192, n * 9 - part * 8192) + VL - 1) / VL; v++)
// What a tile of other rows computes behind a loop over tiles is asked for as a whole: if (252 < n).
//
// Preconditions: every store in the loop is to an output that is needed up to a count, at an index along that axis that
// grows with the loop's variable; or to memory that is read in the loop only, of which nothing is left from a time before.
#include "passes/loop/trim_loops.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/loop/build.h"
#include "ir/loop/max_lanes.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/loop/end_of_store.h"
#include "passes/loop/live_stores.h"

namespace tc {
namespace {

using Live = KernelInterface::Live;

class Trim {
 public:
  Trim(const Stmt& body, const std::vector<Live>& live) : live_(live), body_(body), stores_(body, live) {
    for (const Live& l : live) {
      several_axes_ = several_axes_ || l.axis != live[0].axis;
      open_ = open_ || is_open(l);
      if (number_of(l)) continue;
      ends_.push_back({&l, make_var("n")});
      stores_.ranges[ends_.back().n.get()] = {0, extent(l)};
    }
  }

  Stmt run() {
    const Stmt s = statement(body_);
    return s.same_as(body_) ? body_ : with_counts(s, false);
  }

 private:
  /// Reads the counts that `s` needs. `own`: under names of their own, since the chunks of a parallel loop are a function.
  Stmt with_counts(Stmt s, bool own) const {
    std::vector<std::pair<Scheduled::ChosenSize, Var>> sizes;  // that ends are computed from
    for (const End& e : ends_) {
      if (!uses_var(s, e.n)) continue;
      const Var name = own ? make_var(e.n->name) : e.n;
      if (own) s = substitute(s, {{e.n.get(), Expr(name)}});
      const Expr value = value_of(*e.of, sizes);
      s = let(name, value, with_one_name(name, value, s));
    }
    for (const auto& [size, v] : sizes)
      s = let(v, max(min(load(size.buffer, {}), Expr(size.most)), Expr(size.least)), s);
    return s;
  }
  /// Without names of the kernel's own, above its loops, for what `name` is.
  static Stmt with_one_name(const Var& name, const Expr& value, const Stmt& s) {
    const Let* k = as<Let>(s);
    if (!k) return s;
    const Stmt body = with_one_name(name, value, k->body);
    return structurally_equal(k->value, value) ? substitute(body, {{k->var.get(), Expr(name)}})
                                               : let(k->var, k->value, body);
  }
  static int64_t extent(const Live& l) { return l.dims[size_t(l.axis)]; }
  /// Not beyond the tensor, whatever memory says.
  static Expr value_of(const Live& l, std::vector<std::pair<Scheduled::ChosenSize, Var>>& sizes) {
    const Expr largest = extent(l);
    if (as<Load>(l.end)) return max(min(l.end, largest), Expr(0));
    Ranges ranges;
    Expr end = l.end;
    for (const Scheduled::ChosenSize& size : l.sizes) {
      auto known =
          std::find_if(sizes.begin(), sizes.end(), [&](const auto& s) { return s.first.buffer == size.buffer; });
      if (known == sizes.end()) known = sizes.insert(known, {size, make_var("size")});
      end = replace_load(end, size.buffer, Expr(known->second));
      ranges[known->second.get()] = {size.least, size.most};
    }
    return simplify(max(min(end, largest), Expr(0)), ranges);
  }
  /// Is it a size without an upper bound, or computed from one?
  static bool is_open(const Live& l) {
    return std::any_of(l.sizes.begin(), l.sizes.end(), [](const auto& size) { return tc::is_open(size.most); });
  }
  static Expr replace_load(const Expr& e, const Buffer& b, const Expr& by) {
    return rewrite(e, [&](const Expr& x) {
      const Load* l = as<Load>(x);
      return l && l->buffer == b ? by : x;
    });
  }
  Stmt with_own_counts(const Stmt& s) const { return with_counts(s, true); }

  Stmt statement(const Stmt& s) {
    if (const For* f = as<For>(s)) return loop_of(s, *f);
    if (const Seq* k = as<Seq>(s)) {
      Stmts list;
      bool same = true;
      for (const Stmt& x : k->list) {
        if (is_behind_all(x)) {
          same = false;
          continue;
        }
        list.push_back(statement(x));
        for (Made& m : made_) m.reads_before += count_uses(x, m.buffer, false);
        // What stands behind a loop, the rest of its tiles, is needed or not as a whole.
        if (const auto needed = as<Alloc>(x) ? needed_rest(x) : std::nullopt)
          list.back() = if_then(*needed, list.back());
        same = same && list.back().same_as(x);
      }
      return same ? s : seq(std::move(list));
    }
    if (const Let* k = as<Let>(s)) {
      around_.push_back(k->var);
      const Stmt body = statement(k->body);
      around_.pop_back();
      return body.same_as(k->body) ? s : let(k->var, k->value, body);
    }
    if (const If* k = as<If>(s)) {
      const auto where = [&](const Stmt& branch, bool holds) {
        const Ranges all = stores_.ranges;
        assume(stores_.ranges, k->condition, holds);
        const Stmt trimmed = branch ? statement(branch) : branch;
        stores_.ranges = all;
        return trimmed;
      };
      const Stmt then = where(k->then, true), otherwise = where(k->otherwise, false);
      const bool same = then.same_as(k->then) && (!k->otherwise || otherwise.same_as(k->otherwise));
      return same ? s : if_then(k->condition, then, otherwise);
    }
    if (const Alloc* k = as<Alloc>(s)) {
      made_.push_back({k->buffer, 0});
      const Stmt body = statement(k->body);
      made_.pop_back();
      return body.same_as(k->body) ? s : alloc(k->buffer, body);
    }
    if (const Alias* k = as<Alias>(s)) {
      const Stmt body = statement(k->body);
      return body.same_as(k->body) ? s : alias(k->view, k->base, k->offset, body);
    }
    if (const Comment* k = as<Comment>(s)) {
      const Stmt body = statement(k->body);
      return body.same_as(k->body) ? s : comment(k->text, body);
    }
    return s;
  }

  /// The body of a loop, with its own loops ended.
  Stmt inside_of(const For& f) {
    std::vector<Made> outside = std::exchange(made_, {});
    around_.push_back(f.var);
    Stmt body = statement(f.body);
    around_.pop_back();
    made_ = std::move(outside);
    return body;
  }

  Stmt loop_of(const Stmt& s, const For& f) {
    if (f.kind == ForKind::Parallel) return chunks_of(s, f);
    if (f.kind != ForKind::Serial) return s;
    bool exact = false;
    const auto end = end_of(f, exact);
    const Stmt body = end && exact && !several_axes_ ? Stmt(f.body) : inside_of(f);
    if (!end) return body.same_as(f.body) ? s : loop(f.var, f.extent, body, f.kind, f.begin);
    if (const auto elements = elements_of_vectors(f.extent))
      return loop(f.var, vectors_of(*end, *elements, f), body, f.kind, f.begin);
    if (const auto shared = shared_part(f, *end, body)) return *shared;
    const Expr whole = simplify(f.begin + f.extent, stores_.ranges);
    const bool below = as_const_int(whole) && interval(*end, stores_.ranges).max <= *as_const_int(whole);
    return loop(f.var, (below ? *end : min(whole, *end)) - f.begin, body, f.kind, f.begin);
  }

  /// How many vectors have some of `needed` elements, of a loop over as many whole ones as `all` elements have.
  static Expr vectors_of(const Expr& needed, int64_t all, const For& f) {
    const auto vectors = [](const Expr& elements) { return (elements + lanes() - 1) / lanes(); };
    return all % kMaxLanes == 0 ? vectors(min(Expr(all), needed)) : min(f.extent, vectors(needed));
  }

  /// Of a size without bounds: a chunk's loop over one of `parts` equal parts of all iterations, as one of all that are needed.
  std::optional<Stmt> shared_part(const For& f, const Expr& end, const Stmt& body) const {
    const Linear begin = linear_form(f.begin);
    const std::optional<int64_t> extent = as_const_int(f.extent);
    if (!open_ || !extent || begin.constant != 0 || begin.terms.size() != 1 || begin.terms[0].coefficient != *extent)
      return std::nullopt;
    const Expr part = begin.terms[0].atom;
    const Range parts = interval(part, stores_.ranges);
    bool apart = parts.min == 0 && bounded(parts);  // nothing but the loop's ends may say which part this is
    walk(part, [&](const Expr& e) {
      const VarRef* v = as<VarRef>(e);
      apart = apart && (!v || !uses_var(end, v->var));
      return apart;
    });
    if (!apart) return std::nullopt;
    const Var each = make_var("each");
    return let(
        each, floor_div(end + Expr(parts.max), Expr(parts.max + 1)),
        loop(f.var, min(part * Expr(each) + Expr(each), end) - part * Expr(each), body, f.kind, part * Expr(each)));
  }

  /// Does a statement store behind the last element of the largest tensor that a run can have? A border behind a size without an
  /// upper bound, say: it lies where the tensor in front of it has been filled.
  bool is_behind_all(const Stmt& s) const {
    if (!open_ || as<Alloc>(s) || as<Alias>(s)) return false;
    const For alone{make_var("rest"), 0, 1, ForKind::Serial, s};
    bool some = false;
    return each_store(alone,
                      [&](const Live& l, const LiveCoordinate& c) {
                        const auto piece = begin_of(l, c, [&](const Expr& atom) { return stands(atom); });
                        some = true;
                        return piece && !piece->moves && is_open(l) && piece->rest / c.unit > extent(l) / 2;
                      }) &&
           some;
  }

  /// Whether a statement is needed that stores behind the first elements of an axis: as a condition on what stands around it.
  std::optional<Expr> needed_rest(const Stmt& s) const {
    const For alone{make_var("rest"), 0, 1, ForKind::Serial, s};
    std::optional<Expr> all;
    std::set<int> axes;
    for (const Live& l : live_) axes.insert(l.axis);
    for (const int axis : axes) {
      std::optional<Expr> needed;
      const bool ok = each_store(alone, [&](const Live& l, const LiveCoordinate& c) {
        const auto piece = begin_of(l, c, [&](const Expr& atom) { return stands(atom); });
        if (l.axis != axis || !piece || piece->rest < c.unit) return false;  // of the first element: it is no rest
        if (needed && !structurally_equal(*needed, piece->needed)) return false;
        needed = piece->needed;
        return true;
      });
      if (ok && needed) all = all ? *all && *needed : *needed;
    }
    return all;
  }

  /// As many chunks as before: those that nobody needs do nothing.
  Stmt chunks_of(const Stmt& s, const For& f) {
    const auto needed = needed_chunk(f);
    const Stmt body = inside_of(f);
    if (!needed && body.same_as(f.body)) return s;
    return loop(f.var, f.extent, with_own_counts(needed ? if_then(*needed, body) : body), f.kind, f.begin);
  }

  /// Shows every store of the loop to an output that is needed in part; false if there is another that forbids trimming, or
  /// where `each` gives up.
  bool each_store(const For& f, const LiveStores::Serves& each) const {
    bool waits = false;
    walk(f.body, [&](const Stmt& s) {
      waits = waits || as<Barrier>(s);
      return !waits;
    });
    return !waits && stores_.all(
                         f.body, around_, [&](const Buffer& b) { return is_local(f, b); }, each);
  }

  /// The number of the first iteration that is not needed, of a loop over vectors that of its first element; nothing if that
  /// is not known. `exact`: an iteration is one element of the axis, so that loops inside have nothing to trim along it.
  std::optional<Expr> end_of(const For& f, bool& exact) const {
    if (as_const_int(f.extent).value_or(2) < 2) return std::nullopt;
    if (elements_of_vectors(f.extent) && !is_const(f.begin, 0)) return std::nullopt;
    std::optional<Expr> most;
    exact = true;
    const bool ok = each_store(f, [&](const Live& l, const LiveCoordinate& c) {
      const auto here = end_of_store(
          f, *number_of(l), c, stores_, [&](const Expr& atom) { return stands(atom); }, exact);
      if (here) most = !most || structurally_equal(*most, *here) ? *here : max(*most, *here);
      return here.has_value();
    });
    return ok ? most : std::nullopt;
  }

  /// A piece of work: where it begins.
  struct Piece {
    Expr needed;   // it begins in front of what is not needed
    int64_t rest;  // the place of its first element, but for `outside`
    bool moves;    // from one element of the axis to another, by `outside`
  };
  /// Of a store that is at `outside`, terms that are the same in all of the piece, and others; nothing where these have no least.
  template <class Outside>
  std::optional<Piece> begin_of(const Live& l, const LiveCoordinate& c, const Outside& outside) const {
    const auto p = stores_.piece(c, outside);
    if (!p) return std::nullopt;
    return Piece{p->first < Expr(*number_of(l)) * Expr(p->unit), p->rest, p->moves};
  }

  /// Whether a chunk is needed, as a condition on its number: along each axis.
  std::optional<Expr> needed_chunk(const For& f) const {
    std::optional<Expr> all;
    std::set<int> axes;
    for (const Live& l : live_) axes.insert(l.axis);
    for (const int axis : axes)
      if (const auto needed = needed_chunk(f, axis)) all = all ? *all && *needed : *needed;
    return all ? all : needed_chunk(f, {});
  }
  /// Along one axis of all tensors, or along any of each.
  std::optional<Expr> needed_chunk(const For& f, std::optional<int> axis) const {
    std::vector<Expr> conditions;
    const bool ok = each_store(f, [&](const Live& l, const LiveCoordinate& c) {
      if (axis && l.axis != *axis) return false;
      const auto piece = begin_of(l, c, [&](const Expr& atom) { return is_of_chunk(f, atom); });
      if (!piece || !piece->moves) return false;
      for (Expr& e : conditions) {
        const auto later = lies_behind(e, piece->needed);
        if (!later) continue;
        if (*later < 0) e = piece->needed;
        return true;
      }
      conditions.push_back(piece->needed);
      return true;
    });
    if (!ok || conditions.empty()) return std::nullopt;
    Expr any = conditions[0];
    for (size_t k = 1; k < conditions.size(); k++) any = any || conditions[k];
    return any;
  }

  /// By how much x is larger in `b` than in `a`, both x < n of one n.
  static std::optional<int64_t> lies_behind(const Expr& a, const Expr& b) {
    const Apply *x = as<Apply>(a), *y = as<Apply>(b);
    if (!structurally_equal(x->args[1], y->args[1])) return std::nullopt;
    Linear apart = linear_form(y->args[0]);
    apart.add(linear_form(x->args[0]), -1);
    return apart.is_constant() ? std::optional(apart.constant) : std::nullopt;
  }

  /// Does the value depend on the number of the chunk, and on nothing else that changes in the loop?
  static bool is_of_chunk(const For& f, const Expr& e) {
    bool only = true;
    walk(e, [&](const Expr& x) {
      const VarRef* v = as<VarRef>(x);
      only = only && !as<Load>(x) && !as<Lanes>(x) && (!v || v->var == f.var);
      return only;
    });
    return only && uses_var(e, f.var);
  }

  /// Read and written inside of the loop only; or in front of it, too, each time: a sum that the loop adds to.
  bool is_local(const For& f, const Buffer& b) const {
    if (b->scope == Scope::Global) return false;
    const auto made = std::find_if(made_.begin(), made_.end(), [&](const Made& m) { return m.buffer == b; });
    const bool anew = made != made_.end();
    return count_uses(Stmt(f.body), b, !anew) + (anew ? made->reads_before : 0) == count_uses(body_, b, !anew);
  }

  static int count_uses(const Stmt& s, const Buffer& b, bool stores) {
    int n = 0;
    walk(
        s,
        [&](const Stmt& x) {
          if (const Store* k = as<Store>(x)) n += stores && k->buffer == b;
          if (const Intrin* k = as<Intrin>(x)) n += int(std::count(k->buffers.begin(), k->buffers.end(), b));
          if (const Alias* k = as<Alias>(x)) n += k->base == b;
          return true;
        },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) n += l->buffer == b;
          return true;
        });
    return n;
  }

  /// Is it the variable of a loop, or a name, around the one that is looked at?
  bool stands(const Expr& e) const {
    const VarRef* v = as<VarRef>(e);
    return v && std::find(around_.begin(), around_.end(), v->var) != around_.end();
  }
  /// Of a tensor: the first of those that are needed as far, and end there, has it.
  struct End {
    const Live* of = nullptr;
    Var n;
  };
  const Var* number_of(const Live& l) const {
    const auto it = std::find_if(ends_.begin(), ends_.end(), [&](const End& e) {
      return structurally_equal(e.of->end, l.end) && extent(*e.of) == extent(l);
    });
    return it == ends_.end() ? nullptr : &it->n;
  }

  const std::vector<Live>& live_;
  const Stmt& body_;
  LiveStores stores_;
  std::vector<End> ends_;
  bool several_axes_ = false, open_ = false;
  std::vector<Var> around_;
  struct Made {
    Buffer buffer;
    int reads_before = 0;  // the statement that is looked at
  };
  std::vector<Made> made_;  // in front of the loop that is looked at, behind the one around it
};

}  // namespace

Stmt trim_loops(const Stmt& body, const std::vector<KernelInterface::Live>& live) {
  return live.empty() ? body : Trim(body, live).run();
}

}  // namespace tc
