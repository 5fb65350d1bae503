// Which loop's iterations become the lanes of a batch. Lanes run statement by statement, so an iteration must not see
// what another one writes:
//   1. every access of a buffer that the body stores has, in one dimension, the same index c * v + (what the loop does
//      not change), c != 0: iterations own disjoint slices; or
//   2. the body stores each of its buffers once, outside of inner loops, and loads none of them: lanes store in order.
// Buffers allocated inside are one per lane.
#include <algorithm>
#include <set>

#include "ir/interpreter/compiler.h"
#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"

namespace tc::interp {
namespace {

constexpr int64_t kMaxLocalElements = 4096;  // of buffers that are one per lane

struct Stored {
  Buffer buffer;
  const Exprs* index;
  bool in_inner_loop, reduces;
};

// What the body of a loop does to memory.
struct Body {
  bool refused = false;
  std::vector<Stored> stores;
  std::vector<std::pair<Buffer, const Exprs*>> loads;
  std::set<const BufferDef*> local;
  std::set<const VarDef*> bound;
  int64_t local_elements = 0;
};

class Survey {
 public:
  explicit Survey(Body& b) : body_(b) {}

  void stmt(const Stmt& s) {
    if (!s) return;
    visit(
        s,
        [&](const Store& k) {
          exprs(k.index), expr(k.value);
          if (k.count) body_.refused = true;
          body_.stores.push_back({k.buffer, &k.index, loops_ > 0, k.reduce.has_value()});
        },
        [&](const For& k) {
          if (k.kind >= ForKind::BlockX) body_.refused = true;
          expr(k.begin), expr(k.extent);
          body_.bound.insert(k.var.get());
          ++loops_, stmt(k.body), --loops_;
        },
        [&](const While& k) { expr(k.condition), ++loops_, stmt(k.body), --loops_; },
        [&](const If& k) { expr(k.condition), stmt(k.then), stmt(k.otherwise); },
        [&](const Let& k) {
          expr(k.value);
          body_.bound.insert(k.var.get());
          stmt(k.body);
        },
        [&](const Alloc& k) {
          body_.local.insert(k.buffer.get());
          body_.refused |= !is_static(k.buffer->shape);
          if (!body_.refused) body_.local_elements += num_elements(static_dims(k.buffer->shape));
          stmt(k.body);
        },
        [&](const Alias&) { body_.refused = true; },
        [&](const Seq& k) {
          for (const Stmt& x : k.list) stmt(x);
        },
        [&](const Barrier&) { body_.refused = true; }, [&](const Prefetch&) {},
        [&](const Intrin&) { body_.refused = true; }, [&](const Launch&) { body_.refused = true; },
        [&](const Comment& k) { stmt(k.body); });
  }

 private:
  void exprs(const Exprs& l) {
    for (const Expr& e : l) expr(e);
  }
  void expr(const Expr& root) {
    walk(root, [&](const Expr& e) {
      if (!seen_.insert(e.get()).second) return false;
      body_.refused |= e->vector;
      if (auto* l = as<Load>(e)) body_.loads.push_back({l->buffer, &l->index});
      return true;
    });
  }

  Body& body_;
  int loops_ = 0;
  std::set<const ExprNode*> seen_;
};

// index = c * v + rest with c != 0 and nothing in rest that the body changes.
bool own_slice(const Expr& index, const Var& v, const Body& body, Linear& out) {
  if (index->dtype != DType::I64 || index->vector) return false;
  out = linear_form(index);
  bool uses = false;
  for (const auto& t : out.terms) {
    auto* r = as<VarRef>(t.atom);
    if (r && r->var == v) {
      uses = true;
      continue;
    }
    bool changes = false;
    walk(t.atom, [&](const Expr& e) {
      auto* inner = as<VarRef>(e);
      changes |= as<Load>(e) || (inner && (inner->var == v || body.bound.contains(inner->var.get())));
      return !changes;
    });
    if (changes) return false;
  }
  return uses;
}

bool same_line(const Linear& a, const Linear& b) {
  Linear d = a;
  d.add(b, -1);
  return d.terms.empty() && d.constant == 0;
}

// The dimension of rule 1, or -1.
int sliced_dimension(const Buffer& b, const Var& v, const Body& body) {
  std::vector<const Exprs*> all;
  for (const Stored& s : body.stores)
    if (s.buffer == b) all.push_back(s.index);
  for (const auto& [buffer, index] : body.loads)
    if (buffer == b) all.push_back(index);
  for (size_t d = b->shape.size(); d-- > 0;) {
    Linear first, other;
    bool ok = own_slice((*all[0])[d], v, body, first);
    for (size_t i = 1; ok && i < all.size(); ++i)
      ok = own_slice((*all[i])[d], v, body, other) && same_line(first, other);
    if (ok) return int(d);
  }
  return -1;
}

bool stores_in_order(const Body& body) {
  std::set<const BufferDef*> once;
  for (const Stored& s : body.stores) {
    if (body.local.contains(s.buffer.get())) continue;
    if (s.in_inner_loop || !once.insert(s.buffer.get()).second) return false;
  }
  return std::none_of(body.loads.begin(), body.loads.end(),
                      [&](const auto& l) { return once.contains(l.first.get()); });
}

// How much running f in lanes gains; 0: not possible.
double gain(const For& f) {
  if (f.kind >= ForKind::BlockX) return 0;
  Body body;
  Survey(body).stmt(f.body);
  if (body.refused || body.local_elements > kMaxLocalElements) return 0;
  double lanes = double(std::clamp<int64_t>(as_const_int(f.extent).value_or(64), 0, kBatch));
  bool slices = true, last = true;
  for (const Stored& s : body.stores) {
    if (body.local.contains(s.buffer.get())) continue;
    int d = sliced_dimension(s.buffer, f.var, body);
    slices &= d >= 0;
    last &= d + 1 == int(s.buffer->shape.size());
  }
  if (slices) return last ? lanes * 1.25 : lanes;
  if (!stores_in_order(body)) return 0;
  bool reduces = std::any_of(body.stores.begin(), body.stores.end(), [](const Stored& s) { return s.reduces; });
  return reduces ? lanes * 0.4 : lanes;
}

double best_gain(const Stmt& s) {
  double best = 0;
  walk(s, [&](const Stmt& x) {
    if (auto* f = as<For>(x)) best = std::max(best, gain(*f));
    return true;
  });
  return best;
}

}  // namespace

bool runs_in_lanes(const For& f) {
  double own = gain(f);
  return own > 1 && own >= best_gain(f.body);
}

Threads threads_of(const Stmt& s) {
  Threads t;
  walk(s, [&](const Stmt& x) {
    auto* f = as<For>(x);
    if (!f || f->kind < ForKind::ThreadX) return true;
    auto n = as_const_int(f->extent);
    check(n.has_value() && *n >= 0, "the extent of thread loop \"" + f->var->name + "\" is not constant");
    int64_t& size = f->kind == ForKind::ThreadX ? t.x : f->kind == ForKind::ThreadY ? t.y : t.z;
    size = std::max(size, *n);
    return true;
  });
  return t;
}

int lanes_needed(const Stmt& s) {
  int64_t threads = 1, iterations = 1;
  walk(s, [&](const Stmt& x) {
    auto* f = as<For>(x);
    if (!f) return true;
    iterations = std::max(iterations, as_const_int(f->extent).value_or(kBatch));
    if (f->kind < ForKind::ThreadX) return true;
    threads = std::max(threads, threads_of(x).total());
    return false;
  });
  check(threads <= 1 << 14, "too many threads in one block");
  return int(std::max<int64_t>(threads, std::min<int64_t>(iterations, kBatch)));
}

}  // namespace tc::interp
