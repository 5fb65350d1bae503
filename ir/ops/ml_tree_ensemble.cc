// TreeEnsemble (ai.onnx.ml, version 5): regressors and classifiers in one, with lists of branches and of leaves. They
// become the tables of ml_trees.cc. A branch that asks whether a feature is a member of a set becomes one branch for
// each member, all of which lead to the same node:
//   x in {1, 2} ? a : b   ->   x == 1 ? a : (x == 2 ? a : b)
#include <algorithm>
#include <cmath>

#include "ir/ops/ml_scores.h"
#include "ir/ops/ml_trees.h"

namespace tc {
namespace {

constexpr int64_t kEqual = 4, kMember = 6;  // entries of nodes_modes

std::vector<double> tensor_numbers(const Expansion& e, const std::string& name, bool& wide) {
  std::vector<double> v;
  const Constant c = e.attr_tensor(name);
  if (!c) return v;
  wide = wide || c->dtype == DType::F64;
  for (int64_t k = 0; k < c->size(); k++) v.push_back(c->as_double(k));
  return v;
}

std::vector<int64_t> tensor_ints(const Expansion& e, const std::string& name) {
  const Constant c = e.attr_tensor(name);
  return c ? c->as_ints() : std::vector<int64_t>();
}

/// The sets of membership_values, which NaN separates.
std::vector<std::vector<double>> sets_of(const std::vector<double>& members) {
  std::vector<std::vector<double>> sets;
  bool open = false;
  for (const double m : members) {
    if (!open) sets.emplace_back();
    open = !std::isnan(m);
    if (open) sets.back().push_back(m);
  }
  return sets;
}

struct Lists {
  std::vector<int64_t> mode, feature, yes, no, yes_leaf, no_leaf, missing, roots, targets;
  std::vector<double> split, weight, members;
};

Lists lists_of(const Expansion& e, bool& wide) {
  Lists l{tensor_ints(e, "nodes_modes"),
          e.attr_ints("nodes_featureids"),
          e.attr_ints("nodes_truenodeids"),
          e.attr_ints("nodes_falsenodeids"),
          e.attr_ints("nodes_trueleafs"),
          e.attr_ints("nodes_falseleafs"),
          e.attr_ints("nodes_missing_value_tracks_true"),
          e.attr_ints("tree_roots"),
          e.attr_ints("leaf_targetids"),
          tensor_numbers(e, "nodes_splits", wide),
          tensor_numbers(e, "leaf_weights", wide),
          tensor_numbers(e, "membership_values", wide)};
  const size_t n = l.mode.size();
  for (const auto* list : {&l.feature, &l.yes, &l.no, &l.yes_leaf, &l.no_leaf})
    if (list->size() != n) e.reject("the lists nodes_... must have one entry for each branch");
  if (l.split.size() != n || (!l.missing.empty() && l.missing.size() != n))
    e.reject("the lists nodes_... must have one entry for each branch");
  if (l.weight.size() != l.targets.size() || l.weight.empty())
    e.reject("the lists leaf_... must have one entry for each leaf");
  if (l.roots.empty()) e.reject("attribute tree_roots is missing");
  return l;
}

/// Where a branch leads, as a number of Forest.
int64_t child(const Expansion& e, const Lists& l, int64_t id, bool leaf) {
  const auto count = int64_t(leaf ? l.weight.size() : l.mode.size());
  if (id < 0 || id >= count) e.reject("a branch leads to a node that does not exist");
  return leaf ? ~id : id;
}

/// Says which tree a leaf belongs to.
void walk_trees(const Expansion& e, const Lists& l, Forest& f) {
  constexpr int64_t kNone = -1;
  std::vector<int64_t> met(l.mode.size(), kNone);  // by which tree
  f.leaf_tree.assign(l.weight.size(), kNone);
  for (size_t tree = 0; tree < l.roots.size(); tree++) {
    std::vector<int64_t> open = {child(e, l, l.roots[tree], false)};
    f.roots.push_back(open.front());
    while (!open.empty()) {
      const int64_t node = open.back();
      open.pop_back();
      if (node < 0) {
        int64_t& owner = f.leaf_tree[size_t(~node)];
        f.shares_leaves = f.shares_leaves || (owner != kNone && owner != int64_t(tree));
        owner = int64_t(tree);
        continue;
      }
      const auto k = size_t(node);
      if (met[k] == int64_t(tree)) continue;
      if (met[k] != kNone) e.reject("two trees share a branch");
      met[k] = int64_t(tree);
      open.push_back(child(e, l, l.yes[k], l.yes_leaf[k] != 0));
      open.push_back(child(e, l, l.no[k], l.no_leaf[k] != 0));
    }
  }
  for (int64_t& tree : f.leaf_tree) tree = std::max<int64_t>(tree, 0);  // of a leaf that no branch leads to
}

void add_branch(Forest& f, int64_t feature, int64_t rule, double threshold, int64_t yes, int64_t no, bool missing) {
  f.feature.push_back(feature);
  f.rule.push_back(rule);
  f.threshold.push_back(threshold);
  f.yes.push_back(yes);
  f.no.push_back(no);
  f.missing.push_back(missing);
  f.any_missing = f.any_missing || missing;
}

/// Branch k asks for the first member of a set; the branches behind all others ask for the rest.
void spread_set(Forest& f, size_t k, const std::vector<double>& set) {
  const int64_t yes = f.yes[k], no = f.no[k], feature = f.feature[k];
  f.rule[k] = kEqual;
  if (set.empty()) f.yes[k] = no;
  if (set.empty()) return;
  f.threshold[k] = set[0];
  size_t last = k;
  for (size_t m = 1; m < set.size(); m++) {
    f.no[last] = int64_t(f.feature.size());
    last = f.feature.size();
    add_branch(f, feature, kEqual, set[m], yes, no, false);
  }
}

Forest forest_of(const Expansion& e, const Lists& l, int64_t features, bool wide) {
  Forest f;
  f.wide = wide;
  walk_trees(e, l, f);
  for (size_t k = 0; k < l.mode.size(); k++) {
    if (l.mode[k] < 0 || l.mode[k] > kMember) e.reject("an entry of nodes_modes is none of ONNX's");
    if (l.feature[k] < 0 || l.feature[k] >= features)
      e.reject("an entry of nodes_featureids is no feature of the input");
    add_branch(f, l.feature[k], l.mode[k], l.split[k], child(e, l, l.yes[k], l.yes_leaf[k] != 0),
               child(e, l, l.no[k], l.no_leaf[k] != 0), !l.missing.empty() && l.missing[k] != 0);
  }
  const std::vector<std::vector<double>> sets = sets_of(l.members);
  size_t set = 0;
  for (size_t k = 0; k < l.mode.size(); k++) {
    if (l.mode[k] != kMember) continue;
    if (set >= sets.size()) e.reject("membership_values has fewer sets than there are branches that ask for members");
    spread_set(f, k, sets[set++]);
  }
  require_ends(e, f);
  for (const int64_t rule : f.rule) f.one_rule = f.one_rule && rule == f.rule.front();
  return f;
}

Weights weights_of(const Expansion& e, const Lists& l, const Forest& f, int64_t targets, double absent) {
  Weights w;
  w.dense.assign(size_t(checked_mul(int64_t(l.weight.size()), targets)), absent);
  w.one = l.weight;
  w.tree_target.assign(f.roots.size(), -1);
  bool one_each = targets > 1;
  for (size_t k = 0; k < l.weight.size(); k++) {
    if (l.targets[k] < 0 || l.targets[k] >= targets) e.reject("an entry of leaf_targetids is out of range");
    require_finite(e, l.weight[k], absent);
    w.dense[k * size_t(targets) + size_t(l.targets[k])] = l.weight[k];
    int64_t& served = w.tree_target[size_t(f.leaf_tree[k])];
    one_each = one_each && (served == -1 || served == l.targets[k]);
    served = l.targets[k];
  }
  if (!one_each || f.shares_leaves) w.tree_target.clear();
  return w;
}

std::string named(const Expansion& e, const std::string& attribute, const std::vector<std::string>& names) {
  const int64_t k = e.attr_int(attribute);
  if (k < 0 || k >= int64_t(names.size())) e.reject("attribute " + attribute + " is out of range");
  return names[size_t(k)];
}

bool expand_tree_ensemble(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* given = e.in(0);
  if (!is_float(given->type.dtype)) e.reject("the input must hold floats");
  Value* x = rows_of(e, given);
  const std::string aggregate = named(e, "aggregate_function", {"AVERAGE", "SUM", "MIN", "MAX"}),
                    transform = named(e, "post_transform", {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"});
  const int64_t targets = e.attr_int("n_targets");
  if (targets < 1) e.reject("attribute n_targets must be given and positive");
  bool wide = false;
  const Lists l = lists_of(e, wide);
  const Forest f = forest_of(e, l, dims_of_type(x)[1], wide);
  const Weights w = weights_of(e, l, f, targets, absent_weight(aggregate));
  Value* y = transform_targets(e, tree_scores(e, x, f, w, targets, aggregate, {}), transform);
  e.finish(0, y->type.dtype == given->type.dtype ? y : e.op("CastLike", {y, given}, "_like"));
  return true;
}

}  // namespace

OpRow tree_ensemble_row() {
  std::vector<AttrSpec> attrs = {{"aggregate_function", int64_t(1)}, {"post_transform", int64_t(0)}, {"n_targets", {}}};
  for (const char* name :
       {"leaf_targetids", "leaf_weights", "membership_values", "nodes_falseleafs", "nodes_falsenodeids",
        "nodes_featureids", "nodes_hitrates", "nodes_missing_value_tracks_true", "nodes_modes", "nodes_splits",
        "nodes_trueleafs", "nodes_truenodeids", "tree_roots"})
    attrs.push_back({name, {}});
  return {.name = "TreeEnsemble",
          .since = 5,
          .attrs = attrs,
          .define = nullptr,
          .domain = "ai.onnx.ml",
          .expand = expand_tree_ensemble};
}

}  // namespace tc
