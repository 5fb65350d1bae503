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
    Value* root = op("Sqrt", {op("Add", {variance, number(double(n_->attr_float("epsilon", 1e-5f)), "_epsilon")}, "_stable")},
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
  /// The mean over places and the channels of a group, for each channel: [N, 1, 1, C].
  Value* mean_of(Value* x, const std::string& suffix) {
    std::vector<int64_t> places;
    int64_t count = channels_ / groups_;
    Dims whole = {dims_[0]};
    for (size_t d = 1; d + 1 < rank_; ++d) {
      places.push_back(int64_t(d));
      whole.push_back(1);
      count = checked_mul(count, dims_[d + 1]);
    }
    whole.push_back(channels_);
    Value* sum = constant_op(l_.graph(), n_, "ReduceSum", {x, ints(places, suffix + "_places")},
                             derived(base_, suffix + "_sum"), {{"keepdims", int64_t(1)}});
    Value* divisor = number(double(count), "_count");
    if (groups_ == channels_)
      return constant_op(l_.graph(), n_, "Div", {sum, divisor}, derived(base_, suffix));
    const int64_t each = channels_ / groups_;
    Value* parts = reshape(sum, {dims_[0], groups_, each}, suffix + "_groups");
    Value* joined = constant_op(l_.graph(), n_, "ReduceSum", {parts, ints({2}, suffix + "_axis")},
                                derived(base_, suffix + "_joined"), {{"keepdims", int64_t(1)}});
    Value* mean = constant_op(l_.graph(), n_, "Div", {joined, divisor}, derived(base_, suffix + "_of_group"));
    Value* spread = constant_op(l_.graph(), n_, "Expand", {mean, ints({dims_[0], groups_, each}, suffix + "_size")},
                                derived(base_, suffix + "_of_channel"));
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
  if (num_elements(dims_of(n->outputs[0])) == 0 || l.strict()) return false;
  for (const Value* v : n->inputs)
    if (v->type.dtype != t) return false;
  l.replace(n, Normalization(l, n).build());
  return true;
}

}  // namespace tc
