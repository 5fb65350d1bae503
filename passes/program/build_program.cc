// build_program: from a graph of fused functions to a Program that can be printed.
//
// Values become operands: the user's inputs and outputs, weights, or slots of the arena; views share their operand's
// memory. Nodes become calls of kernels (program_kernels.cc) or control flow (control_flow.cc).
#include "passes/program/build_program.h"

#include <algorithm>
#include <cmath>

#include "ir/identity.h"
#include "ir/open_size.h"
#include "ir/ops/macs.h"
#include "passes/backend.h"
#include "passes/loop/lower_kernel.h"
#include "passes/program/checked_sizes.h"
#include "passes/program/cut_steps.h"
#include "passes/program/plan_memory.h"
#include "passes/program/plan_open_sizes.h"
#include "passes/program/program_builder.h"
#include "passes/program/verify_memory.h"

namespace tc {

int64_t byte_size(const Value& v) {
  return checked_mul(num_elements(static_dims(v.type.shape)), info(v.type.dtype).bytes);
}

namespace {

IoTensor io_tensor(const Value& v, bool text) {
  const bool strings = v.type.is_static_tensor() && v.type.dtype == DType::String;
  if (!v.type.is_static_tensor() || (strings && !text))
    throw Error(
        {"TC3102",
         ExitCode::Unsupported,
         {"", "", "", v.name.raw(), -1},
         "a model input or output of type " + to_text(v.type) + " is not supported",
         {strings ? "strings are those of --target c; let a model of numbers begin behind what reads them"
                  : "only tensors with static sizes can be passed: bind sizes of inputs with --dim, and let the model "
                    "declare those that a run decides"},
         false});
  IoTensor t;
  t.name = v.name;
  t.dtype = v.type.dtype;
  t.dims = static_dims(v.type.shape);
  return t;
}

/// Memory is so many times a size without an upper bound and a rest, the places of elements are whole numbers of it: a third is
/// neither, and no number of such sizes is the product of two. Throws Error TC3106.
void refuse_what_no_memory_holds(const Graph& g) {
  const auto& chosen = g.sizes().chosen;
  const auto open = std::find_if(chosen.begin(), chosen.end(), [](const SizeInput& s) { return is_open(s.most); });
  if (open == chosen.end()) return;
  for (const auto& v : g.values()) {
    if (!v->type.is_static_tensor()) continue;
    const Dims dims = static_dims(v->type.shape);
    if (has_several_open(dims))
      throw needs_upper_bound(
          g.inputs().at(open->input)->name, open->least,
          {"", v->producer && !v->producer->origins.empty() ? v->producer->origins[0].raw() : "", "", v->name.raw(),
           -1},
          "a tensor grows with two such sizes, and no kernel computes it and what reads it block by block");
    for (const int64_t d : dims) {
      // Halves are whole numbers of bytes in all tensors but those of single bytes, which have room for more.
      const int64_t rest = d > INT64_MAX / 2 ? 0 : open_number(2 * d).rest;
      if (rest > -kMostRoom && rest < kMostRoom) continue;
      throw needs_upper_bound(g.inputs().at(open->input)->name, open->least, {"", "", "", v->name.raw(), -1},
                              "a part of it is the size of a tensor");
    }
  }
}

}  // namespace

ProgramBuilder::ProgramBuilder(std::string name, PassContext& cx) : cx_(cx), loop_passes_(cx.options), planned_(cx) {
  p_.name = std::move(name);
  p_.cpu = std::string(cx.target.processor);
  p_.march = std::string(cx.target.march);
  p_.lanes = cx.target.vector_lanes;
  p_.align = cx.target.align;
}

Program ProgramBuilder::take(Graph& g) {
  refuse_what_no_memory_holds(g);
  p_.title = g.name();
  p_.macs = multiply_accumulates(g);
  nodes_ = g.num_nodes();
  for (size_t i = 0; i < g.inputs().size(); i++) {
    const Value* v = g.inputs()[i];
    p_.inputs.push_back(io_tensor(*v, cx_.target.strings));
    operands_[v] = {Operand::Kind::Input, int(i)};
  }
  sizes_.assign(g.inputs().begin(), g.inputs().end());
  for (const Value* v : g.outputs()) p_.outputs.push_back(io_tensor(*v, cx_.target.strings));
  for (const SizeInput& s : g.sizes().chosen) {
    IoTensor& t = p_.inputs.at(s.input);
    t.is_size = true;
    t.least = s.least;
    t.most = s.most;
    if (!s.next) continue;
    t.state = keep(g.inputs()[s.input]);
    t.next = *s.next;
    if (cx_.target.device_memory)
      store_number({Operand::Kind::Input, int(s.input)}, {Operand::Kind::Slot, t.state}, p_.steps);
  }
  for (const InputSize& s : g.sizes().inputs) p_.inputs.at(s.input).sizes.push_back({s.axis, 0, s.count});
  for (const OutputSize& s : g.sizes().outputs) {
    p_.outputs.at(s.output).sizes.push_back({s.axis, int(s.count), s.sum});
    if (!s.of_inputs()) p_.outputs.at(s.count).is_count = true;
  }
  for (const StatePair& s : g.sizes().states) {
    const Value* v = g.inputs().at(s.input);
    p_.inputs.at(s.input).state = p_.outputs.at(s.output).state = keep(v);
    if (cx_.target.device_memory) clear_behind(p_.inputs[s.input], p_.steps);
    replace_by_steps(g, v, g.outputs().at(s.output));
    for (const IoSize& size : p_.inputs[s.input].sizes)
      for (const SizeSum::Term& term : size.sum.terms)
        if (IoTensor& t = p_.inputs[term.input]; !t.is_kept() && t.same < 0)
          t.same = kept_slot(new_slot(t.name, "of_states", DType::I64, {}));
  }
  live_ = LiveAxes(g);
  const bool fixed_sizes = g.sizes().chosen.empty() && g.sizes().inputs.empty() && g.sizes().outputs.empty();
  if (fixed_sizes && cx_.options.opt_level > 0) parts_ = Parts(g, *cx_.backend);
  take_sized_inputs(g);
  assign_outputs(g);
  add_nodes(g, p_.steps);
  copy_remaining_outputs(g);
  copy_states(g);
  planned_.finish();
  finish();
  return std::move(p_);
}

// `t` counts by sizes: the bytes of what there is are a product of them.
CopyStep ProgramBuilder::sized_copy(const IoTensor& t, Operand from, Operand to) const {
  CopyStep c;
  c.from = from;
  c.to = to;
  c.bytes = info(t.dtype).bytes;
  for (size_t d = 0; d < t.dims.size(); d++) {
    const auto size = std::find_if(t.sizes.begin(), t.sizes.end(), [&](const IoSize& s) { return s.axis == int(d); });
    if (size == t.sizes.end())
      c.bytes = checked_mul(c.bytes, t.dims[d]);
    else
      c.times.push_back(size->sum);
  }
  return c;
}

namespace {

/// Are all sizes that are known at run time those that the caller chooses?
bool is_chosen(const IoTensor& t) {
  return !t.sizes.empty() && std::all_of(t.sizes.begin(), t.sizes.end(), [](const IoSize& s) { return s.of_inputs(); });
}

}  // namespace

// Kernels read, and write, tensors of the largest sizes: the caller's memory ends with what there is.
void ProgramBuilder::take_sized_inputs(const Graph& g) {
  for (size_t i = 0; i < p_.inputs.size(); i++) {
    const Value* v = g.inputs()[i];
    if (!is_chosen(p_.inputs[i]) || !v->is_used() || p_.inputs[i].is_kept()) continue;
    const Operand slot = new_slot(v->name, "", v->type.dtype, static_dims(v->type.shape));
    CopyStep c = sized_copy(p_.inputs[i], {Operand::Kind::Input, int(i)}, slot);
    c.room = byte_size(*v);
    // What nobody needs may be anything, as it may behind results; indices, which are tested, are needed.
    const bool on_host = !cx_.target.device_memory && !is_open(c.room);
    if (on_host && is_float(v->type.dtype) && !live_.reads_behind(g, v, p_.inputs[i].sizes)) c.room = 0;
    if (cx_.target.device_memory)
      fill_room(c, v->type.dtype, p_.steps);
    else
      add_part(p_.steps, std::move(c));
    operands_[v] = slot;
  }
}

// A computed value that is (a view of) an output is written straight into the user's memory.
void ProgramBuilder::assign_outputs(const Graph& g) {
  for (size_t k = 0; k < g.outputs().size(); k++) {
    const Value* root = root_of(g.outputs()[k]);
    if (p_.outputs[k].is_kept()) continue;
    if (root->producer && !root->is_constant() && operands_.count(root) == 0 && !is_chosen(p_.outputs[k])) {
      operands_[root] = {Operand::Kind::Output, int(k)};
      direct_.insert(k);
    }
  }
}

void ProgramBuilder::copy_remaining_outputs(Graph& g) {
  for (size_t k = 0; k < g.outputs().size(); k++) {
    if (direct_.count(k) != 0 || p_.outputs[k].is_kept()) continue;
    const Value* v = g.outputs()[k];
    const Operand output = {Operand::Kind::Output, int(k)};
    if (is_chosen(p_.outputs[k]))
      add_part(p_.steps, sized_copy(p_.outputs[k], operand_of(v), output));
    else
      copy_value(p_.steps, v, output);
  }
}

// The tensor, or the size, that `v` is, in memory of its own; returns the slot.
int ProgramBuilder::keep(const Value* v) {
  return kept_slot(operands_[v] = new_slot(v->name, "", v->type.dtype, static_dims(v->type.shape)));
}
int ProgramBuilder::kept_slot(const Operand& slot) {
  Slot& s = p_.slots[size_t(slot.index)];
  s.kept = true;
  s.first = 0;
  s.last = INT32_MAX;
  return slot.index;
}

// Results that are not computed in place of what they replace are copied there, last of all; those that lie in another
// state's memory go by way of a copy.
void ProgramBuilder::copy_states(const Graph& g) {
  const auto memory = [&](int slot) {
    const int root = p_.slots[size_t(slot)].alias_of;
    return root >= 0 ? root : slot;
  };
  std::vector<CopyStep> last;
  step_++;
  for (const StatePair& s : g.sizes().states) {
    const Value* v = g.outputs()[s.output];
    const int kept = p_.inputs[s.input].state;
    Operand from = operand_of(v);
    const bool in_slot = from.kind == Operand::Kind::Slot;
    if (in_slot && memory(from.index) == kept) continue;
    if (in_slot && p_.slots[size_t(memory(from.index))].kept) {
      const Operand copy = new_slot(v->name, "copy", v->type.dtype, static_dims(v->type.shape));
      add_copy(p_.steps, from, copy, byte_size(*v));
      from = copy;
    }
    CopyStep c;
    c.from = from;
    c.to = {Operand::Kind::Slot, kept};
    c.bytes = byte_size(*v);
    last.push_back(std::move(c));
  }
  step_++;
  for (CopyStep& c : last) {
    touch(c.from);
    add_part(p_.steps, std::move(c));
  }
}

Operand ProgramBuilder::operand_of(const Value* v) {
  const Value* root = root_of(v);
  if (const auto it = operands_.find(root); it != operands_.end()) {
    touch(it->second);
    return it->second;
  }
  check(root->is_constant(), "a value is read before it is computed");
  // Bodies have their own values for one constant of the model.
  const auto [it, added] = stored_.try_emplace(root->constant.get(), 0);
  if (added) it->second = add_weight(*root, root->constant, "", "");
  return operands_[root] = {Operand::Kind::Weight, it->second};
}

Operand ProgramBuilder::result_of(const Value* v) {
  if (const auto it = operands_.find(v); it != operands_.end()) {
    touch(it->second);
    return it->second;
  }
  if (const Part* p = parts_.of(v)) return operands_[v] = part_slot(v, "", *p);
  return operands_[v] = new_slot(v->name, "", v->type.dtype, static_dims(v->type.shape));
}

// `suffix`: our own name for what is not the model's tensor itself.
Operand ProgramBuilder::new_slot(const ModelText& name, const std::string& suffix, DType dtype, const Dims& dims) {
  Slot s;
  s.name = name;
  s.suffix = suffix;
  s.dtype = dtype;
  s.dims = dims;
  s.bytes = checked_mul(num_elements(dims), info(dtype).bytes);
  s.first = s.last = step_;
  p_.slots.push_back(std::move(s));
  return {Operand::Kind::Slot, int(p_.slots.size()) - 1};
}

void ProgramBuilder::touch(const Operand& o) {
  if (o.kind == Operand::Kind::Slot && !p_.slots[size_t(o.index)].kept) p_.slots[size_t(o.index)].last = step_;
}

int ProgramBuilder::add_weight(const Value& v, const Constant& data, const std::string& suffix,
                               const std::string& layout) {
  Weight w;
  w.name = v.name;
  w.suffix = suffix;
  w.data = data;
  w.layout = layout;
  p_.weights.push_back(std::move(w));
  return int(p_.weights.size()) - 1;
}

void ProgramBuilder::add_nodes(Graph& g, std::vector<Step>& steps) {
  for (const auto& n : g.nodes())
    for (const Value* v : n->inputs)
      if (v) last_use_[root_of(v)] = n.get();
  for (const Value* v : g.outputs()) last_use_[root_of(v)] = nullptr;
  for (const auto& n : g.nodes()) {
    step_++;
    if (cx_.progress) cx_.progress("kernels " + to_text(int64_t(step_)) + "/" + to_text(int64_t(nodes_)));
    if (is_view(*n)) continue;
    if (const Assembly* a = parts_.assembly(n.get()))
      add_assembly(*n, *a, steps);
    else if (n->is("If"))
      add_if(*n, steps);
    else if (n->is("Loop"))
      add_loop(*n, steps);
    else if (n->is("Scan"))
      add_scan(*n, steps);
    else
      add_call(*n, steps);
  }
}

void ProgramBuilder::finish() {
  add_variants();
  if (has_open_sizes(p_))
    plan_open_sizes(p_, scratch_);
  else
    plan_memory(p_, scratch_);
  if (cx_.options.verify_each) verify_memory(p_);
  cut_steps(p_, cx_.target.device_memory);
  p_.weights_bytes = p_.align;  // of which the header takes 64
  for (Weight& w : p_.weights) {
    w.offset = p_.weights_bytes;
    p_.weights_bytes = checked_add(p_.weights_bytes, (int64_t(w.data->num_bytes) + p_.align - 1) / p_.align * p_.align);
    if (w.data->dtype != DType::String) p_.params += w.data->size();
  }
  int64_t used = std::max(p_.arena_bytes, p_.scratch_offset + p_.scratch_bytes);
  const auto makes = [](const Kernel& k) { return k.makes_strings; };
  if (std::any_of(p_.kernels.begin(), p_.kernels.end(), makes)) {
    p_.strings_offset = used = (used + 63) / 64 * 64;
    p_.strings_bytes = cx_.options.string_bytes;
    used = checked_add(used, checked_add(64, p_.strings_bytes));
  }
  p_.workspace_bytes = (used + 63) / 64 * 64 + p_.align;  // the status word begins the last 64 bytes
  p_.weights_layout = hash_text(identity_of(p_));
  const bool grows = has_open_sizes(p_);
  const auto of_one = [](int64_t n) { return open_number(n).at(1); };  // without bounds nobody knows how much it is
  if (grows) p_.macs = of_one(p_.macs);
  find_checked_sizes(p_);
  const int64_t run_bytes = checked_add(p_.workspace_bytes, p_.weights_bytes);
  for (Kernel& k : p_.kernels) {
    if (grows) k.work.macs = of_one(k.work.macs), k.work.bytes = of_one(k.work.bytes);
    const size_t best = k.variants.empty() ? cx_.others.size() : size_t(k.variants.back());
    const Backend& backend = best < cx_.others.size() ? *cx_.others[best] : *cx_.backend;
    k.work.floor_ns = std::ceil(backend.floor_ns(k.work, run_bytes) * 10) / 10;  // as it is shown: never none
    finish_kernel(k, loop_passes_);
  }
}

Program build_program(Graph& g, const std::string& name, PassContext& cx, std::string& log) {
  ProgramBuilder builder(name, cx);
  Program p = builder.take(g);
  log += builder.log();
  return p;
}

}  // namespace tc
