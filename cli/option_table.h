// The commands and their options as tables, which serve parsing, help and "did you mean".
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace tc {

/// The commands as bits: an option says which ones take it.
enum CommandBits : unsigned {
  kEmit = 1,
  kCheck = 2,
  kInfo = 4,
  kOps = 8,
  kPasses = 16,
  kVerify = 32,
  kBench = 64,
  kExplain = 128,
  kHelp = 256,
  kCmake = 512,
  kCompletion = 1024,
  kMan = 2048,
  kRun = 4096,
  kReduce = 8192,
  kDiff = 16384,
  kReport = 32768,
  kTune = 65536,
  kDoctor = 131072,
  kRecords = 262144,
  kBuilds = kVerify | kBench | kRun | kReduce | kTune,              // make a program for this machine
  kCompiles = kEmit | kCheck | kBuilds | kCmake | kDiff | kReport,  // run the passes
  kPackages = kEmit | kBuilds | kCmake | kDiff | kReport,           // make a package
  kImports = kCompiles | kInfo,                                     // read a model
  kEvery = 524287,
};

struct Command {
  CommandBits bit;
  std::string_view name, operands, summary, examples;
};

const std::vector<Command>& commands();
/// Null if there is none of that name.
const Command* find_command(std::string_view name);

enum class OptionTarget { Any, C, Cuda };

struct Option {
  std::string_view flag, value, help;  // value: its placeholder, empty for a switch
  unsigned commands;                   // bits of those that take it
  OptionTarget target;                 // --target that it is for
  void (*apply)(CommandLine&, const std::string&);
  /// Of an option that a package depends on: the values that it now has, as apply() takes them; a file of --write-ir says
  /// them. Null: of others.
  std::vector<std::string> (*stated)(const CommandLine&) = nullptr;
};

const std::vector<Option>& options();
/// The row of a flag; null if there is none.
const Option* find_option(std::string_view flag);

/// "bench", "verify and bench": the commands whose bits are set, in the order of help.
std::string command_list(unsigned bits);

[[noreturn]] void usage(const std::string& message,
                        const std::string& note = "tc-emit --help lists commands and options");

/// "; did you mean 'X'?" with the nearest of the known words, "" if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace tc
