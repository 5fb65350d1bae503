// Schedule primitives: checked rewrites of a loop nest.
//
//   Schedule s(fn);                                  the plain loops of a function
//   const Var all = s.fuse(s.loops(s.buffer("add")));
//   const auto [block, thread] = s.split(all, 256);
//   s.bind(block, ForKind::BlockX), s.bind(thread, ForKind::ThreadX);
//
// A Schedule is a value over an immutable statement: a copy costs nothing, and a step that is refused leaves it as it
// was. Loops are named by their variable, results by their buffer. Every step is checked: it keeps what the statement
// computes (sums of floats may be joined in another order where a primitive says so, never under strict_fp) or throws
// ScheduleError. What the analysis does not understand is refused. Steps that were taken can be read in steps().
// docs/schedule-primitives.md lists them with what they refuse.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/language/schedule_text.h"
#include "ir/loop/ir.h"
#include "ir/tensor_fn.h"
#include "passes/schedule/schedule.h"

namespace tc {

/// A step that would change what is computed, or that does not fit the loops. The message names the step, says why and
/// shows the loop.
class ScheduleError : public std::logic_error {
 public:
  explicit ScheduleError(const std::string& message, std::optional<size_t> argument = std::nullopt)
      : std::logic_error(message), argument(argument) {}
  std::optional<size_t> argument;  // the position of the one that cannot be, where it is a single one
};

/// What split does with the last, partial piece.
enum class Tail {
  Guard,  // all pieces are full, an `if` skips what lies behind the end; no `if` where the factor divides the extent
  Min,    // the inner loop ends earlier: extent min(factor, rest), which partition_loops turns into constants
};

/// How pad keeps additional iterations from doing anything.
enum class PadWith {
  Guard,     // an `if` around the body
  Identity,  // the body joins the identity of its operation: `acc += i < n ? x[i] : 0`
};

/// How the loops that a step makes are called, and what is written for those that it takes away.
struct Naming {
  std::vector<std::string> made = {};  // empty: after the loops that were
  bool let = false;  // `let i = i_j / 6`: the text keeps them; otherwise formulas stand where they were
};

/// What a step is told or makes: a loop, a buffer, a number, a word ("register"), a text, or a list of these.
struct StepOperand {
  using List = std::vector<StepOperand>;
  std::variant<Var, Buffer, int64_t, std::string, StepArg::Text, List> value;
};

class Schedule {
 public:
  /// The plain loops of `fn` (lower_naive): a nest per stage, in order, temporaries in Workspace. Loops keep the
  /// variables of the stages' axes; a variable that serves twice is replaced at its second binding.
  /// `known`: which operands are known while compiling, for pack; none of them if it is empty.
  explicit Schedule(const TensorFn& fn, const ScheduleOptions& options = {}, const std::vector<bool>& known = {});
  /// Any statement. Variables and buffers that are bound twice are replaced at their second binding.
  /// `independent`: loops of which it is known that no two iterations touch the same memory.
  explicit Schedule(const Stmt& body, const ScheduleOptions& options = {}, std::vector<Var> independent = {});

  const Stmt& body() const { return body_; }
  /// The steps in order, with the names that loops and buffers have in to_text(body()) before each: apply_step() takes them
  /// again.
  const std::vector<PlanLine>& lines() const { return lines_; }
  /// The same as text: "split(i, 256, guard) as i_o, i_i".
  std::vector<std::string> steps() const;
  /// Renames loops and temporaries so that each has a name of its own, the one of to_text(body()), for as long as it exists.
  /// What the new names stand for.
  std::map<std::string, std::string> tell_apart();
  /// Calls what has one of these names what it stands for again.
  void call_again(const std::map<std::string, std::string>& names);
  /// Whether no step is another one than these.
  bool only(const std::vector<std::string>& names) const;
  /// Gives what the last step has made these names, one each; "_" is what became no loop because it runs once. Throws
  /// ScheduleError if there are more or fewer of them, or if a name is taken.
  void name_results(const std::vector<std::string>& names);

  /// What pack has made of the operands that are known while compiling.
  const TensorFn& prologue() const { return prologue_; }
  /// Memory of operands and results as instructions know it: elements one behind the other.
  const std::vector<Scheduled::View>& views() const { return views_; }
  /// Puts the loops, the steps and the prologue into a result that has the operands of the function.
  void hand_over(Scheduled& s) const;

  /// Takes several steps or, if one of them is refused, none; returns whether they were taken.
  bool attempt(const std::function<void(Schedule&)>& steps);

  // --- what there is
  /// The buffer that a stage fills: an output of the function or the temporary that stands for its result.
  /// `result` counts the stage's outputs. Throws ScheduleError if no stage has the name.
  Buffer buffer(const std::string& stage, size_t result = 0) const;
  /// The same for a stage of the function, whatever its name.
  Buffer buffer(const Stage& stage, size_t result = 0) const;
  /// All loops, in order of appearance.
  std::vector<Var> loops() const;
  /// The loops around the last store to `b`, outermost first: for the result of a reduction those of its axes.
  std::vector<Var> loops(const Buffer& b) const;
  /// The loops of the first nest that joins values into an element (`x += ...`) of the nest that fills `b`, outermost
  /// first, without those around the store to `b` itself: the axes of a reduction.
  std::vector<Var> reduction_loops(const Buffer& b) const;
  /// The loop of `v` as it is now; throws ScheduleError if there is none.
  const For& loop_of(const Var& v) const;

  // --- the shape of loops (loops.cc)
  std::pair<Var, Var> split(const Var& v, int64_t factor, Tail tail = Tail::Guard, const Naming& names = {});
  Var fuse(const Var& outer, const Var& inner) { return fuse({outer, inner}); }
  /// One loop alone stays as it is.
  Var fuse(const std::vector<Var>& loops, const Naming& names = {});
  void reorder(const std::vector<Var>& order);
  /// Another name for the loop's variable, and so in the text that is printed.
  Var rename(const Var& v, const std::string& name);
  /// split both, then outer, outer, inner, inner. Returns them in this order.
  std::vector<Var> tile(const Var& a, const Var& b, int64_t factor_a, int64_t factor_b, Tail tail = Tail::Guard);

  /// Cuts a loop of constant bounds at iterations; returns the loops of the pieces (cut.cc).
  std::vector<Var> partition(const Var& v, const std::vector<int64_t>& at);
  /// Makes the extent a multiple; what lies behind the end does nothing (cut.cc).
  void pad(const Var& v, int64_t multiple, PadWith with = PadWith::Guard);

  // --- how loops run (kinds.cc)
  void unroll(const Var& v);
  void vectorize(const Var& v);
  void parallel(const Var& v);
  void bind(const Var& v, ForKind kind);

  // --- where values are computed (compute_at.cc, reverse.cc)
  void compute_inline(const Buffer& b);
  Buffer compute_at(const Buffer& b, const Var& v, Scope scope = Scope::Workspace);
  void reverse_compute_at(const Buffer& b, const Var& v);

  // --- copies near their use (cache.cc), and when these are loaded (pipeline.cc)
  Buffer cache_read(const Buffer& b, const Var& v, Scope scope);
  Buffer cache_write(const Buffer& b, const Var& v, Scope scope);
  std::vector<Buffer> pipeline(const std::vector<Buffer>& tiles, int64_t stages);
  Buffer pipeline(const Buffer& tile, int64_t stages) { return pipeline(std::vector<Buffer>{tile}, stages)[0]; }
  Buffer double_buffer(const Buffer& tile) { return pipeline(tile, 2); }

  // --- reductions (reduction.cc)
  Buffer rfactor(const Var& v, Scope scope = Scope::Register);
  /// The iterations are threads of a block that share the sum: always ForKind::ThreadX, neighbours of each other.
  void bind_reduction(const Var& v);
  /// Returns the loops that take the place of `v`: of the start values, the sum, the results.
  std::vector<Var> decompose_reduction(const Var& v, Scope scope = Scope::Register);

  // --- memory (storage.cc)
  Buffer set_scope(const Buffer& b, Scope scope);
  Buffer storage_align(const Buffer& b, size_t dimension, int64_t factor, int64_t offset = 0);
  Buffer transform_layout(const Buffer& b, const std::vector<int64_t>& order);
  void prefetch(const Buffer& b, const Var& v, int64_t distance);
  /// An operand that is known while compiling, in another layout (pack.cc).
  Buffer pack(const Buffer& b, const std::vector<int64_t>& order, const std::vector<int64_t>& dimensions = {},
              const std::vector<int64_t>& tiles = {});

  // --- parts of a nest, and what is said of them (blocks.cc)
  void annotate(const Var& v, const std::string& text);
  void blockize(const Var& v);

  // --- instructions (tensorize.cc)
  std::optional<Var> tensorize(const Var& v, const std::string& instruction);

 private:
  friend class StepCheck;
  Buffer flat_view(const Buffer& b);
  /// Other names of loops and temporaries; where the name is empty, it stays.
  void rename_all(const std::function<std::string(const void* id, const std::string& name)>& renamed);
  Stmt body_;
  ScheduleOptions options_;
  std::vector<PlanLine> lines_;
  std::vector<StepOperand> made_;  // by the last step
  std::vector<Var> independent_;   // loops of independent iterations, also where their conditions hide that they are
  std::vector<Buffer> known_;      // operands that are known while compiling
  TensorFn prologue_;              // see Scheduled
  std::vector<std::string> prologue_layouts_;
  std::vector<Scheduled::View> views_;  // of operands that instructions read and write
  struct Result {
    std::string stage;
    Buffer original;  // the stage's first output
    std::vector<Buffer> buffers;
  };
  std::vector<Result> results_;
};

/// The instructions that tensorize() knows, in alphabetical order.
std::vector<std::string> tensorizable_instructions();

}  // namespace tc
