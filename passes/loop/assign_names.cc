// assign_names: hints become names. Loops beside each other may share a name, as a person would write them; a name that is
// visible already takes _2, _3. Runs last: passes may copy statements freely before it.
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
        s, [&](const Store&) { return s; },
        [&](const For& k) {
          const Bound<Var> b(*this, k.var->name);
          const Var v = make_var(b.name, k.var->dtype);
          return loop(v, k.extent, stmt(renamed(k.body, k.var, v)), k.kind, k.begin);
        },
        [&](const While& k) { return while_loop(k.condition, stmt(k.body)); },
        [&](const If& k) { return if_then(k.condition, stmt(k.then), stmt(k.otherwise)); },
        [&](const Let& k) {
          const Bound<Var> b(*this, k.var->name);
          const Var v = make_var(b.name, k.var->dtype);
          return let(v, k.value, stmt(renamed(k.body, k.var, v)));
        },
        [&](const Alloc& k) {
          const Bound<Buffer> b(*this, k.buffer->name);
          const Buffer n = with_name(k.buffer, b.name);
          return alloc(n, stmt(substitute_buffers(k.body, {{k.buffer.get(), n}})));
        },
        [&](const Alias& k) {
          const Bound<Buffer> b(*this, k.view->name);
          const Buffer n = with_name(k.view, b.name);
          return alias(n, k.base, k.offset, stmt(substitute_buffers(k.body, {{k.view.get(), n}})));
        },
        [&](const Seq& k) {
          Stmts list;
          for (const Stmt& x : k.list) list.push_back(stmt(x));
          return seq(std::move(list));
        },
        [&](const Barrier&) { return s; }, [&](const Prefetch&) { return s; }, [&](const Intrin&) { return s; },
        [&](const Launch&) { return s; }, [&](const Comment& k) { return comment(k.text, stmt(k.body)); });
  }

 private:
  // A name taken for as long as its scope is open.
  template <class T>
  struct Bound {
    Bound(Namer& n, const std::string& hint) : namer(n), name(n.fresh(hint)) { namer.taken_.insert(name); }
    ~Bound() { namer.taken_.erase(name); }
    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;
    Namer& namer;
    std::string name;
  };

  std::string fresh(const std::string& hint) const {
    const std::string base = make_identifier(hint, 40);
    std::string n = base;
    for (int64_t k = 2; taken_.count(n) != 0; k++) n = base + "_" + to_text(k);
    return n;
  }
  static Stmt renamed(const Stmt& body, const Var& from, const Var& to) { return substitute(body, {{from.get(), Expr(to)}}); }
  static Buffer with_name(const Buffer& b, const std::string& name) {
    auto d = std::make_shared<BufferDef>(*b);
    d->name = name;
    return d;
  }

  std::set<std::string> taken_;
};

}  // namespace

Stmt assign_names(const Stmt& s, std::set<std::string> taken) { return Namer(std::move(taken)).stmt(s); }

}  // namespace tc
