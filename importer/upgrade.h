// How nodes of older operator sets become nodes of the newest one: a table of rules, one for every change of an
// operator's definition that is more than new types or new parts that may be absent. Internal to importer/.
#pragma once
#include <optional>
#include <span>

#include "importer/splice.h"
#include "importer/types.h"

namespace tc::importer {

onnx::AttributeProto attribute(const std::string& name, int64_t value);
onnx::AttributeProto attribute(const std::string& name, const std::string& value);

/// A rule needs the type of an operand that is not known yet: its node is tried again once those before it are new.
struct TypeNotKnown {
  std::string value;
};

/// The definition allowed what has no counterpart in the newest operator set; `reason` follows "the node ...".
struct NoCounterpart {
  std::string reason;
};

/// A node in the hands of its rules. They change `node` in place; nodes that they put before or after it are of the
/// newest operator set at once.
class Upgrade {
 public:
  using Inputs = std::vector<std::string>;
  using Attributes = std::vector<onnx::AttributeProto>;

  Upgrade(const onnx::NodeProto& n, int from_opset, const TypeScope& types, const std::unordered_set<std::string>& used,
          UniqueNames& names)
      : node(n), from(from_opset), types_(types), used_(used), names_(names) {}

  onnx::NodeProto node;
  const int from;        // the operator set that it was written for
  bool dropped = false;  // other nodes make its outputs
  Nodes before, after;

  bool has_input(int k) const { return k < node.input_size() && !node.input(k).empty(); }
  void set_input(int k, const std::string& name);
  void keep_inputs(int count);
  bool has_output(int k) const { return k < node.output_size() && !node.output(k).empty(); }
  /// Somebody reads it, or it is a result of a graph.
  bool is_used(int k) const { return has_output(k) && used_.count(node.output(k)) > 0; }
  void keep_outputs(int count);

  const onnx::AttributeProto* find(const std::string& name) const;
  /// Removes an attribute; says what it was.
  std::optional<onnx::AttributeProto> take(const std::string& name);
  int64_t take_int(const std::string& name, int64_t otherwise);
  void set(const onnx::AttributeProto& a);

  /// Of input k, as far as inference knows it.
  std::optional<int> known_rank(int k) const;
  std::optional<int64_t> known_size(int k, int axis) const;
  int rank(int k) const;
  int64_t size(int k, int axis) const;
  int element_type(int k) const;

  /// Constants; the name of the value, which is the node's first output and `label`.
  std::string ints(const std::string& label, std::vector<int64_t> values);
  std::string int_scalar(const std::string& label, int64_t value);
  std::string floats(const std::string& label, const std::vector<float>& values);
  std::string bool_scalar(const std::string& label, bool value);
  /// A scalar of an element type of floats or integers.
  std::string scalar(const std::string& label, double value, int element_type);

  /// A node before this one; the name of its result.
  std::string add(const std::string& op, const Inputs& inputs, const Attributes& attributes, const std::string& label);
  /// Output k becomes a value of another name, which `op` turns into what it was, with `more` operands.
  void finish_output(int k, const std::string& op, const Inputs& more, const Attributes& attributes);
  /// A node that makes output k in the place of this one.
  void make_output(int k, const std::string& op, const Inputs& inputs, const Attributes& attributes = {});

  UniqueNames& names() { return names_; }

 private:
  const onnx::TypeProto& type(int k) const;
  std::string stem() const;
  std::string constant(const std::string& label, const onnx::TensorProto& t);

  const TypeScope& types_;
  const std::unordered_set<std::string>& used_;
  UniqueNames& names_;
};

/// What an operator's definition in version `version` says otherwise than the one before.
struct UpgradeRule {
  std::string_view op;
  int version;
  void (*apply)(Upgrade&);
};

/// By rising version.
std::span<const UpgradeRule> upgrade_rules();

// Rules that take more than a few lines.
void batch_scan(Upgrade& u);       // upgrade_scan.cc
void normalize_batch(Upgrade& u);  // upgrade_norms.cc
void repeat_for_groups(Upgrade& u);

/// Brings every node of `m`, whose types are inferred, from the model's operator set to the newest one; reports what has
/// no counterpart. `changed` says whether any node did.
bool upgrade_nodes(Context& c, onnx::ModelProto& m, bool& changed);

}  // namespace tc::importer
