// Loops, masks, local buffers and barriers of the machine, and its race checker.
#include <cstring>

#include "ir/interpreter/machine.h"
#include "support/text.h"

namespace tc::interp {

Machine::Machine(Program& p, const RunOptions& o) : program(p), options(o) {
  const size_t bytes = size_t(std::max<int64_t>(p.arena_bytes, kConstantBytes));
  arena = std::make_unique_for_overwrite<uint64_t[]>((bytes + 7) / 8);
  regs = reinterpret_cast<uint8_t*>(arena.get());
  if (!p.image.empty()) std::memcpy(regs, p.image.data(), p.image.size());
  std::memset(regs + kConstantBytes, 0, bytes - kConstantBytes);
}

void Machine::run() {
  const std::vector<Instr>& code = program.code;
  while (pc < code.size()) {
    const Instr& i = code[pc++];
    i.fn(*this, i);
  }
}

void Machine::out_of_steps() const {
  throw Error("TC0502", ExitCode::Limit, "evaluation takes more than " + to_text(options.max_steps) + " operations");
}

void jump(Machine& m, const Instr& i) {
  m.check_steps();
  m.pc = size_t(i.aux);
}

void jump_if_zero(Machine& m, const Instr& i) {
  ++m.steps;
  if (*m.reg<int64_t>(i.a) == 0) m.pc = size_t(i.aux);
}

void jump_if_nonzero(Machine& m, const Instr& i) {
  ++m.steps;
  if (*m.reg<int64_t>(i.a) != 0) m.pc = size_t(i.aux);
}

void for_begin(Machine& m, const Instr& i) {
  int64_t begin = *m.reg<int64_t>(i.dst), extent = *m.reg<int64_t>(i.a);
  *m.reg<int64_t>(i.b) = begin + extent;
  ++m.steps;
  if (extent <= 0) m.pc = size_t(i.aux);
}

void for_next(Machine& m, const Instr& i) {
  ++m.steps;
  m.check_steps();
  if (++*m.reg<int64_t>(i.dst) < *m.reg<int64_t>(i.b)) m.pc = size_t(i.aux);
}

void lanes_begin(Machine& m, const Instr& i) {
  int64_t base = *m.reg<int64_t>(i.dst), end = *m.reg<int64_t>(i.b);
  m.lanes = int(std::min<int64_t>(m.program.batch, end - base));
  m.in_batch = true;
  int64_t* v = m.reg<int64_t>(i.a);
  for (int k = 0; k < m.lanes; ++k) v[k] = base + k;
}

void lanes_next(Machine& m, const Instr& i) {
  m.check_steps();
  int64_t& base = *m.reg<int64_t>(i.dst);
  base += m.lanes;
  m.lanes = 1;
  m.in_batch = false;
  if (base < *m.reg<int64_t>(i.b)) m.pc = size_t(i.aux);
}

void lanes_set(Machine& m, const Instr& i) { m.lanes = i.aux; }

void thread_ids(Machine& m, const Instr& i) {
  int64_t* d = m.reg<int64_t>(i.dst);
  for (int k = 0; k < m.lanes; ++k) d[k] = k / i.a % i.b;
}

void mask_push(Machine& m, const Instr& i) {
  const int64_t* c = m.reg<int64_t>(i.a);
  m.steps += m.lanes;
  if (m.depth == m.masks.size()) m.masks.emplace_back();
  Machine::SavedMask& entry = m.masks[m.depth];
  entry.own.resize(size_t(m.lanes));
  uint8_t* own = entry.own.data();
  uint8_t invert = i.b ? 1 : 0;
  if (!i.a_step)
    std::memset(own, (c[0] != 0) ^ invert, entry.own.size());
  else
    for (int l = 0; l < m.lanes; ++l) own[l] = uint8_t(c[l] != 0) ^ invert;
  int left = 0;
  if (m.mask)
    for (int l = 0; l < m.lanes; ++l) own[l] &= m.mask[l];
  for (int l = 0; l < m.lanes; ++l) left += own[l];
  if (left == 0) {
    m.pc = size_t(i.aux);
    return;
  }
  entry.mask = m.mask;
  if (left < m.lanes) m.mask = entry.own.data();
  ++m.depth;
}

void mask_pop(Machine& m, const Instr&) { m.mask = m.masks[--m.depth].mask; }

void alloc_local(Machine& m, const Instr& i) {
  constexpr int64_t kLimit = int64_t(1) << 34;
  BufferSlot& s = m.program.buffers[size_t(i.aux)];
  int64_t copies = s.sharing == Sharing::Lane   ? m.program.batch
                   : s.sharing == Sharing::Warp ? (m.program.batch + 31) / 32
                                                : 1;
  int64_t bytes = checked_mul(checked_mul(s.elements, copies), info(s.buffer->dtype).bytes);
  if (bytes > kLimit)
    throw Error("TC0502", ExitCode::Limit, "evaluation needs a temporary of " + to_text(bytes) + " bytes");
  s.local.resize(size_t(bytes) + 8);
  s.bytes = s.local.data();
  // Not a number, or a number that stands out: who reads it before writing it is wrong.
  std::memset(s.bytes, is_float(s.buffer->dtype) ? 0xff : 0xa5, size_t(bytes));
  m.steps += bytes / 64;
  m.check_steps();
  if (s.tracked) s.shadows.assign(size_t(s.elements), {});
  if (s.sharing == Sharing::Warp) s.stored.assign(size_t(s.elements * copies), 0);
}

void alias_op(Machine& m, const Instr& i) {
  BufferSlot &view = m.program.buffers[size_t(i.aux)], &base = m.program.buffers[size_t(i.b)];
  int64_t unit = info(base.buffer->dtype).bytes, start = *m.reg<int64_t>(i.a) * unit;
  int64_t end = start + view.elements * info(view.buffer->dtype).bytes;
  check(start >= 0 && end <= base.elements * unit, "a view reaches out of its buffer");
  view.bytes = base.bytes + start;
}

void barrier_op(Machine& m, const Instr&) {
  check(m.mask == nullptr, "a barrier is not reached by every thread of its block");
  ++m.epoch;
}

void lane_exchange(Machine& m, const Instr& i) {
  for (int l = 0; l < m.lanes; ++l) {
    const int other = l ^ i.b;
    check(other < m.lanes && m.active(l) == m.active(other), "threads that exchange values are not all there");
    std::memcpy(m.regs + i.dst + l * i.aux, m.regs + i.a + other * i.aux, size_t(i.aux));
  }
}

void warp_shuffle(Machine& m, const Instr& i) {
  const int64_t* by = m.reg<int64_t>(i.c);
  for (int l = 0; l < m.lanes; ++l) {
    const int lane = l % 32, first = l - lane;
    check(first + 32 <= m.lanes, "values are exchanged by whole warps");
    if (lane == 0)
      for (int k = 0; k < 32; ++k)
        check(m.active(l + k) == m.active(l), "lanes of a warp that exchange values are not all there");
    int64_t from = lane;
    if (ShuffleForm(i.b) == ShuffleForm::Xor) from = lane ^ by[l];
    if (ShuffleForm(i.b) == ShuffleForm::Up) from = lane - by[l];
    if (ShuffleForm(i.b) == ShuffleForm::Down) from = lane + by[l];
    if (ShuffleForm(i.b) == ShuffleForm::Index) from = by[l] & 31;
    if (from < 0 || from >= 32) from = lane;
    std::memcpy(m.regs + i.dst + l * i.aux, m.regs + i.a + (first + from) * i.aux, size_t(i.aux));
  }
}

void next_block(Machine& m, const Instr&) {
  ++m.block;
  ++m.epoch;
}

void next_launch(Machine& m, const Instr&) {
  ++m.launch;
  m.block = 0;
}

namespace {

constexpr int64_t kBlockThreads = int64_t(1) << 20;  // numbers of threads are unique over all blocks of a launch

// Nothing orders the blocks of one launch; barriers order the threads of a block.
bool races(const Machine& m, int64_t thread, int64_t other, int64_t epoch) {
  return other >= 0 && other != thread && (epoch == m.epoch || other / kBlockThreads != m.block);
}

void track_element(Machine& m, BufferSlot::Shadow& shadow, int64_t thread, bool write, const BufferSlot& s,
                   int64_t address) {
  bool race = races(m, thread, shadow.writer, shadow.write_epoch);
  if (write)
    race |= races(m, thread, shadow.reader, shadow.read_epoch) || (shadow.many_readers && shadow.read_epoch == m.epoch);
  if (race) {
    throw InternalError("race on cell " + to_text(address) + " of buffer \"" + printable(s.buffer->name) +
                        "\": thread " + to_text(thread % kBlockThreads) + " and another of loop " +
                        m.program.thread_loop + " meet without a barrier");
  }
  if (write) {
    shadow.writer = thread;
    shadow.write_epoch = m.epoch;
  } else {
    shadow.many_readers =
        shadow.read_epoch == m.epoch && (shadow.many_readers || (shadow.reader >= 0 && shadow.reader != thread));
    shadow.reader = thread;
    shadow.read_epoch = m.epoch;
  }
}

}  // namespace

void track(Machine& m, BufferSlot& s, int lane, int64_t address, bool write) {
  const int64_t thread = m.block * kBlockThreads + lane;
  if (s.base >= 0) {
    const int64_t unit = info(s.buffer->dtype).bytes;
    std::vector<BufferSlot::Shadow>& shadows = m.program.buffers[size_t(s.base)].shadows;
    for (int64_t b = 0; b < unit; ++b)
      track_element(m, shadows[size_t(s.start + address * unit + b)], thread, write, s, address);
    return;
  }
  if (s.launch != m.launch) {
    s.shadows.assign(size_t(std::max<int64_t>(s.elements, address + 1)), {});
    s.launch = m.launch;
  }
  if (size_t(address) >= s.shadows.size()) s.shadows.resize(size_t(address) + 1);
  track_element(m, s.shadows[size_t(address)], thread, write, s, address);
}

void begin_shared_view(Machine& m, const Instr& i) {
  alias_op(m, i);
  BufferSlot &view = m.program.buffers[size_t(i.aux)], &base = m.program.buffers[size_t(i.b)];
  check(m.mask == nullptr, "a view of shared memory is not reached by every thread of its block");
  const int64_t bytes = view.elements * info(view.buffer->dtype).bytes;
  std::memset(view.bytes, is_float(view.buffer->dtype) ? 0xff : 0xa5, size_t(bytes));
  if (!view.tracked) return;
  view.base = i.b;
  view.start = *m.reg<int64_t>(i.a);
  for (int64_t b = view.start; b < view.start + bytes; ++b) {
    BufferSlot::Shadow& shadow = base.shadows[size_t(b)];
    if (races(m, -1, shadow.writer, shadow.write_epoch) || races(m, -1, shadow.reader, shadow.read_epoch))
      throw InternalError("race: buffer \"" + printable(view.buffer->name) +
                          "\" begins on bytes that another buffer has used since the last barrier of loop " +
                          m.program.thread_loop);
    shadow = {};
  }
}

}  // namespace tc::interp
