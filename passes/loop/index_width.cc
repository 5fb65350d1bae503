#include "passes/loop/index_width.h"

#include "ir/loop/linear.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

constexpr int64_t kMost = INT32_MAX / 2;

bool is_large(const Range& r) { return bounded(r) && (r.max > kMost || r.min < -kMost); }

class IndexWidth {
 public:
  explicit IndexWidth(const std::vector<For>& around = {}) {
    for (const For& f : around) loop(f);
  }

  bool of(const Stmt& body) {
    walk(
        body,
        [&](const Stmt& s) {
          if (const For* f = as<For>(s)) loop(*f);
          if (const Let* l = as<Let>(s); l && l->value->dtype == DType::I64 && !l->value->vector)
            ranges_[l->var.get()] = interval(l->value, ranges_);
          return !wide_;
        },
        [&](const Expr& e) {
          wide_ = wide_ || (is_count(e) && is_large(interval(e, ranges_)));
          return !wide_;
        });
    return wide_;
  }

 private:
  void loop(const For& f) {
    const Range extent = interval(f.extent, ranges_);
    const Range values = loop_range(f, ranges_);
    wide_ = wide_ || is_large(extent) || is_large(values);
    ranges_[f.var.get()] = values;
  }

  /// Arithmetic on loop variables; numbers that are read from tensors are data, whatever their size.
  static bool is_count(const Expr& e) {
    if (!as<Apply>(e) || e->dtype != DType::I64 || e->vector) return false;
    bool counts = false, reads = false;
    walk(e, [&](const Expr& x) {
      counts = counts || as<VarRef>(x);
      reads = reads || as<Load>(x);
      return !reads;
    });
    return counts && !reads;
  }

  Ranges ranges_;  // variables are bound once
  bool wide_ = false;
};

}  // namespace

bool needs_wide_index(const Kernel& k) {
  for (const Param& p : k.params)
    if (num_elements(p.dims) > kMost) return true;
  for (const DeviceFunction& f : k.device)
    if (IndexWidth(f.host_loops).of(f.body)) return true;
  return k.scratch_bytes > kMost || IndexWidth().of(k.body);
}

}  // namespace tc
