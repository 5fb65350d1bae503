// What schedules and loop passes share: finding and replacing a loop of a nest, the facts that hold where it stands, and
// copies with names of their own.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/loop/ir.h"
#include "ir/loop/print.h"
#include "ir/loop/simplify.h"

namespace tc {

/// A loop and where it stands. The pointers live as long as the statement that was searched.
struct LoopSite {
  Stmt stmt;                      // the loop itself
  const For* loop = nullptr;      // its payload
  Ranges ranges;                  // of the variables around it, narrowed by the conditions around it
  std::vector<const For*> outer;  // loops around it, outermost first
  std::vector<Stmt> path;         // all statements around it, outermost first
};

/// The loop of variable `v`; nullopt if there is none. Loop variables are bound once in a schedule.
std::optional<LoopSite> find_loop(const Stmt& body, const Var& v);

/// `body` with the statement `what` (by identity) replaced; null removes it, with the loops that are left empty.
Stmt replace_stmt(const Stmt& body, const StmtNode* what, const Stmt& by);

/// The loop `f` with another body; null if that is null.
Stmt with_body(const For& f, Stmt body);

/// A copy whose loop variables, lets and local buffers are new.
Stmt fresh_copy(const Stmt& s);
/// The same where a variable or a buffer is bound twice: the first binding keeps its identity.
Stmt bind_once(const Stmt& s);

/// Loops right inside each other, with conditions between them: `for i: if c: for j: ...` has loops i, j, the
/// condition c and the body inside.
struct Chain {
  std::vector<const For*> loops;  // outermost first
  Exprs conditions;               // all of them, outermost first
  Stmt body;                      // inside the innermost loop and condition
};
/// The chain that begins with the loop `s`, down to the loop of `last` (null: as far as loops go).
/// nullopt if `last` is not in it.
std::optional<Chain> chain_of(const Stmt& s, const Var& last);

/// A store in loops and conditions, one in another. The pointers live as long as the statement that was searched.
struct OnlyStore {
  std::vector<const For*> loops;  // outermost first
  Exprs conditions;
  const Store* store = nullptr;
};
/// nullopt: something else is among them, or a condition has another side.
std::optional<OnlyStore> only_store(const Stmt& s);

/// Whether one of them occurs.
bool uses_any(const Expr& e, const std::vector<Var>& vars);
/// Whether the expression reads no memory and raises no status, so that it may move.
bool reads_nothing(const Expr& e);
/// All loops in order of appearance.
std::vector<const For*> loops_in(const Stmt& s);
bool is_gpu(ForKind k);
/// Whether blocks or threads of a GPU occur.
bool has_device_loops(const Stmt& s);
bool is_block(ForKind k);
bool is_thread(ForKind k);

}  // namespace tc
