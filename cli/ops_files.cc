#include "cli/ops_files.h"

#include <fstream>
#include <iterator>

#include "cli/commands.h"
#include "ir/language/user_ops.h"

namespace tc {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) throw Error("TC0601", ExitCode::Io, "cannot read " + printable(path));
  return text;
}

}  // namespace

bool load_ops_files(CommandLine& c) {
  std::vector<std::string> problems;
  std::vector<OwnRow>& rows = c.request.import.ops;
  for (const std::string& path : c.ops_files) {
    const std::vector<OwnRow> made = user_ops({path, contents_of(path)}, rows, problems);
    rows.insert(rows.end(), made.begin(), made.end());
  }
  for (const std::string& p : problems) print_err(p);
  return problems.empty();
}

}  // namespace tc
