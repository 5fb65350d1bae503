#include "passes/analysis/nest.h"

#include <algorithm>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/simplifier.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

class Finder {
 public:
  Finder(const Var& v, LoopSite& site) : v_(v), site_(site) {}

  bool stmt(const Stmt& s) {
    if (!s) return false;
    if (const For* f = as<For>(s); f && f->var == v_) {
      site_.stmt = s, site_.loop = f;
      return true;
    }
    site_.path.push_back(s);
    if (children(s)) return true;
    site_.path.pop_back();
    return false;
  }

 private:
  bool children(const Stmt& s) {
    if (const For* f = as<For>(s)) {
      const Ranges before = site_.ranges;
      site_.ranges[f->var.get()] = loop_range(*f, before);
      site_.outer.push_back(f);
      if (stmt(f->body)) return true;
      site_.outer.pop_back();
      site_.ranges = before;
      return false;
    }
    if (const If* k = as<If>(s)) return under(k->condition, true, k->then) || under(k->condition, false, k->otherwise);
    if (const Let* k = as<Let>(s)) {
      const Ranges before = site_.ranges;
      assume_name(site_.ranges, *k);
      if (stmt(k->body)) return true;
      site_.ranges = before;
      return false;
    }
    if (const Seq* k = as<Seq>(s)) {
      for (const Stmt& x : k->list)
        if (stmt(x)) return true;
      return false;
    }
    if (const While* k = as<While>(s)) return stmt(k->body);
    if (const Alloc* k = as<Alloc>(s)) return stmt(k->body);
    if (const Alias* k = as<Alias>(s)) return stmt(k->body);
    if (const Comment* k = as<Comment>(s)) return stmt(k->body);
    return false;
  }

  bool under(const Expr& condition, bool holds, const Stmt& s) {
    const Ranges before = site_.ranges;
    assume(site_.ranges, condition, holds);
    if (stmt(s)) return true;
    site_.ranges = before;
    return false;
  }

  const Var& v_;
  LoopSite& site_;
};

// Renames bindings; `all` or only those that were met before.
class Renamer {
 public:
  explicit Renamer(bool all) : all_(all) {}

  Stmt stmt(const Stmt& s) {
    if (!s) return s;
    if (const For* f = as<For>(s)) {
      const Var v = var(f->var);
      const Stmt body = v == f->var ? f->body : substitute(f->body, {{f->var.get(), Expr(v)}});
      return loop(v, f->extent, stmt(body), f->kind, f->begin);
    }
    if (const Let* k = as<Let>(s)) {
      const Var v = var(k->var);
      const Stmt body = v == k->var ? k->body : substitute(k->body, {{k->var.get(), Expr(v)}});
      return let(v, k->value, stmt(body));
    }
    if (const Alloc* k = as<Alloc>(s)) {
      const Buffer b = buffer(k->buffer);
      return alloc(b, stmt(b == k->buffer ? k->body : substitute_buffers(k->body, {{k->buffer.get(), b}})));
    }
    if (const Alias* k = as<Alias>(s)) {
      const Buffer b = buffer(k->view);
      const Stmt body = b == k->view ? k->body : substitute_buffers(k->body, {{k->view.get(), b}});
      return alias(b, k->base, k->offset, stmt(body));
    }
    if (const Seq* k = as<Seq>(s)) {
      Stmts list;
      for (const Stmt& x : k->list) list.push_back(stmt(x));
      return seq(std::move(list));
    }
    if (const If* k = as<If>(s)) return if_then(k->condition, stmt(k->then), stmt(k->otherwise));
    if (const While* k = as<While>(s)) return while_loop(k->condition, stmt(k->body));
    if (const Comment* k = as<Comment>(s)) return comment(k->text, stmt(k->body));
    return s;
  }

 private:
  Var var(const Var& v) {
    if (seen_.insert(v.get()).second && !all_) return v;
    return std::make_shared<const VarDef>(*v);
  }
  Buffer buffer(const Buffer& b) {
    if (seen_.insert(b.get()).second && !all_) return b;
    return std::make_shared<const BufferDef>(*b);
  }
  bool all_;
  std::set<const void*> seen_;  // looked up only
};

}  // namespace

std::optional<LoopSite> find_loop(const Stmt& body, const Var& v) {
  LoopSite site;
  if (!Finder(v, site).stmt(body)) return {};
  return site;
}

Stmt replace_stmt(const Stmt& s, const StmtNode* what, const Stmt& by) {
  if (!s || s.get() == what) return s ? by : s;
  auto inner = [&](const Stmt& x) { return replace_stmt(x, what, by); };
  if (const Seq* k = as<Seq>(s)) {
    Stmts list;
    bool same = true;
    for (const Stmt& x : k->list) {
      list.push_back(inner(x));
      same = same && list.back().same_as(x);
    }
    return same ? s : seq(std::move(list));
  }
  auto rebuilt = [&](const Stmt& old, const std::function<Stmt(const Stmt&)>& make) {
    const Stmt body = inner(old);
    return body.same_as(old) ? s : body ? make(body) : Stmt();
  };
  if (const For* k = as<For>(s)) return rebuilt(k->body, [&](const Stmt& b) { return with_body(*k, b); });
  if (const While* k = as<While>(s))
    return rebuilt(k->body, [&](const Stmt& b) { return while_loop(k->condition, b); });
  if (const Let* k = as<Let>(s)) return rebuilt(k->body, [&](const Stmt& b) { return let(k->var, k->value, b); });
  if (const Alloc* k = as<Alloc>(s)) return rebuilt(k->body, [&](const Stmt& b) { return alloc(k->buffer, b); });
  if (const Alias* k = as<Alias>(s))
    return rebuilt(k->body, [&](const Stmt& b) { return alias(k->view, k->base, k->offset, b); });
  if (const Comment* k = as<Comment>(s)) return rebuilt(k->body, [&](const Stmt& b) { return comment(k->text, b); });
  if (const If* k = as<If>(s)) {
    const Stmt then = inner(k->then), otherwise = inner(k->otherwise);
    if (then.same_as(k->then) && otherwise.same_as(k->otherwise)) return s;
    if (!then && !otherwise) return {};
    return then ? if_then(k->condition, then, otherwise) : if_then(logical_not(k->condition), otherwise);
  }
  return s;
}

Stmt with_body(const For& f, Stmt body) {
  if (!body) return {};
  return loop(f.var, f.extent, std::move(body), f.kind, f.begin);
}

Stmt fresh_copy(const Stmt& s) { return Renamer(true).stmt(s); }
Stmt bind_once(const Stmt& s) { return Renamer(false).stmt(s); }

std::optional<Chain> chain_of(const Stmt& s, const Var& last) {
  Chain c;
  Stmt at = s;
  while (true) {
    if (const For* f = as<For>(at)) {
      c.loops.push_back(f);
      at = c.body = f->body;
      if (last && f->var == last) {
        // Conditions right below the last loop stay where they are.
        return c;
      }
      continue;
    }
    const If* k = as<If>(at);
    if (!k || k->otherwise) break;
    // A condition belongs to the chain only if a loop follows.
    Stmt below = at;
    Exprs conditions;
    for (const If* i = k; i && !i->otherwise; i = as<If>(below)) conditions.push_back(i->condition), below = i->then;
    if (!as<For>(below)) break;
    c.conditions.insert(c.conditions.end(), conditions.begin(), conditions.end());
    at = below;
  }
  if (last || c.loops.empty()) return {};
  return c;
}

std::optional<OnlyStore> only_store(const Stmt& s) {
  OnlyStore site;
  const Stmt* at = &s;
  while (*at && !site.store) {
    const For* f = as<For>(*at);
    const If* k = as<If>(*at);
    if (f)
      site.loops.push_back(f), at = &f->body;
    else if (k && !k->otherwise)
      site.conditions.push_back(k->condition), at = &k->then;
    else if (!(site.store = as<Store>(*at)))
      return {};
  }
  return site.store ? std::optional(site) : std::nullopt;
}

bool uses_any(const Expr& e, const std::vector<Var>& vars) {
  return std::any_of(vars.begin(), vars.end(), [&](const Var& v) { return uses_var(e, v); });
}

bool reads_nothing(const Expr& e) {
  bool ok = true;
  walk(e, [&](const Expr& x) {
    const Apply* a = as<Apply>(x);
    ok = ok && !as<Load>(x) && !(a && a->op == Op::Index);
    return ok;
  });
  return ok;
}

std::vector<const For*> loops_in(const Stmt& s) {
  std::vector<const For*> list;
  walk(s, [&](const Stmt& x) {
    if (const For* f = as<For>(x)) list.push_back(f);
    return true;
  });
  return list;
}

bool is_block(ForKind k) { return k == ForKind::BlockX || k == ForKind::BlockY || k == ForKind::BlockZ; }
bool is_thread(ForKind k) { return k == ForKind::ThreadX || k == ForKind::ThreadY || k == ForKind::ThreadZ; }
bool is_gpu(ForKind k) { return is_block(k) || is_thread(k); }

bool has_device_loops(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    const For* f = as<For>(x);
    found = found || (f && is_gpu(f->kind));
    return !found;
  });
  return found;
}

}  // namespace tc
