#include "cli/ops_files.h"

#include "cli/commands.h"
#include "ir/language/user_ops.h"
#include "support/read_file.h"

namespace tc {

bool load_ops_files(CommandLine& c) {
  std::vector<std::string> problems;
  std::vector<OwnRow>& rows = c.request.import.ops;
  for (const std::string& path : c.ops_files) {
    const std::vector<OwnRow> made = user_ops({path, read_file(path)}, rows, problems);
    rows.insert(rows.end(), made.begin(), made.end());
  }
  for (const std::string& p : problems) print_err(p);
  return problems.empty();
}

}  // namespace tc
