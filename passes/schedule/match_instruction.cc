#include "passes/schedule/match_instruction.h"

#include <algorithm>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/max_lanes.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"

namespace tc {

std::optional<StoreNest> store_nest(const Stmt& s) {
  StoreNest n;
  Stmt at = s;
  for (; as<For>(at); at = as<For>(at)->body) n.loops.push_back(as<For>(at));
  n.store = as<Store>(at);
  if (!n.store || bool(n.store->count) || n.store->value->vector) return {};
  return n;
}

namespace {

// The row with operands and scalars of its own.
struct MeaningPattern {
  std::vector<Buffer> operands;
  std::vector<Var> scalars;
  Stmt meaning;
};

MeaningPattern pattern_of(const Instruction& row, const std::vector<DType>& types) {
  MeaningPattern p;
  IntrinCall call;
  for (size_t i = 0; i < row.operands.size(); i++) {
    const InstructionOperand& o = row.operands[i];
    const bool vector = o.form == OperandForm::Vector;
    p.operands.push_back(
        make_buffer(std::string(o.name), types[i], {Dim(kMaxLanes)}, vector ? Scope::Register : Scope::Global));
    call.operands.push_back({p.operands.back(), vector ? Exprs() : Exprs{Expr(0)}});
  }
  for (const InstructionScalar& s : row.scalars) {
    p.scalars.push_back(make_var(std::string(s.name)));
    call.scalars.push_back(Expr(p.scalars.back()));
  }
  const Assignments& does = std::get<Assignments>(row.meaning);
  p.meaning = simplify(does.made(call, does.n));
  return p;
}

Expr element_number(const Buffer& b, const Exprs& index) {
  Expr e = b->offset;
  int64_t dense = 1;
  for (size_t d = index.size(); d-- > 0; dense *= b->shape[d].value)
    e = e + index[d] * Expr(b->strides.empty() ? dense : b->strides[d]);
  return e;
}

class Match {
 public:
  /// `loops`: those of the nest in the order of the row's.
  Match(const Instruction& row, const MeaningPattern& p, std::vector<const For*> loops)
      : row_(row), pattern_(p), loops_(std::move(loops)) {
    found_.places.resize(p.operands.size());
    found_.scalars.resize(p.scalars.size());
  }

  std::optional<MatchedNest> run(const Store& have) {
    const auto want = store_nest(pattern_.meaning);
    if (!want || want->loops.size() != loops_.size() || want->store->reduce != have.reduce) return {};
    for (size_t i = 0; i < loops_.size(); i++) {
      own_.push_back(want->loops[i]->var);
      if (!extent(*loops_[i], want->loops[i]->extent, i)) return {};
    }
    const bool same = access(have.buffer, have.index, want->store->buffer, want->store->index) &&
                      expr(have.value, want->store->value);
    return same ? std::optional(found_) : std::nullopt;
  }

 private:
  bool extent(const For& have, const Expr& want, size_t i) {
    const auto n = as_const_int(have.extent);
    const bool plain = have.kind == ForKind::Serial || have.kind == ForKind::Unroll;
    if (!n || !plain || !is_const(have.begin, 0)) return false;
    if (!as<Lanes>(want)) return number(want, *n);
    found_.lanes = i;
    return *n > 0 && *n % kMaxLanes == 0;
  }

  // A number of the row, or a scalar that becomes one.
  bool number(const Expr& want, int64_t have) {
    if (const auto n = as_const_int(want)) return *n == have;
    const VarRef* v = as<VarRef>(want);
    const auto it = v ? std::find(pattern_.scalars.begin(), pattern_.scalars.end(), v->var) : pattern_.scalars.end();
    if (it == pattern_.scalars.end()) return false;
    std::optional<int64_t>& known = found_.scalars[size_t(it - pattern_.scalars.begin())];
    if (!known) known = have;
    return *known == have;
  }

  bool access(const Buffer& have, const Exprs& index, const Buffer& want, const Exprs& pattern) {
    const auto it = std::find(pattern_.operands.begin(), pattern_.operands.end(), want);
    if (it == pattern_.operands.end() || have->dtype != want->dtype || index.empty()) return false;
    const size_t i = size_t(it - pattern_.operands.begin());
    const bool vector = row_.operands[i].form == OperandForm::Vector;
    OperandPlace p{have,
                   vector ? Exprs(index.begin(), index.end() - 1) : Exprs(),
                   vector ? index.back() : element_number(have, index),
                   {}};
    if (!find_steps(p, pattern.back())) return false;
    OperandPlace& known = found_.places[i];
    if (!known.buffer) known = p;
    return known.buffer == have && is_const(simplify(known.begin - p.begin), 0) && known.steps == p.steps &&
           std::equal(p.lead.begin(), p.lead.end(), known.lead.begin(), structurally_equal);
  }

  // The step of each loop, which is the row's, and where all of them begin.
  bool find_steps(OperandPlace& p, const Expr& pattern) {
    VarMap start, own_start;
    for (size_t i = 0; i < loops_.size(); i++)
      start[loops_[i]->var.get()] = Expr(0), own_start[own_[i].get()] = Expr(0);
    const Expr begin = simplify(substitute(p.begin, start)), own_begin = simplify(substitute(pattern, own_start));
    Expr rest = p.begin - begin;
    for (size_t i = 0; i < loops_.size(); i++) {
      VarMap next = start, own_next = own_start;
      next[loops_[i]->var.get()] = Expr(1), own_next[own_[i].get()] = Expr(1);
      const auto step = as_const_int(simplify(substitute(p.begin, next) - begin));
      if (!step || !number(simplify(substitute(pattern, own_next) - own_begin), *step)) return false;
      p.steps.push_back(*step);
      rest = rest - Expr(loops_[i]->var) * Expr(*step);
    }
    for (const Expr& e : p.lead)
      for (const For* f : loops_)
        if (uses_var(e, f->var) || !reads_nothing(e)) return false;
    p.begin = begin;
    return is_const(simplify(rest), 0) && reads_nothing(begin) && number(own_begin, 0);
  }

  bool exprs(const Exprs& a, const Exprs& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); i++)
      if (!expr(a[i], b[i])) return false;
    return true;
  }

  bool expr(const Expr& a, const Expr& b) {
    if (a->dtype != b->dtype || a->vector || b->vector || a->kind.index() != b->kind.index()) return false;
    if (const Load* l = as<Load>(a)) return access(l->buffer, l->index, as<Load>(b)->buffer, as<Load>(b)->index);
    if (const Cast* k = as<Cast>(a)) return k->saturate == as<Cast>(b)->saturate && expr(k->value, as<Cast>(b)->value);
    const Apply* k = as<Apply>(a);
    if (!k) return structurally_equal(a, b);  // constants
    const Apply& other = *as<Apply>(b);
    if (k->op != other.op) return false;
    const MatchedNest before = found_;
    if (exprs(k->args, other.args)) return true;
    if (k->op != Op::Mul && k->op != Op::Add) return false;
    found_ = before;
    return exprs({k->args[1], k->args[0]}, other.args);
  }

  const Instruction& row_;
  const MeaningPattern& pattern_;
  const std::vector<const For*> loops_;
  std::vector<Var> own_;  // the row's
  MatchedNest found_;
};

// Distinct buffers that are read, in order of appearance.
std::vector<Buffer> loaded(const Expr& e) {
  std::vector<Buffer> list;
  walk(e, [&](const Expr& x) {
    const Load* l = as<Load>(x);
    if (l && std::find(list.begin(), list.end(), l->buffer) == list.end()) list.push_back(l->buffer);
    return true;
  });
  return list;
}

// Operands that may be of any type are of the same one.
bool takes(const Instruction& row, const std::vector<DType>& types) {
  std::optional<DType> any;
  for (size_t i = 0; i < types.size(); i++) {
    const auto& may = row.operands[i].types;
    if (!may.empty() && std::find(may.begin(), may.end(), types[i]) == may.end()) return false;
    if (may.empty() && any.value_or(types[i]) != types[i]) return false;
    if (may.empty()) any = types[i];
  }
  return true;
}

// As the row with operands of these types; the loops in any order that changes no sum.
std::optional<MatchedNest> match(const Instruction& row, const MeaningPattern& p, const StoreNest& nest) {
  const bool any_order = !nest.store->reduce || !is_float(nest.store->buffer->dtype);
  std::vector<size_t> order(nest.loops.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    std::vector<const For*> loops;
    for (const size_t i : order) loops.push_back(nest.loops[i]);
    if (auto found = Match(row, p, loops).run(*nest.store)) {
      // Steps in the order of the nest's loops.
      for (OperandPlace& place : found->places) {
        std::vector<int64_t> steps(order.size());
        for (size_t i = 0; i < order.size(); i++) steps[order[i]] = place.steps.at(i);
        place.steps = steps;
      }
      if (found->lanes) found->lanes = order[*found->lanes];
      return found;
    }
  } while (any_order && std::next_permutation(order.begin(), order.end()));
  return {};
}

constexpr size_t kMostLoops = 4;  // of a row's meaning

}  // namespace

// Which of the buffers that the nest reads is which operand, that is tried.
std::optional<MatchedNest> match_instruction(const Instruction& row, const StoreNest& nest, Stmt& meaning) {
  const std::vector<Buffer> read = loaded(nest.store->value);
  if (read.size() + 1 != row.operands.size() || nest.loops.size() > kMostLoops) return {};
  std::vector<size_t> operand(read.size());
  std::iota(operand.begin(), operand.end(), 0);
  do {
    std::vector<DType> types = {nest.store->buffer->dtype};
    for (const size_t i : operand) types.push_back(read[i]->dtype);
    if (!takes(row, types)) continue;
    const MeaningPattern p = pattern_of(row, types);
    meaning = p.meaning;
    if (auto found = match(row, p, nest)) return found;
  } while (std::next_permutation(operand.begin(), operand.end()));
  return {};
}

}  // namespace tc
