// What libFuzzer feeds with bytes, and what the unit tests replay of the kept corpus. Each aborts, or trips a sanitizer, where
// tc-emit does not keep its word; an answer, whichever, is all that is asked of it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tc::fuzz {

/// The importer. The first byte says how the others are read: 0 a binary model, 1 ONNX's text; 2 lines that become location,
/// offset and length of a weight in another file.
void import_bytes(const uint8_t* data, size_t size);

/// Lines that become the names of a model: what is emitted differs from that of a harmless twin only in names, comments and
/// strings.
void emit_names(const uint8_t* data, size_t size);

/// A file of operators: it is read, told what is wrong with it, or printed and read again as the same.
void read_language(const uint8_t* data, size_t size);

/// A file with a graph: the same. What is read is sound (ir/verify.h).
void read_graph(const uint8_t* data, size_t size);

/// Changes a field somewhere in the tree of an encoded message; returns the new size, at most `most`.
size_t change_field(uint8_t* data, size_t size, size_t most, uint32_t seed);

}  // namespace tc::fuzz
