// Graph IR: a mutable SSA graph of operators on values. List order is topological order. Passes edit through the verbs
// of Graph; nothing else changes producers and users. Deep graphs are walked with loops, never by recursion.
#pragma once
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/tensor_fn.h"
#include "ir/types.h"
#include "support/text.h"

namespace tc {

class Graph;
struct Node;
struct OpRow;  // ir/ops/op.h

/// One SSA value: an input of the graph, a constant, or an output of a node. Owned by its graph.
struct Value {
  int id = 0;  // in order of creation, below Graph::value_ids()
  ModelText name;
  ValueType type;
  Node* producer = nullptr;  // null for inputs and constants
  int index = 0;             // which output of the producer
  std::vector<Node*> users;  // one entry per use by a node
  int output_uses = 0;       // how many outputs of the graph it is
  Constant constant;         // set for constants
  std::list<std::unique_ptr<Value>>::iterator self;
  bool is_constant() const { return constant != nullptr; }
  bool is_used() const { return !users.empty() || output_uses > 0; }
};

/// std::monostate: an optional attribute without a default that is not given.
using Attr = std::variant<std::monostate, int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                          std::vector<std::string>, Constant>;
using Attrs = std::map<std::string, Attr>;

/// One application of an operator. Regions (bodies of If, Loop, Scan) are closed: the outer values that a body reads
/// are appended to `inputs`, and the body has one input for each, after those that the operator itself feeds.
///   If:   inputs = cond, captures...                 both regions: inputs = captures
///   Loop: inputs = M, cond, states..., captures...   region: inputs = iteration, cond, states..., captures...
///   Scan: inputs = states..., scanned..., captures...region: inputs = states..., slices..., captures...
struct Node {
  int id = 0;
  ModelText name;
  std::string domain;  // "" is ai.onnx; "tc" holds our own
  std::string op;
  Attrs attrs;
  std::vector<Value*> inputs;   // null: an optional input that is absent
  std::vector<Value*> outputs;  // null: an output nobody asked for
  std::vector<std::unique_ptr<Graph>> regions;
  int captures = 0;                // how many trailing inputs are captures
  std::vector<ModelText> origins;  // names of the model's nodes that this node stands for, in order
  /// The meaning; cached by tensor_fn(), the definition itself for "tc.fused". Graph's verbs reset it when an operand
  /// changes; who edits `attrs` of a node resets it too.
  std::shared_ptr<const TensorFn> fn;
  /// The row of an operator that the user defines (--ops); null: the table has it. See row_of().
  std::shared_ptr<const OpRow> row;
  std::list<std::unique_ptr<Node>>::iterator self;

  int64_t attr_int(const std::string& name, int64_t otherwise) const;
  float attr_float(const std::string& name, float otherwise) const;
  std::string attr_string(const std::string& name, const std::string& otherwise) const;
  std::vector<int64_t> attr_ints(const std::string& name, const std::vector<int64_t>& otherwise = {}) const;
  bool is(std::string_view op_name) const { return op == op_name && domain.empty(); }
};

/// An output whose size along one axis is known when the model runs: as many elements as a sum of inputs says, sizes that the
/// caller chooses; or, if that has no terms, as output `count`, an i64 scalar, says. The output's type holds the upper bound. What
/// there is lies packed, row-major in its actual shape, at the start.
struct OutputSize {
  size_t output = 0;
  int axis = 0;
  size_t count = 0;
  SizeSum sum = {};
  bool of_inputs() const { return !sum.terms.empty(); }
  bool operator==(const OutputSize&) const = default;
};

/// An input that is a size, an i64 scalar: the caller chooses it from `least` to `most`; or, with `next`, whoever keeps the
/// states knows it: 0 at first, and `next` after each run, which must be at most `most`.
struct SizeInput {
  size_t input = 0;
  int64_t least = 0, most = 0;
  std::optional<SizeSum> next = {};
  bool operator==(const SizeInput&) const = default;
};

/// An input whose size along one axis the caller chooses: as many elements as a sum of inputs, each a SizeInput, says; they
/// lie packed as those of an output do, but for a state's, which lie in the largest size.
struct InputSize {
  size_t input = 0;
  int axis = 0;
  SizeSum count;
  bool operator==(const InputSize&) const = default;
};

/// An input and an output that the instance keeps: what a run writes, the next one reads. At first it is zeros.
struct StatePair {
  size_t input = 0, output = 0;
  bool operator==(const StatePair&) const = default;
};

/// What the caller of a graph has to know of sizes and states, in order.
struct RunTimeSizes {
  std::vector<SizeInput> chosen;
  std::vector<InputSize> inputs;
  std::vector<OutputSize> outputs;
  std::vector<StatePair> states = {};
  bool operator==(const RunTimeSizes&) const = default;
};

class Graph {
 public:
  explicit Graph(ModelText name = {}) : name_(std::move(name)) {}
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  const ModelText& name() const { return name_; }
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  size_t num_nodes() const { return nodes_.size(); }

  Value* add_input(ModelText name, ValueType type);
  Value* add_constant(ModelText name, Constant data);
  void set_outputs(std::vector<Value*> values);
  /// Replaces output k of the graph only.
  void set_output(size_t k, Value* v);
  /// Sizes that are known only when the model runs.
  const RunTimeSizes& sizes() const { return sizes_; }
  void set_sizes(RunTimeSizes sizes) { sizes_ = std::move(sizes); }

  /// Adds a node before `before` (null: at the end) with fresh outputs named output_names (an empty name: output absent
  /// unless it is the first). Types of the outputs are unset; see infer_types().
  Node* insert(Node* before, std::string op, std::vector<Value*> inputs, std::vector<ModelText> output_names,
               Attrs attrs = {}, std::string domain = "");
  Node* append(std::string op, std::vector<Value*> inputs, std::vector<ModelText> output_names, Attrs attrs = {},
               std::string domain = "") {
    return insert(nullptr, std::move(op), std::move(inputs), std::move(output_names), std::move(attrs),
                  std::move(domain));
  }
  /// The node must have no used outputs; they go with it.
  void erase(Node* n);
  /// Erases an output that nobody uses; its entry of n->outputs becomes null.
  void drop_output(Node* n, size_t k);
  void set_input(Node* n, size_t i, Value* v);
  void add_node_input(Node* n, Value* v);
  /// Removes operand i; later ones move up.
  void erase_node_input(Node* n, size_t i);
  /// Removes input k of the graph, which nobody may use; later ones move up. Not of a graph with run-time sizes.
  void erase_input(size_t k);
  /// Every use of `from` (users and graph outputs) becomes `to`.
  void replace_uses(Value* from, Value* to);
  void set_type(Value* v, ValueType t);
  void move_before(Node* n, Node* before);
  /// Deep copy, regions included; constants shared.
  Graph clone() const;
  /// Is v an output of the graph?
  bool is_output(const Value* v) const { return v->output_uses > 0; }
  /// Removes constants without users.
  void drop_unused_constants();
  /// Ids in the order of the text (inputs, constants, results), users in the order of the nodes; of the regions, too. What a
  /// pass finds then depends on nothing but what graph_text() says.
  void renumber();
  const std::list<std::unique_ptr<Value>>& values() const { return values_; }
  /// All ids are below these: sizes of tables indexed by id.
  int value_ids() const { return next_value_; }
  int node_ids() const { return next_node_; }

 private:
  Value* new_value(ModelText name, ValueType type);
  void add_use(Value* v, Node* n);
  void drop_use(Value* v, Node* n);
  void erase_value(Value* v);

  ModelText name_;
  std::list<std::unique_ptr<Value>> values_;
  std::list<std::unique_ptr<Node>> nodes_;
  std::vector<Value*> inputs_, outputs_;
  RunTimeSizes sizes_;
  int next_value_ = 0, next_node_ = 0;
};

/// The graph in the language of docs/language.md, one node a line; what pass tests show and --print-ir-after prints.
/// Constants of up to 8 elements show their values, and the function of a fused node follows it.
///   graph net(x: f32[1, 3, 56, 56]) -> (y) {
///     w: f32[64, 3, 3, 3] = const data
///     y: f32[1, 64, 54, 54] = Conv(x, w) {group = 1} from "conv1"
///   }
std::string to_text(const Graph& g);

/// Where the two are not the same but for ids and the sharing of subexpressions, in words; empty: nowhere.
std::string difference_of(const Graph& a, const Graph& b);

}  // namespace tc
