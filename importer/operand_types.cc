// Operands that the definition of an operator wants to be of one type are of one type, and numbers, truth values and
// strings stand where the definition has them. ONNX's inference does not look, and what an operator means is only
// defined for such operands.
#include <onnx/defs/schema.h>

#include <algorithm>

#include "importer/context.h"

namespace tc::importer {

namespace {

/// The definition of operand k; the last one of a variadic list stands for all that follow.
const onnx::OpSchema::FormalParameter* parameter(const onnx::OpSchema& s, size_t k) {
  if (s.inputs().empty()) return nullptr;
  if (k < s.inputs().size()) return &s.inputs()[k];
  const auto& last = s.inputs().back();
  return last.GetOption() == onnx::OpSchema::Variadic ? &last : nullptr;
}

bool is_free(const onnx::OpSchema::FormalParameter& p) {
  return p.GetOption() == onnx::OpSchema::Variadic && !p.GetIsHomogeneous();
}

/// The element types of tensors that the definition has here, in the order of their names: ONNX orders by addresses.
std::vector<std::string_view> element_types(const onnx::OpSchema::FormalParameter& p) {
  static constexpr std::string_view kBefore = "tensor(";
  std::vector<std::string_view> names;
  for (const std::string* type : p.GetTypes())
    if (type->starts_with(kBefore))
      names.push_back(std::string_view(*type).substr(kBefore.size(), type->size() - kBefore.size() - 1));
  std::sort(names.begin(), names.end());
  return names;
}

bool is_number(std::string_view type) { return type != "bool" && type != "string" && !type.starts_with("complex"); }

/// Where a definition has numbers, they may be of any type: operators mean the same for those that it leaves out, and
/// models have them. What is defined for lists or maps only, was made tensors before.
bool takes(const std::vector<std::string_view>& types, std::string_view type) {
  return types.empty() || std::find(types.begin(), types.end(), type) != types.end() ||
         (is_number(type) && std::any_of(types.begin(), types.end(), is_number));
}

}  // namespace

void check_operand_types(Context& c, const onnx::NodeProto& n, const std::vector<Value*>& inputs) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(n.op_type(), newest_opset(), domain_of(n.domain()));
  if (!schema) return;
  std::map<std::string, size_t> first;  // name of a type in the definition -> the first operand of it
  for (size_t k = 0; k < inputs.size(); ++k) {
    const auto* p = parameter(*schema, k);
    if (!p || is_free(*p) || !inputs[k] || !inputs[k]->type.is_tensor()) continue;
    const size_t other = first.emplace(p->GetTypeStr(), k).first->second;
    const DType here = inputs[k]->type.dtype, there = inputs[other]->type.dtype;
    if (const auto types = element_types(*p); !takes(types, info(here).onnx_name)) {
      c.error("TC0119", ExitCode::Rejected, &n,
              "it is of type " + std::string(info(here).onnx_name) + ", which the operator does not take; it takes " +
                  join(std::vector<std::string>(types.begin(), types.end()), ", "),
              {}, int(k));
      return;
    }
    if (here == there) continue;
    c.error("TC0119", ExitCode::Rejected, &n,
            "it is of type " + std::string(info(here).onnx_name) + ", but input " + to_text(int64_t(other)) +
                " is of type " + std::string(info(there).onnx_name) + "; the operator needs them to be the same",
            {}, int(k));
    return;
  }
}

}  // namespace tc::importer
