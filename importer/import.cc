// The importer's steps in order; each is a file of its own. A step that cannot go on ends the run, after everything
// that can still be said about the model has been said.
#include "importer/import.h"

#include <new>

#include "importer/context.h"
#include "importer/quiet_protobuf.h"

namespace tc {

namespace {

using namespace importer;

/// Fills `m` up to the point where it is a Graph in ONNX's words; false if a problem was found.
bool prepare(Context& c, onnx::ModelProto& m) {
  if (!load_model(c, m)) return false;
  validate_model(c, m);
  if (!m.has_graph()) return false;
  if (c.errors == 0) {
    if (!c.options.keep_dead_nodes) drop_dead_nodes(m);
    fix_inputs(c, m);
    load_tensors(c, m);
    open_lists(c, m);
    bind_dims(c, m);
    replace_maps(c, m);
  } else {
    // Structure and weights are independent: both are reported in one run.
    load_tensors(c, m);
  }
  const bool ok = c.errors == 0 && inline_functions(c, m) && convert_to_newest(c, m) && expand_functions(c, m);
  report_unsupported(c, m);
  return ok && c.errors == 0;
}

}  // namespace

Graph import_model(const std::string& path, const ImportOptions& options, Diagnostics& problems) {
  const QuietProtobuf quiet;
  Context c(path, options, problems);
  Graph graph;
  try {
    onnx::ModelProto m;
    if (prepare(c, m))
      graph = to_graph(c, m);
    else if (c.errors == 0)
      c.error("TC0160", ExitCode::Unsupported, nullptr, "the model could not be converted");
  } catch (const InternalError&) {
    throw;
  } catch (const Error& e) {
    c.error(e.diagnostic().code, e.diagnostic().exit, nullptr, e.diagnostic().message, e.diagnostic().notes);
  } catch (const std::bad_alloc&) {
    c.error("TC0501", ExitCode::Limit, nullptr, "there is not enough memory for this model");
  } catch (const std::exception& e) {  // from ONNX's library
    c.reject("TC0160", nullptr, "ONNX's library rejects the model: " + reason_of(e));
  }
  c.close();
  return c.errors == 0 ? std::move(graph) : Graph();
}

ModelFacts read_facts(const std::string& path, Diagnostics& problems) {
  const QuietProtobuf quiet;
  const ImportOptions options;
  Context c(path, options, problems);
  ModelFacts facts;
  onnx::ModelProto m;
  if (!load_model(c, m)) return facts;
  const onnx::GraphProto& g = m.graph();
  facts.ir_version = m.ir_version();
  facts.graph_name = ModelText(g.name());
  facts.producer = ModelText(m.producer_name());
  for (const auto& o : m.opset_import()) facts.opsets[domain_of(o.domain())] = o.version();
  std::set<std::string> initializers;
  // Some exporters write weights as Constant nodes.
  auto count = [&](const onnx::TensorProto& t) {
    int64_t size = 1;
    for (const int64_t d : t.dims())
      if (__builtin_mul_overflow(size, d, &size) || size < 0) size = 0;
    if (__builtin_add_overflow(facts.parameters, size, &facts.parameters)) facts.parameters = 0;
  };
  for_each_graph(*m.mutable_graph(), [&](onnx::GraphProto& inner) {
    for (const auto& n : inner.node()) {
      ++facts.operators[domain_of(n.domain()).empty() ? n.op_type() : n.domain() + "::" + n.op_type()];
      if (n.op_type() == "Constant" && domain_of(n.domain()).empty())
        for (const auto& a : n.attribute())
          if (a.has_t()) count(a.t());
    }
    for (const auto& t : inner.initializer()) {
      initializers.insert(t.name());
      count(t);
    }
  });
  auto port = [](const onnx::ValueInfoProto& v) {
    ModelFacts::Port p{ModelText(v.name()), value_type(v.type())};
    for (int k = 0; k < v.type().tensor_type().shape().dim_size(); ++k)
      if (const auto& d = v.type().tensor_type().shape().dim(k); !d.dim_param().empty() && p.type.is_tensor())
        p.type.shape[size_t(k)] = Dim::symbolic(d.dim_param());
    return p;
  };
  for (const auto& v : g.input())
    if (!initializers.count(v.name())) facts.inputs.push_back(port(v));
  for (const auto& v : g.output()) facts.outputs.push_back(port(v));
  return facts;
}

}  // namespace tc
