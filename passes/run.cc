#include <chrono>
#include <filesystem>
#include <fstream>

#include "ir/verify.h"
#include "passes/pass.h"

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

void run_one(const PassInfo& p, Graph& g, PassContext& cx) {
  try {
    p.run(g, cx);
    // Behind a problem of the model there are values without types.
    const bool sound = !cx.diagnostics || !cx.diagnostics->has_errors();
    if (cx.options.verify_each && sound) verify(g);
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

void run_passes(const std::vector<PassInfo>& list, Graph& g, PassContext& cx, std::string& log) {
  const Options& o = cx.options;
  if (!o.dump_dir.empty()) dump(o.dump_dir, 0, "input", g);
  for (size_t i = 0; i < list.size(); ++i) {
    const PassInfo& p = list[i];
    const std::string name(p.name);
    if (p.opt_level > o.opt_level || o.disabled.count(name)) continue;
    const auto start = Clock::now();
    if (cx.progress) cx.progress(name);
    run_one(p, g, cx);
    if (o.time_passes) log += pass_time(name, Clock::now() - start) + to_text(int64_t(g.num_nodes())) + " nodes\n";
    if (o.print_after.count(name) || o.print_after.count("all")) log += "after " + name + ":\n" + to_text(g);
    if (!o.dump_dir.empty()) dump(o.dump_dir, i + 1, name, g);
    if (cx.diagnostics && cx.diagnostics->has_errors()) return;
  }
}

}  // namespace tc
