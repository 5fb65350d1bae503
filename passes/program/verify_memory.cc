// verify_memory: what is alive follows from the steps alone, whatever lifetimes the planner was told.
//
// A tensor is alive where a later step reads it before it is made anew. Going backwards through the steps, a loop is gone through
// until nothing is new: what an iteration reads before it writes comes from the one before. What an iteration adds a part to, as
// the stacked results of a Loop, is made by the loop as a whole. Of slots in the same memory the one that was written last is what the
// others have become: at the end of an iteration it is the next state, at the end of a run the state that is kept.
#include "passes/program/verify_memory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "passes/program/plan_memory.h"
#include "support/error.h"

namespace tc {
namespace {

using Slots = std::set<int>;

class Liveness {
 public:
  explicit Liveness(const Program& p) : p_(p) {}

  void run() {
    Slots kept;
    for (size_t i = 0; i < p_.slots.size(); i++)
      if (p_.slots[i].kept) kept.insert(int(i));
    before(p_.steps, become(kept, p_.steps), {}, true);
  }

 private:
  struct Accesses {
    Slots reads, writes;
    std::optional<std::pair<int64_t, int64_t>> scratch;  // from, to
  };

  int root(int slot) const {
    const int of = p_.slots[size_t(slot)].alias_of;
    return of >= 0 ? of : slot;
  }
  bool is_part(int slot) const { return p_.slots[size_t(slot)].within >= 0; }
  static void add(Slots& to, const Operand& o) {
    if (o.kind == Operand::Kind::Slot) to.insert(o.index);
  }
  static void add(Slots& to, const std::optional<Operand>& o) {
    if (o) add(to, *o);
  }

  Accesses accesses(const Step& s) const {
    Accesses a;
    if (const Call* c = std::get_if<Call>(&s.kind)) {
      const Kernel& k = p_.kernels[size_t(c->kernel)];
      for (size_t i = 0; i < c->operands.size(); i++) {
        const bool writes = k.params[i].role == Param::Role::Output;
        add(writes ? a.writes : a.reads, c->operands[i]);
        if (c->operands[i].kind == Operand::Kind::Scratch)
          a.scratch = {p_.scratch_offset, p_.scratch_offset + most_scratch(p_, *c)};
      }
    } else if (const CopyStep* m = std::get_if<CopyStep>(&s.kind)) {
      add(a.reads, m->from);
      add(a.writes, m->to);
    } else if (const ContinueStep* o = std::get_if<ContinueStep>(&s.kind)) {
      add(a.reads, o->condition);
    }
    return a;
  }

  static bool adds_part(const Step& s) {
    const CopyStep* m = std::get_if<CopyStep>(&s.kind);
    return m && m->part == CopyStep::Part::To;
  }

  // Which writes of the list begin a tensor: the first ones, and the first ones behind a reader. Others make more parts of it.
  std::vector<Slots> begun(const std::vector<Step>& list) const {
    std::vector<Slots> all(list.size());
    Slots open;
    for (size_t i = 0; i < list.size(); i++) {
      const Accesses a = accesses(list[i]);
      for (const int r : a.reads) open.erase(r);
      if (adds_part(list[i])) continue;
      for (const int w : a.writes)
        for (const int r : {w, is_part(w) ? root(w) : w})
          if (open.insert(r).second) all[i].insert(r);
    }
    return all;
  }

  // By root, the last of its slots that the steps write.
  void last_written(const std::vector<Step>& list, std::map<int, int>& last) const {
    for (const Step& s : list) {
      if (const IfStep* k = std::get_if<IfStep>(&s.kind)) {
        last_written(k->then, last);
        last_written(k->otherwise, last);
      } else if (const LoopStep* l = std::get_if<LoopStep>(&s.kind)) {
        last_written(l->body, last);
      }
      for (const int w : accesses(s).writes)
        if (!is_part(w)) last[root(w)] = w;
    }
  }
  /// What holds these behind the steps.
  Slots become(const Slots& slots, const std::vector<Step>& list) const {
    std::map<int, int> last;
    last_written(list, last);
    Slots now;
    for (const int s : slots) {
      const auto it = is_part(s) ? last.end() : last.find(root(s));
      now.insert(it == last.end() ? s : it->second);
    }
    return now;
  }

  /// Is a byte of the slot among those from `begin` to `end`?
  static bool has_some(const Slot& s, int64_t begin, int64_t end) {
    return std::max(s.offset, begin) < std::min(s.offset + s.bytes, end);
  }
  void check_write(int written, const Slots& others) const {
    const Slot& s = p_.slots[size_t(written)];
    for (const int r : others) {
      if (r == written) continue;
      const Slot& o = p_.slots[size_t(r)];
      if (root(r) == root(written) && (is_part(r) || is_part(written))) continue;
      if (!has_some(o, s.offset, s.offset + s.bytes)) continue;
      throw InternalError("slot " + std::to_string(written) + " is written over slot " + std::to_string(r) +
                          ", which is still read");
    }
  }
  void check_step(const Accesses& a, const Slots& after) const {
    for (const int w : a.writes) {
      check_write(w, after);
      for (const int r : a.reads)
        if (root(r) != root(w)) check_write(w, {r});  // else it is computed in place
    }
    if (!a.scratch || a.scratch->first == a.scratch->second) return;
    for (const Slots* list : {&after, &a.reads, &a.writes})
      for (const int r : *list) {
        if (!has_some(p_.slots[size_t(r)], a.scratch->first, a.scratch->second)) continue;
        throw InternalError("scratch memory lies in slot " + std::to_string(r) + ", which is alive");
      }
  }

  /// What is alive before the steps. `behind`: where a ContinueStep may go.
  Slots before(const std::vector<Step>& list, Slots live, const Slots& behind, bool checks) const {
    const std::vector<Slots> begins = begun(list);
    for (size_t i = list.size(); i-- > 0;) {
      if (const IfStep* k = std::get_if<IfStep>(&list[i].kind)) {
        Slots then = before(k->then, live, behind, checks);
        live = before(k->otherwise, std::move(live), behind, checks);
        live.merge(then);
        add(live, k->condition);
        continue;
      }
      if (const LoopStep* k = std::get_if<LoopStep>(&list[i].kind)) {
        live = before(*k, std::move(live), checks);
        continue;
      }
      const Accesses a = accesses(list[i]);
      if (std::holds_alternative<ContinueStep>(list[i].kind)) live.insert(behind.begin(), behind.end());
      if (checks) check_step(a, live);
      for (const int r : begins[i]) std::erase_if(live, [&](int s) { return s == r || (is_part(s) && root(s) == r); });
      live.insert(a.reads.begin(), a.reads.end());
    }
    return live;
  }

  Slots before(const LoopStep& loop, Slots behind, bool checks) const {
    Slots number;
    add(number, loop.iteration);
    const Slots results = become(behind, loop.body);
    Slots live = results;  // at the end of an iteration: of one that another follows, too
    for (size_t known = live.size() + 1; known != live.size();) {
      known = live.size();
      Slots first = before(loop.body, live, results, false);
      for (const int r : number) first.erase(r);
      live.merge(become(first, loop.body));
    }
    Slots first = before(loop.body, live, results, checks);
    if (checks)
      for (const int r : number) check_write(r, first);
    for (const int r : number) first.erase(r);
    first.merge(behind);
    for (const Step& s : loop.body)
      if (adds_part(s))
        for (const int w : accesses(s).writes) first.erase(w);
    add(first, loop.trip_count);
    add(first, loop.start);
    return first;
  }

  const Program& p_;
};

}  // namespace

void verify_memory(const Program& p) { Liveness(p).run(); }

}  // namespace tc
