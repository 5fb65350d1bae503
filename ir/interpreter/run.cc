#include "ir/interpreter/compiler.h"
#include "ir/loop/simplify.h"

namespace tc {

void run(const Stmt& s, const std::vector<Binding>& bindings, const RunOptions& o, int* status) {
  interp::Program program;
  program.vl = o.vl;
  program.strip = int(std::max<int64_t>(interp::kStrip, interp::max_threads(s)));
  interp::Compiler compiler(program, o);
  for (const Binding& b : bindings) compiler.bind(b);
  compiler.stmt(s);
  interp::Machine machine(program, o);
  machine.run();
  machine.check_steps();
  if (status) *status = machine.status;
}

std::vector<Constant> evaluate(const TensorFn& fn, const std::vector<Constant>& inputs, const RunOptions& o) {
  check(inputs.size() == fn.inputs.size(), "evaluate: one constant per input");
  std::vector<Binding> bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Buffer& b = fn.inputs[i];
    check(b->dtype == inputs[i]->dtype && static_dims(b->shape) == inputs[i]->dims, "evaluate: type of an input");
    bindings.push_back({b, const_cast<uint8_t*>(inputs[i]->bytes.get())});  // only read
  }
  std::vector<Constant> results;
  std::vector<std::pair<size_t, MutableTensor>> fresh;
  for (const Buffer& b : fn.outputs) {
    Constant known;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (fn.inputs[i] == b) known = inputs[i];
    for (size_t k = 0; !known && k < results.size(); ++k)
      check(fn.outputs[k] != b, "evaluate: an output is listed twice");
    results.push_back(known);
    if (known) continue;
    check(b->strides.empty() && b->offset == 0, "evaluate: outputs are row-major");
    fresh.emplace_back(results.size() - 1, new_tensor(b->dtype, static_dims(b->shape)));
    bindings.push_back({b, fresh.back().second.bytes});
  }
  int status = 0;
  run(simplify(lower_naive(fn)), bindings, o, &status);
  if (status) throw Error("TC0503", ExitCode::Rejected, "an index is out of range");
  for (auto& [k, t] : fresh) results[k] = std::make_shared<const TensorData>(std::move(t.data));
  return results;
}

}  // namespace tc
