// Errors and diagnostics. A model's problems are collected in Diagnostics and reported together; a defect of our own
// throws InternalError through check(). Nothing calls exit().
#pragma once
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tc {

/// Process exit codes; they are part of the command line's contract.
enum class ExitCode : int {
  Ok = 0,
  Rejected = 1,     // the model is wrong
  Usage = 2,        // the command line is wrong
  Unsupported = 3,  // an operator or a feature is missing
  Mismatch = 4,     // verification or --check failed
  Limit = 5,        // a limit was exceeded
  Io = 6,           // a file could not be read or written
  Tool = 7,         // cc, nvcc or ONNX Runtime failed
  Internal = 70,
};

/// Where a problem sits. Texts are raw model text; render() escapes them.
struct Loc {
  std::string file;
  std::string node;         // the node's name in the model, may be empty
  std::string op;           // "Conv"
  std::string value;        // tensor name, may be empty
  int input = -1;           // index of the input that is wrong, -1: none
  std::string output = {};  // of a node without a name, the first result; may be empty
};

struct Diagnostic {
  std::string code;  // "TC0214"
  ExitCode exit = ExitCode::Rejected;
  Loc loc;
  std::string message;             // what and why
  std::vector<std::string> notes;  // the way out
  bool warning = false;

  /// "error[TC0214] model.onnx: node "/a/b" (Softmax), input 0 "x": message" and one "  note: ..." line per note.
  std::string render() const;
};

/// A problem of the input, thrown where going on makes no sense, caught where diagnostics are collected.
class Error : public std::runtime_error {
 public:
  explicit Error(Diagnostic d);
  Error(std::string code, ExitCode exit, std::string message);
  const Diagnostic& diagnostic() const { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
};

/// A defect of tc-emit itself.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// All problems of one run, in the order in which they were found.
class Diagnostics {
 public:
  void add(Diagnostic d) { list_.push_back(std::move(d)); }
  bool has_errors() const;
  /// The exit code of the most severe error: Rejected before Limit before Unsupported; Ok without errors.
  ExitCode exit_code() const;
  const std::vector<Diagnostic>& list() const { return list_; }

 private:
  std::vector<Diagnostic> list_;
};

/// Throws InternalError naming file and line unless `ok`. Active in release builds too.
inline void check(bool ok, std::string_view what = "invariant violated",
                  std::source_location at = std::source_location::current());

[[noreturn]] void fail_check(std::string_view what, std::source_location at);

inline void check(bool ok, std::string_view what, std::source_location at) {
  if (!ok) [[unlikely]]
    fail_check(what, at);
}

/// 64-bit products and sums that throw Error TC0501 (limit) instead of wrapping.
int64_t checked_mul(int64_t a, int64_t b);
int64_t checked_add(int64_t a, int64_t b);

}  // namespace tc
