// Binary models: weights go round protobuf and ONNX's library, damaged and oversized files are told from each other.
#include "importer/wire.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <cstring>

#include "importer/test_import.h"

namespace tc::wire_test {
namespace {

using importer_testing::import_file;
using importer_testing::Imported;
using importer_testing::TestFolder;

onnx::ModelProto add_model(int64_t n) {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(13);
  onnx::GraphProto& g = *m.mutable_graph();
  g.set_name("g");
  auto type = [&](onnx::ValueInfoProto* v, const char* name) {
    v->set_name(name);
    v->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    v->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(n);
  };
  type(g.add_input(), "x");
  type(g.add_output(), "y");
  auto& node = *g.add_node();
  node.set_op_type("Add");
  node.add_input("x");
  node.add_input("w");
  node.add_output("y");
  auto& w = *g.add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(n);
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(float(i) * 0.5f);
  w.set_raw_data(values.data(), values.size() * sizeof(float));
  return m;
}

Imported import_proto(const onnx::ModelProto& m) {
  const TestFolder folder;
  return import_file(folder.write("m.onnx", m.SerializeAsString()));
}

TEST(Binary, LargeWeightsAreReadFromTheFile) {
  for (const int64_t n : {int64_t(3), importer::kInlineBytes / 4 - 1, importer::kInlineBytes / 4, int64_t(100'000)}) {
    const Imported m = import_proto(add_model(n));
    ASSERT_EQ(m.problems, "");
    const Constant& w = m.graph.nodes().front()->inputs[1]->constant;
    ASSERT_EQ(w->size(), n);
    EXPECT_EQ(uintptr_t(w->bytes.get()) % alignof(float), 0u);
    for (int64_t i = 0; i < n; i += 997) EXPECT_EQ(w->as<float>()[i], float(i) * 0.5f);
  }
}

TEST(Binary, LargeWeightsSurviveConversion) {
  onnx::ModelProto m = add_model(50'000);
  m.mutable_opset_import(0)->set_version(6);
  const Imported i = import_proto(m);
  ASSERT_EQ(i.problems, "");
  EXPECT_EQ(i.graph.nodes().front()->inputs[1]->constant->as<float>()[49'999], 49'999 * 0.5f);
}

void expect_refused(const onnx::ModelProto& m, const std::string& code) {
  const Imported i = import_proto(m);
  EXPECT_NE(i.problems.find("error[" + code + "]"), std::string::npos) << code << "\n" << i.problems;
}

TEST(Binary, RawDataOfTheWrongLength) {
  onnx::ModelProto m = add_model(1'000'000);
  m.mutable_graph()->mutable_initializer(0)->set_raw_data("abcd");
  expect_refused(m, "TC0120");
  m = add_model(3);
  m.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(100'000, 'x'));
  expect_refused(m, "TC0120");
}

TEST(Binary, DataInMoreThanOneForm) {
  for (const int64_t n : {int64_t(3), int64_t(10'000)}) {
    onnx::ModelProto m = add_model(n);
    m.mutable_graph()->mutable_initializer(0)->add_float_data(1);
    expect_refused(m, "TC0123");
    m = add_model(n);
    m.mutable_graph()->mutable_initializer(0)->mutable_segment()->set_begin(0);
    expect_refused(m, "TC0123");
    m = add_model(n);
    m.mutable_graph()->mutable_initializer(0)->set_data_location(onnx::TensorProto::EXTERNAL);
    expect_refused(m, "TC0123");
  }
}

TEST(Binary, TheReferencesOfTheImporterCannotBeForged) {
  onnx::ModelProto m = add_model(3);
  auto& w = *m.mutable_graph()->mutable_initializer(0);
  w.clear_raw_data();
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& e = *w.add_external_data();
  e.set_key("tc");
  e.set_value("0");
  expect_refused(m, "TC0131");
}

TEST(Binary, NegativeDimsAndUnknownTypes) {
  onnx::ModelProto m = add_model(3);
  m.mutable_graph()->mutable_initializer(0)->set_dims(0, -3);
  expect_refused(m, "TC0121");
  m = add_model(3);
  m.mutable_graph()->mutable_initializer(0)->set_data_type(77);
  expect_refused(m, "TC0122");
  m = add_model(3);
  m.mutable_graph()->mutable_initializer(0)->set_data_type(onnx::TensorProto::STRING);
  expect_refused(m, "TC0123");
}

TEST(Binary, NodesAndAttributesThatMissTheirParts) {
  onnx::ModelProto m = add_model(3);
  m.mutable_graph()->mutable_node(0)->clear_op_type();
  expect_refused(m, "TC0115");
  m = add_model(3);
  auto& a = *m.mutable_graph()->mutable_node(0)->add_attribute();
  a.set_name("axis");
  expect_refused(m, "TC0116");  // neither type nor value
  a.set_type(onnx::AttributeProto::INT);
  expect_refused(m, "TC0116");  // no value
  a.set_f(1);
  expect_refused(m, "TC0116");  // a value of another type
  m = add_model(3);
  m.clear_graph();
  expect_refused(m, "TC0106");
  m = add_model(3);
  m.clear_opset_import();
  expect_refused(m, "TC0106");
}

TEST(Binary, SparseTensors) {
  auto sparse = [](std::vector<int64_t> indices, int64_t size) {
    onnx::ModelProto m = add_model(5);
    onnx::GraphProto& g = *m.mutable_graph();
    g.clear_initializer();
    auto& s = *g.add_sparse_initializer();
    s.add_dims(size);
    s.mutable_values()->set_name("w");
    s.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
    s.mutable_values()->add_dims(2);
    s.mutable_values()->add_float_data(7);
    s.mutable_values()->add_float_data(8);
    s.mutable_indices()->set_data_type(onnx::TensorProto::INT64);
    s.mutable_indices()->add_dims(int64_t(indices.size()));
    for (const int64_t i : indices) s.mutable_indices()->add_int64_data(i);
    return m;
  };
  const Imported m = import_proto(sparse({1, 4}, 5));
  ASSERT_EQ(m.problems, "");
  const float* w = m.graph.nodes().front()->inputs[1]->constant->as<float>();
  EXPECT_EQ(std::vector<float>(w, w + 5), (std::vector<float>{0, 7, 0, 0, 8}));
  expect_refused(sparse({1, 5}, 5), "TC0124");
  expect_refused(sparse({-1, 4}, 5), "TC0124");
  expect_refused(sparse({4, 1}, 5), "TC0124");
  expect_refused(sparse({1, 1}, 5), "TC0124");
  expect_refused(sparse({1}, 5), "TC0124");
  expect_refused(sparse({1, 4}, -5), "TC0124");
  expect_refused(sparse({1, 4}, int64_t(1) << 62), "TC0124");
  expect_refused(sparse({1, 4}, int64_t(1) << 40), "TC0501");
}

/// Ifs nested `depth` bodies deep, built from the inside.
onnx::ModelProto nested(int depth) {
  onnx::ModelProto m = add_model(2);
  onnx::NodeProto inner;
  inner.set_op_type("Neg");
  inner.add_input("x");
  inner.add_output("z");
  for (int i = 0; i < depth; ++i) {
    onnx::NodeProto outer;
    outer.set_op_type("If");
    outer.add_input("c");
    outer.add_output("r" + std::to_string(i));
    for (const char* name : {"then_branch", "else_branch"}) {
      auto& a = *outer.add_attribute();
      a.set_name(name);
      a.set_type(onnx::AttributeProto::GRAPH);
      auto& node = *a.mutable_g()->add_node();
      const bool is_then = std::string(name) == "then_branch";
      if (is_then)
        node = inner;
      else
        node.set_op_type("Neg"), node.add_input("x"), node.add_output("e" + std::to_string(i));
      a.mutable_g()->set_name("b");
      a.mutable_g()->add_output()->set_name(node.output(0));
    }
    inner = std::move(outer);
  }
  onnx::GraphProto& g = *m.mutable_graph();
  g.clear_initializer();
  auto& c = *g.add_input();
  c.set_name("c");
  c.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
  c.mutable_type()->mutable_tensor_type()->mutable_shape();
  *g.mutable_node(0) = inner;
  g.mutable_output(0)->set_name(inner.output(0));
  return m;
}

TEST(Binary, NestedBodies) {
  EXPECT_EQ(import_proto(nested(32)).problems, "");
  for (const int depth : {33, 34, 60}) {
    const Imported m = import_proto(nested(depth));
    EXPECT_NE(m.problems.find("error[TC0105]"), std::string::npos) << m.problems;
    EXPECT_EQ(m.exit, ExitCode::Limit);
  }
}

TEST(Binary, SequencesInSequencesEndSomewhere) {
  onnx::ModelProto m = add_model(2);
  onnx::TypeProto t = m.graph().input(0).type();
  for (int i = 0; i < 40; ++i) {
    onnx::TypeProto outer;
    *outer.mutable_sequence_type()->mutable_elem_type() = t;
    t = outer;
  }
  *m.mutable_graph()->mutable_input(0)->mutable_type() = t;
  const Imported i = import_proto(m);
  EXPECT_NE(i.exit, ExitCode::Internal);
}

TEST(Binary, EveryCutAndEveryFlippedByteIsSurvived) {
  const TestFolder folder;
  const std::string good = add_model(40).SerializeAsString();
  for (size_t n = 0; n < good.size(); ++n) {
    std::string bad = good.substr(0, n);
    import_file(folder.write("cut.onnx", bad));
    bad = good;
    bad[n] = char(bad[n] ^ (1 << n % 8));
    import_file(folder.write("flip.onnx", bad));
  }
}

TEST(Binary, GarbageIsNoModel) {
  const TestFolder folder;
  for (const std::string& bytes :
       {std::string(), std::string("dummy\n"), std::string(1000, '\xff'), std::string(7, '\0')}) {
    const Imported m = import_file(folder.write("m.onnx", bytes));
    EXPECT_NE(m.problems.find("error[TC01"), std::string::npos) << m.problems;
    EXPECT_EQ(m.exit, ExitCode::Rejected);
  }
}

TEST(Binary, FilesThatCannotBeRead) {
  const TestFolder folder;
  EXPECT_EQ(import_file(folder.path("gone.onnx")).exit, ExitCode::Io);
  EXPECT_EQ(import_file(folder.path("")).exit, ExitCode::Io);
  EXPECT_EQ(import_file("/dev/null").exit, ExitCode::Io);
}

TEST(Binary, BeyondTwoGigabytes) {
  const TestFolder folder;
  const std::string path = folder.write("m.onnx", "");
  ASSERT_EQ(truncate(path.c_str(), off_t(5) << 30), 0);  // sparse: takes no space
  const Imported m = import_file(path);
  EXPECT_NE(m.problems.find("error[TC0103]"), std::string::npos) << m.problems;
  EXPECT_NE(m.problems.find("save_as_external_data"), std::string::npos);
  EXPECT_EQ(m.exit, ExitCode::Limit);
}

}  // namespace
}  // namespace tc::wire_test
