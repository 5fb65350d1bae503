// assign_names: hints become names. Loops beside each other may share a name, as a person would write them; a name that
// is visible already takes _2, _3. Runs last: passes may copy statements freely before it.
#include "passes/loop/assign_names.h"

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

class Namer {
 public:
  explicit Namer(std::set<std::string> taken) : taken_(std::move(taken)) {}

  Stmt stmt(const Stmt& s) {
    if (!s) return s;
    return visit(
        s, [&](const Store&) { return leaf(s); },
        [&](const For& k) {
          const Block block(*this);
          const Expr begin = expr(k.begin), extent = expr(k.extent);
          const Var v = bind(k.var, false);
          return loop(v, extent, stmt(k.body), k.kind, begin);
        },
        [&](const While& k) {
          const Block block(*this);
          const Expr c = expr(k.condition);
          return while_loop(c, stmt(k.body));
        },
        [&](const If& k) {
          const Expr c = expr(k.condition);
          const Stmt yes = in_block(k.then);
          return if_then(c, yes, in_block(k.otherwise));
        },
        [&](const Let& k) {
          const Expr value = expr(k.value);
          const Var v = bind(k.var, value->vector);
          return let(v, value, stmt(k.body));
        },
        [&](const Alloc& k) {
          const Buffer b = bind(k.buffer);
          return alloc(b, stmt(k.body));
        },
        [&](const Alias& k) {
          const Expr offset = expr(k.offset);
          const Buffer base = buffer(k.base), view = bind(k.view);
          return alias(view, base, offset, stmt(k.body));
        },
        [&](const Seq& k) {
          Stmts list;
          for (const Stmt& x : k.list) list.push_back(stmt(x));
          return seq(std::move(list));
        },
        [&](const Barrier&) { return s; }, [&](const Prefetch&) { return leaf(s); },
        [&](const Intrin&) { return leaf(s); }, [&](const Launch&) { return leaf(s); },
        [&](const Comment& k) { return comment(k.text, stmt(k.body)); });
  }

 private:
  // Declarations stay visible to the end of the C block that holds them.
  struct Block {
    explicit Block(Namer& n) : namer(n), mark(n.bound_.size()) {}
    ~Block() {
      for (; namer.bound_.size() > mark; namer.bound_.pop_back()) namer.taken_.erase(namer.bound_.back());
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    Namer& namer;
    size_t mark;
  };

  Stmt in_block(const Stmt& s) {
    const Block block(*this);
    return stmt(s);
  }
  std::string bind(const std::string& hint) {
    bound_.push_back(fresh(hint));
    taken_.insert(bound_.back());
    return bound_.back();
  }
  // A variable bound to a vector is a vector.
  Var bind(const Var& v, bool vector) {
    const Var n = make_var(bind(v->name), v->dtype);
    vars_[v.get()] = Expr(std::make_shared<const ExprNode>(ExprNode{v->dtype, vector, VarRef{n}}));
    return n;
  }
  Buffer bind(const Buffer& b) {
    auto d = std::make_shared<BufferDef>(*b);
    d->name = bind(b->name);
    return buffers_[b.get()] = d;
  }

  // What is read or written is renamed by what is bound around it; one walk over each statement.
  Expr expr(const Expr& e) const { return substitute_buffers(substitute(e, vars_), buffers_); }
  Stmt leaf(const Stmt& s) const { return substitute_buffers(substitute(s, vars_), buffers_); }
  Buffer buffer(const Buffer& b) const {
    const auto it = buffers_.find(b.get());
    return it == buffers_.end() ? b : it->second;
  }

  std::string fresh(const std::string& hint) const {
    const std::string base = value_name(hint);
    std::string n = base;
    for (int64_t k = 2; taken_.count(n) != 0; k++) n = base + "_" + to_text(k);
    return n;
  }
  VarMap vars_;
  BufferMap buffers_;
  std::set<std::string> taken_;
  std::vector<std::string> bound_;
};

}  // namespace

bool is_function_name(const std::string& name) {
  for (int op = 0; op < kOpCount; op++) {
    const OpInfo& row = info(Op(op));
    if (name == row.c_f32 || name == row.c_f64) return true;
  }
  for (const std::string_view f : {"memcpy", "malloc", "free", "y0", "y1", "j0", "j1", "gamma"})
    if (name == f) return true;
  return false;
}

std::string value_name(const std::string& hint) {
  const std::string name = make_identifier(hint, 40);
  return is_function_name(name) ? name + "_v" : name;
}

Stmt assign_names(const Stmt& s, std::set<std::string> taken) { return Namer(std::move(taken)).stmt(s); }

}  // namespace tc
