// Windows over images with channels last: pooling, depthwise convolutions. A thread has four neighbouring channels of a
// pixel, eight of halves, and reads them up to 16 bytes at a time; two, where the GPU would be idle otherwise.
//
//   acc[0..3] = init
//   for the points of the window:
//     if inside the image: x_v[0..3] = x[h][w][c ..]       else what the padding says
//     acc[j] += x_v[j] * weight_v[j]                       weights packed with the channel innermost
//   y[c ..] = epilogue(acc)
#include <tuple>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cuda/template.h"
#include "templates/packed.h"

namespace tc {
namespace {

constexpr int64_t kUnrolled = 25,
                  kMostUnrolled = 64;             // points of a window that are written out: the model's, and at most
constexpr int64_t kBusyThreads = 256;             // of a multiprocessor, to hide the latency of its reads
constexpr int64_t kLargest = 256;                 // windows beyond are reductions of an image, and so are
constexpr int64_t kLong = 16, kFewThreads = 512;  // long ones with few results

class Window {
 public:
  Window(const Canonical& c, const CudaArgs& a) : c_(c), a_(a) {}

  // Channels are innermost, four or eight of them always together.
  bool fits() {
    std::vector<int64_t> possible;
    for (const int64_t n : {2, 4, 8})
      if (fits_vector(n)) possible.push_back(n);
    if (possible.empty() || possible.back() == 2) return false;
    vector_ = a_.plan.number(
        "channels",
        [&] {
          size_t k = possible.size() - 1;
          while (k > 0 && points(c_.axes) / possible[k] < a_.gpu.multiprocessors * kBusyThreads) k--;
          return possible[k];
        },
        KnobValues::list(possible, "16 bytes at most, all of them aligned"));
    return fits_vector(vector_);
  }
  std::string describe() const {
    return std::string(vector_ == 8   ? "eight"
                       : vector_ == 4 ? "four"
                                      : "two") +
           " channels a thread, " + to_text(vector_ * bytes_) + " bytes a read";
  }

  bool fits_vector(int64_t channels) {
    vector_ = channels;
    if (c_.axes.empty() || c_.raxes.empty() || points(c_.axes) == 0) return false;
    const int64_t n = points(c_.raxes);
    if (n < 2 || n > kLargest || c_.axes.back().extent.value % vector_ != 0) return false;
    if (n >= kLong && points(c_.axes) / vector_ < kFewThreads) return false;
    if (!is_number(c_.out->dtype) || !is_number(c_.reduced->dtype) || !is_aligned(c_.out_index)) return false;
    if (uses_as_value(c_.value, c_.axes.back().var)) return false;
    bool walks = false;
    for (const Load* l : loads_of(c_.value)) {
      const DType t = l->buffer->dtype;
      if (!is_number(t) || info(t).bytes * vector_ > 16 || l->index.size() != 1) return false;
      if (!is_aligned(l->index[0])) continue;
      walks = true;
      bytes_ = info(t).bytes;
    }
    return walks;
  }

  // False where the steps cannot be proved to keep the result.
  bool schedule(Scheduled& s) {
    pack_weights(s);
    const int64_t unrolled = a_.plan.in_range(
        "unrolled", [&] { return unrolled_loops(kUnrolled); }, 0, unrolled_loops(kMostUnrolled));
    const int64_t threads = decide_threads(a_.plan, points(c_.axes) / vector_);
    Schedule loops = point_loops(c_.axes, reduce_at_point(c_, name_of_reduction(c_.combine)), a_.options);
    const bool taken = loops.attempt([&](Schedule& l) { take_steps(l, unrolled, threads); });
    s.body = seq({border_launch(c_), loops.body()});
    return taken;
  }

  const Canonical& canonical() const { return c_; }

 private:
  void take_steps(Schedule& loops, int64_t unrolled, int64_t threads) const {
    std::vector<Var> outer = vars_of(c_.axes), order = vars_of(c_.raxes);
    Var j;
    std::tie(outer.back(), j) = loops.split(outer.back(), vector_, Tail::Guard, {{outer.back()->name, "j"}});
    bind_points(loops, outer, threads);
    const std::vector<Var> channels = loops.decompose_reduction(j);  // of start values, sums, results
    order.push_back(channels.at(1));
    loops.reorder(order);
    for (size_t i = c_.raxes.size() - size_t(unrolled); i < c_.raxes.size(); i++) loops.unroll(order[i]);
    loops.unroll(channels.at(0));
    loops.vectorize(channels.at(1));
    loops.vectorize(channels.at(2));
  }

  // So many of the innermost loops over the window have `most` points together at most.
  int64_t unrolled_loops(int64_t most) const {
    int64_t n = 0, all = 1;
    for (size_t i = c_.raxes.size(); i-- > 0; n++) {
      all *= c_.raxes[i].extent.value;
      if (all > most) break;
    }
    return n;
  }

  // Four bytes, or halves.
  static bool is_number(DType t) { return info(t).bytes == 4 || t == DType::F16 || t == DType::BF16; }

  std::vector<Var> vars() const {
    std::vector<Var> v = vars_of(c_.axes), r = vars_of(c_.raxes);
    v.insert(v.end(), r.begin(), r.end());
    return v;
  }
  bool is_aligned(const Expr& index) const {
    const auto o = offset_of(index, vars());
    return o && begins_on(*o, c_.axes.back().var, vector_);
  }

  // Weights of a channel lie apart: packed with the channel innermost.
  void pack_weights(Scheduled& s) {
    const Apply *k = as<Apply>(c_.value), *shaped = as<Apply>(c_.shaped_value);
    if (!k || k->op != Op::Mul || !shaped || shaped->op != Op::Mul) return;
    for (size_t i = 0; i < 2; i++) {
      const Load* l = widened(k->args[i]);
      if (!l || is_aligned(l->index[0]) || !is_constant(k->args[i], c_, a_.constant_input)) continue;
      bool moves = false;
      for (size_t d = 0; d + 1 < c_.axes.size(); d++) moves = moves || uses_var(k->args[i], c_.axes[d].var);
      if (moves) continue;
      std::vector<Axis> axes = c_.raxes;
      axes.push_back(c_.axes.back());
      const Expr narrow = cast(l->buffer->dtype, shaped->args[i]);
      const Expr packed = cast(k->args[i]->dtype, read_packed(s, c_, axes, narrow));
      c_.value = i == 0 ? packed * k->args[1] : k->args[0] * packed;
      return;
    }
  }

  // A read, possibly of halves that are computed in single precision.
  static const Load* widened(const Expr& e) {
    const Cast* c = as<Cast>(e);
    const Load* l = as<Load>(c ? c->value : e);
    return l && (!c || (is_narrow_float(l->buffer->dtype) && e->dtype == DType::F32)) ? l : nullptr;
  }

  Canonical c_;
  const CudaArgs& a_;
  int64_t vector_ = 4, bytes_ = 4;
};

}  // namespace

std::optional<Scheduled> cuda_window(const CudaArgs& a) {
  if (!a.canonical || !bool(a.canonical->value)) return {};
  Window w(*a.canonical, a);
  if (!w.fits()) return {};
  Scheduled s;
  if (!w.schedule(s)) return {};
  bind_operands(s, w.canonical());
  s.family = "window";
  s.description = w.describe();
  return s;
}

}  // namespace tc
