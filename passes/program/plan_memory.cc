// plan_memory: offsets in one arena.
//
// Largest tensors first, each at the lowest offset where it overlaps nobody that is alive together with it (greedy by
// size; Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020). Graphs of very many
// tensors are planned in order of first use instead, which needs no pairwise comparison of all of them.
// Needs: first and last step of every slot. Leaves: offsets, aliases resolved to their root's offset.
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

void assign_by_size(std::vector<Slot>& slots, const std::vector<int>& roots, Align aligned) {
  std::vector<int> order = roots, assigned;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return slots[size_t(a)].bytes > slots[size_t(b)].bytes; });
  for (const int i : order) {
    Slot& s = slots[size_t(i)];
    int64_t at = 0;
    for (const int j : assigned) {  // sorted by offset
      const Slot& o = slots[size_t(j)];
      if (!alive_together(s, o)) continue;
      if (at + aligned(s.bytes) <= o.offset) break;
      at = std::max(at, o.offset + aligned(o.bytes));
    }
    s.offset = at;
    const auto where = std::upper_bound(assigned.begin(), assigned.end(), at,
                                        [&](int64_t v, int j) { return v < slots[size_t(j)].offset; });
    assigned.insert(where, i);
  }
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

int64_t largest_live_set(const std::vector<Slot>& slots, const std::vector<int>& roots, Align aligned) {
  std::map<int, int64_t> change;
  for (const int i : roots) {
    change[slots[size_t(i)].first] += aligned(slots[size_t(i)].bytes);
    change[slots[size_t(i)].last + 1] -= aligned(slots[size_t(i)].bytes);
  }
  int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

}  // namespace

void plan_memory(Program& p) {
  const Align aligned{p.align};
  std::vector<int> roots;
  for (size_t i = 0; i < p.slots.size(); i++) {
    Slot& s = p.slots[i];
    p.naive_bytes = checked_add(p.naive_bytes, aligned(s.bytes));
    if (s.alias_of >= 0) {
      Slot& root = p.slots[size_t(s.alias_of)];
      root.first = std::min(root.first, s.first);
      root.last = std::max(root.last, s.last);
    } else {
      roots.push_back(int(i));
    }
  }
  (roots.size() <= kPairwiseLimit ? assign_by_size : assign_by_time)(p.slots, roots, aligned);
  for (Slot& s : p.slots) {
    if (s.alias_of >= 0) s.offset = p.slots[size_t(s.alias_of)].offset;
    p.arena_bytes = std::max(p.arena_bytes, checked_add(s.offset, aligned(s.bytes)));
  }
  p.lower_bound_bytes = largest_live_set(p.slots, roots, aligned);
}

}  // namespace tc
