#include "importer/states.h"

#include <algorithm>
#include <optional>

namespace tc::importer {

namespace {

/// The words with the '=' and '*' that names may have: an input and an output that are called exactly so, if there are any.
std::optional<std::pair<std::string, std::string>> exact_names(const std::string& words,
                                                               const std::vector<std::string>& inputs,
                                                               const std::vector<std::string>& outputs) {
  const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (size_t at = words.find('='); at != std::string::npos; at = words.find('=', at + 1))
    if (is_in(inputs, words.substr(0, at)) && is_in(outputs, words.substr(at + 1)))
      return {{words.substr(0, at), words.substr(at + 1)}};
  return std::nullopt;
}

/// What '*' in `pattern` stands for in `name`; nothing if the name does not fit. A pattern without one: "".
std::optional<std::string> star_of(const std::string& pattern, const std::string& name) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  if (name.size() < head.size() + tail.size() || name.compare(0, head.size(), head) != 0 ||
      name.compare(name.size() - tail.size(), tail.size(), tail) != 0)
    return std::nullopt;
  return name.substr(head.size(), name.size() - head.size() - tail.size());
}

std::string with_star(const std::string& pattern, const std::string& text) {
  const size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.substr(0, star) + text + pattern.substr(star + 1);
}

std::vector<std::string> names_of(const auto& list) {
  std::vector<std::string> names;
  for (const auto& v : list) names.push_back(v.name());
  return names;
}

/// The same whatever the symbols are?
bool same_sum(const Dim& a, const Dim& b) {
  return a.addend == b.addend && a.terms.size() == b.terms.size() &&
         std::is_permutation(a.terms.begin(), a.terms.end(), b.terms.begin());
}

/// Does the input have a value that no run changes?
bool is_fixed(const Context& c, const onnx::GraphProto& g, const std::string& input) {
  return c.options.input_values.count(input) > 0 ||
         std::any_of(g.initializer().begin(), g.initializer().end(), [&](const auto& i) { return i.name() == input; });
}

std::string shown(const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (size_t k = 0; k < names.size() && k < 8; k++) parts.push_back(quoted(names[k]));
  return join(parts, ", ") + (names.size() > 8 ? ", ..." : "");
}

}  // namespace

// Names that are there as they stand come before patterns: a name may have any character.
std::vector<StatePair> find_states(Context& c, const onnx::GraphProto& g, bool tells) {
  std::vector<StatePair> pairs;
  const std::vector<std::string> inputs = names_of(g.input()), outputs = names_of(g.output());
  for (const auto& [before, after] : c.options.states) {
    const std::string by = "--state " + printable(before) + "=" + printable(after);
    const auto refuse = [&](const std::string& why, const std::vector<std::string>& have) {
      if (tells) c.error("TC0154", ExitCode::Usage, nullptr, by + ": " + why, {"the model has: " + shown(have)});
    };
    const auto exact = exact_names(before + "=" + after, inputs, outputs);
    if (!exact &&
        std::max(std::count(before.begin(), before.end(), '*'), std::count(after.begin(), after.end(), '*')) > 1) {
      refuse("one '*' at most in each of the two", inputs);
      continue;
    }
    bool found = false;
    for (size_t k = 0; k < inputs.size(); k++) {
      std::optional<std::string> star;
      if (!exact)
        star = star_of(before, inputs[k]);
      else if (exact->first == inputs[k])
        star = "";
      if (!star) continue;
      found = true;
      if (is_fixed(c, g, inputs[k])) {
        refuse(quoted(inputs[k]) + " is a constant, by --input-value or as the model has it", inputs);
        continue;
      }
      const std::string name = exact ? exact->second : with_star(after, *star);
      const auto output = std::find(outputs.begin(), outputs.end(), name);
      if (output == outputs.end()) {
        refuse("no output is called " + quoted(name), outputs);
        continue;
      }
      const StatePair p = {k, size_t(output - outputs.begin())};
      if (tells && std::any_of(pairs.begin(), pairs.end(),
                               [&](const StatePair& o) { return o.input == p.input || o.output == p.output; }))
        c.error("TC0154", ExitCode::Usage, nullptr,
                by + ": " + quoted(inputs[k]) + " or " + quoted(name) + " is in another pair already");
      pairs.push_back(p);
    }
    if (!found) refuse("no input is called so", inputs);
  }
  std::sort(pairs.begin(), pairs.end(), [](const StatePair& a, const StatePair& b) { return a.input < b.input; });
  return pairs;
}

void limit_states(Context& c, const onnx::GraphProto& g, const std::vector<StatePair>& states) {
  for (const StatePair& s : states) {
    const auto& before = g.input(int(s.input)).type().tensor_type().shape();
    const auto& after = g.output(int(s.output)).type().tensor_type().shape();
    for (int k = 0; k < before.dim_size() && k < after.dim_size(); k++) {
      const auto now = c.ranges.find(before.dim(k).dim_param());
      const auto next = c.ranges.find(after.dim(k).dim_param());
      if (now == c.ranges.end() || next == c.ranges.end() || !next->second.follows()) continue;
      for (auto& [name, other] : c.ranges)
        if (same_sum(other, next->second)) other.value = std::min(other.value, now->second.value);
    }
  }
}

}  // namespace tc::importer
