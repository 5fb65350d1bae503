#include "cli/option_words.h"

#include "passes/loop/loop_pass.h"
#include "passes/pass.h"
#include "templates/cpu/cpu_model.h"

namespace tc {
namespace {

using Kind = ValueWords::Kind;

// "c|cuda" is {"c", "cuda"}.
std::vector<std::string> alternatives(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('|', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<std::string> pass_words(bool loop_passes) {
  std::vector<std::string> words;
  for (const PassInfo& p : graph_passes()) words.emplace_back(p.name);
  if (!loop_passes) return words;
  for (const std::string_view name : loop_pass_names()) words.emplace_back(name);
  words.push_back("all");
  return words;
}

}  // namespace

ValueWords value_words(const Option& o) {
  std::vector<std::string> words;
  if (o.flag == "--cpu") {
    for (const CpuModel& m : cpu_models()) words.emplace_back(m.name);
    words.push_back("native");
  } else if (o.flag == "--arch") {
    for (const CudaModel& m : cuda_models()) words.emplace_back(m.name);
  } else if (o.flag == "--precision") {
    words = {"fp32", "tf32", "fp16", "bf16", "int8"};
  } else if (o.flag == "-O") {
    words = {"0", "1", "2", "3"};
  } else if (o.value == "PASS") {
    words = pass_words(o.flag == "--print-ir-after");
  } else if (o.value == "DIR") {
    return {Kind::Folder};
  } else if (o.value == "FILE") {
    return {Kind::File};
  } else if (o.value.find('|') != o.value.npos) {
    words = alternatives(o.value);
  } else {
    return {};
  }
  return {Kind::Words, words};
}

ValueWords operand_words(const Command& c) {
  if (c.operands.starts_with("MODEL") || c.bit == kDiff) return {Kind::File};
  if (c.bit == kCompletion) return {Kind::Words, {"bash", "zsh", "fish"}};
  if (c.bit != kHelp) return {};
  std::vector<std::string> words;
  for (const Command& other : commands()) words.emplace_back(other.name);
  return {Kind::Words, words};
}

}  // namespace tc
