#include "ir/loop/equal.h"

#include "ir/loop/visit.h"

namespace tc {
namespace {

class Comparer {
 public:
  bool stmt(const Stmt& a, const Stmt& b) {
    if (!a || !b) return !a && !b;
    if (a->kind.index() != b->kind.index()) return false;
    if (const Seq* p = as<Seq>(a), *q = as<Seq>(b); p) {
      if (p->list.size() != q->list.size()) return false;
      for (size_t i = 0; i < p->list.size(); i++)
        if (!stmt(p->list[i], q->list[i])) return false;
      return true;
    }
    if (const For* p = as<For>(a), *q = as<For>(b); p) {
      if (p->kind != q->kind || !expr(p->begin, q->begin) || !expr(p->extent, q->extent)) return false;
      vars_[p->var.get()] = Expr(q->var);
      return stmt(p->body, q->body);
    }
    if (const While* p = as<While>(a), *q = as<While>(b); p)
      return expr(p->condition, q->condition) && stmt(p->body, q->body);
    if (const If* p = as<If>(a), *q = as<If>(b); p)
      return expr(p->condition, q->condition) && stmt(p->then, q->then) && stmt(p->otherwise, q->otherwise);
    if (const Let* p = as<Let>(a), *q = as<Let>(b); p) {
      if (!expr(p->value, q->value)) return false;
      vars_[p->var.get()] = Expr(q->var);
      return stmt(p->body, q->body);
    }
    if (const Alloc* p = as<Alloc>(a), *q = as<Alloc>(b); p) {
      if (p->buffer->dtype != q->buffer->dtype || p->buffer->shape != q->buffer->shape) return false;
      buffers_[p->buffer.get()] = q->buffer;
      return stmt(p->body, q->body);
    }
    if (const Store* p = as<Store>(a), *q = as<Store>(b); p) return stored(*p, *q);
    return false;
  }

 private:
  bool stored(const Store& a, const Store& b) {
    const auto it = buffers_.find(a.buffer.get());
    if ((it == buffers_.end() ? a.buffer : it->second) != b.buffer || a.reduce != b.reduce) return false;
    if (a.index.size() != b.index.size() || bool(a.count) != bool(b.count)) return false;
    for (size_t i = 0; i < a.index.size(); i++)
      if (!expr(a.index[i], b.index[i])) return false;
    return expr(a.value, b.value) && (!a.count || expr(a.count, b.count));
  }
  bool expr(const Expr& a, const Expr& b) const {
    return structurally_equal(substitute_buffers(substitute(a, vars_), buffers_), b);
  }

  VarMap vars_;
  BufferMap buffers_;
};

}  // namespace

bool same_loops(const Stmt& a, const Stmt& b) { return Comparer().stmt(a, b); }

}  // namespace tc
