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
          const Block block(*this);
          const Var v = make_var(bind(k.var->name), k.var->dtype);
          return loop(v, k.extent, stmt(renamed(k.body, k.var, v)), k.kind, k.begin);
        },
        [&](const While& k) {
          const Block block(*this);
          return while_loop(k.condition, stmt(k.body));
        },
        [&](const If& k) { return if_then(k.condition, in_block(k.then), in_block(k.otherwise)); },
        [&](const Let& k) {
          const Var v = make_var(bind(k.var->name), k.var->dtype);
          return let(v, k.value, stmt(renamed(k.body, k.var, v)));
        },
        [&](const Alloc& k) {
          const Buffer n = with_name(k.buffer, bind(k.buffer->name));
          return alloc(n, stmt(substitute_buffers(k.body, {{k.buffer.get(), n}})));
        },
        [&](const Alias& k) {
          const Buffer n = with_name(k.view, bind(k.view->name));
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
  std::string fresh(const std::string& hint) const {
    const std::string base = make_identifier(hint, 40);
    std::string n = base;
    for (int64_t k = 2; taken_.count(n) != 0 || is_function_name(n); k++) n = base + "_" + to_text(k);
    return n;
  }
  static Stmt renamed(const Stmt& body, const Var& from, const Var& to) { return substitute(body, {{from.get(), Expr(to)}}); }
  static Buffer with_name(const Buffer& b, const std::string& name) {
    auto d = std::make_shared<BufferDef>(*b);
    d->name = name;
    return d;
  }

  std::set<std::string> taken_;
  std::vector<std::string> bound_;
};

}  // namespace

bool is_function_name(const std::string& name) {
  for (int op = 0; op < kOpCount; op++)
    if (info(Op(op)).c_f32 == name || info(Op(op)).c_f64 == name) return true;
  return false;
}

Stmt assign_names(const Stmt& s, std::set<std::string> taken) { return Namer(std::move(taken)).stmt(s); }

}  // namespace tc
