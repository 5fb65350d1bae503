// The kernels of build_program: every distinct function is scheduled and lowered once.
#include "ir/identity.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "passes/backend.h"
#include "passes/loop/lower_kernel.h"
#include "passes/program/formula.h"
#include "passes/program/in_place.h"
#include "passes/program/kernel_name.h"
#include "passes/program/kernel_work.h"
#include "passes/program/own_outputs.h"
#include "passes/program/program_builder.h"

namespace tc {

namespace {

// The stages of several contractions are too many for a name: their template has one.
bool is_region(const Scheduled& s) { return s.family == "attention" || s.family == "inverted_residual"; }

std::string summary(const TensorFn& fn) {
  const std::vector<std::string> names = stage_names(fn);
  return names.size() > 1 ? "Fused: " + join(names, ", ") + "." : "";
}

// Numbers that went into packed operands are unknown to the loops, which calls with other numbers may share: the formula
// calls them constants.
TensorFn without_packed_numbers(TensorFn fn, const Scheduled& s) {
  std::set<double> packed, in_loops;
  const auto collect = [](std::set<double>& numbers) {
    return [&numbers](const Expr& e) {
      if (const FloatImm* k = as<FloatImm>(e)) numbers.insert(k->value);
      return true;
    };
  };
  for (const Stage& stage : s.prologue.stages)
    for (const Expr& e : stage.values) walk(e, collect(packed));
  walk(
      s.body, [](const Stmt&) { return true; }, collect(in_loops));
  std::map<std::pair<DType, double>, Expr> constants;
  const auto name = [&](const Expr& e) -> Expr {
    const FloatImm* k = as<FloatImm>(e);
    if (!k || packed.count(k->value) == 0 || in_loops.count(k->value) != 0) return {};
    Expr& c = constants[{e->dtype, k->value}];
    if (!c) c = Expr(make_var("constant", e->dtype));
    return c;
  };
  for (Stage& stage : fn.stages)
    for (Expr& e : stage.values) e = rewrite(e, name);
  return fn;
}

// What the four digits of a kernel's name are a hash of.
std::string loops_as_text(const Kernel& k) {
  std::string s = to_text(k.body);
  for (const DeviceFunction& f : k.device) s += to_text(f.body);
  for (const Param& p : k.params)
    s +=
        p.buffer->name + to_text(ValueType::tensor(p.buffer->dtype, to_shape(p.dims))) + (p.by_value ? " value;" : ";");
  return s;
}

bool has_strings(const TensorFn& fn) {
  const auto is_text = [](const Buffer& b) { return b->dtype == DType::String; };
  return std::any_of(fn.inputs.begin(), fn.inputs.end(), is_text) ||
         std::any_of(fn.outputs.begin(), fn.outputs.end(), is_text);
}

// The first operand among `dead` whose memory the result may take over does; which one it is, -1: none. `kept`: those in the
// memory of a state.
int take_over(Scheduled& s, const std::vector<int>& dead, const std::vector<int>& kept) {
  const auto among = [](const std::vector<int>& list, int i) {
    return std::find(list.begin(), list.end(), i) != list.end();
  };
  for (size_t k = 0; k < s.inputs.size(); k++) {
    const int operand = s.input_index[k];
    const bool state = among(kept, operand);
    if (!among(dead, operand) || !may_be_in_place(s, k, state)) continue;
    s = in_place(std::move(s), k, state);
    return operand;
  }
  return -1;
}

// What is live of an output, in terms of the sizes that are operands then.
Scheduled::Live live_part(Scheduled& s, const TensorFn& fn, const auto& live, const std::vector<bool>& by_value) {
  Scheduled::Live here{s.outputs[size_t(live.output)], live.axis, live.end, {}, true};
  VarMap loads;
  for (const auto& [symbol, operand] : live.sizes) {
    const Buffer& b = fn.inputs[size_t(operand)];
    if (std::find(s.inputs.begin(), s.inputs.end(), b) == s.inputs.end()) {
      s.inputs.push_back(b);
      s.input_index.push_back(operand);
    }
    loads[symbol.var.get()] = load(b, {});
    here.sizes.push_back({b, symbol.range.min, symbol.range.max});
    here.on_host = here.on_host && by_value.at(size_t(operand));
  }
  here.end = substitute(live.end, loads);
  return here;
}

}  // namespace

// `key`: of the function `meaning`. `constants`: its operands that are known, else null. `n`: whose function it is; null: one of ours.
ProgramBuilder::Compiled& ProgramBuilder::compile(const FunctionKey& key, const TensorFn& meaning,
                                                  const std::vector<Constant>& constants, const Node* n,
                                                  const std::vector<LiveOutput>& live) {
  last_key_ = key;
  if (const auto it = compiled_.find(key); it != compiled_.end()) return it->second;
  const TensorFn fn = own_outputs(meaning);
  if (!cx_.target.strings && has_strings(fn))
    throw Error({"TC3104",
                 ExitCode::Unsupported,
                 {"", n ? n->name.raw() : "", n ? n->op : "", "", -1},
                 "strings have no kernels on a GPU",
                 {"--target c has them"},
                 false});
  ScheduleOptions o{
      .strict_fp = cx_.options.strict_fp, .panel_columns = key.panel_columns, .precision = cx_.options.precision};
  Compiled c;
  for (const LiveOutput& l : live)
    if (l.output == 0) o.open_axes.push_back(l.axis);
  std::vector<PlanLine> packing;
  Scheduled s = planned_.schedule(fn, constants, o, c.function, cx_.others.empty() ? nullptr : &packing);
  const Making making = {key, fn, key.constant, live, o};
  const Made made = lowered(making, std::move(s), *cx_.backend, key.dead);
  c.replaced = made.replaced;
  c.row_axis = made.s.row_axis;
  c.input_index = made.s.input_index;
  for (const Buffer& b : made.s.prologue.inputs) {
    size_t i = 0;
    while (i < fn.inputs.size() && fn.inputs[i] != b) i++;
    c.prologue_operands.push_back(int(i));
  }
  c.prologue_key = identity_of(made.s.prologue);
  c.prologue = made.s.prologue;
  c.packer = std::make_shared<Packer>(made.s.prologue);
  c.kernel = add_kernel(making, made);
  for (const Backend* other : cx_.others) c.by_variant.push_back(kernel_for(*other, making, made, c.kernel, packing));
  if (!cx_.others.empty()) c.by_variant.push_back(c.kernel);
  return compiled_[key] = std::move(c);
}

// The printable kernel of loops. `dead`: operands whose memory the result may take over.
ProgramBuilder::Made ProgramBuilder::lowered(const Making& m, Scheduled s, const Backend& backend,
                                             const std::vector<int>& dead) {
  Made r{std::move(s), {}, -1};
  r.replaced = take_over(r.s, dead, m.key.kept);
  for (const LiveOutput& l : m.live) r.s.live.push_back(live_part(r.s, m.fn, l, m.key.by_value));
  loop_passes_.verify_schedule(r.s);
  r.k = backend.lower(r.s, join(stage_names(m.fn), " "), loop_passes_);
  size_t input = 0;
  for (Param& p : r.k.params)
    if (p.role == Param::Role::Input) p.by_value = m.key.by_value.at(size_t(r.s.input_index.at(input++)));
  r.k.formula = formula(without_packed_numbers(m.fn, r.s));
  r.k.summary = summary(m.fn);
  return r;
}

// Operands that are constant or dying in one place only may make no difference to the loops.
int ProgramBuilder::add_kernel(const Making& m, const Made& made) {
  const auto [known, is_new] = kernels_.try_emplace(identity_of(made.k), int(p_.kernels.size()));
  if (!is_new) return known->second;
  Kernel k = made.k;
  k.name = kernel_name(m.fn, loops_as_text(k), is_region(made.s) ? made.s.family : "");
  while (!names_.insert(k.name).second) k.name = k.name.substr(0, 58) + "_" + hex(hash_text(known->first + k.name), 4);
  k.work = work_of(m.fn, made.s, m.key.constant, made.replaced);
  p_.kernels.push_back(std::move(k));
  return known->second;
}

// The function that was compiled last, and the kernels behind the first `kept`, which nobody calls.
void ProgramBuilder::forget_kernels(size_t kept) {
  compiled_.erase(last_key_);
  while (p_.kernels.size() > kept) {
    names_.erase(p_.kernels.back().name);
    std::erase_if(kernels_, [&](const auto& k) { return k.second == int(p_.kernels.size()) - 1; });
    p_.kernels.pop_back();
  }
}

}  // namespace tc
