// merge_shared_memory: Shared buffers of a launch whose lives do not overlap get the same bytes (CUDA).
//
//   alloc tile: f32[2,16,132] shared             alloc shared: u8[16896] shared
//   alloc sums: f32[32,64] shared                alias tile: f32 = &shared[0]
//   thread.x t in 0 .. +64:                      thread.x t in 0 .. +64:
//     for step in 0 .. +9: ... tile ...    ->      for step in 0 .. +9: ... tile ...
//     sums[..] = acc[..]                           barrier shared
//     barrier shared                               alias sums: f32 = &shared[0]
//     y[..] = sums[..]                             sums[..] = acc[..]
//                                                  barrier shared
//                                                  y[..] = sums[..]
//
// The code of a thread is a line of statements that all threads go through; a loop or a condition is one of them as a
// whole, so that what an iteration leaves for the next stays alive. A buffer lives from the first statement of the line
// that touches it to the last. Where one begins on the bytes of another, a barrier comes first if none lies between,
// and what copies to the other are on their way have arrived. The view of a buffer is an Alias where its life begins:
// what it holds there is undefined, and the interpreter and CUDA on the CPU see to it.
//
// A launch changes only where this is worth the barrier and the plainer text of arrays: where it saves kWorthwhile
// bytes, or where there is more than kStaticSharedBytes, which only dynamic shared memory can have. Needs: barriers are
// inserted. Leaves: either the arrays, or one Shared buffer of bytes and views of it, each on kAlign bytes.
#include "passes/loop/merge_shared_memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "support/error.h"

namespace tc {
namespace {

constexpr int64_t kAlign = 16;         // bytes: what copies and ldmatrix need
constexpr int64_t kWorthwhile = 4096;  // bytes

int64_t aligned(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

// A statement of the line, or one that only surrounds a part of it. Its positions are begin .. end - 1.
struct Node {
  Stmt s;
  int begin = 0, end = 0;
  std::vector<Node> children;
};

struct Life {
  Buffer buffer;
  int64_t bytes = 0, offset = -1;
  int first = -1, last = -1;   // positions
  bool copied = false;         // by cp_async
  bool late = false;           // its bytes were another's
  const Node* home = nullptr;  // where its view begins: before child `at` of a list, else around the statement
  size_t at = 0;
};

/// The body of a statement that only surrounds a part of the line; null for one of the line.
Stmt body_of(const Stmt& s) {
  if (const For* k = as<For>(s); k && is_gpu(k->kind)) return k->body;
  if (const Comment* k = as<Comment>(s)) return k->body;
  if (const Alloc* k = as<Alloc>(s)) return k->body;
  if (const Let* k = as<Let>(s)) return k->body;
  if (const Alias* k = as<Alias>(s)) return k->body;
  return {};
}

/// Such a statement around another body.
Stmt with_body(const Stmt& s, const Stmt& body) {
  if (const For* k = as<For>(s)) return loop(k->var, k->extent, body, k->kind, k->begin);
  if (const Comment* k = as<Comment>(s)) return comment(k->text, body);
  if (const Alloc* k = as<Alloc>(s)) return alloc(k->buffer, body);
  if (const Let* k = as<Let>(s)) return let(k->var, k->value, body);
  const Alias* k = as<Alias>(s);
  return alias(k->view, k->base, k->offset, body);
}

/// Moves the arrays that statements of the line allocate in front of it: a loop of threads of one iteration, in which they stood, is
/// gone. `arrays`: those of `s`, which stand in front of the line of a block.
Stmt without_inner_arrays(const Stmt& s, std::vector<Buffer>& arrays) {
  if (const Seq* k = as<Seq>(s))
    return rewrite_each(*k, s, [&](const Stmt& x) { return without_inner_arrays(x, arrays); });
  if (const Stmt body = body_of(s)) {
    const For* blocks = as<For>(s);
    std::vector<Buffer> own;
    Stmt left = without_inner_arrays(body, blocks && is_block(blocks->kind) ? own : arrays);
    for (size_t k = own.size(); k-- > 0;) left = alloc(own[k], left);
    return left.same_as(body) ? s : with_body(s, left);
  }
  return rewrite(s, {}, [&](const Stmt& x) -> Stmt {
    const Alloc* k = as<Alloc>(x);
    if (!k || k->buffer->scope != Scope::Shared) return {};
    arrays.push_back(k->buffer);
    return k->body;
  });
}

class Merger {
 public:
  explicit Merger(const Stmt& nest) { root_ = number(nest); }

  MergedShared run() {
    for (Life& l : lives_) l.bytes = aligned(num_elements(static_dims(l.buffer->shape)) * info(l.buffer->dtype).bytes);
    int64_t separate = 0;
    for (Life& l : lives_) {
      separate += l.bytes;
      find_home(l, root_);
    }
    const int64_t merged = assign_offsets();
    if (merged > separate - kWorthwhile && separate <= kStaticSharedBytes) return {root_.s, 0};
    whole_ = make_buffer("shared", DType::U8, {Dim(merged)}, Scope::Shared);
    return {rebuild(root_), merged > kStaticSharedBytes ? merged : 0};
  }

 private:
  // --- the line

  Node number(const Stmt& s) {
    Node n{s, next_, next_, {}};
    if (const Seq* k = as<Seq>(s)) {
      for (const Stmt& x : k->list) n.children.push_back(number(x));
    } else if (const Stmt body = around(s)) {
      n.children.push_back(number(body));
    } else {
      if (as<Barrier>(s)) barriers_.push_back(next_);
      touch(s);
      next_++;
    }
    n.end = next_;
    return n;
  }

  // The body of a statement that only surrounds, which is looked at on the way.
  Stmt around(const Stmt& s) {
    const Alloc* array = as<Alloc>(s);
    if (array && array->buffer->scope == Scope::Shared) {
      root_of_[array->buffer.get()] = lives_.size();
      lives_.push_back({.buffer = array->buffer});
    }
    if (const Let* k = as<Let>(s)) {
      touch(k->value);
      next_++;
    }
    if (const Alias* k = as<Alias>(s)) view(*k);
    return body_of(s);
  }

  void view(const Alias& a) {
    if (const auto l = root_of_.find(a.base.get()); l != root_of_.end()) root_of_[a.view.get()] = size_t(l->second);
  }

  void touch(const Buffer& b, bool copied = false) {
    const auto it = root_of_.find(b.get());
    if (it == root_of_.end()) return;
    Life& l = lives_[it->second];
    if (l.first < 0) l.first = next_;
    l.last = next_;
    l.copied |= copied;
  }
  void touch(const Expr& e) {
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x)) touch(l->buffer);
      return true;
    });
  }
  void touch(const Stmt& s) {
    walk(
        s,
        [&](const Stmt& x) {
          if (const Alloc* k = as<Alloc>(x))
            check(k->buffer->scope != Scope::Shared, "shared memory is allocated around the loops of threads");
          if (const Alias* k = as<Alias>(x)) view(*k);
          if (const Store* k = as<Store>(x)) touch(k->buffer);
          if (const Intrin* k = as<Intrin>(x))
            for (size_t i = 0; i < k->buffers.size(); i++)
              touch(k->buffers[i], writes_operand(*k, i) && instruction(*k).async == AsyncCopy::Copy);
          return true;
        },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) touch(l->buffer);
          return true;
        });
  }

  // The innermost part of the line with all that touches the buffer. Its life begins where that part does.
  static void find_home(Life& l, const Node& n) {
    for (size_t k = 0; k < n.children.size(); k++) {
      const Node& c = n.children[k];
      if (l.first < c.begin || l.first >= c.end) continue;
      if (l.last < c.end) return find_home(l, c);
      l.home = &n;
      l.at = k;
      l.first = c.begin;
      return;
    }
    l.home = &n;
    l.first = l.first < 0 ? l.first : n.begin;
  }

  // --- bytes

  static bool together(const Life& a, const Life& b) {
    return a.first >= 0 && b.first >= 0 && a.first <= b.last && b.first <= a.last;
  }
  static bool same_bytes(const Life& a, const Life& b) {
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  }

  // The largest first, each as low as those let it that live with it. Returns the bytes of all.
  int64_t assign_offsets() {
    std::vector<Life*> order;
    for (Life& l : lives_) order.push_back(&l);
    std::stable_sort(order.begin(), order.end(), [](const Life* a, const Life* b) { return a->bytes > b->bytes; });
    int64_t all = 0;
    for (size_t i = 0; i < order.size(); i++) {
      Life& l = *order[i];
      l.offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < i; k++) {
          if (!together(l, *order[k]) || !same_bytes(l, *order[k])) continue;
          l.offset = order[k]->offset + order[k]->bytes;
          moved = true;
        }
      }
      all = std::max(all, l.offset + l.bytes);
    }
    for (Life& l : lives_)
      for (const Life& before : lives_) l.late = l.late || is_before(before, l);
    return all;
  }
  static bool is_before(const Life& a, const Life& b) { return a.first >= 0 && a.first < b.first && same_bytes(a, b); }

  // --- the new text

  // What has to happen before the life of `l` begins on bytes of others.
  Stmts handover(const Life& l) const {
    bool wait = false, copied = false;
    for (const Life& before : lives_) {
      if (!is_before(before, l)) continue;
      copied |= before.copied;
      wait |= std::none_of(barriers_.begin(), barriers_.end(), [&](int b) { return before.last < b && b < l.first; });
    }
    Stmts list;
    if (copied) list.push_back(intrin("cp_async_wait", {}, {Expr(0)}));
    if (copied || wait) list.push_back(barrier(Scope::Shared));
    return list;
  }

  Stmt viewed(const Life& l, const Stmt& s) const { return alias(l.buffer, whole_, l.offset, s); }

  // The buffers whose lives begin here, in front of `list`.
  void begin_lives(const Node& n, size_t at, Stmts& list) const {
    for (size_t i = lives_.size(); i-- > 0;) {
      const Life& l = lives_[i];
      if (!l.late || l.home != &n || l.at != at) continue;
      Stmts from = handover(l);
      from.push_back(viewed(l, seq(std::move(list))));
      list = std::move(from);
    }
  }

  Stmt rebuild(const Node& n) {
    Stmts list;
    if (as<Seq>(n.s)) {
      for (size_t k = n.children.size(); k-- > 0;) {
        list.insert(list.begin(), rebuild(n.children[k]));
        begin_lives(n, k, list);
      }
      return seq(std::move(list));
    }
    list.push_back(same_around(n));
    begin_lives(n, 0, list);
    return seq(std::move(list));
  }

  Stmt same_around(const Node& n) {
    if (n.children.empty()) return n.s;
    const Node& c = n.children[0];
    const Alloc* k = as<Alloc>(n.s);
    if (!k || k->buffer->scope != Scope::Shared) return with_body(n.s, rebuild(c));
    if (k->buffer != lives_[0].buffer) return rebuild(c);  // the outermost holds all of it
    Stmt s = rebuild(c);
    for (size_t i = lives_.size(); i-- > 0;)
      if (!lives_[i].late && lives_[i].first >= 0) s = viewed(lives_[i], s);
    return alloc(whole_, s);
  }

  std::vector<Life> lives_;                     // in order of their Allocs
  std::map<const BufferDef*, size_t> root_of_;  // buffers and views of them; looked up only
  std::vector<int> barriers_;                   // positions
  int next_ = 0;
  Node root_;
  Buffer whole_;
};

}  // namespace

MergedShared merge_shared_memory(const Stmt& nest) {
  if (!nest) return {};
  std::vector<Buffer> inside;
  Stmt s = without_inner_arrays(nest, inside);
  for (size_t k = inside.size(); k-- > 0;) s = alloc(inside[k], s);
  return Merger(s).run();
}

}  // namespace tc
