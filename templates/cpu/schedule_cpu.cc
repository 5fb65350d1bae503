#include "templates/cpu/schedule_cpu.h"

#include <algorithm>

#include "ir/open_size.h"
#include "templates/choose_template.h"
#include "templates/cpu/contraction.h"
#include "templates/cpu/few_bits.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/open_rows.h"
#include "templates/cpu/regions.h"
#include "templates/cpu/streaming_attention.h"
#include "templates/cpu/template.h"
#include "templates/fills.h"
#include "templates/join_stages.h"
#include "templates/known_tables.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

// The first stage behind the last sum that takes a function of what it reads; as many as there are, where none does.
size_t first_costly(const TensorFn& fn) {
  size_t at = fn.stages.size();
  for (size_t i = fn.stages.size(); i-- > 0 && fn.stages[i].kind == Stage::Kind::Compute;)
    if (is_costly(fn.stages[i].values[0])) at = i;
  return at;
}

// Each part by the template that fits it; one more cut, where it is asked for, in front of what is costly.
std::optional<Scheduled> schedule_parts(const TemplateArgs& a, bool costly_apart) {
  auto part = [&](const TensorFn& fn, const std::vector<bool>& constant) {
    return schedule_cpu(fn, constant, a.cpu, a.options);
  };
  const TensorFn fn = with_fills_inside(a.fn);
  if (fn.stages.size() < a.fn.stages.size() && fn.stages.size() == 1) return part(fn, a.constant_input);
  return join_stages(fn, a.constant_input, part, false, costly_apart ? first_costly(fn) : SIZE_MAX);
}
std::optional<Scheduled> schedule_stages(const TemplateArgs& a) { return schedule_parts(a, false); }

// Would vectors along the columns have empty lanes, for which something costly is computed for nothing, behind a part of a vector that
// was stored and is read again, which processors are slow at?
bool wastes_lanes(const Canonical& sums, const CpuModel& cpu) {
  constexpr int64_t kMostTerms = 1024,
                    kMostResults = 1 << 20;  // beyond, the sum takes longer, or results leave the cache
  const auto columns = unit_axis(sums);
  if (!columns) return false;
  const int64_t n = columns->extent.value;
  if (n < kMaxLanes / 2) return true;
  return n % cpu.vector_lanes != 0 && points(sums.raxes) <= kMostTerms && points(sums.axes) <= kMostResults;
}

// Sums of products whose columns do not fill vectors: what is costly behind them does, in a stage of its own.
std::optional<Scheduled> schedule_finish_apart(const TemplateArgs& a) {
  constexpr int64_t kFewestTerms = 2, kFewestResults = 64;
  if (!a.canonical || a.canonical->combine != Op::Add || !a.canonical->value) return {};
  if (!is_costly(a.canonical->epilogue) || a.canonical->value->dtype != DType::F32) return {};
  const Apply* const product = as<Apply>(a.canonical->value);
  if (!product || product->op != Op::Mul) return {};
  Canonical sums = *a.canonical;
  sums.epilogue = load(sums.reduced, {});
  if (points(sums.raxes) < kFewestTerms || points(sums.axes) < kFewestResults) return {};
  if (is_open(points(sums.axes))) return {};  // no memory would hold the sums
  ScheduleOptions asks = a.options;
  asks.planner = nullptr;
  const TemplateArgs plain{a.fn, &sums, a.constant_input, a.cpu, asks};
  if (!wastes_lanes(sums, a.cpu) && !cuts_columns(plain) && !schedule_dots(plain)) return {};
  return schedule_parts(a, true);
}

std::optional<Scheduled> schedule_moves(const TemplateArgs& a) {
  return schedule_moves_apart(a, [&](const TensorFn& fn, const std::vector<bool>& constant) {
    return schedule_cpu(fn, constant, a.cpu, a.options);
  });
}

// Columns that fill a part of a vector are better than none, where rows are enough to make up for the panels' empty lanes. What
// is costly fills vectors in a stage of its own.
std::optional<TemplateArgs> with_few_columns(const TemplateArgs& a) {
  constexpr int64_t kFewestRows = 16;
  if (!a.canonical || is_costly(a.canonical->epilogue)) return {};
  TemplateArgs few = a;
  few.few_columns = true;
  // A single column has no axis of its own.
  const auto bytes = match_byte_contraction(few);
  const auto columns = bytes ? std::optional(bytes->n) : unit_axis(*a.canonical);
  if (!columns || columns->extent.value > 3) return {};
  if (points(a.canonical->axes) < kFewestRows * columns->extent.value) return {};
  return few;
}
std::optional<Scheduled> schedule_few_columns(const TemplateArgs& a) {
  const auto few = with_few_columns(a);
  return few ? schedule_contraction(*few) : std::nullopt;
}

// Rows of few columns end where the size does, without tiles around them.
std::optional<Scheduled> schedule_tiles_of_rows(const TemplateArgs& a) {
  const auto few = with_few_columns(a);
  return few && match_contraction(*few) ? std::nullopt : schedule_open_rows(a);
}

// In order; the first that knows the shape of the computation builds the loops.
constexpr Template<TemplateArgs> kTemplates[] = {
    {"winograd", schedule_winograd},              // 3 x 3 convolutions of stride 1, with fewer multiplications
    {"stages", schedule_finish_apart},            // sums in parts of vectors, and what is costly to compute of them
    {"subpixels", schedule_subpixels},            // sums that take every s-th term: transposed convolutions
    {"block_products", schedule_block_products},  // products of bytes in blocks that have scales
    {"few_bits", schedule_few_bits},              // products with weights of 2 to 8 bits
    {"dots", schedule_dots},                      // sums of products of few columns, in vectors along the sum
    {"row_products", schedule_row_products},      // rows times rows, neither known
    {"contraction", schedule_contraction},        // sums of products: matrix products and convolutions
    {"moves_apart", schedule_moves},              // sums of products of bytes, and moves around them
    {"packed_at_run", schedule_packed_at_run},    // the same, of weights that nobody knows
    {"window_rows", schedule_window_rows},        // windows along the vectors: pooling with the channels first
    {"window", schedule_window},          // reductions whose results lie side by side: pooling, depthwise convolutions
    {"rows", schedule_rows},              // reductions along the memory's order: softmax, normalisation
    {"arg_reduce", schedule_arg_reduce},  // extremes across rows, and where they are
    {"arg_rows", schedule_arg_rows},      // extremes along rows, and where they are
    {"transpose", schedule_transpose},    // no reduction, and rows that become columns
    {"interleaved_store",
     schedule_interleaved_store},  // results between those of other vectors: nearest resizing, depth to space
    {"shared_values", schedule_shared_values},              // samples at positions that all channels share
    {"gathered_lanes", schedule_gathered_lanes},            // costly functions of elements that lie apart
    {"elementwise", schedule_elementwise},                  // no reduction
    {"streaming_attention", schedule_streaming_attention},  // over keys whose number is known at run time
    {"attention", schedule_attention},                      // scores, softmax, times the values: tile by tile
    {"inverted_residual", schedule_inverted_residual},      // expand, filter, project: row by row
    {"open_rows", schedule_tiles_of_rows},                  // several stages over an axis that no memory holds
    {"top_k", schedule_top_k},                              // the first elements in order of size: a heap
    {"terms_in_range", schedule_terms_in_range},            // sums of terms that only a part of a row has
    {"scatter_rows", schedule_scatter_rows},                // rows that are added where data says
    {"prefix_sums", schedule_prefix_sums},                  // sums of which each goes on from the one before it
    {"recurrence", schedule_recurrence},                    // stages that advance together: step by step
    {"few_columns", schedule_few_columns},                  // sums of products of two or three columns, of bytes of one
    {"inlined", schedule_inlined},                          // several stages, of which no memory holds the first ones
    {"stages", schedule_stages},                            // several of these, one after the other
    {"naive", schedule_naive},                              // everything
    {"sketch", schedule_sketch},                            // the same in other loops, where they are asked for
};

// Of functions with stages that no memory holds: these keep none of them.
constexpr Template<TemplateArgs> kBlockByBlock[] = {{"streaming_attention", schedule_streaming_attention}};

bool has_unstorable_stage(const TensorFn& fn) {
  return std::any_of(fn.stages.begin(), fn.stages.end(), [](const Stage& s) {
    return is_static(s.outputs[0]->shape) && has_several_open(static_dims(s.outputs[0]->shape));
  });
}

}  // namespace

Scheduled schedule_cpu(const TensorFn& fn, const std::vector<bool>& constant_input, const CpuModel& cpu,
                       const ScheduleOptions& options) {
  check(constant_input.size() == fn.inputs.size(), "one flag per input");
  if (const auto tables = known_tables(fn)) {
    std::vector<bool> constant = constant_input;
    constant.resize(tables->rest.inputs.size());  // a table is no operand that could be repacked
    return with_known_tables(schedule_cpu(tables->rest, constant, cpu, options), *tables);
  }
  if (has_unstorable_stage(fn)) {
    const TemplateArgs args{fn, nullptr, constant_input, cpu, options};
    if (!match_streaming_attention(args)) throw Error("TC0501", ExitCode::Limit, "a tensor grows with two such sizes");
    return choose_template<TemplateArgs>(kBlockByBlock, args);
  }
  const std::optional<Canonical> canonical = canonicalize(fn);
  return choose_template<TemplateArgs>(kTemplates,
                                       {fn, canonical ? &*canonical : nullptr, constant_input, cpu, options});
}

std::vector<std::string_view> cpu_templates() {
  std::vector<std::string_view> names;
  for (const Template<TemplateArgs>& t : kTemplates)
    if (std::find(names.begin(), names.end(), t.name) == names.end()) names.push_back(t.name);
  return names;
}

bool reads_few_bits(const TensorFn& fn, const std::vector<bool>& constant_input, const CpuModel& cpu,
                    const ScheduleOptions& options) {
  const std::optional<Canonical> canonical = canonicalize(fn);
  if (!canonical) return false;
  const TemplateArgs args{fn, &*canonical, constant_input, cpu, options};
  if (match_few_bits(args)) return true;
  const auto product = match_contraction(args);
  const DType weights = product && product->q_value ? product->q_value->dtype : DType::F32;
  return weights == DType::BF16 || (weights == DType::F16 && cpu.half_vectors);
}

}  // namespace tc
