// A sketch of one nest of plain loops as a launch. See sketch_nest.cc.
#pragma once
#include "templates/cuda/template.h"
#include "templates/sketch.h"

namespace tc {

/// Chooses the numbers of the nest that fills `result`, each a number of the line `plan` whose name ends in `suffix`, and takes the
/// steps. Throws ScheduleError where a step is refused.
void sketch_launch(Schedule& s, const Buffer& result, const std::string& suffix, const CudaArgs& a);

}  // namespace tc
