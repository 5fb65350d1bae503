// What graph passes share: small questions about values and the moves that keep names, types and origins right.
#pragma once
#include <optional>

#include "ir/graph/origin.h"
#include "passes/pass.h"

namespace tc {

/// The number of a constant of one element (any rank, numeric), else nullopt.
std::optional<double> scalar_of(const Value* v);
/// Is `v` a constant of one element that equals `number`?
bool is_scalar(const Value* v, double number);
/// The integers of an integer constant, else nullopt.
std::optional<std::vector<int64_t>> ints_of(const Value* v);
/// The only user of v, null if it has several uses or is an output of the graph.
Node* only_user(const Value* v);
/// The producer if it is that operator of ai.onnx and v its first output, else null.
Node* made_by(const Value* v, std::string_view op);
/// Does it put the `fill` that is named, and no number of its own, behind what is counted (tc.fill_behind)?
bool fills_behind(const Node& n, std::string_view fill);
/// Is it a function of tensors, as to_functions and fuse_ops make them? False for null.
bool is_fused(const Node* n);
/// Is it a fused sum of products? False for null.
bool is_contraction(const Node* n);
/// The buffer with elements of type t.
Buffer stored_as(DType t, const Buffer& b);
/// The input's elements become of type t, converted where they are read to what they were.
void read_stored_as(TensorFn& fn, size_t input, DType t);
int rank_of(const Value* v);
Dims dims_of(const Value* v);
/// An attribute with one number per axis (pads: two); an empty list is as good as none, which is what the operators say.
Dims numbers_of(const Node& n, const char* attr, size_t count, int64_t otherwise);
/// The perm of a Transpose that moves one axis, as numpy.moveaxis.
std::vector<int64_t> moved_axis(int64_t rank, int64_t from, int64_t to);

/// "conv1_out" + "_bias": the name of a value that a pass adds beside one of the model's.
ModelText derived(const ModelText& base, std::string_view suffix);

/// Inserts a node of one output before `before` and infers its type. It stands for the origins of `before`.
Value* add_op(Graph& g, Node* before, std::string op, std::vector<Value*> inputs, ModelText name, Attrs attrs = {});
/// Attributes of a Reshape to the sizes of `like`, one of which may be 0: that would mean the operand's size.
Attrs sizes_as_given(const Value* like);
/// Appends `from` to `to` without repeating a name.
void add_origins(std::vector<ModelText>& to, const std::vector<ModelText>& from);

/// Lets `to` take the place of `from` everywhere. The outputs of the model keep their names: when `from` is one, `to`
/// takes its name, or, where that cannot be (an input, a constant, another output), nothing changes and the result is
/// false.
bool forward(Graph& g, Value* from, Value* to);
/// forward(), with an Identity before `at` where a name has to be kept. `from` is unused afterwards.
void replace_value(Graph& g, Node* at, Value* from, Value* to);
/// Replaces the first output of n by v, which takes over n's origins and (if fresh) its name; erases n and what only n
/// needed. n's other outputs must be unused.
void replace_node(Graph& g, Node* n, Value* v);

/// Erases n and then every producer that nobody uses any more.
void erase_unused(Graph& g, Node* n);

/// Copies the nodes of `body` before `at`, with `args` for its inputs; returns the values of its outputs.
std::vector<Value*> inline_graph(Graph& g, Node* at, const Graph& body, const std::vector<Value*>& args);

/// Random operators must not be evaluated when the model is compiled.
bool is_random(const Node& n);
/// Evaluates a node whose meaning reads constants only (none at all for Shape) and replaces its results by constants,
/// if these take at most `max_bytes` and the work is bounded. Types must be inferred. Erases the node when it did.
bool fold_node(Graph& g, Node* n, int64_t max_bytes);
/// add_op(), or, when all operands are constant, the constant that it gives.
Value* constant_op(Graph& g, Node* before, std::string op, std::vector<Value*> inputs, ModelText name,
                   Attrs attrs = {});

}  // namespace tc
