// Program: everything that the emitters print, decided. Kernels in printable Loop IR, the executor's steps, the arena
// plan, the weights. Printers decide nothing.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/loop/ir.h"
#include "ir/types.h"
#include "support/text.h"

namespace tc {

/// A parameter of a kernel. Its buffer is free in the body.
struct Param {
  enum class Role { Input, Weight, Output, Scratch, Status, Strings } role;
  Buffer buffer;       // flat, as the body reads it; its name is unique in the kernel
  Dims dims;           // its shape, for the reader
  std::string layout;  // for the head comment: "channels last", "packed: n block, k, n in block"
  bool by_value =
      false;  // CUDA: an Input that is a size of the caller's, which the host knows: the number, not its address
};

/// CUDA: a __global__ function. Its body is one nest of Block and Thread loops, whose extents are the launch's.
struct DeviceFunction {
  std::string name;            // after the kernel's name: "kernel", "kernel2"
  std::vector<Buffer> params;  // in the order of the Launch's buffers
  Stmt body;
  int64_t threads = 1;        // of a block
  bool can_fail = false;      // its last parameter is the status word
  int64_t blocks_per_sm = 0;  // how many of its blocks a multiprocessor has to hold at least; 0: nothing is asked
  std::vector<Var> rolled;    // loops that must stay loops
  // Registers whose declaration says what the statement behind it does: an array begins as zeros, a scalar as what a
  // shuffle brings.
  std::vector<Buffer> initialised;
  int64_t dynamic_shared = 0;  // bytes of its one Shared buffer, if that is dynamic; 0: its Shared buffers are arrays
  std::vector<For> host_loops =
      {};  // the host's loops around the launch whose variables it gets, after the buffers; no bodies
};

/// A Parallel loop, whose chunks become a function of their own, and the Alias and Let statements around the loop that this
/// function needs, outermost first; and the variables of loops around it that it needs.
struct ParallelPart {
  Var chunk;
  std::vector<Stmt> around;
  std::vector<Var> counters;
};

/// What a call has to do at least, and how long that takes on the target. Of the cost model, no part of an identity.
struct KernelWork {
  int64_t macs = 0;      // products that the loops multiply and add, without those of padded tiles
  int64_t products = 4;  // bytes of an element that is multiplied
  bool rounds = false;   // CUDA: factors of single precision are rounded for tensor cores: to tf32, where products is 4
  int64_t bytes = 0;     // of operands, each element that is read or written counted once
  int64_t weight_bytes = 0;  // of these, what is the same in every run
  double floor_ns = 0;  // C: one thread of the processor, CUDA: the device of --arch (Backend::floor_ns); 0: not known
};

/// A parameter of a kernel which in every call is a size of the caller's, which NAME_run has checked: from `least` to `most`.
struct CheckedSize {
  Buffer buffer;
  int64_t least = 0, most = 0;
};

struct Kernel {
  std::string name;                         // the signature, without the model's prefix
  std::vector<Param> params;                // inputs, weights, outputs, scratch, status
  Stmt body;                                // printable form. C: at most one outermost Parallel loop = the chunks.
                                            // CUDA: the host's part, Aliases of scratch memory and Launches
  std::vector<DeviceFunction> device;       // CUDA only, by Launch::kernel
  int64_t chunks = 1;                       // extent of the Parallel loop
  int64_t scratch_bytes = 0;                // per chunk
  std::string formula;                      // "y[h][w][oc] = max(0, bias[oc] + sum(...) ...)", may have several lines
  std::string summary;                      // one sentence: what it computes
  std::string schedule;                     // one sentence: how it was scheduled
  std::vector<std::string> schedule_steps;  // Scheduled::steps, for the manifest
  bool can_fail = false;                    // has a Status parameter
  bool makes_strings = false;               // C: has a Strings parameter, the arena of made strings
  std::vector<int> variants = {};           // by which of Program::variants it is called; empty where there are none
  KernelWork work = {};
  // What is found out of the finished kernel, by its calls and by last_loop_passes(); neither its name nor its identity knows of it.
  std::vector<CheckedSize> checked_sizes = {};
  bool wide_index = false;             // loops count in int64_t
  std::vector<Buffer> vectors;         // C: registers that hold vectors of TC_VL lanes
  std::vector<Buffer> single_vectors;  // those of them that are one vector
  std::vector<ParallelPart> parts;     // C: of its Parallel loops
  std::vector<Buffer> part_views;      // C: views that only they use
  std::vector<Var> part_names = {};    // C: names that only they use
};

/// Where an argument of a call lives.
struct Operand {
  enum class Kind { Input, Output, Slot, Weight, Scratch, Status, Strings } kind;
  int index = 0;  // into Program::inputs / outputs / slots / weights
};

struct Step;
struct Call {
  int kernel = 0;
  std::vector<Operand> operands;   // one per parameter
  std::vector<ModelText> origins;  // the model's nodes
  std::string note;                // our own text, when there is no origin
  /// The kernel of each of Program::variants, with the same parameters; the last is `kernel`. Empty where there are none.
  std::vector<int> by_variant = {};
  int kernel_of(size_t variant) const { return by_variant.empty() ? kernel : by_variant.at(variant); }
};
struct CopyStep {
  Operand from, to;
  int64_t bytes = 0;
  /// In the body of a loop: the longer side consists of parts of `bytes`, and this iteration's is meant: part i, or, if
  /// `reversed`, part parts - 1 - i of the innermost loop.
  enum class Part { None, From, To } part = Part::None;
  bool reversed = false;
  int64_t parts = 0;
  std::vector<ModelText> origins;
  /// Of an input or output with sizes that the caller chooses: those sizes. `bytes` are multiplied by all of them.
  std::vector<SizeSum> times = {};
  int64_t room = 0;  // bytes of an input's slot; behind the input stand copies of what there is, or zeros
};
struct IfStep {
  Operand condition;  // a bool tensor of one element
  std::vector<Step> then, otherwise;
  std::vector<ModelText> origins;
  SizeSum size = {};  // with terms: the condition is that this is 1, and both branches compute the same
};
/// for (i = 0; i < trips && start && no ContinueStep of the body has ended it; i++) body
struct LoopStep {
  int64_t trips = -1;                 // known while compiling; -1: not
  std::optional<Operand> trip_count;  // I64, one element, read before the first iteration; neither: no limit
  std::optional<Operand> start;       // a bool tensor of one element, read before the first iteration
  bool may_end = false;               // the body has a ContinueStep
  std::optional<Operand> iteration;   // C: an I64 slot of one element that the executor sets to i
  int64_t declared = -1;              // as many iterations as the shapes of the results say, or the run fails; -1: any
  bool in_graph = false;              // CUDA: takes no decision of the host, captured with what is around it
  std::vector<Step> body;
  std::vector<ModelText> origins;
};
/// The innermost loop goes on behind this iteration if the bool tensor of one element says so.
struct ContinueStep {
  Operand condition;
};
struct Step {
  std::variant<Call, CopyStep, IfStep, LoopStep, ContinueStep> kind;
  bool begins_part = false;  // the executor goes on in another function from here
};

/// A tensor in the arena.
struct Slot {
  ModelText name;
  std::string suffix;  // our own name when the slot is not the model's tensor itself: "padded"
  DType dtype;
  Dims dims;
  int64_t bytes = 0, offset = -1;  // offset: bytes, a multiple of Program::align, unless it is a part of another slot
  int first = 0, last = 0;         // steps (in print order) of first write and last read
  int alias_of = -1;               // same memory as another slot, which it replaces, or a part of which it is
  int64_t within = -1;  // of a part: bytes from the begin of alias_of, whose rows are longer; -1: it replaces it
  bool kept = false;    // a state: alive between runs
};

struct Weight {
  ModelText name;
  std::string suffix;  // "packed"
  Constant data;       // as stored, physical layout; of packed weights without the bytes
  std::string layout;  // description
  int64_t offset = 0;  // bytes from the start of the blob, a multiple of Program::align; the header takes the first 64
  /// Packs, whenever it is asked: the packed weights of a large model are never in memory together. Null: `data` has the bytes.
  std::function<Constant()> pack = {};
};
/// The elements of a weight. Throws Error (TC0502, TC0503).
inline Constant data_of(const Weight& w) { return w.pack ? w.pack() : w.data; }

/// A size of an input or output along an axis: a sum of inputs that are sizes, or, if that has no terms, what output `count`
/// says.
struct IoSize {
  int axis = 0, count = 0;
  SizeSum sum = {};
  bool of_inputs() const { return !sum.terms.empty(); }
};

struct IoTensor {
  ModelText name;
  DType dtype;
  Dims dims;
  std::vector<IoSize> sizes = {};  // by axis: those that are known when the model runs; dims hold the upper bounds
  bool is_count = false;           // an output that is such a number
  bool is_size = false;            // an input that is such a number: the caller chooses it from `least` to `most`
  int64_t least = 0, most = 0;
  int state = -1;     // not passed by the caller: the slot that keeps it; of a size: 0, the instance counts
  SizeSum next = {};  // of a size that the instance counts: what it is after a run, at most `most`
  int same = -1;  // of a size that the caller chooses and states have: the slot with what it is until they are reset
  bool is_kept() const { return state >= 0; }
};

/// A processor of a list (--cpu A,B): kernels of its own, where they differ, for the same steps, tensors and weights.
struct ProgramVariant {
  std::string cpu, march;
  int lanes = 0;
};

struct Program {
  std::string name;  // C identifier, the prefix
  ModelText title;   // the model's own name
  std::vector<IoTensor> inputs, outputs;
  std::vector<Kernel> kernels;  // distinct, in order of first call
  std::vector<Step> steps;
  std::vector<Slot> slots;
  std::vector<Weight> weights;
  int64_t arena_bytes = 0;                         // slots
  int64_t scratch_offset = 0, scratch_bytes = 0;   // per-chunk scratch of the largest kernel, all chunks
  int64_t strings_offset = 0, strings_bytes = 0;   // made strings: a head of 64 bytes, then their text; 0: none is made
  int64_t workspace_bytes = 0;                     // arena, scratch, made strings and status
  int64_t weights_bytes = 64;                      // header included
  int64_t naive_bytes = 0, lower_bound_bytes = 0;  // what no reuse would take; largest live set
  std::string cpu, march;  // of --cpu; CUDA: cpu is the name of --arch; of a list: the names, and nothing
  int lanes = 0;           // f32 lanes that it was scheduled for; CUDA: 0
  int64_t align = 64;      // of tensors in the arena and in the blob of weights
  int64_t macs = 0, params = 0;
  uint64_t weights_layout = 0;  // fingerprint of all of this but names: a blob of weights of another program is refused
  bool external_weights = false;              // the blob is a file that the program opens, no part of it
  std::vector<ProgramVariant> variants = {};  // of --cpu with a list, the best last; empty: kernels are for `cpu`
};

}  // namespace tc
