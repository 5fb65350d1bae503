// A sketch of one nest of plain loops. See sketch_nest.cc.
#pragma once
#include <set>
#include <string>

#include "templates/cpu/template.h"
#include "templates/sketch.h"

namespace tc {

/// Chooses the numbers of the nest that fills `result`, each a number of the line `plan` whose name ends in `suffix`, and takes the
/// steps. `shared`: loops around the nest that are others' as well. Throws ScheduleError where a step is refused.
void sketch_nest(Schedule& s, const Buffer& result, const std::set<Var>& shared, const std::string& suffix,
                 const TemplateArgs& a);

}  // namespace tc
