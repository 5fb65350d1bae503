#include "cli/per_node.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/process.h"
#include "importer/model_parts.h"

namespace tc {
namespace {

constexpr size_t kAtOnce = 256;     // values that are outputs of one program
constexpr size_t kListed = 20;      // of what is off or cannot be seen
constexpr int kMostRefusals = 100;  // outputs that a program cannot have, found one after the other

struct Seen {
  const NodeOutline* node;
  size_t output;
  const ModelText& name() const { return node->outputs[output]; }
  std::string text() const {
    return "\"" + printable(name().raw()) + "\" of node \"" + printable(node->name.raw()) + "\" (" +
           printable(node->op) + ")";
  }
};

/// Why a value cannot be an output that is compared; "" if it can.
std::string hidden_because(const ValueType& t) {
  if (t.kind == ValueType::Kind::Sequence) return "a sequence";
  if (t.kind == ValueType::Kind::Optional) return "an optional";
  const bool narrow = t.is_tensor() && (is_narrow_float(t.dtype) || info(t.dtype).bits < 8);
  if (narrow && t.dtype != DType::F16 && t.dtype != DType::Bool)
    return "of type " + std::string(info(t.dtype).onnx_name) + ", which NumPy does not have";
  return "";
}

class PerNode {
 public:
  PerNode(const CommandLine& c, const ModelParts& parts) : c_(c), parts_(parts) {
    for (const NodeOutline& n : parts.nodes()) {
      bodies_ += n.bodies;
      for (size_t k = 0; k < n.outputs.size() && !n.is_constant; k++) {
        if (n.outputs[k].empty()) continue;
        const std::string why = hidden_because(n.types[k]);
        if (why.empty())
          values_.push_back({&n, k});
        else
          hidden_.push_back(Seen{&n, k}.text() + ": " + why);
      }
    }
  }

  /// Compares until something is off; false where the model has problems of its own, which have been reported.
  bool run(Diagnostics& problems) {
    for (size_t at = 0; at < values_.size() && off_.empty(); at += kAtOnce) {
      const size_t end = std::min(values_.size(), at + kAtOnce);
      if (!compare({values_.begin() + int64_t(at), values_.begin() + int64_t(end)}, problems)) return false;
    }
    return true;
  }

  bool is_off() const { return !off_.empty(); }

  std::string text() const {
    std::string s = "per node: " + to_text(int64_t(compared_)) + " of " +
                    to_text(int64_t(values_.size() + hidden_.size())) + " values compared" +
                    (against_.empty() ? "" : " with " + against_) + ", seed " + to_text(int64_t(c_.seed)) + "\n";
    s += off_.empty() ? "none is off\n" : "the first that is off: " + off_[0] + "\n";
    for (size_t i = 1; i < std::min(off_.size(), kListed); i++) s += "  off behind it: " + off_[i] + "\n";
    if (off_.size() > kListed) s += "  and " + to_text(int64_t(off_.size() - kListed)) + " more\n";
    for (size_t i = 0; i < std::min(hidden_.size(), kListed); i++) s += "not seen: " + hidden_[i] + "\n";
    if (hidden_.size() > kListed) s += "not seen: " + to_text(int64_t(hidden_.size() - kListed)) + " more\n";
    if (bodies_ > 0)
      s += "not seen: what is computed inside the " + to_text(int64_t(bodies_)) + " bodies of If, Loop and Scan\n";
    return s;
  }

 private:
  // What no program can have as an output is left out, and the others are tried again.
  bool compare(std::vector<Seen> values, Diagnostics& problems) {
    const TemporaryDir dir;
    CommandLine c = c_;
    c.native = false;  // said once, at the end
    c.model = c.request.model = dir.path() + "/model.onnx";
    if (c.request.name.empty()) c.request.name = default_name(c_.model);
    if (parts_.bound()) {
      std::erase_if(c.request.import.dims, [](const auto& d) { return d.second.is_fixed(); });
      c.request.import.input_shapes.clear();
      c.request.import.input_values.clear();
    }
    for (int tries = 0; !values.empty(); tries++) {
      std::vector<ModelText> names;
      for (const Seen& v : values) names.push_back(v.name());
      std::ofstream(c.model, std::ios::binary) << parts_.with_outputs(names);
      Diagnostics here;
      const AgainstReference r = compare_with_reference(c, here);
      if (!here.has_errors()) {
        take(values, r);
        return true;
      }
      const size_t before = values.size();
      if (tries < kMostRefusals) leave_out(values, here);
      if (values.size() == before) {
        for (Diagnostic d : here.list()) {
          if (!d.loc.file.empty()) d.loc.file = std::filesystem::path(c_.model).filename();
          problems.add(std::move(d));
        }
        return false;
      }
    }
    return true;
  }

  void leave_out(std::vector<Seen>& values, const Diagnostics& found) {
    for (const Diagnostic& d : found.list())
      std::erase_if(values, [&](const Seen& v) {
        if (d.warning || d.loc.value != v.name().raw()) return false;
        hidden_.push_back(v.text() + ": " + printable(d.message));
        return true;
      });
  }

  void take(const std::vector<Seen>& values, const AgainstReference& r) {
    against_ = r.against;
    compared_ += values.size();
    for (size_t k = 0; k < r.outputs.size(); k++)
      if (r.outputs[k].differs)
        off_.push_back(named(values, r.outputs[k].name) + ": " + printable(r.outputs[k].difference, 400));
  }

  static std::string named(const std::vector<Seen>& values, const ModelText& name) {
    for (const Seen& v : values)
      if (v.name() == name) return v.text();
    return "\"" + printable(name.raw()) + "\"";
  }

  const CommandLine& c_;
  const ModelParts& parts_;
  std::vector<Seen> values_;
  std::vector<std::string> off_, hidden_;
  std::string against_;
  size_t compared_ = 0;
  int64_t bodies_ = 0;
};

}  // namespace

ExitCode verify_per_node(const CommandLine& c) {
  if (!c.reference.empty() || !c.request.import.elements.empty())
    throw Error("TC0001", ExitCode::Usage, "--per-node cannot be combined with --reference or --elements");
  Diagnostics problems;
  const ModelParts parts(c.model, c.request.import, problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  PerNode nodes(c, parts);
  if (!nodes.run(problems)) return report(problems, c);
  print_out(nodes.text());
  const AgainstReference fused = compare_with_reference(c, problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  print_out((fused.same ? "the package as it is emitted is not off:\n" : "the package as it is emitted is off:\n") +
            fused.text);
  return fused.same && !nodes.is_off() ? ExitCode::Ok : ExitCode::Mismatch;
}

}  // namespace tc
