// Graphs in the language: what is read equals what was printed (difference_of() in ir/graph/graph.h).
//
//   graph net(x: f32[1, 3, 56, 56]) -> (y) {
//     w: f32[64, 3, 3, 3] = const data(0, 6912, "90f4c2...")
//     y: f32[1, 64, 54, 54] = Conv(x, w) {group = 1} from "conv1"
//   }
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/language/source.h"

namespace tc::language {

/// Which elements of constants stand outside of the text: those of more than eight, and what has no digits.
enum class Elements {
  Omitted,   // the text shows a graph and cannot be read again
  Numbered,  // in GraphText::data, without hashes: for a reader in the same process
  Hashed,
};

/// Where elements lie in a file of data, row-major, little endian.
struct DataPlace {
  size_t offset = 0, bytes = 0;
  std::string hash;  // XXH64 in 16 digits; empty: not said
};

struct GraphText {
  std::string text;                                  // operators of the user's that the graph uses, the graph
  std::vector<std::pair<DataPlace, Constant>> data;  // by offset, each a multiple of 64
  std::vector<std::string> unspeakable;  // what the language has no words for, with the node; stands as comments
};
GraphText graph_text(const Graph& g, Elements elements);

/// The elements at a place; null, and `why_not`, where they are not there or not the same any more.
using DataReader = std::function<Constant(const DataPlace& at, DType dtype, const Dims& dims, std::string& why_not)>;
/// That of a graph_text() in this process. `g` has to stay.
DataReader data_of(const GraphText& g);

/// What a file says above its graph.
struct ModuleHeader {
  std::string after;                                         // the label of the pass that ran last; empty: none
  std::vector<std::pair<std::string, std::string>> options;  // "--cpu", "x86-64-v3": as on a command line
};
constexpr int kLanguageVersion = 1;
constexpr size_t kMaxModuleBytes = size_t(1) << 28;  // of a file with a graph
std::string to_text(const ModuleHeader& h);

struct Module {
  ModuleHeader header;
  Graph graph;
};
/// A file with a graph, verified (ir/verify.h); nullopt where problems are told. Never throws for what the text says.
std::optional<Module> parse_module(const SourceText& source, const DataReader& data, Problems& problems);

}  // namespace tc::language
