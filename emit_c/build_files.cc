#include "emit_c/build_files.h"

#include <algorithm>

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
  lines.reserve(variants.size());
  for (const Variant& v : variants) lines.push_back(line(v));
  return join(lines, "\n");
}

std::vector<std::string> stems_of(const std::vector<GraphFile>& graph) {
  std::vector<std::string> stems;
  stems.reserve(graph.size());
  for (const GraphFile& f : graph) stems.push_back(f.stem);
  return stems;
}

// Of a list of processors: the files of one, NAME_graph_v3 first.
std::vector<std::string> stems_of(const std::vector<GraphFile>& graph, int variant) {
  std::vector<std::string> stems;
  for (const GraphFile& f : graph)
    if (std::find(f.variants.begin(), f.variants.end(), variant) != f.variants.end()) stems.push_back(f.stem);
  return stems;
}

// Of a list: "NAME_graph_v3" of each processor.
std::vector<std::string> graph_names(const Program& p, const ProgramNames& n) {
  std::vector<std::string> names;
  names.reserve(p.variants.size());
  for (const ProgramVariant& v : p.variants) names.push_back(n.lower + "_graph_" + variant_name(v));
  return names;
}

// Whichever package of a program has it runs the loops of all: on any processor.
std::string pool_rule(bool pool) {
  return pool ? "# The packages of a program share one pool, whatever processor each is for.\ntc_pool.o tc_pool.pic.o: "
                "override TC_ARCH :=\n\n"
              : "";
}

std::string weights_rule(const Program& p, const ProgramNames& n) {
  const std::string w = n.lower + "_weights";
  return p.external_weights ? "" : "\n" + w + ".o " + w + ".pic.o: " + w + ".S " + w + ".bin\n\t$(CC) -c $< -o $@\n";
}

std::string for_one_processor(const Program& p, const std::string& march, const ProgramNames& n,
                              const std::vector<GraphFile>& graph, bool pool) {
  std::vector<std::string> objects{n.lower};
  const std::vector<std::string> stems = stems_of(graph);
  objects.insert(objects.end(), stems.begin(), stems.end());
  if (pool) objects.emplace_back("tc_pool");
  if (!p.external_weights) objects.push_back(n.lower + "_weights");
  return fill(support_text("Makefile.in"),
              {{"name", n.lower},
               {"march_flags", march},
               {"arch_help", "#   make TC_ARCH=         no -march (works everywhere, slower)"},
               {"objects", "OBJECTS = \\\n" + listed(objects, ".o", " \\")},
               {"profiled", n.lower + ".profile.o"},
               {"cleaned", "$(OBJECTS) $(OBJECTS:.o=.pic.o) main.o main.profile.o " + n.lower + ".profile.o"},
               {"variants", ""},
               {"pool", pool_rule(pool)},
               {"weights_rule", weights_rule(p, n)},
               {"variant_rules", ""}});
}

/// What the Makefile compiles for several processors.
struct MakeObjects {
  std::string lists;     // of files
  std::string objects;   // beside NAME.o
  std::string profiled;  // those of the graph, compiled with TC_PROFILE
  std::string comment;   // on TC_VARIANTS
};

MakeObjects objects_of_one_text(const ProgramNames& n, const std::vector<GraphFile>& graph) {
  const std::string& x = n.lower;
  return {
      "GRAPH = \\\n" + listed(stems_of(graph), "", " \\") + "\n",
      "$(GRAPH:=.o) $(foreach v,$(TC_VARIANTS),$(GRAPH:=.$v.o))",
      x + "_graph.profile.o $(TC_VARIANTS:%=" + x + "_graph.%.profile.o)",
      "# The graph and its kernels are compiled once as they stand and once more for each processor that the compiler "
      "knows, unless\n# they are for one: TC_ARCH, or vectors of a fixed length."};
}

MakeObjects objects_of_list(const Program& p, const ProgramNames& n, const std::vector<GraphFile>& graph) {
  const std::string& x = n.lower;
  const bool plain = has_plain_schedule(p);
  MakeObjects m;
  for (size_t v = 0; v < p.variants.size(); v++)
    m.lists += "GRAPH_" + variant_name(p.variants[v]) + " = \\\n" + listed(stems_of(graph, int(v)), "", " \\") + "\n";
  std::vector<std::string> all;
  all.reserve(p.variants.size());
  for (const ProgramVariant& v : p.variants) all.push_back("$(GRAPH_" + variant_name(v) + ":=.o)");
  m.objects = "$(if $(TC_VARIANTS),$(foreach v,$(TC_VARIANTS),$(GRAPH_$v:=.$v.o))" +
              std::string(plain ? " $(GRAPH_baseline:=.o)" : "") + ",$(sort " + join(all, " ") + "))";
  m.profiled = "$(if $(TC_VARIANTS),$(foreach v,$(TC_VARIANTS)," + x + "_graph_$v.$v.profile.o)" +
               (plain ? " " + x + "_graph_baseline.profile.o" : "");
  std::vector<std::string> graphs = graph_names(p, n);
  for (std::string& g : graphs) g += ".profile.o";
  m.lists += "PROFILED = " + m.profiled + "," + join(graphs, " ") + ")\n";
  m.profiled = "$(PROFILED)";
  m.comment =
      "# Each processor's graph and kernels are compiled for it, where the compiler knows it. All are compiled once, "
      "for "
      "one processor,\n# with TC_ARCH, or vectors of a fixed length, or no variants.";
  return m;
}

std::string for_several_processors(const Program& p, const ProgramNames& n, const std::vector<GraphFile>& graph,
                                   const std::vector<Variant>& variants, bool pool) {
  const std::string& x = n.lower;
  const std::string help =
      "#   make TC_VARIANTS=     " +
      std::string(p.variants.empty() ? "for any processor only" : "all compiled once, by your flags") +
      "; or the names of some: " + names_of(variants) + "\n#   make TC_ARCH=-march=native   for one processor only";
  const MakeObjects m = p.variants.empty() ? objects_of_one_text(n, graph) : objects_of_list(p, n, graph);
  return fill(support_text("Makefile.in"),
              {{"name", x},
               {"march_flags", ""},
               {"arch_help", help},
               {"objects", m.lists + "OBJECTS = " + x + ".o " + m.objects + (pool ? " tc_pool.o" : "") +
                               (p.external_weights ? "" : " " + x + "_weights.o")},
               {"profiled", m.profiled},
               {"cleaned", "*.o kernels/*.o"},
               {"variants", fill(support_text("variants.mk.in"),
                                 {{"comment", m.comment},
                                  {"flags", each(variants, [](const Variant& v) { return v.name + " = " + v.flags; })},
                                  {"variants", names_of(variants)}})},
               {"pool", pool_rule(pool)},
               {"weights_rule", weights_rule(p, n)},
               {"variant_rules", fill(support_text("variant_rules.mk.in"), {{"name", x}})}});
}

/// What CMake compiles for several processors.
struct CMakeObjects {
  std::vector<std::string> sources;   // of the library itself
  std::string graphs;                 // lists of files, with their comment
  std::string of_variant;             // the list of ${variant}
  std::string otherwise;              // behind the variants: what a build without them has
  std::string plain, plain_profiled;  // the graphs without a variant, and what else they are without variants
  std::string graph_of_variant;       // the file
};

CMakeObjects cmake_of_one_text(const ProgramNames& n, const std::vector<GraphFile>& graph) {
  const std::string& x = n.lower;
  return {
      stems_of(graph),
      "# The graph and its kernels once more for each processor that the compiler knows, under symbols of its own; " +
          x + "_init\n# chooses. TC_ARCH is one processor, and so are flags that fix the length of vectors.\nset(" + x +
          "_graph_sources\n" + listed(stems_of(graph), ".c", "") + ")",
      "${" + x + "_graph_sources}",
      "",
      " " + x + "_graph.c",
      "",
      x + "_graph.c"};
}

CMakeObjects cmake_of_list(const Program& p, const ProgramNames& n, const std::vector<GraphFile>& graph) {
  const std::string& x = n.lower;
  const bool plain = has_plain_schedule(p);
  CMakeObjects m;
  m.graphs =
      "# The graph and the kernels of each processor, compiled for it where the compiler knows it, under symbols of "
      "its "
      "own; " +
      x +
      "_init\n# chooses. TC_ARCH is one processor, and so are flags that fix the length of vectors: then all are "
      "compiled once.";
  std::string all;
  for (size_t v = 0; v < p.variants.size(); v++) {
    const std::string list = x + "_graph_" + variant_name(p.variants[v]) + "_sources";
    m.graphs += "\nset(" + list + "\n" + listed(stems_of(graph, int(v)), ".c", "") + ")";
    all += " ${" + list + "}";
  }
  if (plain) m.sources = stems_of(graph, 0);
  m.of_variant = "${" + x + "_graph_${variant}_sources}";
  m.graph_of_variant = x + "_graph_${variant}.c";
  m.otherwise = "if(NOT " + x + "_variants)\n  set(" + x + "_all" + all + ")\n  list(REMOVE_DUPLICATES " + x +
                "_all)\n" + (plain ? "  list(REMOVE_ITEM " + x + "_all ${" + x + "_graph_baseline_sources})\n" : "") +
                "  foreach(library IN ITEMS " + x + " " + x + "_shared)\n    target_sources(${library} PRIVATE ${" + x +
                "_all})\n  endforeach()\nendif()\n";
  std::vector<std::string> graphs = graph_names(p, n);
  for (std::string& g : graphs) g += ".c";
  m.plain = plain ? " " + graphs[0] : "";
  m.plain_profiled = "  if(NOT " + x + "_variants)\n    set(" + x + "_profiled " + join(graphs, " ") + ")\n  endif()\n";
  return m;
}

std::string cmake_lists(const Program& p, const std::string& march, const ProgramNames& n,
                        const std::vector<GraphFile>& graph, const std::vector<Variant>& variants, bool pool) {
  const std::string& x = n.lower;
  const bool several = !variants.empty();
  const CMakeObjects m = p.variants.empty() || !several ? cmake_of_one_text(n, graph) : cmake_of_list(p, n, graph);
  std::vector<std::string> sources{x};
  sources.insert(sources.end(), m.sources.begin(), m.sources.end());
  const std::string one_help = "#   TC_ARCH    \"" + march + "\", or \"\" for a build that runs everywhere";
  const std::string several_help =
      "#   TC_VARIANTS  a list of processors" + std::string(p.variants.empty() ? " beside any: " : ": ") +
      names_of(variants) + "; \"\" for none\n#   TC_ARCH    \"\"; -march=native and the like: for one processor only";
  const auto flags = [&](const Variant& v) { return "set(" + x + "_" + v.name + " \"" + v.flags + "\")"; };
  std::vector<Hole> holes = weights_holes(p, n, "\n  ");
  holes.insert(
      holes.end(),
      {{"name", x},
       {"asm", p.external_weights ? "" : " ASM"},
       {"march_flags", march},
       {"arch_help", several ? several_help : one_help},
       {"sources", listed(sources, ".c", "")},
       {"pool", pool ? fill(support_text("pool.cmake.in"), {{"name", x}}) : ""},
       {"profiled", several ? "${" + x + "_profiled}" : x + ".c"},
       {"profiled_variants",
        several
            ? fill(support_text("profiled.cmake.in"),
                   {{"name", x}, {"plain", m.plain}, {"otherwise", m.plain_profiled}, {"graph", m.graph_of_variant}})
            : ""},
       {"variants", several ? fill(support_text("variants.cmake.in"), {{"name", x},
                                                                       {"graphs", m.graphs},
                                                                       {"flags", each(variants, flags)},
                                                                       {"sources", m.of_variant},
                                                                       {"otherwise", m.otherwise},
                                                                       {"variants", names_of(variants)}})
                            : ""}});
  return fill(support_text("CMakeLists.txt.in"), holes);
}

}  // namespace

std::vector<OutputFile> build_files(const Program& p, const ProgramNames& n, const std::vector<GraphFile>& graph,
                                    const std::vector<Variant>& variants, bool pool) {
  const std::string march = march_flags(p.march, p.lanes);
  return {{"Makefile", variants.empty() ? for_one_processor(p, march, n, graph, pool)
                                        : for_several_processors(p, n, graph, variants, pool)},
          {"CMakeLists.txt", cmake_lists(p, march, n, graph, variants, pool)}};
}

}  // namespace tc
