// What the page of a report shows, as JSON.
#pragma once
#include <string>

#include "cli/report/model_story.h"
#include "cli/report/times.h"
#include "cli/review/package_facts.h"

namespace tc {

/// ASCII in which no '<', '>' or '&' occurs, so that it can stand inside of a script element. `program` and `story` are
/// those of a model; null: the report is about a package. `times`: null: nothing was measured.
std::string report_data(const PackageFacts& p, const Program* program, const ModelStory* story,
                        const KernelTimes* times);

}  // namespace tc
