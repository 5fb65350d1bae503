// verify_memory: what is alive follows from the steps alone, whatever lifetimes the planner was told.
//
// A tensor is alive where a later step reads it before it is made anew. Going backwards through the steps, a loop is gone through
// until nothing is new: what an iteration reads before it writes comes from the one before. What an iteration adds a part to, as
// the stacked results of a Loop, is made by the loop as a whole.
#include "passes/program/verify_memory.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "support/error.h"

namespace tc {
namespace {

using Roots = std::set<int>;  // of slots

class Liveness {
 public:
  explicit Liveness(const Program& p) : p_(p) {}

  void run() {
    Roots at_end;
    for (size_t i = 0; i < p_.slots.size(); i++)
      if (p_.slots[i].kept) at_end.insert(root(int(i)));
    before(p_.steps, std::move(at_end), {}, true);
  }

 private:
  struct Accesses {
    Roots reads, writes;
    std::optional<std::pair<int64_t, int64_t>> scratch;  // from, to
  };

  int root(int slot) const {
    const int of = p_.slots[size_t(slot)].alias_of;
    return of >= 0 ? of : slot;
  }
  void add(Roots& to, const Operand& o) const {
    if (o.kind == Operand::Kind::Slot) to.insert(root(o.index));
  }
  void add(Roots& to, const std::optional<Operand>& o) const {
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
          a.scratch = {p_.scratch_offset, p_.scratch_offset + k.scratch_bytes};
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
  std::vector<Roots> begun(const std::vector<Step>& list) const {
    std::vector<Roots> all(list.size());
    Roots open;
    for (size_t i = 0; i < list.size(); i++) {
      const Accesses a = accesses(list[i]);
      for (const int r : a.reads) open.erase(r);
      if (adds_part(list[i])) continue;
      for (const int r : a.writes)
        if (open.insert(r).second) all[i].insert(r);
    }
    return all;
  }

  void check_write(int written, const Roots& others) const {
    const Slot& s = p_.slots[size_t(written)];
    for (const int r : others) {
      if (r == written) continue;
      const Slot& o = p_.slots[size_t(r)];
      if (s.offset + s.bytes <= o.offset || o.offset + o.bytes <= s.offset) continue;
      throw InternalError("slot " + std::to_string(written) + " is written over slot " + std::to_string(r) +
                          ", which is still read");
    }
  }
  void check_step(const Accesses& a, const Roots& after) const {
    for (const int w : a.writes) {
      check_write(w, after);
      check_write(w, a.reads);
    }
    if (!a.scratch || a.scratch->first == a.scratch->second) return;
    for (const Roots* list : {&after, &a.reads, &a.writes})
      for (const int r : *list) {
        const Slot& o = p_.slots[size_t(r)];
        if (a.scratch->second <= o.offset || o.offset + o.bytes <= a.scratch->first) continue;
        throw InternalError("scratch memory lies in slot " + std::to_string(r) + ", which is alive");
      }
  }

  /// What is alive before the steps. `behind`: where a ContinueStep may go.
  Roots before(const std::vector<Step>& list, Roots live, const Roots& behind, bool checks) const {
    const std::vector<Roots> begins = begun(list);
    for (size_t i = list.size(); i-- > 0;) {
      if (const IfStep* k = std::get_if<IfStep>(&list[i].kind)) {
        Roots then = before(k->then, live, behind, checks);
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
      for (const int r : begins[i]) live.erase(r);
      live.insert(a.reads.begin(), a.reads.end());
    }
    return live;
  }

  Roots before(const LoopStep& loop, Roots behind, bool checks) const {
    Roots number;
    add(number, loop.iteration);
    Roots live = behind;  // at the end of an iteration: of one that another follows, too
    for (size_t known = live.size() + 1; known != live.size();) {
      known = live.size();
      Roots first = before(loop.body, live, behind, false);
      for (const int r : number) first.erase(r);
      live.merge(first);
    }
    Roots first = before(loop.body, live, behind, checks);
    if (checks)
      for (const int r : number) check_write(r, first);
    for (const int r : number) first.erase(r);
    first.merge(behind);
    for (const Step& s : loop.body)
      if (adds_part(s)) {
        Roots made;
        add(made, std::get<CopyStep>(s.kind).to);
        for (const int r : made) first.erase(r);
      }
    add(first, loop.trip_count);
    add(first, loop.start);
    return first;
  }

  const Program& p_;
};

}  // namespace

void verify_memory(const Program& p) { Liveness(p).run(); }

}  // namespace tc
