// Windows over images with channels last: pooling, depthwise convolutions. A thread has four neighbouring channels of a
// pixel, eight of halves, and reads them up to 16 bytes at a time.
//
//   acc[0..3] = init
//   for the points of the window:
//     if inside the image: x_v[0..3] = x[h][w][c ..]       else what the padding says
//     acc[j] += x_v[j] * weight_v[j]                       weights packed with the channel innermost
//   y[c ..] = epilogue(acc)
#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cuda/template.h"
#include "templates/packed.h"

namespace tc {
namespace {

constexpr int64_t kUnrolled = 9,
                  kMostUnrolled = 64;             // points of a window that are written out: the model's, and at most
constexpr int64_t kLargest = 256;                 // windows beyond are reductions of an image, and so are
constexpr int64_t kLong = 16, kFewThreads = 512;  // long ones with few results

class Window {
 public:
  Window(const Canonical& c, const CudaArgs& a) : c_(c), a_(a) {}

  // Channels are innermost, four or eight of them always together.
  bool fits() {
    std::vector<int64_t> possible;
    for (const int64_t n : {4, 8})
      if (fits_vector(n)) possible.push_back(n);
    if (possible.empty()) return false;
    vector_ = a_.plan.number(
        "channels", [&] { return possible.back(); },
        KnobValues::list(possible, "16 bytes at most, all of them aligned"));
    return fits_vector(vector_);
  }
  std::string describe() const {
    return std::string(vector_ == 8 ? "eight" : "four") + " channels a thread, " + to_text(vector_ * bytes_) +
           " bytes a read";
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

  Stmt build(Scheduled& s) {
    pack_weights(s);
    const Axis inner = c_.axes.back();
    const Var j = make_var("j"), channel = make_var(inner.var->name);
    first_ = {{inner.var.get(), Expr(channel) * Expr(vector_)}};
    each_ = {{inner.var.get(), Expr(channel) * Expr(vector_) + Expr(j)}};
    const Buffer acc = make_buffer(name_of_reduction(c_.combine), c_.reduced->dtype, {Dim(vector_)}, Scope::Register);
    auto neighbours = [&](const Stmt& body, ForKind kind) { return loop(j, vector_, body, kind); };
    std::vector<Read> reads;
    const Expr value = substitute(gather(c_.value, reads, Expr(j)), each_);
    Stmt join = neighbours(store(acc, {j}, value, c_.combine), ForKind::Unroll);
    for (size_t i = reads.size(); i-- > 0;) join = alloc(reads[i].to, seq({read(reads[i], j), join}));
    int64_t unrolled = a_.plan.in_range(
        "unrolled", [&] { return unrolled_loops(kUnrolled); }, 0, unrolled_loops(kMostUnrolled));
    for (size_t i = c_.raxes.size(); i-- > 0; unrolled--)
      join = loop(c_.raxes[i].var, c_.raxes[i].extent, join, unrolled > 0 ? ForKind::Unroll : ForKind::Serial);
    const Expr result = with_reduced(c_.epilogue, c_.reduced, load(acc, {j}));
    const Stmt out = store(c_.out, {substitute(c_.out_index, each_)}, substitute(result, each_));
    const Stmt body = alloc(acc, seq({neighbours(store(acc, {j}, substitute(c_.init, each_)), ForKind::Unroll), join,
                                      neighbours(out, ForKind::Vector)}));
    std::vector<Axis> axes = c_.axes;
    axes.back() = {channel, Dim(inner.extent.value / vector_)};
    return thread_per_point(axes, body, decide_threads(a_.plan, points(axes)));
  }

  const Canonical& canonical() const { return c_; }

 private:
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

  // An array of neighbours, filled where `inside` holds.
  struct Read {
    Buffer to, from;
    Expr index, inside, otherwise;
  };

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

  Expr gather(const Expr& e, std::vector<Read>& reads, const Expr& j) const {
    const Select* s = as<Select>(e);
    const Load* l = widened(s ? s->yes : e);
    const bool same = !s || (!uses_var(s->condition, c_.axes.back().var) && as_const_number(s->no));
    if (l && same && is_aligned(l->index[0])) {
      const DType t = l->buffer->dtype;
      const Buffer v = make_buffer(l->buffer->name + "_v", t, {Dim(vector_)}, Scope::Register);
      const Expr otherwise = s ? make_const(t, *as_const_number(s->no)) : Expr();
      if (!s || *as_const_number(otherwise) == *as_const_number(s->no)) {
        reads.push_back({v, l->buffer, l->index[0], s ? s->condition : Expr(), otherwise});
        return cast(e->dtype, load(v, {j}));
      }
    }
    if (const Cast* c = as<Cast>(e)) return cast(e->dtype, gather(c->value, reads, j));
    const Apply* k = as<Apply>(e);
    if (!k || k->op == Op::And || k->op == Op::Or || k->op == Op::Index) return e;
    Exprs args;
    for (const Expr& x : k->args) args.push_back(gather(x, reads, j));
    return apply(k->op, std::move(args));
  }
  Stmt read(const Read& r, const Var& j) const {
    const Stmt all = intrin("load" + to_text(vector_), {{r.to, {}}, {r.from, {substitute(r.index, first_)}}});
    if (!r.inside) return all;
    return seq({loop(j, vector_, store(r.to, {j}, r.otherwise), ForKind::Unroll), if_then(r.inside, all)});
  }

  Canonical c_;
  const CudaArgs& a_;
  int64_t vector_ = 4, bytes_ = 4;
  VarMap first_, each_;
};

}  // namespace

std::optional<Scheduled> cuda_window(const CudaArgs& a) {
  if (!a.canonical || !bool(a.canonical->value)) return {};
  Window w(*a.canonical, a);
  if (!w.fits()) return {};
  Scheduled s;
  s.body = seq({border_launch(*a.canonical), w.build(s)});
  bind_operands(s, w.canonical());
  s.family = "window";
  s.description = w.describe();
  return s;
}

}  // namespace tc
