#include "ir/loop/intrin.h"

#include "ir/loop/instruction.h"
#include "ir/loop/op.h"
#include "support/error.h"

namespace tc {
namespace {

size_t index_count(const BufferDef& b) {
  if (b.scope == Scope::Fragment) return b.shape.size() - 2;
  const bool array = b.scope == Scope::Register || b.scope == Scope::Stack;
  return b.shape.size() - (array && !b.shape.empty() ? 1 : 0);
}

}  // namespace

IntrinCall parse(const Intrin& k) {
  IntrinCall c;
  size_t at = 0;
  for (const Buffer& b : k.buffers) {
    const size_t n = index_count(*b);
    check(at + n <= k.args.size(), "an index for every operand of an instruction");
    c.operands.push_back({b, Exprs(k.args.begin() + std::ptrdiff_t(at), k.args.begin() + std::ptrdiff_t(at + n))});
    at += n;
  }
  c.scalars.assign(k.args.begin() + std::ptrdiff_t(at), k.args.end());
  return c;
}

Stmt intrin(std::string name, const std::vector<IntrinOperand>& operands, const Exprs& scalars) {
  instruction(name);  // there is one
  Intrin k{std::move(name), {}, {}};
  for (const IntrinOperand& o : operands) {
    check(o.index.size() == index_count(*o.buffer), "the index of an operand");
    k.buffers.push_back(o.buffer);
    k.args.insert(k.args.end(), o.index.begin(), o.index.end());
  }
  k.args.insert(k.args.end(), scalars.begin(), scalars.end());
  return Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(k)}));
}

Stmt allreduce(const Buffer& value, Op op, int64_t n) {
  check(value->scope == Scope::Register && value->shape.empty(), "threads reduce a scalar of their own");
  check(op == Op::Add || op == Op::Mul || op == Op::Max || op == Op::Min, "threads add, multiply or compare");
  if (n == 1) return {};
  return intrin("allreduce_" + std::string(info(op).name), {{value, {}}}, {Expr(n)});
}

}  // namespace tc
