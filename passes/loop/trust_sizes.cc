// trust_sizes: what NAME_run has checked is not asked again.
//
//   let n = max(min(count[0], 64), 0)        ->   let n = count[0]
//   for i in 0 .. +max(min(count[0], 64), 1)      for i in 0 .. +max(n, 1)
//
// Formulas hold sizes within their bounds, so that every pass knows how long loops are and how many bits products have. NAME_run refuses
// sizes beyond these bounds before any kernel runs, and a reader of the kernel would ask what the limits are for. They stay where numbers
// are data: what a kernel before has counted, or what lies in the memory of a device. Loops of the host keep theirs, which limit grids.
// Runs behind index_width and in front of outline_chunks. Two names for the same size become one.
#include "passes/loop/trust_sizes.h"

#include <map>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

class Truster {
 public:
  explicit Truster(const Kernel& k) {
    for (const CheckedSize& z : k.checked_sizes) ranges_[z.buffer.get()] = {z.least, z.most};
    for (const Param& p : k.params)
      if (p.by_value) numbers_.insert(p.buffer.get());
  }

  Stmt stmt(const Stmt& s) {
    return rewrite(s, [&](const Expr& e) { return without_bound(e); });
  }

  // Names of sizes, outermost first: a later one of the same size goes.
  Stmt named_once(const Stmt& s) {
    return rewrite(s, {}, [&](const Stmt& x) -> Stmt {
      const Let* k = as<Let>(x);
      const BufferDef* size = k ? size_of(k->value) : nullptr;
      if (!size) return {};
      if (numbers_.contains(size)) return substitute(k->body, {{k->var.get(), k->value}});
      return let(k->var, k->value, without_names(k->body, size, k->var));
    });
  }

 private:
  // The parameter that `e` reads, if it is a checked size.
  const BufferDef* size_of(const Expr& e) const {
    const Load* l = as<Load>(e);
    return l && ranges_.contains(l->buffer.get()) ? l->buffer.get() : nullptr;
  }

  Expr without_bound(const Expr& e) const {
    const Apply* a = as<Apply>(e);
    if (!a || (a->op != Op::Min && a->op != Op::Max) || e->vector) return {};
    const BufferDef* size = size_of(a->args[0]);
    const auto bound = as_const_int(a->args[1]);
    if (!size || !bound) return {};
    const Range& r = ranges_.at(size);
    return (a->op == Op::Min ? r.max <= *bound : r.min >= *bound) ? a->args[0] : Expr();
  }

  // `s` with `name` for the size, however it is called there.
  Stmt without_names(const Stmt& s, const BufferDef* size, const Var& name) const {
    return rewrite(
        s, [&](const Expr& e) { return size_of(e) == size ? Expr(name) : Expr(); },
        [&](const Stmt& x) -> Stmt {
          const Let* k = as<Let>(x);
          const VarRef* v = k ? as<VarRef>(k->value) : nullptr;
          return v && v->var == name ? substitute(k->body, {{k->var.get(), Expr(name)}}) : Stmt();
        });
  }

  std::map<const BufferDef*, Range> ranges_;  // looked up only
  std::set<const BufferDef*> numbers_;        // parameters that are numbers, not memory
};

}  // namespace

Stmt trust_sizes(const Stmt& s, const Kernel& k) {
  Truster t(k);
  return t.named_once(t.stmt(s));
}

}  // namespace tc
