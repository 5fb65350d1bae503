// first_slice: a function at index 0 of one axis of its result.
//
//   t[i, j] = a[i, j] + 1    y[i, n] = sum(j) t[i, j] * w[j, n]      ->
//   t[j] = a[0, j] + 1       y[n] = sum(j) t[j] * w[j, n]            with extents of 1 for i
//
// From the last stage to the first: a stage whose results are wanted at index 0 of an axis has that axis of one element, and 0 in
// place of its variable. What it then reads at that very index of a result of another stage is all that is wanted of this.
#include "passes/program/first_slice.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/row_major.h"

namespace tc {
namespace {

class Slicer {
 public:
  explicit Slicer(const TensorFn& fn) : fn_(fn) {}

  std::optional<TensorFn> run(int axis) {
    if (fn_.outputs.size() != 1 || !producer(fn_, fn_.outputs[0])) return {};
    want(fn_.outputs[0], {axis});
    for (size_t k = fn_.stages.size(); k-- > 0;) {
      Stage& s = fn_.stages[k];
      if (s.kind == Stage::Kind::Nest || s.scan >= 0 || s.outputs.size() != 1) return {};
      slice(s);
    }
    shrink();
    return std::move(fn_);
  }

 private:
  // Index 0 is enough along these axes, as far as one reader says.
  void want(const Buffer& b, const std::set<int>& axes) {
    const auto [it, first] = wanted_.try_emplace(b.get(), axes);
    if (!first) std::erase_if(it->second, [&](int a) { return axes.count(a) == 0; });
  }

  void slice(Stage& s) {
    const std::set<int> axes = wanted_[s.outputs[0].get()];
    VarMap zero;
    for (const int a : axes) {
      zero[s.axes[size_t(a)].var.get()] = Expr(0);
      s.axes[size_t(a)].extent = Dim(1);
    }
    for (Exprs* list : {&s.values, &s.init})
      for (Expr& e : *list) {
        if (!e) continue;
        walk(e, [&](const Expr& x) {
          const Load* l = as<Load>(x);
          if (!l) return true;
          std::set<int> at;
          for (size_t k = 0; k < l->index.size(); k++) {
            const VarRef* v = as<VarRef>(l->index[k]);
            if (v && zero.count(v->var.get()) != 0) at.insert(int(k));
          }
          want(l->buffer, at);
          return true;
        });
        e = simplify(substitute(e, zero));
      }
  }

  // An operand lies where it is: only what has nothing in front of it can be said to be shorter.
  static Buffer of_one(const Buffer& b, const std::set<int>& axes) {
    BufferDef def = *b;
    for (const int a : axes) {
      const auto is_one = [](const Dim& d) { return d.value == 1; };
      if (b->strides.empty() && std::all_of(b->shape.begin(), b->shape.begin() + a, is_one))
        def.shape[size_t(a)] = Dim(1);
    }
    return def.shape == b->shape ? b : std::make_shared<const BufferDef>(std::move(def));
  }

  // The result's elements stay where those of a whole one lie.
  static void keep_in_place(BufferDef& def, int axis) {
    const Dims dims = static_dims(def.shape);
    if (def.strides.empty() && num_elements(Dims(dims.begin(), dims.begin() + axis)) > 1) def.strides = row_major(dims);
  }

  // Buffers as long as what is computed of them.
  void shrink() {
    BufferMap to;
    for (Stage& s : fn_.stages) {
      const std::set<int>& axes = wanted_[s.outputs[0].get()];
      if (axes.empty()) continue;
      BufferDef def = *s.outputs[0];
      if (s.outputs[0] == fn_.outputs[0]) keep_in_place(def, *axes.begin());
      for (const int a : axes) def.shape[size_t(a)] = Dim(1);
      const Buffer less = std::make_shared<const BufferDef>(std::move(def));
      to[s.outputs[0].get()] = less;
      s.outputs[0] = less;
    }
    for (Buffer& b : fn_.inputs)
      if (const auto it = wanted_.find(b.get()); it != wanted_.end()) b = to[b.get()] = of_one(b, it->second);
    for (Stage& s : fn_.stages)
      for (Exprs* list : {&s.values, &s.init})
        for (Expr& e : *list)
          if (e) e = substitute_buffers(e, to);
    fn_.outputs[0] = to.at(fn_.outputs[0].get());
  }

  TensorFn fn_;
  std::map<const BufferDef*, std::set<int>> wanted_;  // looked up only
};

}  // namespace

std::optional<TensorFn> first_slice(const TensorFn& fn, int axis) { return Slicer(fn).run(axis); }

}  // namespace tc
