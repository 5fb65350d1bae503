#include "cli/report/times.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/error.h"
#include "support/read_file.h"
#include "support/text.h"

namespace tc {
namespace {

using Json = nlohmann::ordered_json;

class TimesReader {
 public:
  TimesReader(const std::string& path, const PackageFacts& p) : path_(path), p_(p) {}

  KernelTimes read() {
    const Json j = parse(read_file(path_));
    try {
      if (j.contains("kernels")) return profile(j);
      if (j.contains("traceEvents")) return trace(j.at("traceEvents"));
    } catch (const Json::exception&) {  // of a field that is absent or of another type
    }
    refuse("is no profile and no trace of a package");
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    const std::string program = p_.name + "_profile";
    throw Error({"TC0609",
                 ExitCode::Io,
                 {},
                 "'" + printable(path_) + "' " + why,
                 {"the program of the same package writes one: " + printable(program) +
                      " --profile --json > FILE, or --trace FILE",
                  "so does tc-emit run with the same model and options, also --cpu"},
                 false});
  }

  // The line of a profile stands last, behind what else the program has printed.
  Json parse(const std::string& text) const {
    Json j = Json::parse(text, nullptr, false);
    const size_t line = text.rfind("\n{", text.find_last_not_of('\n'));
    if (j.is_discarded() && line != std::string::npos) j = Json::parse(text.substr(line), nullptr, false);
    if (!j.is_object()) refuse("is no JSON of an object");
    return j;
  }

  double amount(const Json& j, const char* key) const {
    const double v = j.at(key).get<double>();
    if (!std::isfinite(v) || v < 0) refuse(std::string("has a ") + key + " that is no amount");
    return v;
  }

  void need_kernel(const std::string& name) const {
    const auto is = [&](const PackageFacts::Kernel& k) { return k.name == name; };
    if (std::none_of(p_.kernels.begin(), p_.kernels.end(), is))
      refuse("has times of other kernels: '" + printable(name) + "' is none of " + printable(p_.name));
  }

  KernelTimes profile(const Json& j) const {
    KernelTimes t;
    t.runs = amount(j, "runs");
    t.run_us = amount(j, "mean_us");
    t.threads = int(std::min(amount(j, "threads"), 1e6));
    for (const Json& k : j.at("kernels")) {
      const std::string name = k.at("kernel");
      if (!k.contains("gbs")) {
        t.other_us += amount(k, "total_us");
        continue;
      }
      need_kernel(name);
      t.rows.push_back(
          {name, amount(k, "calls"), amount(k, "total_us"), k.contains("floor_share") ? amount(k, "floor_share") : 0});
    }
    return t;
  }

  KernelTimes trace(const Json& events) const {
    KernelTimes t;
    const std::string prefix = p_.name + "_";
    for (const Json& e : events) {
      if (e.at("ph") != "X") continue;
      const double us = amount(e, "dur");
      t.run_us = std::max(t.run_us, amount(e, "ts") + us);
      const std::string step = e.at("args").at("step"), name = e.at("name");
      if (!step.starts_with(prefix)) {
        t.other_us += us;
        continue;
      }
      need_kernel(name);
      auto row =
          std::find_if(t.rows.begin(), t.rows.end(), [&](const KernelTimes::Row& r) { return r.kernel == name; });
      if (row == t.rows.end()) row = t.rows.insert(row, {name, 0, 0, 0});
      row->calls += 1;
      row->us += us;
    }
    return t;
  }

  const std::string& path_;
  const PackageFacts& p_;
};

}  // namespace

KernelTimes read_times(const std::string& path, const PackageFacts& p) { return TimesReader(path, p).read(); }

}  // namespace tc
