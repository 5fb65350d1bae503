// What a node means and which types it gives: both from the define() of its operator's row.
#include "ir/ops/op.h"

#include <algorithm>
#include <stdexcept>

#include "ir/graph/origin.h"
#include "ir/loop/operand_mismatch.h"
#include "ir/ops/regions.h"
#include "ir/verify_accesses.h"

namespace tc {
namespace {

[[noreturn]] void refuse(const Node& n, const std::string& why) {
  throw Error(problem_of(n, "TC0300", ExitCode::Unsupported, why));
}

/// The word at position i of "x w b"; the last one, numbered, for the operands of a variadic operator after it.
std::string operand_name(std::string_view names, size_t i, size_t count) {
  if (names.empty()) {
    if (count == 1) return "x";
    return count == 2 ? (i == 0 ? "a" : "b") : "x" + to_text(int64_t(i));
  }
  size_t begin = 0, word = 0;
  for (; word < i; word++) {
    const size_t space = names.find(' ', begin);
    if (space == std::string_view::npos) return std::string(names.substr(begin)) + to_text(int64_t(i));
    begin = space + 1;
  }
  const size_t end = names.find(' ', begin);
  return std::string(names.substr(begin, end == std::string_view::npos ? end : end - begin));
}

/// A buffer per operand; null where absent or where no buffer can hold it (sequences, complex numbers, unknown sizes).
std::vector<Buffer> operand_buffers(const Node& n, const OpRow& row) {
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < n.inputs.size(); i++) {
    const Value* v = n.inputs[i];
    const bool fits = v && v->type.is_static_tensor() && info(v->type.dtype).bytes > 0 && !is_complex(v->type.dtype);
    buffers.push_back(fits ? make_buffer(operand_name(row.operands, i, n.inputs.size()), v->type.dtype, v->type.shape)
                           : nullptr);
  }
  return buffers;
}

}  // namespace

const OpRow* row_of(const Node& n) { return n.row ? n.row.get() : find_op(n.domain, n.op); }

bool has_trait(const Node& n, OpTrait t) {
  const OpRow* row = row_of(n);
  return row && std::find(row->traits.begin(), row->traits.end(), t) != row->traits.end();
}

const TensorFn& tensor_fn(Node& n) {
  if (n.fn) return *n.fn;
  const OpRow* row = row_of(n);
  if (!row) refuse(n, "this operator is not supported");
  if (!row->define) refuse(n, "this operator has no meaning as one function of tensors");
  OpBuilder b(n, operand_buffers(n, *row));
  try {
    row->define(b);
  } catch (const OperandMismatch& e) {
    b.reject("the operator does not take these operands together (" + std::string(e.what()) + ")");
  } catch (const std::out_of_range&) {  // rows ask for elements and axes by at()
    b.reject("an operand has fewer elements or axes than the operator reads");
  }
  n.fn = std::make_shared<const TensorFn>(b.take());
  try {
    verify_accesses(lower_naive(*n.fn));
  } catch (const InternalError& e) {  // rows trust sizes that no shape rule has compared
    n.fn.reset();
    b.reject("an operand has fewer elements than the operator reads (" + std::string(e.what()) + ")");
  }
  return *n.fn;
}

std::vector<int> fn_operands(Node& n) {
  const TensorFn& fn = tensor_fn(n);
  if (!fn.operands.empty()) return fn.operands;
  std::vector<int> all(fn.inputs.size());
  for (size_t i = 0; i < all.size(); i++) all[i] = int(i);
  return all;
}

void infer_types(Graph& g, Node& n) {
  if (!n.regions.empty()) {
    infer_region_types(g, n);
    return;
  }
  const TensorFn& fn = tensor_fn(n);
  size_t k = 0;
  for (Value* v : n.outputs) {
    if (!v) continue;
    check(k < fn.outputs.size(), "a function with fewer outputs than its node");
    const BufferDef& b = *fn.outputs[k++];
    g.set_type(v, ValueType::tensor(b.dtype, b.shape));
  }
}

}  // namespace tc
