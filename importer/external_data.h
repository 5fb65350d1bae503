// External data: bytes of a tensor in another file, which must lie in the model's folder. Internal to importer/.
#pragma once
#include <map>
#include <tuple>

#include "importer/context.h"

namespace tc::importer {

/// Opens and reads data files below the model's folder, and only there: a path is followed component by component and
/// no component may be "..", a symbolic link or anything but a folder; the last one is a regular file with one hard
/// link. ONNX's own loader is never used.
class ExternalData {
 public:
  explicit ExternalData(Context& c) : context_(c) {}

  struct Range {
    int fd = -1;
    int64_t offset = 0, length = 0;
    std::string location;
  };
  /// Where the bytes of `t` are; `expected` bytes are needed. Reports what is wrong and returns false.
  bool locate(const onnx::TensorProto& t, int64_t expected, Range& range);

 private:
  struct DataFile {
    File file;
    int64_t size = 0;
    std::string sha1;  // computed on demand
    std::string problem;
  };
  DataFile& open_file(const std::string& location);
  std::string open_below_folder(const std::string& location, File& file);
  bool checksum_ok(const onnx::TensorProto& t, DataFile& f, const std::string& want);

  Context& context_;
  std::map<std::string, DataFile> files_;
};

/// SHA-1 of a file as lower-case hex digits, the checksum that ONNX's external data may carry; empty if it cannot be
/// read.
std::string sha1_of_file(int fd, int64_t size);

}  // namespace tc::importer
