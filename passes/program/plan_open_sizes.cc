// plan_open_sizes: where tensors live whose number of elements has no upper bound.
//
// A kernel is right for every size up to kOpenSize, and its text has strides of the memory of that size. It may run in the
// memory of a smaller one if it touches no more than that: so every access of every kernel is bounded, by intervals, for a
// capacity of some number, and what it reaches beyond that many rows is a tile's overhang, which has room of its own.
//
//   slot relu: 94466211840 rows of 96 bytes, of which a run of at most `room` rows touches 96 * room + 480
//
// Tensors that grow with the size lie behind the others, in the order of a plan of their bytes for each unit of the size: what
// lies behind another one then does so for every size.
// Preconditions: kernels are lowered, operands final. Leaves: open numbers in slots, arena and copies.
#include "passes/program/plan_open_sizes.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/open_size.h"
#include "passes/program/kernel_reach.h"

namespace tc {
namespace {

// The few, and so many in a row that some of them leave the last tile as empty as it gets, also where each of the size is several
// rows: 9 * n rows in tiles of 14. None, where a run may have none: what is always stored is stored then, too.
std::vector<int64_t> capacities(const Program& p) {
  std::vector<int64_t> list = {1, 2, 3};
  const auto may_be_none = [](const IoTensor& t) { return t.is_size && is_open(t.most) && t.least == 0; };
  if (std::any_of(p.inputs.begin(), p.inputs.end(), may_be_none)) list.push_back(0);
  for (int64_t k = 0; k < 64; k++) list.push_back(720'720 * 64 + k);
  return list;
}
constexpr int64_t kMostIterations = int64_t(1) << 20;  // of a loop of the device, and blocks, for a single element
constexpr int64_t kMostBySize = 512;                   // values of the other sizes that are looked at
constexpr int64_t kOverhang = 128;  // rows that tiles may reach beyond the last element, and kOverhangBytes

class OpenPlan {
 public:
  OpenPlan(Program& p, const std::vector<ScratchUse>& uses) : p_(p), uses_(uses), capacities_(capacities(p)) {}

  void run() {
    for (const Weight& w : p_.weights)
      if (is_open(int64_t(w.data->num_bytes))) refuse({}, "a constant would have as many elements");
    for (const IoTensor& t : p_.outputs)
      for (const IoSize& z : t.sizes)
        if (!z.of_inputs() && t.dims[size_t(z.axis)] > kMostRoom)
          refuse({}, "the size of output \"" + printable(t.name.raw()) + "\" is computed from it");
    for (const IoTensor& t : p_.inputs)
      if (t.is_kept() && (is_open(t.most) || is_open(p_.slots[size_t(t.state)].bytes)))
        refuse({}, "state \"" + printable(t.name.raw()) + "\" grows with it");
    overhang_.assign(p_.slots.size(), 0);
    steps(p_.steps);
    for (size_t i = 0; i < p_.slots.size(); i++) {
      Slot& s = p_.slots[i];
      const OpenNumber bytes = open_number(s.bytes);
      if (bytes.times > 0) s.bytes = checked_mul(bytes.times, kOpenSize) + std::max(bytes.rest, overhang_[i]);
    }
    rooms(p_.steps);
    place();
  }

 private:
  [[noreturn]] void refuse(const std::vector<ModelText>& origins, const std::string& why) const {
    const auto size = std::find_if(p_.inputs.begin(), p_.inputs.end(),
                                   [](const IoTensor& t) { return t.is_size && is_open(t.most); });
    throw needs_upper_bound(size->name, size->least, {"", origins.empty() ? "" : origins[0].raw(), "", "", -1}, why);
  }

  void steps(const std::vector<Step>& list) {
    for (const Step& s : list) std::visit([&](const auto& k) { step(k); }, s.kind);
  }
  void step(const Call& c) {
    kernel(c, p_.kernels[size_t(c.kernel)]);
    for (const int other : c.by_variant)
      if (other != c.kernel) kernel(c, p_.kernels[size_t(other)]);
    take_number(c);
  }
  /// A number that is computed from the sizes, once.
  void take_number(const Call& c) {
    const Kernel& k = p_.kernels[size_t(c.kernel)];
    for (size_t i = 0; i < c.operands.size(); i++) {
      if (k.params[i].role != Param::Role::Output) continue;
      const std::pair place(c.operands[i].kind, c.operands[i].index);
      numbers_.erase(place);
      if (depth_ > 0 || !as<Store>(k.body)) continue;
      for (const int64_t capacity : capacities_)
        if (const auto range = number_of(k, elements_of(c, capacity))) numbers_[place][capacity] = *range;
    }
  }
  /// What steps compute is not what it was before them.
  void forget(const std::vector<Step>& list) {
    for (const Step& s : list) {
      if (const Call* c = std::get_if<Call>(&s.kind)) {
        const Kernel& k = p_.kernels[size_t(c->kernel)];
        for (size_t i = 0; i < c->operands.size(); i++)
          if (k.params[i].role == Param::Role::Output) numbers_.erase({c->operands[i].kind, c->operands[i].index});
      } else if (const CopyStep* c = std::get_if<CopyStep>(&s.kind)) {
        numbers_.erase({c->to.kind, c->to.index});
      } else if (const IfStep* c = std::get_if<IfStep>(&s.kind)) {
        forget(c->then);
        forget(c->otherwise);
      } else if (const LoopStep* c = std::get_if<LoopStep>(&s.kind)) {
        forget(c->body);
      }
    }
  }
  /// One that the call stands for, on one processor or another.
  void kernel(const Call& c, const Kernel& k) {
    if (is_open(k.scratch_bytes)) refuse(c.origins, "the scratch memory of kernel \"" + k.name + "\" grows with it");
    const auto grows = [&](const Operand& o) {
      return o.kind == Operand::Kind::Slot && is_open(p_.slots[size_t(o.index)].bytes);
    };
    if (std::none_of(c.operands.begin(), c.operands.end(), grows)) return;
    for (const int64_t capacity : capacities_) {
      KernelReach reach = reach_of(k, elements_of(c, capacity));
      if (capacity == 1 && reach.longest > kMostIterations)
        refuse(c.origins, "kernel \"" + k.name + "\" would go through all of the largest size");
      const auto is_too_far = [&](size_t i) {
        const OpenNumber bytes = open_number(p_.slots[size_t(c.operands[i].index)].bytes);
        const int64_t all = reach.of(k.params[i].buffer);
        const int64_t most = bytes.times * capacity + std::max<int64_t>(0, bytes.rest);
        return all == kUnknownReach || all - most > bytes.times * kOverhang + kOverhangBytes;
      };
      bool far = false;
      for (size_t i = 0; i < c.operands.size(); i++) far = far || (grows(c.operands[i]) && is_too_far(i));
      if (far) reach = reach_by_size(c, k, capacity, std::move(reach));
      for (size_t i = 0; i < c.operands.size(); i++) {
        if (!grows(c.operands[i])) continue;
        const size_t slot = size_t(c.operands[i].index);
        const OpenNumber bytes = open_number(p_.slots[slot].bytes);
        const int64_t all = reach.of(k.params[i].buffer);
        const int64_t least = bytes.times * capacity;
        if (is_too_far(i))
          refuse(c.origins,
                 "kernel \"" + k.name + "\" would touch all of the largest \"" + k.params[i].buffer->name + "\"");
        const bool filled = filled_.contains(int(slot)) && (k.device.empty() || all - least <= kOverhangBytes);
        if (all > least && reach.tests(k.params[i].buffer) && !filled)
          refuse(c.origins, "kernel \"" + k.name + "\" would test what lies behind the last index in \"" +
                                k.params[i].buffer->name + "\"");
        overhang_[slot] = std::max(overhang_[slot], all - least);
      }
    }
  }
  std::vector<std::optional<Range>> elements_of(const Call& c, int64_t capacity) {
    std::vector<std::optional<Range>> elements;
    elements.reserve(c.operands.size());
    for (const Operand& o : c.operands) elements.push_back(elements_of(o, capacity));
    return elements;
  }
  /// The same, one after the other for all values of the sizes that have an upper bound: of i / m and i % m with i < n * m, intervals
  /// know little while m may be anything. `all` where there are too many.
  KernelReach reach_by_size(const Call& c, const Kernel& k, int64_t capacity, KernelReach all) {
    const std::vector<std::optional<Range>> elements = elements_of(c, capacity);
    std::vector<int> sizes;  // inputs
    int64_t number = 1;
    for (const Operand& o : c.operands) {
      if (o.kind != Operand::Kind::Input || !p_.inputs[size_t(o.index)].is_size) continue;
      const IoTensor& size = p_.inputs[size_t(o.index)];
      if (is_open(size.most) || std::find(sizes.begin(), sizes.end(), o.index) != sizes.end()) continue;
      sizes.push_back(o.index);
      if (size.most - size.least >= kMostBySize) return all;
      number *= size.most - size.least + 1;
      if (number > kMostBySize) return all;
    }
    if (sizes.empty()) return all;
    all.ends.clear();
    for (int64_t n = 0; n < number; n++) {
      std::vector<std::optional<Range>> here = elements;
      int64_t rest = n;
      for (const int input : sizes) {
        const IoTensor& size = p_.inputs[size_t(input)];
        const int64_t values = size.most - size.least + 1, value = size.least + rest % values;
        rest /= values;
        for (size_t i = 0; i < c.operands.size(); i++)
          if (c.operands[i].kind == Operand::Kind::Input && c.operands[i].index == input) here[i] = Range{value, value};
      }
      for (const auto& [buffer, end] : reach_of(k, here).ends) all.ends[buffer] = std::max(all.ends[buffer], end);
    }
    return all;
  }
  /// What an operand's elements can be, of open sizes that are at most a capacity.
  std::optional<Range> elements_of(const Operand& o, int64_t capacity) {
    if (o.kind == Operand::Kind::Input && p_.inputs[size_t(o.index)].is_size) {
      const int64_t most = p_.inputs[size_t(o.index)].most;
      return Range{0, is_open(most) ? capacity : most};
    }
    if (const auto made = numbers_.find({o.kind, o.index}); made != numbers_.end()) {
      const auto range = made->second.find(capacity);
      return range == made->second.end() ? std::nullopt : std::optional(range->second);
    }
    if (o.kind != Operand::Kind::Weight) return {};
    const Weight& w = p_.weights[size_t(o.index)];
    if (w.pack || !is_int(w.data->dtype) || w.data->size() == 0) return {};
    const auto [known, first] = tables_.try_emplace(o.index);
    Range& r = known->second;
    if (first) r = {INT64_MAX, INT64_MIN};
    for (int64_t k = 0; first && k < w.data->size(); k++) {
      r.min = std::min(r.min, w.data->as_int(k));
      r.max = std::max(r.max, w.data->as_int(k));
    }
    return r;
  }

  void step(const CopyStep& c) {
    numbers_.erase({c.to.kind, c.to.index});
    if (c.room > 0 && c.to.kind == Operand::Kind::Slot) filled_.insert(c.to.index);
    if (c.times.empty() && is_open(c.bytes)) refuse(c.origins, "a tensor that grows with it is copied as a whole");
  }
  void step(const IfStep& c) {
    depth_++;
    steps(c.then);
    steps(c.otherwise);
    depth_--;
  }
  void step(const LoopStep& c) {
    if (is_open(c.trips) || is_open(c.declared)) refuse(c.origins, "a loop has as many iterations");
    forget(c.body);  // what an iteration computes the next one reads
    depth_++;
    steps(c.body);
    depth_--;
  }
  void step(const ContinueStep&) {}

  /// What there is room for behind inputs.
  void rooms(std::vector<Step>& list) {
    for (Step& s : list) {
      if (CopyStep* c = std::get_if<CopyStep>(&s.kind); c && c->room > 0 && c->to.kind == Operand::Kind::Slot)
        c->room = p_.slots[size_t(c->to.index)].bytes;
      if (IfStep* c = std::get_if<IfStep>(&s.kind)) {
        rooms(c->then);
        rooms(c->otherwise);
      }
      if (LoopStep* c = std::get_if<LoopStep>(&s.kind)) rooms(c->body);
    }
  }

  /// A plan of the slots of constant size, and behind it one of the others by their bytes for each unit of the size.
  void place() {
    const auto part_of = [&](bool open) {
      Program part;
      part.align = p_.align;
      std::vector<size_t> at;
      for (size_t i = 0; i < p_.slots.size(); i++) {
        const Slot& s = p_.slots[i];
        const size_t root = s.alias_of >= 0 ? size_t(s.alias_of) : i;
        if (is_open(p_.slots[root].bytes) != open) continue;
        at.push_back(i);
        part.slots.push_back(s);
        if (open) part.slots.back().bytes = open_number(s.bytes).times;
        if (open && s.within > 0) refuse({}, "a tensor that grows with it lies inside of another one");
      }
      for (Slot& s : part.slots)
        if (s.alias_of >= 0) s.alias_of = int(std::find(at.begin(), at.end(), size_t(s.alias_of)) - at.begin());
      return std::pair{std::move(part), std::move(at)};
    };
    auto [fixed, fixed_at] = part_of(false);
    plan_memory(fixed, uses_);
    auto [open, open_at] = part_of(true);
    plan_memory(open, {});
    const int64_t begin = std::max(fixed.arena_bytes, fixed.scratch_offset + fixed.scratch_bytes);
    const auto aligned = [&](int64_t n) { return (n + p_.align - 1) / p_.align * p_.align; };
    const int64_t open_begin = aligned(begin);
    for (size_t k = 0; k < fixed_at.size(); k++) p_.slots[fixed_at[k]] = fixed.slots[k];
    restore_aliases(fixed_at);
    std::vector<size_t> order(open_at.size());  // from the lowest: the overhangs of those below come before
    for (size_t k = 0; k < order.size(); k++) order[k] = k;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return open.slots[a].offset < open.slots[b].offset; });
    std::vector<int64_t> rest(open_at.size(), 0);  // bytes in front of a slot that do not grow
    OpenNumber end = {open.arena_bytes, 0};
    for (size_t i = 0; i < order.size(); i++) {
      const size_t k = order[i];
      if (open.slots[k].alias_of >= 0) continue;
      for (size_t j = 0; j < i; j++) {
        const Slot& below = open.slots[order[j]];
        if (below.alias_of >= 0) continue;
        if (below.offset + below.bytes <= open.slots[k].offset)
          rest[k] = std::max(rest[k], rest[order[j]] + most_rest(open_at, open, order[j], aligned));
      }
      end.rest = std::max(end.rest, rest[k] + most_rest(open_at, open, k, aligned));
    }
    for (size_t k = 0; k < open_at.size(); k++) {
      const size_t root = open.slots[k].alias_of >= 0 ? size_t(open.slots[k].alias_of) : k;
      Slot& s = p_.slots[open_at[k]];
      s.offset = checked_mul(open.slots[root].offset, kOpenSize) + open_begin + rest[root];
      s.first = open.slots[k].first;
      s.last = open.slots[k].last;
    }
    p_.scratch_offset = fixed.scratch_offset;
    p_.scratch_bytes = fixed.scratch_bytes;
    p_.arena_bytes = checked_add(checked_mul(end.times, kOpenSize), open_begin + end.rest);
    p_.naive_bytes = open.naive_bytes < kMostForEach ? open.naive_bytes * kOpenSize + fixed.naive_bytes : kUncounted;
    p_.lower_bound_bytes = checked_add(checked_mul(open.lower_bound_bytes, kOpenSize), fixed.lower_bound_bytes);
  }
  /// Parts of plans have their own numbers.
  void restore_aliases(const std::vector<size_t>& at) {
    for (const size_t i : at)
      if (Slot& s = p_.slots[i]; s.alias_of >= 0) s.alias_of = int(at[size_t(s.alias_of)]);
  }
  /// What does not grow of a slot and of those that share its memory.
  int64_t most_rest(const std::vector<size_t>& at, const Program& open, size_t k, const auto& aligned) const {
    int64_t rest = 0;
    for (size_t j = 0; j < at.size(); j++)
      if (j == k || open.slots[j].alias_of == int(k)) rest = std::max(rest, open_number(p_.slots[at[j]].bytes).rest);
    return aligned(rest);
  }

  Program& p_;
  const std::vector<ScratchUse>& uses_;
  const std::vector<int64_t> capacities_;
  std::vector<int64_t> overhang_;
  std::map<int, Range> tables_;  // by weight
  int depth_ = 0;                // branches and loops around a step
  std::map<std::pair<Operand::Kind, int>, std::map<int64_t, Range>>
      numbers_;           // that kernels compute, by capacity; none: nothing is known
  std::set<int> filled_;  // slots of inputs, behind which stand copies of what there is
};

}  // namespace

Error needs_upper_bound(const ModelText& size, int64_t least, Loc where, const std::string& why) {
  const std::string name = printable(size.raw());
  return Error({"TC3106",
                ExitCode::Unsupported,
                std::move(where),
                "size \"" + name + "\" has no upper bound, and needs one here: " + why,
                {"give it one: " + bounded_option(name, least) + " (for example)"},
                false});
}

bool has_open_sizes(const Program& p) {
  return std::any_of(p.inputs.begin(), p.inputs.end(), [](const IoTensor& t) { return t.is_size && is_open(t.most); });
}

void plan_open_sizes(Program& p, const std::vector<ScratchUse>& uses) { OpenPlan(p, uses).run(); }

}  // namespace tc
