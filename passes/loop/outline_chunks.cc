// outline_chunks: the chunks of a parallel loop become a function of their own; what does it need of the statements around
// the loop, and what is left for the kernel's own function (C)?
//
//   alias rows = x + 64:
//     alias first = x:
//       let n = m + 1:
//         y[0] = first[0]
//         parallel i in 0 .. +4:          ->     parts: i needs rows, n
//           y[i] = rows[i * n]                   part_views: rows, part_names: n, m, which nobody else uses
//
// The numbers of loops around it are told to the function.
//
// Needs: the body as it is printed. Changes no statement.
#include "passes/loop/outline_chunks.h"

#include <functional>
#include <set>

#include "ir/loop/named_buffers.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

// The names and buffers that occur.
struct Uses {
  std::set<const BufferDef*> buffers;  // looked up only
  std::set<const VarDef*> vars;

  void add(const Expr& e) {
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x)) buffers.insert(l->buffer.get());
      if (const VarRef* v = as<VarRef>(x)) vars.insert(v->var.get());
      return true;
    });
  }
  void add(const Stmt& s) {
    add(s, [](const Stmt&) { return true; });
  }
  // `enter`: false for statements of which nothing is added.
  void add(const Stmt& s, const std::function<bool(const Stmt&)>& enter) {
    walk(
        s,
        [&](const Stmt& x) {
          if (!enter(x)) return false;
          for (const Buffer& b : named_buffers(x)) buffers.insert(b.get());
          return true;
        },
        [&](const Expr& e) {
          add(e);
          return false;
        });
  }
};

class Outliner {
 public:
  explicit Outliner(Kernel& k) : k_(k) {}

  void stmt(const Stmt& s) {
    if (const Let* k = as<Let>(s)) {
      inside(s, k->body);
      if (of_parts_.contains(s.get()) && beside_parts(k->body).vars.count(k->var.get()) == 0) {
        k_.part_names.push_back(k->var);
        only_parts_.insert(s.get());
      }
    }
    if (const Alias* k = as<Alias>(s)) {
      inside(s, k->body);
      if (beside_parts(k->body).buffers.count(k->view.get()) == 0) {
        k_.part_views.push_back(k->view);
        only_parts_.insert(s.get());
      }
    }
    if (const Alloc* k = as<Alloc>(s)) stmt(k->body);
    if (const Comment* k = as<Comment>(s)) stmt(k->body);
    if (const Seq* k = as<Seq>(s))
      for (const Stmt& x : k->list) stmt(x);
    const For* f = as<For>(s);
    if (f && f->kind == ForKind::Parallel) {
      k_.parts.push_back(needed(*f));
      for (const Stmt& x : k_.parts.back().around) of_parts_.insert(x.get());
    } else if (f) {
      inside(s, f->body);
    }
  }

 private:
  void inside(const Stmt& s, const Stmt& body) {
    around_.push_back(s);
    stmt(body);
    around_.pop_back();
  }

  // What the kernel's own function uses: of a parallel loop how many chunks it has.
  Uses beside_parts(const Stmt& s) const {
    Uses used;
    std::function<bool(const Stmt&)> enter = [&](const Stmt& x) {
      const For* f = as<For>(x);
      if (f && f->kind == ForKind::Parallel) {
        used.add(f->begin);
        used.add(f->extent);
        return false;
      }
      if (!only_parts_.contains(x.get())) return true;
      if (const Let* l = as<Let>(x)) used.add(l->body, enter);
      if (const Alias* a = as<Alias>(x)) used.add(a->body, enter);
      return false;
    };
    used.add(s, enter);
    return used;
  }

  // What is needed may need others in its turn.
  ParallelPart needed(const For& chunks) const {
    Uses used;
    used.add(chunks.body);
    used.add(chunks.begin);
    ParallelPart part{chunks.var, {}, {}};
    for (size_t n = around_.size(); n-- > 0;) {
      if (const For* f = as<For>(around_[n])) {
        if (used.vars.count(f->var.get()) != 0) part.counters.insert(part.counters.begin(), f->var);
        continue;
      }
      const Alias* a = as<Alias>(around_[n]);
      const Let* l = as<Let>(around_[n]);
      if (a ? used.buffers.count(a->view.get()) == 0 : used.vars.count(l->var.get()) == 0) continue;
      if (a) used.buffers.insert(a->base.get());
      used.add(a ? a->offset : l->value);
      part.around.insert(part.around.begin(), around_[n]);
    }
    return part;
  }

  Kernel& k_;
  std::vector<Stmt> around_;          // Let and Alias statements and loops, outermost first
  std::set<const void*> of_parts_;    // those that parts need; looked up only
  std::set<const void*> only_parts_;  // Let and Alias statements that nobody else needs; looked up only
};

}  // namespace

void outline_chunks(Kernel& k) {
  k.parts.clear();
  k.part_views.clear();
  k.part_names.clear();
  if (k.device.empty() && k.body) Outliner(k).stmt(k.body);
}

}  // namespace tc
