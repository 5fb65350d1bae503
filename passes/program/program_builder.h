// The state of build_program: what is decided so far. build_program.cc has operands and weights,
// program_kernels.cc calls and compile_kernel.cc their kernels, control_flow.cc the steps of If, Loop and Scan.
#pragma once
#include <map>
#include <optional>
#include <set>

#include "ir/graph/views.h"
#include "ir/interpreter.h"
#include "ir/program.h"
#include "passes/loop/loop_pass.h"
#include "passes/pass.h"
#include "passes/program/live_axes.h"
#include "passes/program/parts.h"
#include "passes/program/plan_memory.h"
#include "passes/program/planned_schedules.h"

namespace tc {

/// Evaluates a prologue, which is made ready once, when it is first needed.
class Packer {
 public:
  explicit Packer(const TensorFn& prologue) : prologue_(prologue) {}
  std::vector<Constant> pack(const std::vector<Constant>& inputs);

 private:
  TensorFn prologue_;
  std::optional<Evaluator> evaluator_;
};

class ProgramBuilder {
 public:
  ProgramBuilder(std::string name, PassContext& cx);
  Program take(Graph& g);
  /// Of the loop passes.
  std::string log() const { return loop_passes_.log(); }

 private:
  // What makes two calls share loops: the function, which of its operands are constant, and which nobody needs afterwards.
  struct FunctionKey {
    std::string function;  // identity_of
    std::vector<bool> constant;
    std::vector<int> dead;
    std::vector<std::string> live;  // what live_outputs() says, as text
    std::vector<bool> by_value;     // operands that the host knows: see Param::by_value
    int64_t panel_columns = 0;      // ScheduleOptions
    std::vector<int> kept = {};     // of `dead`, those in the memory of a state
    auto operator<=>(const FunctionKey&) const = default;
  };
  // One distinct function: its kernel and how its operands are found.
  struct Compiled {
    int kernel = 0;
    std::vector<int> by_variant = {};  // Call::by_variant
    std::vector<int> input_index;      // operands of the function that are parameters
    std::string function = {};         // function_hash(), where somebody asks for it
    int replaced = -1;                 // the operand whose memory the result takes over; -1: none
    int row_axis = -1;                 // Scheduled::row_axis
    TensorFn prologue;
    std::vector<int> prologue_operands;  // operand of the function behind each prologue input
    std::string prologue_key;            // identity_of
    std::shared_ptr<Packer> packer;      // of the prologue
  };
  struct States;
  struct Move;
  struct End;

  CopyStep sized_copy(const IoTensor& t, Operand from, Operand to) const;
  void take_sized_inputs(const Graph& g);
  void assign_outputs(const Graph& g);
  void copy_remaining_outputs(Graph& g);
  int keep(const Value* v);
  int kept_slot(const Operand& slot);
  void copy_states(const Graph& g);
  void add_nodes(Graph& g, std::vector<Step>& steps);
  void finish();

  // operands: control_flow.cc reads and assigns values by these
  Operand operand_of(const Value* v);
  Operand result_of(const Value* v);
  Operand new_slot(const ModelText& name, const std::string& suffix, DType dtype, const Dims& dims);
  Operand output_operand(Node& n, size_t k, const Value* replaced);
  void replace_by_steps(const Graph& g, const Value* state, const Value* result);
  bool is_replaced(const Operand& state, const Operand& result) const;
  std::vector<int> dying(const Node& n, const std::vector<const Value*>& operands) const;
  std::vector<int> in_states(const std::vector<int>& dead, const std::vector<const Value*>& operands) const;
  void touch(const Operand& o);
  int add_weight(const Value& v, const Constant& data, const std::string& suffix, const std::string& layout);
  int ordinal(const Constant& c);

  // kernels
  // What nobody needs of an output: see Scheduled::Live. `end` is an expression over the symbols, each an operand.
  struct LiveOutput {
    int output = 0, axis = 0;
    Expr end;
    struct Size {
      SizeSymbol symbol;
      int operand = 0;
    };
    std::vector<Size> sizes;
    std::string as_text() const;
  };
  struct FirstRow {
    SizeSum size;
    Call call;
  };
  /// Of a function: what does not depend on the processor, and the loops for one.
  struct Making {
    const FunctionKey& key;
    const TensorFn& fn;
    const std::vector<bool> known;
    const std::vector<LiveOutput>& live;
    const ScheduleOptions& options;
  };
  struct Made {
    Scheduled s;
    Kernel k;
    int replaced = -1;
  };
  Made lowered(const Making& m, Scheduled s, const Backend& backend, const std::vector<int>& dead);
  int add_kernel(const Making& m, const Made& made);
  int kernel_for(const Backend& other, const Making& m, const Made& best, int kernel,
                 const std::vector<PlanLine>& packing);
  void add_variants();
  /// Scratch memory is the call's next operand.
  void add_scratch(Call& call);
  Call call_of(Compiled& c, Node& n, const std::vector<const Value*>& operands);
  std::optional<FirstRow> first_row(Node& n, const std::vector<LiveOutput>& live, std::vector<const Value*> own,
                                    const std::vector<const Value*>& operands, const std::vector<int>& dead);
  bool ends_early(const Compiled& c, int count) const;
  void forget_kernels(size_t kept);
  void add_call(Node& n, std::vector<Step>& steps);
  Compiled& compile(const FunctionKey& key, const TensorFn& meaning, const std::vector<Constant>& constants,
                    const Node* n, const std::vector<LiveOutput>& live = {});
  /// `but`: an axis of the outputs that is left out.
  std::vector<LiveOutput> live_outputs(const Node& n, TensorFn& fn, std::vector<const Value*>& operands,
                                       int but = -1) const;
  int packed(Compiled& c, const Node& n, const std::vector<const Value*>& operands, size_t k);

  // sizes that the caller chooses, on a device: sizes_on_device.cc
  bool is_host_number(const Operand& o) const;
  std::vector<bool> by_value(const std::vector<const Value*>& operands) const;
  /// Returns what stood for them before.
  std::vector<std::pair<const Value*, Operand>> put_into_memory(const TensorFn& fn,
                                                                const std::vector<const Value*>& operands,
                                                                std::vector<Step>& steps);
  void call_own(const TensorFn& fn, std::vector<Operand> operands, std::vector<Step>& steps);
  void fill_room(const CopyStep& c, DType dtype, std::vector<Step>& steps);
  void fill_behind(const CopyStep& c, DType dtype, std::vector<Step>& steps);
  Expr rows_of(const CopyStep& c, TensorFn& fn, std::vector<Operand>& operands) const;
  void store_number(Operand number, Operand to, std::vector<Step>& steps);
  void clear_behind(const IoTensor& state, std::vector<Step>& steps);

  // tensors inside of others: assemble.cc
  void add_assembly(const Node& n, const Assembly& a, std::vector<Step>& steps);
  Operand part_slot(const Value* v, const std::string& suffix, const Part& at);

  // control flow
  void add_copy(std::vector<Step>& steps, Operand from, Operand to, int64_t bytes);
  /// The same of a value; a constant without elements becomes no weight for that.
  void copy_value(std::vector<Step>& steps, const Value* from, Operand to);
  void add_part(std::vector<Step>& steps, CopyStep c);
  void add_if(Node& n, std::vector<Step>& steps);
  void add_loop(Node& n, std::vector<Step>& steps);
  void add_scan(Node& n, std::vector<Step>& steps);
  States begin_states(Node& n, size_t first, size_t count, size_t first_in_body, size_t first_next,
                      std::vector<Step>& steps);
  std::vector<Operand> captures(Node& n);
  std::vector<Operand> stacked_results(const Node& n, size_t states, std::vector<Operand>& alive);
  void add_skipped_loop(const Node& n, size_t states);
  std::vector<CopyStep> stacked_parts(const Node& n, const std::vector<Operand>& results, size_t first,
                                      const std::vector<int64_t>& reversed);
  void move_states(std::vector<Move> pending, std::vector<Step>& steps);
  void end_iteration(Node& n, const End& end, std::vector<Step>& steps);
  void end_loop(LoopStep s, const Node& n, const States& states, const std::vector<Operand>& alive,
                std::vector<Step>& steps);
  void begin_number(LoopStep& s, const Value& name, const Operand& number, std::vector<Step>& steps);
  void count(Node& n, const Operand& number, std::vector<Step>& steps);
  bool fits_graph(const LoopStep& s, size_t copies) const;

  PassContext& cx_;
  LiveAxes live_;
  Parts parts_;  // of the outermost graph
  LoopPassRunner loop_passes_;
  PlannedSchedules planned_;
  Program p_;
  int step_ = 0;
  std::vector<ScratchUse> scratch_;
  size_t nodes_ = 0;                          // of the outermost graph
  std::map<const Value*, Operand> operands_;  // looked up only
  std::map<const Value*, const Node*>
      last_use_;  // of memory: by the value that views share; null: a result. Looked up only
  std::map<const Value*, std::set<const Value*>> kept_;  // of a state what may replace it. Looked up only
  std::set<size_t> direct_;
  std::vector<const Value*> sizes_;  // inputs of the outermost graph
  std::map<FunctionKey, Compiled> compiled_;
  FunctionKey last_key_;  // of what was compiled last
  std::set<std::string>
      packed_otherwise_;                // functions of one row that do not read the weights as they are, by identity
  std::map<std::string, int> kernels_;  // by identity
  std::map<const TensorData*, int> ordinals_, stored_;                           // looked up only
  std::map<std::pair<std::string, std::vector<int>>, std::vector<int>> packed_;  // by prologue and ordinals
  std::set<std::string> names_;
};

/// Of a tensor of known sizes.
int64_t byte_size(const Value& v);

}  // namespace tc
