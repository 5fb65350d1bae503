// GroupNormalization and InstanceNormalization in channels last. Their sums run over the places of an image, where
// neighbouring channels fill the lanes of vectors; the few sums that channels have are joined by groups afterwards.
//   y = GroupNormalization(x, scale, bias) {num_groups = g}     x [N, H, W, C]   ->
//     m = sum(x over H, W) [N, 1, 1, C], joined by groups, / count        d = x - m
//     v = sum(d * d over H, W), joined by groups, / count                 y = d * (scale / sqrt(v + epsilon)) + bias
// Statistics are taken in two passes, as everywhere: the mean, then the mean of the squared differences.
#include "ir/dtype.h"
#include "passes/graph/layout.h"

namespace tc {

namespace {

class Normalization {
 public:
  Normalization(Layouts& l, Node* n)
      : l_(l), n_(n), dims_(dims_of(n->outputs[0])), rank_(dims_.size()), base_(n->outputs[0]->name) {
    channels_ = dims_[1];
    groups_ = n->is("InstanceNormalization") ? channels_ : n->attr_int("num_groups", 0);
  }

  Value* build() {
    Value* x = l_.last(n_->inputs[0], n_);
    Value* mean = mean_of(x, "_mean");
    // Differences are computed twice, so that no kernel has to store them for another.
    Value* difference = op("Sub", {x, mean}, "_difference");
    Value* variance = mean_of(op("Mul", {difference, difference}, "_squares"), "_variance");
    Value* root =
        op("Sqrt", {op("Add", {variance, number(double(n_->attr_float("epsilon", 1e-5f)), "_epsilon")}, "_stable")},
           "_deviation");
    Value* factor = op("Div", {per_channel(n_->inputs[1], "_scale"), root}, "_factor");
    Value* scaled = op("Mul", {op("Sub", {x, mean}, "_centered"), factor}, "_scaled");
    return constant_op(l_.graph(), n_, "Add", {scaled, per_channel(n_->inputs[2], "_bias")}, Layouts::name_for(n_));
  }

 private:
  Value* op(const char* name, std::vector<Value*> in, const char* suffix, Attrs attrs = {}) {
    return constant_op(l_.graph(), n_, name, std::move(in), derived(base_, suffix), std::move(attrs));
  }
  Value* ints(const std::vector<int64_t>& v, const std::string& name) {
    return l_.graph().add_constant(derived(base_, name), int64_constant(v));
  }
  Value* number(double v, const char* name) {
    const Constant c = scalar_constant(n_->outputs[0]->type.dtype, v);
    return l_.graph().add_constant(derived(base_, name), c);
  }
  Value* reshape(Value* v, const Dims& dims, const std::string& suffix) {
    return constant_op(l_.graph(), n_, "Reshape", {v, ints(dims, suffix + "_shape")}, derived(base_, suffix));
  }
  /// [C] -> [1, 1, C]: it broadcasts.
  Value* per_channel(Value* v, const std::string& suffix) {
    Dims d(rank_ - 1, 1);
    d.back() = channels_;
    return reshape(v, d, suffix);
  }
  Value* sum_over(Value* x, const std::vector<int64_t>& axes, const std::string& suffix) {
    return constant_op(l_.graph(), n_, "ReduceSum", {x, ints(axes, suffix + "_axes")}, derived(base_, suffix),
                       {{"keepdims", int64_t(0)}});
  }
  /// The sum over places, for each channel: [N, C]. Rows of an image are added up one by one, so that sums stay short,
  /// which rounds less, and are shared among threads.
  Value* sum_of(Value* x, const std::string& suffix) {
    std::vector<int64_t> outer;
    for (size_t d = 1; d + 2 < rank_; ++d) outer.push_back(int64_t(d));
    if (outer.empty()) return sum_over(x, {1}, suffix + "_sum");
    return sum_over(sum_over(x, {int64_t(rank_) - 2}, suffix + "_rows"), outer, suffix + "_sum");
  }
  /// The mean over places and the channels of a group, for each channel: [N, 1, 1, C]. It ends with a Reshape and with it a
  /// kernel: what reads the mean may then be shared among threads, and be padded.
  Value* mean_of(Value* x, const std::string& suffix) {
    const int64_t each = channels_ / groups_;
    int64_t count = each;
    Dims whole(rank_, 1);
    whole.front() = dims_[0];
    whole.back() = channels_;
    for (size_t d = 2; d < rank_; ++d) count = checked_mul(count, dims_[d]);
    Value* sum = sum_of(x, suffix);
    Value* divisor = number(double(count), "_count");
    const std::string channel = suffix + "_of_channel", group = suffix + "_of_group";
    if (each == 1)
      return reshape(constant_op(l_.graph(), n_, "Div", {sum, divisor}, derived(base_, channel)), whole, suffix);
    Value* joined = sum_over(reshape(sum, {dims_[0], groups_, each}, suffix + "_groups"), {2}, suffix + "_joined");
    Value* mean = reshape(constant_op(l_.graph(), n_, "Div", {joined, divisor}, derived(base_, group)),
                          {dims_[0], groups_, 1}, group + "s");
    Value* spread = constant_op(l_.graph(), n_, "Expand", {mean, ints({dims_[0], groups_, each}, channel + "_size")},
                                derived(base_, channel));
    return reshape(spread, whole, suffix);
  }

  Layouts& l_;
  Node* n_;
  const Dims dims_;
  const size_t rank_;
  const ModelText base_;
  int64_t channels_ = 0, groups_ = 0;
};

}  // namespace

bool follow_normalization(Layouts& l, Node* n) {
  if (!n->is("GroupNormalization") && !n->is("InstanceNormalization")) return false;
  const DType t = n->outputs[0]->type.dtype;
  if (rank_of(n->outputs[0]) < 3 || (t != DType::F32 && t != DType::F64)) return false;
  if (has_no_elements(dims_of(n->outputs[0])) || l.strict()) return false;
  for (const Value* v : n->inputs)
    if (v->type.dtype != t) return false;
  l.replace(n, Normalization(l, n).build());
  return true;
}

}  // namespace tc
