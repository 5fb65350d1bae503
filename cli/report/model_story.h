// What a report tells of a model beyond its package: the nodes as they were imported, what each pass changed, and why edges
// between kernels are left.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "cli/driver.h"
#include "passes/graph/fusion_reasons.h"

namespace tc {

struct ModelStory {
  struct Result {
    std::string name, type;
  };
  struct Source {
    std::string name;
    int node = -1;  // of `nodes`; -1: an input or a constant
    bool constant = false;
  };
  struct ModelNode {
    std::string name, op;
    std::vector<std::pair<std::string, std::string>> attrs;
    std::vector<Source> inputs;
    std::vector<Result> outputs;
    std::vector<std::string> origins;  // what steps call it
    int bodies = 0;                    // subgraphs, whose nodes are not listed
  };
  struct Pass {
    std::string name, summary;
    size_t before = 0, after = 0;  // nodes, bodies included
    bool changed = false;
    std::vector<std::pair<std::string, int64_t>> ops;  // operators of which there are more or fewer now
    std::vector<std::string> gone, fresh;              // "conv1 (Conv)", the first of them
  };
  std::vector<ModelNode> nodes;
  std::vector<Pass> passes;
  std::vector<KeptEdge> kept;
};

/// Collects a story while a model is compiled: CompileRequest::watch calls see().
class StoryTeller {
 public:
  explicit StoryTeller(const Target& target) : target_(target) {}
  void see(const PassInfo* pass, const Graph& g);
  ModelStory take() { return std::move(story_); }

 private:
  struct State {
    size_t nodes = 0;
    uint64_t text = 0;                           // hash of all of it
    std::map<std::string, int64_t> ops;          // how many there are
    std::map<std::string, std::string> results;  // by the name of a node's first result: its operator
  };
  static State state_of(const Graph& g);
  void tell_nodes(const Graph& g);
  void tell_types(const Graph& g);
  void tell_pass(const PassInfo& pass, const State& now);

  Target target_;
  ModelStory story_;
  State last_;
};

}  // namespace tc
