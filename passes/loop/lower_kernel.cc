// lower_kernel: the loop passes that turn a schedule into printable form, one after the other.
#include "passes/loop/lower_kernel.h"

#include <set>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/loop/assign_names.h"
#include "passes/loop/common_subexpr.h"
#include "passes/loop/flatten_buffers.h"
#include "passes/loop/hoist_invariants.h"
#include "passes/loop/hoist_pointers.h"
#include "passes/loop/lower_index_math.h"
#include "passes/loop/name_values.h"
#include "passes/loop/narrow_types.h"
#include "passes/loop/partition_loops.h"
#include "passes/loop/place_scratch.h"
#include "support/text.h"

namespace tc {
namespace {

Buffer with_name(const Buffer& b, std::string name) {
  auto d = std::make_shared<BufferDef>(*b);
  d->name = std::move(name);
  return d;
}

bool raises_status(const Stmt& s) {
  bool found = false;
  walk(
      s, [&](const Stmt&) { return !found; },
      [&](const Expr& e) {
        const Apply* k = as<Apply>(e);
        found |= k && k->op == Op::Index;
        return !found;
      });
  return found;
}

// Unique parameter names, in order.
class ParamNames {
 public:
  std::string take(const std::string& hint) {
    const std::string base = value_name(hint);
    std::string n = base;
    for (int64_t k = 2; taken.count(n) != 0; k++) n = base + to_text(k);
    taken.insert(n);
    return n;
  }
  std::set<std::string> taken{"status", "scratch", "arguments", "args", "chunk"};
};

}  // namespace

Kernel lower_kernel(const Scheduled& s) {
  Kernel k;
  ParamNames names;
  BufferMap renamed;
  auto add = [&](Param::Role role, const Buffer& b, std::string layout) {
    if (renamed.count(b.get()) != 0) return;
    const Buffer n = with_name(b, names.take(b->name));
    renamed[b.get()] = n;
    k.params.push_back({role, n, static_dims(b->shape), std::move(layout)});
  };
  for (const Buffer& b : s.inputs) add(Param::Role::Input, b, "");
  for (size_t i = 0; i < s.prologue.outputs.size(); i++)
    add(Param::Role::Weight, s.prologue.outputs[i], i < s.prologue_layouts.size() ? s.prologue_layouts[i] : "");
  for (const Buffer& b : s.outputs) add(Param::Role::Output, b, "");

  // A view is a flat buffer that stands for a parameter's memory.
  BufferMap view_of;
  for (const auto& [view, original] : s.views) {
    const auto it = renamed.find(original.get());
    check(it != renamed.end(), "a view of a parameter");
    view_of[it->second.get()] = renamed[view.get()] = with_name(view, it->second->name);
  }

  Stmt body = substitute_buffers(s.body, renamed);
  for (size_t i = s.scratch.size(); i > 0; i--) body = alloc(s.scratch[i - 1], body);
  body = lower_narrow_types(partition_loops(body));
  body = simplify(hoist_invariants(common_subexpr(body)));
  BufferMap flat;
  body = flatten_buffers(body, flat);
  body = hoist_pointers(body);
  PlacedScratch placed = place_scratch(body);
  body = name_values(lower_index_math(placed.body));
  k.scratch_bytes = placed.bytes;
  k.can_fail = raises_status(body);
  body = assign_names(body, names.taken);

  BufferMap merged;
  for (Param& p : k.params) {
    const auto direct = flat.find(p.buffer.get()), view = view_of.find(p.buffer.get());
    const auto viewed = view == view_of.end() ? flat.end() : flat.find(view->second.get());
    if (direct != flat.end() && viewed != flat.end()) merged[viewed->second.get()] = direct->second;
    if (direct != flat.end())
      p.buffer = direct->second;
    else if (viewed != flat.end())
      p.buffer = viewed->second;
  }
  k.body = substitute_buffers(body, merged);
  if (placed.scratch) k.params.push_back({Param::Role::Scratch, placed.scratch, {}, ""});
  if (k.can_fail) k.params.push_back({Param::Role::Status, make_buffer("status", DType::I32, {1}), {}, ""});
  k.schedule = s.words;
  k.schedule_steps = s.steps;
  return k;
}

}  // namespace tc
