// Internal to importer/.
#pragma once
#include <google/protobuf/stubs/logging.h>

namespace tc::importer {

/// protobuf prints complaints about texts to stderr; while this lives it does not.
class QuietProtobuf {
 public:
  QuietProtobuf() : before_(google::protobuf::SetLogHandler(nullptr)) {}
  ~QuietProtobuf() { google::protobuf::SetLogHandler(before_); }
  QuietProtobuf(const QuietProtobuf&) = delete;
  QuietProtobuf& operator=(const QuietProtobuf&) = delete;

 private:
  google::protobuf::LogHandler* before_;
};

}  // namespace tc::importer
