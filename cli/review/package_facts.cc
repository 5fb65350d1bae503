#include "cli/review/package_facts.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/open_size.h"
#include "support/error.h"
#include "support/text.h"

namespace tc {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void no_package(const std::string& where, const std::string& why) {
  throw Error({"TC0604",
               ExitCode::Io,
               {},
               printable(where) + " is no package of tc-emit: " + why,
               {"tc-emit MODEL -o DIR writes one"},
               false});
}

std::vector<std::string> texts(const Json& j, const char* key) {
  return j.contains(key) ? j.at(key).get<std::vector<std::string>>() : std::vector<std::string>();
}

/// An axis without an upper bound is a formula of n: "n", "9 * n".
Dims dims_of(const Json& shape) {
  Dims dims;
  for (const Json& d : shape) {
    if (d.is_number()) {
      dims.push_back(d.get<int64_t>());
      continue;
    }
    const std::string text = d.get<std::string>();
    const auto open = open_axis(text);
    if (!open) throw std::out_of_range("no size: " + text);
    dims.push_back(*open);
  }
  return dims;
}

std::vector<PackageFacts::Tensor> tensors(const Json& j, const char* key) {
  std::vector<PackageFacts::Tensor> list;
  if (!j.contains(key)) return list;
  for (const Json& t : j.at(key)) {
    const std::string name = t.at("name");
    list.push_back({name, t.at("dtype"), t.value("field", name), dims_of(t.at("shape")), t.value("at", int64_t(-1))});
    for (const int64_t d : list.back().shape)
      if (d < 0) throw std::out_of_range("negative size");
  }
  return list;
}

PackageFacts::Step step(const Json& j, int64_t index) {
  PackageFacts::Step s;
  for (const char* kind : {"kernel", "copy", "if", "loop", "continue"})
    if (s.kind.empty() && j.contains(kind)) s.kind = kind;
  if (s.kind == "kernel") s.kernel = j.at("kernel");
  s.reads = texts(j, "reads");
  s.writes = texts(j, "writes");
  s.nodes = texts(j, "nodes");
  s.inside = j.value("in", int64_t(-1));
  if (s.inside < -1 || s.inside >= index) throw std::out_of_range("step inside of a later one");
  s.branch = j.value("branch", "");
  s.note = j.value("note", "");
  return s;
}

/// From the comment above a function to the brace that ends it. `begin`: where its head's line begins.
std::string function_at(const std::string& text, size_t begin) {
  size_t end = text.find("\n}\n", begin);
  if (end == std::string::npos) return "";
  end += 3;
  const size_t comment_end = begin >= 4 && text.compare(begin - 4, 4, " */\n") == 0 ? begin : std::string::npos;
  if (comment_end != std::string::npos)
    if (const size_t comment = text.rfind("\n/* ", comment_end); comment != std::string::npos) begin = comment + 1;
  return text.substr(begin, end - begin);
}

/// The text of each kernel: its own file without the includes, or its function in a file of many.
std::map<std::string, std::string> kernel_texts(const PackageFacts& p) {
  std::map<std::string, std::string> texts;
  for (const OutputFile& f : p.files) {
    if (!f.path.ends_with(".c") && !f.path.ends_with(".cu")) continue;
    const size_t slash = f.path.find_last_of('/') + 1;
    const std::string stem = f.path.substr(slash, f.path.find_last_of('.') - slash);
    const size_t comment = f.bytes.find("\n/* ");
    if (slash > 0) texts[stem] = comment == std::string::npos ? f.bytes : f.bytes.substr(comment + 1);
    for (const char* head : {"\nvoid ", "\nstatic void "}) {
      const std::string begin = head + p.name + "_";
      for (size_t at = f.bytes.find(begin); at != std::string::npos; at = f.bytes.find(begin, at + 1)) {
        const size_t name = at + begin.size(), open = f.bytes.find('(', name), stop = f.bytes.find_first_of(";{", at);
        if (open == std::string::npos || stop == std::string::npos || f.bytes[stop] != '{') continue;
        texts.try_emplace(f.bytes.substr(name, open - name), function_at(f.bytes, at + 1));
      }
    }
  }
  return texts;
}

void read(const Json& j, PackageFacts& p) {
  p.name = j.at("name");
  p.target = j.at("target");
  p.cpu = j.at(p.target == "c" ? "cpu" : "arch");
  p.version = j.value("version", "");
  p.options = texts(j, "options");
  for (const auto& [key, value] : j.at("memory").items()) p.memory.emplace_back(key, value.get<int64_t>());
  p.macs = j.at("macs");
  p.inputs = tensors(j, "inputs");
  p.outputs = tensors(j, "outputs");
  p.tensors = tensors(j, "tensors");
  p.weights = tensors(j, "weights");
  for (const Json& k : j.at("kernels"))
    p.kernels.push_back({k.at("name"), k.at("schedule"), texts(k, "steps"), k.value("macs", int64_t(-1)),
                         k.value("bytes", int64_t(-1)), "", k.value("floor_ns", 0.0)});
  if (j.contains("steps"))
    for (const Json& s : j.at("steps")) p.steps.push_back(step(s, int64_t(p.steps.size())));
}

}  // namespace

const OutputFile* PackageFacts::file(const std::string& path) const {
  const auto it = std::find_if(files.begin(), files.end(), [&](const OutputFile& f) { return f.path == path; });
  return it == files.end() ? nullptr : &*it;
}

PackageFacts facts_of(std::vector<OutputFile> files, const std::string& where) {
  PackageFacts p;
  p.files = std::move(files);
  for (OutputFile& f : p.files)
    if (f.parts) f = {f.path, bytes_of(f)};
  const OutputFile* f = p.file("manifest.json");
  if (!f) no_package(where, "it has no manifest.json");
  const Json j = Json::parse(f->bytes, nullptr, false);
  if (!j.is_object() || !j.contains("generator") || j["generator"] != "tc-emit" || j.value("format", Json()) != 1)
    no_package(where, "its manifest.json is of another generator or format, or damaged");
  try {
    read(j, p);
  } catch (const std::exception&) {  // nlohmann's, of a field that is absent or of another type
    no_package(where, "its manifest.json is damaged");
  }
  const std::map<std::string, std::string> found = kernel_texts(p);
  for (PackageFacts::Kernel& k : p.kernels)
    if (const auto it = found.find(k.name); it != found.end()) k.text = it->second;
  return p;
}

DType dtype_of(const std::string& onnx_name) {
  for (int t = int(DType::F32); t <= int(DType::I2); t++)
    if (info(DType(t)).onnx_name == onnx_name) return DType(t);
  return DType::Undefined;
}

int64_t byte_size(const PackageFacts::Tensor& t) {
  const DType d = dtype_of(t.dtype);
  return d == DType::Undefined ? 0 : checked_mul(num_elements(t.shape), info(d).bytes);
}

}  // namespace tc
