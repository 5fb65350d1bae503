// own_outputs: operators that happen to do nothing (Clip without bounds, Dropout) have a definition whose output is its
// input. Where such a value must exist on its own, the kernel is a copy:
//   in x, out x      ->      in x, copy[i, j] = x[i, j], out copy
#include "passes/program/own_outputs.h"

#include <algorithm>
#include <set>

#include "ir/loop/build.h"

namespace tc {

TensorFn own_outputs(TensorFn fn) {
  std::set<const BufferDef*> taken;
  for (const Buffer& b : fn.inputs) taken.insert(b.get());
  for (Buffer& out : fn.outputs) {
    if (taken.insert(out.get()).second) continue;
    Stage copy;
    copy.name = "copy";
    Exprs index;
    for (size_t d = 0; d < out->shape.size(); ++d) {
      copy.axes.push_back({make_var(std::string(1, "ijklmn"[d % 6])), out->shape[d]});
      index.push_back(copy.axes.back().var);
    }
    copy.values = {load(out, index)};
    copy.outputs = {make_buffer("copy", out->dtype, out->shape)};
    out = copy.outputs[0];
    fn.stages.push_back(std::move(copy));
  }
  return fn;
}

}  // namespace tc
