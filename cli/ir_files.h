// --write-ir FILE.tc, and compilation that goes on from such a file. Elements of constants lie in FILE.tc.bin.
#pragma once
#include <optional>

#include "cli/options.h"
#include "ir/language/graph_text.h"

namespace tc {

/// Reads c.model if it is a file of --write-ir, and takes over what it says: the graph, the pass to go on behind, options. False if
/// it holds mistakes, which are told to stderr, all of them. Throws Error TC0601 (Io) where it cannot be read and TC0001
/// (Usage) where the command line says something else.
bool load_ir_file(CommandLine& c);

/// Keeps the graph behind the pass of --after while a model is compiled, and writes it when all went well.
class IrWriter {
 public:
  /// Watches `request`, and lets it end behind that pass where nothing else is asked for. Both have to stay.
  IrWriter(const CommandLine& c, CompileRequest& request);
  /// Both files or none. Throws Error TC0601 (Io), and TC3105 (Unsupported) where the language has no words for a function.
  /// What was written, in a line.
  std::string write() const;

 private:
  const CommandLine& c_;
  std::optional<language::GraphText> graph_;
  size_t nodes_ = 0;
};

}  // namespace tc
