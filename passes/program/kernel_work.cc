#include "passes/program/kernel_work.h"

#include <algorithm>
#include <map>

#include "ir/loop/instruction.h"
#include "ir/loop/visit.h"
#include "ir/ops/macs.h"

namespace tc {
namespace {

int64_t plus(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

int64_t elements_of(const Buffer& b) { return num_elements(static_dims(b->shape)); }

int64_t bytes_of(const Buffer& b, int64_t elements) {
  int64_t r = 0;
  return __builtin_mul_overflow(elements, info(b->dtype).bytes, &r) ? INT64_MAX : r;
}

/// How often the formulas read each buffer; looked up only.
std::map<const BufferDef*, int64_t> reads_of(const TensorFn& fn) {
  std::map<const BufferDef*, int64_t> reads;
  for (const Stage& s : fn.stages) {
    int64_t points = 1;
    for (const auto* list : {&s.axes, &s.raxes})
      for (const Axis& a : *list)
        if (__builtin_mul_overflow(points, a.extent.value, &points)) points = INT64_MAX;
    const auto count = [&](const Expr& e) {
      if (const Load* l = as<Load>(e)) {
        int64_t& n = reads[l->buffer.get()];
        n = plus(n, points);
      }
      return true;
    };
    for (const Expr& e : s.values) walk(e, count);
    for (const Expr& e : s.init) walk(e, count);
    if (!s.nest) continue;
    walk(
        s.nest, [](const Stmt&) { return true; },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) reads[l->buffer.get()] = INT64_MAX;
          return true;
        });
  }
  for (const Buffer& b : fn.outputs) reads[b.get()] = INT64_MAX;  // an input that is an output: all of it
  return reads;
}

/// Bytes of the type that is multiplied: of the narrowest sum of products, for the sake of a floor.
int64_t product_bytes(const TensorFn& fn) {
  int64_t narrowest = 0;
  for (const Stage& s : fn.stages) {
    if (s.kind != Stage::Kind::Reduce || s.outputs.empty()) continue;
    int64_t widest = 0;
    walk(s.values.at(0), [&](const Expr& e) {
      const Load* l = as<Load>(e);
      if (l && l->buffer->dtype != DType::Bool) widest = std::max<int64_t>(widest, info(l->buffer->dtype).bytes);
      return true;
    });
    if (widest > 0) narrowest = narrowest == 0 ? widest : std::min(narrowest, widest);
  }
  return narrowest > 0 ? narrowest : 4;
}

/// Bytes of a factor of the tensor cores' products among the loops; 0: there are none.
int64_t matrix_factor_bytes(const Stmt& body) {
  int64_t bytes = 0;
  if (!body) return 0;
  walk(
      body,
      [&](const Stmt& s) {
        const Intrin* k = as<Intrin>(s);
        if (const MatrixInstruction* m = k ? meaning_as<MatrixInstruction>(*k) : nullptr) bytes = info(m->left).bytes;
        if (const auto* m = k ? meaning_as<GroupMatrixInstruction>(*k) : nullptr) bytes = info(m->left).bytes;
        return true;
      },
      [](const Expr&) { return false; });
  return bytes;
}

double floor_of(const Program& p, const std::vector<Step>& steps) {
  double sum = 0;
  for (const Step& s : steps) {
    if (const Call* c = std::get_if<Call>(&s.kind)) sum += p.kernels.at(size_t(c->kernel)).work.floor_ns;
    if (const IfStep* i = std::get_if<IfStep>(&s.kind))
      sum += std::min(floor_of(p, i->then), floor_of(p, i->otherwise));
    if (const LoopStep* l = std::get_if<LoopStep>(&s.kind))
      if (!l->may_end && !l->start) sum += double(std::max({l->trips, l->declared, int64_t(0)})) * floor_of(p, l->body);
  }
  return sum;
}

}  // namespace

double floor_ns(const Program& p) {
  const auto unknown = [](const Kernel& k) { return k.work.floor_ns == 0 && k.work.bytes > 0; };
  return std::any_of(p.kernels.begin(), p.kernels.end(), unknown) ? 0 : floor_of(p, p.steps);
}

KernelWork work_of(const TensorFn& fn, const Scheduled& s, const std::vector<bool>& constant, int replaced) {
  KernelWork w;
  w.macs = s.macs >= 0 ? s.macs : multiply_accumulates(fn);
  w.products = product_bytes(fn);
  const int64_t factor = w.products == 4 ? matrix_factor_bytes(s.body) : 0;
  w.rounds = factor > 0;
  if (w.rounds) w.products = factor;
  const std::map<const BufferDef*, int64_t> reads = reads_of(fn);
  std::vector<int> read(s.input_index);
  if (replaced >= 0) read.push_back(replaced);
  for (const int i : read) {
    const Buffer& b = fn.inputs.at(size_t(i));
    const auto it = reads.find(b.get());
    const int64_t bytes = it == reads.end() ? 0 : bytes_of(b, std::min(it->second, elements_of(b)));
    w.bytes = plus(w.bytes, bytes);
    if (constant.at(size_t(i))) w.weight_bytes = plus(w.weight_bytes, bytes);
  }
  for (const Buffer& b : s.prologue.outputs) {
    w.bytes = plus(w.bytes, bytes_of(b, elements_of(b)));
    w.weight_bytes = plus(w.weight_bytes, bytes_of(b, elements_of(b)));
  }
  for (const Buffer& b : s.outputs) w.bytes = plus(w.bytes, bytes_of(b, elements_of(b)));
  return w;
}

}  // namespace tc
