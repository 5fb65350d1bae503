#include "emit_c/build_files.h"

#include "emit_c/fill.h"
#include "emit_c/weights.h"
#include "templates/text.h"

namespace tc {
namespace {

// "  kernels/a.o \\\n  kernels/b.o": one a line.
std::string listed(const std::vector<std::string>& stems, const std::string& ending, const std::string& between) {
  std::string s;
  for (const std::string& stem : stems) s += (s.empty() ? "  " : between + "\n  ") + stem + ending;
  return s;
}

std::string names_of(const std::vector<Variant>& variants) {
  std::vector<std::string> names;
  for (const Variant& v : variants) names.push_back(v.name);
  return join(names, " ");
}

// A line for each variant.
template <class F>
std::string each(const std::vector<Variant>& variants, const F& line) {
  std::vector<std::string> lines;
  for (const Variant& v : variants) lines.push_back(line(v));
  return join(lines, "\n");
}

std::string weights_rule(const Program& p, const ProgramNames& n) {
  const std::string w = n.lower + "_weights";
  return p.external_weights ? "" : "\n" + w + ".o " + w + ".pic.o: " + w + ".S " + w + ".bin\n\t$(CC) -c $< -o $@\n";
}

std::string for_one_processor(const Program& p, const std::string& march, const ProgramNames& n,
                              const std::vector<std::string>& stems) {
  std::vector<std::string> objects{n.lower};
  objects.insert(objects.end(), stems.begin(), stems.end());
  if (!p.external_weights) objects.push_back(n.lower + "_weights");
  return fill(support_text("Makefile.in"),
              {{"name", n.lower},
               {"march_flags", march},
               {"arch_help", "#   make TC_ARCH=         no -march (works everywhere, slower)"},
               {"objects", "OBJECTS = \\\n" + listed(objects, ".o", " \\")},
               {"profiled", n.lower + ".profile.o"},
               {"cleaned", "$(OBJECTS) $(OBJECTS:.o=.pic.o) main.o main.profile.o " + n.lower + ".profile.o"},
               {"variants", ""},
               {"weights_rule", weights_rule(p, n)},
               {"variant_rules", ""}});
}

std::string for_several_processors(const Program& p, const ProgramNames& n, const std::vector<std::string>& stems,
                                   const std::vector<Variant>& variants) {
  const std::string& x = n.lower;
  const std::string help =
      "#   make TC_VARIANTS=     for any processor only; or the names of some: " + names_of(variants) +
      "\n#   make TC_ARCH=-march=native   for one processor only";
  return fill(support_text("Makefile.in"),
              {{"name", x},
               {"march_flags", ""},
               {"arch_help", help},
               {"objects", "GRAPH = \\\n" + listed(stems, "", " \\") + "\nOBJECTS = " + x +
                               ".o $(GRAPH:=.o) $(foreach v,$(TC_VARIANTS),$(GRAPH:=.$v.o))" +
                               (p.external_weights ? "" : " " + x + "_weights.o")},
               {"profiled", x + "_graph.profile.o $(TC_VARIANTS:%=" + x + "_graph.%.profile.o)"},
               {"cleaned", "*.o kernels/*.o"},
               {"variants", fill(support_text("variants.mk.in"),
                                 {{"flags", each(variants, [](const Variant& v) { return v.name + " = " + v.flags; })},
                                  {"variants", names_of(variants)}})},
               {"weights_rule", weights_rule(p, n)},
               {"variant_rules", fill(support_text("variant_rules.mk.in"), {{"name", x}})}});
}

std::string cmake_lists(const Program& p, const std::string& march, const ProgramNames& n,
                        const std::vector<std::string>& stems, const std::vector<Variant>& variants) {
  const std::string& x = n.lower;
  std::vector<std::string> sources{x};
  sources.insert(sources.end(), stems.begin(), stems.end());
  const bool several = !variants.empty();
  const std::string graph_sources = listed(stems, ".c", "");
  const std::string one_help = "#   TC_ARCH    \"" + march + "\", or \"\" for a build that runs everywhere";
  const std::string several_help =
      "#   TC_VARIANTS  a list of processors beside any: " + names_of(variants) +
      "; \"\" for none\n#   TC_ARCH    \"\"; -march=native and the like: for one processor only";
  std::vector<Hole> holes = weights_holes(p, n, "\n  ");
  holes.insert(holes.end(),
               {{"name", x},
                {"asm", p.external_weights ? "" : " ASM"},
                {"march_flags", march},
                {"arch_help", several ? several_help : one_help},
                {"sources", listed(sources, ".c", "")},
                {"profiled", several ? "${" + x + "_profiled}" : x + ".c"},
                {"profiled_variants", several ? fill(support_text("profiled.cmake.in"), {{"name", x}}) : ""},
                {"variants", several ? fill(support_text("variants.cmake.in"), {{"name", x},
                                                                                {"graph_sources", graph_sources},
                                                                                {"flags", each(variants,
                                                                                               [&](const Variant& v) {
                                                                                                 return "set(" + x +
                                                                                                        "_" + v.name +
                                                                                                        " \"" +
                                                                                                        v.flags + "\")";
                                                                                               })},
                                                                                {"variants", names_of(variants)}})
                                     : ""}});
  return fill(support_text("CMakeLists.txt.in"), holes);
}

}  // namespace

std::vector<OutputFile> build_files(const Program& p, const ProgramNames& n, const std::vector<std::string>& stems,
                                    const std::vector<Variant>& variants) {
  const std::string march =
      p.march.empty() ? "" : "-march=" + p.march + (p.lanes >= 16 ? " -mprefer-vector-width=512" : "");
  return {{"Makefile",
           variants.empty() ? for_one_processor(p, march, n, stems) : for_several_processors(p, n, stems, variants)},
          {"CMakeLists.txt", cmake_lists(p, march, n, stems, variants)}};
}

}  // namespace tc
