#include "emit_c/names.h"

#include <map>
#include <set>

namespace tc {
namespace {

/// Names of fields or macros. A text that was named before gets a number, and so does what is called like that result.
class FreshNames {
 public:
  FreshNames() = default;
  /// Behind a prefix, where `reserved` are ours.
  explicit FreshNames(std::initializer_list<const char*> reserved) : table_(true) {
    for (const char* r : reserved) table_.reserve(r);
  }
  /// `suffix`: our own name for what belongs to a tensor of the model, or nothing.
  std::string name(const ModelText& tensor, const std::string& suffix = "") {
    const std::string text = tensor.raw() + (suffix.empty() ? "" : "_" + suffix);
    std::string id = table_.name(ModelText(text), suffix.empty() ? 40 : 44);
    while (!given_.insert(id).second)
      id = table_.name(ModelText(text + "_" + to_text(int64_t(++repeats_[text] + 1))), 44);
    return id;
  }

 private:
  NameTable table_;
  std::set<std::string> given_;
  std::map<std::string, int> repeats_;
};

}  // namespace

std::string in_capitals(std::string s) {
  for (char& c : s)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  return s;
}

ProgramNames::ProgramNames(const Program& p)
    : self(p.name == "m" ? "model" : "m"), lower(p.name), upper(in_capitals(p.name)) {
  FreshNames in, out, at{"SCRATCH", "STATUS", "MADE"}, w{"HEADER"};
  for (const IoTensor& t : p.inputs) inputs.push_back(in.name(t.name));
  for (const IoTensor& t : p.outputs) outputs.push_back(out.name(t.name));  // the same tensor may be an output twice
  for (const Slot& s : p.slots) slots.push_back(at.name(s.name, s.suffix));
  for (const Weight& x : p.weights) weights.push_back(w.name(x.name, x.suffix));
}

}  // namespace tc
