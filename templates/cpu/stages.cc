// Functions of several stages that no template knows as a whole: stage after stage, each by the template that fits it,
// with the values between them in scratch memory. Stages that advance together (scans) stay one group of plain loops.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/loop/flatten_buffers.h"
#include "templates/cpu/schedule_cpu.h"
#include "templates/cpu/template.h"

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
  explicit Joiner(const TemplateArgs& a) : a_(a) {}

  Scheduled run() {
    const auto& stages = a_.fn.stages;
    for (size_t i = 0; i < stages.size();) {
      size_t end = i + 1;
      while (stages[i].scan >= 0 && end < stages.size() && stages[end].scan == stages[i].scan) end++;
      add_group(i, end);
      i = end;
    }
    Stmt body = seq(bodies_);
    for (const Buffer& b : between_) body = alloc(memory_.at(b.get()), body);
    s_.body = body;
    s_.outputs = a_.fn.outputs;
    s_.family = "stages";
    s_.words = "stage by stage: " + words_;
    return std::move(s_);
  }

 private:
  // The function of stages [begin, end).
  TensorFn part(size_t begin, size_t end) const {
    const auto& stages = a_.fn.stages;
    TensorFn f;
    f.stages.assign(stages.begin() + std::ptrdiff_t(begin), stages.begin() + std::ptrdiff_t(end));
    std::vector<Buffer> made;
    for (const Stage& s : f.stages) made.insert(made.end(), s.outputs.begin(), s.outputs.end());
    for (const Stage& s : f.stages)
      for (const Buffer& b : reads(s))
        if (!holds(made, b) && (holds(a_.fn.inputs, b) || producer(a_.fn, b))) add_once(f.inputs, b);
    for (const Buffer& b : made) {
      bool needed = holds(a_.fn.outputs, b);
      for (size_t i = 0; i < stages.size(); i++)
        if (i < begin || i >= end) needed = needed || holds(reads(stages[i]), b);
      if (needed) f.outputs.push_back(b);
    }
    return f;
  }

  void add_group(size_t begin, size_t end) {
    const TensorFn f = part(begin, end);
    if (f.outputs.empty()) return;
    std::vector<bool> constant;
    for (const Buffer& b : f.inputs) {
      const auto at = std::find(a_.fn.inputs.begin(), a_.fn.inputs.end(), b);
      constant.push_back(at != a_.fn.inputs.end() && a_.constant_input[size_t(at - a_.fn.inputs.begin())]);
    }
    join(schedule_cpu(f, constant, a_.cpu, a_.options), f);
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
      const bool outside = holds(a_.fn.inputs, of) || holds(a_.fn.outputs, of) || holds(part.prologue.outputs, of);
      between[view.get()] = outside ? the_view(view, of) : memory(of);
    }
    bodies_.push_back(substitute_buffers(body, between));
    for (const Buffer& b : part.inputs)
      if (holds(a_.fn.inputs, b) && !holds(s_.inputs, b)) {
        s_.inputs.push_back(b);
        s_.input_index.push_back(int(std::find(a_.fn.inputs.begin(), a_.fn.inputs.end(), b) - a_.fn.inputs.begin()));
      }
    auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (const Buffer& b : part.prologue.inputs) add_once(s_.prologue.inputs, b);
    append(s_.prologue.stages, part.prologue.stages);
    append(s_.prologue.outputs, part.prologue.outputs);
    append(s_.prologue_layouts, part.prologue_layouts);
    append(s_.steps, part.steps);
    if (words_.find(part.family) == std::string::npos) words_ += (words_.empty() ? "" : ", ") + part.family;
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

  const TemplateArgs& a_;
  Scheduled s_;
  Stmts bodies_;
  std::string words_;
  std::vector<Buffer> between_;
  std::map<const BufferDef*, Buffer> memory_;  // looked up only
};

}  // namespace

std::optional<Scheduled> schedule_stages(const TemplateArgs& a) {
  if (a.fn.stages.size() < 2) return {};
  for (const auto* l : {&a.fn.inputs, &a.fn.outputs})
    for (const Buffer& b : *l)
      if (!is_static(b->shape) || !b->strides.empty() || b->offset != 0) return {};
  for (const Buffer& b : a.fn.outputs)
    if (!producer(a.fn, b)) return {};
  bool one_scan = a.fn.stages[0].scan >= 0;
  for (const Stage& s : a.fn.stages) {
    if (s.kind == Stage::Kind::Nest) return {};
    for (const Buffer& b : s.outputs)
      if (!is_static(b->shape) || !b->strides.empty()) return {};
    one_scan = one_scan && s.scan == a.fn.stages[0].scan;
  }
  if (one_scan) return {};
  return Joiner(a).run();
}

}  // namespace tc
