// Sizes that are known only when the model runs: those that depend on data and that the model does not declare (NonZero,
// Compress, Unique, NonMaxSuppression), and those that the caller chooses (--dim batch=1..8).
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "passes/graph/counts.h"

namespace tc {

/// The output that counts, for operators that can count their results; -1 for all others. With it a node's other
/// results have capacity for the largest number of elements.
int counting_output(const Node& n);

/// A tensor of `axis` elements that are counted when the model runs. Its type has the upper bound; what lies behind the
/// counted elements is finite and, where it is a position, that of the first element.
struct BoundedSize {
  int axis = 0;
  Value* count = nullptr;  // i64 scalar
  int64_t capacity = 0;    // its upper bound
};

struct SlidingWindow;     // counted_windows.cc
struct FourierTransform;  // counted_fourier.cc

/// A state of a Loop that is longer by `step` along an axis behind every iteration. It has room for the longest; state `counter`
/// says how long it is.
struct GrowingState {
  size_t state = 0;
  int axis = 0;
  int64_t step = 0, capacity = 0;
  size_t counter = 0;
};

/// Does the graph, or a body in it, have an operator that counts its results?
bool counts_results(const Graph& g);

/// Which values of one graph have such sizes: the outermost one or a body. Its nodes are shown to it in order.
class BoundedSizes {
 public:
  /// Before everything else, of the outermost graph: inputs with bounded symbolic sizes get capacity for the largest ones, and
  /// each symbol becomes one more input, an i64 scalar that counts.
  void open_inputs(Graph& g);
  /// Puts the branch of an If in its place whose other branch gives empty tensors, if the If reads a tensor with such a
  /// size: where the condition chooses the other one, the results are counted as none. Returns the first node that is
  /// new, or nothing if it is no such If.
  std::optional<NodeIterator> take_branch(Graph& g, Node* n);
  /// Before the types of `n` are inferred, and before anything else: lets reductions, sorting, NonZero,
  /// NonMaxSuppression, Concat (counted_operands.cc), means, Softmax, MatMul (counted_rows.cc), Reshape, Flatten
  /// (counted_views.cc) and Gather (counted_positions.cc) look across a counted axis. Returns the node to go on with.
  Node* look_across(Graph& g, Node* n);
  /// Before a row is asked to expand `n`: operators that have to know how many elements there are get the counts as operands
  /// (counted_attention.cc).
  void give_counts(Graph& g, Node* n);
  /// Before a row is asked, too: a DFT of as many elements as a run has (counted_fourier.cc). Returns the node to go on with.
  Node* transform(Graph& g, Node* n);
  /// The nodes [first, last), which a node with counted operands has become, have types: lets counts follow. Throws Error
  /// TC0303 where they cannot.
  void follow_expanded(Graph& g, NodeIterator first, NodeIterator last);
  void follow_loops(Graph& g, Node* n);
  /// Outputs of the model keep their names by Identities, which replace_value() has put right before `next`: they have
  /// the sizes of what they copy.
  void follow_copies(Graph& g, NodeIterator next);
  /// Replaces `n` by an equal node that has been counted: as many are as many only where the count is the same. True if
  /// there is one; `n` is gone then.
  bool counted_already(Graph& g, Node* n) const;
  /// Before the types of `n` are inferred: lets an operator whose result's size depends on data, and is not declared,
  /// count it in one more output. Returns the node to go on with; `n` may be gone.
  Node* count_results(Graph& g, Node* n);
  /// A Shape of a value with such a size becomes the list of its sizes. True if it was one; `n` is gone then.
  bool replace_shape(Graph& g, Node* n);
  /// Part of a list of sizes that is known although the list is not becomes a constant. True if it was one; `n` is gone
  /// then.
  bool fold_sizes(Graph& g, Node* n);
  // counted_loops.cc
  /// A Scan along a counted axis becomes a Loop of as many iterations, which keeps what the Scan says of its outputs for
  /// finish_stacked(). Returns the node to go on with.
  Node* loop_of_scan(Graph& g, Node* n);
  /// What the bodies of `n` know: what is counted here is counted there, by a count that is captured. Of the operator's own inputs,
  /// the first `own`, states and the parts of what is scanned may be counted (Error TC0303 for others).
  std::vector<BoundedSizes> capture(Graph& g, Node* n, size_t own, const std::vector<GrowingState>& growing);
  /// Gives results of a body that are counted the sizes that the model declares for them; the run checks these.
  void keep_declared(Graph& body, const std::vector<ValueType>& declared);
  /// Results of the bodies of `n` that are counted. Those of an If that both branches count by the same count of outside are counted by
  /// it, and so are those of a loop; others throw Error TC0303. `inside`: what the bodies know.
  void take_results(const Node& n, const std::vector<BoundedSizes>& inside, const std::vector<GrowingState>& growing);
  /// A Loop whose body has types, and whose number of iterations is known only at run time: has room for the largest number, where that
  /// is known; what it stacks is counted. Returns the node to go on with.
  Node* count_iterations(Graph& g, Node* n);
  /// A Loop with states that are longer behind an iteration, as `after` says, gets room for the longest; tells which these are.
  /// Returns the node to go on with.
  Node* widen_states(Graph& g, Node* n, const std::vector<ValueType>& after, std::vector<GrowingState>& growing);
  /// The body's results that are such states again have that room.
  void fit_states(Graph& body, const std::vector<GrowingState>& growing);
  /// At last, since the Loop may be another one by now: as long as their counters say.
  void note_grown(const Node& n, const std::vector<GrowingState>& growing);
  /// What such a Loop has stacked, as it is read. Returns the nodes behind the loop whose types are to be inferred, in order.
  std::vector<Node*> finish_stacked(Graph& g, Node* n);
  /// Throws Error TC0303 if `n`, which is no function of its operands' elements, reads a tensor with such a size.
  void forbid(const Node& n) const;
  /// After the types of `n` are inferred: its results follow its operands. Throws Error TC0303 where they cannot.
  void follow(Graph& g, Node* n);
  /// At the end: the counts become outputs of the graph beside the tensors that they belong to.
  void finish(Graph& g);
  /// Before each node: what counts is an operand of one that stands behind all others. A count that no node reads may be one that
  /// the next node is counted by.
  void hold_counts(Graph& g);
  bool holds_counts(const Node* n) const { return n == holder_; }
  /// When all nodes have been shown: what nobody reads goes.
  void release_counts(Graph& g);

  /// The size along an axis, if it is such a one.
  std::optional<BoundedSize> find(const Value* v, int axis) const;
  /// The only one of a value; nothing if it has none, or several, or if there is no value.
  std::optional<BoundedSize> only_size(const Value* v) const;
  /// All of them, by axis.
  const std::vector<BoundedSize>& sizes(const Value* v) const;
  bool is_counted(const Value* v) const { return !sizes(v).empty(); }
  /// Have both the same sizes, whatever the counts are?
  bool sized_alike(const Value* a, const Value* b) const { return forms(a) == forms(b); }

 private:
  /// Is one element among those that a run may have?
  bool may_be_one(Value* count) const;
  /// The count of output k along `axis`, of a node that follows an operand of `bound` elements: the
  /// operand's own, or, of the first elements of a Slice, as many as there are; null where there are always as many as wanted.
  Value* count_of(Graph& g, Node* n, size_t k, int axis, Value* count, int64_t bound);

  std::optional<SizeSum> open_sum(const Graph& g, const BoundedSize& size) const;
  /// A bounded size as a sum of inputs, which it makes where they are new.
  SizeSum sum_of_inputs(Graph& g, const Dim& d);
  SizeForm form_of(const Graph& g, const SizeSum& sum) const;
  /// Notes that `v` has such a size.
  void note(const Value* v, const BoundedSize& size);
  /// Notes that `y` has the sizes of `x`, but that along `axis`.
  void note_others(const Value* y, const Value* x, int axis);
  // counted_meaning.cc
  /// Notes the sizes of the outputs of `n` that counted operands have.
  void follow_operands(Graph& g, Node* n);
  struct CountGroup;
  std::vector<CountGroup> groups_of(Node* n, const TensorFn& fn) const;
  /// The axes of each output of the function that the group's count goes along. `all`: those of all counts among the operands.
  std::vector<std::set<int>> followed_axes(Node* n, const TensorFn& fn, CountGroup& group,
                                           const std::vector<CountGroup>& all) const;
  static void forbid_size_in_formula(const Node& n, const TensorFn& fn, const CountGroup& group,
                                     const std::vector<std::set<int>>& followed);
  /// Refuses a node in which the count of a group meets another one.
  [[noreturn]] void refuse_meeting(const Node& n, const CountGroup& group, const std::vector<CountGroup>& all) const;
  /// The sizes of a value as forms.
  std::vector<SizeForm> forms(const Value* v) const;
  /// A Reshape to sizes of the capacity, as operators that become others write it, in forms.
  std::optional<std::vector<SizeForm>> forms_behind(const Value* x, const Dims& to) const;
  /// Puts in the place of a Reshape or Flatten of a counted operand the view of sizes `to`; `n` itself where it cannot.
  Node* view_as(Graph& g, Node* n, const std::vector<SizeForm>& to);
  Node* regroup(Graph& g, Node* n, const std::vector<SizeForm>& to, std::vector<int64_t> bounds);
  /// Element k of a list of sizes, if it is a constant or a form of counts.
  std::optional<SizeForm> element(const Value* v, int64_t k);
  std::optional<SizeForm> element(const Value* v, int64_t k, int& budget);
  std::optional<SizeForm> traced(const Value* v, int64_t k, int& budget);
  std::optional<SizeForm> element_of(const Node& n, int64_t k, int& budget);
  /// Whether one size is equal to, less or more than another, where it is so in all runs or in none.
  std::optional<bool> compared(const Node& n);
  /// What an operator of arithmetic makes of two sizes.
  std::optional<SizeForm> computed(const Node& n, const SizeForm& a, const SizeForm& b);
  std::optional<SizeForm> extreme(const SizeForm& a, const SizeForm& b, bool larger);
  std::optional<SizeForm> part_of_list(const Node& n, int64_t k, int& budget);
  std::optional<SizeForm> moved_element(const Node& n, int64_t k, int& budget);
  std::optional<SizeForm> product_of_list(const Node& n, int& budget);
  std::optional<SizeForm> part_of_split(const Value& v, int64_t k, int& budget);
  /// A size times a number, in floating point, before it is rounded.
  struct RealSize {
    SizeForm form;
    int64_t divisor = 1;
  };
  std::optional<RealSize> real(const Value* v, int64_t k, int& budget);
  std::optional<RealSize> real_number(const Value* v);
  /// Are the sizes of its results noted, or told to be fixed?
  bool says_sizes(const Node& n) const;
  // counted_promises.cc
  /// Of a Reshape to the sizes `target`: where one of them is 0, ONNX takes the operand's size instead. True if that is no other
  /// one, or can be checked in the run.
  bool promise_zeros(const std::vector<SizeForm>& target, const std::vector<SizeForm>& from);
  /// The outputs of the graph; those behind the first `own` are counts. One of them will have no result where a promise fails.
  void check_promises(Graph& g, std::vector<Value*>& outputs, size_t own);
  Node* bound_sizes(Graph& g, Node* n);
  void bound_range(Graph& g, Node* n);
  Node* view(Graph& g, Node* n);
  bool from_front(const Value* v, int& budget);
  bool lie_below(const Value* at, const std::vector<SizeForm>& lengths) const;
  void count_positions(Graph& g, Node* n);
  // counted_indexing.cc
  /// Positions that are a sum of numbers in order, 0, 1, ..., along axes, each times a size, and a size.
  struct PositionForm {
    std::map<int64_t, SizeForm> axes;
    SizeForm added;
    PositionForm plus(const PositionForm& other) const;
    PositionForm times(const SizeForm& factor) const;
  };
  static std::optional<PositionForm> counted_up(const TensorData& c);
  std::optional<PositionForm> positions_in_order(const Value* v, int& budget);
  /// The same of an operand that is broadcast to `whole`.
  std::optional<PositionForm> aligned_positions(const Value* part, const Value* whole, int& budget);
  std::optional<PositionForm> sum_or_product(const Node& n, const Value* v, int& budget);
  std::optional<PositionForm> reshaped_positions(const Value* from, const Value* to, int& budget);
  Node* take_in_order(Graph& g, Node* n);
  Node* look_along(Graph& g, Node* n);
  // counted_distinct.cc
  Node* distinct(Graph& g, Node* n);
  Value* without_rows_behind(Graph& g, Node* before, Value* all, Value* like, const BoundedSize& rows,
                             const ModelText& name);
  // counted_fourier.cc
  std::optional<FourierTransform> fourier_transform(const Node& n);
  // counted_choice.cc
  Node* choose(Graph& g, Node* n);
  void bound_grid(Graph& g, Node* n);
  // counted_masks.cc
  Node* count_mask(Graph& g, Node* n);
  /// A ScatterND at the places of a mask of one number, or of a tensor's elements there: a choice for each element.
  Node* put_by_mask(Graph& g, Node* n);
  /// Of a NonZero of a mask whose elements are repeated: how many results there are by the places in the mask.
  std::optional<SizeForm> count_of_repeated(Graph& g, Node* n);
  // counted_fit.cc
  void fit(Graph& g, Node* n);
  void forbid_table_ends(const Node& n, const Value* v, const SizeForm& a, const SizeForm& b) const;
  Node* split(Graph& g, Node* n);
  Node* frames(Graph& g, Node* n);
  Node* take_mean(Graph& g, Node* n);
  Node* keep_axis(Graph& g, Node* n, const BoundedSize& size);
  Node* count_elements(Graph& g, Node* n);
  // counted_spelled.cc
  Node* spell_out(Graph& g, Node* n);
  Value* places_along(Graph& g, Node* n, const Value* x, const BoundedSize& size);
  Value* place_of_extreme(Graph& g, Node* n, Value* x, const BoundedSize& size, bool largest, bool last);
  void contract(Graph& g, Node* n);
  void contract_integers(Graph& g, Node* n);
  /// x with something that changes no result behind what is counted, `number` if there is one: tc.fill_behind.
  Value* filled(Graph& g, Node* n, Value* x, const BoundedSize& size, const std::string& fill, Value* number = nullptr);
  /// A tensor of one element as a scalar; null of null.
  static Value* as_number(Graph& g, Node* before, Value* v);
  /// Infers the type of n's first output and notes that its sizes are `out`, an axis for each of x's.
  void note_sized(Graph& g, Node* n, const Value* x, const std::vector<SizeForm>& out);
  // counted_windows.cc
  Node* slide(Graph& g, Node* n);
  std::optional<std::vector<SizeForm>> sizes_behind(const Node& n, SlidingWindow& s);
  void fill_space(Graph& g, Node* n, const SlidingWindow& s);
  Value* average_taps(Graph& g, Node* n, const SlidingWindow& s, std::vector<SizeForm> out);
  Value* ones_inside(Graph& g, Node* n, const Dims& padding);
  Value* at_least_a_tap(Graph& g, Node* n, Value* share, const SlidingWindow& s);
  Node* pad_same(Graph& g, Node* n, SlidingWindow s);
  Value* number_in_padding(Graph& g, Node* n);
  // counted_places.cc
  Value* renumbered(Graph& g, Node* before, Value* at, const std::vector<SizeForm>& from,
                    const std::vector<SizeForm>& to, const ModelText& name);
  Node* pool_places(Graph& g, Node* n, const std::vector<SizeForm>& in);
  Node* unpool(Graph& g, Node* n);
  // counted_tile.cc
  Value* list_of(Graph& g, Node* n, const std::vector<SizeForm>& sizes, const ModelText& name);
  Node* tile(Graph& g, Node* n);
  // counted_resample.cc
  Node* resample(Graph& g, Node* n);
  struct ResizedAxis;
  Node* resize(Graph& g, Node* n);
  bool is_local(const Node& n, ResizedAxis& a, const SizeForm& in) const;
  SizeForm scaled(Graph& g, Node* n, const BoundedSize& size, double scale);
  void give_axes(Graph& g, Node* n, const std::vector<ResizedAxis>& axes, const std::vector<SizeForm>& in,
                 const std::vector<SizeForm>& out);
  Node* sample(Graph& g, Node* n);
  Node* align_rois(Graph& g, Node* n);
  // counted_pad.cc
  Node* pad(Graph& g, Node* n);
  struct AxisPads {
    int axis;
    SizeForm before, after;
  };
  Node* pad_by_forms(Graph& g, Node* n);
  void ask_elements(const Node& n, int axis, int64_t needed, const SizeForm& length) const;
  /// x with pads along one axis; of mode constant they hold `number`, zeros where it is null.
  Value* pad_along(Graph& g, Node* n, Value* x, const AxisPads& p, const std::string& mode, Value* number);
  void pad_end(Graph& g, Node* n, const BoundedSize& size, std::vector<int64_t>& pads);
  // counted_recurrent.cc
  Node* recur(Graph& g, Node* n);
  void note_layer(Graph& g, Node* n, const BoundedSize& steps, const std::optional<BoundedSize>& rows);
  Node* each_forward(Graph& g, Node* n, const BoundedSize& steps);
  Node* with_last_row(Graph& g, Node* n, const BoundedSize& steps);
  // counted_layers.cc
  Node* layer(Graph& g, Node* n);
  struct ByRange {
    Value *bytes, *scale, *zero_point;
  };
  ByRange quantized_by_range(Graph& g, Node* n, Value* x, const std::vector<ModelText>& names);
  Node* quantize_by_range(Graph& g, Node* n);
  Node* multiply_by_range(Graph& g, Node* n);
  Node* number_of_text(Graph& g, Node* n);
  Node* reverse(Graph& g, Node* n);
  Node* group_norm(Graph& g, Node* n);
  Node* quantized_average(Graph& g, Node* n);
  Node* quantized_pool(Graph& g, Node* n);
  Node* in_reals(Graph& g, Node* n, const std::function<Value*(Value*)>& f);
  Node* quantized_softmax(Graph& g, Node* n);
  Node* quantized_concat(Graph& g, Node* n);
  Node* select_rows(Graph& g, Node* n);
  Value* normalized(Graph& g, Node* n, Value* x, int first);
  /// A node before `before` that counts follow.
  Value* made(Graph& g, Node* before, const std::string& op, const std::vector<Value*>& inputs, const ModelText& name,
              const Attrs& attrs = {}, const std::string& domain = "");
  /// `v` takes the place of n's first output, with its name. Returns the node that makes it.
  Node* replaced(Graph& g, Node* n, Value* v);
  Value* viewed(Graph& g, Node* n, Value* x, const std::vector<SizeForm>& to, const ModelText& name);
  /// Element k of a list of positions of a Slice: a sum of counts, or an i64 scalar of the graph.
  struct Border {
    std::optional<SizeForm> form;
    Value* list = nullptr;
    int64_t index = 0;
  };
  struct Cut {
    int axis = 0;
    Border start, end;
  };
  struct CutParts {
    Value *start = nullptr, *count = nullptr;
  };
  CutParts parts_of(Graph& g, Node* n, const Cut& c, Value* length, const std::vector<int64_t>& key);
  Node* bound_slice(Graph& g, Node* n);
  std::optional<Cut> only_open_cut(Graph& g, Node* n);
  Value* border(Graph& g, Node* n, const Border& b, Value* length, const std::string& suffix);
  Node* cut(Graph& g, Node* n, const Cut& c);
  std::optional<SizeForm> within(SizeForm at, const SizeForm& length, bool backwards);
  Node* cut_by_forms(Graph& g, Node* n, int axis, const SizeForm& from, const SizeForm& to, int64_t step);
  Node* cut_each(Graph& g, Node* n, const std::vector<int64_t>& axes, const std::vector<int64_t>& steps);
  void count_or_none(Graph& g, Node* n);
  Node* limit_top_k(Graph& g, Node* n);
  /// The last of equal elements: where all are the least number, those behind are equal to them.
  Node* limit_position(Graph& g, Node* n, const BoundedSize& size);
  void ignore_boxes_behind(Graph& g, Node* n);
  void drop_empty_parts(Graph& g, Node* n, int axis);
  Node* join(Graph& g, Node* n);
  // counted_attention.cc
  void give_places(Graph& g, Node* n);
  void give_no_lengths(Graph& g, Node* n);
  bool makes_state(const Graph& g, const Node& n) const;
  SizeForm keys_of_present(const Graph& g, const Node& n, const SizeForm& fresh, const Value* past);
  void give_steps(Graph& g, Node* n);
  void follow_steps(Node* n);
  Value* count_along(Graph& g, const Value* v, int axis, const ModelText& name) const;
  SizeForm form_along(const Value* v, int axis) const;
  Value* number_of(Graph& g, Node* n, const SizeForm& f, const ModelText& name);
  void follow_append(Node* n);
  void follow_attention(Node* n);
  Value* appended(Graph& g, Node* n, size_t fresh_operand, size_t past_operand, const Value* result);
  Node* attend(Graph& g, Node* n);
  std::optional<SizeForm> captured_size(Graph& g, Node* n, size_t k);
  void take_iterations(const Node& n, const BoundedSizes& inside, const std::vector<GrowingState>& growing);
  /// How often a Loop runs at most, if there is a bound.
  std::optional<SizeForm> trips_of(const Node& loop);
  struct Counter {
    ModelText name;
    Value* first = nullptr;
    int64_t step = 1;
  };
  /// The Loop with more states behind the first `states`: numbers that every iteration makes larger.
  Node* with_counters(Graph& g, Node* n, size_t states, const std::vector<Counter>& counters);
  // counted_growth.cc
  void begin_growing(Value* state, Value* counter, const GrowingState& s);
  void check_growth(const Node& n, const Value* part, const GrowingState& s, std::vector<BoundedSize>& sizes) const;
  bool is_growing(const Value* v) const { return growing_.count(v->id) != 0; }
  // counted_states.cc
  const StatePair* state_of(const Graph& g, const Value* result) const;
  /// The result of a state has no more elements along `axis` than the state has room for.
  void limit_state(const Graph& g, const SizeForm& f, const Value* result, int axis);
  /// A Concat of a state and what it grows by, one part after the other.
  Node* grow(Graph& g, Node* n, int axis, const SizeForm& total);
  SizeSum sum_of(const Graph& g, const SizeForm& f, const Value* before, const Value* after) const;
  void keep_states(const Graph& g, RunTimeSizes& all) const;
  // counted_scatter.cc
  Node* scatter(Graph& g, Node* n);
  Node* scatter_counted(Graph& g, Node* n, int axis, const SizeForm& rows);
  Node* scatter_elements(Graph& g, Node* n);
  Node* scatter_tuples(Graph& g, Node* n);
  Value* scatter_open(Graph& g, Node* n, Value* data, Value* at, const std::vector<BoundedSize>& open, int axis);
  Value* positions_from_front(Graph& g, Node* n, Value* at, const std::vector<SizeForm>& lengths,
                              const ModelText& name);
  void scatter_rows(Graph& g, Node* n);

  /// The result of a branch is empty where the condition is `when`.
  struct OrNone {
    Value* condition = nullptr;
    bool when = true;
    int axis = 0;
  };
  std::map<std::vector<int64_t>, CutParts> cuts_;         // by borders and length: equal cuts have one count
  std::map<std::pair<int, int64_t>, SizeForm> elements_;  // of lists, by id of the value and index
  std::map<std::pair<SizeForm, double>, Value*> scaled_;  // by size and scale: equal ones have one count
  std::map<int, OrNone> or_none_;                         // by id of the value that an Identity makes
  std::map<int, std::vector<BoundedSize>> sizes_;         // by id of the value
  std::set<int> told_;  // ids of values whose sizes note_sized() has told, fixed ones too
  Counts counts_;
  std::vector<SizeForm> broken_;  // 0 in runs that go well, else 1
  bool in_body_ = false;
  std::set<int> growing_;             // ids of states of a Loop's body that grow
  const Value* iteration_ = nullptr;  // the number that a Loop gives to its body
  Node* holder_ = nullptr;
  std::map<std::string, size_t> symbols_;  // which input each is
  RunTimeSizes chosen_;
};

}  // namespace tc
