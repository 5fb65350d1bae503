#include "passes/graph/branch_tables.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tc {
namespace {

/// Is operand `k` a table whose rows the node looks up by positions?
bool is_table(const Node& n, size_t k) {
  if (n.domain == "com.microsoft" && n.op == "GroupQueryAttention") return k == 7 || k == 8;
  if (n.domain == "com.microsoft" && (n.op == "RotaryEmbedding" || n.op == "MRotaryEmbedding")) return k == 2 || k == 3;
  if (n.is("RotaryEmbedding")) return (k == 1 || k == 2) && n.inputs.size() > 3 && n.inputs[3];
  return n.is("Gather") && k == 0 && n.attr_int("axis", 0) == 0;
}

bool only_looked_up(const Value& v) {
  return v.output_uses == 0 && std::all_of(v.users.begin(), v.users.end(), [&](const Node* u) {
           for (size_t k = 0; k < u->inputs.size(); k++)
             if (u->inputs[k] == &v && !is_table(*u, k)) return false;
           return true;
         });
}

Constant with_rows(const TensorData& c, int64_t rows) {
  Dims dims = c.dims;
  dims[0] = rows;
  MutableTensor m = new_tensor(c.dtype, dims);
  const Constant nan = scalar_constant(c.dtype, std::numeric_limits<double>::quiet_NaN());
  const auto size = size_t(info(c.dtype).bytes), given = size_t(c.size());
  std::memcpy(m.bytes, c.bytes.get(), given * size);
  for (size_t k = given; k < size_t(num_elements(dims)); k++) std::memcpy(m.bytes + k * size, nan->bytes.get(), size);
  return std::make_shared<const TensorData>(std::move(m.data));
}

}  // namespace

void align_tables(const Node& n) {
  if (n.regions.size() != 2) return;
  for (size_t k = 0; k < n.outputs.size(); k++) {
    if (!n.outputs[k] || !only_looked_up(*n.outputs[k])) continue;
    const Value* tables[] = {n.regions[0]->outputs().at(k), n.regions[1]->outputs().at(k)};
    const Constant &a = tables[0]->constant, &b = tables[1]->constant;
    if (!a || !b || a->dtype != b->dtype || !is_float(a->dtype) || a->dims.size() != b->dims.size() || a->dims.empty())
      continue;
    if (!std::equal(a->dims.begin() + 1, a->dims.end(), b->dims.begin() + 1) || a->dims[0] == b->dims[0]) continue;
    const int64_t rows = std::max(a->dims[0], b->dims[0]);
    const size_t shorter = a->dims[0] < rows ? 0 : 1;
    Graph& body = *n.regions[shorter];
    std::vector<Value*> outputs = body.outputs();
    outputs[k] = body.add_constant(outputs[k]->name, with_rows(*tables[shorter]->constant, rows));
    body.set_outputs(std::move(outputs));
  }
}

}  // namespace tc
