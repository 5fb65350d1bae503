#include "emit_cuda/states.h"

#include <algorithm>

#include "emit_c/fill.h"
#include "emit_c/operands.h"
#include "emit_c/states.h"
#include "templates/text.h"

namespace tc {
namespace {

bool counts(const IoTensor& t) { return t.is_size && t.is_kept(); }

std::string place(const Program& p, size_t input, const std::string& workspace) {
  return workspace + " + " + to_text(p.slots[size_t(p.inputs[input].state)].offset);
}

StateMemory on_device(const Program& p, const ProgramNames& n) {
  const auto count = [&n](size_t k) { return kCountsOfPointer + n.inputs[k]; };
  const auto data = [&p, count](size_t k) {
    return counts(p.inputs[k]) ? "&" + count(k) : place(p, k, "d->workspace");
  };
  return {.data = data, .count = count};
}

// The numbers, and how they change.
void add_counts(const Program& p, const ProgramNames& n, DeviceStates& s) {
  std::string next;
  std::vector<std::string> fewer, most;
  for (size_t k = 0; k < p.inputs.size(); k++) {
    if (!counts(p.inputs[k])) continue;
    const std::string& name = n.inputs[k];
    most.push_back(to_text(p.inputs[k].most));
    s.counts += (s.counts.empty() ? "" : ", ") + name + " = 0";
    next += "  next." + name + " = " + size_text(p, n, p.inputs[k].next, "in.", kCounts) + ";\n";
    fewer.push_back(kCounts + name + " < d.written." + name);
  }
  if (s.counts.empty()) return;
  s.counts = "/* How many elements the states have. */\nstruct state_counts {\n  int64_t " + s.counts + ";\n};\n\n";
  s.members = "  state_counts counts, written;      /* what there is; behind what was written there are zeros */\n";
  s.next = "/* What there is after a run. */\nstate_counts next_counts(const " + n.lower + "_device &d, const " +
           n.lower + "_inputs &in)\n{\n  state_counts next;\n  (void)in;\n" + next + "  return next;\n}\n\n";
  s.dropped = join(fewer, " || ");
  s.drop = "  d->written = {" + join(most, ", ") + "};\n";
  s.test_room = "  if (" + room_tests(p, n, kCountsOfPointer) + ") return " + n.upper + "_E_STATE;\n";
  s.end_run = "  if (d->host->status == 0) d->counts = d->written;\n";
}

// Sizes that stay the same until the states are reset.
void add_sizes(const Program& p, const ProgramNames& n, DeviceStates& s) {
  const auto same = [&](size_t k) { return "same_" + n.inputs[k]; };
  const std::string other = other_size_tests(p, n, [&](size_t k) { return "d->" + same(k); });
  if (other.empty()) return;
  std::string keep;
  for (const size_t k : sizes_of_states(p)) {
    const std::string name = same(k);
    s.members += "  int64_t " + name + " = 0;  /* what it is in the states; 0: no run has told yet */\n";
    keep += " d->" + name + " = in->" + n.inputs[k] + ";";
    s.keep += "  d." + name + " = in." + n.inputs[k] + ";\n";
    s.forget += "  d->" + name + " = 0;\n";
  }
  s.test_room += "  if (" + other + ") return " + n.upper + "_E_STATE;\n";
  s.end_run += "  if (d->host->status == 0) {" + keep + " }\n";
}

// Returns whether there are any.
bool add_zeros(const Program& p, const ProgramNames& n, DeviceStates& s) {
  std::string zeros;
  for (const size_t k : emptied_by_zeros(p))
    if (!counts(p.inputs[k]))
      zeros += "  TRY(cudaMemsetAsync(" + place(p, k, "d.workspace") + ", 0, " +
               to_text(p.slots[size_t(p.inputs[k].state)].bytes) + ", stream));\n";
  if (zeros.empty()) return false;
  const std::string device = "(" + n.lower + "_device &d";
  s.members += "  bool clears = true;                /* the next run begins with zeros in states that do not grow */\n";
  s.functions +=
      "cudaError_t clear_states" + device + ", cudaStream_t stream)\n{\n  if (!d.clears) return cudaSuccess;\n" +
      zeros +
      "  d.clears = false;\n  return cudaSuccess;\n}\n\n/* For who looks at states, on whatever stream they are "
      "computed. */\ncudaError_t clear_now" +
      device +
      ")\n{\n  TRY(cudaDeviceSynchronize());\n  TRY(clear_states(d, d.stream));\n"
      "  TRY(cudaStreamSynchronize(d.stream));\n  return cudaSuccess;\n}\n\n";
  s.begin_run = "  TRY(clear_states(d, d.stream));\n";
  return true;
}

std::string async_function(const ProgramNames& n, const std::string& sizes, bool clears, bool counts) {
  return "/* A graph of the caller's would begin with the same states every time: a stream that captures is refused. "
         "*/\n"
         "bool is_captured(cudaStream_t stream)\n{\n"
         "  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;\n"
         "  return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status != "
         "cudaStreamCaptureStatusNone;\n}\n\n"
         "cudaError_t execute_and_keep(" +
         n.lower + "_device &d, const " + n.lower + "_inputs &in, const " + n.lower +
         "_outputs &out, cudaStream_t stream)\n{\n" + (clears ? "  TRY(clear_states(d, stream));\n" : "") +
         "  TRY(execute(d, in, out, stream));\n" + (counts ? "  d.counts = d.written;\n" : "") + sizes +
         "  return cudaSuccess;\n}\n\n";
}

}  // namespace

bool is_counted(const Program& p, const std::vector<SizeSum>& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [&](const SizeSum& s) {
    return std::any_of(s.terms.begin(), s.terms.end(),
                       [&](const SizeSum::Term& t) { return p.inputs[t.input].is_kept(); });
  });
}

DeviceStates device_states(const Program& p, const ProgramNames& n) {
  DeviceStates s;
  if (!keeps_states(p)) return s;
  add_counts(p, n, s);
  const bool counted = !s.counts.empty(), clears = add_zeros(p, n, s);
  add_sizes(p, n, s);
  s.functions += async_function(n, s.keep, clears, counted);
  s.execute = "execute_and_keep";
  s.refuse_captured = "  if (is_captured(stream)) return " + n.upper + "_E_ARG;\n";
  const std::string get = "  " + n.lower + "_device *const d = device_of(" + n.self + ");\n",
                    now = clears ? " || (d->clears && clear_now(*d) != cudaSuccess)" : "";
  s.api = "void " + n.lower + "_reset(" + n.lower + " *" + n.self + ")\n{\n" + get + "  if (!d) return;\n" +
          (counted ? "  d->counts = {};\n" + s.drop : "") + (clears ? "  d->clears = true;\n" : "") + s.forget +
          "}\n\n" + rewind_function(p, n, on_device(p, n), get, "!d", s.drop) +
          state_function(p, n, on_device(p, n), get + "  if (!d || !view" + now + ") return 0;\n");
  s.comment = fill(support_text("states_comment.cu.in"), {{"name", n.lower}, {"NAME", n.upper}});
  return s;
}

}  // namespace tc
