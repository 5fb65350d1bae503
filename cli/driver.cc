#include "cli/driver.h"

#include "passes/program/build_program.h"
#include "support/reserved.h"

namespace tc {

std::string default_name(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  std::string base = slash == std::string::npos ? path : path.substr(slash + 1);
  if (const size_t dot = base.find_last_of('.'); dot != std::string::npos && dot > 0) base.resize(dot);
  for (char& c : base)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  std::string name = make_identifier(base, 40);
  if (is_library_name(name)) name += "_model";
  return name;
}

namespace {

/// The passes; where somebody watches, one by one.
void optimise(const CompileRequest& r, Compilation& c, PassContext& cx) {
  if (!r.watch) return run_passes(graph_passes(), c.graph, cx, c.log);
  r.watch(nullptr, c.graph);
  for (const PassInfo& p : graph_passes()) {
    if (p.opt_level > cx.options.opt_level || cx.options.disabled.count(std::string(p.name))) continue;
    run_passes({p}, c.graph, cx, c.log);
    if (cx.diagnostics->has_errors()) return;
    r.watch(&p, c.graph);
  }
}

}  // namespace

Compilation compile(const CompileRequest& r, Diagnostics& problems) {
  Compilation c;
  Diagnostics found;  // by passes, which know no file
  const std::unique_ptr<const Backend> backend = make_backend(r.target);
  PassContext cx{backend->traits(), r.options, &found, r.progress, backend.get()};
  auto add = [&](Diagnostic d) {
    if (d.loc.file.empty()) d.loc.file = r.model.substr(r.model.find_last_of('/') + 1);
    problems.add(std::move(d));
  };
  const auto say = [&](const std::string& what) {
    if (r.progress) r.progress(what);
  };
  try {
    say("import");
    c.graph = import_model(r.model, r.import, problems);
    if (problems.has_errors()) {
      say("");
      return c;
    }
    optimise(r, c, cx);
    if (!found.has_errors())
      c.program = build_program(c.graph, r.name.empty() ? default_name(r.model) : r.name, cx, c.log);
  } catch (const Error& e) {
    found.add(e.diagnostic());
  }
  say("");
  for (const Diagnostic& d : found.list()) add(d);
  return c;
}

}  // namespace tc
