// plan_scratch: local memory of a kernel comes from the arena.
//
//   parallel h in 0 .. +14:  alloc t: f32[4096] workspace  ...
// becomes
//   parallel h in 0 .. +14:  alias t: f32 = &scratch[h * 16384]  ...
//
// The number of chunks is fixed when the text is emitted, so scratch is indexed by chunk and results do not depend on
// the number of threads. Buffers whose scopes do not overlap still get their own bytes: kernels have few of them.
// Needs: flattened buffers. Leaves: no Alloc but Register and small Stack ones.
#include "passes/loop/plan_scratch.h"

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

constexpr int64_t kStackLimit = 4096;

class ScratchPlanner {
 public:
  explicit ScratchPlanner(int64_t align) : align_(align) {}
  Buffer scratch = make_buffer("scratch", DType::U8, {0});  // until its size is known
  int64_t total = 0;

  Stmt stmt(const Stmt& s) {
    if (!s) return s;
    return visit(
        s, [&](const Store&) { return s; },
        [&](const For& k) {
          if (k.kind != ForKind::Parallel) return loop(k.var, k.extent, stmt(k.body), k.kind, k.begin);
          return chunked(k);
        },
        [&](const While& k) { return while_loop(k.condition, stmt(k.body)); },
        [&](const If& k) { return if_then(k.condition, stmt(k.then), stmt(k.otherwise)); },
        [&](const Let& k) { return let(k.var, k.value, stmt(k.body)); }, [&](const Alloc& k) { return assign(s, k); },
        [&](const Alias& k) { return alias(k.view, k.base, k.offset, stmt(k.body)); },
        [&](const Seq& k) {
          Stmts list;
          for (const Stmt& x : k.list) list.push_back(stmt(x));
          return seq(std::move(list));
        },
        [&](const Barrier&) { return s; }, [&](const Prefetch&) { return s; }, [&](const Intrin&) { return s; },
        [&](const Launch&) { return s; }, [&](const Comment& k) { return comment(k.text, stmt(k.body)); });
  }

 private:
  // Chunk c of a parallel loop uses bytes [base + c * size, base + (c + 1) * size).
  Stmt chunked(const For& k) {
    const int64_t outer_total = total;
    total = 0;
    pending_.push_back({});
    const Stmt body = stmt(k.body);
    const int64_t per_chunk = total;
    Stmt planned = body;
    for (const auto& [buffer, at] : pending_.back()) {
      const Expr offset = Expr(outer_total + at) + (Expr(k.var) - k.begin) * Expr(per_chunk);
      planned = rewrite(planned, {}, [&](const Stmt& x) -> Stmt {
        const Alloc* a = as<Alloc>(x);
        return a && a->buffer == buffer ? alias(buffer, scratch, offset, a->body) : Stmt();
      });
    }
    pending_.pop_back();
    const auto chunks = as_const_int(k.extent);
    check(chunks.has_value(), "the number of chunks is fixed");
    total = checked_add(outer_total, checked_mul(per_chunk, *chunks));
    return loop(k.var, k.extent, planned, k.kind, k.begin);
  }

  Stmt assign(const Stmt& s, const Alloc& k) {
    const Buffer& b = k.buffer;
    const int64_t bytes = checked_mul(num_elements(static_dims(b->shape)), info(b->dtype).bytes);
    const bool local = b->scope == Scope::Register || b->scope == Scope::Shared || b->scope == Scope::Warp ||
                       (b->scope == Scope::Stack && bytes <= kStackLimit);
    if (local) {
      const Stmt body = stmt(k.body);
      return body.same_as(k.body) ? s : alloc(b, body);
    }
    const int64_t at = total;
    // One without elements has an offset, too, for what it is an alias of.
    total = checked_add(total, (std::max<int64_t>(bytes, 1) + align_ - 1) / align_ * align_);
    const Stmt body = stmt(k.body);
    if (pending_.empty()) return alias(b, scratch, at, body);
    pending_.back().push_back({b, at});
    return alloc(b, body);
  }

  int64_t align_;
  std::vector<std::vector<std::pair<Buffer, int64_t>>> pending_;
};

}  // namespace

PlannedScratch plan_scratch(const Stmt& s, int64_t align) {
  ScratchPlanner p(align);
  PlannedScratch r;
  r.body = p.stmt(s);
  r.bytes = p.total;
  if (p.total == 0) return r;
  r.scratch = make_buffer("scratch", DType::U8, {Dim(p.total)});
  r.body = substitute_buffers(r.body, {{p.scratch.get(), r.scratch}});
  return r;
}

}  // namespace tc
