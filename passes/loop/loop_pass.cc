#include "passes/loop/loop_pass.h"

#include <algorithm>

#include "ir/loop/print.h"
#include "ir/verify.h"
#include "support/interrupt.h"

namespace tc {
namespace {

void verify_lowering(const Lowering& l) {
  std::vector<Buffer> visible = l.visible;
  for (const Buffer& b : l.visible)
    if (const auto flat = l.flat.find(b.get()); flat != l.flat.end()) visible.push_back(flat->second);
  if (l.scratch) visible.push_back(l.scratch);
  verify(l.body, visible, l.host_loops);
}

}  // namespace

void LoopPassRunner::run(const std::vector<LoopPass>& list, Lowering& l, const std::string& title) {
  for (const LoopPass& p : list) {
    stop_if_interrupted();
    const auto start = std::chrono::steady_clock::now();
    try {
      p.run(l);
      if (options_.verify_each) verify_lowering(l);
    } catch (const InternalError& e) {
      throw InternalError("pass " + std::string(p.name) + ": " + e.what());
    }
    if (options_.time_passes) {
      const auto spent = std::chrono::steady_clock::now() - start;
      const auto known = std::find_if(times_.begin(), times_.end(), [&](const Time& t) { return t.pass == p.name; });
      if (known == times_.end())
        times_.push_back({p.name, spent});
      else
        known->spent += spent;
    }
    const std::string name(p.name);
    if (options_.print_after.count(name) || options_.print_after.count("all"))
      dumps_ += "after " + name + " of " + title + ":\n" + to_text(l.body, 1);
  }
}

void LoopPassRunner::verify_schedule(const Scheduled& s) const {
  if (!options_.verify_each) return;
  verify(s.prologue);
  std::vector<Buffer> visible = s.inputs;
  for (const auto* list : {&s.prologue.outputs, &s.outputs, &s.scratch})
    visible.insert(visible.end(), list->begin(), list->end());
  for (const Scheduled::View& v : s.views) visible.push_back(v.flat);
  verify(s.body, visible);
}

std::vector<std::string_view> loop_pass_names() {
  std::vector<std::string_view> names;
  for (const auto* list : {&c_loop_passes(), &cuda_loop_passes(), &device_loop_passes(), &last_loop_passes()})
    for (const LoopPass& p : *list)
      if (std::find(names.begin(), names.end(), p.name) == names.end()) names.push_back(p.name);
  return names;
}

std::string LoopPassRunner::log() const {
  std::string s = dumps_;
  for (const Time& t : times_) s += pass_time(t.pass, t.spent) + "all kernels\n";
  return s;
}

}  // namespace tc
