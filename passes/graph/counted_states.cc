// States that grow: what a run appends to an input of n elements along an axis is an output of n + m, which the next run
// reads. Both have room for the largest n.
//   present = Concat(past, x)   past counted by n, a state   ->   present = tc.append(past, x, m, n)   n is n + m then
//
// Preconditions: input and output of a state have one type, which is not that of strings; its size along an axis that grows is a symbol of its own, which
// all states along it share, and the output's is a sum of such symbols.
#include <algorithm>

#include "ir/ops/op.h"
#include "ir/ops/regions.h"
#include "passes/graph/bounded_sizes.h"

namespace tc {
namespace {

[[noreturn]] void refuse(const Value* before, const Value* after, const std::string& why) {
  throw Error({"TC0154",
               ExitCode::Usage,
               {"", "", "", after->name.raw(), -1},
               "--state " + printable(before->name.raw()) + "=" + printable(after->name.raw()) + ": " + why,
               {"leave it out: then the caller hands both over"},
               false});
}

}  // namespace

const StatePair* BoundedSizes::state_of(const Graph& g, const Value* result) const {
  for (const StatePair& s : chosen_.states)
    if (s.output < g.outputs().size() && behind_identities(g.outputs()[s.output]) == result) return &s;
  return nullptr;
}

void BoundedSizes::limit_state(const Graph& g, const SizeForm& f, const Value* result, int axis) {
  const StatePair* s = state_of(g, result);
  if (!s || f.fixed()) return;
  if (const auto size = find(g.inputs()[s->input], axis)) counts_.limit(f, size->capacity);
}

Node* BoundedSizes::grow(Graph& g, Node* n, int axis, const SizeForm& total) {
  const ModelText name = n->outputs[0]->name;
  limit_state(g, total, n->outputs[0], axis);
  const int64_t capacity = counts_.bound(total);
  SizeForm length = form_along(n->inputs[0], axis);
  Value* grown = n->inputs[0];
  Node* last = nullptr;
  for (size_t k = 1; k < n->inputs.size(); k++) {
    Value* part = n->inputs[k];
    const std::string number = "_part" + to_text(int64_t(k));
    Value* position = number_of(g, n, length, derived(name, number + "_place"));
    length = length + form_along(part, axis);
    const bool ends = k + 1 == n->inputs.size();
    last = insert_for(g, *n, n, "append",
                      {grown, part, count_along(g, part, axis, derived(name, number + "_size")), position,
                       number_of(g, n, length, derived(name, number + "_count"))},
                      {ends ? name : derived(name, number)}, {{"axis", int64_t(axis)}, {"capacity", capacity}}, "tc");
    infer_types(g, *last);
    follow_append(last);
    grown = last->outputs[0];
  }
  g.replace_uses(n->outputs[0], grown);
  g.erase(n);
  return last;
}

SizeSum BoundedSizes::sum_of(const Graph& g, const SizeForm& f, const Value* before, const Value* after) const {
  SizeSum sum;
  sum.addend = f.addend;
  for (size_t k = 0; k < g.inputs().size(); k++)
    if (const auto it = f.terms.find({g.inputs()[k]->id}); it != f.terms.end()) sum.terms.push_back({k, it->second});
  if (sum.terms.size() != f.terms.size()) refuse(before, after, "its size is no sum of sizes that are chosen");
  return sum;
}

void BoundedSizes::keep_states(const Graph& g, RunTimeSizes& all) const {
  for (const StatePair& s : all.states) {
    const Value *before = g.inputs().at(s.input), *after = g.outputs().at(s.output);
    if (after->type.kind == ValueType::Kind::None) continue;  // behind a node with a problem, which has been told
    if (!(before->type == after->type))
      refuse(before, after, "the one is " + to_text(before->type) + ", the other " + to_text(after->type));
    if (before->type.dtype == DType::String)  // views of the caller's bytes, or of those that the next run writes over
      refuse(before, after, "strings do not outlive a run");
    for (const InputSize& size : all.inputs) {
      if (size.input != s.input) continue;
      if (!size.count.is_one())
        refuse(before, after, "its size along axis " + to_text(int64_t(size.axis)) + " is a sum");
      const auto now = find(after, size.axis);
      if (!now) refuse(before, after, "the output has a fixed size along axis " + to_text(int64_t(size.axis)));
      const SizeSum next = sum_of(g, *counts_.find(now->count), before, after);
      for (SizeInput& c : all.chosen) {
        if (c.input != size.count.terms[0].input) continue;
        if (next == SizeSum::of(c.input)) continue;  // the batch
        if (c.next && *c.next != next) refuse(before, after, "another state grows otherwise");
        if (c.least > 0) refuse(before, after, "it begins empty; its bounds begin at " + to_text(c.least));
        c.next = next;
      }
    }
    for (const BoundedSize& now : sizes(after))
      if (std::none_of(all.inputs.begin(), all.inputs.end(),
                       [&](const InputSize& i) { return i.input == s.input && i.axis == now.axis; }))
        refuse(before, after, "the input has a fixed size along axis " + to_text(int64_t(now.axis)));
  }
}

}  // namespace tc
