// A list of processors: one program, of steps, tensors and packed weights, and for each call a kernel of each processor.
//
// The graph, the packing of weights and the memory are those of the best processor. The others schedule each function, too: by
// themselves where they happen to want the weights as these are packed, else with the template and the panels of the best, which
// are walked in strips that fit their registers. Where what comes out has other parameters, or other weights, or takes over
// another operand's memory, the kernel of the best stands for theirs: its loops are text for vectors of any length.
#include "ir/calls.h"
#include "ir/identity.h"
#include "passes/backend.h"
#include "passes/program/program_builder.h"

namespace tc {
namespace {

bool same_parameters(const Kernel& a, const Kernel& b) {
  const auto same = [](const Param& x, const Param& y) {
    const bool scratch = x.role == Param::Role::Scratch;  // its size may differ
    return x.role == y.role && (scratch || (x.buffer->dtype == y.buffer->dtype && x.dims == y.dims));
  };
  return std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(), same);
}

}  // namespace

// `best`: what the best processor has, `kernel`; `packing`: its plan as far as it packs weights.
int ProgramBuilder::kernel_for(const Backend& other, const Making& m, const Made& best, int kernel,
                               const std::vector<PlanLine>& packing) {
  const std::vector<int> dead = best.replaced < 0 ? std::vector<int>() : std::vector<int>{best.replaced};
  const std::string weights = identity_of(best.s.prologue);
  const auto agrees = [&](const Made& made) {
    return made.replaced == best.replaced && made.s.input_index == best.s.input_index &&
           identity_of(made.s.prologue) == weights && same_parameters(made.k, best.k);
  };
  ScheduleOptions o = m.options;
  o.wide_panels = true;
  for (const bool as_packed : {false, true}) try {
      Planner planner = as_packed ? Planner::beginning_with({.signature = "", .lines = packing}) : Planner();
      o.planner = &planner;
      Scheduled s = other.schedule(m.fn, m.known, o);
      planner.finish();
      s.steps = planner.texts();
      if (identity_of(s.prologue) != weights) continue;
      Made made = lowered(m, std::move(s), other, dead);
      if (agrees(made)) return add_kernel(m, made);
    } catch (const PlanRefused&) {  // its templates cannot do with these numbers
    }
  return kernel;
}

// The processors, and which of them call a kernel.
void ProgramBuilder::add_variants() {
  if (cx_.others.empty()) return;
  std::vector<const Backend*> backends = cx_.others;
  backends.push_back(cx_.backend);
  p_.cpu.clear();
  for (const Backend* b : backends) {
    const TargetTraits t = b->traits();
    p_.variants.push_back({std::string(t.processor), std::string(t.march), t.vector_lanes});
    p_.cpu += (p_.cpu.empty() ? "" : ",") + std::string(t.processor);
  }
  p_.march.clear();
  p_.lanes = 0;
  for (int v = 0; v < int(backends.size()); v++)
    for_each_call(p_.steps, [&](const Call& c) {
      std::vector<int>& list = p_.kernels[size_t(c.kernel_of(size_t(v)))].variants;
      if (list.empty() || list.back() != v) list.push_back(v);
    });
}

}  // namespace tc
