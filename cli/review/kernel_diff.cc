// Which kernels came, went, or are computed otherwise.
#include <map>
#include <set>

#include "cli/review/package_sections.h"
#include "support/text.h"

namespace tc {
namespace {

using Kind = Change::Kind;
using Kernel = PackageFacts::Kernel;

/// The model's nodes that each kernel's steps stand for, as one text.
std::map<std::string, std::string> nodes_of_kernels(const PackageFacts& p) {
  std::map<std::string, std::set<std::string>> sets;
  for (const PackageFacts::Step& s : p.steps)
    if (s.kind == "kernel") sets[s.kernel].insert(s.nodes.begin(), s.nodes.end());
  std::map<std::string, std::string> text;
  for (const auto& [kernel, nodes] : sets) text[kernel] = join({nodes.begin(), nodes.end()}, ", ");
  return text;
}

class KernelDiff {
 public:
  KernelDiff(const PackageFacts& a, const PackageFacts& b)
      : a_(a), b_(b), before_(nodes_of_kernels(a)), after_(nodes_of_kernels(b)) {}

  Section section() {
    std::map<std::string, const Kernel*> old, now;
    for (const Kernel& k : a_.kernels) old.emplace(k.name, &k);
    for (const Kernel& k : b_.kernels) now.emplace(k.name, &k);
    for (const Kernel& k : a_.kernels)
      if (now.count(k.name) == 0) gone_.push_back(&k);
    for (const Kernel& k : b_.kernels)
      if (const auto it = old.find(k.name); it != old.end())
        compare(*it->second, k);
      else
        fresh_.push_back(&k);
    pair([](const Kernel& k, const std::string& nodes) { return stem_of(k.name) + "\n" + nodes; }, "schedule");
    pair([](const Kernel& k, const std::string&) { return stem_of(k.name); }, "schedule");
    pair([](const Kernel&, const std::string& nodes) { return nodes; }, "function");
    for (const Kernel* k : gone_)
      if (k) section_.changes.push_back({Kind::Removed, "kernel", k->name, stands_for(before_[k->name])});
    for (const Kernel* k : fresh_)
      if (k) section_.changes.push_back({Kind::Added, "kernel", k->name, stands_for(after_[k->name])});
    return std::move(section_);
  }

 private:
  static std::string stands_for(const std::string& nodes) { return nodes.empty() ? "" : "for " + nodes; }

  /// Kernels that came take the place of those that went and have the same key, the first of the first; none has "".
  template <class F>
  void pair(F key, const char* what) {
    std::map<std::string, std::vector<const Kernel**>> came;
    for (const Kernel*& y : fresh_)
      if (y) came[key(*y, after_[y->name])].push_back(&y);
    std::map<std::string, size_t> used;
    for (const Kernel*& x : gone_) {
      const std::string k = x ? key(*x, before_[x->name]) : "";
      const auto it = came.find(k);
      if (k.empty() || it == came.end() || used[k] == it->second.size()) continue;
      const Kernel*& y = *it->second[used[k]++];
      replaced(*x, *y, what);
      x = y = nullptr;
    }
  }

  void replaced(const Kernel& x, const Kernel& y, const std::string& what) {
    std::string detail = "was " + x.name + "; ";
    if (what == "function")
      detail += "another function of the same nodes";
    else if (x.schedule != y.schedule)
      detail += "schedule: " + x.schedule + " -> " + y.schedule;
    else
      detail += "the same schedule, other loops";
    section_.changes.push_back({Kind::Changed, "kernel", y.name, detail + work(x, y)});
  }

  static std::string work(const Kernel& x, const Kernel& y) {
    std::string s;
    if (x.macs >= 0 && y.macs >= 0 && x.macs != y.macs) s += "; MACs " + from_to(x.macs, y.macs);
    if (x.bytes >= 0 && y.bytes >= 0 && x.bytes != y.bytes) s += "; bytes " + from_to(x.bytes, y.bytes);
    return s;
  }

  void compare(const Kernel& x, const Kernel& y) {
    std::string detail;
    if (x.schedule != y.schedule)
      detail = "schedule: " + x.schedule + " -> " + y.schedule;
    else if (x.steps != y.steps)
      detail = "steps of the schedule: " + join(x.steps, ", ") + " -> " + join(y.steps, ", ");
    if (detail.empty() && x.text != y.text && !x.text.empty() && !y.text.empty()) detail = "the same loops, other text";
    if (!detail.empty()) section_.changes.push_back({Kind::Changed, "kernel", y.name, detail + work(x, y)});
  }

  const PackageFacts &a_, &b_;
  std::map<std::string, std::string> before_, after_;
  std::vector<const Kernel*> gone_, fresh_;  // null: has its counterpart
  Section section_{"kernels", {}};
};

}  // namespace

Section compare_kernels(const PackageFacts& a, const PackageFacts& b) { return KernelDiff(a, b).section(); }

}  // namespace tc
