// ONNX's operator definitions, for its shape inference only. Internal to importer/.
#pragma once
#include <onnx/defs/schema.h>

#include <map>
#include <tuple>

namespace tc::importer {

/// Inference follows the values of integer vectors, because they may become shapes; it makes an object of every
/// element, also of those that it only knows the number of. A vector of 10^18 elements is no shape: here only short
/// ones are followed. And some definitions take it for granted that an operand that must be there has a type; while a
/// model is brought to the newest operator set, or where nothing is known of the node that makes it, it has none.
class ShapeRegistry : public onnx::ISchemaRegistry {
 public:
  const onnx::OpSchema* GetSchema(const std::string& key, int version,
                                  const std::string& domain = onnx::ONNX_DOMAIN) const override;

 private:
  mutable std::map<std::tuple<std::string, std::string, int>, onnx::OpSchema> guarded_;  // domain, operator, version
};

}  // namespace tc::importer
