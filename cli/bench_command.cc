// bench: emit into a temporary folder, build, time.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/build_model.h"
#include "cli/commands.h"
#include "passes/program/kernel_work.h"

namespace tc {
namespace {

/// The line of the program's --bench with the floor of a run behind it, if that is known. `of`: whose it is.
std::string with_floor(const std::string& line, double floor_ms, const std::string& of, bool json) {
  if (floor_ms <= 0) return line;
  if (json) {
    nlohmann::ordered_json j = nlohmann::ordered_json::parse(line);
    j["floor_ms"] = std::round(floor_ms * 1e6) * 1e-6;
    return j.dump() + "\n";
  }
  char number[40];
  std::snprintf(number, sizeof number, " %.6g ms\n", floor_ms);
  return line + "floor of " + of + number;
}

}  // namespace

ExitCode bench_command(const CommandLine& c) {
  need_model(c);
  const TemporaryDir dir;
  Diagnostics problems;
  const Built b = build_model(c, dir.path() + "/out", problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  std::vector<std::string> argv{b.program, "--bench", to_text(c.seconds), "--seed", to_text(int64_t(c.seed))};
  if (c.threads > 0) argv.insert(argv.end(), {"--threads", to_text(int64_t(c.threads))});
  if (c.json) argv.push_back("--json");
  const ProcessResult r = run_phase(c, "bench", argv);
  c.request.listener.tell("");
  if (r.status != 0) tool_failed("the emitted program", r);
  const bool cuda = c.request.target.is_cuda();
  const double floor = cuda && !has_gpu() ? 0 : floor_ns(b.compilation.program);
  print_out(with_floor(r.output, floor * 1e-6, cuda ? "a card of " + b.compilation.program.cpu : "one thread", c.json));
  return ExitCode::Ok;
}

}  // namespace tc
