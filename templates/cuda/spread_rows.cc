#include "templates/cuda/spread_rows.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"
#include "passes/analysis/dependence.h"
#include "templates/cuda/template.h"

namespace tc {
namespace {

constexpr int64_t kThreads = int64_t(1) << 15;  // keep a GPU busy; one row needs few, and idle ones cost little

/// A launch of a thread for each point, as thread_per_point() makes it; without loops of threads a single point.
struct Launch1D {
  Var point;
  int64_t points = 1;
  Stmt body;
};

std::optional<Launch1D> launch_of(const Stmt& s) {
  const For* block = as<For>(s);
  if (!block || block->kind != ForKind::BlockX) return Launch1D{nullptr, 1, s};
  const For* thread = as<For>(block->body);
  const Let* number = thread && thread->kind == ForKind::ThreadX ? as<Let>(thread->body) : nullptr;
  if (!number) return std::nullopt;
  const auto blocks = as_const_int(block->extent), threads = as_const_int(thread->extent);
  if (!blocks || !threads) return std::nullopt;
  Launch1D launch{number->var, checked_mul(*blocks, *threads), number->body};
  if (const If* some = as<If>(number->body)) {
    const Apply* less = as<Apply>(some->condition);
    const VarRef* v = less && less->op == Op::Lt ? as<VarRef>(less->args[0]) : nullptr;
    const auto end = v && v->var == number->var ? as_const_int(less->args[1]) : std::nullopt;
    if (!end || some->otherwise) return std::nullopt;
    launch.points = *end;
    launch.body = some->then;
  }
  if (uses_var(launch.body, block->var) || uses_var(launch.body, thread->var)) return std::nullopt;
  return launch;
}

std::optional<Stmt> spread(const Stmt& s) {
  const auto launch = launch_of(s);
  if (!launch) return std::nullopt;
  std::vector<Let> lets;
  Stmt body = launch->body;
  for (const Let* k = as<Let>(body); k; k = as<Let>(body)) {
    lets.push_back(*k);
    body = lets.back().body;
  }
  const For* const rows = as<For>(body);
  if (!rows || as_const_int(rows->extent) || !is_const(rows->begin, 0)) return std::nullopt;
  const int64_t most = interval(rows->extent, {}).max;
  std::vector<Axis> trail;
  Stmt element = rows->body;
  for (const For* f = as<For>(element); f; f = as<For>(element)) {
    const auto extent = as_const_int(f->extent);
    if (!extent || !is_const(f->begin, 0) || !conflicts(body, f->var, {}).empty()) return std::nullopt;
    trail.push_back({f->var, Dim(*extent)});
    element = f->body;
  }
  if (most == kAnything.max || most < 1 || !as<Store>(element) || !conflicts(body, rows->var, {}).empty())
    return std::nullopt;

  const int64_t at_once = std::clamp<int64_t>(kThreads / std::max<int64_t>(1, launch->points * points(trail)), 1, most);
  const Var lane = make_var("lane"), turn = make_var("turn");
  const auto at = [&](const Expr& row) { return substitute(element, {{rows->var.get(), row}}); };
  Stmt some = at_once == most
                  ? if_then(Expr(lane) < rows->extent, at(lane))
                  : loop(turn, apply(Op::Div, {rows->extent - Expr(lane) + Expr(at_once - 1), Expr(at_once)}),
                         at(Expr(turn) * Expr(at_once) + Expr(lane)));
  for (size_t k = lets.size(); k-- > 0;) some = let(lets[k].var, lets[k].value, some);
  std::vector<Axis> axes;
  if (launch->point) axes.push_back({launch->point, Dim(launch->points)});
  axes.push_back({lane, Dim(at_once)});
  axes.insert(axes.end(), trail.begin(), trail.end());
  return thread_per_point(axes, some);
}

}  // namespace

Scheduled spread_rows(Scheduled s) {
  if (s.replaced.empty()) return s;
  if (auto body = spread(s.body)) {
    s.body = *body;
    s.description = "a thread per element of some rows at a time";
  }
  return s;
}

}  // namespace tc
