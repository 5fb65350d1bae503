#include <cstdlib>
#include <string>

#include "generated_tests/fuzz/targets.h"
#include "ir/language/graph_text.h"

namespace tc::fuzz {

void read_graph(const uint8_t* data, size_t size) {
  const language::SourceText source{"fuzz.tc", {reinterpret_cast<const char*>(data), size}};
  const language::DataReader zeros = [](const language::DataPlace& at, DType t, const Dims& dims,
                                        std::string& why_not) -> Constant {
    why_not = "there are no such elements";
    if (at.offset > 4096 || at.bytes > 4096) return nullptr;
    return std::make_shared<TensorData>(new_tensor(t, dims).data);
  };
  language::Problems problems;
  const auto module = language::parse_module(source, zeros, problems);
  for (const language::Problem& p : problems) (void)language::render(source, p);
  if (!module) {
    if (problems.empty()) std::abort();
    return;
  }
  const language::GraphText text = language::graph_text(module->graph, language::Elements::Numbered);
  if (!text.unspeakable.empty()) std::abort();
  const auto again =
      language::parse_module({"again.tc", to_text(module->header) + text.text}, language::data_of(text), problems);
  if (!again || !difference_of(module->graph, again->graph).empty()) std::abort();
}

}  // namespace tc::fuzz
