// verify: emit into a temporary folder, build, run, compare.
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/per_node.h"

namespace tc {
namespace {

void check_references(const CommandLine& c) {
  if (!c.against.empty() && c.against != "onnxruntime" && c.against != "interpreter")
    throw Error("TC0001", ExitCode::Usage,
                "--against is onnxruntime or interpreter, not '" + printable(c.against) + "'");
  const bool own_ops = !c.request.import.ops.empty();
  if (own_ops && c.against == "onnxruntime")
    throw Error("TC0001", ExitCode::Usage,
                "ONNX Runtime does not know the operators of --ops; compare with the interpreter, or --reference");
  if (!c.reference.empty() && (!own_ops || !c.against.empty()))
    throw Error("TC0001", ExitCode::Usage, "--reference is for operators of --ops, without --against");
}

}  // namespace

ExitCode verify_command(const CommandLine& c) {
  need_model(c);
  check_references(c);
  if (c.per_node) return verify_per_node(c);
  Diagnostics problems;
  const AgainstReference r = compare_with_reference(c, problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  print_out("against " + r.against + ", seed " + to_text(int64_t(c.seed)) + "\n" + r.text);
  return r.same ? ExitCode::Ok : ExitCode::Mismatch;
}

}  // namespace tc
