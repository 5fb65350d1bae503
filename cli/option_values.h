// The values of options: from the words of a command line into it. What does not read throws Error TC0001 (Usage).
#pragma once
#include <string>
#include <string_view>

#include "cli/options.h"

namespace tc {

/// `what` is the flag, for the message. limit(): from 1 to `most`; number(): not negative.
int64_t integer(std::string_view what, std::string_view text);
int64_t limit(std::string_view what, std::string_view text, int64_t most);
double number(std::string_view what, std::string_view text);
/// What stands between the separators; an empty text has no parts.
std::vector<std::string_view> parts_of(std::string_view text, char separator);
/// "fold_constant#2" as pass_label() says it; the first of a name may be called #1.
std::string known_label(std::string v);

void set_dim(CommandLine& c, const std::string& v);
void set_state(CommandLine& c, const std::string& v);
void set_elements(CommandLine& c, const std::string& v);
void set_shape(CommandLine& c, const std::string& v);
void set_input_value(CommandLine& c, const std::string& v);
void set_cpu(CommandLine& c, const std::string& v);
void set_arch(CommandLine& c, const std::string& v);
void set_target(CommandLine& c, const std::string& v);
void set_fp(CommandLine& c, const std::string& v);
void set_activations(CommandLine& c, const std::string& v);
void set_weights(CommandLine& c, const std::string& v);
void set_precision(CommandLine& c, const std::string& v);
void set_fill(CommandLine& c, const std::string& v);
void set_progress(CommandLine& c, const std::string& v);
void set_name(CommandLine& c, const std::string& v);
void set_level(CommandLine& c, const std::string& v);
void disable_pass(CommandLine& c, const std::string& v);
void print_after(CommandLine& c, const std::string& v);

}  // namespace tc
