#include "cli/review/package_diff.h"

#include <algorithm>
#include <set>

#include "cli/review/package_sections.h"

namespace tc {
namespace {

using Kind = Change::Kind;

bool has_changes(const Section& s) {
  return std::any_of(s.changes.begin(), s.changes.end(), [](const Change& c) { return c.kind != Kind::Note; });
}

/// Whether the model is another one. A tool that stores weights otherwise has other ones, too; elements that differ are
/// the model's.
bool tells_of_model(const Section& s) {
  if (s.title != "weights") return has_changes(s);
  return std::any_of(s.changes.begin(), s.changes.end(), [](const Change& c) { return c.kind == Kind::Changed; });
}

/// What a package tells of model, options and tool.
struct Causes {
  bool model, options, tool, tool_known;
  std::string versions;
};

std::string verdict(const Causes& c) {
  if (!c.model && !c.options && c.tool)
    return "Model and options are the same: what differs comes from the tool, " + c.versions + ".";
  if (!c.tool_known)
    return std::string(c.model     ? "The model changed"
                       : c.options ? "The options changed"
                                   : "Model and options are the same") +
           "; a manifest does not tell the tool's version, so the tool may have changed, too.";
  std::vector<std::string> changed;
  if (c.model) changed.push_back("the model");
  if (c.options) changed.push_back("the options");
  if (c.tool) changed.push_back("the tool (" + c.versions + ")");
  if (changed.empty())
    return "Tool, options, and as far as the packages tell the model, are the same; files were changed, or the tool "
           "was "
           "between two versions.";
  std::string s = "What differs comes from " + changed[0];
  for (size_t i = 1; i < changed.size(); i++) s += (i + 1 < changed.size() ? ", " : " and ") + changed[i];
  return s + (c.tool ? "." : "; the tool is the same, " + c.versions + ".");
}

/// A kernel whose nodes did not change is the options' doing or the tool's, if those changed.
void give_causes(const Causes& c, const PackageFacts& b, const Section& model, Section& kernels) {
  std::set<std::string> touched;
  for (const Change& x : model.changes) touched.insert(x.subject);
  for (Change& k : kernels.changes) {
    bool by_model = c.model;
    if (c.model && k.kind == Kind::Changed) {
      by_model = false;
      for (const PackageFacts::Step& s : b.steps)
        for (const std::string& n : s.nodes) by_model = by_model || (s.kernel == k.subject && touched.count(n) != 0);
    }
    k.cause = c.options  ? (by_model ? "" : "options")
              : by_model ? (c.tool ? "" : "model")
              : c.tool   ? "tool"
              : c.model  ? "model"
                         : "";
  }
}

}  // namespace

Comparison compare_packages(const PackageFacts& a, const PackageFacts& b, const std::vector<Section>* models) {
  Comparison r;
  r.files = compare_files(a, b);
  Section tool{"tool", {}};
  Causes causes{};
  causes.tool_known = !a.version.empty() && !b.version.empty();
  causes.tool = causes.tool_known && a.version != b.version;
  causes.versions = a.version == b.version ? "tc-emit " + a.version : a.version + " -> " + b.version;
  if (a.version != b.version)
    tool.changes.push_back(
        {Kind::Changed, "version", "",
         (a.version.empty() ? "unknown" : a.version) + " -> " + (b.version.empty() ? "unknown" : b.version)});
  Section options = compare_options(a, b), face = compare_interface(a, b), kernels = compare_kernels(a, b);
  std::vector<Section> model =
      models ? *models : std::vector<Section>{compare_nodes(a, b), compare_stored_weights(a, b)};
  causes.options = has_changes(options);
  causes.model = has_changes(face) || std::any_of(model.begin(), model.end(), tells_of_model);
  give_causes(causes, b, model[0], kernels);
  r.sections = {std::move(tool), std::move(options)};
  for (Section& s : model) r.sections.push_back(std::move(s));
  r.sections.push_back(std::move(face));
  r.sections.push_back(compare_memory(a, b));
  r.sections.push_back(std::move(kernels));
  std::erase_if(r.sections, [](const Section& s) { return s.changes.empty(); });
  r.verdict = r.equal() ? "Nothing differs." : verdict(causes);
  return r;
}

}  // namespace tc
