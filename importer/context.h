// What the importer's steps share: the problems found so far, the model's file, the constants. Internal to importer/.
#pragma once
#include <onnx/onnx_pb.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "importer/import.h"

namespace tc::importer {

constexpr int kMaxSubgraphDepth = 32;
constexpr int kMaxCallDepth = 100;
constexpr int kMaxFunctions = 10'000;
constexpr int kMaxRank = 64;
constexpr int kMaxProblems = 200;  // more are counted, not listed

/// A file descriptor that closes itself.
class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  File(File&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  File& operator=(File&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~File();
  int fd() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// Reads exactly `n` bytes at `offset`; false at the end of the file or on an error.
bool read_at(int fd, int64_t offset, void* to, size_t n);

struct Context {
  Context(std::string model_path, const ImportOptions& o, Diagnostics& d);

  std::string path;
  const ImportOptions& options;
  File file;  // the model; large tensors are read from it after the structure is known
  bool is_text = false;
  /// Tensors too large to travel through ONNX's library (it copies them): see tensors.h.
  std::vector<Constant> stored;
  int64_t tensor_bytes = 0;  // sum over `stored` and small tensors, against options.max_tensor_bytes
  int64_t nodes = 0;         // nodes made by inlining and expansion, against options.max_nodes
  int errors = 0;
  std::map<std::string, Dim> ranges;  // of the symbols that stay in the model

  bool has_row(std::string_view domain, std::string_view op) const;
  /// The row of an operator of the user's, else null.
  std::shared_ptr<const OpRow> own_row(std::string_view domain, std::string_view op) const;

  /// Adds an error. `node` may be null.
  void error(std::string code, ExitCode exit, const onnx::NodeProto* node, std::string message,
             std::vector<std::string> notes = {}, int input = -1);
  void reject(std::string code, const onnx::NodeProto* node, std::string message, std::vector<std::string> notes = {}) {
    error(std::move(code), ExitCode::Rejected, node, std::move(message), std::move(notes));
  }
  void warn(std::string code, const onnx::NodeProto* node, std::string message, std::vector<std::string> notes = {});
  /// Counts n more nodes; reports once and returns false when the limit is passed.
  bool charge_nodes(int64_t n, const onnx::NodeProto* node);
  /// Says how many problems were not listed.
  void close();

 private:
  void add(Diagnostic d);
  std::string file_name() const;
  Diagnostics& problems_;
  std::set<std::pair<std::string, std::string>> seen_;
  bool nodes_reported_ = false;
};

/// "" for the default domain in both of its spellings.
inline std::string domain_of(const std::string& d) { return d == "ai.onnx" ? std::string() : d; }
/// Version of a domain in a list of imports; 0 when it is not imported.
template <class Imports>
int64_t opset_of(const Imports& imports, std::string_view domain) {
  for (const auto& o : imports)
    if (domain_of(o.domain()) == domain) return o.version();
  return 0;
}
/// For messages: the text in double quotes, printable and short.
std::string quoted(std::string_view raw);
std::string first_line(std::string_view text);
/// For messages: what an exception of a library says, without what only its builders understand.
std::string reason_of(const std::exception& e);
std::string reason_of(std::string_view what);

// The steps, in order.
bool load_model(Context& c, onnx::ModelProto& m);         // load.cc
void validate_model(Context& c, onnx::ModelProto& m);     // validate.cc
void drop_dead_nodes(onnx::ModelProto& m);                // dead_nodes.cc
void fix_inputs(Context& c, onnx::ModelProto& m);         // fix_inputs.cc
void load_tensors(Context& c, onnx::ModelProto& m);       // tensors.cc
void open_lists(Context& c, onnx::ModelProto& m);         // list_inputs.cc
void bind_dims(Context& c, onnx::ModelProto& m);          // bind_dims.cc
void replace_maps(Context& c, onnx::ModelProto& m);       // zip_maps.cc
bool inline_functions(Context& c, onnx::ModelProto& m);   // inline_functions.cc
bool convert_to_newest(Context& c, onnx::ModelProto& m);  // convert.cc
void infer_shapes(Context& c, onnx::ModelProto& m);       // convert.cc
void materialise_defaults(onnx::ModelProto& m);           // convert.cc
bool expand_functions(Context& c, onnx::ModelProto& m);   // expand.cc
/// Every node whose operator cannot be compiled, by name alone: works on models that did not get through conversion.
void report_unsupported(Context& c, const onnx::ModelProto& m);  // expand.cc
/// Reports operands whose types the operator does not take together. `n` is of the newest operator set.
void check_operand_types(Context& c, const onnx::NodeProto& n, const std::vector<Value*>& inputs);  // operand_types.cc
Graph to_graph(Context& c, const onnx::ModelProto& m);                                              // to_graph.cc

/// The value type of a TypeProto; reports nothing, Kind::None for what has no counterpart (map, opaque, sparse).
ValueType value_type(const onnx::TypeProto& t);  // to_graph.cc

/// All graphs of a model with their bodies, outer ones first; functions' nodes are not graphs and are not among them.
void for_each_graph(onnx::GraphProto& g, const std::function<void(onnx::GraphProto&)>& f);

}  // namespace tc::importer
