// Names of fields and macros: no two alike, whatever tensors are called.
#include "emit_c/names.h"

#include <gtest/gtest.h>

#include <set>

namespace tc::names_test {
namespace {

Slot slot(const std::string& name, const std::string& suffix = "") {
  Slot s;
  s.name = ModelText(name);
  s.suffix = suffix;
  return s;
}

std::set<std::string> distinct(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

TEST(ProgramNames, NumbersOfOneNameAreNotAnotherName) {
  Program p;
  p.name = "net";
  for (const char* name : {"row", "row", "row", "row_2", "row_3", "row"}) p.slots.push_back(slot(name));
  const ProgramNames n(p);
  EXPECT_EQ(distinct(n.slots).size(), p.slots.size());
  EXPECT_EQ(n.slots[0], "row");
  EXPECT_EQ(n.slots[1], "row_2");
}

TEST(ProgramNames, OurWordsForATensorAreNotAnotherTensor) {
  Program p;
  p.name = "net";
  p.slots = {slot("w", "packed"), slot("w_packed"), slot("w", "packed"), slot("scratch"), slot("STATUS"), slot("MADE")};
  Weight packed, own;
  packed.name = ModelText("w"), packed.suffix = "packed";
  own.name = ModelText("w_packed");
  p.weights = {own, packed, packed};
  const ProgramNames n(p);
  EXPECT_EQ(distinct(n.slots).size(), p.slots.size());
  for (const char* own : {"SCRATCH", "STATUS", "MADE"}) EXPECT_EQ(distinct(n.slots).count(own), 0u) << own;
  EXPECT_EQ(distinct(n.weights).size(), p.weights.size());
}

TEST(ProgramNames, MacrosOfThePackageAreNoFields) {
  Program p;
  p.name = "net";
  for (const char* name : {"TC_VL", "TC_RESTRICT", "y", "y"}) {
    IoTensor t;
    t.name = ModelText(name);
    p.outputs.push_back(t);
  }
  const ProgramNames n(p);
  EXPECT_EQ(distinct(n.outputs).size(), p.outputs.size());
  EXPECT_EQ(distinct(n.outputs).count("TC_VL") + distinct(n.outputs).count("TC_RESTRICT"), 0u);
}

}  // namespace
}  // namespace tc::names_test
