// The interpreter's program and its machine. A statement becomes a flat list of instructions; an instruction is a
// function that runs over a batch of lanes: iterations of one loop (up to kBatch) or the threads of a block.
//
// Registers are arrays in one arena, addressed by byte offset. A value is uniform (one for all lanes) or varying (one
// per lane), and scalar or vector (vl numbers): `varying ? lanes : 1` times `vector ? vl : 1` numbers, lanes outermost.
// They hold float (f32 and narrower), double (f64) or int64_t (integers and bool; U64 by its bits; strings by handles).
#pragma once
#include <string>
#include <vector>

#include "ir/interpreter.h"
#include "ir/loop/instruction.h"

namespace tc::interp {

inline constexpr int kBatch = 256;
inline constexpr int32_t kConstantBytes = 1 << 14;  // of the arena, for constants

enum class Class : uint8_t { F, D, I, U };  // U: U64, kept in int64_t registers
Class class_of(DType t);
inline int bytes_of(Class c) { return c == Class::F ? 4 : 8; }

struct Machine;
struct Instr;
using Fn = void (*)(Machine&, const Instr&);

struct Instr {
  Fn fn = nullptr;
  int32_t dst = 0, a = 0, b = 0, c = 0;  // registers (byte offsets) or small numbers
  int32_t aux = 0;                       // jump target, access, dtype ... as fn says
  bool varying = false;                  // runs for every lane
  bool a_step = true, b_step = true;     // false: the operand is one number for all
  int32_t width = 1;                     // numbers per lane: vl for vectors
};

/// constant + sum(coefficient * uniform integer register)
struct Line {
  int64_t constant = 0;
  std::vector<std::pair<int64_t, int32_t>> terms;
};

/// One index of an access.
struct AccessDim {
  Line base;  // affine: base + lane * lane_step + vector lane * vector_step
  int64_t lane_step = 0, vector_step = 0;
  int32_t reg = -1;  // otherwise: numbers in a register
  bool reg_varying = false, reg_vector = false;
  int64_t extent = 0, stride = 0;  // extent < 0: not known
};

struct Access {
  int buffer = 0;
  std::vector<AccessDim> dims;
  bool affine = true;  // every dim is
  int32_t count = -1;  // register of the number of vector lanes that exist
  bool count_varying = false;
  bool vector = false;
  bool is_store = false;
};

/// What owns one copy of a local buffer.
enum class Sharing : uint8_t { All, Lane, Warp };

struct BufferSlot {
  Buffer buffer;
  uint8_t* bytes = nullptr;
  std::vector<uint8_t> local;  // memory of an Alloc
  int64_t elements = 0;        // of one copy
  Sharing sharing = Sharing::All;
  bool tracked = false;         // by the race checker
  std::vector<uint8_t> stored;  // of a warp's elements: has a lane stored it?
  bool global = false;
  struct Shadow {
    int64_t writer = -1, reader = -1;  // thread, numbered over all blocks
    int64_t write_epoch = -1, read_epoch = -1;
    bool many_readers = false;
  };
  std::vector<Shadow> shadows;  // tracked only
  int base = -1;                // a view of shared memory: the buffer whose shadows, of a byte each, are used
  int64_t start = 0;            // of the view, in bytes
  int64_t launch = -1;          // of the shadows' entries
};

struct Program {
  std::vector<Instr> code;
  std::vector<Line> lines;
  std::vector<Access> accesses;
  std::vector<BufferSlot> buffers;
  std::vector<uint8_t> image;  // of the first registers: constants
  int64_t arena_bytes = 0;     // of all registers, at least those of the image; the others begin as zeros
  std::vector<MatrixInstruction> matrix_instructions;
  std::vector<GroupMatrixInstruction> group_instructions;
  std::string thread_loop;  // names of the thread loops, for messages
  int batch = kBatch;       // lanes that registers have room for
  int vl = 4;
};

struct Machine {
  Program& program;
  RunOptions options;
  std::unique_ptr<uint64_t[]> arena;  // registers, 8-byte aligned
  uint8_t* regs = nullptr;
  size_t pc = 0;
  int lanes = 1;
  bool in_batch = false;          // lanes are iterations of a loop of one thread, not threads
  const uint8_t* mask = nullptr;  // per lane; null: all lanes are active
  struct SavedMask {
    const uint8_t* mask;
    std::vector<uint8_t> own;
  };
  std::vector<SavedMask> masks;  // what to go back to; own: the bytes of the newer mask
  size_t depth = 0;              // entries of `masks` in use
  int64_t steps = 0;
  int status = 0;
  int64_t epoch = 0, block = 0, launch = 0;
  std::vector<int64_t> addresses;  // of the access at hand; -1: the lane does not take part

  Machine(Program& p, const RunOptions& o);
  void run();

  template <class T>
  T* reg(int32_t offset) {
    return reinterpret_cast<T*>(regs + offset);
  }
  int lanes_of(const Instr& i) const { return i.varying ? lanes : 1; }
  /// Numbers that `i` computes.
  int count(const Instr& i) {
    int n = lanes_of(i) * i.width;
    steps += n;
    return n;
  }
  bool active(int lane) const { return !mask || mask[lane]; }
  int64_t eval(const Line& l) const {
    int64_t v = l.constant;
    for (const auto& [c, r] : l.terms) v += c * *reinterpret_cast<const int64_t*>(regs + r);
    return v;
  }
  void check_steps() const {
    if (steps > options.max_steps) [[unlikely]]
      out_of_steps();
  }
  [[noreturn]] void out_of_steps() const;
};

/// Elements that an access touches: either offset + lane * lane_step + v * vector_step (returns true), or one by one in
/// m.addresses. Checks bounds, masks and counts.
struct Strided {
  int64_t offset = 0, lane_step = 0, vector_step = 0;
  const uint8_t* mask = nullptr;  // null: every lane takes part
};
bool resolve(Machine& m, const Access& x, int lanes, int width, Strided& out);

// --- tables of instruction functions (null: no such operation)
Fn unary_fn(Op op, Class c);
Fn binary_fn(Op op, Class c);                   // arithmetic and logic; dst, a, b
Fn shift_fn(Op op, Class c);                    // b holds int64; aux: bits
Fn compare_fn(Op op, Class c);                  // dst is int64
Fn string_compare_fn(Op op);                    // handles of strings; dst is int64
Fn text_fn(Op op);                              // dst, a, b: handles of strings and numbers (text.cc)
Fn test_fn(Op op, Class c);                     // IsNan, IsInf
Fn lane_reduce_fn(Op op, Class c);              // ReduceAdd ...; width: of the operand
Fn select_fn(int bytes);                        // dst = a (int64 condition) ? b : c
Fn move_fn(int bytes);                          // dst = a
Fn merge_fn(int bytes);                         // dst = a where the lane is active
Fn cast_fn(DType from, DType to);               // aux: saturate << 8 | to
Fn load_fn(DType t);                            // dst; aux: access
Fn store_fn(DType t);                           // a; aux: access
Fn reduce_store_fn(DType t, Op op);             // a; aux: access; null: cannot join with op
void set_constant(Machine& m, const Instr& i);  // dst = bits in a and b; aux: bytes
void bitcast_op(Machine& m, const Instr& i);    // b: from, c: to (DType)
void wrap_ints(Machine& m, const Instr& i);     // dst in place; aux: dtype
void index_op(Machine& m, const Instr& i);      // dst = Index(a, b)
void eval_line(Machine& m, const Instr& i);     // dst = line aux (uniform)
void line_lanes(Machine& m, const Instr& i);    // dst[lane] = line aux + lane * constant of line b
void spread(Machine& m, const Instr& i);        // dst[lane][v] = a[lane], any 4- or 8-byte class: aux bytes
void tile(Machine& m, const Instr& i);          // dst[lane][v] = a[v]; aux bytes
void ramp(Machine& m, const Instr& i);          // dst[lane][v] = a[lane] + v
void keep_first(Machine& m, const Instr& i);    // dst = v < b ? a : 0; aux bytes

// --- control
void jump(Machine& m, const Instr& i);          // to aux
void jump_if_zero(Machine& m, const Instr& i);  // a uniform int64; to aux
void jump_if_nonzero(Machine& m, const Instr& i);
void for_begin(Machine& m,
               const Instr& i);             // dst: variable (begin is there); a: extent -> end; b: end; to aux if empty
void for_next(Machine& m, const Instr& i);  // dst: variable; b: end; back to aux
void lanes_begin(Machine& m, const Instr& i);  // dst: base; b: end; a: per-lane values of the variable
void lanes_next(Machine& m, const Instr& i);   // dst: base; b: end; back to aux
void lanes_set(Machine& m, const Instr& i);    // aux: number of threads; 1 after the last
void thread_ids(Machine& m, const Instr& i);   // dst[lane] = lane / a % b
void mask_push(Machine& m, const Instr& i);    // a: condition; b: 1 to invert; to aux if no lane is left
void mask_pop(Machine& m, const Instr& i);
void alloc_local(Machine& m, const Instr& i);  // aux: buffer
void alias_op(Machine& m, const Instr& i);     // buffer aux = memory of buffer b from element a on
void barrier_op(Machine& m, const Instr& i);
void lane_exchange(Machine& m, const Instr& i);  // dst of lane l = a of lane l ^ b; aux: bytes of a number
void warp_shuffle(Machine& m, const Instr& i);   // dst of a lane = a of the lane that form b makes of c; aux: bytes
void next_block(Machine& m, const Instr& i);
void next_launch(Machine& m, const Instr& i);
void track(Machine& m, BufferSlot& s, int lane, int64_t address, bool write);
/// A view of shared memory begins: what was in its bytes is gone, and nobody may be at them.
void begin_shared_view(Machine& m, const Instr& i);  // buffer aux = memory of buffer b from byte a on

}  // namespace tc::interp
