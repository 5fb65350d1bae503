// What the model declares of a body's results: a result that is counted, and whose size the model states, is counted as
// many as that. The run checks it and else ends with NAME_E_RANGE.
//   y_out: f32[1] = y + x[i : i + 1]   ->   y_out = tc.exactly(y + (what Gather takes of x, counted by c), c): f32[1]
#include "ir/ops/op.h"
#include "passes/graph/bounded_sizes.h"

namespace tc {

void BoundedSizes::keep_declared(Graph& body, const std::vector<ValueType>& declared) {
  std::vector<Value*> results = body.outputs();
  for (size_t k = 0; k < results.size() && k < declared.size(); k++) {
    const std::vector<BoundedSize> all = sizes(results[k]);
    if (!declared[k].is_static_tensor() || declared[k].shape.size() != results[k]->type.shape.size()) continue;
    for (const BoundedSize& size : all) {
      Value* v = results[k];
      const int64_t wanted = declared[k].shape[size_t(size.axis)].value;
      // Where no element is wanted none is read, and nothing would be checked.
      if (wanted == 0 || wanted > size.capacity) continue;
      Node* kept = body.append("exactly", {v, size.count}, {derived(v->name, "_kept")},
                               {{"axis", int64_t(size.axis)}, {"size", wanted}}, "tc");
      infer_types(body, *kept);
      results[k] = kept->outputs[0];
      note_others(results[k], v, size.axis);
    }
  }
  body.set_outputs(std::move(results));
}

}  // namespace tc
