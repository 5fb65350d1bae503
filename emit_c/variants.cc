#include "emit_c/variants.h"

#include <algorithm>

#include "emit_c/operands.h"
#include "ir/loop/instruction.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

// The levels are those that Linux distributions build for; what they take is in tc_cpu.h. A level of 16 lanes is compiled for
// registers of 512 bits, as the text's own vectors are.
struct Row {
  const char *name, *macro, *flags, *test;
  const char *byte_flags, *byte_test;  // where kernels have products of bytes
};
constexpr Row kRows[] = {
    {"v3", "V3", "-march=x86-64-v3", "tc_cpu_v3", "-march=x86-64-v3", "tc_cpu_v3"},
    {"v4", "V4", "-march=x86-64-v4 -mprefer-vector-width=512", "tc_cpu_v4",
     "-march=x86-64-v4 -mavx512vnni -mprefer-vector-width=512", "tc_cpu_v4_vnni"},
    {"dotprod", "DOTPROD", nullptr, nullptr, "-march=armv8.2-a+dotprod", "tc_cpu_dotprod"},
};

// Tests of what -march=... allows, for the rows of --cpu.
constexpr std::pair<std::string_view, const char*> kTests[] = {
    {"x86-64-v3", "tc_cpu_v3"},
    {"x86-64-v3 -mavxvnni", "tc_cpu_v3_vnni"},
    {"x86-64-v4", "tc_cpu_v4"},
    {"x86-64-v4 -mavx512vnni", "tc_cpu_v4_vnni"},
    {"x86-64-v4 -mavx512vnni -mamx-tile -mamx-int8", "tc_cpu_v4_amx"}};

// Of rows whose instructions are those of others: whether this is such a processor.
constexpr std::pair<std::string_view, const char*> kMakers[] = {{"znver4", "tc_cpu_znver4"},
                                                                {"znver5", "tc_cpu_znver5"},
                                                                {"cascadelake", "tc_cpu_cascadelake"},
                                                                {"icelake-server", "tc_cpu_icelake_server"}};

// The value of `key`; null if there is none.
template <size_t N>
const char* find_in(const std::pair<std::string_view, const char*> (&table)[N], std::string_view key) {
  const auto* at = std::find_if(std::begin(table), std::end(table), [&](const auto& row) { return row.first == key; });
  return at == std::end(table) ? nullptr : at->second;
}

// What any processor runs has as many lanes as there is nothing below.
int lanes_of(const ProgramVariant& v) { return v.march.empty() ? 0 : v.lanes; }

}  // namespace

std::vector<Variant> processor_variants(const Needs& needs) {
  std::vector<Variant> list;
  for (const Row& r : kRows)
    if (const char* flags = needs.byte_products ? r.byte_flags : r.flags)
      list.push_back({r.name, r.macro, flags, needs.byte_products ? r.byte_test : r.test});
  return list;
}

std::string march_flags(const std::string& march, int lanes) {
  return march.empty() ? "" : "-march=" + march + (lanes >= 16 ? " -mprefer-vector-width=512" : "");
}

std::string variant_name(const ProgramVariant& v) {
  if (v.march.empty()) return "baseline";
  std::string s = v.cpu.starts_with("x86-64-") ? v.cpu.substr(7) : v.cpu;
  std::replace(s.begin(), s.end(), '-', '_');
  return s;
}

bool has_plain_schedule(const Program& p) { return !p.variants.empty() && p.variants[0].march.empty(); }

std::vector<Variant> listed_variants(const Program& p) {
  std::vector<Variant> list;
  for (size_t i = has_plain_schedule(p) ? 1 : 0; i < p.variants.size(); i++) {
    const ProgramVariant& v = p.variants[i];
    const char* const test = find_in(kTests, v.march);
    const bool is_for_all = i == 0 || p.variants[i - 1].march != v.march;
    const char* const is_best = is_for_all ? "" : find_in(kMakers, v.cpu);
    check(test && is_best, "a processor of a list can be told from others");
    const std::string name = variant_name(v);
    list.push_back({name, in_capitals(name), march_flags(v.march, v.lanes), test, int(i), is_best});
  }
  return list;
}

bool multiplies_tiles(const Program& p) {
  bool found = false;
  for (const Kernel& k : p.kernels)
    walk(k.body, [&](const Stmt& s) {
      const Intrin* call = as<Intrin>(s);
      found = found || (call && instruction(*call).support == SupportText::ByteTiles);
      return !found;
    });
  return found;
}

bool asks_maker(const std::vector<Variant>& variants) {
  return std::any_of(variants.begin(), variants.end(), [](const Variant& v) { return !v.is_best.empty(); });
}

std::string graph_by_vectors(const Program& p, const ProgramNames& n) {
  const auto graph = [&](const ProgramVariant& v) { return n.lower + "_graph_" + variant_name(v); };
  std::string s = graph(p.variants[0]);
  int lanes = lanes_of(p.variants[0]);
  for (const ProgramVariant& v : p.variants) {
    if (lanes_of(v) <= lanes) continue;
    lanes = lanes_of(v);
    s = "TC_VL >= " + to_text(int64_t(lanes)) + " ? " + graph(v) + " : " + s;
  }
  return s;
}

std::string processors_text(const Program& p) {
  std::string s;
  for (size_t i = 0; i < p.variants.size(); i++)
    s += (i == 0 ? "" : i + 1 < p.variants.size() ? ", " : " and ") + p.variants[i].cpu;
  return s;
}

std::string variants_header(const Program& p, const ProgramNames& n) {
  const std::string& x = n.lower;
  std::string s =
      std::string(kLicenseLine) +
      "\n/* For what is compiled with -DTC_VARIANT=v3: its symbols end in the variant's name. */\n#ifndef " + n.upper +
      "_VARIANTS_H\n#define " + n.upper +
      "_VARIANTS_H\n\n#define TC_JOIN_VARIANT(symbol, variant) symbol##_##variant\n#define "
      "TC_NAME_VARIANT(symbol, variant) TC_JOIN_VARIANT(symbol, variant)\n#define TC_OF_VARIANT(symbol) "
      "TC_NAME_VARIANT(symbol, TC_VARIANT)\n\n";
  const auto row = [&s](const std::string& symbol) { s += "#define " + symbol + " TC_OF_VARIANT(" + symbol + ")\n"; };
  if (p.variants.empty()) row(x + "_graph");
  for (const Kernel& k : p.kernels) row(x + "_" + k.name);
  return s + "\n#endif\n";
}

std::string variant_type(const Program& p, const std::vector<Variant>& variants, const ProgramNames& n) {
  const bool others_only = !p.variants.empty() && !has_plain_schedule(p);
  std::string s =
      "/* Kernels for several processors: which ones an instance has. BEST: the best that the library was built "
      "with and this\n * processor runs. */\ntypedef enum {\n  ";
  s += n.upper + "_CPU_BEST = 0,\n  " + n.upper + "_CPU_BASELINE," +
       (others_only ? "  /* of a build by your flags only */\n" : "\n");
  for (const Variant& v : variants)
    s += "  " + n.upper + "_CPU_" + v.macro + (&v != &variants.back() ? ",  /* " : "   /* ") + v.flags + " */\n";
  return s + "} " + n.lower + "_cpu;\n\n";
}

namespace {

// "  if ((best || cpu == NAME_CPU_V3) && tc_cpu_v3()) {" and what is set then. Who asks for one by name gets it wherever it runs.
std::string take(const ProgramNames& n, const Variant& v, const std::string& graph) {
  const std::string named = "cpu == " + n.upper + "_CPU_" + v.macro, runs = v.test + "()";
  const std::string asked = v.test.empty()      ? "best || " + named
                            : v.is_best.empty() ? "(best || " + named + ") && " + runs
                                                : "best ? " + v.is_best + "() : " + named + " && " + runs;
  return "  if (" + asked + ") {\n    " + n.self + "->graph = " + graph + ";\n    " + n.self + "->cpu = " + n.upper +
         "_CPU_" + v.macro + ";\n    return 1;\n  }\n";
}

// Of a list: each graph is a function of its own.
std::string listed_choice(const Program& p, const std::vector<Variant>& variants, const ProgramNames& n) {
  const std::string &x = n.lower, &u = n.upper;
  std::string s = "/* Graphs and kernels for " + processors_text(p) +
                  ", each compiled for its processor. The build says which it has: TC_HAVE_" + variants.back().name +
                  ".\n * Where it says nothing, all are compiled once, and the vectors of its flags choose. */\n";
  s += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  const Variant baseline{"baseline", "BASELINE", "", ""};
  std::vector<std::string> have;
  for (const ProgramVariant& v : p.variants)
    s += x + "_status " + x + "_graph_" + variant_name(v) + run_parameters(n) + ";\n";
  have.reserve(variants.size());
  for (const Variant& v : variants) have.push_back("!defined TC_HAVE_" + v.name);
  s += "#ifdef __cplusplus\n}\n#endif\n\nstatic int choose(" + x + " *" + n.self + ", " + x +
       "_cpu cpu)\n{\n  const int best = cpu == " + u + "_CPU_BEST;\n";
  for (auto v = variants.rbegin(); v != variants.rend(); ++v)
    s += "#ifdef TC_HAVE_" + v->name + "\n" + take(n, *v, x + "_graph_" + v->name) + "#endif\n";
  s += "#if " + join(have, " && ") + "\n" + take(n, baseline, graph_by_vectors(p, n));
  if (has_plain_schedule(p)) s += "#else\n" + take(n, baseline, x + "_graph_baseline");
  return s + "#endif\n  return 0;\n}\n\n";
}

}  // namespace

std::string variant_choice(const Program& p, const std::vector<Variant>& variants, const ProgramNames& n) {
  if (!p.variants.empty()) return listed_choice(p, variants, n);
  const std::string &x = n.lower, &u = n.upper, &m = n.self;
  std::string s = "/* " + x +
                  "_graph.c and kernels/, compiled for any processor and once more for others. The build says what it "
                  "has: TC_HAVE_v3. */\n";
  s += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  const std::string graph = x + "_status " + x + "_graph", parameters = run_parameters(n) + ";\n";
  s += graph + parameters;
  for (const Variant& v : variants) s += graph + "_" + v.name + parameters;
  s += "#ifdef __cplusplus\n}\n#endif\n\n";
  s += "static int choose(" + x + " *" + m + ", " + x + "_cpu cpu)\n{\n  const int best = cpu == " + u + "_CPU_BEST;\n";
  for (auto v = variants.rbegin(); v != variants.rend(); ++v)
    s += "#ifdef TC_HAVE_" + v->name + "\n  if ((best || cpu == " + u + "_CPU_" + v->macro + ") && " + v->test +
         "()) {\n    " + m + "->graph = " + x + "_graph_" + v->name + ";\n    " + m + "->cpu = " + u + "_CPU_" +
         v->macro + ";\n    return 1;\n  }\n#endif\n";
  s += "  " + m + "->graph = " + x + "_graph;\n  " + m + "->cpu = " + u +
       "_CPU_BASELINE;\n  return best || cpu == " + u + "_CPU_BASELINE;\n}\n\n";
  return s;
}

}  // namespace tc
