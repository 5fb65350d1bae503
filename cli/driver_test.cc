#include "cli/driver.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "support/interrupt.h"

namespace tc::driver_test {
namespace {

/// A model of one node in a file of the test's.
class Driver : public testing::Test {
 protected:
  Driver() {
    std::ofstream(path_) << "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                            "g (float[4] x) => (float[4] y) { y = Relu (x) }\n";
    request_.model = path_;
    request_.target.cpu = *find_cpu("generic");
    request_.listener.log = [this](const std::string& text) { log_ += text; };
  }
  ~Driver() override { std::remove(path_.c_str()); }

  const std::string path_ = testing::TempDir() + "tc_driver_test.onnxtxt";
  CompileRequest request_;
  std::string log_;
};

TEST_F(Driver, SaysWhatPassesPrintAlsoWhereALaterOneIsBroken) {
  request_.options.print_after = {"to_functions"};
  request_.passed = [](const std::string& pass, const Graph&) { check(pass != "fuse_ops", "a defect"); };
  Diagnostics problems;
  EXPECT_THROW(compile(request_, problems), InternalError);
  EXPECT_NE(log_.find("after to_functions:"), std::string::npos) << log_;
}

TEST_F(Driver, SaysWhatAPassPrintsBeforeTheNextOne) {
  request_.options.print_after = {"to_functions"};
  bool said = false;
  request_.passed = [&](const std::string& pass, const Graph&) {
    said = said || (pass == "fuse_ops" && !log_.empty());
  };
  Diagnostics problems;
  compile(request_, problems);
  EXPECT_TRUE(said);
}

TEST_F(Driver, TellsPhasesInOrderAndLetsAnInterruptThrough) {
  std::vector<std::string> phases;
  request_.listener.progress = [&](const std::string& phase, const std::string&) {
    if (phases.empty() || phases.back() != phase) phases.push_back(phase);
  };
  Diagnostics problems;
  compile(request_, problems);
  EXPECT_EQ(phases, (std::vector<std::string>{"import", "passes", "kernels", ""}));  // no weights
  request_.listener.progress = [](const std::string& phase, const std::string&) {
    if (phase == "kernels") throw Interrupted{2};
  };
  EXPECT_THROW(compile(request_, problems), Interrupted);
}

}  // namespace
}  // namespace tc::driver_test
