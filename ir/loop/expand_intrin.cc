#include "ir/loop/expand_intrin.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"

namespace tc {
namespace {

// Element `i` behind the beginning of an operand. Arrays of registers have one index less than axes.
Exprs element(const IntrinOperand& o, int64_t i) {
  Exprs index = o.index;
  if (index.size() < o.buffer->shape.size())
    index.push_back(Expr(i));
  else if (!index.empty())
    index.back() = index.back() + Expr(i);
  return index;
}

// The number at the end of a name such as load4; 0 if the name is another.
int64_t number_after(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return 0;
  int64_t n = 0;
  for (const char c : name.substr(prefix.size())) {
    if (c < '0' || c > '9') return 0;
    n = n * 10 + (c - '0');
  }
  return n;
}

}  // namespace

Stmt expand_intrin(const Intrin& k) {
  if (k.name == "cp_async_commit" || k.name == "cp_async_wait") return {};
  const IntrinCall call = parse(k);
  const int64_t bytes = number_after(k.name, "cp_async");
  const int64_t count = bytes > 0 ? bytes / info(k.buffers.at(0)->dtype).bytes
                                  : std::max(number_after(k.name, "load"), number_after(k.name, "store"));
  check(count > 0, "no assignments stand for instruction " + k.name);
  Stmts list;
  for (int64_t i = 0; i < count; i++) {
    const IntrinOperand &to = call.operands.at(0), &from = call.operands.at(1);
    Expr value = load(from.buffer, element(from, i));
    if (!call.scalars.empty()) value = select(call.scalars[0], value, zero(value->dtype));
    list.push_back(store(to.buffer, element(to, i), value));
  }
  return seq(std::move(list));
}

}  // namespace tc
