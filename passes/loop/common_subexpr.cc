// common_subexpr: within the statements of one block (stores, instructions and lets; loops inside are blocks of their own)
//   y[i] = x[i] * sigmoid(x[i])        becomes   let x_v = x[i]
//                                                y[i] = x_v * sigmoid(x_v)
// Loads count as equal while no store to their buffer lies between them. An expression that only untaken sides of
// selects hold is bound only if it cannot fault. Affine index arithmetic is left to the
// compiler, but for sums that are compared. Names are hints:
// assign_names makes them unique.
#include "passes/loop/common_subexpr.h"

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/loop/expr_numbers.h"

namespace tc {
namespace {

// One block, flattened: lets are items whose scope is the rest of the list.
struct Item {
  Stmt s;                   // null for a let
  Var var;                  // of a let
  std::vector<Expr> roots;  // expressions of a store or a let, in order of evaluation
  std::vector<int> numbers;
};

void flatten(const Stmt& s, std::vector<Item>& items) {
  if (!s) return;
  if (auto* q = as<Seq>(s)) {
    for (size_t i = 0; i < q->list.size(); ++i) {
      // What follows a let in a list is outside of its scope: only a let at the end may be flattened.
      if (as<Let>(q->list[i]) && i + 1 < q->list.size())
        items.push_back({q->list[i], nullptr, {}, {}});
      else
        flatten(q->list[i], items);
    }
  } else if (auto* l = as<Let>(s)) {
    items.push_back({Stmt(), l->var, {l->value}, {}});
    flatten(l->body, items);
  } else if (auto* k = as<Store>(s)) {
    Item item{s, nullptr, k->index, {}};
    item.roots.push_back(k->value);
    if (k->count) item.roots.push_back(k->count);
    items.push_back(std::move(item));
  } else if (auto* k = as<Intrin>(s)) {
    items.push_back({s, nullptr, k->args, {}});
  } else {
    items.push_back({s, nullptr, {}, {}});
  }
}

Stmt inside(const Stmt& s, bool views);

class Block {
 public:
  Block(std::vector<Item> items, bool views) : items_(std::move(items)), numbers_(views), views_(views) {}

  Stmt run() {
    number_all();
    count_uses();
    std::vector<Stmts> scopes(1);  // statements so far; one level per let around the rest
    std::vector<std::pair<Var, Expr>> lets;
    auto bind = [&](const Var& v, const Expr& value) {
      lets.push_back({v, value});
      scopes.emplace_back();
    };
    for (const Item& item : items_) {
      if (item.var) {
        int n = item.numbers[0];
        Expr value = as<VarRef>(bound_[n]) ? bound_[n] : combined(n, bind);
        bind(item.var, value);
        if (!as<VarRef>(bound_[n])) bound_[n] = reference(item.var, value);
        continue;
      }
      Exprs roots;
      for (int n : item.numbers) roots.push_back(rebuilt(n, bind));
      if (auto* k = as<Store>(item.s)) {
        scopes.back().push_back(store_with(item.s, *k, item, roots));
      } else if (auto* k = as<Intrin>(item.s)) {
        scopes.back().push_back(intrin_with(item.s, *k, roots));
      } else {
        scopes.back().push_back(inside(item.s, views_));
      }
    }
    Stmt body = seq(std::move(scopes.back()));
    for (size_t i = lets.size(); i-- > 0;) {
      scopes[i].push_back(let(lets[i].first, lets[i].second, body));
      body = seq(std::move(scopes[i]));
    }
    return body;
  }

  bool changes() {
    number_all();
    count_uses();
    for (int n = 0; n < numbers_.size(); ++n)
      if (wants_binding(n)) return true;
    return false;
  }

 private:
  void number_all() {
    if (numbered_) return;
    numbered_ = true;
    for (Item& item : items_) {
      for (const Expr& e : item.roots) item.numbers.push_back(numbers_.number(e));
      if (item.s) numbers_.stored_in(item.s);
    }
  }

  // Uses of a number: edges of the graph of distinct expressions. Reached without a lazy edge: evaluated for sure.
  void count_uses() {
    uses_.assign(size_t(numbers_.size()), 0);
    certain_.assign(size_t(numbers_.size()), false);
    tested_.assign(size_t(numbers_.size()), false);
    std::vector<bool> seen(uses_.size(), false);
    for (const Item& item : items_)
      for (int n : item.numbers) {
        ++uses_[size_t(n)];
        certain_[size_t(n)] = true;
        mark(n, seen);
      }
    // Children have smaller numbers than their parents.
    for (int n = numbers_.size(); n-- > 0;) {
      const auto& node = numbers_.node(n);
      mark_tested(node);
      for (size_t c = 0; c < node.children.size(); ++c)
        if (certain_[size_t(n)] && !node.lazy[c]) certain_[size_t(node.children[c])] = true;
    }
  }

  void mark(int root, std::vector<bool>& seen) {
    std::vector<int> work = {root};
    while (!work.empty()) {
      int n = work.back();
      work.pop_back();
      if (seen[size_t(n)]) continue;
      seen[size_t(n)] = true;
      for (int c : numbers_.node(n).children) {
        ++uses_[size_t(c)];
        work.push_back(c);
      }
    }
  }

  bool wants_binding(int n) const {
    const auto& node = numbers_.node(n);
    bool worth = is_worth_binding(node.e) || tested_[size_t(n)];
    return uses_[size_t(n)] > 1 && worth && (certain_[size_t(n)] || !node.may_fault);
  }

  // Sums that are compared: what a test asks about reads better with a name.
  void mark_tested(const ExprNumbers::Node& node) {
    auto* a = as<Apply>(node.e);
    if (!a || !info(a->op).compares || node.children.size() != 2) return;
    for (int c : node.children) {
      const Expr& e = numbers_.node(c).e;
      auto* sum = as<Apply>(e);
      tested_[size_t(c)] =
          tested_[size_t(c)] || (sum && e->dtype == DType::I64 && (sum->op == Op::Add || sum->op == Op::Sub));
    }
  }

  // The expression over what is bound; binds what is used again, operands first.
  template <class Bind>
  Expr rebuilt(int n, Bind& bind) {
    if (auto it = bound_.find(n); it != bound_.end() && it->second.get()) return it->second;
    Expr e = combined(n, bind);
    if (wants_binding(n)) {
      Var v = make_var(binding_name(numbers_.node(n).e), e->dtype);
      bind(v, e);
      e = reference(v, e);
    }
    return bound_[n] = e;
  }

  // The same without a name for the whole.
  template <class Bind>
  Expr combined(int n, Bind& bind) {
    const auto& node = numbers_.node(n);
    Exprs operands;
    for (size_t c = 0; c < node.children.size(); ++c) {
      // A partial vector needs to see its load.
      bool kept = as<Partial>(node.e) && c == 0 && as<Load>(numbers_.node(node.children[0]).e);
      operands.push_back(kept ? partial_load(node.children[0], bind) : rebuilt(node.children[c], bind));
    }
    return with_operands(node.e, operands);
  }

  template <class Bind>
  Expr partial_load(int n, Bind& bind) {
    Exprs index;
    for (int c : numbers_.node(n).children) index.push_back(rebuilt(c, bind));
    return with_operands(numbers_.node(n).e, index);
  }

  Stmt store_with(const Stmt& s, const Store& k, const Item& item, const Exprs& roots) {
    bool same = true;
    for (size_t i = 0; i < roots.size(); ++i) same &= roots[i].same_as(item.roots[i]);
    if (same) return s;
    Exprs index(roots.begin(), roots.begin() + int64_t(k.index.size()));
    return store(k.buffer, std::move(index), roots[k.index.size()], k.reduce, k.count ? roots.back() : Expr());
  }

  static Stmt intrin_with(const Stmt& s, const Intrin& k, const Exprs& roots) {
    bool same = true;
    for (size_t i = 0; i < roots.size(); ++i) same &= roots[i].same_as(k.args[i]);
    return same ? s : Stmt(std::make_shared<const StmtNode>(StmtNode{Intrin{k.name, roots, k.buffers}}));
  }

  std::vector<Item> items_;
  ExprNumbers numbers_;
  std::vector<int> uses_;
  std::vector<bool> certain_, tested_;
  std::map<int, Expr> bound_;
  bool views_, numbered_ = false;
};

Stmt block(const Stmt& s, bool views) {
  if (!s) return s;
  std::vector<Item> items;
  flatten(s, items);
  Block b(items, views);
  if (b.changes()) return b.run();
  // Nothing to bind here: keep the nodes, look inside.
  if (auto* q = as<Seq>(s))
    return rewrite_each(*q, s, [&](const Stmt& x) {
      return as<Let>(x) || as<Store>(x) || as<Intrin>(x) ? block(x, views) : inside(x, views);
    });
  if (auto* l = as<Let>(s)) {
    Stmt body = block(l->body, views);
    return body.same_as(l->body) ? s : let(l->var, l->value, body);
  }
  return as<Store>(s) || as<Intrin>(s) ? s : inside(s, views);
}

// Statements that hold blocks.
Stmt inside(const Stmt& s, bool views) {
  auto same = [&](const auto&) { return s; };
  return visit(
      s, [&](const Store& k) { return same(k); },
      [&](const For& k) {
        Stmt body = block(k.body, views);
        return body.same_as(k.body) ? s : loop(k.var, k.extent, body, k.kind, k.begin);
      },
      [&](const While& k) {
        Stmt body = block(k.body, views);
        return body.same_as(k.body) ? s : while_loop(k.condition, body);
      },
      [&](const If& k) {
        Stmt then = block(k.then, views), otherwise = block(k.otherwise, views);
        return then.same_as(k.then) && otherwise.same_as(k.otherwise) ? s : if_then(k.condition, then, otherwise);
      },
      [&](const Let&) { return block(s, views); },
      [&](const Alloc& k) {
        Stmt body = block(k.body, views);
        return body.same_as(k.body) ? s : alloc(k.buffer, body);
      },
      [&](const Alias& k) {
        Stmt body = block(k.body, views);
        return body.same_as(k.body) ? s : alias(k.view, k.base, k.offset, body);
      },
      [&](const Seq&) { return block(s, views); }, [&](const Barrier& k) { return same(k); },
      [&](const Prefetch& k) { return same(k); }, [&](const Intrin& k) { return same(k); },
      [&](const Launch& k) { return same(k); },
      [&](const Comment& k) {
        Stmt body = block(k.body, views);
        return body.same_as(k.body) ? s : comment(k.text, body);
      });
}

}  // namespace

Stmt common_subexpr(const Stmt& s) { return block(s, has_views(s)); }

}  // namespace tc
