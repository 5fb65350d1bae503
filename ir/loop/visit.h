// Walking and rewriting Loop IR. A rewrite that changes nothing returns the same node, so "changed?" is same_as().
#pragma once
#include <functional>
#include <map>

#include "ir/loop/ir.h"

namespace tc {

/// Rebuilds `e` bottom-up: children first, then f(node with new children); f returns null to keep the node.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& f);
/// The same for statements; fe sees every expression inside (bottom-up), fs every statement; either may be empty.
Stmt rewrite(const Stmt& s, const std::function<Expr(const Expr&)>& fe,
             const std::function<Stmt(const Stmt&)>& fs = {});

/// `s`, which is `k`, with f of each of its statements; one that becomes null goes.
Stmt rewrite_each(const Seq& k, const Stmt& s, const std::function<Stmt(const Stmt&)>& f);

/// Calls f on every node, parents before children; f returns false to skip the children.
void walk(const Expr& e, const std::function<bool(const Expr&)>& f);
void walk(const Stmt& s, const std::function<bool(const Stmt&)>& fs, const std::function<bool(const Expr&)>& fe = {});

using VarMap = std::map<const VarDef*, Expr>;  // looked up only, never iterated
using BufferMap = std::map<const BufferDef*, Buffer>;
Expr substitute(const Expr& e, const VarMap& vars);
Stmt substitute(const Stmt& s, const VarMap& vars);
Expr substitute_buffers(const Expr& e, const BufferMap& buffers);
Stmt substitute_buffers(const Stmt& s, const BufferMap& buffers);

bool uses_var(const Expr& e, const Var& v);
bool uses_var(const Stmt& s, const Var& v);
bool uses_buffer(const Expr& e, const Buffer& b);

/// Same tree up to the names of variables bound inside (free variables and buffers compare by identity).
bool structurally_equal(const Expr& a, const Expr& b);

/// e = constant + sum(coefficient * var): the coefficients in the order of `vars`, nullopt if e is not affine in them.
/// What does not depend on `vars` is in `rest`.
struct Affine {
  std::vector<int64_t> coefficients;
  Expr rest;
};
std::optional<Affine> affine_in(const Expr& e, const std::vector<Var>& vars);

}  // namespace tc
