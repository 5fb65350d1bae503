// Parts of a nest, and what is said of them: annotate, blockize.
#include <algorithm>

#include "ir/loop/build.h"
#include "passes/analysis/region.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr size_t kLongestLine = 100;

// "x[1, 64]": how much of a buffer the statement touches.
std::string extent_text(const StepCheck& step, const LoopSite& site, const Accesses& all, const Buffer& b,
                        const std::string& name) {
  const auto region = region_of(all.list, b, all.bound, site.ranges);
  step.require(region.has_value(), "what it touches of \"" + b->name + "\" is no box", site.stmt);
  std::vector<std::string> sizes;
  for (const int64_t n : region->size) sizes.push_back(to_text(n));
  return name + "[" + join(sizes, ", ") + "]";
}

// The buffers that are read, or written, in order of appearance.
std::vector<Buffer> touched(const Accesses& all, bool written) {
  std::vector<Buffer> list;
  for (const Access& a : all.list)
    if (a.write == written && std::find(list.begin(), list.end(), a.buffer) == list.end()) list.push_back(a.buffer);
  return list;
}

}  // namespace

// A line above the loop, which the emitted text has, too.
//   for i: B   ->   # one panel of weights
//                   for i: B                       for annotate(i, "one panel of weights")
// What stands below a line is no longer right inside the loop around it. Refused: a text that is empty or has more than 100
// characters, or what a comment of C cannot have, which a step is part of as well.
void Schedule::annotate(const Var& v, const std::string& text) {
  StepCheck step(*this, "annotate", {{v}, {StepArg::Text{text}}});
  const LoopSite site = step.find(v);
  step.require_argument(1, !text.empty() && text.size() <= kLongestLine,
                        "the text has from 1 to " + to_text(int64_t(kLongestLine)) + " characters", site.stmt);
  const bool plain = comment_text(ModelText(text)) == text && text.find_first_of("\"\\") == std::string::npos;
  step.require_argument(1, plain, "the text has what no comment can have: quotes, a backslash, the end of a comment",
                        site.stmt);
  step.require(site.loop->kind != ForKind::Vector, "loop " + v->name + " is vector", site.stmt);
  step.done(replace_stmt(body_, site.stmt.get(), comment(text, site.stmt)));
}

// The nest of the loop becomes a block: its loops stay together, apart from those around it, and what an iteration around it
// reads and writes stands above it, in the emitted text, too.
//   for i: for k in 0 .. +4: acc[i] += x[i, k]   ->   for i:
//                                                       # block: reads x[1, 4]; writes acc[1]
//                                                       for k in 0 .. +4: ...              for blockize(k)
// Refused: what it touches of a buffer is no box; loops of vectors; barriers, launches and instructions inside.
void Schedule::blockize(const Var& v) {
  StepCheck step(*this, "blockize", {{v}});
  const LoopSite site = step.find(v);
  step.require(site.loop->kind != ForKind::Vector, "loop " + v->name + " is vector", site.stmt);
  const Accesses all = accesses_of(site.stmt, site.ranges);
  step.require(all.opaque.empty() && !all.has_barrier, "there is " + (all.opaque.empty() ? "a barrier" : all.opaque),
               site.stmt);
  const auto names = printed_names(body_);
  std::vector<std::string> parts;
  for (const bool written : {false, true}) {
    std::vector<std::string> list;
    for (const Buffer& b : touched(all, written)) list.push_back(extent_text(step, site, all, b, names.at(b.get())));
    if (!list.empty()) parts.push_back((written ? "writes " : "reads ") + join(list, ", "));
  }
  step.done(replace_stmt(body_, site.stmt.get(), comment("block: " + join(parts, "; "), site.stmt)));
}

}  // namespace tc
