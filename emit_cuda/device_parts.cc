#include "emit_cuda/device_parts.h"

#include <algorithm>

#include "emit_c/fill.h"
#include "emit_c/operands.h"
#include "emit_cuda/states.h"
#include "ir/open_size.h"
#include "passes/program/size_bounds.h"
#include "templates/text.h"

namespace tc {

bool is_host_size(const Program& p, const Operand& o) {
  return o.kind == Operand::Kind::Input && p.inputs[size_t(o.index)].is_size;
}

bool may_be_empty(const Program& p, const std::vector<SizeSum>& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [&](const SizeSum& s) { return least_size(p, s) <= 0; });
}

namespace {

int64_t aligned(int64_t n) { return (n + 255) / 256 * 256; }

// Where the next tensor begins, on 256 bytes: numbers, and behind them what grows with sizes that have no upper bound.
class Places {
 public:
  std::string next() const {
    if (open_.empty()) return to_text(known_);
    return "(" + (known_ == 0 ? open_.substr(3) : to_text(known_) + open_) + ")";
  }
  void add(int64_t bytes) {
    if (open_number(bytes).times == 0)
      known_ = checked_add(known_, aligned(bytes));
    else
      open_ += " + (" + open_text(bytes, "d.room") + " + 255) / 256 * 256";
  }
  std::string all() const { return open_.empty() ? to_text(std::max<int64_t>(known_, 256)) : next(); }

 private:
  int64_t known_ = 0;
  std::string open_;
};
int64_t bytes_of(const IoTensor& t) { return checked_mul(num_elements(t.dims), info(t.dtype).bytes); }

bool is_sized(const IoTensor& t) {
  return !t.sizes.empty() && std::all_of(t.sizes.begin(), t.sizes.end(), [](const IoSize& s) { return s.of_inputs(); });
}

// The bytes of what there is; of sizes that only the device knows, of what there may be.
std::string io_bytes(const Program& p, const ProgramNames& n, const IoTensor& t) {
  if (!is_sized(t)) return memory_text(bytes_of(t), "d.room");
  std::string sizes;
  int64_t bytes = info(t.dtype).bytes;
  for (size_t d = 0; d < t.dims.size(); d++) {
    const auto size = std::find_if(t.sizes.begin(), t.sizes.end(), [&](const IoSize& s) { return s.axis == int(d); });
    if (size == t.sizes.end())
      bytes = checked_mul(bytes, t.dims[d]);
    else if (const std::string text = size_text(p, n, size->sum, "d.in.", kCounts); size->sum.is_one())
      sizes += "(size_t)" + text + " * ";
    else
      sizes += "(size_t)(" + text + ") * ";
  }
  return sizes + to_text(bytes);
}

std::vector<SizeSum> sums_of(const IoTensor& t) {
  std::vector<SizeSum> list;
  for (const IoSize& s : t.sizes) list.push_back(s.sum);
  return list;
}

// In functions whose instance is a pointer.
std::string of_pointer(std::string text) {
  for (const std::string member : {"d.in.", "d.room", kCounts})
    for (size_t at = 0; (at = text.find(member, at)) != std::string::npos; at += member.size() + 1)
      text.replace(at, 2, "d->");
  return text;
}

}  // namespace

Staging staging(const Program& p, const ProgramNames& n) {
  Staging s;
  Places places;
  auto row = [&](const IoTensor& t, const std::string& name, bool in) {
    if (t.is_kept()) return;
    const bool counted = is_counted(p, sums_of(t));
    if (t.is_size) {
      s.fields_in += "  d.in." + name + " = " + to_text(is_open(t.most) ? t.least : t.most) + ";\n";
      s.sizes += "  d->in." + name + " = in->" + name + ";\n";
      return;
    }
    const int64_t size = bytes_of(t);
    const std::string type = std::string(info(t.dtype).c_type), at = places.next(), count = io_bytes(p, n, t);
    const std::string side = in ? "in" : "out";
    (in ? s.fields_in : s.fields_out) +=
        "  d." + side + "." + name + " = (" + (in ? "const " : "") + type + " *)(void *)(d.io + " + at + ");\n";
    if (size == 0) return;
    if (in) {
      s.stage_in += "  memcpy(d->staging + " + of_pointer(at) + ", in->" + name + ", " + of_pointer(count) + ");\n";
      (counted ? s.upload_counted : s.upload) +=
          "  " + (is_sized(t) && may_be_empty(p, sums_of(t)) ? "if (" + count + " > 0) " : "") +
          "TRY(cudaMemcpyAsync(d.io + " + at + ", d.staging + " + at + ", " + count +
          ", cudaMemcpyHostToDevice, d.stream));\n";
    } else {
      s.stage_out += "  memcpy(out->" + name + ", d->staging + " + of_pointer(at) + ", " + of_pointer(count) + ");\n";
      s.download += "  " + (is_sized(t) && may_be_empty(p, sums_of(t)) ? "if (" + count + " > 0) " : "") +
                    "TRY(cudaMemcpyAsync(d.staging + " + at + ", d.io + " + at + ", " + count +
                    ", cudaMemcpyDeviceToHost, d.stream));\n";
    }
    places.add(size);
  };
  for (size_t i = 0; i < p.inputs.size(); i++) row(p.inputs[i], n.inputs[i], true);
  for (size_t i = 0; i < p.outputs.size(); i++) row(p.outputs[i], n.outputs[i], false);
  s.bytes = places.all();
  return s;
}

Graphs graphs_of(const Program& p, const ProgramNames& n, int64_t sets) {
  std::vector<std::string> sizes;
  for (size_t i = 0; i < p.inputs.size(); i++)
    if (p.inputs[i].is_size && !p.inputs[i].is_kept()) sizes.push_back("d.in." + n.inputs[i]);
  const std::string clear =
      "  TRY(cudaMemsetAsync(d.workspace, 0, workspace_bytes, d.stream));  /* tiles read beyond the last element */\n";
  Graphs g;
  if (sizes.empty()) {
    g.clear = counts_states(p) ? clear : "";
    return g;
  }
  const std::string device = n.lower + "_device", count = to_text(int64_t(sizes.size())), kept = to_text(sets);
  g.comment = ", for each of the sizes that are kept";
  g.member =
      "  int64_t graph_sizes[" + kept + "][" + count + "];  /* which sizes these are */\n  uint64_t asked[" + kept +
      "] = {}, runs = 0;  /* when they were asked for; 0: not captured */\n  int set = 0;  /* those of this run */\n";
  g.graph = "d.set * segment_count + k";
  g.count = kept + " * segment_count";
  g.capture_all = "";
  g.clear = clear;
  g.use = "  if (d.use_graphs) TRY(take_graphs(d));\n";
  g.take =
      fill(support_text("take_graphs.cu.in"),
           {{"device", device}, {"sizes", join(sizes, ", ")}, {"count", count}, {"graph", g.graph}, {"kept", kept}});
  return g;
}

}  // namespace tc
