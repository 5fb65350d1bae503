// The families of operators, in the order in which docs/operators.md lists them.
#include <algorithm>

#include "ir/ops/families.h"
#include "ir/ops/op.h"

namespace tc {
namespace {

/// All rows and an index by (domain, name). Built once, never changed.
struct Table {
  std::vector<OpRow> rows;
  std::vector<const OpRow*> in_order;
  std::vector<const OpRow*> by_name;
};

bool before(const OpRow* a, std::string_view domain, std::string_view name) {
  return a->domain != domain ? a->domain < domain : a->name < name;
}

Table make_table() {
  Table t;
  for (OpFamily (*family)() : {elementwise_ops, reduction_ops, movement_ops, generator_ops, contraction_ops, window_ops,
                               normalization_ops, recurrent_ops, attention_ops, quantization_ops, microsoft_ops,
                               ml_feature_ops, ml_linear_ops, ml_tree_ops, ml_svm_ops, control_ops, internal_ops})
    for (OpRow& row : family()) t.rows.push_back(std::move(row));
  for (const OpRow& row : t.rows) t.in_order.push_back(&row);
  t.by_name = t.in_order;
  std::sort(t.by_name.begin(), t.by_name.end(),
            [](const OpRow* a, const OpRow* b) { return before(a, b->domain, b->name); });
  for (size_t i = 1; i < t.by_name.size(); i++)
    check(before(t.by_name[i - 1], t.by_name[i]->domain, t.by_name[i]->name), "two rows of one operator");
  return t;
}

const Table& table() {
  static const Table t = make_table();
  return t;
}

}  // namespace

const std::vector<const OpRow*>& all_ops() { return table().in_order; }

const OpRow* find_op(std::string_view domain, std::string_view name) {
  const auto& rows = table().by_name;
  auto it = std::lower_bound(rows.begin(), rows.end(), name,
                             [&](const OpRow* a, std::string_view n) { return before(a, domain, n); });
  return it != rows.end() && (*it)->domain == domain && (*it)->name == name ? *it : nullptr;
}

}  // namespace tc
