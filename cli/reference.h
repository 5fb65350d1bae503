// What verify compares with: scripts of Python, in cli/references/.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "importer/import.h"
#include "ir/ops/op.h"

namespace tc {

/// The command that computes by ONNX Runtime what the model gives for FOLDER/input_K, as FOLDER/output_K.
std::vector<std::string> onnxruntime_command(const std::string& model, const std::string& folder,
                                             const ImportOptions& import);

/// --reference FILE.py, the user's operators as Python functions. The command that computes, from FOLDER/input_K.npy, what the model gives, as FOLDER/output_K.npy: ONNX's reference
/// evaluator, in which the operators of `rows` are the functions of their names in `file`, called with the inputs (None:
/// absent) and the attributes that the node has.
std::vector<std::string> reference_command(const std::string& file, const std::string& model, const std::string& folder,
                                           const std::vector<std::shared_ptr<const OpRow>>& rows);

/// The versions of those of these modules that Python can import; null if there is no Python.
std::optional<std::map<std::string, std::string>> python_modules(const std::vector<std::string>& names);

}  // namespace tc
