#include "cli/commands.h"
#include "cli/review/model_diff.h"
#include "cli/review/package_diff.h"
#include "cli/review/render.h"
#include "cli/review/side.h"
#include "cli/stated_options.h"

namespace tc {
namespace {

struct Side {
  std::string path;
  bool package = false;
  PackageFacts facts;
  Graph imported;  // of a model
};

bool emit(CommandLine c, Side& side, ExitCode& exit) {
  c.model = c.request.model = side.path;
  const auto keep = [&side](const PassInfo* pass, const Graph& g) {
    if (!pass) side.imported = g.clone();
  };
  std::optional<EmittedModel> m = emit_in_memory(c, keep, exit);
  if (m) side.facts = std::move(m->facts);
  return m.has_value();
}

}  // namespace

ExitCode diff_command(const CommandLine& c) {
  if (c.model.empty() || c.other.empty())
    throw Error({"TC0001", ExitCode::Usage, {}, "diff compares two", {"usage: tc-emit diff [OPTIONS] A B"}, false});
  Side sides[2] = {{c.model, is_package(c.model), {}, Graph()}, {c.other, is_package(c.other), {}, Graph()}};
  if (sides[0].package && sides[1].package) refuse_options_of_models(c, "both are packages");
  for (Side& s : sides)
    if (s.package) s.facts = read_package_facts(s.path);
  for (int k = 0; k < 2; k++) {
    if (sides[k].package) continue;
    const Side& other = sides[1 - k];
    CommandLine own = c;
    own.model = sides[k].path;
    if (other.package)
      take_stated_options(own, other.facts, other.path);
    else if (own.request.name.empty())
      own.request.name = default_name(sides[0].path);  // the name of a file is no change
    ExitCode exit = ExitCode::Ok;
    if (!emit(own, sides[k], exit)) return exit;
  }
  std::vector<Section> models;
  const bool both = !sides[0].package && !sides[1].package;
  if (both) models = compare_models(sides[0].imported, sides[1].imported);
  Comparison r = compare_packages(sides[0].facts, sides[1].facts, both ? &models : nullptr);
  r.a = c.model;
  r.b = c.other;
  print_out(c.json ? as_json(r, c.stat) : c.markdown ? as_markdown(r, c.stat) : as_words(r, c.stat));
  return r.equal() ? ExitCode::Ok : ExitCode::Mismatch;
}

}  // namespace tc
