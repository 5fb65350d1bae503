// Packages whose kernels are compiled for several processors: NAME_graph.c and kernels/ are compiled once as they stand, for any
// processor, and once more for each variant that the compiler knows, under symbols that carry the variant's name. NAME_init
// asks the processor (tc_cpu.h) and sets the instance's pointer to the graph of the best; kernels are called directly.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "emit_c/kernel.h"
#include "emit_c/names.h"

namespace tc {

struct Variant {
  std::string name;   // "v3": of symbols, objects and the program's --cpu
  std::string macro;  // "V3", after NAME_CPU_
  std::string flags;  // of the compiler
  std::string test;   // tc_cpu.h: whether this processor runs what was compiled with the flags
};

/// The variants of a package, the best last. Those for byte products alone only where kernels have such products.
std::vector<Variant> processor_variants(const Needs& needs);

/// NAME_variants.h: with TC_VARIANT, what NAME_graph.c and kernels/ define is called NAME_..._v3.
std::string variants_header(const Program& p, const ProgramNames& n);

/// Of NAME.c: the prototypes of all graphs, and the choice among those that the build files made.
std::string variant_choice(const std::vector<Variant>& variants, const ProgramNames& n);

/// Of NAME.h: the enumeration NAME_cpu.
std::string variant_type(const std::vector<Variant>& variants, const ProgramNames& n);

}  // namespace tc
