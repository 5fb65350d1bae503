#include "emit_c/package.h"

#include <set>

#include "emit_c/build_files.h"
#include "emit_c/executor.h"
#include "emit_c/header.h"
#include "emit_c/kernel_files.h"
#include "emit_c/life_cycle.h"
#include "emit_c/main_source.h"
#include "emit_c/manifest.h"
#include "emit_c/readme.h"
#include "emit_c/single_file.h"
#include "emit_c/strings.h"
#include "emit_c/weights.h"
#include "templates/text.h"

namespace tc {

namespace {

std::set<std::string> support_of(const Needs& needs, bool strings) {
  std::set<std::string> names{"tc_simd.h", "tc_rt.h", "tc_trace.h", "tc_main.h"};
  if (needs.vector_math) names.insert("tc_math.h");
  if (needs.ints) names.insert("tc_int.h");
  if (needs.doubles) names.insert("tc_double.h");
  if (needs.halves) names.insert({"tc_half.h", "tc_types.h"});
  if (needs.few_bits) names.insert({"tc_int.h", "tc_bits.h"});
  if (needs.byte_tiles) names.insert({"tc_int.h", "tc_tiles.h"});
  if (needs.tails) names.insert("tc_tail.h");
  if (needs.transposes) names.insert("tc_transpose.h");
  if (needs.scalar) names.insert("tc_scalar.h");
  if (needs.types) names.insert("tc_types.h");
  if (needs.parallel) names.insert({"tc_parallel.h", "tc_pool.c"});
  if (needs.letters) names.insert("tc_case.h");
  if (strings) names.insert("tc_string.h");
  return names;
}

/// NAME.c with its headers, and what is compiled beside it.
struct Sources {
  std::vector<OutputFile> files;
  std::vector<GraphFile> graph = {};  // of the files beside NAME.c
};

void add_graph(Sources& s, const std::string& stem, std::string text, const std::vector<int>& variants) {
  s.files.push_back({stem + ".c", std::move(text)});
  s.graph.push_back({stem, variants});
}

// The processors that the comment of a kernel names.
std::string scheduled_for(const Program& p, const Kernel& k) {
  std::vector<std::string> names;
  names.reserve(k.variants.size());
  for (const int v : k.variants) names.push_back(p.variants.at(size_t(v)).cpu);
  return names.empty() ? p.cpu : join(names, ", ");
}

Sources sources(const Program& p, const ProgramNames& n, const std::vector<KernelText>& kernels,
                const std::vector<Variant>& variants) {
  const std::string& x = n.lower;
  Sources r;
  if (variants.empty()) {
    r.files.push_back({x + ".c", executor_source(p, n, p.weights_layout)});
  } else {
    r.files.push_back({x + ".c", api_source(p, n, p.weights_layout, variants)});
    if (p.variants.empty()) add_graph(r, x + "_graph", graph_source(p, n), {});
    for (size_t v = 0; v < p.variants.size(); v++)
      add_graph(r, x + "_graph_" + variant_name(p.variants[v]), graph_source(p, n, v), {int(v)});
    r.files.push_back({x + "_variants.h", variants_header(p, n)});
  }
  r.files.push_back({x + "_plan.h", plan_header(p, n, n.self + "->room")});
  if (const std::string tables = string_tables(p, n); !tables.empty()) r.files.push_back({x + "_strings.h", tables});
  r.files.push_back({x + "_kernels.h", kernels_header(kernels, n, !variants.empty())});
  for (const KernelFile& f : kernel_files(p, kernels))
    add_graph(r, "kernels/" + f.stem, kernel_source(f, x), f.variants);
  return r;
}

Sources one_source(const Program& p, const ProgramNames& n, const std::vector<KernelText>& kernels,
                   std::set<std::string>& support) {
  const std::string executor = executor_source(p, n, p.weights_layout);
  return {{{n.lower + ".c",
            single_file(n, executor, plan_header(p, n, n.self + "->room") + string_tables(p, n), kernels, support)}}};
}

}  // namespace

std::vector<OutputFile> c_package(const Program& p, const PackageOptions& o) {
  const ProgramNames n(p);
  const std::string& x = n.lower;
  const bool strings = has_strings(p);
  std::vector<KernelText> kernels;
  kernels.reserve(p.kernels.size());
  for (const Kernel& k : p.kernels) kernels.push_back(print_kernel(k, x, scheduled_for(p, k)));
  const Needs needs = needs_of(kernels);
  std::set<std::string> support = support_of(needs, strings);
  std::vector<Variant> variants;
  if (o.any_cpu && !o.single_file) variants = processor_variants(needs);
  if (!o.single_file && !p.variants.empty()) variants = listed_variants(p);
  if (!variants.empty()) support.insert(asks_maker(variants) ? "tc_cpu_maker.h" : "tc_cpu.h");
  if (needs.byte_tiles) support.insert("tc_cpu.h");
  if (p.external_weights) support.insert("tc_map.h");

  std::vector<OutputFile> files{{x + ".h", api_header(p, n, variants)}};
  Sources code = o.single_file ? one_source(p, n, kernels, support) : sources(p, n, kernels, variants);
  for (OutputFile& f : code.files) files.push_back(std::move(f));
  files.push_back(weights_file(p, n, o.progress));
  if (!p.external_weights) files.push_back({x + "_weights.S", weights_assembly(x)});
  files.push_back({"main.c", main_source(p, n, variants, needs.parallel)});
  files.push_back(
      {x + "_profile.h", profile_header(p, n, variants.empty() ? TracedCalls::Plain : TracedCalls::Variants)});
  const std::vector<std::string_view> wanted(support.begin(), support.end());
  for (const std::string_view f : with_included(wanted, strings))
    files.push_back({std::string(f), support_for(f, strings)});
  for (OutputFile& f : build_files(p, n, code.graph, variants, needs.parallel && !o.single_file))
    files.push_back(std::move(f));
  files.push_back({"README.md", package_readme(p, n, variants)});
  files.push_back({"manifest.json", manifest(p, n, o, files, p.weights_layout, "c", variants)});
  return files;
}

}  // namespace tc
