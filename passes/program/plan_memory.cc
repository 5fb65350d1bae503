// plan_memory: offsets in one arena.
//
// One tensor after the other, each at the lowest offset where it overlaps nobody that is alive together with it: the largest
// first (greedy by size; Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020), or those
// first that live together with most bytes of others (TVM's greedy by conflicts), whichever takes less. Scratch memory of kernels is one range that begins at the same
// place for all of them, and lies where the tensors that live during the calls do not: before them, or wherever they leave
// room. Graphs of very many tensors are planned in order of first use instead, which needs no pairwise comparison of all
// of them.
// Needs: first and last step of every slot. Leaves: offsets; aliases lie where their roots do, parts inside of them.
#include "passes/program/plan_memory.h"

#include <algorithm>
#include <map>

namespace tc {
namespace {

constexpr size_t kPairwiseLimit = 4000;

bool alive_together(const Slot& a, const Slot& b) { return a.first <= b.last && b.first <= a.last; }

// Rounds sizes up, so that every tensor starts on `to` bytes.
struct Align {
  int64_t to;
  int64_t operator()(int64_t n) const { return (n + to - 1) / to * to; }
};

// The bytes of scratch memory that are needed while steps of a range run: a table by steps.
class Scratch {
 public:
  Scratch(const std::vector<ScratchUse>& uses, Align aligned) {
    for (const ScratchUse& u : uses) {
      int64_t& bytes = bytes_[u.step];
      bytes = std::max(bytes, aligned(u.bytes));
    }
  }
  const std::map<int, int64_t>& by_step() const { return bytes_; }
  int64_t most(int first, int last) const {
    int64_t bytes = 0;
    for (auto it = bytes_.lower_bound(first); it != bytes_.end() && it->first <= last; ++it)
      bytes = std::max(bytes, it->second);
    return bytes;
  }

 private:
  std::map<int, int64_t> bytes_;
};

// `scratch_at`: where scratch memory lies, of which slot i must leave alone needs[i] bytes.
void assign_in_order(std::vector<Slot>& slots, const std::vector<int>& order, int64_t scratch_at,
                     const std::vector<int64_t>& needs, Align aligned) {
  std::vector<int> assigned;  // by offset
  for (const int i : order) {
    Slot& s = slots[size_t(i)];
    int64_t at = 0;
    const auto behind_scratch = [&] {
      const int64_t need = needs[size_t(i)];
      if (need > 0 && at < scratch_at + need && scratch_at < at + aligned(s.bytes)) at = scratch_at + need;
    };
    behind_scratch();
    for (const int j : assigned) {
      const Slot& o = slots[size_t(j)];
      if (!alive_together(s, o)) continue;
      if (at + aligned(s.bytes) <= o.offset) break;
      at = std::max(at, o.offset + aligned(o.bytes));
      behind_scratch();
    }
    s.offset = at;
    const auto where = std::upper_bound(assigned.begin(), assigned.end(), at,
                                        [&](int64_t v, int j) { return v < slots[size_t(j)].offset; });
    assigned.insert(where, i);
  }
}

int64_t end_of(const std::vector<Slot>& slots, const std::vector<int>& roots, Align aligned) {
  int64_t end = 0;
  for (const int i : roots) end = std::max(end, checked_add(slots[size_t(i)].offset, aligned(slots[size_t(i)].bytes)));
  return end;
}

// The lowest offset at which scratch memory meets no tensor that is alive.
int64_t place_scratch(const std::vector<Slot>& slots, const std::vector<int>& roots, const Scratch& scratch,
                      Align aligned) {
  int64_t at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const int i : roots) {
      const Slot& s = slots[size_t(i)];
      if (s.bytes == 0 || at >= s.offset + aligned(s.bytes)) continue;
      const int64_t need = scratch.most(s.first, s.last);
      if (need == 0 || at + need <= s.offset) continue;
      at = s.offset + aligned(s.bytes);
      moved = true;
    }
  }
  return at;
}

// Orders in which tensors are placed.
std::vector<std::vector<int>> orders_of(const std::vector<Slot>& slots, const std::vector<int>& roots) {
  std::vector<int64_t> conflicts(slots.size(), 0);
  for (const int i : roots)
    for (const int j : roots)
      if (alive_together(slots[size_t(i)], slots[size_t(j)])) conflicts[size_t(i)] += slots[size_t(j)].bytes;
  std::vector<int> by_size = roots, by_conflicts = roots;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](int a, int b) { return slots[size_t(a)].bytes > slots[size_t(b)].bytes; });
  std::stable_sort(by_conflicts.begin(), by_conflicts.end(),
                   [&](int a, int b) { return conflicts[size_t(a)] > conflicts[size_t(b)]; });
  return {by_size, by_conflicts};
}

// The order, and the place of scratch memory, that take the least; the first of equal ones. Returns where scratch lies:
// where the tensors leave room, before them, or at the end of `bound` bytes.
int64_t assign_pairwise(std::vector<Slot>& slots, const std::vector<int>& roots, const Scratch& scratch, int64_t bound,
                        Align aligned) {
  int64_t best = -1, scratch_at = 0;
  const int64_t most = scratch.most(INT32_MIN, INT32_MAX);
  std::vector<int64_t> offsets(slots.size(), 0), needs(slots.size(), 0), none(slots.size(), 0);
  for (const int i : roots) needs[size_t(i)] = scratch.most(slots[size_t(i)].first, slots[size_t(i)].last);
  std::vector<int64_t> places = {-1};
  if (most > 0) places.insert(places.end(), {0, bound - most});
  for (const auto& order : orders_of(slots, roots))
    for (const int64_t place : places) {
      assign_in_order(slots, order, place, place < 0 ? none : needs, aligned);
      const int64_t at = place < 0 ? place_scratch(slots, roots, scratch, aligned) : place;
      const int64_t bytes = std::max(end_of(slots, roots, aligned), at + most);
      if (best >= 0 && bytes >= best) continue;
      best = bytes;
      scratch_at = at;
      for (const int i : roots) offsets[size_t(i)] = slots[size_t(i)].offset;
    }
  for (const int i : roots) slots[size_t(i)].offset = offsets[size_t(i)];
  return scratch_at;
}

// First fit in order of first use, with a list of free ranges.
void assign_by_time(std::vector<Slot>& slots, const std::vector<int>& roots, Align aligned) {
  std::vector<int> order = roots;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return slots[size_t(a)].first < slots[size_t(b)].first; });
  std::map<int64_t, int64_t> free{{0, INT64_MAX / 2}};  // offset -> bytes
  std::multimap<int, int> ends;                         // last step -> slot
  auto release = [&](int64_t at, int64_t bytes) {
    auto next = free.lower_bound(at);
    if (next != free.end() && next->first == at + bytes) {
      bytes += next->second;
      next = free.erase(next);
    }
    if (next != free.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        before->second += bytes;
        return;
      }
    }
    free[at] = bytes;
  };
  for (const int i : order) {
    Slot& s = slots[size_t(i)];
    while (!ends.empty() && ends.begin()->first < s.first) {
      const Slot& o = slots[size_t(ends.begin()->second)];
      if (o.bytes > 0) release(o.offset, aligned(o.bytes));
      ends.erase(ends.begin());
    }
    const int64_t need = aligned(s.bytes);
    auto it = free.begin();
    while (it->second < need) ++it;
    s.offset = it->first;
    if (need > 0) {
      const int64_t rest = it->second - need;
      const int64_t at = it->first + need;
      free.erase(it);
      if (rest > 0) free[at] = rest;
    }
    ends.emplace(s.last, i);
  }
}

int64_t largest_live_set(const std::vector<Slot>& slots, const std::vector<int>& roots, const Scratch& scratch,
                         Align aligned) {
  std::map<int64_t, int64_t> change;
  for (const int i : roots) {
    change[slots[size_t(i)].first] += aligned(slots[size_t(i)].bytes);
    change[int64_t(slots[size_t(i)].last) + 1] -= aligned(slots[size_t(i)].bytes);
  }
  for (const auto& [step, bytes] : scratch.by_step()) change[step] += bytes, change[int64_t(step) + 1] -= bytes;
  int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

}  // namespace

int64_t most_scratch(const Program& p, const Call& c) {
  int64_t bytes = p.kernels[size_t(c.kernel)].scratch_bytes;
  for (const int k : c.by_variant) bytes = std::max(bytes, p.kernels[size_t(k)].scratch_bytes);
  return bytes;
}

void plan_memory(Program& p, const std::vector<ScratchUse>& uses) {
  const Align aligned{p.align};
  const Scratch scratch(uses, aligned);
  std::vector<int> roots;
  for (size_t i = 0; i < p.slots.size(); i++) {
    Slot& s = p.slots[i];
    if (s.within < 0) p.naive_bytes = checked_add(p.naive_bytes, aligned(s.bytes));
    if (s.alias_of >= 0) {
      Slot& root = p.slots[size_t(s.alias_of)];
      root.first = std::min(root.first, s.first);
      root.last = std::max(root.last, s.last);
    } else {
      if (s.bytes == 0) s.bytes = 1;  // a place of its own: what kernels are given lies apart, elements or not
      roots.push_back(int(i));
    }
  }
  p.lower_bound_bytes = largest_live_set(p.slots, roots, scratch, aligned);
  if (roots.size() <= kPairwiseLimit) {
    p.scratch_offset = assign_pairwise(p.slots, roots, scratch, p.lower_bound_bytes, aligned);
  } else {
    assign_by_time(p.slots, roots, aligned);
    p.scratch_offset = place_scratch(p.slots, roots, scratch, aligned);
  }
  for (Slot& s : p.slots)
    if (s.alias_of >= 0) s.offset = p.slots[size_t(s.alias_of)].offset + std::max<int64_t>(s.within, 0);
  p.arena_bytes = end_of(p.slots, roots, aligned);
  for (const ScratchUse& u : uses) p.scratch_bytes = std::max(p.scratch_bytes, u.bytes);
}

}  // namespace tc
