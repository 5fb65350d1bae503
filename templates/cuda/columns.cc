// One reduction whose neighbouring results read neighbours: means over pixels, sums over rows.
//
//   each thread, for its column and its part of the sum:     32 columns a block, the threads of a warp side by side,
//     sum += x[r][column]                                    or 16 or 8, which still read whole sectors of 32 bytes
//   part_of[part][column] = sum, barrier
//   y[column] = epilogue(the parts, in order)
//
// Few results of long reductions along memory: a first launch reduces parts of them, a second one adds these up.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "support/text.h"
#include "templates/cuda/flat_point.h"
#include "templates/cuda/template.h"

namespace tc {
namespace {

constexpr int64_t kColumns = 32, kFewestColumns = 8;  // of a block
constexpr int64_t kParts = 8, kShortestShare = 8;  // threads of a column, at least; what each has to read to have more
constexpr int64_t kLeastDepth = 16;                // shorter reductions are a thread's
constexpr int64_t kShortestPart = 512, kLongestPart = 1 << 15;
constexpr int64_t kPartLength = 4096, kLongest = 1 << 16;  // of rows that several blocks share

// The order of the definition is given up: f32 and f64 join in parts.
bool joins_in_parts(const CudaArgs& a) {
  if (!a.canonical || !bool(a.canonical->value) || a.options.strict_fp) return false;
  const Canonical& c = *a.canonical;
  const bool plain = c.combine == Op::Add || c.combine == Op::Mul || c.combine == Op::Max || c.combine == Op::Min;
  return plain && info(c.reduced->dtype).bytes >= 4 && points(c.axes) > 0 && points(c.raxes) > 0 && !c.border;
}

bool is_neutral(const Canonical& c) {
  const auto n = as_const_number(c.init), none = as_const_number(identity_of(c.combine, c.reduced->dtype));
  return n && none && *n == *none;
}

class ColumnLoops {
 public:
  ColumnLoops(const Canonical& c, int64_t columns, int64_t parts) : c_(c), columns_(columns), parts_(parts) {
    inner_ = c.axes.back();
    outer_.assign(c.axes.begin(), c.axes.end() - 1);
  }

  Stmt build() const {
    const DType t = c_.reduced->dtype;
    const Buffer sum = make_buffer(name_of_reduction(c_.combine), t, {}, Scope::Register),
                 parts = make_buffer("part_of", t, {Dim(parts_), Dim(columns_)}, Scope::Shared);
    const Var thread = make_var("thread"), tx = make_var("tx"), part = make_var("part"), iteration = make_var("i"),
              block = make_var("block"), p = make_var("p"), line = make_var("group");
    const FlatPoint outer(outer_, Expr(line), "group");
    const int64_t depth = points(c_.raxes), iterations = ceil_div(depth, parts_);
    const FlatPoint r(c_.raxes, Expr(iteration) * Expr(parts_) + Expr(part), "r");
    const VarMap at = joined({&outer.at, &r.at});
    Stmt add = store(sum, {}, substitute(c_.value, at), c_.combine);
    if (depth % parts_ != 0) add = if_then(r.flat < Expr(depth), add);
    add = loop(iteration, iterations, r.wrap(add));
    const Expr inside = Expr(inner_.var) < Expr(inner_.extent);
    const bool whole = inner_.extent.value % columns_ == 0;
    if (!whole) add = if_then(inside, add);
    const Expr result = substitute_buffers(substitute(c_.epilogue, outer.at), {{c_.reduced.get(), sum}});
    Stmt finish = seq({store(sum, {}, substitute(c_.init, outer.at)),
                       loop(p, parts_, store(sum, {}, load(parts, {p, tx}), c_.combine), ForKind::Unroll),
                       store(c_.out, {substitute(c_.out_index, outer.at)}, result)});
    finish = if_then(whole ? eq(part, 0) : eq(part, 0) && inside, finish);
    Stmt body = seq({store(sum, {}, identity_of(c_.combine, t)), comment("this thread's part of its column", add),
                     store(parts, {part, tx}, load(sum, {})), barrier(Scope::Shared),
                     comment("the parts joined, in order", finish)});
    body = alloc(sum, body);
    body = let(inner_.var, Expr(block) * Expr(columns_) + Expr(tx), outer.wrap(body));
    body = let(tx, floor_mod(Expr(thread), columns_), let(part, floor_div(Expr(thread), columns_), body));
    Stmt s = alloc(parts, loop(thread, columns_ * parts_, body, ForKind::ThreadX));
    const int64_t lines = points(outer_);
    const auto kinds = grid_kinds(inner_.extent.value, lines);
    check(kinds.has_value(), "columns and lines fit a grid");
    s = loop(block, ceil_div(inner_.extent.value, columns_), s, (*kinds)[0]);
    return lines > 1 ? loop(line, lines, s, (*kinds)[1]) : substitute(s, {{line.get(), Expr(0)}});
  }

 private:
  const Canonical& c_;
  const int64_t columns_, parts_;  // of a block; of a column, a thread each
  Axis inner_;
  std::vector<Axis> outer_;
};

// Fewer columns a block and more threads a column, as long as multiprocessors are idle and a thread has much to read.
Stmt column_loops(const Canonical& c, const CudaArgs& a, std::string& description) {
  const int64_t width = c.axes.back().extent.value, lines = points(c.axes) / width, depth = points(c.raxes);
  auto blocks = [&](int64_t columns) { return lines * ceil_div(width, columns); };
  const int64_t columns = a.plan.number(
      "columns",
      [&] {
        int64_t n = kColumns;
        while (n > kFewestColumns && blocks(n) < a.gpu.multiprocessors) n /= 2;
        return n;
      },
      KnobValues::powers_of_two(kFewestColumns, kColumns));
  const int64_t most = kMaxBlockThreads / columns;
  const int64_t parts = a.plan.number(
      "parts",
      [&] {
        int64_t n = kParts;
        const bool few = blocks(columns) < 2 * a.gpu.multiprocessors;
        while (few && n < most && depth / n > kShortestShare) n *= 2;
        return n;
      },
      KnobValues::powers_of_two(1, most, "threads that share a column"));
  description = to_text(columns) + " columns a block, " + to_text(parts) + " threads share a column";
  return ColumnLoops(c, columns, parts).build();
}

void name_column(Canonical& c) {
  const Var column = make_var("column");
  const VarMap to = {{c.axes.back().var.get(), Expr(column)}};
  for (Expr* e : {&c.value, &c.epilogue, &c.init, &c.out_index}) *e = substitute(*e, to);
  c.axes.back().var = column;
}

// Does every read that follows a variable of the reduction walk memory side by side along the innermost axis?
bool reads_columns(const Canonical& c) {
  if (c.axes.empty() || c.axes.back().extent.value < kColumns || points(c.raxes) < kLeastDepth) return false;
  std::vector<Var> vars = vars_of(c.axes), r = vars_of(c.raxes);
  vars.insert(vars.end(), r.begin(), r.end());
  bool found = false;
  for (const Load* l : loads_of(c.value)) {
    const auto o = l->index.size() == 1 ? offset_of(l->index[0], vars) : std::nullopt;
    if (!o) return false;
    const int64_t step = o->of(c.axes.back().var);
    if (step != 0 && step != 1) return false;
    found |= step == 1;
  }
  return found;
}

// One axis of the reduction whose neighbours lie side by side.
bool reads_along(const Canonical& c) {
  if (c.raxes.size() != 1) return false;
  std::vector<Var> vars = vars_of(c.axes);
  vars.push_back(c.raxes[0].var);
  for (const Load* l : loads_of(c.value)) {
    const auto o = l->index.size() == 1 ? offset_of(l->index[0], vars) : std::nullopt;
    if (!o || (o->of(vars.back()) != 1 && o->of(vars.back()) != 0)) return false;
  }
  return true;
}

// Parts of rows, a block each, then rows of parts, a warp each.
class SharedRows {
 public:
  SharedRows(const Canonical& c, int64_t threads, int64_t length)
      : c_(c), t_(c.reduced->dtype), threads_(threads), length_(length), count_(ceil_div(points(c.raxes), length)) {}

  Stmt build() const {
    const Buffer partial = make_buffer("partial", t_, {Dim(points(c_.axes)), Dim(count_)}, Scope::Workspace);
    return alloc(partial, seq({comment("each part of the reductions", parts(partial)),
                               comment("the parts joined", joined(partial))}));
  }

 private:
  Stmt parts(const Buffer& partial) const {
    const Var part = make_var("part"), row = make_var("row"), thread = make_var("thread"), iteration = make_var("i");
    const FlatPoint at(c_.axes, Expr(row), "row");
    const Buffer sum = scalar();
    const Axis& r = c_.raxes[0];
    Stmt add = store(sum, {}, substitute(c_.value, at.at), c_.combine);
    if (r.extent.value % length_ != 0) add = if_then(Expr(r.var) < Expr(r.extent), add);
    add = let(r.var, Expr(part) * Expr(length_) + Expr(iteration) * Expr(threads_) + Expr(thread), add);
    Stmt body =
        seq({store(sum, {}, identity_of(c_.combine, t_)), loop(iteration, length_ / threads_, add),
             allreduce(sum, c_.combine, threads_), if_then(eq(thread, 0), store(partial, {row, part}, load(sum, {})))});
    return grid(loop(thread, threads_, at.wrap(alloc(sum, body)), ForKind::ThreadX), row, part);
  }

  Stmt joined(const Buffer& partial) const {
    const Var row = make_var("row"), thread = make_var("thread"), iteration = make_var("i"), part = make_var("part");
    const FlatPoint at(c_.axes, Expr(row), "row");
    const Buffer sum = scalar();
    Stmt add = store(sum, {}, load(partial, {row, part}), c_.combine);
    if (count_ % kColumns != 0) add = if_then(Expr(part) < Expr(count_), add);
    add = let(part, Expr(iteration) * Expr(kColumns) + Expr(thread), add);
    const Expr result = substitute_buffers(substitute(c_.epilogue, at.at), {{c_.reduced.get(), sum}});
    const Stmt last = seq({is_neutral(c_) ? Stmt() : store(sum, {}, substitute(c_.init, at.at), c_.combine),
                           store(c_.out, {substitute(c_.out_index, at.at)}, result)});
    const Stmt body =
        seq({store(sum, {}, identity_of(c_.combine, t_)), loop(iteration, ceil_div(count_, kColumns), add),
             allreduce(sum, c_.combine, kColumns), if_then(eq(thread, 0), last)});
    return grid(loop(thread, kColumns, at.wrap(alloc(sum, body)), ForKind::ThreadX), row, {});
  }

  Buffer scalar() const { return make_buffer(name_of_reduction(c_.combine), t_, {}, Scope::Register); }
  Stmt grid(Stmt s, const Var& row, const Var& part) const {
    const int64_t rows = points(c_.axes);
    if (part) s = loop(part, count_, s, ForKind::BlockX);
    return rows > 1 ? loop(row, rows, s, ForKind::BlockY) : substitute(s, {{row.get(), Expr(0)}});
  }

  const Canonical& c_;
  const DType t_;
  const int64_t threads_, length_, count_;  // of a block, of a part; parts
};

Stmt shared_rows(const Canonical& c, const PlanEntry& plan) {
  const int64_t threads = plan.number(
      "threads", [] { return kBlockThreads; }, KnobValues::powers_of_two(kWarp, kMaxBlockThreads));
  const int64_t length = plan.number(
      "part", [] { return kPartLength; },
      KnobValues::powers_of_two(std::max(threads, kShortestPart), kLongestPart, "steps of a reduction for a block"));
  return SharedRows(c, threads, length).build();
}

}  // namespace

std::optional<Scheduled> cuda_columns(const CudaArgs& a) {
  if (!joins_in_parts(a)) return {};
  Canonical c = *a.canonical;
  std::vector<Expr*> values = {&c.value};
  merge_axes(c.raxes, values, {});
  values.push_back(&c.epilogue);
  values.push_back(&c.init);
  merge_axes(c.axes, values, {&c.out_index});
  const int64_t results = points(c.axes);
  if (!c.axes.empty()) name_column(c);
  const int64_t depth = points(c.raxes);
  // Parts of a reduction that has no upper bound are in no memory.
  const bool shared = results * 4 <= a.gpu.multiprocessors && depth >= kLongest && !is_open(depth) && reads_along(c);
  const bool fits = !c.axes.empty() && grid_kinds(c.axes.back().extent.value, results / c.axes.back().extent.value);
  if (!shared && !(reads_columns(c) && fits)) return {};
  Scheduled s;
  s.family = shared ? "shared_rows" : "columns";
  s.description = "blocks share a reduction, whose parts a second launch joins";
  s.body = shared ? shared_rows(c, a.plan) : column_loops(c, a, s.description);
  bind_operands(s, c);
  return s;
}

}  // namespace tc
