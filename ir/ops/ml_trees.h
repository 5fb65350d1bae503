// Ensembles of decision trees as tables, and their scores. Internal to ir/ops/ml_trees.cc and ml_tree_ensemble.cc.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops/expansion.h"

namespace tc {

/// A node of a tree is a number: the branches of the whole ensemble count from 0, and leaf k is ~k. Several branches of a tree may lead
/// to one node: so converters write a set of categories, a branch for each of them.
struct Forest {
  std::vector<int64_t> roots;                            // one per tree
  std::vector<int64_t> feature, yes, no, rule, missing;  // one per branch; missing: NaN takes `yes`
  std::vector<double> threshold;
  std::vector<int64_t> leaf_tree;                         // one per leaf: its tree
  std::map<std::pair<int64_t, int64_t>, int64_t> number;  // (tree id, node id) -> number
  bool any_missing = false, one_rule = true, wide = false;
  bool shares_leaves = false;  // leaves of several trees; leaf_tree has the last of them
};

/// What the leaves add to each target.
struct Weights {
  std::vector<double> dense;         // [leaf][target]
  std::vector<double> one;           // [leaf], where each tree serves one target
  std::vector<int64_t> tree_target;  // that target; empty where a tree serves several
  std::set<int64_t> targets;         // which ones there are
  bool negative = false;
};

/// The sums [N, targets], base values added, in f64 where the model's numbers are, else in f32.
Value* tree_scores(const Expansion& e, Value* x, const Forest& f, const Weights& w, int64_t targets,
                   const std::string& aggregate, const std::vector<double>& base);

/// The row of TreeEnsemble, which describes the same by lists of other kinds.
OpRow tree_ensemble_row();

/// Refuses branches that lead in a circle, where a walk would not end.
void require_ends(const Expansion& e, const Forest& f);

/// What a leaf that says nothing adds to a target under an aggregate.
double absent_weight(const std::string& aggregate);

/// Refuses a weight that could not be told from an absent one.
void require_finite(const Expansion& e, double weight, double absent);

}  // namespace tc
