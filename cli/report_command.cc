#include "cli/commands.h"
#include "cli/new_file.h"
#include "cli/report/page.h"
#include "cli/report/report_data.h"
#include "cli/review/side.h"

namespace tc {

ExitCode report_command(const CommandLine& c) {
  need_model(c);
  if (c.out.empty())
    throw Error({"TC0001", ExitCode::Usage, {}, "no file for the page given", {"add -o report.html"}, false});
  std::string page;
  if (is_package(c.model)) {
    refuse_options_of_models(c, "'" + printable(c.model) + "' is a package");
    const PackageFacts p = read_package_facts(c.model);
    page = report_page(p.name, report_data(p, nullptr, nullptr));
  } else {
    StoryTeller teller(c.request.target);
    ExitCode exit = ExitCode::Ok;
    const auto m = emit_in_memory(
        c, [&teller](const PassInfo* pass, const Graph& g) { teller.see(pass, g); }, exit);
    if (!m) return exit;
    const ModelStory story = teller.take();
    c.request.listener.tell("page");
    page = report_page(m->facts.name, report_data(m->facts, &m->compilation.program, &story));
    c.request.listener.tell("");
  }
  const NewFile file(c.out, page);
  file.put_in_place();
  if (!c.quiet) print_out("wrote     " + printable(c.out) + "\n");
  return ExitCode::Ok;
}

}  // namespace tc
