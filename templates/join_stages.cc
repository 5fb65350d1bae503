#include "templates/join_stages.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/loop/flatten_buffers.h"
#include "templates/canonical.h"

namespace tc {
namespace {

bool holds(const std::vector<Buffer>& list, const Buffer& b) {
  return std::find(list.begin(), list.end(), b) != list.end();
}

void add_once(std::vector<Buffer>& list, const Buffer& b) {
  if (!holds(list, b)) list.push_back(b);
}

std::vector<Buffer> reads(const Stage& s) {
  std::vector<Buffer> list;
  auto look = [&](const Expr& e) {
    for (const Load* l : loads_of(e)) add_once(list, l->buffer);
  };
  for (const Expr& e : s.values) look(e);
  for (const Expr& e : s.init) look(e);
  if (s.nest)
    walk(
        s.nest, [](const Stmt&) { return true; },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) add_once(list, l->buffer);
          return true;
        });
  return list;
}

class Joiner {
 public:
  Joiner(const TensorFn& fn, const std::vector<bool>& constant_input, const SchedulePart& schedule, size_t tail)
      : fn_(fn), constant_input_(constant_input), schedule_(schedule), tail_(tail) {}

  Scheduled run() {
    const auto& stages = fn_.stages;
    for (size_t i = 0; i < stages.size();) {
      size_t end = i + 1;
      while (stages[i].scan >= 0 && end < stages.size() && stages[end].scan == stages[i].scan) end++;
      end = with_epilogue(i, end);
      if (i <= tail_ && tail_ < end) end = std::max(i + 1, tail_);
      if (i == tail_) end = stages.size();
      add_group(i, end);
      i = end;
    }
    Stmt body = seq(bodies_);
    for (const Buffer& b : between_) body = alloc(memory_.at(b.get()), body);
    s_.body = body;
    s_.outputs = fn_.outputs;
    s_.family = "stages";
    s_.description = "stage by stage: " + families_;
    return std::move(s_);
  }

 private:
  // The function of stages [begin, end).
  TensorFn part(size_t begin, size_t end) const {
    const auto& stages = fn_.stages;
    TensorFn f;
    f.stages.assign(stages.begin() + std::ptrdiff_t(begin), stages.begin() + std::ptrdiff_t(end));
    std::vector<Buffer> made;
    for (const Stage& s : f.stages) made.insert(made.end(), s.outputs.begin(), s.outputs.end());
    for (const Stage& s : f.stages)
      for (const Buffer& b : reads(s))
        if (!holds(made, b) && (holds(fn_.inputs, b) || producer(fn_, b))) add_once(f.inputs, b);
    for (const Buffer& b : made) {
      bool needed = holds(fn_.outputs, b);
      for (size_t i = 0; i < stages.size(); i++)
        if (i < begin || i >= end) needed = needed || holds(reads(stages[i]), b);
      if (needed) f.outputs.push_back(b);
    }
    return f;
  }

  // Whether every point of `s` reads one element of `b`, each a different one.
  static bool reads_each_once(const Stage& s, const Buffer& b) {
    std::vector<const Load*> loads;
    for (const Load* l : loads_of(s.values[0]))
      if (l->buffer == b) loads.push_back(l);
    if (loads.empty() || points(s.axes) != num_elements(static_dims(b->shape))) return false;
    std::vector<Var> seen;
    for (const Expr& i : loads[0]->index) {
      const VarRef* v = as<VarRef>(i);
      if (!v && !is_const(i, 0)) return false;
      if (!v) continue;
      if (std::find(seen.begin(), seen.end(), v->var) != seen.end()) return false;
      seen.push_back(v->var);
    }
    for (const Load* l : loads)
      for (size_t d = 0; d < l->index.size(); d++)
        if (!structurally_equal(l->index[d], loads[0]->index[d])) return false;
    return true;
  }

  // Where the part of stage `begin` ends: pointwise stages behind it that finish its results belong to it.
  size_t with_epilogue(size_t begin, size_t end) const {
    const auto& stages = fn_.stages;
    if (stages[begin].kind == Stage::Kind::Nest || stages[begin].scan >= 0) return end;
    while (end < stages.size() && stages[end].kind == Stage::Kind::Compute && stages[end].scan < 0 &&
           reads_each_once(stages[end], stages[end - 1].outputs[0])) {
      const TensorFn longer = part(begin, end + 1);
      if (longer.outputs != stages[end].outputs || !canonicalize(longer)) break;
      end++;
    }
    const bool cut_behind = begin < tail_ && tail_ < end;
    if (end - begin < stages.size() || cut_behind) return end;
    // No template knows the whole function, or nobody would ask for its parts.
    const bool moved = end - begin > 2 && as<Load>(stages[end - 1].values[0]);
    return moved ? end - 1 : begin + 1;
  }

  void add_group(size_t begin, size_t end) {
    const TensorFn f = part(begin, end);
    if (f.outputs.empty()) return;
    std::vector<bool> constant;
    for (const Buffer& b : f.inputs) {
      const auto at = std::find(fn_.inputs.begin(), fn_.inputs.end(), b);
      constant.push_back(at != fn_.inputs.end() && constant_input_[size_t(at - fn_.inputs.begin())]);
    }
    join(schedule_(f, constant), f);
  }

  void join(Scheduled part, const TensorFn& f) {
    // Many-dimensional accesses of plain loops become flat ones, so that all parts agree on the buffers between them.
    BufferMap flat;
    Stmt body = flatten_buffers(part.body, flat);
    for (auto& [view, of] : part.views)
      if (const auto it = flat.find(view.get()); it != flat.end()) view = it->second;
    for (const auto* list : {&f.inputs, &f.outputs})
      for (const Buffer& b : *list)
        if (const auto it = flat.find(b.get()); it != flat.end()) part.views.push_back({it->second, b});
    BufferMap between;
    for (const auto& [view, of] : part.views) {
      const bool outside = holds(fn_.inputs, of) || holds(fn_.outputs, of) || holds(part.prologue.outputs, of);
      between[view.get()] = outside ? the_view(view, of) : memory(of);
    }
    bodies_.push_back(substitute_buffers(body, between));
    for (const Buffer& b : part.inputs)
      if (holds(fn_.inputs, b) && !holds(s_.inputs, b)) {
        s_.inputs.push_back(b);
        s_.input_index.push_back(int(std::find(fn_.inputs.begin(), fn_.inputs.end(), b) - fn_.inputs.begin()));
      }
    auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (const Buffer& b : part.prologue.inputs) add_once(s_.prologue.inputs, b);
    append(s_.prologue.stages, part.prologue.stages);
    append(s_.prologue.outputs, part.prologue.outputs);
    append(s_.prologue_layouts, part.prologue_layouts);
    append(s_.steps, part.steps);
    if (families_.find(part.family) == std::string::npos) families_ += (families_.empty() ? "" : ", ") + part.family;
  }

  // All parts read an operand through one view.
  Buffer the_view(const Buffer& view, const Buffer& of) {
    for (const auto& v : s_.views)
      if (v.of == of) return v.flat;
    s_.views.push_back({view, of});
    return view;
  }

  Buffer memory(const Buffer& b) {
    Buffer& m = memory_[b.get()];
    if (!m) {
      m = make_buffer(b->name, b->dtype, {Dim(num_elements(static_dims(b->shape)))}, Scope::Workspace);
      between_.push_back(b);
    }
    return m;
  }

  const TensorFn& fn_;
  const std::vector<bool>& constant_input_;
  const SchedulePart& schedule_;
  const size_t tail_;
  Scheduled s_;
  Stmts bodies_;
  std::string families_;
  std::vector<Buffer> between_;
  std::map<const BufferDef*, Buffer> memory_;  // looked up only
};

}  // namespace

std::optional<Scheduled> join_stages(const TensorFn& fn, const std::vector<bool>& constant_input,
                                     const SchedulePart& part, bool nests, size_t tail) {
  if (fn.stages.size() < 2) return {};
  for (const auto* l : {&fn.inputs, &fn.outputs})
    for (const Buffer& b : *l)
      if (!is_static(b->shape) || !b->strides.empty() || b->offset != 0) return {};
  for (const Buffer& b : fn.outputs)
    if (!producer(fn, b)) return {};
  bool one_scan = fn.stages[0].scan >= 0;
  for (const Stage& s : fn.stages) {
    if (s.kind == Stage::Kind::Nest && !nests) return {};
    for (const Buffer& b : s.outputs)
      if (!is_static(b->shape) || !b->strides.empty()) return {};
    one_scan = one_scan && s.scan == fn.stages[0].scan;
  }
  if (one_scan) return {};
  return Joiner(fn, constant_input, part, tail).run();
}

}  // namespace tc
