// Files that have another name now: a kernel whose loops changed has another hash, a model of another name gives its name to all files.
#pragma once
#include <vector>

#include "cli/review/changes.h"

namespace tc {

/// Joins each file that went with one that came in its folder and has most of its lines, the most alike first: one change,
/// whose `renamed_from` is the name that went. What has no counterpart stays, and so does the order of the paths.
std::vector<FileChange> join_renamed(std::vector<FileChange> files);

}  // namespace tc
