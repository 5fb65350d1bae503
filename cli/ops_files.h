// --ops FILE: operators of the user's.
#pragma once
#include "cli/options.h"

namespace tc {

/// Reads the files of c.ops_files into c.request.import.ops. False if they hold mistakes, which are told to stderr, all of
/// them. Throws Error TC0601 (Io) where a file cannot be read.
bool load_ops_files(CommandLine& c);

}  // namespace tc
