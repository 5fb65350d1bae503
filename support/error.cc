#include "support/error.h"

#include "support/text.h"

namespace tc {

std::string Diagnostic::render() const {
  std::string s = std::string(warning ? "warning[" : "error[") + code + "]";
  if (!loc.file.empty()) s += " " + printable(loc.file);
  s += ":";
  std::string where;
  if (!loc.node.empty()) where += " node \"" + printable(loc.node) + "\"";
  if (!loc.op.empty())
    where += (where.empty() ? " node of type " : " (") + printable(loc.op) + (where.empty() ? "" : ")");
  if (loc.node.empty() && !loc.output.empty()) where += " that makes \"" + printable(loc.output) + "\"";
  if (loc.input >= 0) where += ", input " + std::to_string(loc.input);
  if (!loc.value.empty())
    where += std::string(where.empty() || loc.input >= 0 ? "" : ",") + " \"" + printable(loc.value) + "\"";
  if (!where.empty()) s += where + ":";
  s += " " + message;
  for (const std::string& n : notes) s += "\n  note: " + n;
  return s;
}

Error::Error(Diagnostic d) : std::runtime_error(d.message), diagnostic_(std::move(d)) {}
Error::Error(std::string code, ExitCode exit, std::string message)
    : Error(Diagnostic{std::move(code), exit, {}, std::move(message), {}, false}) {}

bool Diagnostics::has_errors() const {
  for (const Diagnostic& d : list_)
    if (!d.warning) return true;
  return false;
}

ExitCode Diagnostics::exit_code() const {
  ExitCode worst = ExitCode::Ok;
  auto rank = [](ExitCode e) {
    switch (e) {
      case ExitCode::Ok: return 0;
      case ExitCode::Unsupported: return 1;
      case ExitCode::Limit: return 2;
      case ExitCode::Rejected: return 3;
      default: return 4;
    }
  };
  for (const Diagnostic& d : list_)
    if (!d.warning && rank(d.exit) > rank(worst)) worst = d.exit;
  return worst;
}

void fail_check(std::string_view what, std::source_location at) {
  // The path without the folder of the machine that built this.
  constexpr std::string_view kHere = __FILE__, kName = "support/error.cc";
  std::string_view file = at.file_name();
  if (kHere.ends_with(kName) && file.starts_with(kHere.substr(0, kHere.size() - kName.size())))
    file.remove_prefix(kHere.size() - kName.size());
  throw InternalError(std::string(file) + ":" + std::to_string(at.line()) + ": " + std::string(what));
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) throw Error("TC0501", ExitCode::Limit, "a size does not fit in 64 bits");
  return r;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) throw Error("TC0501", ExitCode::Limit, "a size does not fit in 64 bits");
  return r;
}

}  // namespace tc
