#include "passes/graph/cut_group.h"

#include "ir/identity.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr size_t kLongGroup = 24;   // nodes; a longer group is cut
constexpr size_t kCutWindow = 6;    // a cut has the smallest hash of this many nodes on each side
constexpr size_t kCutNodes = 4;     // nodes that a hash covers: few kinds of nodes repeat, sequences of them hardly
constexpr uint64_t kCutSeed = 4;    // of the hash: any number would do, this one cuts chains of common operators evenly
constexpr size_t kLongestRun = 32;  // between two cuts; only runs of equal nodes come near

}  // namespace

void cut_group(const std::vector<Node*>& nodes, std::vector<std::vector<Node*>>& runs) {
  if (nodes.size() <= kLongGroup) {
    runs.push_back(nodes);
    return;
  }
  std::vector<uint64_t> one, hash;
  for (const Node* n : nodes) one.push_back(hash_text(identity_of(*n->fn), kCutSeed));
  for (size_t i = 0; i < nodes.size(); ++i) {
    hash.push_back(one[i]);
    for (size_t k = 1; k < kCutNodes && k <= i; ++k) hash[i] = hash_text(hex(one[i - k], 16), hash[i]);
  }
  auto is_cut = [&](size_t i) {
    if (i < kCutWindow || i + kCutWindow >= nodes.size()) return false;
    for (size_t j = i - kCutWindow; j <= i + kCutWindow; ++j)
      if (j != i && hash[j] <= hash[i]) return false;
    return true;
  };
  runs.emplace_back();
  for (size_t i = 0; i < nodes.size(); ++i) {
    runs.back().push_back(nodes[i]);
    if (i + 1 < nodes.size() && (is_cut(i) || runs.back().size() >= kLongestRun)) runs.emplace_back();
  }
}

}  // namespace tc
