// Sums of products whose weights come with every run: the loops are those for weights that are known, and what would be computed while
// compiling (panels, sums of columns) is computed in front of them.
//
//   for panels, terms, columns: packed[panel][k][column] = w[...]          shared among threads
//   the loops of the template that asks for `packed`
//
// A convolution by another network's result (cross-correlation, dynamic filters), a product of two tensors of bytes (attention).
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "templates/cpu/template.h"
#include "templates/row_axes.h"

namespace tc {
namespace {

constexpr int64_t kFewestUses = 8;  // of a packed weight: to copy it costs as much as to multiply by it several times
constexpr int64_t kMostCopies =
    4;  // with padding, of an operand's elements: pixels of overlapping windows are no weights

// Flags of the operands, where those that `factor` reads are known; null: the other one reads them, too, or all of them are known anyway.
std::optional<std::vector<bool>> with_factor(const TemplateArgs& a, const Expr& factor, const Expr& other) {
  const Canonical& c = *a.canonical;
  std::vector<bool> known = a.constant_input;
  bool fresh = false;
  for (size_t i = 0; i < c.inputs.size(); i++) {
    if (known[i] || !uses_buffer(factor, c.inputs[i])) continue;
    if (uses_buffer(other, c.inputs[i])) return {};
    known[i] = fresh = true;
  }
  return fresh ? std::optional(known) : std::nullopt;
}

// The stages of `prologue` that compute its outputs `wanted`.
TensorFn part_of(const TensorFn& prologue, const std::vector<Buffer>& wanted) {
  TensorFn part;
  std::vector<Buffer> needed = wanted;
  for (size_t i = prologue.stages.size(); i-- > 0;) {
    const Stage& s = prologue.stages[i];
    if (std::find(needed.begin(), needed.end(), s.outputs[0]) == needed.end()) continue;
    part.stages.insert(part.stages.begin(), s);
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        for (const Load* l : loads_of(e))
          if (std::find(needed.begin(), needed.end(), l->buffer) == needed.end()) needed.push_back(l->buffer);
  }
  for (const Buffer& b : prologue.inputs)
    if (std::find(needed.begin(), needed.end(), b) != needed.end()) part.inputs.push_back(b);
  part.outputs = wanted;
  return part;
}

class AtRun {
 public:
  AtRun(const TemplateArgs& a, Scheduled s) : a_(a), s_(std::move(s)) {}

  /// Null if nothing is left to be packed in a run, if a packed tensor needs another one, or if weights are used too few times.
  std::optional<Scheduled> run() {
    std::vector<Buffer> kept, ours;
    for (const Buffer& b : s_.prologue.outputs) (is_known(part_of(s_.prologue, {b})) ? kept : ours).push_back(b);
    int64_t elements = 0, given = 0;
    for (const Buffer& b : ours) {
      elements += num_elements(static_dims(b->shape));
      for (const Buffer& x : part_of(s_.prologue, {b}).inputs) given += num_elements(static_dims(x->shape));
    }
    const Canonical& c = *a_.canonical;
    if (points(c.axes) * points(c.raxes) < kFewestUses * elements || elements > kMostCopies * given) return {};
    if (ours.empty() || s_.prologue.stages.size() != s_.prologue.outputs.size()) return {};
    const TensorFn packing = part_of(s_.prologue, ours);
    Stmts loops;
    for (const Stage& stage : packing.stages) loops.push_back(loops_of(stage, packing));
    Stmt body = seq({comment("weights as the loops below read them", seq(std::move(loops))), s_.body});
    for (const Buffer& b : ours) body = in_memory(b, body);
    read(packing.inputs);
    s_.body = body;
    std::vector<std::string> layouts;
    for (size_t i = 0; i < s_.prologue.outputs.size(); i++)
      if (std::find(kept.begin(), kept.end(), s_.prologue.outputs[i]) != kept.end())
        layouts.push_back(s_.prologue_layouts[i]);
    s_.prologue_layouts = layouts;
    s_.prologue = kept.empty() ? TensorFn() : part_of(s_.prologue, kept);
    s_.description += "; weights are packed in every run";
    return std::move(s_);
  }

 private:
  bool is_known(const TensorFn& part) const {
    return std::all_of(part.inputs.begin(), part.inputs.end(), [&](const Buffer& b) {
      const auto at = std::find(a_.fn.inputs.begin(), a_.fn.inputs.end(), b);
      return at != a_.fn.inputs.end() && a_.constant_input[size_t(at - a_.fn.inputs.begin())];
    });
  }

  // The parts of a quad are stored side by side.
  static Stmt with_quads(const Stmt& s) {
    return rewrite(s, {}, [](const Stmt& x) -> Stmt {
      const For* f = as<For>(x);
      return f && as<Store>(f->body) && is_const(f->extent, 4)
                 ? loop(f->var, f->extent, f->body, ForKind::Unroll, f->begin)
                 : Stmt();
    });
  }

  static Stmt loops_of(const Stage& stage, const TensorFn& of) {
    const Stmt nest = with_quads(lower_naive({of.inputs, {stage}, stage.outputs}));
    const For* f = as<For>(nest);
    const bool much = f && num_elements(static_dims(stage.outputs[0]->shape)) >= kParallelThreshold;
    return much ? loop(f->var, f->extent, f->body, ForKind::Parallel, f->begin) : nest;
  }

  // The packed tensor b, which the template's loops know by a flat view, in scratch memory.
  Stmt in_memory(const Buffer& b, const Stmt& body) {
    const Buffer memory =
        make_buffer(b->name + "_packed", b->dtype, {Dim(num_elements(static_dims(b->shape)))}, Scope::Workspace);
    BufferMap flat;
    std::erase_if(s_.views, [&](const Scheduled::View& v) {
      if (v.of == b) flat[v.flat.get()] = memory;
      return v.of == b;
    });
    const Stmt in_body = rewrite(substitute_buffers(body, flat), {}, [&](const Stmt& x) -> Stmt {
      const Store* k = as<Store>(x);
      if (!k || k->buffer != b) return {};
      return store(memory, {flat_of(b, k->index)}, k->value, k->reduce, k->count);
    });
    return alloc(memory, in_body);
  }

  // The loops read these operands as they are.
  void read(const std::vector<Buffer>& operands) {
    for (const Buffer& b : operands) {
      if (std::find(s_.inputs.begin(), s_.inputs.end(), b) != s_.inputs.end()) continue;
      s_.inputs.push_back(b);
      s_.input_index.push_back(int(std::find(a_.fn.inputs.begin(), a_.fn.inputs.end(), b) - a_.fn.inputs.begin()));
    }
  }

  const TemplateArgs& a_;
  Scheduled s_;
};

}  // namespace

std::optional<Scheduled> schedule_packed_at_run(const TemplateArgs& a) {
  const Apply* product = a.canonical && bool(a.canonical->value) ? as<Apply>(a.canonical->value) : nullptr;
  if (!product || product->op != Op::Mul || a.canonical->raxes.empty() || !a.options.open_axes.empty()) return {};
  Planner* const planner = a.options.planner;
  const size_t mark = planner ? planner->size() : 0;
  const auto forget = [&] {
    if (planner) planner->forget_from(mark);
  };
  const auto packed = [&](const std::vector<bool>& known, auto&& make,
                          const PlanEntry& plan) -> std::optional<Scheduled> {
    auto s = make(TemplateArgs{a.fn, a.canonical, known, a.cpu, a.options, false, plan});
    if (s && !s->prologue.stages.empty())
      if (auto made = AtRun(a, std::move(*s)).run()) return made;
    forget();
    return {};
  };
  ScheduleOptions silent = a.options;
  silent.planner = nullptr;
  const bool is_window = schedule_window({a.fn, a.canonical, a.constant_input, a.cpu, silent}).has_value();
  for (const size_t side : {1, 0}) {
    const auto known = with_factor(a, product->args[side], product->args[1 - side]);
    if (!known) continue;
    if (auto s = packed(*known, schedule_contraction, {})) return s;
    if (is_window) continue;
    if (auto s = packed(*known, schedule_window, PlanEntry(planner, "window"))) return s;
  }
  return {};
}

}  // namespace tc
