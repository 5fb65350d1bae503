#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "ir/language/graph_text.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "support/interrupt.h"

namespace tc {

namespace {

using Clock = std::chrono::steady_clock;

std::string padded(std::string s, size_t width) {
  if (s.size() < width) s.resize(width, ' ');
  return s;
}

/// DIR/07_fold_constant.txt: the number is the position in the list, so that disabling a pass renames no other file.
void dump(const std::string& dir, size_t position, std::string_view name, const Graph& g) {
  std::string number = to_text(int64_t(position));
  if (number.size() < 2) number.insert(0, "0");
  const auto path = std::filesystem::path(dir) / (number + "_" + std::string(name) + ".txt");
  std::error_code ec;
  std::filesystem::create_directories(dir, ec);
  std::ofstream out(path, std::ios::binary);
  out << to_text(g);
  if (!out.flush()) throw Error("TC0601", ExitCode::Io, "cannot write " + printable(path.string()));
}

/// The graph's text says all of it: what is read from it is the same. What the language has no words for, --write-ir
/// refuses: numbers that their type does not have, which only models get that ONNX does not allow.
void verify_text(const Graph& g) {
  const language::GraphText text = language::graph_text(g, language::Elements::Numbered);
  if (!text.unspeakable.empty()) return;
  language::Problems problems;
  const auto again = language::parse_module({"graph", text.text}, language::data_of(text), problems);
  if (!again)
    throw InternalError("the graph's text is not read again: " + render({"graph", text.text}, problems.at(0)));
  if (const std::string d = difference_of(g, again->graph); !d.empty())
    throw InternalError("the graph's text is read as another graph: " + d);
}

bool has_problems(const PassContext& cx) { return cx.diagnostics && cx.diagnostics->has_errors(); }

void run_one(const PassInfo& p, Graph& g, PassContext& cx) {
  stop_if_interrupted();
  try {
    p.run(g, cx);
    g.renumber();
    // Behind a problem of the model there are values without types.
    if (!cx.options.verify_each || has_problems(cx)) return;
    verify(g);
    verify_text(g);
  } catch (const InternalError& e) {
    throw InternalError("pass " + std::string(p.name) + ": " + e.what());
  }
}

}  // namespace

// Three significant digits are enough for a time; whole microseconds keep the text free of noise digits.
std::string pass_time(std::string_view pass, Clock::duration spent) {
  const int64_t us = std::chrono::duration_cast<std::chrono::microseconds>(spent).count();
  const std::string fraction = to_text(us % 1000);
  const std::string ms = to_text(us / 1000) + "." + std::string(3 - fraction.size(), '0') + fraction + " ms";
  return padded(std::string(pass), 28) + padded(ms, 14);
}

std::string pass_label(const std::vector<PassInfo>& list, size_t position) {
  const std::string name(list[position].name);
  const auto before = std::count_if(list.begin(), list.begin() + std::ptrdiff_t(position),
                                    [&](const PassInfo& p) { return p.name == name; });
  return before == 0 ? name : name + "#" + to_text(int64_t(before + 1));
}

void run_passes(const std::vector<PassInfo>& list, Graph& g, PassContext& cx, std::string& log) {
  const Options& o = cx.options;
  g.renumber();
  bool begun = o.begin_after.empty();
  if (begun && cx.passed) cx.passed("", g);
  if (begun && !o.dump_dir.empty()) dump(o.dump_dir, 0, "input", g);
  for (size_t i = 0; i < list.size(); ++i) {
    const PassInfo& p = list[i];
    const std::string name(p.name), label = pass_label(list, i);
    if (!begun) {
      begun = label == o.begin_after;
      continue;
    }
    if (p.opt_level <= o.opt_level && o.disabled.count(name) == 0) {
      const auto start = Clock::now();
      if (cx.progress) cx.progress(name);
      run_one(p, g, cx);
      if (o.time_passes) log += pass_time(name, Clock::now() - start) + to_text(int64_t(g.num_nodes())) + " nodes\n";
      const bool printed = o.print_after.count(name) || o.print_after.count(label) || o.print_after.count("all");
      if (printed) log += "after " + label + ":\n" + to_text(g);
      if (!o.dump_dir.empty()) dump(o.dump_dir, i + 1, name, g);
    }
    if (has_problems(cx)) return;
    if (cx.passed) cx.passed(label, g);
    if (label == o.stop_after) return;
  }
}

}  // namespace tc
