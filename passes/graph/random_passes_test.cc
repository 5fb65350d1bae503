// Random graphs under random sequences of passes: the order of the pipeline is one of many, passes can be disabled and run
// twice, and none may change a result. Values are small integers, so that no sum rounds; only zeros may change their sign
// (a factor -1 goes into weights). Sizes are awkward on
// purpose, 1 among them.
#include <algorithm>

#include "ir/test_random.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/test_graph.h"

namespace tc::random_passes_test {
namespace {

using testing::Dice;

// A graph of about ten nodes. Magnitudes are followed: every sum stays exact in single precision.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : d_(seed) {}

  Graph take() {
    const int64_t n = 1 + d_.below(2), c = d_.pick(kSizes), h = 2 + d_.below(5), w = 2 + d_.below(5);
    add(t_.in("x", {n, c, h, w}), 3);
    add(t_.in("z", {d_.pick(kSizes), 1 + d_.below(4)}), 3);
    const int64_t nodes = 6 + d_.below(8);
    for (int64_t i = 0; i < nodes; i++) node();
    std::vector<Value*> outputs;
    for (const Known& k : values_)
      if (!k.v->producer ? d_.below(8) == 0 : k.v->users.empty() || d_.below(5) == 0) outputs.push_back(k.v);
    if (outputs.empty()) outputs.push_back(values_.back().v);
    return t_.out(outputs);
  }

 private:
  struct Known {
    Value* v;
    double largest;
  };
  static inline const std::vector<int64_t> kSizes{1, 2, 3, 5, 8};

  std::string name() { return "v" + to_text(++count_); }
  void add(Value* v, double largest) { values_.push_back({v, largest}); }
  const Known& any() { return values_[size_t(d_.below(int64_t(values_.size())))]; }
  // Of that rank, made if there is none.
  Known of_rank(size_t rank) {
    std::vector<Known> fit;
    for (const Known& k : values_)
      if (dims_of(k.v).size() == rank) fit.push_back(k);
    if (!fit.empty()) return d_.pick(fit);
    return {t_.in(name(), Dims(rank, 2)), 3};
  }

  void node() {
    switch (d_.below(14)) {
      case 0:
      case 1: return unary();
      case 2:
      case 3:
      case 4: return binary();
      case 5: return transpose();
      case 6: return reshape();
      case 7: return conv();
      case 8: return pool();
      case 9: return product();
      case 10: return reduce();
      case 11: return concat();
      case 12: return slice();
      default: return pad();
    }
  }

  void unary() {
    const Known x = any();
    add(t_.op(name(), d_.pick(std::vector<std::string>{"Relu", "Neg", "Abs", "Identity", "Sign"}), {x.v}), x.largest);
  }

  void binary() {
    const Known x = any();
    const std::string op = d_.pick(std::vector<std::string>{"Add", "Sub", "Mul", "Max", "Min"});
    Dims dims = dims_of(x.v);
    Known y{nullptr, 3};
    const int64_t kind = d_.below(4);
    if (kind == 0) {
      std::vector<Known> same;
      for (const Known& k : values_)
        if (dims_of(k.v) == dims) same.push_back(k);
      y = d_.pick(same);
    } else if (kind == 1) {
      y.v = t_.scalar(name(), double(d_.below(5)) - 1);
    } else {
      for (int64_t& n : dims)
        if (d_.below(2)) n = 1;
      while (!dims.empty() && d_.below(3) == 0) dims.erase(dims.begin());
      y.v = t_.weight(name(), dims);
    }
    const double largest = op == "Mul" ? x.largest * y.largest : x.largest + y.largest;
    if (largest > 4e3) return;
    std::vector<Value*> operands{x.v, y.v};
    if (d_.below(4) == 0) std::swap(operands[0], operands[1]);
    add(t_.op(name(), op, operands), largest);
  }

  void transpose() {
    const Known x = any();
    std::vector<int64_t> order;
    for (size_t i = 0; i < dims_of(x.v).size(); i++) order.push_back(int64_t(i));
    for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[size_t(d_.below(int64_t(i)))]);
    add(t_.op(name(), "Transpose", {x.v}, {{"perm", order}}), x.largest);
  }

  void reshape() {
    const Known x = any();
    Dims dims = dims_of(x.v);
    const size_t at = size_t(d_.below(int64_t(dims.size())));
    if (dims.size() > 1 && d_.below(2)) {  // two axes become one
      const size_t i = std::min(at, dims.size() - 2);
      dims[i] *= dims[i + 1];
      dims.erase(dims.begin() + std::ptrdiff_t(i) + 1);
    } else if (dims.size() < 5) {  // one becomes two
      const int64_t part = dims[at] % 2 == 0 && d_.below(2) ? 2 : 1;
      dims[at] /= part;
      dims.insert(dims.begin() + std::ptrdiff_t(at), part);
    }
    add(t_.op(name(), "Reshape", {x.v, t_.ints(name(), dims)}), x.largest);
  }

  void conv() {
    const Known x = of_rank(4);
    const Dims dims = dims_of(x.v);
    const bool depthwise = d_.below(3) == 0;
    const int64_t k = std::min<int64_t>(1 + d_.below(3), std::min(dims[2], dims[3])),
                  oc = depthwise ? dims[1] : d_.pick(kSizes);
    const int64_t per = depthwise ? 1 : dims[1], stride = 1 + d_.below(2), pad = d_.below(2);
    const double largest = x.largest * 2 * double(per * k * k) + 3;
    if (largest > 4e4 || num_elements(dims) > 4000) return;
    std::vector<Value*> operands{x.v, t_.weight(name(), {oc, per, k, k}, -1, 3)};
    if (d_.below(2)) operands.push_back(t_.weight(name(), {oc}));
    add(t_.op(name(), "Conv", operands,
              {{"group", depthwise ? dims[1] : int64_t(1)},
               {"strides", std::vector<int64_t>{stride, stride}},
               {"pads", std::vector<int64_t>{pad, 0, pad, pad}},
               {"kernel_shape", std::vector<int64_t>{k, k}}}),
        largest);
  }

  void pool() {
    const Known x = of_rank(4);
    const Dims dims = dims_of(x.v);
    const int64_t k = std::min<int64_t>(2, std::min(dims[2], dims[3]));
    add(t_.op(name(), "MaxPool", {x.v},
              {{"kernel_shape", std::vector<int64_t>{k, k}}, {"strides", std::vector<int64_t>{1 + d_.below(2), 1}}}),
        x.largest);
  }

  void product() {
    const Known x = any();
    const Dims dims = dims_of(x.v);
    const int64_t k = dims.back();
    const double largest = x.largest * 3 * double(k);
    if (dims.size() < 2 || largest > 4e4) return;
    add(t_.op(name(), "MatMul", {x.v, t_.weight(name(), {k, d_.pick(kSizes)})}), largest);
  }

  void reduce() {
    const Known x = any();
    const Dims dims = dims_of(x.v);
    const size_t axis = size_t(d_.below(int64_t(dims.size())));
    const bool sums = d_.below(2) == 0;
    const double largest = sums ? x.largest * double(dims[axis]) : x.largest;
    if (largest > 4e4 || dims.size() < 2) return;
    add(t_.op(name(), sums ? "ReduceSum" : "ReduceMax", {x.v, t_.ints(name(), {int64_t(axis)})},
              {{"keepdims", d_.below(2)}}),
        largest);
  }

  void concat() {
    const Known x = any();
    const Dims dims = dims_of(x.v);
    const int64_t axis = d_.below(int64_t(dims.size()));
    Dims other = dims;
    other[size_t(axis)] = 1 + d_.below(3);
    add(t_.op(name(), "Concat", {x.v, d_.below(2) ? x.v : t_.weight(name(), other)}, {{"axis", axis}}),
        std::max(x.largest, 3.0));
  }

  void slice() {
    const Known x = any();
    const Dims dims = dims_of(x.v);
    const int64_t axis = d_.below(int64_t(dims.size())), n = dims[size_t(axis)];
    const int64_t begin = d_.below(n), end = begin + 1 + d_.below(n - begin);
    add(t_.op(name(), "Slice",
              {x.v, t_.ints(name(), {begin}), t_.ints(name(), {end}), t_.ints(name(), {axis}),
               t_.ints(name(), {1 + d_.below(2)})}),
        x.largest);
  }

  void pad() {
    const Known x = any();
    std::vector<int64_t> pads;
    for (size_t i = 0; i < 2 * dims_of(x.v).size(); i++) pads.push_back(d_.below(3) == 0);
    add(t_.op(name(), "Pad", {x.v, t_.ints(name(), pads), t_.scalar(name(), double(d_.below(3)) - 1)}), x.largest + 1);
  }

  Dice d_;
  TestGraph t_;
  std::vector<Known> values_;
  int64_t count_ = 0;
};

// Random passes of the pipeline between two of it; each leaves a sound graph with the same results.
class Sequence {
 public:
  Sequence(const Graph& before, Dice& d, std::string what)
      : before_(before), g_(before.clone()), d_(d), what_(std::move(what)) {}

  void some(const std::vector<PassInfo>& list, int64_t at_most) {
    for (int64_t k = d_.below(at_most + 1); k > 0 && !::testing::Test::HasFatalFailure(); k--) one(d_.pick(list));
  }
  void one(const PassInfo& p) {
    what_ += std::string(p.name) + "\n";
    SCOPED_TRACE(what_);
    ASSERT_NO_THROW(p.run(g_, cx_)) << to_text(before_) << to_text(g_);
    ASSERT_NO_THROW(verify(g_)) << to_text(before_) << to_text(g_);
    ASSERT_NO_FATAL_FAILURE(expect_same(before_, g_, 7, 1e-30)) << to_text(before_) << to_text(g_);
    ASSERT_FALSE(::testing::Test::HasNonfatalFailure()) << to_text(before_) << to_text(g_);
  }

 private:
  const Graph& before_;
  Graph g_;
  Dice& d_;
  std::string what_;
  TestTarget target_;
  PassContext& cx_ = target_.cx;
};

TEST(RandomPasses, KeepResultsInAnyOrder) {
  const std::vector<PassInfo>& all = graph_passes();
  const auto middle = std::find_if(all.begin(), all.end(), [](const PassInfo& p) { return p.name == "to_functions"; });
  ASSERT_NE(middle, all.end());
  const std::vector<PassInfo> operators(all.begin(), middle), functions(middle + 1, all.end());
  for (uint64_t seed = 0; seed < 200; seed++) {
    Dice d(seed + 77);
    const Graph g = RandomGraph(seed).take();
    Sequence s(g, d, "seed " + to_text(int64_t(seed)) + "\n");
    s.one(all.front());  // dynamic_to_static
    s.some(operators, 12);
    if (!HasFatalFailure()) s.one(*middle);
    s.some(functions, 6);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace tc::random_passes_test
