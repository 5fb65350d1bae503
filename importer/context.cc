#include "importer/context.h"

#include <unistd.h>

#include <algorithm>

#include "ir/ops/op.h"

namespace tc::importer {

File::~File() {
  if (fd_ >= 0) close(fd_);
}

bool read_at(int fd, int64_t offset, void* to, size_t n) {
  auto* p = static_cast<uint8_t*>(to);
  while (n > 0) {
    const ssize_t got = pread(fd, p, n, offset);
    if (got <= 0) return false;
    p += got;
    offset += got;
    n -= size_t(got);
  }
  return true;
}

Context::Context(std::string model_path, const ImportOptions& o, Diagnostics& d)
    : path(std::move(model_path)), options(o), problems_(d) {}

std::shared_ptr<const OpRow> Context::own_row(std::string_view domain, std::string_view op) const {
  for (const auto& row : options.ops)
    if (row->domain == domain && row->name == op) return row;
  return nullptr;
}

bool Context::has_row(std::string_view domain, std::string_view op) const {
  if (own_row(domain, op)) return true;
  if (domain == "tc") return false;  // what the compiler makes for itself trusts its operands
  return options.has_row ? options.has_row(domain, op) : find_op(domain, op) != nullptr;
}

std::string Context::file_name() const {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

void Context::add(Diagnostic d) {
  d.loc.file = file_name();
  // Two steps may find the same problem (the body of a function that is called twice, say): it is told once.
  if (!seen_.insert({d.code + d.message, d.loc.node.empty() ? d.loc.output : d.loc.node}).second) return;
  if (!d.warning && ++errors > kMaxProblems) return;
  problems_.add(std::move(d));
}

namespace {

Loc location_of(const onnx::NodeProto& n) {
  Loc l;
  l.node = n.name();
  l.op = n.op_type();
  const auto made = std::find_if(n.output().begin(), n.output().end(), [](const auto& name) { return !name.empty(); });
  if (l.node.empty() && made != n.output().end()) l.output = *made;
  return l;
}

}  // namespace

void Context::error(std::string code, ExitCode exit, const onnx::NodeProto* node, std::string message,
                    std::vector<std::string> notes, int input) {
  Diagnostic d{std::move(code), exit, {}, std::move(message), std::move(notes), false};
  if (node) {
    d.loc = location_of(*node);
    d.loc.input = input;
    if (input >= 0 && input < node->input_size()) d.loc.value = node->input(input);
  }
  add(std::move(d));
}

void Context::warn(std::string code, const onnx::NodeProto* node, std::string message, std::vector<std::string> notes) {
  Diagnostic d{std::move(code), ExitCode::Ok, {}, std::move(message), std::move(notes), true};
  if (node) d.loc = location_of(*node);
  add(std::move(d));
}

bool Context::charge_nodes(int64_t n, const onnx::NodeProto* node) {
  nodes += n;
  if (nodes <= options.max_nodes) return true;
  if (!nodes_reported_)
    error("TC0142", ExitCode::Limit, node,
          "the model grows beyond " + to_text(options.max_nodes) + " nodes when its functions are inlined",
          {"raise the limit with --limit-nodes"});
  nodes_reported_ = true;
  return false;
}

void Context::close() {
  if (errors <= kMaxProblems) return;
  Diagnostic d{"TC0199", ExitCode::Rejected, {}, to_text(int64_t(errors - kMaxProblems)) + " more problems", {}, false};
  d.loc.file = file_name();
  problems_.add(std::move(d));
}

std::string quoted(std::string_view raw) { return "\"" + printable(raw, 80) + "\""; }

std::string first_line(std::string_view text) {
  const size_t start = text.find_first_not_of("\n ");
  if (start == std::string_view::npos) return "";
  text = text.substr(start);
  return printable(text.substr(0, text.find('\n')), 300);
}

void for_each_graph(onnx::GraphProto& root, const std::function<void(onnx::GraphProto&)>& f) {
  std::vector<onnx::GraphProto*> work{&root};
  for (size_t i = 0; i < work.size(); ++i) {
    f(*work[i]);
    for (onnx::NodeProto& n : *work[i]->mutable_node())
      for (onnx::AttributeProto& a : *n.mutable_attribute()) {
        if (a.has_g()) work.push_back(a.mutable_g());
        for (onnx::GraphProto& g : *a.mutable_graphs()) work.push_back(&g);
      }
  }
}

}  // namespace tc::importer
