#include "ir/ops/numeric.h"

#include "ir/loop/operand_mismatch.h"

namespace tc {

bool is_zero_constant(const OpBuilder& op, int i) {
  const Constant c = op.constant(i);
  if (!c) return false;
  for (size_t b = 0; b < c->num_bytes; b++)
    if (c->bytes.get()[b] != 0) return false;
  return true;
}

Expr only_element(const Tensor& t) {
  const int64_t n = num_elements(t.dims());
  if (n != 1) throw OperandMismatch("\"" + t.buffer()->name + "\" has " + to_text(n) + " elements, and one is needed");
  return t(Exprs(size_t(t.rank()), Expr(0)));
}

}  // namespace tc
