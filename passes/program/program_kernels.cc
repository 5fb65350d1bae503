// The calls of build_program: the function of a node, without its scalars and with names of its own, which nodes that mean the
// same share, and the operands that a call gives its kernel (compile_kernel.cc).
#include <algorithm>
#include <cstring>

#include "ir/identity.h"
#include "ir/loop/build.h"
#include "ir/loop/named_buffers.h"
#include "ir/loop/print.h"
#include "ir/loop/raises.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "ir/ops/op.h"
#include "passes/loop/assign_names.h"
#include "passes/program/first_slice.h"
#include "passes/program/name_axes.h"
#include "passes/program/program_builder.h"

namespace tc {

namespace {

// Are all elements the same, as those of a tensor that is filled before data says where it changes? Weights that happen to be equal
// before a training stay weights.
bool fills_a_nest(const TensorFn& fn, const TensorData& c) {
  const bool nest =
      std::any_of(fn.stages.begin(), fn.stages.end(), [](const Stage& s) { return s.kind == Stage::Kind::Nest; });
  if (!nest || c.size() < 2 || info(c.dtype).bits % 8 != 0) return false;
  const size_t one = size_t(info(c.dtype).bytes);
  return std::memcmp(c.bytes.get(), c.bytes.get() + one, (size_t(c.size()) - 1) * one) == 0;
}

// Does a nest name it otherwise than by reading elements?
bool is_read_only_by_element(const TensorFn& fn, const Buffer& b) {
  return std::none_of(fn.stages.begin(), fn.stages.end(), [&](const Stage& s) {
    const auto without_reads = [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      return l && l->buffer == b ? zero(b->dtype) : Expr();
    };
    return s.nest && uses_buffer(rewrite(s.nest, without_reads), b);
  });
}

// Scalars become literals of the function, unless they are its results, too, which are copies of memory; what is left of
// the operands is returned.
TensorFn bake_scalars(const TensorFn& fn, std::vector<const Value*>& operands) {
  std::vector<const Value*> kept;
  TensorFn r = fn;
  r.inputs.clear();
  std::map<const BufferDef*, Expr> literals;
  for (size_t i = 0; i < fn.inputs.size(); i++) {
    const Constant c = root_of(operands[i])->constant;
    const DType t = fn.inputs[i]->dtype;
    const bool number = is_float(t) || is_int(t) || t == DType::Bool;
    const bool is_result = std::find(fn.outputs.begin(), fn.outputs.end(), fn.inputs[i]) != fn.outputs.end();
    const bool uniform =
        c && number && (c->size() == 1 || (fills_a_nest(fn, *c) && is_read_only_by_element(fn, fn.inputs[i])));
    if (uniform && !is_result) {
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
  for (const Buffer& b : fn.outputs) {
    taken.insert(value_name(b->name));
    if (b->dtype == DType::String) taken.insert("made");
  }
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

std::vector<Constant> constants_of(const std::vector<const Value*>& operands) {
  std::vector<Constant> list;
  for (const Value* v : operands) list.push_back(root_of(v)->constant);
  return list;
}

std::vector<bool> are_constant(const std::vector<Constant>& list) {
  std::vector<bool> known;
  for (const Constant& c : list) known.push_back(c != nullptr);
  return known;
}

/// Is an element of `b` read at an index that is tested? What tests it would not be computed for a number that the host passes.
bool is_read_at_tested_index(const TensorFn& fn, const Buffer& b) {
  bool found = false;
  const auto look = [&](const Expr& e) {
    const Load* l = as<Load>(e);
    found = found || (l && l->buffer == b &&
                      std::any_of(l->index.begin(), l->index.end(), [](const Expr& i) { return raises_status(i); }));
    return !found;
  };
  for (const Stage& s : fn.stages) {
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        if (e) walk(e, look);
    if (s.nest)
      walk(
          s.nest, [](const Stmt&) { return true; }, look);
  }
  return found;
}

}  // namespace

// Sizes that have to lie in memory do so for this call.
std::vector<std::pair<const Value*, Operand>> ProgramBuilder::put_into_memory(const TensorFn& fn,
                                                                              const std::vector<const Value*>& operands,
                                                                              std::vector<Step>& steps) {
  std::vector<std::pair<const Value*, Operand>> before;
  if (!cx_.target.device_memory) return before;
  const std::vector<bool> numbers = by_value(operands);
  for (size_t k = 0; k < operands.size(); k++) {
    if (!numbers[k] || !is_read_at_tested_index(fn, fn.inputs[k])) continue;
    const Value* v = root_of(operands[k]);
    if (std::any_of(before.begin(), before.end(), [&](const auto& b) { return b.first == v; })) continue;
    const Operand number = operands_.at(v), slot = new_slot(v->name, "in_memory", DType::I64, {});
    store_number(number, slot, steps);
    before.emplace_back(v, number);
    operands_[v] = slot;
  }
  return before;
}

void ProgramBuilder::add_call(Node& n, std::vector<Step>& steps) {
  const TensorFn& whole = tensor_fn(n);
  std::vector<const Value*> operands;
  for (const int i : fn_operands(n)) operands.push_back(n.inputs.at(size_t(i)));
  const std::vector<const Value*> all = operands;
  TensorFn baked = bake_scalars(whole, operands);
  const auto live = live_outputs(n, baked, operands);
  const TensorFn fn = name_axes(with_own_names(parts_.strided(baked, operands, n.outputs)));
  const std::vector<Constant> constants = constants_of(operands);
  const std::vector<int> dead = dying(n, operands);
  std::vector<std::string> ends;
  for (const LiveOutput& l : live) ends.push_back(l.as_text());
  const auto sizes = put_into_memory(fn, operands, steps);
  FunctionKey key = {identity_of(fn), are_constant(constants), dead, ends, by_value(operands)};
  key.kept = in_states(dead, operands);
  Compiled& c = compile(key, fn, constants, &n, live);
  if (cx_.called) cx_.called(c.function, c.kernel);
  Call call = call_of(c, n, operands);
  const auto one = first_row(n, live, all, operands, dead);
  for (const auto& [v, number] : sizes) operands_[v] = number;
  if (one) {
    IfStep both = {.condition = {}, .then = {}, .otherwise = {}, .origins = {}};  // a size decides
    both.size = one->size;
    Call few = call;
    few.kernel = one->call.kernel;
    few.by_variant = one->call.by_variant;
    few.operands = one->call.operands;
    if (IfStep* before = steps.empty() ? nullptr : std::get_if<IfStep>(&steps.back().kind);
        before && before->size == both.size) {
      before->then.push_back({std::move(few)});
      before->otherwise.push_back({std::move(call)});
      return;
    }
    both.then.push_back({std::move(few)});
    both.otherwise.push_back({std::move(call)});
    steps.push_back({std::move(both)});
    return;
  }
  steps.push_back({std::move(call)});
}

void ProgramBuilder::add_scratch(Call& call) {
  call.operands.push_back({Operand::Kind::Scratch, 0});
  scratch_.push_back({step_, most_scratch(p_, call)});
}

Call ProgramBuilder::call_of(Compiled& c, Node& n, const std::vector<const Value*>& operands) {
  Call call;
  call.kernel = c.kernel;
  call.by_variant = c.by_variant;
  call.origins = n.origins;
  size_t next_input = 0, next_weight = 0, next_output = 0;
  for (const Param& p : p_.kernels[size_t(c.kernel)].params) {
    switch (p.role) {
      case Param::Role::Input:
        call.operands.push_back(operand_of(operands[size_t(c.input_index[next_input++])]));
        break;
      case Param::Role::Weight:
        call.operands.push_back({Operand::Kind::Weight, packed(c, n, operands, next_weight++)});
        break;
      case Param::Role::Output:
        call.operands.push_back(
            output_operand(n, next_output++, c.replaced < 0 ? nullptr : operands[size_t(c.replaced)]));
        break;
      case Param::Role::Scratch: add_scratch(call); break;
      case Param::Role::Status: call.operands.push_back({Operand::Kind::Status, 0}); break;
      case Param::Role::Strings: call.operands.push_back({Operand::Kind::Strings, 0}); break;
    }
  }
  return call;
}

// A product of weights with as many rows as the caller chooses: tiles have several rows, and one row, the next token, takes the
// time of a tile. So the function of one row is a kernel, too, if it reads the same packed weights; so is attention, whose keys a
// tile of queries copies into panels first; and so is that of loops which do not end early.
std::optional<ProgramBuilder::FirstRow> ProgramBuilder::first_row(Node& n, const std::vector<LiveOutput>& all_live,
                                                                  std::vector<const Value*> own,
                                                                  const std::vector<const Value*>& operands,
                                                                  const std::vector<int>& dead) {
  constexpr int64_t kWorthwhile = 4096;  // weights
  const int rows = compiled_.at(last_key_).row_axis;
  const auto at_rows =
      std::find_if(all_live.begin(), all_live.end(), [&](const LiveOutput& l) { return l.axis == rows; });
  if (n.outputs.size() != 1 || (all_live.size() != 1 && at_rows == all_live.end())) return {};
  const LiveOutput& live = at_rows == all_live.end() ? all_live[0] : *at_rows;
  if (!as<VarRef>(live.end)) return {};
  const int output = live.output, axis = live.axis, count = live.sizes.at(0).operand;
  const auto at = std::find(sizes_.begin(), sizes_.end(), operands[size_t(count)]);
  const Shape& shape = n.outputs[size_t(output)]->type.shape;
  const auto is_one = [](const Dim& d) { return d.value == 1; };
  // An image has rows of its own; only a single one is less than a tile.
  const bool single = size_t(axis) + 1 < shape.size() && std::all_of(shape.begin() + axis + 1, shape.end() - 1, is_one);
  const bool weights = single && std::any_of(own.begin(), own.end(), [&](const Value* v) {
                         return root_of(v)->is_constant() && num_elements(static_dims(v->type.shape)) >= kWorthwhile;
                       });
  const bool strips = rows == axis, tiles = weights || strips;
  if (cx_.target.device_memory || at == sizes_.end() || (!tiles && ends_early(compiled_.at(last_key_), count)))
    return {};
  const IoTensor& size = p_.inputs[size_t(at - sizes_.begin())];
  if (!size.is_size || size.is_kept() || size.least > 1 || size.most < 2 || shape[size_t(axis)].value < 2 ||
      !std::all_of(shape.begin(), shape.begin() + axis,
                   [&](const Dim& d) { return strips ? !is_open(d.value) : is_one(d); }))
    return {};
  TensorFn baked = bake_scalars(tensor_fn(n), own);
  const auto rest = live_outputs(n, baked, own, axis);
  const auto one = first_slice(name_axes(with_own_names(parts_.strided(baked, own, n.outputs))), axis);
  if (!one) return {};
  const std::vector<Constant> constants = constants_of(own);
  const Compiled& general = compiled_.at(last_key_);
  const int64_t columns = general.prologue.outputs.empty() ? 0 : general.prologue.outputs[0]->shape.back().value;
  const int replaced = general.replaced;
  const std::string packing = general.prologue_key, function = identity_of(*one);
  if (packed_otherwise_.count(function) != 0) return {};
  const size_t kernels = p_.kernels.size();
  std::vector<std::string> ends;
  ends.reserve(rest.size());
  for (const LiveOutput& l : rest) ends.push_back(l.as_text());
  const FunctionKey key = {function, are_constant(constants), dead, ends, by_value(own), columns, last_key_.kept};
  Compiled& c = compile(key, *one, constants, &n, rest);
  if (c.prologue_key != packing || c.replaced != replaced) {
    packed_otherwise_.insert(function);
    forget_kernels(kernels);
    return {};
  }
  if (cx_.called) cx_.called(c.function, c.kernel);
  return FirstRow{SizeSum::of(size_t(at - sizes_.begin())), call_of(c, n, own)};
}

// Do the loops ask how many there are?
bool ProgramBuilder::ends_early(const Compiled& c, int count) const {
  const Kernel& k = p_.kernels[size_t(c.kernel)];
  const auto at = std::find(c.input_index.begin(), c.input_index.end(), count) - c.input_index.begin();
  std::ptrdiff_t input = 0;
  for (const Param& p : k.params) {
    if (p.role != Param::Role::Input || input++ != at) continue;
    bool reads = false;
    walk(
        k.body, [](const Stmt&) { return true; },
        [&](const Expr& e) {
          const Load* l = as<Load>(e);
          reads = reads || (l && l->buffer == p.buffer);
          return !reads;
        });
    return reads;
  }
  return true;
}

// What nobody needs of the results; the sizes that say so become operands of the function.
std::vector<ProgramBuilder::LiveOutput> ProgramBuilder::live_outputs(const Node& n, TensorFn& fn,
                                                                     std::vector<const Value*>& operands,
                                                                     int but) const {
  std::vector<LiveOutput> live;
  int64_t added = 0;
  for (size_t k = 0; k < fn.outputs.size() && k < n.outputs.size(); k++) {
    if (!n.outputs[k]) continue;
    for (const LiveAxis& l : live_.of(n.outputs[k])) {
      if (l.axis == but) continue;
      LiveOutput out{int(k), l.axis, l.end, {}};
      for (const SizeSymbol& symbol : live_.symbols()) {
        if (!uses_var(l.end, symbol.var)) continue;
        auto at = std::find(operands.begin(), operands.end(), symbol.input);
        if (at == operands.end()) {
          // Exporters change the names of symbols: no kernel knows them.
          fn.inputs.push_back(make_buffer("n" + to_text(added++), DType::I64, {}));
          operands.push_back(symbol.input);
          at = operands.end() - 1;
        }
        out.sizes.push_back({symbol, int(at - operands.begin())});
      }
      live.push_back(std::move(out));
    }
  }
  return live;
}

// Equal exactly for equal ones: the end is made of sums, products, quotients and extremes of sizes, which are numbered.
std::string ProgramBuilder::LiveOutput::as_text() const {
  VarMap numbered;
  std::string bounds;
  for (const Size& s : sizes) {
    numbered[s.symbol.var.get()] = Expr(make_var("#" + to_text(int64_t(s.operand))));
    bounds += " " + to_text(s.symbol.range.min) + ".." + to_text(s.symbol.range.max);
  }
  return to_text(int64_t(output)) + " " + to_text(int64_t(axis)) + bounds + " " + to_text(substitute(end, numbered));
}

// Operands in the arena that nobody needs after n, whose memory the result would fill.
std::vector<int> ProgramBuilder::dying(const Node& n, const std::vector<const Value*>& operands) const {
  const Value* y = n.outputs.size() == 1 ? n.outputs[0] : nullptr;
  if (!y || operands_.count(y) != 0 || parts_.shared(y)) return {};
  std::vector<int> list;
  for (size_t i = 0; i < operands.size(); i++) {
    const Value* root = root_of(operands[i]);
    if (parts_.shared(root)) continue;
    const auto operand = operands_.find(root);
    // What a body captures, or a loop carries, may be needed outside.
    const auto kept = kept_.find(root);
    if (kept != kept_.end() ? kept->second.count(y) == 0 : !root->producer) continue;
    if (operand == operands_.end() || operand->second.kind != Operand::Kind::Slot) continue;
    const auto last = last_use_.find(root);
    if (last == last_use_.end() || last->second != &n) continue;
    if (root->type.dtype != y->type.dtype || byte_size(*root) != byte_size(*y)) continue;
    const auto same = [&](const Value* v) { return root_of(v) == root; };
    if (std::count_if(operands.begin(), operands.end(), same) == 1) list.push_back(int(i));
  }
  return list;
}

// Operands among `dead` that lie in the memory of a state.
std::vector<int> ProgramBuilder::in_states(const std::vector<int>& dead,
                                           const std::vector<const Value*>& operands) const {
  std::vector<int> list;
  for (const int i : dead) {
    const int slot = operands_.at(root_of(operands[size_t(i)])).index, root = p_.slots[size_t(slot)].alias_of;
    if (p_.slots[size_t(root >= 0 ? root : slot)].kept) list.push_back(i);
  }
  return list;
}

// `replaced`: the value whose memory the result takes over, or null.
Operand ProgramBuilder::output_operand(Node& n, size_t k, const Value* replaced) {
  if (n.outputs.at(k)) {
    const Operand y = result_of(n.outputs[k]);
    if (replaced) {
      const int x = operands_.at(root_of(replaced)).index, root = p_.slots[size_t(x)].alias_of;
      p_.slots[size_t(y.index)].alias_of = root >= 0 ? root : x;
    }
    return y;
  }
  const Buffer& b = n.fn->outputs.at(k);  // computed, wanted by nobody
  return new_slot(n.name, "unused", b->dtype, static_dims(b->shape));
}

}  // namespace tc
