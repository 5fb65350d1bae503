// Operators: one row each. A row is the operator's formula; shape inference, folding, C, CUDA and tests follow from it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/loop/build.h"
#include "ir/tensor_fn.h"

namespace tc {

/// A tensor inside define(): a buffer with static sizes, indexed like a function.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Buffer b) : buffer_(std::move(b)) {}
  explicit operator bool() const { return buffer_ != nullptr; }
  const Buffer& buffer() const { return buffer_; }
  DType dtype() const { return buffer_->dtype; }
  int rank() const { return int(buffer_->shape.size()); }
  Dims dims() const { return static_dims(buffer_->shape); }
  int64_t dim(int i) const { return static_dims(buffer_->shape).at(size_t(i < 0 ? i + rank() : i)); }
  Expr operator()(const Exprs& index) const { return load(buffer_, index); }
  /// NumPy broadcasting: reads with the trailing axes of a larger index; axes of size 1 read 0.
  Expr broadcast_at(const Exprs& index) const;

 private:
  Buffer buffer_;
};

/// What define() sees: the node's operands, attributes (defaults filled in) and the stages it adds.
class OpBuilder {
 public:
  OpBuilder(const Node& node, std::vector<Buffer> inputs);

  // the node
  const Node& node() const { return node_; }
  int num_inputs() const { return int(node_.inputs.size()); }
  bool has(int i) const { return i < num_inputs() && node_.inputs[size_t(i)] != nullptr; }
  Tensor in(int i);  // rejects a missing or non-tensor operand by name
  /// The value of an operand known at compile time, else null.
  Constant constant(int i) const;
  /// The integers of an operand that must be known at compile time (axes, shapes, pads); refuses by name otherwise.
  std::vector<int64_t> const_ints(int i) const;
  int64_t const_int(int i) const { return const_ints(i).at(0); }
  /// Is this operand absent or known at compile time?
  bool known(int i) const { return !has(i) || constant(i) != nullptr; }
  /// The sizes that the model declares for output k: what an operand's values would say if they were known. Refuses,
  /// naming operand `input`, where nothing is declared.
  Dims declared_dims(int k, int input) const;
  int num_outputs() const { return int(node_.outputs.size()); }
  bool wants(int k) const { return k < num_outputs() && node_.outputs[size_t(k)] != nullptr; }
  /// Has a node or the graph use of output k? Before dead code is removed, a node may want what nobody reads.
  bool is_read(int k) const { return wants(k) && node_.outputs[size_t(k)]->is_used(); }
  bool declares(int k) const { return wants(k) && node_.outputs[size_t(k)]->type.is_static_tensor(); }

  /// Given on the node. The getters below fall back on the default of the operator's row, then on `otherwise`.
  bool has_attr(const std::string& name) const;
  int64_t attr_int(const std::string& name, int64_t otherwise = 0) const;
  float attr_float(const std::string& name, float otherwise = 0) const;
  std::string attr_string(const std::string& name, const std::string& otherwise = "") const;
  std::vector<int64_t> attr_ints(const std::string& name, const std::vector<int64_t>& otherwise = {}) const;
  std::vector<float> attr_floats(const std::string& name, const std::vector<float>& otherwise = {}) const;
  /// An axis attribute or value made non-negative; rejects what is outside [-rank, rank).
  int axis(int64_t value, int rank) const;

  // stages
  using Point = std::function<Expr(const Exprs& i)>;
  using ReducePoint = std::function<Expr(const Exprs& i, const Exprs& r)>;
  /// y[i...] = f(i...). `names` of the axes are hints ("oc", "oh"), may be shorter than the rank.
  Tensor compute(std::string name, DType t, Dims shape, const Point& f, std::vector<std::string> names = {});
  /// y[i...] = op over r of f(i, r), starting from `init` (null: the identity of op).
  Tensor reduce(std::string name, Op op, DType t, Dims shape, Dims raxes, const ReducePoint& f,
                std::vector<std::string> names = {}, Expr init = {});
  /// Tuple reduction: f gives one value per component; `combine(lhs, rhs)` joins two tuples.
  std::vector<Tensor> reduce_tuple(std::string name, std::vector<DType> types, Dims shape, Dims raxes,
                                   const std::function<Exprs(const Exprs& i, const Exprs& r)>& f, Exprs init,
                                   const std::function<Exprs(const Exprs& lhs, const Exprs& rhs)>& combine);
  /// Raw Loop IR that fills fresh outputs; `body` receives their buffers. `name` holds the names of all outputs, separated by
  /// blanks, of which the first is the nest's, or this alone.
  std::vector<Tensor> nest(std::string name, std::vector<ValueType> outputs,
                           const std::function<Stmt(const std::vector<Buffer>&)>& body);
  /// Stages added between begin_scan and end_scan advance together along their axis 0. A stage of the group that reads
  /// its own past declares its buffer first: `Tensor h = declare("h", t, shape)`, then define(h, f).
  void begin_scan();
  void end_scan();
  Tensor declare(std::string name, DType t, Dims shape);
  void define(const Tensor& declared, const Point& f, std::vector<std::string> names = {});
  void define_reduce(const Tensor& declared, Op op, Dims raxes, const ReducePoint& f, Expr init = {});
  /// A stage as it is, its outputs declared; it joins the scan that is open.
  void add(Stage s);

  void output(int k, const Tensor& t);

  /// The model is wrong here (exit 1) / the feature is missing (exit 3). `input` >= 0 names an operand.
  [[noreturn]] void reject(const std::string& why, int input = -1) const;
  [[noreturn]] void unsupported(const std::string& why, int input = -1) const;

  TensorFn take();

 private:
  template <class T>
  const T* find_attr(const std::string& name) const;
  std::vector<Axis> make_axes(const Dims& shape, const std::vector<std::string>& names, bool reduced) const;

  const Node& node_;
  std::vector<Buffer> buffers_;  // one per operand, null where absent
  std::vector<Stage> stages_;
  std::vector<Buffer> outputs_;
  int scan_ = -1, scans_ = 0;
};

struct AttrSpec {
  std::string name;
  Attr otherwise;  // the default; std::monostate: none
};

/// What passes know of operators without their formulas.
enum class OpTrait : uint8_t {
  Broadcasts,       // its operands meet element by element, by NumPy's rules
  Commutes,         // its two operands may change places
  SameSizes,        // the result has the sizes of the first operand; the others are its parameters
  Activation,       // and each element of it is a function of that of the first operand
  KeepsElements,    // the elements of the first operand, in their order: only the sizes may be others
  Chooses,          // each element is one of the first operand's, whatever these are
  PlacesFromFront,  // an element of the result is the same, however many there are behind it
  Random,           // other numbers in every run
  EachElement,  // loops that go through the first operand element by element: what they make of one stands in its place
  EachRow,      // loops that go through the first operand row by row: what they make of one stands in its place
};

struct OpRow {
  std::string_view name;
  int since;  // opset version of the definition that this row implements, the newest one
  std::vector<AttrSpec> attrs;
  std::function<void(OpBuilder&)> define;  // null: control flow or a row that only expands
  std::string_view operands = "";          // names of the operands in kernels, "x w b"; the last one repeats (variadic)
  std::string_view label = "";             // in kernel names; empty: the snake_case of name
  std::string_view domain = "";
  /// Rewrites the node into simpler operators; returns false to keep it.
  std::function<bool(Graph&, Node*)> expand = {};
  std::string definition = {};  // of an operator of the user's: its text (docs/language.md)
  std::vector<OpTrait> traits = {};
  /// Of a reduction: what may stand among the elements and changes no result: "zero", "one", "lowest" or "highest", as
  /// tc.fill_behind calls it.
  std::string_view neutral = "";
};

using OpFamily = std::vector<OpRow>;

/// All rows, family by family (all_ops.cc lists them), in a fixed order.
const std::vector<const OpRow*>& all_ops();
/// Null if the operator has no row.
const OpRow* find_op(std::string_view domain, std::string_view name);
/// The row of a node's operator: the user's where the node carries one, else the table's; null if there is none.
const OpRow* row_of(const Node& n);
/// Whether the node's operator has a row that says so.
bool has_trait(const Node& n, OpTrait t);

/// The meaning of a node: its row's define on its operand types; cached in node.fn. The fn's inputs are the operands
/// that it reads: fn_operands() lists their indices. Throws Error naming the node.
const TensorFn& tensor_fn(Node& n);
std::vector<int> fn_operands(Node& n);
/// Sets the output types of a node from its meaning (regions: from the bodies' outputs).
void infer_types(Graph& g, Node& n);

}  // namespace tc
