// The options of a package that its manifest states, so that another model can be emitted the same way.
#pragma once
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/review/package_facts.h"

namespace tc {

/// Words of a command line: options that shape the package, that are not at their defaults, and that the manifest does not
/// tell otherwise. Target, processor and name have fields of their own; sizes show in the inputs.
std::vector<std::string> stated_options(const CommandLine& c);

/// What `p` states becomes what `c` asks for, where its user gave nothing else: target, processor, name, options, and the
/// symbolic sizes of inputs of c.model. Throws Error TC0604 (Io) where this version has no such option or value.
void take_stated_options(CommandLine& c, const PackageFacts& p, const std::string& where);

}  // namespace tc
