#include "passes/program/kernel_name.h"

#include <algorithm>
#include <cstdlib>

#include "ir/open_size.h"
#include "support/text.h"

namespace tc {
namespace {

// Operators of several stages: the last one names them, the ones before it say nothing more to a reader of names.
struct Steps {
  std::string_view last;
  std::vector<std::string_view> inner;
};

const Steps* steps_of(std::string_view name) {
  static const std::vector<Steps> table = {
      {"softmax", {"max", "exp", "sum"}},
      {"log_softmax", {"max", "shift", "exp", "sum", "log_sum_exp"}},
      {"layer_norm", {"sum", "mean", "squared_deviation", "variance", "inv_std_dev"}},
      {"rms_norm", {"sum", "sum_of_squares", "mean", "inv_rms"}},
      {"instance_norm", {"sum", "mean", "squared_deviation", "variance", "inv_std_dev"}},
      {"group_norm", {"sum", "mean", "squared_deviation", "variance", "inv_std_dev"}},
      {"reduce_mean", {"sum"}},
  };
  for (const Steps& s : table)
    if (s.last == name) return &s;
  return nullptr;
}

bool contains(const std::vector<std::string_view>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// "8"; of a size without an upper bound "n", "2n", "nplus2".
std::string size_word(int64_t d) {
  const OpenNumber o = open_number(d);
  if (o.times == 0) return to_text(d);
  const std::string n = (o.times == 1 ? "" : to_text(o.times)) + "n";
  return n + (o.rest == 0 ? "" : (o.rest < 0 ? "minus" : "plus") + to_text(std::abs(o.rest)));
}

std::string sizes(const Dims& dims) {
  std::vector<std::string> parts;
  for (const int64_t d : dims)
    if (d != 1) parts.push_back(size_word(d));
  return parts.empty() ? "1" : join(parts, "x");
}

// "k3x3" of a window: the reduction axes named kh, kw, ...; of the first one that is larger than a pixel, if one is.
std::string window(const TensorFn& fn) {
  std::vector<std::string> k;
  bool large = false;
  for (const Stage& s : fn.stages) {
    if (s.kind != Stage::Kind::Reduce || large) continue;
    std::vector<std::string> here;
    for (const Axis& a : s.raxes)
      if (a.var->name.starts_with("k") && a.var->name.size() == 2 && a.extent.value > 0) {
        here.push_back(to_text(a.extent.value));
        large = large || a.extent.value > 1;
      }
    if (k.empty() || large) k = here;
  }
  if (k.empty()) return "";
  bool square = true;
  for (const std::string& x : k) square = square && x == k[0];
  return "_k" + (square ? k[0] : join(k, "x"));
}

}  // namespace

std::vector<std::string> stage_names(const TensorFn& fn) {
  std::vector<std::string> names;
  for (const Stage& s : fn.stages) {
    if (const Steps* known = steps_of(s.name))
      while (!names.empty() && contains(known->inner, names.back())) names.pop_back();
    names.push_back(s.name);
  }
  std::vector<std::string> counted;
  for (size_t i = 0; i < names.size();) {
    size_t n = 1;
    while (i + n < names.size() && names[i + n] == names[i]) n++;
    counted.push_back(names[i] + (n > 1 ? "_x" + to_text(int64_t(n)) : ""));
    i += n;
  }
  return counted;
}

std::string kernel_name(const TensorFn& fn, const std::string& key, const std::string& name) {
  std::string stem = make_identifier(name.empty() ? join(stage_names(fn), "_") : name, 200);
  for (char& c : stem)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  const Buffer& y = fn.outputs.at(0);
  const DType t = y->dtype;
  std::string tail;
  if (!fn.inputs.empty()) tail += "_" + sizes(static_dims(fn.inputs[0]->shape));
  const std::string out = sizes(static_dims(y->shape));
  if (fn.inputs.empty() || out != sizes(static_dims(fn.inputs[0]->shape))) tail += "_" + out;
  tail += window(fn);
  if (t != DType::F32) tail += "_" + std::string(info(t).name);
  tail += "_" + hex(hash_text(key) >> 16, 4);
  const size_t limit = tail.size() < 40 ? 63 - tail.size() : 23;
  if (stem.size() > limit) {
    stem = stem.substr(0, limit);
    while (!stem.empty() && stem.back() == '_') stem.pop_back();
  }
  const std::string whole = stem + tail;
  return whole.size() <= 63 ? whole : whole.substr(0, 58) + "_" + hex(hash_text(key) >> 16, 4);
}

}  // namespace tc
