// A model is read in one pass over its bytes. protobuf would copy every weight once to parse it, and ONNX's library a
// few times more; here the weights are skipped, so that the messages that go through the library are small, and each
// weight is later read once, straight to where it stays. The pass also sees the nesting of subgraphs before protobuf's
// parser does, which gives up on deep models without saying why.
#include "importer/wire.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "importer/context.h"

namespace tc::importer {

namespace {

enum class Kind { Model, Graph, Node, Attribute, Tensor, Sparse, Function, Skip, Leaf };

constexpr uint32_t kWireVarint = 0, kWire64 = 1, kWireBytes = 2, kWire32 = 5;
constexpr uint32_t kTensorSegment = 3, kTensorRawData = 9;

/// What a length-delimited field of a message holds; Leaf: bytes that are copied as they are.
Kind child(Kind parent, uint32_t field) {
  switch (parent) {
    case Kind::Model:
      return field == 7 ? Kind::Graph : field == 25 ? Kind::Function : field == 20 ? Kind::Skip : Kind::Leaf;
    case Kind::Graph:
      return field == 1 ? Kind::Node : field == 5 ? Kind::Tensor : field == 15 ? Kind::Sparse : Kind::Leaf;
    case Kind::Node: return field == 5 ? Kind::Attribute : Kind::Leaf;
    case Kind::Attribute:
      return field == 5 || field == 10    ? Kind::Tensor
             : field == 6 || field == 11  ? Kind::Graph
             : field == 22 || field == 23 ? Kind::Sparse
                                          : Kind::Leaf;
    case Kind::Sparse: return field == 1 || field == 2 ? Kind::Tensor : Kind::Leaf;
    case Kind::Function: return field == 7 ? Kind::Node : field == 11 ? Kind::Attribute : Kind::Leaf;
    default: return Kind::Leaf;
  }
}

void put_varint(std::string& out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(char(v | 0x80));
  out.push_back(char(v));
}

class StructureReader {
 public:
  StructureReader(int fd, int64_t size, int max_depth)
      : fd_(fd), size_(size), max_depth_(max_depth), buffer_(1 << 16) {}

  /// Copies the fields up to `end`. The recursion is bounded: a level of subgraphs is three messages.
  bool copy(Kind kind, int64_t end, int depth, std::string& out) {
    while (pos_ < end) {
      uint64_t tag = 0;
      if (!varint(end, tag) || tag >> 32 != 0 || tag >> 3 == 0) return false;
      if (!copy_field(kind, uint32_t(tag), end, depth, out)) return false;
    }
    return pos_ == end;
  }
  bool too_deep = false, had_segment = false;

 private:
  bool copy_field(Kind kind, uint32_t tag, int64_t end, int depth, std::string& out) {
    const uint32_t field = tag >> 3, wire = tag & 7;
    if (wire == kWireVarint) {
      uint64_t v = 0;
      if (!varint(end, v)) return false;
      put_varint(out, tag);
      put_varint(out, v);
      return true;
    }
    if (wire == kWire64 || wire == kWire32) {
      put_varint(out, tag);
      return bytes(end, wire == kWire64 ? 8 : 4, out);
    }
    uint64_t length = 0;
    if (wire != kWireBytes || !varint(end, length) || length > uint64_t(end - pos_)) return false;
    const int64_t n = int64_t(length);
    const Kind inner = child(kind, field);
    if (inner == Kind::Skip) return skip(n);
    if (kind == Kind::Tensor && field == kTensorSegment) {
      had_segment = true;
      return skip(n);
    }
    if (kind == Kind::Tensor && field == kTensorRawData && n >= kInlineBytes) {
      std::string segment("\x08", 1);  // field 1, varint: begin
      put_varint(segment, uint64_t(pos_));
      segment.push_back('\x10');  // field 2, varint: end
      put_varint(segment, uint64_t(pos_ + n));
      put_message(kTensorSegment << 3 | kWireBytes, segment, out);
      return skip(n);
    }
    if (inner == Kind::Leaf) {
      put_varint(out, tag);
      put_varint(out, length);
      return bytes(end, n, out);
    }
    const int inner_depth = depth + (inner == Kind::Graph && kind == Kind::Attribute);
    if (inner_depth > max_depth_) {
      too_deep = true;
      return false;
    }
    std::string message;
    if (!copy(inner, pos_ + n, inner_depth, message)) return false;
    put_message(tag, message, out);
    return true;
  }

  static void put_message(uint32_t tag, const std::string& message, std::string& out) {
    put_varint(out, tag);
    put_varint(out, message.size());
    out += message;
  }

  bool fill() {
    const int64_t n = std::min<int64_t>(int64_t(buffer_.size()), size_ - pos_);
    if (n <= 0 || !read_at(fd_, pos_, buffer_.data(), size_t(n))) return false;
    buffered_from_ = pos_;
    buffered_to_ = pos_ + n;
    return true;
  }
  bool buffered() const { return pos_ >= buffered_from_ && pos_ < buffered_to_; }

  bool varint(int64_t end, uint64_t& v) {
    v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (pos_ >= end || (!buffered() && !fill())) return false;
      const uint8_t b = buffer_[size_t(pos_++ - buffered_from_)];
      v |= uint64_t(b & 0x7f) << shift;
      if (b < 0x80) return true;
    }
    return false;
  }

  bool bytes(int64_t end, int64_t n, std::string& out) {
    if (n > end - pos_) return false;
    while (n > 0) {
      if (!buffered() && !fill()) return false;
      const int64_t part = std::min(n, buffered_to_ - pos_);
      out.append(reinterpret_cast<const char*>(&buffer_[size_t(pos_ - buffered_from_)]), size_t(part));
      pos_ += part;
      n -= part;
    }
    return true;
  }

  bool skip(int64_t n) {
    pos_ += n;
    return true;
  }

  int fd_;
  int64_t size_;
  int max_depth_;
  std::vector<uint8_t> buffer_;
  int64_t pos_ = 0, buffered_from_ = 0, buffered_to_ = 0;
};

}  // namespace

WireStatus read_structure(int fd, int64_t size, int max_depth, std::string& out, bool& had_segment) {
  StructureReader reader(fd, size, max_depth);
  const bool ok = reader.copy(Kind::Model, size, 0, out);
  had_segment = reader.had_segment;
  if (reader.too_deep) return WireStatus::TooDeep;
  return ok ? WireStatus::Ok : WireStatus::Damaged;
}

}  // namespace tc::importer
