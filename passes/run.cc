#include <chrono>
#include <filesystem>
#include <fstream>

#include "ir/verify.h"
#include "passes/pass.h"

namespace tc {

namespace {

using Clock = std::chrono::steady_clock;

/// Three significant digits are enough for a time; whole microseconds keep the text free of noise digits.
std::string milliseconds(Clock::duration d) {
  int64_t us = std::chrono::duration_cast<std::chrono::microseconds>(d).count();
  std::string fraction = to_text(us % 1000);
  return to_text(us / 1000) + "." + std::string(3 - fraction.size(), '0') + fraction + " ms";
}

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
    if (o.time_passes)
      log += padded(name, 28) + padded(milliseconds(Clock::now() - start), 14) + to_text(int64_t(g.num_nodes())) +
             " nodes\n";
    if (o.print_after.count(name) || o.print_after.count("all")) log += "after " + name + ":\n" + to_text(g);
    if (!o.dump_dir.empty()) dump(o.dump_dir, i + 1, name, g);
    if (cx.diagnostics && cx.diagnostics->has_errors()) return;
  }
}

void check_pass_names(const std::vector<PassInfo>& list, const Options& o) {
  std::set<std::string> known;
  std::vector<std::string> names;
  for (const PassInfo& p : list) {
    known.insert(std::string(p.name));
    names.emplace_back(p.name);
  }
  auto require = [&](const std::string& name) {
    if (known.count(name)) return;
    Diagnostic d{"TC0603", ExitCode::Usage, {}, "there is no pass \"" + printable(name) + "\"", {}, false};
    d.notes.push_back("the passes are: " + join(names, ", "));
    throw Error(std::move(d));
  };
  for (const std::string& name : o.disabled) require(name);
  for (const std::string& name : o.print_after)
    if (name != "all") require(name);
}

}  // namespace tc
