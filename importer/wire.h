// Reading a binary model without its weights. Internal to importer/.
#pragma once
#include <cstdint>
#include <string>

namespace tc::importer {

/// Raw tensor data of at least this many bytes stays in the file.
constexpr int64_t kInlineBytes = 8192;

enum class WireStatus { Ok, Damaged, TooDeep };

/// Copies the model in `fd` (of `size` bytes) to `out`, field by field, leaving out the raw data of large tensors: such
/// a tensor carries a `segment` with the range of the file that holds its bytes. Segments of the model itself, which no
/// version of the format gives a meaning, are dropped and reported through `had_segment`. Training information is
/// dropped. TooDeep: subgraphs nest deeper than `max_depth`.
WireStatus read_structure(int fd, int64_t size, int max_depth, std::string& out, bool& had_segment);

}  // namespace tc::importer
