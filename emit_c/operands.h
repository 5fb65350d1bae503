// What the executors of all targets say alike: operands of calls, tests of arguments.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "emit_c/names.h"

namespace tc {

/// "in->image", "AT(relu)", "WEIGHT_AS(int64_t, axes)". `member`: "->" or ".", how `in` and `out` are reached.
std::string operand_text(const Program& p, const ProgramNames& n, const Operand& o, const std::string& member);

/// " || !in->image || !out->probability": every tensor that has elements.
std::string null_tests(const Program& p, const ProgramNames& n);
/// "in->batch < 1 || in->batch > 8": is a size that the caller chooses out of its bounds? Empty: there are none.
std::string size_tests(const Program& p, const ProgramNames& n);
/// The inputs that are sizes without an upper bound: NAME_init is told how large they get.
std::vector<size_t> open_sizes(const Program& p);
/// "4096"; of what grows with such a size "(96 * m->room + 4096)". `room`: the instance's member.
std::string memory_text(int64_t bytes, const std::string& room);
/// "past + 2 * seq", with what `name` says of the inputs.
std::string size_text(const SizeSum& s, const std::function<std::string(size_t)>& name);
/// "in->past + 2 * in->seq", with "in->" for `inputs`. What the instance counts is read from its workspace, or is a member
/// behind `counts`: "d->counts.".
std::string size_text(const Program& p, const ProgramNames& n, const SizeSum& s, const std::string& inputs,
                      const std::string& counts = "");
/// "in->total - in->seq < 0": sizes that would be negative. Empty: none can be.
std::string difference_tests(const Program& p, const ProgramNames& n, const std::string& counts = "");
/// "in->past + in->seq > 20": is there no room for what a run appends? Empty: the instance counts nothing.
std::string room_tests(const Program& p, const ProgramNames& n, const std::string& counts = "");
/// How many elements of each input that the instance counts a run brings for each one of its own; where every run brings a
/// fixed number to each state, these numbers without their common divisor. Empty: they grow in no proportion.
std::map<size_t, int64_t> growths(const Program& p);
/// Does the instance keep states? Does it count their elements?
bool keeps_states(const Program& p);
bool counts_states(const Program& p);
/// Sizes that the caller chooses and states have: they stay the same until NAME_reset().
std::vector<size_t> sizes_of_states(const Program& p);
/// "(d->same_n != 0 && in->n != d->same_n)": is one of them another? `same` says where it is kept. Empty: there are none.
std::string other_size_tests(const Program& p, const ProgramNames& n, const std::function<std::string(size_t)>& same);
/// Does a run test whether it fits the states?
bool tests_states(const Program& p);
/// Of the state with most axes, one at least.
int64_t state_rank(const Program& p);

/// "(const cnn *m, const cnn_inputs *in, const cnn_outputs *out)": of NAME_run and of the graphs behind it. `instance`: the
/// type, where it is not NAME yet.
std::string run_parameters(const ProgramNames& n, const std::string& instance = "");

/// "cnn *m, const void *weights, ..., size_t workspace_bytes": of NAME_init, without parentheses.
std::string init_parameters(const Program& p, const ProgramNames& n);

/// Does any kernel raise the status word?
bool can_fail(const Program& p);

/// Does any loop have to run as often as shapes declare?
bool counts_iterations(const std::vector<Step>& steps);

/// The variables of a loop `depth` loops deep: "i", "go", "trips"; "j", "go_j", "trips_j"; ...
struct LoopNames {
  std::string counter, go, trips;
};
LoopNames loop_names(size_t depth);

/// "for (int64_t i = 0, go = START; go && i < LIMIT; i++) {" with what the loop has of that. `limit`: the text of the trip
/// count, or how the variable `trips` is initialised if `reads_limit_once`.
std::string loop_header(const LoopStep& l, const LoopNames& n, const std::string& limit, bool reads_limit_once,
                        const std::string& start);

/// " + i * 64": the part of a tensor that the innermost loop has come to, in elements of `dtype`. Empty without parts.
std::string part_offset(const CopyStep& c, const LoopNames& n, DType dtype);
/// "64", of strings "4 * sizeof(tc_string)": the bytes of a copy.
std::string copy_size(const Program& p, const CopyStep& c);
/// "602112"; of strings, whose views differ in size between processors, "301 * sizeof(tc_string)".
std::string bytes_text(int64_t bytes, DType t);
/// "(size_t)in->batch": the product of its sizes.
std::string sized_number(const Program& p, const ProgramNames& n, const CopyStep& c, const std::string& member);
/// "(size_t)in->batch * 602112": the bytes of a copy of a size that the caller chooses.
std::string sized_bytes(const Program& p, const ProgramNames& n, const CopyStep& c, const std::string& member);
/// The element type of an operand that is a tensor.
DType dtype_of(const Program& p, const Operand& o);

}  // namespace tc
