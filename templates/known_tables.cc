#include "templates/known_tables.h"

#include <algorithm>

#include "ir/loop/visit.h"
#include "templates/canonical.h"

namespace tc {
namespace {

constexpr int64_t kLargestTable = 1 << 14;  // elements

bool holds(const std::vector<Buffer>& list, const Buffer& b) {
  return std::find(list.begin(), list.end(), b) != list.end();
}

std::vector<Buffer> reads(const Stage& s) {
  std::vector<Buffer> list;
  auto look = [&](const Expr& e) {
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x); l && !holds(list, l->buffer)) list.push_back(l->buffer);
      return true;
    });
  };
  for (const auto* exprs : {&s.values, &s.init})
    for (const Expr& e : *exprs) look(e);
  if (s.nest)
    walk(
        s.nest, [](const Stmt&) { return true; }, [&](const Expr& e) { return look(e), false; });
  return list;
}

// Positions alone are cheap, and templates see through them.
bool computes_floats(const Stage& s) {
  bool found = false;
  for (const Expr& e : s.values)
    walk(e, [&](const Expr& x) {
      const bool computed = as<Apply>(x) || as<Cast>(x);
      found = found || (computed && is_float(x->dtype));
      return !found;
    });
  return found;
}

bool has_static_outputs(const Stage& s) {
  return std::all_of(s.outputs.begin(), s.outputs.end(),
                     [](const Buffer& b) { return is_static(b->shape) && b->strides.empty() && b->offset == 0; });
}

}  // namespace

std::optional<KnownTables> known_tables(const TensorFn& fn) {
  if (fn.inputs.empty()) return {};
  KnownTables k;
  std::vector<Buffer> made;
  bool floats = false;
  for (const Stage& s : fn.stages) {
    const std::vector<Buffer> from = reads(s);
    const bool alone = std::all_of(from.begin(), from.end(), [&](const Buffer& b) { return holds(made, b); });
    const bool kept =
        std::any_of(s.outputs.begin(), s.outputs.end(), [&](const Buffer& b) { return holds(fn.outputs, b); });
    const bool small = s.kind != Stage::Kind::Nest && s.scan < 0 && has_static_outputs(s) &&
                       points_or_many(s.axes) <= kLargestTable && points_or_many(s.raxes) <= kLargestTable;
    if (!alone || kept || !small) {
      k.rest.stages.push_back(s);
      continue;
    }
    floats = floats || computes_floats(s);
    k.tables.stages.push_back(s);
    made.insert(made.end(), s.outputs.begin(), s.outputs.end());
  }
  if (!floats) return {};
  k.rest.inputs = fn.inputs;
  k.rest.outputs = fn.outputs;
  int64_t most = 0, largest = 0;
  for (const Stage& s : k.rest.stages)
    for (const Buffer& b : reads(s)) {
      if (!holds(made, b)) continue;
      if (!holds(k.tables.outputs, b)) k.tables.outputs.push_back(b);
      most = std::max(most, points_or_many(s.axes));
      largest = std::max(largest, num_elements(static_dims(b->shape)));
    }
  k.rest.inputs.insert(k.rest.inputs.end(), k.tables.outputs.begin(), k.tables.outputs.end());
  if (k.tables.outputs.empty() || largest >= most) return {};
  return k;
}

Scheduled with_known_tables(Scheduled s, const KnownTables& k) {
  const size_t operands = k.rest.inputs.size() - k.tables.outputs.size();
  for (size_t i = s.inputs.size(); i-- > 0;) {
    if (size_t(s.input_index[i]) < operands) continue;
    s.inputs.erase(s.inputs.begin() + std::ptrdiff_t(i));
    s.input_index.erase(s.input_index.begin() + std::ptrdiff_t(i));
  }
  auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(s.prologue.stages, k.tables.stages);
  append(s.prologue.outputs, k.tables.outputs);
  for (size_t i = 0; i < k.tables.outputs.size(); i++) s.prologue_layouts.push_back("a table");
  return s;
}

}  // namespace tc
