// Normalisations whose operands had other shapes, or that trained where later versions ask for it.
#include "importer/upgrade.h"

namespace tc::importer {

namespace {

/// Statistics of every element, shapes [C, H, W ...]: (x - mean) / sqrt(var + epsilon) * scale + bias.
void normalize_each_element(Upgrade& u, float epsilon) {
  const auto in = [&](int k) { return u.node.input(k); };
  const std::string small = u.scalar("epsilon", epsilon, u.element_type(0));
  const std::string moved = u.add("Sub", {in(0), in(3)}, {}, "centred");
  const std::string deviation = u.add("Sqrt", {u.add("Add", {in(4), small}, {}, "variance")}, {}, "deviation");
  const std::string scaled = u.add("Mul", {u.add("Div", {moved, deviation}, {}, "normalised"), in(1)}, {}, "scaled");
  u.make_output(0, "Add", {scaled, in(2)});
  u.dropped = true;
}

}  // namespace

/// Until version 13 a node with more outputs than the first one trains, unless `is_test` (until 6) says otherwise;
/// until 8 `spatial = 0` means statistics of every element.
void normalize_batch(Upgrade& u) {
  const bool test = u.take_int("is_test", 0) != 0;
  const bool spatial = u.take_int("spatial", 1) != 0;
  bool training = false;
  for (int k = 1; k < u.node.output_size(); ++k) training = training || u.has_output(k);
  if (test) training = false;  // the other outputs are not filled then
  if (training && !spatial) throw NoCounterpart{"trains with statistics of every place, which is not supported"};
  if (training && (u.is_used(3) || u.is_used(4)))
    throw NoCounterpart{"gives its saved statistics, which is not supported"};
  u.keep_outputs(training ? 3 : 1);
  if (training) u.set(attribute("training_mode", 1));
  if (!spatial) {
    const auto* epsilon = u.find("epsilon");
    normalize_each_element(u, epsilon ? epsilon->f() : 1e-5f);
  }
}

/// Before version 21 there is a scale and a bias for each group, since then for each channel.
void repeat_for_groups(Upgrade& u) {
  const auto* groups = u.find("num_groups");
  const int64_t n = groups ? groups->i() : 0, channels = u.size(0, 1);
  if (n <= 0 || channels % n) throw NoCounterpart{"has channels that are no multiple of num_groups"};
  if (n == channels) return;
  const std::string column = u.ints("column", {-1, 1}), each = u.ints("each", {n, channels / n}),
                    flat = u.ints("flat", {-1});
  for (const int k : {1, 2}) {
    const std::string as_column = u.add("Reshape", {u.node.input(k), column}, {}, "group");
    const std::string repeated = u.add("Expand", {as_column, each}, {}, "repeated");
    u.set_input(k, u.add("Reshape", {repeated, flat}, {}, k == 1 ? "scale" : "bias"));
  }
}

}  // namespace tc::importer
