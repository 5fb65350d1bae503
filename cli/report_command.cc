#include "cli/commands.h"
#include "cli/new_file.h"
#include "cli/report/page.h"
#include "cli/report/report_data.h"
#include "cli/review/side.h"

namespace tc {
namespace {

std::string page_of(const CommandLine& c, const PackageFacts& p, const Program* program, const ModelStory* story) {
  std::optional<KernelTimes> times;
  if (!c.times.empty()) times = read_times(c.times, p);
  return report_page(p.name, report_data(p, program, story, times ? &*times : nullptr));
}

}  // namespace

ExitCode report_command(const CommandLine& c) {
  need_model(c);
  if (c.out.empty())
    throw Error({"TC0001", ExitCode::Usage, {}, "no file for the page given", {"add -o report.html"}, false});
  std::string page;
  if (is_package(c.model)) {
    refuse_options_of_models(c, "'" + printable(c.model) + "' is a package");
    page = page_of(c, read_package_facts(c.model), nullptr, nullptr);
  } else {
    StoryTeller teller(c.request.target);
    ExitCode exit = ExitCode::Ok;
    const auto m = emit_in_memory(
        c, [&teller](const PassInfo* pass, const Graph& g) { teller.see(pass, g); }, exit);
    if (!m) return exit;
    const ModelStory story = teller.take();
    c.request.listener.tell("page");
    page = page_of(c, m->facts, &m->compilation.program, &story);
    c.request.listener.tell("");
  }
  const NewFile file(c.out, page);
  file.put_in_place();
  if (!c.quiet) print_out("wrote     " + printable(c.out) + "\n");
  return ExitCode::Ok;
}

}  // namespace tc
