// build_program: from a graph of fused functions to a Program that can be printed.
//
// Every distinct function is scheduled and lowered once; nodes that mean the same share a kernel. Values become
// operands: the user's inputs and outputs, weights, or slots of the arena; views share their operand's memory.
// Scheduled prologues (packed weights) are evaluated here, so packed constants are what the weights blob holds.
#include "passes/program/build_program.h"

#include "ir/graph/macs.h"
#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "ir/ops/op.h"
#include "passes/loop/assign_names.h"
#include "passes/loop/lower_kernel.h"
#include "passes/program/cut_steps.h"
#include "passes/program/formula.h"
#include "passes/program/in_place.h"
#include "passes/program/kernel_name.h"
#include "passes/program/name_axes.h"
#include "passes/program/own_outputs.h"
#include "passes/program/plan_memory.h"
#include "passes/program/program_builder.h"
#include "templates/cpu/schedule_cpu.h"
#include "templates/cuda/schedule_cuda.h"

namespace tc {

int64_t byte_size(const Value& v) {
  return checked_mul(num_elements(static_dims(v.type.shape)), info(v.type.dtype).bytes);
}

namespace {

IoTensor io_tensor(const Value& v) {
  if (!v.type.is_static_tensor() || info(v.type.dtype).bytes == 0)
    throw Error({"TC3102",
                 ExitCode::Unsupported,
                 {"", "", "", v.name.raw(), -1},
                 "a model input or output of type " + to_text(v.type) + " is not supported",
                 {"only tensors of numbers with static sizes can be passed; bind sizes with --dim"},
                 false});
  IoTensor t;
  t.name = v.name;
  t.dtype = v.type.dtype;
  t.dims = static_dims(v.type.shape);
  return t;
}

// Scalars become literals of the function; what is left of the operands is returned.
TensorFn bake_scalars(const TensorFn& fn, std::vector<const Value*>& operands) {
  std::vector<const Value*> kept;
  TensorFn r = fn;
  r.inputs.clear();
  std::map<const BufferDef*, Expr> literals;
  for (size_t i = 0; i < fn.inputs.size(); i++) {
    const Constant c = root_of(operands[i])->constant;
    const DType t = fn.inputs[i]->dtype;
    const bool number = is_float(t) || is_int(t) || t == DType::Bool;
    if (c && number && c->size() == 1) {
      literals[fn.inputs[i].get()] = is_float(t) ? make_float(t, c->as_double(0)) : make_int(t, c->as_int(0));
    } else {
      r.inputs.push_back(fn.inputs[i]);
      kept.push_back(operands[i]);
    }
  }
  if (literals.empty()) return fn;
  auto bake = [&](const Expr& e) -> Expr {
    const Load* l = as<Load>(e);
    const auto it = l ? literals.find(l->buffer.get()) : literals.end();
    return it == literals.end() ? Expr() : it->second;
  };
  for (Stage& s : r.stages) {
    for (Expr& e : s.values) e = rewrite(e, bake);
    for (Expr& e : s.init) e = rewrite(e, bake);
    if (s.nest) s.nest = rewrite(s.nest, bake);
  }
  operands = std::move(kept);
  return r;
}

// Operands get names of their own, which parameters and the formula share.
TensorFn with_own_names(const TensorFn& fn) {
  std::set<std::string> taken{"status", "scratch", "arguments", "args", "chunk"};
  for (const Buffer& b : fn.outputs) taken.insert(value_name(b->name));
  std::vector<Buffer> inputs;
  bool changed = false;
  for (const Buffer& b : fn.inputs) {
    const std::string base = value_name(b->name);
    std::string name = base;
    for (int64_t k = 2; !taken.insert(name).second; k++) name = base + to_text(k);
    auto d = std::make_shared<BufferDef>(*b);
    d->name = name;
    changed = changed || name != b->name;
    inputs.push_back(std::move(d));
  }
  return changed ? instantiate(fn, inputs) : fn;
}

// The stages of several contractions are too many words for a name: their template has one.
bool is_region(const Scheduled& s) { return s.family == "attention" || s.family == "inverted_residual"; }

std::string summary(const TensorFn& fn) {
  const std::vector<std::string> words = stage_words(fn);
  return words.size() > 1 ? "Fused: " + join(words, ", ") + "." : "";
}

// The prologue input after which a packed weight is named: the first that its stage reads.
int owner_of(const TensorFn& prologue, const Buffer& out) {
  Buffer b = out;
  for (int guard = 0; guard < 16; guard++) {
    for (size_t i = 0; i < prologue.inputs.size(); i++)
      if (prologue.inputs[i] == b) return int(i);
    const Stage* s = producer(prologue, b);
    if (!s) return 0;
    Buffer next;
    for (const Expr& e : s->values)
      walk(e, [&](const Expr& x) {
        if (const Load* l = as<Load>(x); l && !next) next = l->buffer;
        return !next;
      });
    if (!next) return 0;
    b = next;
  }
  return 0;
}

}  // namespace

ProgramBuilder::ProgramBuilder(std::string name, PassContext& cx) : cx_(cx) {
  p_.name = std::move(name);
  if (cx.target.is_cuda()) {
    p_.cpu = std::string(cx.target.gpu.name);
    p_.align = 256;
    return;
  }
  p_.cpu = std::string(cx.target.cpu.name);
  p_.march = std::string(cx.target.cpu.march);
  p_.lanes = cx.target.cpu.vector_lanes;
}

Program ProgramBuilder::take(Graph& g) {
  p_.title = g.name();
  p_.macs = multiply_accumulates(g);
  nodes_ = g.num_nodes();
  for (size_t i = 0; i < g.inputs().size(); i++) {
    const Value* v = g.inputs()[i];
    p_.inputs.push_back(io_tensor(*v));
    place_[v] = {Operand::Kind::Input, int(i)};
  }
  for (const Value* v : g.outputs()) p_.outputs.push_back(io_tensor(*v));
  for (const OutputSize& size : g.output_sizes()) {
    IoTensor& t = p_.outputs.at(size.output);
    t.counted_axis = size.axis;
    t.count = int(size.count);
    p_.outputs.at(size.count).is_count = true;
  }
  assign_outputs(g);
  add_nodes(g, p_.steps);
  copy_remaining_outputs(g);
  finish();
  return std::move(p_);
}

// A computed value that is (a view of) an output is written straight into the user's memory.
void ProgramBuilder::assign_outputs(const Graph& g) {
  for (size_t k = 0; k < g.outputs().size(); k++) {
    const Value* root = root_of(g.outputs()[k]);
    if (root->producer && !root->is_constant() && place_.count(root) == 0) {
      place_[root] = {Operand::Kind::Output, int(k)};
      direct_.insert(k);
    }
  }
}

void ProgramBuilder::copy_remaining_outputs(Graph& g) {
  for (size_t k = 0; k < g.outputs().size(); k++) {
    if (direct_.count(k) != 0) continue;
    const Value* v = g.outputs()[k];
    const int64_t bytes = byte_size(*v);
    add_copy(p_.steps, operand_of(v), {Operand::Kind::Output, int(k)}, bytes);
  }
}

Operand ProgramBuilder::operand_of(const Value* v) {
  const Value* root = root_of(v);
  if (const auto it = place_.find(root); it != place_.end()) {
    touch(it->second);
    return it->second;
  }
  check(root->is_constant(), "a value is read before it is computed");
  // Bodies have their own values for one constant of the model.
  const auto [it, added] = stored_.try_emplace(root->constant.get(), 0);
  if (added) it->second = add_weight(*root, root->constant, "", "");
  return place_[root] = {Operand::Kind::Weight, it->second};
}

Operand ProgramBuilder::result_of(const Value* v) {
  if (const auto it = place_.find(v); it != place_.end()) {
    touch(it->second);
    return it->second;
  }
  return place_[v] = new_slot(v->name, "", v->type.dtype, static_dims(v->type.shape));
}

// `suffix`: our own word for what is not the model's tensor itself.
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
  if (o.kind == Operand::Kind::Slot) p_.slots[size_t(o.index)].last = step_;
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
    if (n->is("If"))
      add_if(*n, steps);
    else if (n->is("Loop"))
      add_loop(*n, steps);
    else if (n->is("Scan"))
      add_scan(*n, steps);
    else
      add_call(*n, steps);
  }
}

void ProgramBuilder::add_call(Node& n, std::vector<Step>& steps) {
  const TensorFn& whole = tensor_fn(n);
  std::vector<const Value*> operands;
  for (const int i : fn_operands(n)) operands.push_back(n.inputs.at(size_t(i)));
  const TensorFn fn = name_axes(with_own_names(bake_scalars(whole, operands)));
  std::vector<bool> constant;
  std::string key = to_text(fn) + "constant";
  for (const Value* v : operands) {
    constant.push_back(root_of(v)->is_constant());
    key += constant.back() ? '1' : '0';
  }
  const std::vector<int> dead = dying(n, operands);
  for (const int i : dead) key += "d" + to_text(int64_t(i));
  const Compiled& c = compile(fn, constant, dead, key, n);
  Call call;
  call.kernel = c.kernel;
  call.origins = n.origins;
  size_t next_input = 0, next_weight = 0, next_output = 0;
  for (const Param& p : p_.kernels[size_t(c.kernel)].params) {
    switch (p.role) {
      case Param::Role::Input:
        call.operands.push_back(operand_of(operands[size_t(c.input_index[next_input++])]));
        break;
      case Param::Role::Weight:
        call.operands.push_back({Operand::Kind::Weight, packed(c, operands, next_weight++)});
        break;
      case Param::Role::Output:
        call.operands.push_back(
            output_operand(n, next_output++, c.replaced < 0 ? nullptr : operands[size_t(c.replaced)]));
        break;
      case Param::Role::Scratch:
        call.operands.push_back({Operand::Kind::Scratch, 0});
        break;
      case Param::Role::Status:
        call.operands.push_back({Operand::Kind::Status, 0});
        break;
    }
  }
  steps.push_back({std::move(call)});
}

// Operands in the arena that nobody needs after n, whose memory the result would fill.
std::vector<int> ProgramBuilder::dying(const Node& n, const std::vector<const Value*>& operands) const {
  const Value* y = n.outputs.size() == 1 ? n.outputs[0] : nullptr;
  if (!y || place_.count(y) != 0) return {};
  std::vector<int> list;
  for (size_t i = 0; i < operands.size(); i++) {
    const Value* root = root_of(operands[i]);
    const auto place = place_.find(root);
    // What a body captures, or a loop carries, may be needed outside.
    if (!root->producer || place == place_.end() || place->second.kind != Operand::Kind::Slot) continue;
    const auto last = last_use_.find(root);
    if (last == last_use_.end() || last->second != &n) continue;
    if (root->type.dtype != y->type.dtype || byte_size(*root) != byte_size(*y)) continue;
    const auto same = [&](const Value* v) { return root_of(v) == root; };
    if (std::count_if(operands.begin(), operands.end(), same) == 1) list.push_back(int(i));
  }
  return list;
}

// `replaced`: the value whose memory the result takes over, or null.
Operand ProgramBuilder::output_operand(Node& n, size_t k, const Value* replaced) {
  if (n.outputs.at(k)) {
    const Operand y = result_of(n.outputs[k]);
    if (replaced) {
      const int x = place_.at(root_of(replaced)).index, root = p_.slots[size_t(x)].alias_of;
      p_.slots[size_t(y.index)].alias_of = root >= 0 ? root : x;
    }
    return y;
  }
  const Buffer& b = n.fn->outputs.at(k);  // computed, wanted by nobody
  return new_slot(n.name, "unused", b->dtype, static_dims(b->shape));
}

const ProgramBuilder::Compiled& ProgramBuilder::compile(const TensorFn& meaning, const std::vector<bool>& constant,
                                                        const std::vector<int>& dying, const std::string& key,
                                                        const Node& n) {
  if (const auto it = compiled_.find(key); it != compiled_.end()) return it->second;
  const TensorFn fn = own_outputs(meaning);
  for (const Buffer& b : fn.outputs)
    if (info(b->dtype).bytes == 0)
      throw Error({"TC3104",
                   ExitCode::Unsupported,
                   {"", n.name.raw(), n.op, "", -1},
                   "strings are not supported in kernels",
                   {},
                   false});
  const Target& target = cx_.target;
  const ScheduleOptions o{.strict_fp = cx_.options.strict_fp, .precision = cx_.options.precision};
  Scheduled s =
      target.is_cuda() ? schedule_cuda(fn, constant, target.gpu, o) : schedule_cpu(fn, constant, target.cpu, o);
  Compiled c;
  for (size_t k = 0; k < s.inputs.size() && c.replaced < 0; k++)
    if (std::find(dying.begin(), dying.end(), s.input_index[k]) != dying.end() && may_be_in_place(s, k)) {
      c.replaced = s.input_index[k];
      s = in_place(std::move(s), k);
    }
  c.input_index = s.input_index;
  for (const Buffer& b : s.prologue.inputs) {
    size_t i = 0;
    while (i < fn.inputs.size() && fn.inputs[i] != b) i++;
    c.prologue_operands.push_back(int(i));
  }
  c.prologue_key = to_text(s.prologue);
  c.prologue = s.prologue;
  Kernel k = target.is_cuda() ? lower_cuda_kernel(s) : lower_kernel(s);
  std::string kernel_key = to_text(k.body);
  for (const DeviceFunction& f : k.device) kernel_key += to_text(f.body);
  for (const Param& p : k.params)
    kernel_key += p.buffer->name + to_text(ValueType::tensor(p.buffer->dtype, to_shape(p.dims))) + ";";
  if (const auto it = kernels_.find(kernel_key); it != kernels_.end()) {
    c.kernel = it->second;
    return compiled_[key] = std::move(c);
  }
  k.name = kernel_name(fn, kernel_key, is_region(s) ? s.family : "");
  while (!names_.insert(k.name).second) k.name = k.name.substr(0, 58) + "_" + hex(hash_text(kernel_key + k.name), 4);
  k.formula = formula(fn);
  k.summary = summary(fn);
  c.kernel = int(p_.kernels.size());
  kernels_[kernel_key] = c.kernel;
  p_.kernels.push_back(std::move(k));
  return compiled_[key] = std::move(c);
}

// A number for each constant, in order of first use: ids of values are those of one graph only, bodies have others.
int ProgramBuilder::ordinal(const Constant& c) {
  return ordinals_.try_emplace(c.get(), int(ordinals_.size())).first->second;
}

// The k-th packed weight of a call; the same constants packed the same way are stored once.
int ProgramBuilder::packed(const Compiled& c, const std::vector<const Value*>& operands, size_t k) {
  std::string key = c.prologue_key;
  std::vector<Constant> inputs;
  for (const int i : c.prologue_operands) {
    const Value* v = root_of(operands[size_t(i)]);
    inputs.push_back(v->constant);
    key += "," + to_text(int64_t(ordinal(v->constant)));
  }
  std::vector<int>& weights = packed_[key];
  if (weights.empty()) {
    const std::vector<Constant> results = evaluate(c.prologue, inputs);
    for (size_t i = 0; i < results.size(); i++) {
      const int owner = owner_of(c.prologue, c.prologue.outputs[i]);
      const Value* v = root_of(operands[size_t(c.prologue_operands.at(size_t(owner)))]);
      weights.push_back(add_weight(*v, results[i], "packed", ""));
    }
  }
  return weights.at(k);
}

void ProgramBuilder::finish() {
  plan_memory(p_);
  cut_steps(p_, cx_.target.is_cuda());
  p_.weights_bytes = p_.align;  // of which the header takes 64
  for (Weight& w : p_.weights) {
    w.offset = p_.weights_bytes;
    p_.weights_bytes = checked_add(p_.weights_bytes, (int64_t(w.data->num_bytes) + p_.align - 1) / p_.align * p_.align);
    p_.params += w.data->size();
  }
  for (const Kernel& k : p_.kernels) p_.scratch_bytes = std::max(p_.scratch_bytes, k.scratch_bytes);
  p_.scratch_offset = p_.arena_bytes;
  p_.workspace_bytes = p_.arena_bytes + p_.scratch_bytes + p_.align;  // the status word begins the last 64 bytes
}

Program build_program(Graph& g, const std::string& name, PassContext& cx) { return ProgramBuilder(name, cx).take(g); }

}  // namespace tc
