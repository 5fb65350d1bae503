// lower_thread_allreduce: reductions over a block of threads become reductions over its warps (CUDA).
//
//   allreduce_add(sum, 256)       ->     allreduce_add(sum, 32)
//                                        if t % 32 == 0: sum_of_warp[t / 32] = sum
//                                        barrier
//                                        sum = sum_of_warp[t % 8]
//                                        allreduce_add(sum, 8)
//
// What is left are exchanges inside of a warp. The array is an Alloc of scope Shared around the loop of threads, one
// for each reduction, so that no thread can overtake another in one iteration; thread_sync sees to loops around. Needs:
// one loop of threads, a multiple of the group. Several groups in a block have their parts of the array.
#include "passes/loop/lower_thread_allreduce.h"

#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

// Those of the code of a block's threads.
class Lowering {
 public:
  explicit Lowering(const For& threads) : threads_(threads) {
    const auto n = as_const_int(threads.extent);
    check(n.has_value(), "a block has a constant number of threads");
    count_ = *n;
  }

  Stmt run() {
    const Stmt body = rewrite(threads_.body, {}, [&](const Stmt& s) -> Stmt {
      const Intrin* k = as<Intrin>(s);
      if (!k || !meaning_as<ThreadReduction>(*k)) return {};
      const IntrinCall call = parse(*k);
      const auto lanes = as_const_int(call.scalars.at(0));
      check(lanes && *lanes > 0 && (*lanes & (*lanes - 1)) == 0 && count_ % *lanes == 0,
            "a reduction is over a power of two of threads that divides the block");
      return *lanes > kWarp ? by_warps(*k, call.operands[0].buffer, *lanes) : Stmt();
    });
    Stmt s = body.same_as(threads_.body) ? Stmt() : loop(threads_.var, threads_.extent, body, threads_.kind);
    for (size_t i = arrays_.size(); s && i-- > 0;) s = alloc(arrays_[i], s);
    return s;
  }

 private:
  Stmt by_warps(const Intrin& k, const Buffer& value, int64_t lanes) {
    const Expr t = Expr(threads_.var);
    const int64_t warps = lanes / kWarp;
    const Buffer parts = make_buffer(value->name + "_of_warp", value->dtype, {Dim(count_ / kWarp)}, Scope::Shared);
    arrays_.push_back(parts);
    auto within = [&](int64_t n) { return intrin(k.name, {{value, {}}}, {Expr(n)}); };
    Expr mine = floor_mod(t, warps);
    if (lanes < count_) mine = floor_div(t, lanes) * Expr(warps) + mine;
    return seq({within(kWarp),
                if_then(eq(floor_mod(t, kWarp), 0), store(parts, {floor_div(t, kWarp)}, load(value, {}))),
                barrier(Scope::Shared), store(value, {}, load(parts, {mine})), within(warps)});
  }

  const For& threads_;
  int64_t count_ = 0;
  std::vector<Buffer> arrays_;
};

}  // namespace

Stmt lower_thread_allreduce(const Stmt& s) {
  return rewrite(s, {}, [](const Stmt& x) -> Stmt {
    const For* f = as<For>(x);
    return f && f->kind == ForKind::ThreadX ? Lowering(*f).run() : Stmt();
  });
}

}  // namespace tc
