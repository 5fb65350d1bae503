// One side of a comparison, or what a report is about: a package that was written, or a model, which is emitted in memory.
#pragma once
#include <optional>

#include "cli/options.h"
#include "cli/review/package_facts.h"

namespace tc {

/// A folder, or the manifest in it.
bool is_package(const std::string& path);

/// Throws Error TC0604 (Io).
PackageFacts read_package_facts(const std::string& path);

/// Packages are what they are: options that say how to emit would be ignored in silence. Throws Error TC0001 (Usage).
void refuse_options_of_models(const CommandLine& c, const std::string& why);

struct EmittedModel {
  Compilation compilation;
  PackageFacts facts;
};

/// Compiles c.model, with `watch` as in CompileRequest. Nothing if that failed; then the messages have been told and
/// `exit` is set.
std::optional<EmittedModel> emit_in_memory(const CommandLine& c, decltype(CompileRequest::watch) watch, ExitCode& exit);

}  // namespace tc
