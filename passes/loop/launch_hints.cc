// launch_hints: what nvcc is told about a function of the device whose copies run ahead of its products (CUDA).
//
//   for step in 0 .. +9:              rolled: step         #pragma unroll 1
//     cp_async_wait(1)           ->   blocks_per_sm: 1     __launch_bounds__(256, 1)
//     ...
//
// Such a function lives on registers: nvcc would repeat the iterations of a short pipeline, and ptxas would spill to
// fit as many blocks on a multiprocessor as shared memory does. Loops around a pipeline count as pipelines. All others
// are left to nvcc. Needs: the body as it is printed. Changes no statement.
#include "passes/loop/launch_hints.h"

#include "ir/loop/instruction.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

bool waits_for_copies(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    const Intrin* k = as<Intrin>(x);
    found |= k && instruction(*k).async == AsyncCopy::Wait;
    return !found;
  });
  return found;
}

}  // namespace

void set_launch_hints(DeviceFunction& f) {
  f.blocks_per_sm = waits_for_copies(f.body) ? 1 : 0;
  f.rolled.clear();
  walk(f.body, [&](const Stmt& s) {
    const For* k = as<For>(s);
    if (k && k->kind == ForKind::Serial && waits_for_copies(k->body)) f.rolled.push_back(k->var);
    return true;
  });
}

}  // namespace tc
