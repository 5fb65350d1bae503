// Tensors as the files that programs of packages read and write.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/program.h"

namespace tc {

/// Writes STEM.npy, or STEM.pb where NumPy has no such type, and of strings. Throws Error TC0601.
void save_tensor(const std::string& stem, const TensorData& t);

/// `t` in the sizes that are chosen, by their inputs; those that an instance counts are 0.
IoTensor in_sizes(IoTensor t, const std::map<int, int64_t>& sizes);

/// Elements for an input nobody gives.
enum class FillMode { Random, Zeros, Ones };

/// Random: what suits the type, from a seed: floats around zero, small non-negative integers, short words. Strings are
/// empty for Zeros and "1" for Ones.
Constant filled_tensor(const IoTensor& t, FillMode mode, uint64_t seed);

/// Writes FOLDER/KIND_0.npy, KIND_1.npy, ... (`count` of them) into one archive of NumPy's, as np.savez does: written beside its
/// place first. Throws Error TC0601 where it cannot, or where an array is not there, for NumPy has no such type.
void save_npz(const std::string& path, const std::string& folder, const std::string& kind, size_t count);

}  // namespace tc
