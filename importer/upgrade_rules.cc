// The table of changed definitions. A row is the operator, the version that changed it, and what a node of the version
// before becomes. Versions that only take more types, or have further operands and attributes that may be absent, need no
// row; a test compares the table with ONNX's schemas.
#include <onnx/defs/schema.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "importer/upgrade.h"

namespace tc::importer {

namespace {

// Old attributes that say nothing about the result.

void drop_consumed(Upgrade& u) { u.take("consumed_inputs"); }
void drop_output_sequence(Upgrade& u) { u.take("output_sequence"); }

// Attributes that become operands.

std::vector<int64_t> ints_of(const onnx::AttributeProto& a) { return {a.ints().begin(), a.ints().end()}; }

void ints_to_input(Upgrade& u, const std::string& name, int k) {
  if (const auto a = u.take(name)) u.set_input(k, u.ints(name, ints_of(*a)));
}

void axes_to_input(Upgrade& u) {
  const auto axes = u.take("axes");
  if (axes && axes->ints_size() > 0) u.set_input(1, u.ints("axes", ints_of(*axes)));
}

void reshape_5(Upgrade& u) {
  drop_consumed(u);
  ints_to_input(u, "shape", 1);
}

void slice_10(Upgrade& u) {
  ints_to_input(u, "starts", 1);
  ints_to_input(u, "ends", 2);
  ints_to_input(u, "axes", 3);
}

void pad_2(Upgrade& u) {
  if (auto pads = u.take("paddings")) {
    pads->set_name("pads");
    u.set(*pads);
  }
}

void pad_11(Upgrade& u) {
  const auto value = u.take("value");
  ints_to_input(u, "pads", 1);
  if (value && value->f() != 0) u.set_input(2, u.scalar("value", value->f(), u.element_type(0)));
}

/// A bound that is not given is the largest float, which infinities are cut to; to halves it is infinity itself.
void clip_11(Upgrade& u) {
  const auto low = u.take("min"), high = u.take("max");
  constexpr float kMax = std::numeric_limits<float>::max();
  const float least = low ? low->f() : -kMax, most = high ? high->f() : kMax;
  const bool wide = u.element_type(0) == onnx::TensorProto::FLOAT || u.element_type(0) == onnx::TensorProto::DOUBLE;
  if (wide || least > -kMax) u.set_input(1, u.scalar("min", least, u.element_type(0)));
  if (wide || most < kMax) u.set_input(2, u.scalar("max", most, u.element_type(0)));
}

void top_k_10(Upgrade& u) { u.set_input(1, u.ints("k", {u.take_int("k", 1)})); }

/// Version 1 may have the sizes as an operand already, as floats.
void split_2(Upgrade& u) {
  if (u.has_input(1))
    u.set_input(1, u.add("Cast", {u.node.input(1)}, {attribute("to", int64_t(onnx::TensorProto::INT64))}, "split"));
}

void split_13(Upgrade& u) { ints_to_input(u, "split", 1); }

void split_18(Upgrade& u) {
  if (!u.has_input(1)) u.set(attribute("num_outputs", int64_t(u.node.output_size())));
}

void dft_20(Upgrade& u) { u.set_input(2, u.int_scalar("axis", u.take_int("axis", 1))); }

void upsample_7(Upgrade& u) {
  const auto height = u.take("height_scale"), width = u.take("width_scale");
  u.set_input(1, u.floats("scales", {1, 1, height ? height->f() : 1, width ? width->f() : 1}));
  if (const auto* mode = u.find("mode"); mode && mode->s() == "bilinear")
    u.set(attribute("mode", std::string("linear")));
}

void upsample_9(Upgrade& u) {
  if (const auto scales = u.take("scales"))
    u.set_input(1, u.floats("scales", {scales->floats().begin(), scales->floats().end()}));
}

/// Resize of version 10 reads element index / scale, which is what Upsample does; later versions have no mode that rounds
/// like that. Upsample has a row of its own.
void resize_11(Upgrade& u) { u.node.set_op_type("Upsample"); }

// Values of attributes.

void concat_4(Upgrade& u) {
  if (!u.find("axis")) u.set(attribute("axis", 1));
}

void cast_6(Upgrade& u) {
  const auto to = u.take("to");
  std::string name = to ? to->s() : "";
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char ch) { return char(std::toupper(ch)); });
  onnx::TensorProto::DataType type = onnx::TensorProto::UNDEFINED;
  if (!onnx::TensorProto::DataType_Parse(name, &type) || type == onnx::TensorProto::UNDEFINED)
    throw NoCounterpart{"casts to " + quoted(name) + ", which is no element type"};
  u.set(attribute("to", int64_t(type)));
}

void selu_6(Upgrade& u) {
  drop_consumed(u);
  auto fill = [&](const std::string& name, float value) {
    if (u.find(name)) return;
    onnx::AttributeProto a;
    a.set_name(name);
    a.set_type(onnx::AttributeProto::FLOAT);
    a.set_f(value);
    u.set(a);
  };
  fill("alpha", 1.6732f);
  fill("gamma", 1.0507f);
}

void whole_p(Upgrade& u) {
  const auto p = u.take("p");
  if (!p) return;
  if (p->f() != std::floor(p->f()) || std::fabs(p->f()) > 1e6f)
    throw NoCounterpart{"has an exponent that is no whole number"};
  u.set(attribute("p", int64_t(p->f())));
}

/// The schema's default has a typing error.
void gru_3(Upgrade& u) {
  if (const auto* direction = u.find("direction"); direction && direction->s() == "foward")
    u.set(attribute("direction", std::string("forward")));
}

void grid_sample_20(Upgrade& u) {
  const auto* mode = u.find("mode");
  if (!mode || mode->s() == "bilinear")
    u.set(attribute("mode", std::string("linear")));
  else if (mode->s() == "bicubic")
    u.set(attribute("mode", std::string("cubic")));
}

void roi_align_16(Upgrade& u) { u.set(attribute("coordinate_transformation_mode", std::string("output_half_pixel"))); }

void scatter_11(Upgrade& u) { u.node.set_op_type("ScatterElements"); }

// What changed its meaning.

/// Before version 7 the axes of the second operand begin at `axis` of the first one; without `axis` they are its last.
void broadcast_7(Upgrade& u) {
  const bool broadcast = u.take_int("broadcast", 0) != 0;
  const auto axis = u.take("axis");
  if (!broadcast || !axis) return;
  const int rank = u.rank(0), own = u.rank(1);
  const int64_t first = axis->i() < 0 ? axis->i() + rank : axis->i();
  if (first < 0 || first > rank) throw NoCounterpart{"broadcasts along an axis that its operand does not have"};
  // Only the second operand is repeated.
  for (int k = 0; k < own && first + k < rank; ++k) {
    const auto size = u.known_size(0, int(first) + k), other = u.known_size(1, k);
    if (size && other && *other != *size && *other != 1)
      throw NoCounterpart{"broadcasts an operand along an axis of another size"};
  }
  const int64_t behind = rank - first - own;
  if (behind <= 0) return;  // a single element may stand anywhere
  std::vector<int64_t> axes(static_cast<size_t>(behind));
  for (size_t k = 0; k < axes.size(); ++k) axes[k] = own + int64_t(k);
  u.set_input(1, u.add("Unsqueeze", {u.node.input(1), u.ints("axes", axes)}, {}, "aligned"));
}

void gemm_7(Upgrade& u) { u.take("broadcast"); }

/// Before version 7 a slope of shape [C] belongs to axis 1; now it is broadcast along the last one.
void prelu_7(Upgrade& u) {
  const int rank = u.rank(0);
  if (rank <= 2 || u.rank(1) != 1) return;
  if (const auto own = u.known_size(1, 0); own && *own == 1) return;
  std::vector<int64_t> axes;
  for (int k = 1; k < rank - 1; ++k) axes.push_back(k);
  u.set_input(1, u.add("Unsqueeze", {u.node.input(1), u.ints("axes", axes)}, {}, "slope"));
}

/// Before version 13 the operand counts as a matrix, whose columns begin at the axis.
void softmax_13(Upgrade& u) {
  const auto given = u.take("axis");
  const int64_t axis = given ? given->i() : 1;
  u.set(attribute("axis", -1));
  const std::optional<int> rank = u.known_rank(0);
  if (axis == -1 || (rank && axis == *rank - 1)) return;
  const std::string x = u.node.input(0);
  const std::string shape = u.add("Shape", {x}, {}, "shape");
  u.set_input(0, u.add("Flatten", {x}, {attribute("axis", axis)}, "matrix"));
  u.finish_output(0, "Reshape", {shape}, {attribute("allowzero", 1)});  // a size may be 0
}

/// Version 1 repeats along one axis: `tiles` and `axis` are operands with one element.
void tile_6(Upgrade& u) {
  const std::string x = u.node.input(0);
  auto whole = [&](int k, const std::string& label) {
    const auto to = attribute("to", int64_t(onnx::TensorProto::INT64));
    return u.add("Reshape", {u.add("Cast", {u.node.input(k)}, {to}, label), u.ints("one", {1})}, {}, label);
  };
  const std::string tiles = whole(1, "tiles"), axis = whole(2, "axis");
  const std::string ones = u.ints("ones", std::vector<int64_t>(size_t(u.rank(0)), 1));
  const std::string repeats = u.add("ScatterElements", {ones, axis, tiles}, {}, "repeats");
  u.keep_inputs(1);
  u.set_input(1, repeats);
}

/// Until version 6 there is an attribute for inference, from 12 on an operand for training; in between it is inference.
void dropout_12(Upgrade& u) {
  const auto test = u.take("is_test"), ratio = u.take("ratio");
  const bool training = u.from < 7 && (!test || test->i() == 0);
  if (training) {
    u.set_input(1, u.scalar("ratio", ratio ? ratio->f() : 0.5, onnx::TensorProto::FLOAT));
    u.set_input(2, u.bool_scalar("training", true));
  }
  if (u.from < 10 && u.has_output(1)) u.finish_output(1, "Cast", {}, {attribute("to", int64_t(u.element_type(0)))});
}

constexpr UpgradeRule kRules[] = {
    // version 2 to 5
    {"GlobalLpPool", 2, whole_p},
    {"LpPool", 2, whole_p},
    {"Pad", 2, pad_2},
    {"Split", 2, split_2},
    {"GRU", 3, gru_3},
    {"Concat", 4, concat_4},
    {"Reshape", 5, reshape_5},
    // version 6
    {"Abs", 6, drop_consumed},
    {"Add", 6, drop_consumed},
    {"BatchNormalization", 6, drop_consumed},
    {"Cast", 6, cast_6},
    {"Ceil", 6, drop_consumed},
    {"Clip", 6, drop_consumed},
    {"Div", 6, drop_consumed},
    {"Dropout", 6, drop_consumed},
    {"Elu", 6, drop_consumed},
    {"Exp", 6, drop_consumed},
    {"Floor", 6, drop_consumed},
    {"HardSigmoid", 6, drop_consumed},
    {"InstanceNormalization", 6, drop_consumed},
    {"LeakyRelu", 6, drop_consumed},
    {"Log", 6, drop_consumed},
    {"Max", 6, drop_consumed},
    {"Mean", 6, drop_consumed},
    {"Min", 6, drop_consumed},
    {"Mul", 6, drop_consumed},
    {"Neg", 6, drop_consumed},
    {"PRelu", 6, drop_consumed},
    {"Reciprocal", 6, drop_consumed},
    {"Relu", 6, drop_consumed},
    {"Selu", 6, selu_6},
    {"Sigmoid", 6, drop_consumed},
    {"Sqrt", 6, drop_consumed},
    {"Sub", 6, drop_consumed},
    {"Sum", 6, drop_consumed},
    {"Tanh", 6, drop_consumed},
    {"Tile", 6, tile_6},
    // version 7
    {"Add", 7, broadcast_7},
    {"And", 7, broadcast_7},
    {"Div", 7, broadcast_7},
    {"Equal", 7, broadcast_7},
    {"GRU", 7, drop_output_sequence},
    {"Gemm", 7, gemm_7},
    {"Greater", 7, broadcast_7},
    {"LSTM", 7, drop_output_sequence},
    {"Less", 7, broadcast_7},
    {"Mul", 7, broadcast_7},
    {"Or", 7, broadcast_7},
    {"PRelu", 7, prelu_7},
    {"Pow", 7, broadcast_7},
    {"RNN", 7, drop_output_sequence},
    {"Sub", 7, broadcast_7},
    {"Upsample", 7, upsample_7},
    {"Xor", 7, broadcast_7},
    // version 9 to 12
    {"Scan", 9, batch_scan},
    {"Upsample", 9, upsample_9},
    {"Slice", 10, slice_10},
    {"TopK", 10, top_k_10},
    {"Clip", 11, clip_11},
    {"Pad", 11, pad_11},
    {"Resize", 11, resize_11},
    {"Scatter", 11, scatter_11},
    {"Dropout", 12, dropout_12},
    // version 13 to 16
    {"Hardmax", 13, softmax_13},
    {"LogSoftmax", 13, softmax_13},
    {"ReduceSum", 13, axes_to_input},
    {"Softmax", 13, softmax_13},
    {"Split", 13, split_13},
    {"Squeeze", 13, axes_to_input},
    {"Unsqueeze", 13, axes_to_input},
    {"BatchNormalization", 14, normalize_batch},
    {"RoiAlign", 16, roi_align_16},
    // from version 18 on
    {"ReduceL1", 18, axes_to_input},
    {"ReduceL2", 18, axes_to_input},
    {"ReduceLogSum", 18, axes_to_input},
    {"ReduceLogSumExp", 18, axes_to_input},
    {"ReduceMax", 18, axes_to_input},
    {"ReduceMean", 18, axes_to_input},
    {"ReduceMin", 18, axes_to_input},
    {"ReduceProd", 18, axes_to_input},
    {"ReduceSumSquare", 18, axes_to_input},
    {"Split", 18, split_18},
    {"DFT", 20, dft_20},
    {"GridSample", 20, grid_sample_20},
    {"GroupNormalization", 21, repeat_for_groups},
};

}  // namespace

std::span<const UpgradeRule> upgrade_rules() { return kRules; }

}  // namespace tc::importer
