// Packages whose kernels are compiled for several processors: NAME_graph.c and kernels/ are compiled once as they stand, for any
// processor, and once more for each variant that the compiler knows, under symbols that carry the variant's name. NAME_init
// asks the processor (tc_cpu.h) and sets the instance's pointer to the graph of the best; kernels are called directly.
//
// Of a list of processors (Program::variants) each has a graph of its own, NAME_graph_v3.c, and those of kernels/ that it calls;
// what a processor's graph calls is compiled for it. A processor for which nothing was compiled runs the schedule that suits the
// vectors of the build's own flags. Of several with the same instructions the first of the list is for all that have them, the others
// for the processors of their row.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "emit_c/kernel.h"
#include "emit_c/names.h"

namespace tc {

struct Variant {
  std::string name;   // "v3", "icelake_server": of symbols and objects; the program's --cpu takes '-' for '_'
  std::string macro;  // "V3", after NAME_CPU_
  std::string flags;  // of the compiler
  std::string test;   // tc_cpu.h: whether this processor runs what was compiled with the flags
  int schedule = -1;  // of a list: the position among Program::variants
  std::string is_best =
      {};  // tc_cpu_maker.h: whether, of those that run it, it is meant for this one; empty: for each of them
};

/// The variants of a package, the best last. Those for byte products alone only where kernels have such products.
std::vector<Variant> processor_variants(const Needs& needs);

/// Whether kernels multiply tiles of bytes, which a process asks its system for where it was compiled for them: NAME_init does.
bool multiplies_tiles(const Program& p);

/// Whether a variant is meant for some of the processors that run it (tc_cpu_maker.h).
bool asks_maker(const std::vector<Variant>& variants);

/// The variants of a list of processors, without the one that any processor runs (plain_schedule()).
std::vector<Variant> listed_variants(const Program& p);
/// "v3", "znver4", "baseline": a processor of a list in names of symbols and files.
std::string variant_name(const ProgramVariant& v);
/// "-march=x86-64-v4 -mprefer-vector-width=512".
std::string march_flags(const std::string& march, int lanes);
/// Whether a list has one that any processor runs (generic): it comes first.
bool has_plain_schedule(const Program& p);
/// "NAME_graph_v4", an expression in C: the graph of a list that suits the vectors of the flags.
std::string graph_by_vectors(const Program& p, const ProgramNames& n);
/// "x86-64-v3 and x86-64-v4".
std::string processors_text(const Program& p);

/// A file of a graph, and, of a list, which processors it is compiled for.
struct GraphFile {
  std::string stem;  // "digits_graph", "kernels/..."
  std::vector<int> variants = {};
};

/// NAME_variants.h: with TC_VARIANT, what NAME_graph.c and kernels/ define is called NAME_..._v3.
std::string variants_header(const Program& p, const ProgramNames& n);

/// Of NAME.c: the prototypes of all graphs, and the choice among those that the build files made.
std::string variant_choice(const Program& p, const std::vector<Variant>& variants, const ProgramNames& n);

/// Of NAME.h: the enumeration NAME_cpu.
std::string variant_type(const Program& p, const std::vector<Variant>& variants, const ProgramNames& n);

}  // namespace tc
