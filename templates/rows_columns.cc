// Steps of rows, and their columns as one axis.
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "templates/rows.h"

namespace tc {

std::vector<Expr*> values_of(RowStep& s) {
  if (s.tuple.empty()) return {&s.value};
  std::vector<Expr*> list;
  for (RowComponent& k : s.tuple) list.push_back(&k.value);
  return list;
}

std::vector<Expr> values_of(const RowStep& s) {
  if (s.tuple.empty()) return {s.value};
  std::vector<Expr> list;
  for (const RowComponent& k : s.tuple) list.push_back(k.value);
  return list;
}

void merge_columns(Rows& r) {
  if (r.columns.size() == 1) return;
  const Axis column{make_var("column"), Dim(points(r.columns))};
  const VarMap at = point_at(r.columns, Expr(column.var));
  auto merged = [&](const Expr& index) {
    const auto f = affine_in(index, vars_of(r.columns));
    bool as_one = f.has_value();
    for (size_t k = 1; as_one && k < r.columns.size(); k++)
      as_one = f->coefficients[k - 1] == f->coefficients[k] * r.columns[k].extent.value;
    return as_one ? f->rest + Expr(column.var) * Expr(f->coefficients.back()) : substitute(index, at);
  };
  for (RowStep& s : r.steps) {
    for (Expr* e : values_of(s))
      *e = substitute(rewrite(*e,
                              [&](const Expr& x) -> Expr {
                                const Load* l = as<Load>(x);
                                return l && l->index.size() == 1 ? load(l->buffer, {merged(l->index[0])}) : Expr();
                              }),
                      at);
    if (s.out_index) s.out_index = merged(s.out_index);
  }
  r.kept_index = merged(r.kept_index);
  r.columns = {column};
}

}  // namespace tc
