// The subcommands. Each returns the process's exit code; results go to stdout, messages to stderr.
#pragma once
#include "cli/options.h"
#include "support/output_dir.h"

namespace tc {

ExitCode run_command(CommandLine c);

ExitCode emit_command(const CommandLine& c);
ExitCode check_command(const CommandLine& c);
ExitCode info_command(const CommandLine& c);
ExitCode ops_command(const CommandLine& c);
ExitCode passes_command(const CommandLine& c);
ExitCode verify_command(const CommandLine& c);
ExitCode bench_command(const CommandLine& c);
ExitCode run_model_command(const CommandLine& c);
ExitCode reduce_command(const CommandLine& c);
ExitCode help_command(const CommandLine& c);
ExitCode tune_command(const CommandLine& c);
ExitCode records_command(const CommandLine& c);
ExitCode diff_command(const CommandLine& c);
ExitCode report_command(const CommandLine& c);
ExitCode doctor_command(const CommandLine& c);
ExitCode explain_command(const CommandLine& c);
ExitCode cmake_command(const CommandLine& c);
ExitCode completion_command(const CommandLine& c);
ExitCode man_command(const CommandLine& c);

/// The files that the command line asks for: the package of its target.
std::vector<OutputFile> package_of(const Program& p, const CommandLine& c);

/// Prints every diagnostic to stderr, as text or as lines of JSON, and gives the exit code.
ExitCode report(const Diagnostics& d, const CommandLine& c);

/// Throws Error TC0001 without a model, or without -o.
void need_model(const CommandLine& c);
void need_out(const CommandLine& c);

/// Says to stderr which row of the table of processors --cpu native has become.
void say_native_cpu(const CommandLine& c);

void print_out(std::string_view text);
void print_err(std::string_view text);

}  // namespace tc
