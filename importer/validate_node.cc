// One node: its attributes have the types they claim and values that any operator could use, and ONNX's schema accepts
// it. This runs before ONNX's shape inference and converter, which index into attributes with less suspicion.
#include <onnx/defs/schema.h>

#include <algorithm>
#include <limits>

#include "importer/norms.h"
#include "importer/tensors.h"
#include "importer/validate.h"
#include "ir/ops/op.h"

namespace tc::importer {

namespace {

using onnx::AttributeProto;

/// Bounds that hold for an attribute of this name in every operator of ONNX.
struct Bounds {
  std::string_view name;
  int64_t least, most;
};
constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr Bounds kBounds[] = {
    {"strides", 1, kInt32Max},         {"dilations", 1, kInt32Max},     {"kernel_shape", 1, kInt32Max},
    {"group", 1, kInt32Max},           {"blocksize", 1, kInt32Max},     {"hidden_size", 1, kInt32Max},
    {"num_outputs", 1, 1 << 20},       {"num_groups", 1, kInt32Max},    {"pads", -kInt32Max, kInt32Max},
    {"output_padding", 0, kInt32Max},  {"axis", -kMaxRank, kMaxRank},   {"axes", -kMaxRank, kMaxRank},
    {"num_scan_inputs", 1, kInt32Max}, {"batch_dims", 0, kMaxRank},     {"block_size", 0, kInt32Max},
    {"pooled_shape", 1, kInt32Max},    {"output_height", 1, kInt32Max}, {"output_width", 1, kInt32Max},
    {"q_num_heads", 1, kInt32Max},     {"kv_num_heads", 1, kInt32Max},  {"num_heads", 0, kInt32Max},
};
/// Attributes that are 0 or 1 in every operator of ONNX and of ONNX Runtime. Runtimes do not agree on what another
/// number means.
constexpr std::string_view kFlags[] = {
    "align_corners",
    "allowzero",
    "antialias",
    "batch_axis",
    "ceil_mode",
    "center_point_box",
    "count_include_pad",
    "detect_negative",
    "detect_positive",
    "do_rotary",
    "exclude_outside",
    "exclusive",
    "fmod",
    "input_forget",
    "interleaved",
    "inverse",
    "is_causal",
    "keepdims",
    "largest",
    "linear_before_reset",
    "new_axis",
    "noop_with_empty_axes",
    "onesided",
    "periodic",
    "reverse",
    "rotary_interleaved",
    "saturate",
    "select_last_index",
    "sorted",
    "storage_order",
    "time_axis",
    "training_mode",
    "transA",
    "transB",
    "transBatchA",
    "transBatchB",
    "unidirectional",
    "upper",
};
constexpr int kMaxListLength = 1 << 24;

/// The type of an attribute of the oldest models, which only filled in a field.
AttributeProto::AttributeType guess_type(const AttributeProto& a) {
  if (a.has_f()) return AttributeProto::FLOAT;
  if (a.has_i()) return AttributeProto::INT;
  if (a.has_s()) return AttributeProto::STRING;
  if (a.has_t()) return AttributeProto::TENSOR;
  if (a.has_g()) return AttributeProto::GRAPH;
  if (a.floats_size() > 0) return AttributeProto::FLOATS;
  if (a.ints_size() > 0) return AttributeProto::INTS;
  if (a.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::UNDEFINED;
}

/// Fields of `a` that hold something, as a set of attribute types.
std::set<int> filled_fields(const AttributeProto& a) {
  std::set<int> s;
  if (a.has_f()) s.insert(AttributeProto::FLOAT);
  if (a.has_i()) s.insert(AttributeProto::INT);
  if (a.has_s()) s.insert(AttributeProto::STRING);
  if (a.has_t()) s.insert(AttributeProto::TENSOR);
  if (a.has_g()) s.insert(AttributeProto::GRAPH);
  if (a.has_sparse_tensor()) s.insert(AttributeProto::SPARSE_TENSOR);
  if (a.has_tp()) s.insert(AttributeProto::TYPE_PROTO);
  if (a.floats_size() > 0) s.insert(AttributeProto::FLOATS);
  if (a.ints_size() > 0) s.insert(AttributeProto::INTS);
  if (a.strings_size() > 0) s.insert(AttributeProto::STRINGS);
  if (a.tensors_size() > 0) s.insert(AttributeProto::TENSORS);
  if (a.graphs_size() > 0) s.insert(AttributeProto::GRAPHS);
  if (a.sparse_tensors_size() > 0) s.insert(AttributeProto::SPARSE_TENSORS);
  if (a.type_protos_size() > 0) s.insert(AttributeProto::TYPE_PROTOS);
  return s;
}

bool is_single(int type) {
  return type < AttributeProto::FLOATS || type == AttributeProto::SPARSE_TENSOR || type == AttributeProto::TYPE_PROTO;
}

bool check_form(Context& c, const onnx::NodeProto& n, AttributeProto& a, bool in_function) {
  const std::string who = "attribute " + quoted(a.name()) + ": ";
  auto bad = [&](const std::string& why) {
    c.reject("TC0116", &n, who + why);
    return false;
  };
  if (a.name().empty()) return bad("it has no name");
  if (!a.ref_attr_name().empty()) {
    if (!in_function) return bad("it refers to an attribute of a call, but is not in a function");
    return filled_fields(a).empty() || bad("it has a value and a reference");
  }
  if (a.type() == AttributeProto::UNDEFINED) a.set_type(guess_type(a));
  if (a.type() == AttributeProto::UNDEFINED) return bad("it has neither a type nor a value");
  std::set<int> filled = filled_fields(a);
  const bool has_value = filled.erase(a.type()) > 0;
  if (!filled.empty()) return bad("its value does not have the type that it states");
  if (is_single(a.type()) && !has_value) return bad("it has no value");
  if (std::max({a.ints_size(), a.floats_size(), a.strings_size()}) > kMaxListLength) return bad("its list is too long");
  return true;
}

/// What ONNX's check says of a node whose operator this version gives up: it says no more than that.
std::string deprecated_problem(const onnx::OpSchema& schema, const onnx::NodeProto& n) {
  if (n.input_size() < schema.min_input() || n.input_size() > schema.max_input())
    return "it has too few or too many inputs";
  if (n.output_size() < schema.min_output() || n.output_size() > schema.max_output())
    return "it has too few or too many outputs";
  for (const auto& [name, a] : schema.attributes()) {
    const auto given =
        std::find_if(n.attribute().begin(), n.attribute().end(), [&](const auto& b) { return b.name() == name; });
    if (given == n.attribute().end() ? a.required : given->type() != a.type)
      return "its attribute " + quoted(name) + " is missing or of another type";
  }
  return "";
}

/// Operators of others have no schema here: what a row does not know of is a wish that it would ignore.
void check_row(Context& c, const onnx::NodeProto& n, const std::string& domain) {
  const OpRow* row = c.own_row(domain, n.op_type()) ? nullptr : find_op(domain, n.op_type());
  if (!row || domain.empty() || domain.starts_with("ai.onnx")) return;
  for (const auto& a : n.attribute())
    if (std::none_of(row->attrs.begin(), row->attrs.end(), [&](const AttrSpec& s) { return s.name == a.name(); }))
      c.error("TC0170", ExitCode::Unsupported, &n,
              "attribute " + quoted(a.name()) + " of operator " + printable(n.op_type(), 80) + " is not supported",
              {"export the model without it"});
}

/// ONNX's own rules: number of operands, known attributes and their types, required attributes.
void check_schema(Context& c, const onnx::NodeProto& n, const NodeRules& rules) {
  const std::string domain = domain_of(n.domain());
  const int64_t version = opset_of(*rules.opsets, domain);
  if (rules.functions->count(function_key(n.domain(), n.op_type(), n.overload())) == 0) check_row(c, n, domain);
  if (version == 0) {
    if (!c.has_row(domain, n.op_type()) || domain.empty())
      c.reject("TC0106", &n,
               "its operator set " + quoted(domain.empty() ? "ai.onnx" : domain) + " is not imported by the model");
    return;
  }
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(n.op_type(), int(version), domain);
  if (!schema) {
    // Operators that no version knows are reported all together, see report_unsupported().
    const onnx::OpSchema* newest = onnx::OpSchemaRegistry::Schema(n.op_type(), domain);
    if (newest && !is_early_norm(n, version))
      c.reject("TC0118", &n,
               "opset " + to_text(version) + " has no operator " + printable(n.op_type(), 80) + "; it came later",
               {"state the opset that the model was written for"});
    return;
  }
  if (schema->Deprecated()) {
    const std::string problem = deprecated_problem(*schema, n);
    if (!problem.empty()) c.reject("TC0118", &n, "opset " + to_text(version) + " does not allow this node: " + problem);
    return;
  }
  try {
    schema->Verify(n);
  } catch (const std::exception& e) {
    c.reject("TC0118", &n, "opset " + to_text(version) + " does not allow this node: " + reason_of(e));
  }
}

}  // namespace

bool check_range(Context& c, const onnx::NodeProto& n, const AttributeProto& a) {
  const std::string who = "attribute " + quoted(a.name()) + ": ";
  const auto* b =
      std::find_if(std::begin(kBounds), std::end(kBounds), [&](const Bounds& x) { return x.name == a.name(); });
  std::vector<int64_t> values(a.ints().begin(), a.ints().end());
  if (a.type() == AttributeProto::INT) values.push_back(a.i());
  if (b != std::end(kBounds))
    for (const int64_t v : values)
      if (v < b->least || v > b->most) {
        c.reject("TC0117", &n,
                 who + to_text(v) + " is out of range; allowed " + to_text(b->least) + ".." + to_text(b->most));
        return false;
      }
  if (a.type() == AttributeProto::INT && (a.i() < 0 || a.i() > 1) &&
      std::find(std::begin(kFlags), std::end(kFlags), a.name()) != std::end(kFlags)) {
    c.reject("TC0117", &n, who + to_text(a.i()) + " is out of range; allowed 0..1");
    return false;
  }
  if (a.name() == "perm") {
    std::sort(values.begin(), values.end());
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != int64_t(i)) {
        c.reject("TC0117", &n, who + "it is not a permutation");
        return false;
      }
  }
  const bool names_type = a.name() == "to" || (a.name() == "dtype" && a.type() == AttributeProto::INT);
  if (names_type && !values.empty()) {
    const int64_t t = values[0];
    if (t <= 0 || t > 1000 || element_type(int32_t(t)) == DType::Undefined) {
      c.reject("TC0117", &n, who + to_text(t) + " is no element type" + (t == 0 ? "" : " that is supported"));
      return false;
    }
  }
  return true;
}

void check_node(Context& c, onnx::NodeProto& n, const NodeRules& rules) {
  if (n.op_type().empty()) return c.reject("TC0115", &n, "a node without an operator");
  std::set<std::string> names;
  bool ok = true;
  for (AttributeProto& a : *n.mutable_attribute()) {
    if (!names.insert(a.name()).second) {
      c.reject("TC0116", &n, "attribute " + quoted(a.name()) + " is given twice");
      ok = false;
    }
    ok = check_form(c, n, a, rules.in_function) && ok;
    if (domain_of(n.domain()).empty() && a.ref_attr_name().empty()) ok = check_range(c, n, a) && ok;
  }
  const bool is_call = rules.functions->count(function_key(n.domain(), n.op_type(), n.overload())) > 0;
  if (ok && !is_call) check_schema(c, n, rules);
}

}  // namespace tc::importer
