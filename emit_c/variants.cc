#include "emit_c/variants.h"

#include "emit_c/operands.h"

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

}  // namespace

std::vector<Variant> processor_variants(const Needs& needs) {
  std::vector<Variant> list;
  for (const Row& r : kRows)
    if (const char* flags = needs.byte_products ? r.byte_flags : r.flags)
      list.push_back({r.name, r.macro, flags, needs.byte_products ? r.byte_test : r.test});
  return list;
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
  row(x + "_graph");
  for (const Kernel& k : p.kernels) row(x + "_" + k.name);
  return s + "\n#endif\n";
}

std::string variant_type(const std::vector<Variant>& variants, const ProgramNames& n) {
  std::string s =
      "/* Kernels for several processors: which ones an instance has. BEST: the best that the library was built "
      "with and this\n * processor runs. */\ntypedef enum {\n  ";
  s += n.upper + "_CPU_BEST = 0,\n  " + n.upper + "_CPU_BASELINE,\n";
  for (const Variant& v : variants)
    s += "  " + n.upper + "_CPU_" + v.macro + (&v != &variants.back() ? ",  /* " : "   /* ") + v.flags + " */\n";
  return s + "} " + n.lower + "_cpu;\n\n";
}

std::string variant_choice(const std::vector<Variant>& variants, const ProgramNames& n) {
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
