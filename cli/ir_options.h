// The values of the options that a package depends on, as the command line would give them again.
#pragma once
#include <string>
#include <vector>

#include "cli/options.h"

namespace tc {

std::vector<std::string> stated_target(const CommandLine& c);
std::vector<std::string> stated_cpu(const CommandLine& c);
std::vector<std::string> stated_arch(const CommandLine& c);
std::vector<std::string> stated_precision(const CommandLine& c);
std::vector<std::string> stated_name(const CommandLine& c);
std::vector<std::string> stated_dims(const CommandLine& c);
std::vector<std::string> stated_states(const CommandLine& c);
std::vector<std::string> stated_shapes(const CommandLine& c);
std::vector<std::string> stated_elements(const CommandLine& c);
std::vector<std::string> stated_input_values(const CommandLine& c);
std::vector<std::string> stated_string_bytes(const CommandLine& c);
std::vector<std::string> stated_fp(const CommandLine& c);
std::vector<std::string> stated_activations(const CommandLine& c);
std::vector<std::string> stated_weights(const CommandLine& c);
std::vector<std::string> stated_level(const CommandLine& c);
std::vector<std::string> stated_disabled(const CommandLine& c);

/// All of a command line for its target, as a file of --write-ir says them: flags and values.
std::vector<std::pair<std::string, std::string>> options_of_ir(const CommandLine& c);

}  // namespace tc
