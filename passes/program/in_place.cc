// in_place: a kernel updates a tensor.
//
//   y[i] = max(acc + r[i], 0)     ->     y[i] = max(acc + y[i], 0)        y takes over the memory of r
//
// An element of r that is read in the statement which writes the same element of y is read in time. What could spoil it
// is another write to that element before. Every element is written at least once, for outputs are complete; where the
// writes that the loops make are as many as the elements, each is written exactly once. They are counted, for every
// number of lanes: so bodies with conditions around a write are refused; but where states would be copied, the condition that
// there is an element for a thread is counted, too.
//
//   y = x;  y[at[i]] = u[i]       ->     x[at[i]] = u[i]              a copy that comes first falls away
#include "passes/program/in_place.h"

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/program/guarded_loops.h"

namespace tc {
namespace {

using Buffers = std::vector<const BufferDef*>;

bool among(const Buffers& list, const Buffer& b) { return std::find(list.begin(), list.end(), b.get()) != list.end(); }

// A parameter and the flat buffers that stand for its memory.
Buffers memory_of(const Scheduled& s, const Buffer& b) {
  Buffers list{b.get()};
  for (const auto& [flat, of] : s.views)
    if (of == b) list.push_back(flat.get());
  return list;
}

// Counts the elements that a statement writes to one memory, and looks for reads of another.
class Writes {
 public:
  Writes(Buffers to, Buffers from, int64_t lanes, bool guards)
      : to_(std::move(to)), from_(std::move(from)), lanes_(lanes), guards_(guards) {}

  /// nullopt: not known, or something is in the way.
  std::optional<int64_t> count(const Stmt& s) {
    if (!s) return 0;
    if (const Store* k = as<Store>(s)) return store(*k);
    if (const For* k = as<For>(s)) return iterations(*k);
    if (const Seq* k = as<Seq>(s)) return all_of(*k);
    if (const If* k = as<If>(s); k && guards_ && !untouched(s)) return guarded(*k);
    if (const Let* k = as<Let>(s)) {
      loops_.define(k->var, k->value);
      return reads(k->value) ? std::nullopt : count(k->body);
    }
    if (const Alloc* k = as<Alloc>(s)) return count(k->body);
    if (const Comment* k = as<Comment>(s)) return count(k->body);
    return untouched(s) ? std::optional<int64_t>(0) : std::nullopt;
  }

 private:
  std::optional<int64_t> iterations(const For& k) {
    loops_.enter(k);
    const auto each = reads(k.extent) || reads(k.begin) ? std::nullopt : count(k.body);
    const auto times = loops_.counted(k) ? std::optional<int64_t>(1) : number(k.extent);
    loops_.leave(k);
    if (!each || *each == 0) return each;
    return times ? std::optional(checked_mul(*times, *each)) : std::nullopt;
  }
  // A loop whose iterations a condition counts has them for all that is in it.
  std::optional<int64_t> all_of(const Seq& k) {
    int64_t sum = 0, parts = 0;
    const size_t before = loops_.num_counted();
    for (const Stmt& x : k.list) {
      const auto n = count(x);
      if (!n) return {};
      sum = checked_add(sum, *n);
      parts += *n > 0 ? 1 : 0;
    }
    if (parts > 1 && loops_.num_counted() != before) return {};
    return sum;
  }
  std::optional<int64_t> guarded(const If& k) {
    if (k.otherwise || reads(k.condition)) return {};
    const auto each = count(k.then);
    const auto times = loops_.count(k.condition);
    return each && times ? std::optional(checked_mul(*times, *each)) : std::nullopt;
  }
  std::optional<int64_t> store(const Store& k) const {
    bool fits = true;
    for (const Expr& e : k.index) fits = fits && !reads(e);
    const bool ours = among(to_, k.buffer);
    walk(k.value, [&](const Expr& e) {
      const Load* l = as<Load>(e);
      if (l && among(to_, l->buffer)) fits = false;
      if (l && among(from_, l->buffer)) {
        fits = fits && ours && l->index.size() == k.index.size();
        for (size_t d = 0; fits && d < k.index.size(); d++)
          fits = structurally_equal(simplify(l->index[d]), simplify(k.index[d]));
      }
      return fits;
    });
    if (!fits || (ours && k.reduce)) return {};
    if (!ours) return 0;
    if (!k.value->vector) return 1;
    return k.count ? number(k.count) : std::optional(lanes_);
  }

  std::optional<int64_t> number(const Expr& e) const {
    const Expr fixed = rewrite(e, [&](const Expr& x) { return as<Lanes>(x) ? Expr(lanes_) : Expr(); });
    return as_const_int(simplify(fixed));
  }
  bool reads(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const Load* l = as<Load>(x);
      found = found || (l && (among(from_, l->buffer) || among(to_, l->buffer)));
      return !found;
    });
    return found;
  }
  // Statements of other kinds must keep away from both; prefetches may not.
  bool untouched(const Stmt& s) const {
    bool found = false;
    walk(
        s,
        [&](const Stmt& x) {
          if (const Store* k = as<Store>(x)) found = found || among(to_, k->buffer);
          if (const Alias* k = as<Alias>(x)) found = found || among(to_, k->base) || among(from_, k->base);
          if (const Intrin* k = as<Intrin>(x))
            for (const Buffer& b : k->buffers) found = found || among(to_, b) || among(from_, b);
          return !found;
        },
        [&](const Expr& e) {
          found = found || reads(e);
          return false;
        });
    return !found;
  }

  const Buffers to_, from_;
  const int64_t lanes_;
  const bool guards_;
  GuardedLoops loops_;
};

// The first of a list of statements.
const Stmt& first_of(const Stmt& s) {
  if (const Seq* k = as<Seq>(s)) return first_of(k->list.front());
  if (const Comment* k = as<Comment>(s)) return first_of(k->body);
  if (const Alloc* k = as<Alloc>(s)) return first_of(k->body);
  return s;
}

Stmt without_first(const Stmt& s) {
  if (const Seq* k = as<Seq>(s)) {
    Stmts rest(k->list.begin() + 1, k->list.end());
    if (const Stmt first = without_first(k->list.front())) rest.insert(rest.begin(), first);
    return rest.empty() ? Stmt() : seq(std::move(rest));
  }
  if (const Comment* k = as<Comment>(s)) {
    const Stmt body = without_first(k->body);
    return body ? comment(k->text, body) : Stmt();
  }
  if (const Alloc* k = as<Alloc>(s)) {
    const Stmt body = without_first(k->body);
    return body ? alloc(k->buffer, body) : Stmt();
  }
  return Stmt();
}

/// Loops that do nothing but to[i] = from[i], once for each element?
bool is_copy(const Stmt& s, const Buffers& to, const Buffers& from, int64_t elements, bool guards) {
  bool plain = true;
  walk(s, [&](const Stmt& x) {
    const Store* k = as<Store>(x);
    const Load* l = k ? as<Load>(k->value) : nullptr;
    if (k) plain = plain && l && among(to, k->buffer) && among(from, l->buffer);
    return plain && (k || (guards && as<If>(x)) || as<For>(x) || as<Let>(x) || as<Seq>(x) || as<Comment>(x));
  });
  if (!plain) return false;
  for (const int64_t lanes : {1, 4, 8, 16})
    if (Writes(to, from, lanes, guards).count(s) != elements) return false;
  return true;
}

bool touches(const Stmt& s, const Buffers& memory) {
  bool found = false;
  walk(
      s,
      [&](const Stmt& x) {
        if (const Store* k = as<Store>(x)) found = found || among(memory, k->buffer);
        if (const Alias* k = as<Alias>(x)) found = found || among(memory, k->base);
        if (const Intrin* k = as<Intrin>(x))
          for (const Buffer& b : k->buffers) found = found || among(memory, b);
        return !found;
      },
      [&](const Expr& e) {
        if (const Load* l = as<Load>(e)) found = found || among(memory, l->buffer);
        return !found;
      });
  return found;
}

/// Does `s` begin with a copy of operand k, which it does not look at afterwards?
bool begins_with_copy(const Scheduled& s, size_t k, int64_t elements, bool guards) {
  const Buffers to = memory_of(s, s.outputs[0]), from = memory_of(s, s.inputs[k]);
  if (!is_copy(first_of(s.body), to, from, elements, guards)) return false;
  const Stmt rest = without_first(s.body);
  return rest && !touches(rest, from);
}

}  // namespace

bool may_be_in_place(const Scheduled& s, size_t k, bool guards) {
  if (s.outputs.size() != 1) return false;
  const Buffer &from = s.inputs.at(k), &to = s.outputs[0];
  if (from->dtype != to->dtype || !is_static(from->shape) || !is_static(to->shape)) return false;
  const int64_t elements = num_elements(static_dims(to->shape));
  if (num_elements(static_dims(from->shape)) != elements) return false;
  if (begins_with_copy(s, k, elements, guards)) return true;
  for (const int64_t lanes : {1, 4, 8, 16})
    if (Writes(memory_of(s, to), memory_of(s, from), lanes, guards).count(s.body) != elements) return false;
  return true;
}

Scheduled in_place(Scheduled s, size_t k, bool guards) {
  const Buffer from = s.inputs.at(k);
  const Buffers to = memory_of(s, s.outputs.at(0));
  if (begins_with_copy(s, k, num_elements(static_dims(from->shape)), guards)) {
    s.body = without_first(s.body);
    std::erase_if(s.views, [&](const Scheduled::View& v) { return v.of == from; });
    s.inputs.erase(s.inputs.begin() + std::ptrdiff_t(k));
    s.input_index.erase(s.input_index.begin() + std::ptrdiff_t(k));
    s.replaced = from->name;
    return s;
  }
  Buffer written;
  walk(s.body, [&](const Stmt& x) {
    const Store* w = as<Store>(x);
    if (w && among(to, w->buffer)) written = w->buffer;
    return !written;
  });
  BufferMap map;
  for (const BufferDef* b : memory_of(s, from)) map[b] = written;
  s.body = substitute_buffers(s.body, map);
  std::erase_if(s.views, [&](const Scheduled::View& v) { return v.of == from; });
  s.inputs.erase(s.inputs.begin() + std::ptrdiff_t(k));
  s.input_index.erase(s.input_index.begin() + std::ptrdiff_t(k));
  s.replaced = from->name;
  return s;
}

}  // namespace tc
