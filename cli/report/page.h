// The page of a report: cli/report/page/ as one file that needs no other.
#pragma once
#include <string>

namespace tc {

/// `title` is any text; `data` is that of report_data().
std::string report_page(const std::string& title, const std::string& data);

}  // namespace tc
