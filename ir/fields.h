// Every field of every struct of the IR, by name. What has to cover them all (identity, and the test of it) goes through
// these lists and cannot forget one: a struct that gets a field does not compile here until the list has it, or says that
// the field follows from the others.
#pragma once
#include "ir/program.h"
#include "ir/tensor_fn.h"

namespace tc {

/// f("name", value) for each field of a list, in order of declaration. The names are part of identities, and the
/// fingerprint of a package's weights follows from these: a name stays when its field is renamed ("turns").
template <class F, class... T>
void list_fields(F&& f, std::initializer_list<const char*> names, const T&... values) {
  const char* const* name = names.begin();
  (f(*name++, values), ...);
}

// A binding has to name all fields: one too few is an error of the compiler.
// clang-format off
template <class F> void for_each_field(const DimTerm& s, F&& f) {
  const auto& [a, b, c, d] = s;
  list_fields(f, {"symbol", "factor", "least", "most"}, a, b, c, d);
}
template <class F> void for_each_field(const Dim& s, F&& f) {
  const auto& [a, b, c, d, e] = s;
  list_fields(f, {"value", "symbol", "least", "terms", "addend"}, a, b, c, d, e);
}
template <class F> void for_each_field(const VarDef& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"name", "dtype"}, a, b); }
template <class F> void for_each_field(const BufferDef& s, F&& f) {
  const auto& [a, b, c, d, e, g] = s;
  list_fields(f, {"name", "dtype", "shape", "strides", "offset", "scope"}, a, b, c, d, e, g);
}

template <class F> void for_each_field(const IntImm& s, F&& f) { const auto& [a] = s; list_fields(f, {"value"}, a); }
template <class F> void for_each_field(const FloatImm& s, F&& f) { const auto& [a] = s; list_fields(f, {"value"}, a); }
template <class F> void for_each_field(const VarRef& s, F&& f) { const auto& [a] = s; list_fields(f, {"var"}, a); }
template <class F> void for_each_field(const Apply& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"op", "args"}, a, b); }
template <class F> void for_each_field(const Select& s, F&& f) {
  const auto& [a, b, c] = s;
  list_fields(f, {"condition", "yes", "no"}, a, b, c);
}
template <class F> void for_each_field(const Cast& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"value", "saturate"}, a, b); }
template <class F> void for_each_field(const Bitcast& s, F&& f) { const auto& [a] = s; list_fields(f, {"value"}, a); }
template <class F> void for_each_field(const Load& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"buffer", "index"}, a, b); }
template <class F> void for_each_field(const Ramp& s, F&& f) { const auto& [a] = s; list_fields(f, {"base"}, a); }
template <class F> void for_each_field(const Broadcast& s, F&& f) { const auto& [a] = s; list_fields(f, {"value"}, a); }
template <class F> void for_each_field(const Lanes&, F&&) {}
template <class F> void for_each_field(const Partial& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"value", "count"}, a, b); }

template <class F> void for_each_field(const Store& s, F&& f) {
  const auto& [a, b, c, d, e] = s;
  list_fields(f, {"buffer", "index", "value", "reduce", "count"}, a, b, c, d, e);
}
template <class F> void for_each_field(const For& s, F&& f) {
  const auto& [a, b, c, d, e] = s;
  list_fields(f, {"var", "begin", "extent", "kind", "body"}, a, b, c, d, e);
}
template <class F> void for_each_field(const While& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"condition", "body"}, a, b); }
template <class F> void for_each_field(const If& s, F&& f) {
  const auto& [a, b, c] = s;
  list_fields(f, {"condition", "then", "otherwise"}, a, b, c);
}
template <class F> void for_each_field(const Let& s, F&& f) { const auto& [a, b, c] = s; list_fields(f, {"var", "value", "body"}, a, b, c); }
template <class F> void for_each_field(const Alloc& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"buffer", "body"}, a, b); }
template <class F> void for_each_field(const Alias& s, F&& f) {
  const auto& [a, b, c, d] = s;
  list_fields(f, {"view", "base", "offset", "body"}, a, b, c, d);
}
template <class F> void for_each_field(const Seq& s, F&& f) { const auto& [a] = s; list_fields(f, {"list"}, a); }
template <class F> void for_each_field(const Barrier& s, F&& f) { const auto& [a] = s; list_fields(f, {"scope"}, a); }
template <class F> void for_each_field(const Prefetch& s, F&& f) { const auto& [a, b, c] = s; list_fields(f, {"buffer", "index", "level"}, a, b, c); }
template <class F> void for_each_field(const Intrin& s, F&& f) {
  const auto& [a, b, c] = s;
  list_fields(f, {"name", "args", "buffers"}, a, b, c);
}
template <class F> void for_each_field(const Launch& s, F&& f) {
  const auto& [a, b, c, d, e] = s;
  list_fields(f, {"kernel", "grid", "block", "buffers", "args"}, a, b, c, d, e);
}
template <class F> void for_each_field(const Comment& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"text", "body"}, a, b); }

template <class F> void for_each_field(const Axis& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"var", "extent"}, a, b); }
template <class F> void for_each_field(const Combiner& s, F&& f) {
  const auto& [a, b, c, d] = s;
  list_fields(f, {"op", "lhs", "rhs", "result"}, a, b, c, d);
}
template <class F> void for_each_field(const Stage& s, F&& f) {
  const auto& [a, b, c, d, e, g, h, i, j, k] = s;
  list_fields(f, {"kind", "name", "axes", "raxes", "values", "combiner", "init", "outputs", "nest", "scan"}, a, b, c, d, e, g, h,
              i, j, k);
}
template <class F> void for_each_field(const TensorFn& s, F&& f) {
  const auto& [a, b, c, d] = s;
  list_fields(f, {"inputs", "stages", "outputs", "operands"}, a, b, c, d);
}

template <class F> void for_each_field(const Param& s, F&& f) {
  const auto& [a, b, c, d, e] = s;
  list_fields(f, {"role", "buffer", "dims", "layout", "by_value"}, a, b, c, d, e);
}
template <class F> void for_each_field(const DeviceFunction& s, F&& f) {
  const auto& [a, b, c, d, e, g, h, i, j, k] = s;
  list_fields(f, {"name", "params", "body", "threads", "can_fail", "blocks_per_sm", "rolled", "initialised", "dynamic_shared",
                  "turns"}, a, b, c, d, e, g, h, i, j, k);
}
template <class F> void for_each_field(const ParallelPart& s, F&& f) { const auto& [a, b, c] = s; list_fields(f, {"chunk", "around", "counters"}, a, b, c); }
template <class F> void for_each_field(const CheckedSize& s, F&& f) {
  const auto& [a, b, c] = s;
  list_fields(f, {"buffer", "least", "most"}, a, b, c);
}
template <class F> void for_each_field(const Kernel& s, F&& f) {
  const auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w] = s;
  list_fields(f, {"name", "params", "body", "device", "chunks", "scratch_bytes", "formula", "summary", "schedule",
                  "schedule_steps", "can_fail", "makes_strings", "variants", "work", "checked_sizes", "wide_index", "vectors",
                  "single_vectors", "parts", "part_views", "part_names"}, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v,
              w);
}

template <class F> void for_each_field(const Operand& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"kind", "index"}, a, b); }
template <class F> void for_each_field(const Call& s, F&& f) {
  const auto& [a, b, c, d, e] = s;
  list_fields(f, {"kernel", "operands", "origins", "note", "by_variant"}, a, b, c, d, e);
}
template <class F> void for_each_field(const CopyStep& s, F&& f) {
  const auto& [a, b, c, d, e, g, h, i, j] = s;
  list_fields(f, {"from", "to", "bytes", "part", "reversed", "parts", "origins", "times", "room"}, a, b, c, d, e, g, h, i, j);
}
template <class F> void for_each_field(const IfStep& s, F&& f) {
  const auto& [a, b, c, d, e] = s;
  list_fields(f, {"condition", "then", "otherwise", "origins", "size"}, a, b, c, d, e);
}
template <class F> void for_each_field(const LoopStep& s, F&& f) {
  const auto& [a, b, c, d, e, g, h, i, j] = s;
  list_fields(f, {"trips", "trip_count", "start", "may_end", "iteration", "declared", "in_graph", "body", "origins"}, a, b, c, d,
              e, g, h, i, j);
}
template <class F> void for_each_field(const ContinueStep& s, F&& f) { const auto& [a] = s; list_fields(f, {"condition"}, a); }
template <class F> void for_each_field(const Step& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"kind", "begins_part"}, a, b); }
template <class F> void for_each_field(const Slot& s, F&& f) {
  const auto& [a, b, c, d, e, g, h, i, j, k, l] = s;
  list_fields(f, {"name", "suffix", "dtype", "dims", "bytes", "offset", "first", "last", "alias_of", "within", "kept"}, a, b, c, d,
              e, g, h, i, j, k, l);
}
template <class F> void for_each_field(const Weight& s, F&& f) {
  const auto& [a, b, c, d, e, g] = s;
  list_fields(f, {"name", "suffix", "data", "layout", "offset", "pack"}, a, b, c, d, e, g);
}
template <class F> void for_each_field(const SizeSum::Term& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"input", "factor"}, a, b); }
template <class F> void for_each_field(const SizeSum& s, F&& f) { const auto& [a, b] = s; list_fields(f, {"terms", "addend"}, a, b); }
template <class F> void for_each_field(const IoSize& s, F&& f) {
  const auto& [a, b, c] = s;
  list_fields(f, {"axis", "count", "sum"}, a, b, c);
}
template <class F> void for_each_field(const IoTensor& s, F&& f) {
  const auto& [a, b, c, d, e, g, h, i, j, k, l] = s;
  list_fields(f, {"name", "dtype", "dims", "sizes", "is_count", "is_size", "least", "most", "state", "next", "same"}, a, b, c, d, e, g,
              h, i, j, k, l);
}
template <class F> void for_each_field(const ProgramVariant& s, F&& f) {
  const auto& [a, b, c] = s;
  list_fields(f, {"cpu", "march", "lanes"}, a, b, c);
}
template <class F> void for_each_field(const Program& s, F&& f) {
  const auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x, y, z, aa, ab] = s;
  list_fields(f, {"name", "title", "inputs", "outputs", "kernels", "steps", "slots", "weights", "arena_bytes", "scratch_offset",
                  "scratch_bytes", "strings_offset", "strings_bytes", "workspace_bytes", "weights_bytes", "naive_bytes",
                  "lower_bound_bytes", "cpu", "march", "lanes", "align", "macs", "params", "weights_layout",
                  "external_weights", "variants"}, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x, y, z, aa, ab);
}
// clang-format on

}  // namespace tc
