#include "templates/cpu/lanes.h"

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/loop/vector_form.h"

namespace tc {
namespace {

class VectorForm {
 public:
  explicit VectorForm(const LanePoint& p) : p_(p) {}

  Expr operator()(const Expr& e) {
    if (const auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
    const Expr r = make(e);
    memo_[e.get()] = r;
    return r;
  }

 private:
  Expr make(const Expr& e) {
    return visit(
        e, [&](const IntImm&) { return e; }, [&](const FloatImm&) { return e; }, [&](const Lanes&) { return e; },
        [&](const VarRef&) { return index_at(e, p_.at); },
        [&](const Apply& k) {
          Exprs args;
          for (const Expr& a : k.args) args.push_back((*this)(a));
          return apply(k.op, std::move(args));
        },
        [&](const Select& k) { return select((*this)(k.condition), (*this)(k.yes), (*this)(k.no)); },
        [&](const Cast& k) { return cast(e->dtype, (*this)(k.value), k.saturate); },
        [&](const Bitcast& k) { return bitcast(e->dtype, (*this)(k.value)); },
        [&](const Load& k) { return element(k); }, [&](const Ramp&) { return refuse(); },
        [&](const Broadcast&) { return refuse(); }, [&](const Partial&) { return refuse(); });
  }

  Expr refuse() { throw InternalError("a vector inside a scalar definition"); }

  Expr element(const Load& k) {
    if (k.index.empty()) return p_.acc;
    check(k.index.size() == 1, "templates see flat buffers");
    if (!p_.lane || !uses_var(k.index[0], p_.lane)) return load(k.buffer, {index_at(k.index[0], p_.at)});
    auto at = p_.at;
    at.push_back({p_.lane, p_.base});
    const Expr v = load(k.buffer, {ramp(index_at(k.index[0], at))});
    return p_.count ? partial(v, p_.count) : v;
  }

  const LanePoint& p_;
  std::map<const ExprNode*, Expr> memo_;  // looked up only
};

}  // namespace

bool has_vector_form(const Expr& e, const Var& lane) { return has_vector_form(e, lane, true); }
bool has_stored_form(const Expr& e, DType to, const Var& lane) { return has_stored_form(e, to, lane, true); }

Expr vector_form(const Expr& e, const LanePoint& p) { return VectorForm(p)(e); }

Expr scalar_form(const Expr& e, const std::vector<std::pair<Var, Expr>>& at, const Expr& acc) {
  return VectorForm({at, nullptr, {}, {}, acc})(e);
}

Expr index_at(const Expr& index, const std::vector<std::pair<Var, Expr>>& at) {
  std::vector<Var> vars;
  VarMap map;
  for (const auto& [v, e] : at) {
    vars.push_back(v);
    map[v.get()] = e;
  }
  if (const auto o = offset_of(index, vars)) return offset_expr(*o, at);
  return substitute(index, map);
}

Stmt store_lanes(const Buffer& out, const Expr& index, const Expr& value, const LanePoint& p) {
  auto at = p.at;
  at.push_back({p.lane, p.base});
  Expr v = vector_form(value, p);
  return store(out, {ramp(index_at(index, at))}, broadcast(v), std::nullopt, p.count);
}

LanePoint panel_point(const Axis& n, const std::vector<Axis>& rows, const Expr& panel, int64_t columns, const Expr& row,
                      const Expr& column, Expr acc) {
  LanePoint p{{}, n.var, panel * Expr(columns) + column, {}, std::move(acc)};
  if (!rows.empty()) p.at.push_back({rows[0].var, row});
  if (n.extent.value % columns != 0) p.count = Expr(n.extent) - p.base;
  return p;
}

Stmt fetch_ahead(const Buffer& b, const Expr& begin, int64_t count) {
  constexpr int64_t kMostUnrolled = 32;  // lines
  const int64_t line_size = 64 / info(b->dtype).bytes, ahead = 128 * line_size, lines = count / line_size;
  if (lines == 0) return {};
  const Var line = make_var("line");
  return loop(line, lines, prefetch(b, {begin + Expr(ahead) + Expr(line) * Expr(line_size)}),
              lines <= kMostUnrolled ? ForKind::Unroll : ForKind::Serial);
}

Expr vectors(int64_t n) { return n % kMaxLanes == 0 ? Expr(n) / lanes() : (Expr(n) + lanes() - Expr(1)) / lanes(); }

Stmt over_lanes(const std::string& var, int64_t n, const std::function<Stmt(const Expr&, const Expr&)>& body) {
  const Var v = make_var(var);
  Stmts list = {loop(v, Expr(n) / lanes(), body(Expr(v) * lanes(), {}))};
  if (n % kMaxLanes != 0) {
    const Expr done = Expr(n) / lanes() * lanes();
    list.push_back(body(done, Expr(n) - done));
  }
  return seq(list);
}

}  // namespace tc
