// The files of tune/records/, which are part of the program: what --records default reads.
#pragma once
#include <vector>

#include "templates/text.h"

namespace tc {

/// By name.
const std::vector<SupportFile>& shipped_records();

}  // namespace tc
