#include "emit_c/names.h"

namespace tc {
namespace {

std::string named(NameTable& table, const ModelText& name, const std::string& suffix, const std::string& salt) {
  if (suffix.empty() && salt.empty()) return table.name(name);
  return table.name(ModelText(name.raw() + (suffix.empty() ? "" : "_" + suffix) + salt), 44);
}

}  // namespace

ProgramNames::ProgramNames(const Program& p) : self(p.name == "m" ? "model" : "m"), lower(p.name), upper(p.name) {
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  NameTable in, out;
  for (const IoTensor& t : p.inputs) inputs.push_back(in.name(t.name));
  for (size_t i = 0; i < p.outputs.size(); i++) outputs.push_back(out.name(p.outputs[i].name));
  // The same tensor may be an output twice; structs need two fields.
  for (size_t i = 0; i < outputs.size(); i++)
    for (size_t j = 0; j < i; j++)
      if (outputs[i] == outputs[j]) outputs[i] += "_" + to_text(int64_t(i));
  NameTable at, w;
  w.reserve("HEADER");
  std::map<std::string, int> seen_slots, seen_weights;
  auto salt = [](std::map<std::string, int>& seen, const std::string& key) {
    const int n = seen[key]++;
    return n == 0 ? std::string() : "_" + to_text(int64_t(n + 1));
  };
  for (const Slot& s : p.slots)
    slots.push_back(named(at, s.name, s.suffix, salt(seen_slots, s.name.raw() + "\n" + s.suffix)));
  for (const Weight& x : p.weights)
    weights.push_back(named(w, x.name, x.suffix, salt(seen_weights, x.name.raw() + "\n" + x.suffix)));
}

}  // namespace tc
