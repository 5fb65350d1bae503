// Model-local functions by key. Internal to importer/.
#pragma once
#include "importer/context.h"

namespace tc::importer {

class FunctionTable {
 public:
  explicit FunctionTable(const onnx::ModelProto& m);
  /// The function that `n` calls, null if it calls none.
  const onnx::FunctionProto* find(const onnx::NodeProto& n) const;

 private:
  std::map<std::string, const onnx::FunctionProto*> table_;
};

/// Does the call fit the function? Reports it otherwise.
bool call_ok(Context& c, const onnx::FunctionProto& f, const onnx::NodeProto& call);

}  // namespace tc::importer
