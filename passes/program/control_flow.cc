// The steps of If, Loop and Scan. What bodies capture is the outer tensor itself. A state of a loop is one tensor that
// lives from before the first iteration to behind the last, the loop's own result where somebody wants that; the body
// computes the next state elsewhere, if it cannot do so in place, and copies at its end bring it over:
//   h, ys = Scan(h0, xs) { h', y = body(h, x) }
//   ->  h = h0   for (t = 0; t < 16; t++) { x = part t of xs   ... body ...   h = h'   part t of ys = y }
// Copies at the end happen as if at once: states may swap.
#include <algorithm>

#include "ir/identity.h"
#include "ir/loop/build.h"
#include "ir/ops/regions.h"
#include "passes/program/program_builder.h"

namespace tc {
namespace {

// CUDA: a loop with at most so many calls and copies is part of the graph around it, each of them a node.
constexpr int64_t kGraphNodes = 1024;
constexpr Operand kNone{Operand::Kind::Slot, -1};

bool same(const Operand& a, const Operand& b) { return a.kind == b.kind && a.index == b.index; }

// How many nodes of a graph the steps become; more than kGraphNodes if the host has to decide something on the way.
int64_t graph_nodes(const std::vector<Step>& steps) {
  int64_t n = 0;
  for (const Step& s : steps) {
    const auto* loop = std::get_if<LoopStep>(&s.kind);
    const bool plain = std::holds_alternative<Call>(s.kind) || std::holds_alternative<CopyStep>(s.kind);
    if (!plain && !(loop && loop->in_graph)) return kGraphNodes + 1;
    n += loop ? loop->trips * graph_nodes(loop->body) : 1;
    if (n > kGraphNodes) return n;
  }
  return n;
}

}  // namespace

// The tensors of a loop's states; kNone for a state that nobody reads.
struct ProgramBuilder::States {
  std::vector<Operand> operands;
  std::vector<const Value*> inputs;  // of the body
  bool commented = false;            // a copy before the loop shows the origins
};

struct ProgramBuilder::Move {
  Operand from, to;
  int64_t bytes;
  const Value* state;
};

// What the end of an iteration does.
struct ProgramBuilder::End {
  const States* states;
  size_t first;                                  // of the body's outputs that are next states
  std::vector<CopyStep> parts;                   // this iteration's parts of what is stacked
  const Value* condition = nullptr;              // of the body, to go on
  std::optional<Operand> number = std::nullopt;  // counts up
};

// Tensors without elements may be null pointers: nothing is copied.
void ProgramBuilder::add_copy(std::vector<Step>& steps, Operand from, Operand to, int64_t bytes) {
  if (is_host_number(from)) return store_number(from, to, steps);
  CopyStep c;
  c.from = from;
  c.to = to;
  c.bytes = bytes;
  add_part(steps, std::move(c));
}

void ProgramBuilder::copy_value(std::vector<Step>& steps, const Value* from, Operand to) {
  if (byte_size(*from) > 0) add_copy(steps, operand_of(from), to, byte_size(*from));
}

void ProgramBuilder::add_part(std::vector<Step>& steps, CopyStep c) {
  if (c.bytes == 0) return;
  step_++;
  touch(c.from);
  touch(c.to);
  steps.push_back({std::move(c)});
}

std::vector<Operand> ProgramBuilder::captures(Node& n) {
  std::vector<Operand> list;
  const size_t own = own_inputs(n);
  for (size_t i = own; i < n.inputs.size(); i++) list.push_back(operand_of(n.inputs[i]));
  for (const auto& body : n.regions) {
    const size_t first = body->inputs().size() - list.size();
    for (size_t i = 0; i < list.size(); i++) operands_[body->inputs()[first + i]] = list[i];
  }
  return list;
}

void ProgramBuilder::add_if(Node& n, std::vector<Step>& steps) {
  IfStep s;
  s.condition = operand_of(n.inputs.at(0));
  s.origins = n.origins;
  std::vector<Operand> results;
  for (const Value* v : n.outputs) results.push_back(v ? result_of(v) : kNone);
  const std::vector<Operand> captured = captures(n);
  for (size_t r = 0; r < 2; r++) {
    Graph& body = *n.regions.at(r);
    std::vector<Step>& branch = r == 0 ? s.then : s.otherwise;
    add_nodes(body, branch);
    for (size_t k = 0; k < results.size(); k++)
      if (results[k].index >= 0) copy_value(branch, body.outputs()[k], results[k]);
  }
  step_++;
  for (const Operand& o : results)
    if (o.index >= 0) touch(o);
  for (const Operand& o : captured) touch(o);
  steps.push_back({std::move(s)});
}

// What a state becomes, step by step, may take its place; what is an output, too, or a view of it is, only at last.
void ProgramBuilder::replace_by_steps(const Graph& g, const Value* state, const Value* result) {
  const Value* const last = root_of(result);
  std::set<const Value*> wanted;
  for (const Value* v : g.outputs()) wanted.insert(root_of(v));
  std::set<const Value*> steps;
  const Value* now = last;
  for (; now != state && now->producer && !now->producer->inputs.empty() && now->producer->inputs[0];
       now = root_of(now->producer->inputs[0]))
    if (now == last || !wanted.contains(now)) steps.insert(now);
  if (now == state)
    kept_[state] = std::move(steps);
  else
    kept_[state] = {last};
}

// Does the result lie where the state does, which it has replaced?
bool ProgramBuilder::is_replaced(const Operand& state, const Operand& result) const {
  if (state.kind != Operand::Kind::Slot || result.kind != Operand::Kind::Slot) return false;
  const auto root = [&](const Operand& o) {
    const int of = p_.slots[size_t(o.index)].alias_of;
    return of >= 0 ? of : o.index;
  };
  return root(state) == root(result) && p_.slots[size_t(state.index)].bytes == p_.slots[size_t(result.index)].bytes;
}

// Operands `first`... of the node are the states, inputs `first_in_body`... of its body, whose outputs `first_next`... are
// the next ones. A state that the body only hands on, and whose end nobody wants, has no tensor.
ProgramBuilder::States ProgramBuilder::begin_states(Node& n, size_t first, size_t count, size_t first_in_body,
                                                    size_t first_next, std::vector<Step>& steps) {
  States s;
  Graph& body = *n.regions.at(0);
  const size_t before = steps.size();
  for (size_t k = 0; k < count; k++) {
    const Value* in = body.inputs().at(first_in_body + k);
    const Value* out = n.outputs.at(k);
    s.inputs.push_back(in);
    s.operands.push_back(kNone);
    const bool only_kept = in->users.empty() && in->output_uses == (body.outputs().at(first_next + k) == in ? 1 : 0);
    if (!out && only_kept) continue;
    const Operand from = operand_of(n.inputs.at(first + k));
    const Operand operand = out ? result_of(out) : new_slot(in->name, "", in->type.dtype, static_dims(in->type.shape));
    s.operands.back() = operands_[in] = operand;
    replace_by_steps(body, in, body.outputs().at(first_next + k));
    add_copy(steps, from, operand, byte_size(*in));
  }
  if (steps.size() > before) {
    if (auto* copy = std::get_if<CopyStep>(&steps[before].kind)) copy->origins = n.origins;
    if (auto* call = std::get_if<Call>(&steps[before].kind)) call->origins = n.origins;
  }
  s.commented = steps.size() > before;
  return s;
}

// Copies as if all were made at once.
void ProgramBuilder::move_states(std::vector<Move> pending, std::vector<Step>& steps) {
  while (!pending.empty()) {
    auto is_read = [&](const Move& m) {
      return std::any_of(pending.begin(), pending.end(), [&](const Move& o) { return same(o.from, m.to); });
    };
    auto free = std::find_if_not(pending.begin(), pending.end(), is_read);
    if (free == pending.end()) {  // a cycle: one old state moves out of the way
      free = pending.begin();
      const Operand old =
          new_slot(free->state->name, "old", free->state->type.dtype, static_dims(free->state->type.shape));
      add_copy(steps, free->to, old, free->bytes);
      for (Move& m : pending)
        if (same(m.from, free->to)) m.from = old;
    }
    add_copy(steps, free->from, free->to, free->bytes);
    pending.erase(free);
  }
}

// Next states and parts get where they belong. What is read from a state's old tensor is read before the new state gets
// there.
void ProgramBuilder::end_iteration(Node& n, const End& end, std::vector<Step>& steps) {
  const Graph& body = *n.regions.at(0);
  const States& states = *end.states;
  std::vector<Move> moves;
  for (size_t k = 0; k < states.operands.size(); k++) {
    const Value* next = body.outputs().at(end.first + k);
    if (states.operands[k].index < 0) continue;
    const Move m{operand_of(next), states.operands[k], byte_size(*next), states.inputs[k]};
    if (!same(m.from, m.to) && !is_replaced(m.to, m.from) && m.bytes > 0) moves.push_back(m);
  }
  auto overwritten = [&](const Operand& o) {
    return (end.number && same(*end.number, o)) ||
           std::any_of(moves.begin(), moves.end(), [&](const Move& m) { return same(m.to, o); });
  };
  auto rest = [&](bool before) {
    for (const CopyStep& c : end.parts)
      if (overwritten(c.from) == before) add_part(steps, c);
    if (!end.condition || overwritten(operand_of(end.condition)) != before) return;
    step_++;
    steps.push_back({ContinueStep{operand_of(end.condition)}});
  };
  rest(true);
  move_states(moves, steps);
  if (end.number) count(n, *end.number, steps);
  rest(false);
}

void ProgramBuilder::end_loop(LoopStep s, const Node& n, const States& states, const std::vector<Operand>& alive,
                              std::vector<Step>& steps) {
  step_++;
  for (const Operand& o : alive)
    if (o.index >= 0) touch(o);
  for (const Operand& o : states.operands)
    if (o.index >= 0) touch(o);
  if (!states.commented) s.origins = n.origins;
  steps.push_back({std::move(s)});
}

// Where the outputs behind `states` ones are stacked.
std::vector<Operand> ProgramBuilder::stacked_results(const Node& n, size_t states, std::vector<Operand>& alive) {
  std::vector<Operand> results;
  for (size_t k = states; k < n.outputs.size(); k++) results.push_back(n.outputs[k] ? result_of(n.outputs[k]) : kNone);
  alive.insert(alive.end(), results.begin(), results.end());
  return results;
}

// A loop that never runs stacks nothing, which what follows may still read.
void ProgramBuilder::add_skipped_loop(const Node& n, size_t states) {
  std::vector<Operand> alive;
  stacked_results(n, states, alive);
}

// Their parts of this iteration: the body's outputs from `first` on. `reversed`: which of them count down; empty: none.
std::vector<CopyStep> ProgramBuilder::stacked_parts(const Node& n, const std::vector<Operand>& results, size_t first,
                                                    const std::vector<int64_t>& reversed) {
  std::vector<CopyStep> parts;
  for (size_t k = 0; k < results.size(); k++) {
    if (results[k].index < 0) continue;
    const Value* part = n.regions.at(0)->outputs().at(first + k);
    const Value* whole = n.outputs[n.outputs.size() - results.size() + k];
    CopyStep c;
    c.from = operand_of(part);
    c.to = results[k];
    c.bytes = byte_size(*part);
    c.part = CopyStep::Part::To;
    c.reversed = !reversed.empty() && reversed.at(k) != 0;
    c.parts = static_dims(whole->type.shape).at(0);
    parts.push_back(std::move(c));
  }
  return parts;
}

// Fills the tensor with the number of the iteration before the body reads it. In C the executor does. On CUDA no host
// does, whose copies would have to wait: a captured loop copies it from a table, any other one counts on the device.
void ProgramBuilder::begin_number(LoopStep& s, const Value& name, const Operand& number, std::vector<Step>& steps) {
  const int64_t bytes = info(DType::I64).bytes;
  if (!cx_.target.device_memory) {
    s.iteration = number;
  } else if (s.in_graph) {
    MutableTensor table = new_tensor(DType::I64, {s.trips});
    for (int64_t i = 0; i < s.trips; i++) table.as<int64_t>()[i] = i;
    CopyStep c;
    c.from = {Operand::Kind::Weight,
              add_weight(name, std::make_shared<TensorData>(std::move(table.data)), "table", "")};
    c.to = number;
    c.bytes = bytes;
    c.part = CopyStep::Part::From;
    c.parts = s.trips;
    s.body.insert(s.body.begin(), Step{std::move(c)});
  } else {
    const int zero = add_weight(name, scalar_constant(DType::I64, 0), "first", "");
    add_copy(steps, {Operand::Kind::Weight, zero}, number, bytes);
  }
}

// number = number + 1, on the device.
void ProgramBuilder::count(Node& n, const Operand& number, std::vector<Step>& steps) {
  TensorFn fn;
  fn.inputs = {make_buffer("i", DType::I64, {})};
  fn.outputs = {make_buffer("next", DType::I64, {})};
  Stage s;
  s.name = "count";
  s.values = {load(fn.inputs[0], {}) + make_int(DType::I64, 1)};
  s.outputs = fn.outputs;
  fn.stages = {s};
  Call c;
  const Compiled& counting = compile({identity_of(fn), {false}, {}, {}, {false}}, fn, {nullptr}, &n);
  c.kernel = counting.kernel;
  c.by_variant = counting.by_variant;
  check(p_.kernels[size_t(c.kernel)].params.size() == 2, "counting needs no more than two numbers");
  step_++;
  const Operand next = new_slot(n.regions[0]->inputs()[0]->name, "next", DType::I64, {});
  c.operands = {number, next};
  steps.push_back({std::move(c)});
  add_copy(steps, next, number, info(DType::I64).bytes);
}

// `copies`: how many more copies will end its iterations at most.
bool ProgramBuilder::fits_graph(const LoopStep& s, size_t copies) const {
  if (!cx_.target.device_memory || s.trips < 0 || s.trip_count || s.start || s.may_end) return false;
  const int64_t nodes = graph_nodes(s.body) + int64_t(copies);
  return nodes <= kGraphNodes && s.trips <= kGraphNodes / nodes;
}

void ProgramBuilder::add_loop(Node& n, std::vector<Step>& steps) {
  Graph& body = *n.regions.at(0);
  const size_t count = own_inputs(n) - 2;
  const LoopFacts facts = loop_facts(n);
  const States states = begin_states(n, 2, count, 2, 1, steps);
  if (facts.exact() && facts.limit == 0) return add_skipped_loop(n, count);
  LoopStep s;
  std::vector<Operand> alive = captures(n);
  s.trips = facts.limit;
  if (facts.asks_limit) alive.push_back(*(s.trip_count = operand_of(n.inputs[0])));
  if (facts.asks_start) alive.push_back(*(s.start = operand_of(n.inputs[1])));
  s.may_end = facts.asks_end;
  const std::vector<Operand> results = stacked_results(n, count, alive);
  const bool has_room = facts.exact() || n.attrs.count("capacity") > 0;
  for (size_t k = count; k < n.outputs.size() && !has_room; k++)
    if (n.outputs[k]) s.declared = static_dims(n.outputs[k]->type.shape)[0];
  const Value* number = body.inputs()[0];
  const Operand at = number->is_used() ? new_slot(number->name, "", DType::I64, {}) : kNone;
  if (at.index >= 0) alive.push_back(operands_[number] = at);
  add_nodes(body, s.body);
  const std::vector<CopyStep> parts = stacked_parts(n, results, 1 + count, {});
  s.in_graph = fits_graph(s, 2 * count + parts.size() + 1);
  if (at.index >= 0) begin_number(s, *number, at, steps);
  End end{.states = &states, .first = 1, .parts = parts};
  if (facts.asks_end) end.condition = body.outputs()[0];
  if (at.index >= 0 && cx_.target.device_memory && !s.in_graph) end.number = at;
  end_iteration(n, end, s.body);
  end_loop(std::move(s), n, states, alive, steps);
}

void ProgramBuilder::add_scan(Node& n, std::vector<Step>& steps) {
  Graph& body = *n.regions.at(0);
  const size_t scanned = size_t(n.attr_int("num_scan_inputs", 0));
  const size_t count = own_inputs(n) - scanned;
  const auto in_back = n.attr_ints("scan_input_directions", std::vector<int64_t>(scanned, 0));
  const auto out_back = n.attr_ints("scan_output_directions", std::vector<int64_t>(n.outputs.size() - count, 0));
  const States states = begin_states(n, 0, count, 0, 0, steps);
  LoopStep s;
  s.trips = static_dims(n.inputs.at(count)->type.shape).at(0);
  if (s.trips == 0) return add_skipped_loop(n, count);
  std::vector<Operand> alive = captures(n);
  // What is stacked lives from the first iteration's beginning on, before the parts that every iteration begins with.
  const std::vector<Operand> results = stacked_results(n, count, alive);
  for (size_t k = 0; k < scanned; k++) {
    const Value* in = body.inputs().at(count + k);
    if (!in->is_used()) continue;
    CopyStep c;
    c.from = operand_of(n.inputs[count + k]);
    alive.push_back(c.from);
    c.to = operands_[in] = new_slot(in->name, "", in->type.dtype, static_dims(in->type.shape));
    c.bytes = byte_size(*in);
    c.part = CopyStep::Part::From;
    c.reversed = in_back.at(k) != 0;
    c.parts = s.trips;
    add_part(s.body, std::move(c));
  }
  add_nodes(body, s.body);
  const std::vector<CopyStep> parts = stacked_parts(n, results, count, out_back);
  s.in_graph = fits_graph(s, 2 * count + parts.size() + 1);
  end_iteration(n, {.states = &states, .first = 0, .parts = parts}, s.body);
  end_loop(std::move(s), n, states, alive, steps);
}

}  // namespace tc
