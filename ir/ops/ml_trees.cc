// Ensembles of decision trees (ai.onnx.ml): TreeEnsembleRegressor, TreeEnsembleClassifier. The lists of the node become
// tables, which tc.tree_leaves walks; leaves have negative numbers, so that one comparison with zero ends a walk.
#include "ir/ops/ml_trees.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "ir/ops/helpers.h"
#include "ir/ops/ml_scores.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

const std::vector<std::string> kRules = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};

std::vector<double> numbers(const Expansion& e, const std::string& name, bool& wide) {
  if (const Constant c = e.attr_tensor(name + "_as_tensor")) {
    wide = wide || c->dtype == DType::F64;
    std::vector<double> v;
    for (int64_t k = 0; k < c->size(); k++) v.push_back(c->as_double(k));
    return v;
  }
  const std::vector<float> v = e.attr_floats(name);
  return {v.begin(), v.end()};
}

/// The lists of the node, all of one length.
struct NodeLists {
  std::vector<int64_t> tree, id, feature, yes, no, missing;
  std::vector<std::string> mode;
  std::vector<double> value;
};

NodeLists lists_of(const Expansion& e, bool& wide) {
  NodeLists l{e.attr_ints("nodes_treeids"),      e.attr_ints("nodes_nodeids"),
              e.attr_ints("nodes_featureids"),   e.attr_ints("nodes_truenodeids"),
              e.attr_ints("nodes_falsenodeids"), e.attr_ints("nodes_missing_value_tracks_true"),
              e.attr_strings("nodes_modes"),     numbers(e, "nodes_values", wide)};
  const size_t n = l.tree.size();
  if (n == 0) e.reject("attribute nodes_treeids is missing");
  if (l.id.size() != n || l.feature.size() != n || l.yes.size() != n || l.no.size() != n || l.mode.size() != n ||
      l.value.size() != n || (!l.missing.empty() && l.missing.size() != n))
    e.reject("the lists nodes_... must have one entry for each node");
  return l;
}

/// Numbers the nodes and says which ones are no node's child.
std::vector<size_t> number_nodes(const Expansion& e, const NodeLists& l, Forest& f) {
  int64_t branches = 0, leaves = 0;
  for (size_t k = 0; k < l.tree.size(); k++) {
    const int64_t number = l.mode[k] == "LEAF" ? -1 - leaves++ : branches++;
    if (!f.number.emplace(std::pair(l.tree[k], l.id[k]), number).second) e.reject("two nodes of a tree have one id");
  }
  std::set<std::pair<int64_t, int64_t>> children;
  for (size_t k = 0; k < l.tree.size(); k++) {
    if (l.mode[k] == "LEAF") continue;
    for (const int64_t child : {l.yes[k], l.no[k]}) {
      if (!f.number.count({l.tree[k], child})) e.reject("a branch leads to a node that does not exist");
      children.emplace(l.tree[k], child);
    }
  }
  std::vector<size_t> roots;
  std::set<int64_t> trees, with_root;
  for (size_t k = 0; k < l.tree.size(); k++) {
    trees.insert(l.tree[k]);
    if (children.count({l.tree[k], l.id[k]})) continue;
    if (!with_root.insert(l.tree[k]).second) e.reject("a tree has two roots");
    roots.push_back(k);
  }
  if (trees != with_root) e.reject("a tree has no root");
  return roots;
}

Forest forest_of(const Expansion& e, int64_t features) {
  Forest f;
  const NodeLists l = lists_of(e, f.wide);
  const std::vector<size_t> roots = number_nodes(e, l, f);
  std::map<int64_t, int64_t> index_of;  // tree id -> index among the trees
  for (const size_t k : roots) {
    index_of[l.tree[k]] = int64_t(f.roots.size());
    f.roots.push_back(f.number.at({l.tree[k], l.id[k]}));
  }
  for (size_t k = 0; k < l.tree.size(); k++) {
    if (l.mode[k] == "LEAF") {
      f.leaf_tree.push_back(index_of.at(l.tree[k]));
      continue;
    }
    const auto rule = std::find(kRules.begin(), kRules.end(), l.mode[k]);
    if (rule == kRules.end()) e.reject("an entry of nodes_modes is none of ONNX's");
    if (l.feature[k] < 0 || l.feature[k] >= features)
      e.reject("an entry of nodes_featureids is no feature of the input");
    f.feature.push_back(l.feature[k]);
    f.threshold.push_back(l.value[k]);
    f.rule.push_back(rule - kRules.begin());
    f.yes.push_back(f.number.at({l.tree[k], l.yes[k]}));
    f.no.push_back(f.number.at({l.tree[k], l.no[k]}));
    f.missing.push_back(!l.missing.empty() && l.missing[k] != 0);
    f.any_missing = f.any_missing || f.missing.back() != 0;
    f.one_rule = f.one_rule && f.rule.back() == f.rule.front();
  }
  require_ends(e, f);
  if (f.feature.empty()) {  // leaves only: tables of one entry that nothing reads
    f.feature = f.yes = f.no = f.rule = f.missing = {0};
    f.threshold = {0};
  }
  return f;
}

/// What a leaf says that has another weight for the same target. Of one target the first counts, as in ONNX Runtime:
/// scikit-learn's converter gives the number of a leaf once a class.
double again(double weight, double other, int64_t targets, double absent) {
  if (targets == 1) return weight;
  if (std::isinf(absent)) return absent > 0 ? std::min(weight, other) : std::max(weight, other);  // MIN, MAX
  return weight + other;
}

Weights weights_of(const Expansion& e, Forest& f, const std::string& prefix, int64_t targets, double absent) {
  const std::vector<int64_t> tree = e.attr_ints(prefix + "_treeids"), node = e.attr_ints(prefix + "_nodeids"),
                             id = e.attr_ints(prefix + "_ids");
  const std::vector<double> value = numbers(e, prefix + "_weights", f.wide);
  if (tree.size() != node.size() || tree.size() != id.size() || tree.size() != value.size() || tree.empty())
    e.reject("the lists " + prefix + "_... must have one entry for each weight");
  const auto leaves = int64_t(f.leaf_tree.size());
  Weights w;
  w.dense.assign(size_t(checked_mul(leaves, targets)), absent);
  w.one.assign(size_t(leaves), absent);
  w.tree_target.assign(f.roots.size(), -1);
  bool one_each = targets > 1;
  for (size_t k = 0; k < tree.size(); k++) {
    const auto found = f.number.find({tree[k], node[k]});
    if (found == f.number.end() || found->second >= 0) e.reject("a weight belongs to a node that is no leaf");
    if (id[k] < 0 || id[k] >= targets) e.reject("an entry of " + prefix + "_ids is out of range");
    require_finite(e, value[k], absent);
    const int64_t leaf = -1 - found->second;
    double& sum = w.dense[size_t(leaf * targets + id[k])];
    sum = sum == absent ? value[k] : again(sum, value[k], targets, absent);
    w.one[size_t(leaf)] = sum;
    int64_t& served = w.tree_target[size_t(f.leaf_tree[size_t(leaf)])];
    one_each = one_each && (served == -1 || served == id[k]);
    served = id[k];
    w.targets.insert(id[k]);
    w.negative = w.negative || value[k] < 0;
  }
  // A tree without any weight serves none.
  if (!one_each) w.tree_target.clear();
  return w;
}

bool expand_regressor(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = rows_of(e, e.in(0));
  Forest f = forest_of(e, dims_of_type(x)[1]);
  const int64_t targets = e.attr_int("n_targets");
  if (targets < 1) e.reject("attribute n_targets must be given and positive");
  const std::string aggregate = e.attr_string("aggregate_function");
  if (aggregate != "SUM" && aggregate != "AVERAGE" && aggregate != "MIN" && aggregate != "MAX")
    e.reject("attribute aggregate_function must be SUM, AVERAGE, MIN or MAX");
  const Weights w = weights_of(e, f, "target", targets, absent_weight(aggregate));
  const std::vector<double> base = numbers(e, "base_values", f.wide);
  if (!base.empty() && int64_t(base.size()) != targets) e.reject("there must be one base value for each target");
  Value* y = tree_scores(e, x, f, w, targets, aggregate, base);
  e.finish(0, e.cast(DType::F32, transform_targets(e, y, e.attr_string("post_transform")), "_f32"));
  return true;
}

/// Two classes whose leaves have weights for one of them only. ONNX's text does not say what that means; this is what
/// ONNX Runtime does, and what converters count on: a score that is no probability decides by its sign, one that is (no
/// weight is negative) by 1/2. Weights of class 0 are scores of class 1, and class 0 gets the rest.
void finish_binary(const Expansion& e, Value* score, const Constant& labels, const Weights& w,
                   const std::string& transform) {
  if (e.wants(0)) e.finish(0, label_above(e, score, w.negative ? 0 : 0.5, labels));
  if (!e.wants(1)) return;
  Value* y = nullptr;
  if (*w.targets.begin() == 1) {
    Value* nothing = e.constant(int64_constant({0, 1, 0, 0}), "_nothing");  // in front of each row
    y = post_transform(e, e.op("Pad", {score, nothing}, "_pair"), transform);
  } else if (transform == "PROBIT") {
    e.unsupported("PROBIT for two classes with one score");
  } else if (transform == "LOGISTIC") {
    y = post_transform(e, with_negative(e, score), transform);
  } else {
    y = w.negative ? with_negative(e, score) : with_complement(e, score);
  }
  e.finish(1, e.cast(DType::F32, y, "_f32"));
}

bool expand_classifier(Graph& g, Node* n) {
  const Expansion e(g, n);
  const Constant labels = labels_of(e, "classlabels_int64s", "classlabels_strings");
  Value* x = rows_of(e, e.in(0));
  Forest f = forest_of(e, dims_of_type(x)[1]);
  const int64_t classes = labels->size();
  Weights w = weights_of(e, f, "class", classes, 0);
  std::vector<double> base = numbers(e, "base_values", f.wide);
  const std::string transform = e.attr_string("post_transform");
  if (classes == 2 && w.targets.size() == 1) {
    if (base.size() > (*w.targets.begin() == 0 ? 1u : 0u))
      e.unsupported("base values of two classes where the leaves have weights for one");
    w.dense = w.one;
    w.tree_target.clear();
    finish_binary(e, tree_scores(e, x, f, w, 1, "SUM", base), labels, w, transform);
    return true;
  }
  if (!base.empty() && int64_t(base.size()) != classes) e.reject("there must be one base value for each class");
  Value* scores = tree_scores(e, x, f, w, classes, "SUM", base);
  if (e.wants(0)) e.finish(0, label_of_largest(e, scores, labels));
  if (e.wants(1)) e.finish(1, e.cast(DType::F32, post_transform(e, scores, transform), "_f32"));
  return true;
}

Expr goes_yes(int64_t rule, const Expr& x, const Expr& threshold) {
  switch (rule) {
    case 0: return x <= threshold;
    case 1: return x < threshold;
    case 2: return x >= threshold;
    case 3: return x > threshold;
    case 4: return eq(x, threshold);
    default: return ne(x, threshold);
  }
}

/// The tables that a walk reads.
struct TreeTables {
  Tensor x, root, feature, threshold, children, rule, missing;
};

/// Where `branch` sends a row: into which of its two children.
Expr next_node(OpBuilder& b, const TreeTables& t, const Expr& row, const Expr& branch) {
  const Expr value = cast(t.threshold.dtype(), t.x({row, cast(DType::I64, t.feature({branch}))}));
  const Expr bar = t.threshold({branch});
  Expr is_yes = goes_yes(b.attr_int("rule"), value, bar);
  if (t.rule) {
    is_yes = {};
    for (int64_t k = 6; k-- > 0;)
      if ((b.attr_int("used") >> k & 1) != 0)
        is_yes = is_yes ? select(eq(cast(DType::I64, t.rule({branch})), Expr(k)), goes_yes(k, value, bar), is_yes)
                        : goes_yes(k, value, bar);
  }
  if (t.missing && is_float(t.x.dtype()))
    is_yes = is_yes || (ne(cast(DType::I64, t.missing({branch})), Expr(0)) && apply(Op::IsNan, {value}));
  return cast(DType::I64, t.children({branch, select(is_yes, Expr(0), Expr(1))}));
}

/// The walks of a row through `count` trees from `first` on, side by side: none of them waits for another one's loads, and no processor
/// has to guess which way a row goes. A walk that ended stays in its leaf until all have.
Stmt walks(OpBuilder& b, const TreeTables& t, const Buffer& out, const Expr& row, const Expr& first, int64_t count) {
  const Buffer at = make_buffer("node", DType::I64, {Dim(count)}, Scope::Stack);
  const auto each = [&](const std::function<Stmt(const Expr& i)>& body) {
    const Var i = make_var("i");
    return count == 1 ? body(0) : loop(i, count, body(Expr(i)), ForKind::Unroll);
  };
  const auto node = [&](const Expr& i) { return load(at, {i}); };
  const auto step = [&](const Expr& i) {
    const Var branch = make_var("branch"), next = make_var("next");
    const Stmt go_on = store(at, {i}, select(node(i) < Expr(0), node(i), Expr(next)));
    return let(branch, max(node(i), Expr(0)), let(next, next_node(b, t, row, Expr(branch)), go_on));
  };
  Expr all_leaves = node(0);
  for (int64_t k = 1; k < count; k++) all_leaves = apply(Op::BitAnd, {all_leaves, node(k)});
  const Stmt begin = each([&](const Expr& i) { return store(at, {i}, cast(DType::I64, t.root({first + i}))); });
  const Stmt end = each([&](const Expr& i) {
    return store(out, {row, first + i}, cast(DType::I32, apply(Op::BitNot, {node(i)})));
  });
  return alloc(at, seq({begin, while_loop(all_leaves >= Expr(0), each(step)), end}));
}

/// The leaf of each tree in which a row ends. Operands: x [N, C]; roots [trees]; feature, threshold [branches]; children [branches, 2],
/// `yes` first; the rule of each branch; whether NaN goes to `yes`. Rules that no branch has are not looked for: were feature and
/// rule one table, as equal tables are, `x[feature]` would be out of range where such a rule would hold.
void define_tree_leaves(OpBuilder& b) {
  enum { kX, kRoot, kFeature, kThreshold, kChildren, kRule, kMissing };
  constexpr int64_t kTogether = 8;
  const auto table = [&](int k) { return b.has(k) ? b.in(k) : Tensor(); };
  const TreeTables t{b.in(kX),        b.in(kRoot),  b.in(kFeature), b.in(kThreshold),
                     b.in(kChildren), table(kRule), table(kMissing)};
  const int64_t trees = t.root.dim(0), blocks = trees / kTogether, rest = trees % kTogether;
  const Tensor leaf = b.nest(
      "leaf", {ValueType::tensor(DType::I32, to_shape({t.x.dim(0), trees}))}, [&](const std::vector<Buffer>& out) {
        const Var row = make_var("row"), block = make_var("tree_o");
        Stmts list;
        if (blocks > 0)
          list.push_back(loop(block, blocks, walks(b, t, out[0], row, Expr(block) * Expr(kTogether), kTogether)));
        if (rest > 0) list.push_back(walks(b, t, out[0], row, Expr(blocks * kTogether), rest));
        return loop(row, t.x.dim(0), seq(list));
      })[0];
  b.output(0, leaf);
}

/// The scores of the leaves. Operands: leaf [N, trees]; weight [leaves, targets], or [leaves] with the target of each tree; base values.
void define_tree_scores(OpBuilder& b) {
  enum { kLeaf, kWeight, kTarget, kBase };
  const Tensor leaf = b.in(kLeaf), weight = b.in(kWeight);
  const Tensor target = b.has(kTarget) ? b.in(kTarget) : Tensor(), base = b.has(kBase) ? b.in(kBase) : Tensor();
  const DType t = weight.dtype();
  const int64_t rows = leaf.dim(0), trees = leaf.dim(1), leaves = weight.dim(0), targets = b.attr_int("targets");
  const std::string aggregate = b.attr_string("aggregate");
  const Op op = aggregate == "MIN" ? Op::Min : aggregate == "MAX" ? Op::Max : Op::Add;
  const Tensor sum =
      b.reduce("sum", op, t, {rows, targets}, {trees},
               [&](const Exprs& i, const Exprs& r) {
                 // A row that no run asks for may hold anything.
                 const Expr k = min(max(cast(DType::I64, leaf({i[0], r[0]})), Expr(0)), Expr(leaves - 1));
                 if (!target) return weight({k, i[1]});
                 return select(eq(cast(DType::I64, target({r[0]})), i[1]), weight({k}),
                               op == Op::Add   ? zero(t)
                               : op == Op::Min ? highest(t)
                                               : lowest(t));
               },
               {"n", "target"});
  // A target that no leaf of this row speaks of scores 0, and its base value. (ONNX Runtime leaves that out.)
  const bool silent = b.attr_int("silent") != 0;
  if (aggregate != "AVERAGE" && !base && !silent) return b.output(0, sum);
  b.output(0, b.compute("scores", t, {rows, targets}, [&](const Exprs& i) {
    Expr y = sum(i);
    if (silent) y = select(eq(y, op == Op::Min ? highest(t) : lowest(t)), zero(t), y);
    if (aggregate == "AVERAGE") y = y / make_float(t, double(trees));
    return base ? y + base({i[1]}) : y;
  }));
}

/// Whether a row may end in leaves of which none has a weight for some target, where such weights are infinite.
bool leaves_say_nothing(const Weights& w, int64_t targets) {
  const auto infinite = [](double v) { return std::isinf(v); };
  if (w.tree_target.empty()) return std::any_of(w.dense.begin(), w.dense.end(), infinite);
  const std::set<int64_t> served(w.tree_target.begin(), w.tree_target.end());
  for (int64_t k = 0; k < targets; k++)
    if (!served.count(k)) return true;
  return std::any_of(w.one.begin(), w.one.end(), infinite);
}

/// [branch][yes, no]
std::vector<int64_t> children_of(const Forest& f) {
  std::vector<int64_t> list;
  for (size_t k = 0; k < f.yes.size(); k++) list.insert(list.end(), {f.yes[k], f.no[k]});
  return list;
}

std::vector<AttrSpec> tree_attrs(const std::string& prefix) {
  std::vector<AttrSpec> attrs = {{"post_transform", std::string("NONE")}};
  for (const char* name :
       {"base_values", "base_values_as_tensor", "nodes_falsenodeids", "nodes_featureids", "nodes_hitrates",
        "nodes_hitrates_as_tensor", "nodes_missing_value_tracks_true", "nodes_modes", "nodes_nodeids", "nodes_treeids",
        "nodes_truenodeids", "nodes_values", "nodes_values_as_tensor"})
    attrs.push_back({name, {}});
  for (const char* name : {"_ids", "_nodeids", "_treeids", "_weights", "_weights_as_tensor"})
    attrs.push_back({prefix + name, {}});
  return attrs;
}

}  // namespace

Value* tree_scores(const Expansion& e, Value* x, const Forest& f, const Weights& w, int64_t targets,
                   const std::string& aggregate, const std::vector<double>& base) {
  const DType t = f.wide || x->type.dtype == DType::F64 ? DType::F64 : DType::F32;
  const auto branches = int64_t(f.feature.size()), leaves = int64_t(f.leaf_tree.size());
  const auto table = [&](const std::vector<int64_t>& v, std::string_view suffix) {
    return e.ints(DType::I32, {int64_t(v.size())}, v, suffix);
  };
  if (std::max(branches, leaves) > INT32_MAX) e.unsupported("more than 2^31 nodes");
  const bool extreme = aggregate == "MIN" || aggregate == "MAX";
  std::vector<Value*> in = {x,
                            table(f.roots, "_root"),
                            table(f.feature, "_feature"),
                            e.floats(t, {branches}, f.threshold, "_threshold"),
                            e.ints(DType::I32, {branches, 2}, children_of(f), "_children"),
                            f.one_rule ? nullptr : table(f.rule, "_rule"),
                            f.any_missing ? table(f.missing, "_missing") : nullptr};
  int64_t used = 0;
  for (const int64_t rule : f.rule) used |= int64_t(1) << rule;
  in = {e.op("tree_leaves", in, "_leaves", {{"rule", f.rule.front()}, {"used", used}}, "tc")};
  if (w.tree_target.empty())
    in.push_back(e.floats(t, {leaves, targets}, w.dense, "_weight"));
  else
    in.push_back(e.floats(t, {leaves}, w.one, "_weight"));
  in.push_back(w.tree_target.empty() ? nullptr : table(w.tree_target, "_target"));
  in.push_back(base.empty() ? nullptr : e.floats(t, {int64_t(base.size())}, base, "_base"));
  return e.op(
      "tree_scores", in, "_scores",
      {{"targets", targets}, {"aggregate", aggregate}, {"silent", int64_t(extreme && leaves_say_nothing(w, targets))}},
      "tc");
}

void require_ends(const Expansion& e, const Forest& f) {
  std::vector<int64_t> parents(f.feature.size(), 0), open;
  const auto each_child = [&](size_t branch, const auto& visit) {
    for (const int64_t child : {f.yes[branch], f.no[branch]})
      if (child >= 0) visit(size_t(child));
  };
  for (size_t k = 0; k < parents.size(); k++) each_child(k, [&](size_t child) { parents[child]++; });
  for (size_t k = 0; k < parents.size(); k++)
    if (parents[k] == 0) open.push_back(int64_t(k));
  size_t left = parents.size();  // branches whose ancestors have not all been met
  for (; !open.empty(); left--) {
    const auto branch = size_t(open.back());
    open.pop_back();
    each_child(branch, [&](size_t child) {
      if (--parents[child] == 0) open.push_back(int64_t(child));
    });
  }
  if (left > 0) e.reject("branches lead in a circle");
}

double absent_weight(const std::string& aggregate) {
  return aggregate == "MIN" ? INFINITY : aggregate == "MAX" ? -INFINITY : 0;
}

void require_finite(const Expansion& e, double weight, double absent) {
  if (std::isinf(absent) && std::isinf(weight)) e.unsupported("leaves of infinite weight under MIN or MAX");
}

OpFamily ml_tree_ops() {
  std::vector<AttrSpec> regressor = tree_attrs("target"), classifier = tree_attrs("class");
  regressor.push_back({"aggregate_function", std::string("SUM")});
  regressor.push_back({"n_targets", {}});
  classifier.push_back({"classlabels_int64s", {}});
  classifier.push_back({"classlabels_strings", {}});
  return {
      tree_ensemble_row(),
      ml_row("TreeEnsembleRegressor", 5, regressor, expand_regressor),
      ml_row("TreeEnsembleClassifier", 5, classifier, expand_classifier),
      {.name = "tree_leaves",
       .since = 1,
       .attrs = {{"rule", int64_t(0)}, {"used", int64_t(63)}},
       .define = define_tree_leaves,
       .operands = "x root feature threshold children rule missing",
       .label = "tree_leaves",
       .domain = "tc",
       .traits = {OpTrait::EachRow}},
      {"tree_scores",
       1,
       {{"targets", int64_t(1)}, {"aggregate", std::string("SUM")}, {"silent", int64_t(0)}},
       define_tree_scores,
       "leaf weight target base",
       "tree_scores",
       "tc"},
  };
}

}  // namespace tc
