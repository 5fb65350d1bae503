#include <algorithm>

#include "ir/interpreter/compiler.h"
#include "ir/interpreter/strings.h"
#include "ir/loop/simplify.h"

namespace tc {

namespace {

interp::Program compile(const Stmt& s, const std::vector<Binding>& bindings, const RunOptions& o) {
  interp::Program program;
  program.vl = o.vl;
  program.batch = interp::lanes_needed(s);
  interp::Compiler compiler(program, o);
  for (const Binding& b : bindings) compiler.bind(b);
  compiler.stmt(s);
  return program;
}

/// The status that the statement left.
int run(interp::Program& program, const RunOptions& o) {
  interp::Machine machine(program, o);
  machine.run();
  machine.check_steps();
  return machine.status;
}

}  // namespace

void run(const Stmt& s, const std::vector<Binding>& bindings, const RunOptions& o, int* status) {
  interp::Program program = compile(s, bindings, o);
  const int left = run(program, o);
  if (status) *status = left;
}

/// The first buffers of the program are the function's inputs, then its outputs that are not inputs.
struct Evaluator::Prepared {
  RunOptions options;
  std::vector<Buffer> inputs, outputs;
  std::vector<int> input_of;  // per output: the input that it is; -1: it is computed
  interp::Program program;
};

Evaluator::Evaluator(const TensorFn& fn, const RunOptions& o) : prepared_(std::make_shared<Prepared>()) {
  Prepared& p = *prepared_;
  p.options = o;
  p.inputs = fn.inputs;
  p.outputs = fn.outputs;
  std::vector<Binding> bindings;
  for (const Buffer& b : fn.inputs) bindings.push_back({b, nullptr});
  for (const Buffer& b : fn.outputs) {
    const auto input = std::find(fn.inputs.begin(), fn.inputs.end(), b);
    p.input_of.push_back(input == fn.inputs.end() ? -1 : int(input - fn.inputs.begin()));
    if (p.input_of.back() >= 0) continue;
    check(std::count(fn.outputs.begin(), fn.outputs.end(), b) == 1, "evaluate: an output is listed twice");
    check(b->strides.empty() && b->offset == 0, "evaluate: outputs are row-major");
    bindings.push_back({b, nullptr});
  }
  p.program = compile(simplify(lower_naive(fn)), bindings, o);
}

std::vector<Constant> Evaluator::operator()(const std::vector<Constant>& inputs) {
  Prepared& p = *prepared_;
  check(inputs.size() == p.inputs.size(), "evaluate: one constant per input");
  interp::StringPool pool;
  std::vector<MutableTensor> strings;  // elements of the inputs that are strings
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Buffer& b = p.inputs[i];
    check(b->dtype == inputs[i]->dtype && static_dims(b->shape) == inputs[i]->dims, "evaluate: type of an input");
    if (b->dtype == DType::String) {
      strings.push_back(pool.elements(*inputs[i]));
      p.program.buffers[i].bytes = strings.back().bytes;
      continue;
    }
    p.program.buffers[i].bytes = const_cast<uint8_t*>(inputs[i]->bytes.get());  // only read
  }
  std::vector<MutableTensor> fresh;
  for (size_t k = 0; k < p.outputs.size(); ++k) {
    if (p.input_of[k] >= 0) continue;
    MutableTensor t = new_tensor(p.outputs[k]->dtype, static_dims(p.outputs[k]->shape));
    fresh.push_back(t.data.dtype == DType::String ? pool.elements(t.data) : std::move(t));
    p.program.buffers[inputs.size() + fresh.size() - 1].bytes = fresh.back().bytes;
  }
  RunOptions options = p.options;
  options.strings = &pool;
  const int status = run(p.program, options);
  for (interp::BufferSlot& s : p.program.buffers) {  // nothing of this run is kept
    s.bytes = nullptr;
    s.local = {};
  }
  if (status) throw Error("TC0503", ExitCode::Rejected, "an index is out of range");
  std::vector<Constant> results;
  auto next = fresh.begin();
  for (const int input : p.input_of) {
    if (input >= 0) {
      results.push_back(inputs[size_t(input)]);
      continue;
    }
    MutableTensor& t = *next++;
    results.push_back(t.data.dtype == DType::String ? interp::StringPool::constant(t)
                                                    : std::make_shared<const TensorData>(std::move(t.data)));
  }
  return results;
}

std::vector<Constant> evaluate(const TensorFn& fn, const std::vector<Constant>& inputs, const RunOptions& o) {
  return Evaluator(fn, o)(inputs);
}

}  // namespace tc
