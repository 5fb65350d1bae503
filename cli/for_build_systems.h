// What build systems need: which files a run reads, and which it writes.
#pragma once
#include <string>
#include <vector>

#include "cli/options.h"
#include "support/output_dir.h"

namespace tc {

/// From now on `read` has the paths of the model, of --ops files, and of external data as it is read. It has to outlive
/// `request`.
void watch_reads(const CommandLine& c, CompileRequest& request, std::vector<std::string>& read);

/// A rule of make, "target: file file ...". Throws Error TC0603 (Io) where a path has a line break, which make cannot say.
std::string depfile_text(const std::string& target, const std::vector<std::string>& read);

/// Writes the package and --depfile. The target is DIR/manifest.json, which gets the time of this run even where its bytes
/// stay, so that what is up to date is newer than what was read. Where the depfile cannot be written, nothing is.
WriteReport write_with_depfile(const CommandLine& c, const std::vector<OutputFile>& files,
                               const std::vector<std::string>& read);

}  // namespace tc
