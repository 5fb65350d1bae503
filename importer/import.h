// ONNX -> Graph. The only interface of this folder: no ONNX or protobuf header is seen through it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "importer/size_sum.h"
#include "ir/graph/graph.h"
#include "support/error.h"

namespace tc {

/// What an input that is a sequence or optional holds: one shape for each tensor.
struct ListElements {
  bool present = true;  // false: an empty optional
  std::vector<std::vector<int64_t>> shapes = {};
};

/// What --dim binds a symbolic size to: one number, a range that the caller of the package chooses from, or, if it has
/// terms, what follows from other sizes.
struct SizeRange {
  int64_t least = 0, most = 0;
  SizeExpression sum = {};
  SizeRange() = default;
  SizeRange(int64_t n) : least(n), most(n) {}  // NOLINT: sizes are written as numbers
  SizeRange(int64_t from, int64_t to) : least(from), most(to) {}
  SizeRange(SizeExpression e) : sum(std::move(e)) {}  // NOLINT: sizes are written as what they are
  bool follows() const { return !sum.terms.empty(); }
  bool is_fixed() const { return least == most && !follows(); }
  bool operator==(const SizeRange&) const = default;
};
std::string to_text(const SizeRange& r);  // "8", "1..8", "past + seq"

struct ImportOptions {
  /// Sizes of symbolic dimensions: "batch" -> 1 (every dimension of that name) or "input:2" -> 8 (one axis of an
  /// input). A range leaves the inputs' types symbolic with bounds, see Dim.
  std::map<std::string, SizeRange> dims = {};
  /// Whole shapes of inputs; they win over what the model declares.
  std::map<std::string, std::vector<int64_t>> input_shapes = {};
  /// Inputs and outputs that the instance keeps, by name: "past" and "present", or with one '*' each that stands for the
  /// same text.
  std::vector<std::pair<std::string, std::string>> states = {};
  /// Contents of inputs that are sequences or optionals. Their tensors become inputs NAME_0, NAME_1, ...
  std::map<std::string, ListElements> elements = {};
  /// Numbers of inputs that become constants, in decimal: as many as the input has elements.
  std::map<std::string, std::vector<std::string>> input_values = {};
  /// Outputs that are labels of a classifier and text become the labels' indices in its list (for targets without
  /// strings).
  bool number_labels = false;
  /// Name of the graph; empty: the model's own.
  std::string name = {};
  /// Which operators need no expansion. Null: those with a row in the operator table (find_op).
  std::function<bool(std::string_view domain, std::string_view op)> has_row = {};
  /// Operators of the user's, beside those of the table (ir/language/user_ops.h makes them of text).
  std::vector<std::shared_ptr<const OpRow>> ops = {};

  /// Told of every file of external data that is read, by its path inside the model's folder.
  std::function<void(const std::string& location)> data_file_read = {};

  /// Nodes that no output needs stay, which only tests of passes want.
  bool keep_dead_nodes = false;

  // Limits. What exceeds one is refused with exit code 5, never a crash.
  int64_t max_tensor_bytes = int64_t(16) << 30;  // all constants together, in memory
  int64_t max_nodes = 1'000'000;                 // after functions are inlined and expanded
};

/// Reads a model: ".onnxtxt" is ONNX's text syntax, anything else a binary model. External data is read from files
/// below the model's folder only. The result is checked, free of model-local functions, converted to the newest
/// operator set, and its operators all have rows; input sizes are constant, or symbolic with bounds; other types are
/// recorded where ONNX's inference knows them.
///
/// Initializers (also those that are listed as inputs, whose default becomes their value) and Constant nodes are
/// constants. Every problem of the model goes to `problems`, as many as can be found in one run; when there is an error
/// the returned graph is empty. Nothing is thrown but InternalError.
Graph import_model(const std::string& path, const ImportOptions& options, Diagnostics& problems);

/// What a model declares, before anything is bound: for `info` and for messages.
struct ModelFacts {
  struct Port {
    ModelText name;
    ValueType type;  // symbolic sizes keep their names
  };
  std::vector<Port> inputs, outputs;
  std::map<std::string, int64_t> opsets;     // domain -> version
  std::map<std::string, int64_t> operators;  // "domain::Op" or "Op" -> count, bodies and functions included
  int64_t ir_version = 0, parameters = 0;
  ModelText graph_name, producer;
};
ModelFacts read_facts(const std::string& path, Diagnostics& problems);

/// The newest version of the default operator set that models are converted to.
int newest_opset();

}  // namespace tc
