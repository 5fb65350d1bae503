// The operator table against ONNX's schemas: a row must define the newest version of its operator, with ONNX's
// attributes.
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <set>

#include "importer/import.h"
#include "ir/ops/op.h"

namespace tc::op_rows_test {
namespace {

const onnx::OpSchema* schema_of(const OpRow& row) {
  return onnx::OpSchemaRegistry::Schema(std::string(row.name), std::string(row.domain));
}

bool is_onnx_domain(std::string_view domain) { return domain.empty() || domain.substr(0, 7) == "ai.onnx"; }

TEST(OpRows, DefineTheNewestVersion) {
  for (const OpRow* row : all_ops()) {
    if (!is_onnx_domain(row->domain)) continue;
    if (row->name == "SimplifiedLayerNormalization") continue;  // exporters put this one into ONNX's domain
    const onnx::OpSchema* schema = schema_of(*row);
    ASSERT_NE(schema, nullptr) << row->name << ": ONNX has no such operator";
    EXPECT_EQ(row->since, schema->since_version()) << row->name << ": the row defines an older version";
  }
}

TEST(OpRows, HaveOnlyAttributesOfOnnx) {
  for (const OpRow* row : all_ops()) {
    const onnx::OpSchema* schema = is_onnx_domain(row->domain) ? schema_of(*row) : nullptr;
    if (!schema) continue;
    for (const AttrSpec& a : row->attrs)
      // data_layout is ours: passes set it, and no model can, because ONNX's schema refuses it.
      EXPECT_TRUE(a.name == "data_layout" || schema->attributes().count(a.name))
          << row->name << ": ONNX knows no attribute " << a.name;
  }
}

/// The default of an attribute as text, for comparison.
std::string text_of(const onnx::AttributeProto& a) {
  switch (a.type()) {
    case onnx::AttributeProto::INT: return to_text(int64_t(a.i()));
    case onnx::AttributeProto::FLOAT: return to_text(a.f());
    case onnx::AttributeProto::STRING: return a.s();
    default: return "";
  }
}
std::string text_of(const Attr& a) {
  if (const auto* i = std::get_if<int64_t>(&a)) return to_text(*i);
  if (const auto* f = std::get_if<float>(&a)) return to_text(*f);
  if (const auto* s = std::get_if<std::string>(&a)) return *s;
  return "";
}

TEST(OpRows, HaveTheDefaultsOfOnnx) {
  for (const OpRow* row : all_ops()) {
    const onnx::OpSchema* schema = is_onnx_domain(row->domain) ? schema_of(*row) : nullptr;
    if (!schema) continue;
    for (const AttrSpec& a : row->attrs) {
      const auto it = schema->attributes().find(a.name);
      if (it == schema->attributes().end() || it->second.required) continue;
      const std::string theirs = text_of(it->second.default_value);
      // A default that ONNX leaves to the operator's words (an empty list, "all axes") has no value to compare.
      if (!theirs.empty()) {
        EXPECT_EQ(text_of(a.otherwise), theirs) << row->name << "." << a.name;
      }
    }
  }
}

}  // namespace
}  // namespace tc::op_rows_test
