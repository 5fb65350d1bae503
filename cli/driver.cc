#include "cli/driver.h"

#include <set>

#include "ir/graph/bodies.h"
#include "ir/open_size.h"
#include "passes/graph/multiply_blocks.h"
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

/// Programs of the usual code model end at 2 GiB, of which the code gets some.
constexpr int64_t kMostLinkedBytes = (int64_t(2) << 30) - (int64_t(64) << 20);

void place_weights(Program& p, bool external) {
  p.external_weights = external;
  if (external || p.weights_bytes <= kMostLinkedBytes) return;
  throw Error(
      {"TC0504",
       ExitCode::Limit,
       {},
       "the weights take " + to_text(p.weights_bytes) + " bytes, which is more than can be linked into a program",
       {"--weights external leaves them in a file that the program maps"},
       false});
}

/// Says what the passes have written by now, and, since an exception may end them, at its own end the rest.
class Log {
 public:
  explicit Log(const CompileRequest& r) : r_(r) {}
  ~Log() { flush(); }
  void flush() {
    if (!text.empty() && r_.listener.log) r_.listener.log(text);
    text.clear();
  }
  std::string text;

 private:
  const CompileRequest& r_;
};

/// Who listens to the passes: `passed` to all, `watch` to those that ran.
std::function<void(const std::string&, const Graph&)> listeners(const CompileRequest& r, Log& log) {
  return [&r, &log, k = size_t(0)](const std::string& label, const Graph& g) mutable {
    log.flush();
    if (r.passed) r.passed(label, g);
    if (!r.watch) return;
    if (label.empty()) return r.watch(nullptr, g);
    const auto& list = graph_passes();
    while (pass_label(list, k) != label) k++;
    if (list[k].opt_level <= r.options.opt_level && r.options.disabled.count(std::string(list[k].name)) == 0)
      r.watch(&list[k], g);
  };
}

void run(const CompileRequest& r, PassContext& cx, Compilation& c, Log& log) {
  try {
    if (r.package || !r.options.stop_after.empty()) {
      cx.progress = [&r](const std::string& pass) { r.listener.tell("passes", pass); };
      run_passes(graph_passes(), c.graph, cx, log.text);
    } else {
      c.graph.renumber();
      cx.passed("", c.graph);
    }
    if (!r.package || cx.diagnostics->has_errors()) return;
    cx.progress = [&r](const std::string& what) {
      const size_t space = what.find(' ');
      r.listener.tell(what.substr(0, space), what.substr(space + 1));
    };
    c.program = build_program(c.graph, r.name.empty() ? default_name(r.model) : r.name, cx, log.text);
    place_weights(c.program, r.external_weights);
  } catch (const std::logic_error& e) {
    // Of a text that anybody may have written, an invariant that does not hold says that the graph is none of ours.
    if (!r.graph) throw;
    throw Error({"TC0605",
                 ExitCode::Rejected,
                 {},
                 std::string("the graph cannot be compiled: ") + printable(e.what(), 1000),
                 {"it was read as text; if it is as --write-ir has written it, this is a defect of tc-emit"},
                 false});
  }
}

// What is said of a number of elements or bytes that 64 bits do not hold, where a size has no upper bound, and of sizes that do not
// meet: a table of positions ends somewhere.
void tell_open_sizes(Diagnostic& d, const CompileRequest& r) {
  const bool too_large = d.code == "TC0501" && d.notes.empty();
  if (!too_large && d.code != "TC0303" && d.code != "TC0201" && d.code != "TC0301") return;
  std::string names;
  for (const auto& [name, range] : r.import.dims) {
    if (!is_open(range.most)) continue;
    const std::string shown = printable(name);
    const auto is_said = [&](const std::string& note) {
      return note.find("--dim " + shown + "=") != std::string::npos;
    };
    if (std::any_of(d.notes.begin(), d.notes.end(), is_said)) continue;
    names += (names.empty() ? "\"" : ", \"") + shown + "\"";
    d.notes.push_back(std::string(too_large ? "give it one: " : "with an upper bound more is possible: ") +
                      bounded_option(shown, range.least) + " (for example)");
  }
  if (names.empty() || !too_large) return;
  d.code = "TC3106", d.exit = ExitCode::Unsupported;
  d.message = "a size without an upper bound (" + names +
              ") needs one here: a tensor grows with two such sizes, or by more than 90 MiB with one";
}

// The names of all values of a graph and of its bodies.
std::vector<std::string> names_of_values(const Graph& g) {
  std::vector<std::string> names;
  for (const Graph* next : with_bodies(g))
    for (const auto& v : next->values()) names.push_back(v->name.raw());
  return names;
}

// Passes call what they make by what it is made of ("x_unpacked"): the model's name for that; nothing if it has none.
void name_as_in_model(std::string& value, const std::set<std::string>& names) {
  while (!value.empty() && !names.contains(value)) {
    const size_t end = value.rfind('_');
    value.resize(end == value.npos ? 0 : end);
  }
}

}  // namespace

Compilation compile(const CompileRequest& r, Diagnostics& problems) {
  Compilation c;
  Diagnostics found;  // by passes, which know no file
  const std::unique_ptr<const Backend> backend = make_backend(r.target);
  const std::vector<std::unique_ptr<const Backend>> others = other_backends(r.target);
  Log log(r);
  std::vector<std::string> names;  // of the model's values
  PassContext cx{.target = backend->traits(),
                 .options = r.options,
                 .diagnostics = &found,
                 .backend = backend.get(),
                 .schedules = r.schedules.get(),
                 .scheduled = r.scheduled,
                 .called = r.called,
                 .shown = [&log](const std::string& text) { log.text += text; },
                 .passed = listeners(r, log)};
  for (const auto& b : others) cx.others.push_back(b.get());
  auto add = [&](Diagnostic d) {
    if (d.loc.file.empty()) d.loc.file = r.model.substr(r.model.find_last_of('/') + 1);
    problems.add(std::move(d));
  };
  try {
    r.listener.tell("import");
    c.graph = r.graph ? r.graph->clone() : import_model(r.model, r.import, problems);
    if (r.int8_activations) allow_byte_products(c.graph);
    names = names_of_values(c.graph);
    if (!problems.has_errors()) run(r, cx, c, log);
  } catch (const Error& e) {
    found.add(e.diagnostic());
  }
  r.listener.tell("");
  if (found.list().empty()) return c;
  const std::set<std::string> known(names.begin(), names.end());
  for (Diagnostic d : found.list()) {
    tell_open_sizes(d, r);
    name_as_in_model(d.loc.value, known);
    name_as_in_model(d.loc.output, known);
    add(std::move(d));
  }
  return c;
}

}  // namespace tc
