// Support vector machines (ai.onnx.ml): SVMRegressor, SVMClassifier, rewritten into products of matrices. Only coupling
// the probabilities of pairs of classes is an operator of our own.
#include "ir/ops/helpers.h"
#include "ir/ops/ml_scores.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// The kernel of each row of x [N, C] with each row of `vectors` [S, C]: [N, S].
Value* kernel(const Expansion& e, Value* x, const std::vector<float>& vectors, int64_t count) {
  const std::string type = e.attr_string("kernel_type");
  const std::vector<float> params = e.attr_floats("kernel_params");
  const auto number = [&](size_t k, std::string_view suffix) {
    return e.number(x->type.dtype, k < params.size() ? double(params[k]) : 0, suffix);
  };
  const int64_t rows = dims_of_type(x)[0], features = dims_of_type(x)[1];
  if (int64_t(vectors.size()) != checked_mul(count, features))
    e.reject("the vectors' numbers do not fit " + to_text(features) + " features");
  if (type == "RBF") {
    Value* v = e.floats(x->type.dtype, {1, count, features}, doubles(vectors), "_vectors");
    Value* gap = e.op("Sub", {e.reshape(x, {rows, 1, features}, "_spread"), v}, "_gap");
    Value* square = e.op("Mul", {gap, gap}, "_square");
    Value* distance =
        e.op("ReduceSum", {square, e.constant(int64_constant({2}), "_axis")}, "_distance", {{"keepdims", int64_t(0)}});
    Value* gamma = e.number(x->type.dtype, params.empty() ? 0 : -double(params[0]), "_gamma");
    return e.op("Exp", {e.op("Mul", {distance, gamma}, "_exponent")}, "_kernel");
  }
  Value* dot = times_rows(e, x, vectors, count, "_vectors", "_dot");
  if (type == "LINEAR") return dot;
  Value* affine = e.op("Add", {e.op("Mul", {dot, number(0, "_gamma")}, "_scaled"), number(1, "_coef0")}, "_affine");
  if (type == "POLY") return e.op("Pow", {affine, number(2, "_degree")}, "_kernel");
  if (type == "SIGMOID") return e.op("Tanh", {affine}, "_kernel");
  e.reject("attribute kernel_type must be LINEAR, POLY, RBF or SIGMOID");
}

Value* rho(const Expansion& e, Value* x, size_t count) {
  const std::vector<float> v = e.attr_floats("rho");
  if (v.size() < count)
    e.reject("attribute rho has " + to_text(int64_t(v.size())) + " numbers, not " + to_text(int64_t(count)));
  return e.floats(x->type.dtype, {int64_t(count)}, doubles({v.begin(), v.begin() + std::ptrdiff_t(count)}), "_rho");
}

bool expand_regressor(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = rows_of(e, e.in(0));
  const std::vector<float> coefficients = e.attr_floats("coefficients");
  const int64_t supports = e.attr_int("n_supports");
  Value* sum = nullptr;
  if (supports > 0) {
    if (int64_t(coefficients.size()) != supports) e.reject("there must be one coefficient for each support vector");
    Value* k = kernel(e, x, e.attr_floats("support_vectors"), supports);
    sum =
        e.op("MatMul", {k, e.floats(x->type.dtype, {supports, 1}, doubles(coefficients), "_coefficients")}, "_product");
  } else {
    sum = kernel(e, x, coefficients, 1);
  }
  Value* y = e.op("Add", {sum, rho(e, x, 1)}, "_sum");
  if (e.attr_int("one_class") != 0) {
    const DType t = x->type.dtype;
    Value* inside = e.op("Greater", {y, e.number(t, 0, "_zero")}, "_inside");
    y = e.op("Where", {inside, e.number(t, 1, "_in"), e.number(t, -1, "_out")}, "_class");
  } else {
    y = transform_targets(e, y, e.attr_string("post_transform"));
  }
  e.finish(0, e.cast(DType::F32, y, "_f32"));
  return true;
}

/// The pairs of classes i < j, in the order in which ONNX numbers them.
std::vector<std::pair<size_t, size_t>> pairs_of(size_t classes) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < classes; i++)
    for (size_t j = i + 1; j < classes; j++) pairs.emplace_back(i, j);
  return pairs;
}

/// Scores of the pairs [N, P]: positive for the first class of the pair. Each pair reads the vectors of its two
/// classes.
Value* pair_scores(const Expansion& e, Value* x, size_t classes) {
  const std::vector<int64_t> per_class = e.attr_ints("vectors_per_class");
  const std::vector<float> coefficients = e.attr_floats("coefficients");
  if (per_class.size() != classes) e.reject("attribute vectors_per_class must have one number for each label");
  std::vector<size_t> class_of;
  for (size_t k = 0; k < classes; k++) {
    if (per_class[k] < 0 || per_class[k] > (1 << 24)) e.reject("an entry of vectors_per_class is no count");
    class_of.insert(class_of.end(), size_t(per_class[k]), k);
  }
  const size_t vectors = class_of.size();
  if (vectors == 0 || coefficients.size() != vectors * (classes - 1))
    e.reject("there must be a coefficient for each support vector and each other class");
  const auto pairs = pairs_of(classes);
  std::vector<double> weight(vectors * pairs.size(), 0);
  for (size_t v = 0; v < vectors; v++)
    for (size_t p = 0; p < pairs.size(); p++) {
      const auto [i, j] = pairs[p];
      if (class_of[v] == i) weight[v * pairs.size() + p] = double(coefficients[(j - 1) * vectors + v]);
      if (class_of[v] == j) weight[v * pairs.size() + p] = double(coefficients[i * vectors + v]);
    }
  Value* k = kernel(e, x, e.attr_floats("support_vectors"), int64_t(vectors));
  Value* w = e.floats(x->type.dtype, {int64_t(vectors), int64_t(pairs.size())}, weight, "_coefficients");
  return e.op("Add", {e.op("MatMul", {k, w}, "_product"), rho(e, x, pairs.size())}, "_pairs");
}

/// How many pairs each class wins [N, classes].
Value* votes_of(const Expansion& e, Value* scores, size_t classes) {
  const auto pairs = pairs_of(classes);
  std::vector<double> won(pairs.size() * classes, 0), lost(classes, 0);
  for (size_t p = 0; p < pairs.size(); p++) {
    won[p * classes + pairs[p].first] = 1;
    won[p * classes + pairs[p].second] = -1;
    lost[pairs[p].second] += 1;
  }
  const DType t = scores->type.dtype;
  Value* first = e.cast(t, e.op("Greater", {scores, e.number(t, 0, "_zero")}, "_first_wins"), "_wins");
  Value* w = e.floats(t, {int64_t(pairs.size()), int64_t(classes)}, won, "_won");
  return e.op("Add", {e.op("MatMul", {first, w}, "_balance"), e.floats(t, {int64_t(classes)}, lost, "_lost")},
              "_votes");
}

/// Probabilities [N, classes] from the scores of the pairs.
Value* probabilities(const Expansion& e, Value* scores, size_t classes) {
  const std::vector<float> a = e.attr_floats("prob_a"), b = e.attr_floats("prob_b");
  const auto pairs = int64_t(pairs_of(classes).size());
  if (int64_t(a.size()) != pairs || a.size() != b.size())
    e.reject("prob_a and prob_b must have one number for each pair of labels");
  const DType t = scores->type.dtype;
  Value* affine = e.op("Add",
                       {e.op("Mul", {scores, e.floats(t, {pairs}, doubles(a), "_prob_a")}, "_by_a"),
                        e.floats(t, {pairs}, doubles(b), "_prob_b")},
                       "_affine");
  Value* first = e.op("Sigmoid", {e.op("Neg", {affine}, "_exponent")}, "_sigmoid");
  return e.op("couple_pairs", {first}, "_coupled", {{"classes", int64_t(classes)}}, "tc");
}

bool expand_classifier(Graph& g, Node* n) {
  const Expansion e(g, n);
  const Constant labels = labels_of(e, "classlabels_ints", "classlabels_strings");
  Value* x = rows_of(e, e.in(0));
  const std::string transform = e.attr_string("post_transform");
  if (e.attr_ints("vectors_per_class").empty()) {
    const int64_t classes = labels->size();
    Value* scores = e.op("Add", {kernel(e, x, e.attr_floats("coefficients"), classes), rho(e, x, 1)}, "_scores");
    if (e.wants(0)) e.finish(0, label_of_largest(e, scores, labels));
    if (e.wants(1)) e.finish(1, e.cast(DType::F32, post_transform(e, scores, transform), "_f32"));
    return true;
  }
  if (labels->size() < 2) e.reject("there must be at least two labels");
  const auto classes = size_t(labels->size());
  Value* pairs = pair_scores(e, x, classes);
  Value* p = e.attr_floats("prob_a").empty() ? nullptr : probabilities(e, pairs, classes);
  if (e.wants(0)) e.finish(0, label_of_largest(e, votes_of(e, pairs, classes), labels));
  if (!e.wants(1)) return true;
  Value* y = nullptr;
  if (p)
    y = post_transform(e, p, transform);
  else if (classes == 2 && (transform == "NONE" || transform == "LOGISTIC"))
    y = post_transform(e, with_negative(e, pairs), transform);
  else if (classes == 2)
    y = with_complement(e, transform == "PROBIT" ? post_transform(e, pairs, transform) : pairs);
  else
    y = post_transform(e, pairs, transform);
  e.finish(1, e.cast(DType::F32, y, "_f32"));
  return true;
}

/// x[row, p]: how probable the first class of pair p is, if it is one of the two. Finds the probabilities y[row, c]
/// that fit best, as Wu, Lin and Weng describe it (Probability Estimates for Multi-class Classification by Pairwise
/// Coupling, 2004, algorithm 2): minimise y'Qy with sum 1, coordinate by coordinate, until the gap is small or 100
/// rounds are over.
struct Coupling {
  int64_t classes;
  DType t;
  Tensor x;
  Expr row;
  Buffer q, qy, y, pqp, gap, round;

  Expr number(double v) const { return make_const(t, v); }
  Expr one(const Buffer& b) const { return load(b, {0}); }
  Stmt each(const std::function<Stmt(const Expr&)>& f) const {
    const Var k = make_var("k");
    return loop(k, classes, f(k));
  }
  /// The probability of i, the first class of the pair (i, j), away from 0 and 1.
  Expr pair(const Expr& i, const Expr& j) const {
    const Expr before = floor_div(i * (Expr(2 * classes - 1) - i), Expr(2));  // pairs whose first class is smaller
    return min(max(x({row, before + j - i - Expr(1)}), number(1e-7)), number(1 - 1e-7));
  }

  Stmt fill_q() const {
    const Var i = make_var("i"), j = make_var("j"), p = make_var("p", t);
    const Expr first = Expr(p), second = number(1) - first;
    const Stmt both = seq(
        {store(q, {Expr(i), Expr(j)}, -(first * second)), store(q, {Expr(j), Expr(i)}, -(first * second)),
         store(q, {Expr(i), Expr(i)}, second * second, Op::Add), store(q, {Expr(j), Expr(j)}, first * first, Op::Add)});
    const Stmt others =
        loop(j, Expr(classes - 1) - Expr(i), let(p, pair(Expr(i), Expr(j)), both), ForKind::Serial, Expr(i) + Expr(1));
    // All of q, though only the diagonal needs it: compilers do not see that the loops fill the rest.
    const Stmt zeros = each([&](const Expr& k) {
      return each([&](const Expr& l) { return store(q, {k, l}, number(0)); });
    });
    return seq({zeros, loop(i, classes, others)});
  }

  /// qy = Q y, pqp = y'Qy, gap = the largest |qy - pqp|.
  Stmt measure() const {
    return seq({store(pqp, {0}, number(0)), store(gap, {0}, number(0)), each([&](const Expr& i) {
                  return seq({store(qy, {i}, number(0)), each([&](const Expr& j) {
                                return store(qy, {i}, load(q, {i, j}) * load(y, {j}), Op::Add);
                              }),
                              store(pqp, {0}, load(y, {i}) * load(qy, {i}), Op::Add)});
                }),
                each([&](const Expr& i) { return store(gap, {0}, abs(load(qy, {i}) - one(pqp)), Op::Max); })});
  }

  Stmt improve() const {
    return each([&](const Expr& i) {
      const Var step = make_var("step", t);
      const Expr whole = number(1) + step, qii = load(q, {i, i});
      const Stmt rest =
          seq({store(y, {i}, Expr(step), Op::Add),
               store(pqp, {0}, (one(pqp) + step * (step * qii + number(2) * load(qy, {i}))) / whole / whole),
               each([&](const Expr& j) {
                 return seq({store(qy, {j}, (load(qy, {j}) + step * load(q, {i, j})) / whole),
                             store(y, {j}, load(y, {j}) / whole)});
               })});
      return let(step, (one(pqp) - load(qy, {i})) / qii, rest);
    });
  }

  Stmt solve() const {
    const double eps = 0.005 / double(classes);
    return seq({fill_q(), each([&](const Expr& i) { return store(y, {i}, number(1.0 / double(classes))); }), measure(),
                store(round, {0}, Expr(0)),
                while_loop(one(gap) >= number(eps) && one(round) < Expr(100),
                           seq({improve(), measure(), store(round, {0}, one(round) + 1)}))});
  }
};

void define_couple_pairs(OpBuilder& b) {
  const Tensor x = b.in(0);
  const int64_t classes = b.attr_int("classes");
  const DType t = x.dtype();
  b.output(
      0, b.nest("couple", {ValueType::tensor(t, to_shape({x.dim(0), classes}))}, [&](const std::vector<Buffer>& out) {
        const Var row = make_var("row");
        const auto local = [&](const char* name, Dims dims, DType type) {
          return make_buffer(name, type, to_shape(dims), Scope::Stack);
        };
        const Coupling c{classes,
                         t,
                         x,
                         row,
                         local("q", {classes, classes}, t),
                         local("qy", {classes}, t),
                         local("y", {classes}, t),
                         local("pqp", {1}, t),
                         local("gap", {1}, t),
                         local("round", {1}, DType::I64)};
        Stmt body = seq({c.solve(), c.each([&](const Expr& i) { return store(out[0], {row, i}, load(c.y, {i})); })});
        for (const Buffer& buffer : {c.q, c.qy, c.y, c.pqp, c.gap, c.round}) body = alloc(buffer, body);
        return loop(row, x.dim(0), body);
      })[0]);
}

}  // namespace

OpFamily ml_svm_ops() {
  const std::vector<AttrSpec> common = {{"coefficients", {}},
                                        {"kernel_params", {}},
                                        {"kernel_type", std::string("LINEAR")},
                                        {"post_transform", std::string("NONE")},
                                        {"rho", {}},
                                        {"support_vectors", {}}};
  std::vector<AttrSpec> regressor = common, classifier = common;
  regressor.push_back({"n_supports", int64_t(0)});
  regressor.push_back({"one_class", int64_t(0)});
  for (const char* name : {"classlabels_ints", "classlabels_strings", "prob_a", "prob_b", "vectors_per_class"})
    classifier.push_back({name, {}});
  return {
      ml_row("SVMRegressor", 1, regressor, expand_regressor),
      ml_row("SVMClassifier", 1, classifier, expand_classifier),
      {"couple_pairs", 1, {{"classes", int64_t(2)}}, define_couple_pairs, "x", "couple_pairs", "tc"},
  };
}

}  // namespace tc
