// Step 1: the file becomes a ModelProto. Weights of binary models stay in the file (wire.h).
#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/defs/parser.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "importer/context.h"
#include "importer/wire.h"

namespace tc::importer {

namespace {

constexpr int64_t kProtobufLimit = (int64_t(1) << 31) - 1;
constexpr int64_t kMaxTextBytes = int64_t(256) << 20;
/// Messages inside messages that the parser goes down; a level of subgraphs is three, a sequence type two.
constexpr int kMessageDepth = 3 * kMaxSubgraphDepth + 100;
/// Parentheses inside parentheses in text models: types and literals nest a few deep.
constexpr int kMaxParentheses = 100;

bool ends_with(std::string_view s, std::string_view tail) {
  return s.size() >= tail.size() && s.substr(s.size() - tail.size()) == tail;
}

bool open_model(Context& c, int64_t& size) {
  c.file = File(open(c.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat st = {};
  if (!c.file.ok() || fstat(c.file.fd(), &st) != 0) {
    c.error("TC0101", ExitCode::Io, nullptr, std::string("cannot open the model: ") + std::strerror(errno));
    return false;
  }
  if (!S_ISREG(st.st_mode)) {
    c.error("TC0101", ExitCode::Io, nullptr,
            std::string("the model is ") + (S_ISDIR(st.st_mode) ? "a folder" : "not a regular file"));
    return false;
  }
  size = st.st_size;
  return true;
}

void report_too_deep(Context& c) {
  c.error("TC0105", ExitCode::Limit, nullptr,
          "subgraphs nest deeper than " + to_text(int64_t(kMaxSubgraphDepth)) + " levels");
}

bool load_binary(Context& c, int64_t size, onnx::ModelProto& m) {
  if (size > kProtobufLimit) {
    c.error("TC0103", ExitCode::Limit, nullptr, "the model is " + to_text(size) + " bytes; protobuf ends at 2 GiB",
            {"save it with its weights as external data (onnx.save(model, path, save_as_external_data=True))"});
    return false;
  }
  std::string bytes;
  bool had_segment = false;
  const WireStatus status = read_structure(c.file.fd(), size, kMaxSubgraphDepth, bytes, had_segment);
  if (status == WireStatus::TooDeep) {
    report_too_deep(c);
    return false;
  }
  bool ok = status == WireStatus::Ok && !bytes.empty();
  if (ok) {
    google::protobuf::io::ArrayInputStream array(bytes.data(), int(bytes.size()));
    google::protobuf::io::CodedInputStream in(&array);
    in.SetRecursionLimit(kMessageDepth);
    ok = m.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
  }
  if (!ok) {
    c.error("TC0102", ExitCode::Rejected, nullptr, "this is not an ONNX model: its protobuf encoding is damaged",
            {"a model in ONNX's text syntax is recognised by its name, which must end in .onnxtxt"});
    return false;
  }
  if (had_segment) c.reject("TC0123", nullptr, "a tensor is split into segments, which ONNX does not define");
  return true;
}

/// The text parser recurses into braces and parentheses: their depth is bounded before it runs.
bool nesting_ok(Context& c, const std::string& text) {
  int braces = 0, parentheses = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '#': i = std::min(text.find('\n', i), text.size() - 1); break;
      case '"':
        for (++i; i < text.size() && text[i] != '"'; ++i)
          if (text[i] == '\\') ++i;
        break;
      case '{': ++braces; break;
      case '}': --braces; break;
      case '(': ++parentheses; break;
      case ')': --parentheses; break;
      default: break;
    }
    // One brace for the graph, one for a tensor's values inside the innermost body.
    if (braces > kMaxSubgraphDepth + 2) {
      report_too_deep(c);
      return false;
    }
    if (parentheses > kMaxParentheses) {
      c.error("TC0104", ExitCode::Limit, nullptr,
              "types nest deeper than " + to_text(int64_t(kMaxParentheses)) + " levels");
      return false;
    }
  }
  return true;
}

bool load_text(Context& c, int64_t size, onnx::ModelProto& m) {
  if (size > kMaxTextBytes) {
    c.error("TC0103", ExitCode::Limit, nullptr, "a text model of " + to_text(size) + " bytes; the limit is 256 MiB",
            {"keep large weights in external data or use the binary form"});
    return false;
  }
  std::string text(size_t(size), '\0');
  if (!read_at(c.file.fd(), 0, text.data(), text.size())) {
    c.error("TC0101", ExitCode::Io, nullptr, "cannot read the model");
    return false;
  }
  if (!nesting_ok(c, text)) return false;
  std::string why;
  onnx::OnnxParser parser(text);
  try {
    const auto status = parser.Parse(m);
    if (!status.IsOK())
      why = status.ErrorMessage();
    else if (!parser.EndOfInput())
      why = "unexpected text after the model " + parser.GetCurrentPos();
  } catch (const std::exception&) {  // the standard library, of numbers
    why = "a number cannot be read or is out of range " + parser.GetCurrentPos();
  }
  if (why.empty()) return true;
  std::replace(why.begin(), why.end(), '\n', ' ');
  c.reject("TC0104", nullptr, "syntax error: " + printable(why, 400));
  return false;
}

}  // namespace

bool load_model(Context& c, onnx::ModelProto& m) {
  int64_t size = 0;
  if (!open_model(c, size)) return false;
  c.is_text = ends_with(c.path, ".onnxtxt");
  return c.is_text ? load_text(c, size, m) : load_binary(c, size, m);
}

}  // namespace tc::importer
