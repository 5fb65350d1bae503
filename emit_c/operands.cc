#include "emit_c/operands.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "emit_c/strings.h"
#include "ir/open_size.h"
#include "support/sum_text.h"

namespace tc {
namespace {

std::string access(const std::string& macro, const std::string& name, DType t) {
  if (t == DType::F32) return macro + "(" + name + ")";
  return macro + "_AS(" + std::string(info(t).c_type) + ", " + name + ")";
}

bool uses_counter(const LoopStep& l) {
  auto is_part = [](const Step& s) {
    const auto* c = std::get_if<CopyStep>(&s.kind);
    return c && c->part != CopyStep::Part::None;
  };
  return l.trips >= 0 || l.trip_count || l.iteration || std::any_of(l.body.begin(), l.body.end(), is_part);
}

}  // namespace

std::string operand_text(const Program& p, const ProgramNames& n, const Operand& o, const std::string& member) {
  const size_t i = size_t(o.index);
  switch (o.kind) {
    case Operand::Kind::Input: return (p.inputs[i].is_size ? "&in" : "in") + member + n.inputs[i];
    case Operand::Kind::Output: return "out" + member + n.outputs[i];
    case Operand::Kind::Slot: return access("AT", n.slots[i], p.slots[i].dtype);
    case Operand::Kind::Weight:
      if (p.weights[i].data->dtype == DType::String) return table_name(n, i);
      return access("WEIGHT", n.weights[i], p.weights[i].data->dtype);
    case Operand::Kind::Scratch: return "SCRATCH";
    case Operand::Kind::Status: return "STATUS";
    case Operand::Kind::Strings: return "MADE";
  }
  return "?";
}

std::string null_tests(const Program& p, const ProgramNames& n) {
  std::string s;
  for (size_t i = 0; i < p.inputs.size(); i++)
    if (!p.inputs[i].is_size && !p.inputs[i].is_kept() && !has_no_elements(p.inputs[i].dims))
      s += " || !in->" + n.inputs[i];
  for (size_t i = 0; i < p.outputs.size(); i++)
    if (!p.outputs[i].is_kept() && !has_no_elements(p.outputs[i].dims)) s += " || !out->" + n.outputs[i];
  return s;
}

std::string run_parameters(const ProgramNames& n, const std::string& instance) {
  const std::string& x = n.lower;
  return "(const " + (instance.empty() ? x : instance) + " *" + n.self + ", const " + x + "_inputs *in, const " + x +
         "_outputs *out)";
}

std::string init_parameters(const Program& p, const ProgramNames& n) {
  return n.lower + " *" + n.self + (open_sizes(p).empty() ? "" : ", const " + n.lower + "_sizes *sizes") +
         ", const void *weights, size_t weights_bytes, void *workspace, size_t workspace_bytes";
}

std::string size_text(const SizeSum& s, const std::function<std::string(size_t)>& name) {
  std::vector<std::pair<std::string, int64_t>> terms;
  for (const SizeSum::Term& t : s.terms) terms.emplace_back(name(t.input), t.factor);
  return sum_text(terms, s.addend);
}

std::string size_text(const Program& p, const ProgramNames& n, const SizeSum& s, const std::string& inputs,
                      const std::string& counts) {
  return size_text(s, [&](size_t k) {
    const IoTensor& size = p.inputs[k];
    if (!size.is_kept()) return inputs + n.inputs[k];
    return counts.empty() ? "*" + access("AT", n.slots[size_t(size.state)], DType::I64) : counts + n.inputs[k];
  });
}

std::string size_tests(const Program& p, const ProgramNames& n) {
  std::vector<std::string> tests;
  for (size_t i = 0; i < p.inputs.size(); i++)
    if (const IoTensor& t = p.inputs[i]; t.is_size && !t.is_kept())
      tests.push_back("in->" + n.inputs[i] + " < " + to_text(t.least) + " || in->" + n.inputs[i] + " > " +
                      (is_open(t.most) ? n.self + "->sizes." + n.inputs[i] : to_text(t.most)));
  return join(tests, " || ");
}

std::vector<size_t> open_sizes(const Program& p) {
  std::vector<size_t> list;
  for (size_t i = 0; i < p.inputs.size(); i++)
    if (p.inputs[i].is_size && !p.inputs[i].is_kept() && is_open(p.inputs[i].most)) list.push_back(i);
  return list;
}

std::string memory_text(int64_t bytes, const std::string& room) {
  const OpenNumber o = open_number(bytes);
  return o.times == 0 ? to_text(bytes) : "(" + open_text(bytes, room) + ")";
}

std::string difference_tests(const Program& p, const ProgramNames& n, const std::string& counts) {
  std::vector<std::string> tests;
  for (const IoTensor& t : p.inputs)
    for (const IoSize& z : t.sizes) {
      const auto falls = [](const SizeSum::Term& s) { return s.factor < 0; };
      if (z.sum.addend >= 0 && std::none_of(z.sum.terms.begin(), z.sum.terms.end(), falls)) continue;
      const std::string test = size_text(p, n, z.sum, "in->", counts) + " < 0";
      if (std::find(tests.begin(), tests.end(), test) == tests.end()) tests.push_back(test);
    }
  return join(tests, " || ");
}

std::string room_tests(const Program& p, const ProgramNames& n, const std::string& counts) {
  std::vector<std::string> tests;
  for (const IoTensor& t : p.inputs)
    if (t.is_size && t.is_kept()) tests.push_back(size_text(p, n, t.next, "in->", counts) + " > " + to_text(t.most));
  return join(tests, " || ");
}

namespace {

/// What a run adds to a size that the instance counts, over its common divisor.
struct Growth {
  SizeSum unit;
  int64_t times = 0;
};

/// No times at all: what there is afterwards is not what there was and more.
Growth growth_of(const Program& p, size_t input) {
  Growth g{p.inputs[input].next, 0};
  const auto self = std::find(g.unit.terms.begin(), g.unit.terms.end(), SizeSum::Term{input, 1});
  if (self == g.unit.terms.end()) return g;
  g.unit.terms.erase(self);
  std::sort(g.unit.terms.begin(), g.unit.terms.end(),
            [](const SizeSum::Term& a, const SizeSum::Term& b) { return a.input < b.input; });
  g.times = std::gcd(int64_t(0), g.unit.addend);
  for (const SizeSum::Term& t : g.unit.terms) g.times = std::gcd(g.times, t.factor);
  if (g.times == 0) return g;
  g.unit.addend /= g.times;
  for (SizeSum::Term& t : g.unit.terms) t.factor /= g.times;
  return g;
}

}  // namespace

std::map<size_t, int64_t> growths(const Program& p) {
  std::map<size_t, int64_t> list;
  std::optional<SizeSum> unit;
  int64_t common = 0;
  for (size_t k = 0; k < p.inputs.size(); ++k) {
    if (!p.inputs[k].is_size || !p.inputs[k].is_kept()) continue;
    const Growth g = growth_of(p, k);
    const bool some_more = !g.unit.terms.empty() && g.unit.addend != 0;  // past + seq + 1: how often 1, nobody knows
    if (g.times == 0 || some_more || (unit && *unit != g.unit)) return {};
    unit = g.unit;
    list[k] = g.times;
    common = std::gcd(common, g.times);
  }
  if (unit && unit->terms.empty())  // every run brings as many elements of one state for each of another
    for (auto& [k, times] : list) times /= common;
  return list;
}

bool counts_states(const Program& p) {
  return std::any_of(p.inputs.begin(), p.inputs.end(), [](const IoTensor& t) { return t.is_size && t.is_kept(); });
}

std::vector<size_t> sizes_of_states(const Program& p) {
  std::vector<size_t> list;
  for (size_t k = 0; k < p.inputs.size(); k++)
    if (p.inputs[k].same >= 0) list.push_back(k);
  return list;
}

std::string other_size_tests(const Program& p, const ProgramNames& n, const std::function<std::string(size_t)>& same) {
  std::vector<std::string> tests;
  for (const size_t k : sizes_of_states(p))
    tests.push_back("(" + same(k) + " != 0 && in->" + n.inputs[k] + " != " + same(k) + ")");
  return join(tests, " || ");
}

bool tests_states(const Program& p) { return counts_states(p) || !sizes_of_states(p).empty(); }

int64_t state_rank(const Program& p) {
  size_t rank = 1;
  for (const IoTensor& t : p.inputs)
    if (t.is_kept()) rank = std::max(rank, t.dims.size());
  return int64_t(rank);
}

bool keeps_states(const Program& p) {
  return std::any_of(p.inputs.begin(), p.inputs.end(), [](const IoTensor& t) { return t.is_kept(); });
}

bool can_fail(const Program& p) {
  return std::any_of(p.kernels.begin(), p.kernels.end(), [](const Kernel& k) { return k.can_fail; });
}

bool counts_iterations(const std::vector<Step>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& s) {
    if (const auto* c = std::get_if<IfStep>(&s.kind))
      return counts_iterations(c->then) || counts_iterations(c->otherwise);
    const auto* l = std::get_if<LoopStep>(&s.kind);
    return l && (l->declared >= 0 || counts_iterations(l->body));
  });
}

LoopNames loop_names(size_t depth) {
  if (depth == 0) return {"i", "go", "trips"};
  const std::string counter = depth < 4 ? std::string(1, "ijkl"[depth]) : "i" + to_text(int64_t(depth));
  return {counter, "go_" + counter, "trips_" + counter};
}

std::string loop_header(const LoopStep& l, const LoopNames& n, const std::string& limit, bool reads_limit_once,
                        const std::string& start) {
  const bool counts = uses_counter(l) || l.declared >= 0, asks = l.may_end || l.start;
  std::vector<std::string> vars, conditions;
  if (counts && l.declared < 0) vars.push_back(n.counter + " = 0");
  if (l.trip_count && reads_limit_once) vars.push_back(n.trips + " = " + limit);
  if (asks) vars.push_back(n.go + " = " + (l.start ? start : "1"));
  if (asks) conditions.push_back(n.go);
  if (l.trips >= 0 || l.trip_count)
    conditions.push_back(n.counter + " < " + (l.trip_count && reads_limit_once ? n.trips : limit));
  std::string head = vars.empty() ? "for (; " : "for (int64_t " + join(vars, ", ") + "; ";
  head += join(conditions, " && ") + ";" + (counts ? " " + n.counter + "++" : "");
  return head + ") {";
}

std::string part_offset(const CopyStep& c, const LoopNames& n, DType dtype) {
  if (c.part == CopyStep::Part::None) return "";
  const int64_t size = c.bytes / info(dtype).bytes;
  const std::string at = c.reversed ? "(" + to_text(c.parts - 1) + " - " + n.counter + ")" : n.counter;
  return " + " + at + (size == 1 ? "" : " * " + to_text(size));
}

std::string bytes_text(int64_t bytes, DType t) {
  if (t != DType::String) return to_text(bytes);
  return to_text(bytes / info(DType::String).bytes) + " * sizeof(tc_string)";
}

std::string sized_number(const Program& p, const ProgramNames& n, const CopyStep& c, const std::string& member) {
  std::vector<std::string> sizes;
  for (const SizeSum& s : c.times) {
    const std::string text = size_text(p, n, s, "in" + member);
    sizes.push_back(s.is_one() ? "(size_t)" + text : "(size_t)(" + text + ")");
  }
  return join(sizes, " * ");
}

std::string sized_bytes(const Program& p, const ProgramNames& n, const CopyStep& c, const std::string& member) {
  return sized_number(p, n, c, member) + " * " + bytes_text(c.bytes, dtype_of(p, c.to));
}

std::string copy_size(const Program& p, const CopyStep& c) { return bytes_text(c.bytes, dtype_of(p, c.to)); }

DType dtype_of(const Program& p, const Operand& o) {
  const size_t i = size_t(o.index);
  switch (o.kind) {
    case Operand::Kind::Input: return p.inputs[i].dtype;
    case Operand::Kind::Output: return p.outputs[i].dtype;
    case Operand::Kind::Slot: return p.slots[i].dtype;
    case Operand::Kind::Weight: return p.weights[i].data->dtype;
    case Operand::Kind::Scratch:
    case Operand::Kind::Status:
    case Operand::Kind::Strings: break;
  }
  throw InternalError("scratch memory and the status word are no tensors");
}

}  // namespace tc
