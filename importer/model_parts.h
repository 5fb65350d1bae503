// Models made of parts of a model, as bytes of ONNX: for looking at what its nodes compute, and for finding the few that
// something is wrong with.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "importer/import.h"

namespace onnx {
class ModelProto;
}

namespace tc {

/// A node of the outermost graph, in the order in which the model has them.
struct NodeOutline {
  ModelText name;
  std::string op;  // "Conv", "com.microsoft::Gelu"; raw text of the model
  std::vector<ModelText> outputs;
  std::vector<ValueType> types;  // of the outputs; Kind::None: not known, or none of ours
  int bodies = 0;                // graphs that If, Loop or Scan has
  bool is_constant = false;
};

class ModelParts {
 public:
  /// Reads a model with all of its data; sizes, shapes and values of inputs are bound as import_model binds them, as far
  /// as that goes (`bound` says whether it went well). Types are those that ONNX infers. Problems of reading go to
  /// `problems`, then the object has no nodes.
  ModelParts(const std::string& path, const ImportOptions& options, Diagnostics& problems);
  ~ModelParts();
  ModelParts(ModelParts&&) noexcept;

  const std::vector<NodeOutline>& nodes() const { return nodes_; }
  bool bound() const { return bound_; }
  /// The names of the outputs.
  std::vector<ModelText> outputs() const;
  /// Of the outermost graph.
  std::vector<ModelText> initializers() const;

  /// The model with these outputs instead of its own; they are outputs of nodes.
  std::string with_outputs(const std::vector<ModelText>& names) const;

  /// What remains of a model when only some nodes do.
  struct Selection {
    std::vector<bool> nodes;                 // one per node: it stays
    std::vector<ModelText> inputs = {};      // initializers that become inputs
    std::vector<ModelText> no_outputs = {};  // outputs that are none any more
  };
  /// What the nodes read and none of them makes becomes an input, what they make for others an output,
  /// beside the model's own outputs among them. Initializers that nothing reads and documentation go. Empty
  /// where a new input would have no type, or nothing would be an output.
  std::string part(const Selection& s) const;

 private:
  std::unique_ptr<onnx::ModelProto> model_;
  std::vector<NodeOutline> nodes_;
  bool bound_ = true;
};

}  // namespace tc
