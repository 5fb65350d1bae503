#include "emit_c/states.h"

#include <algorithm>

#include "emit_c/operands.h"

namespace tc {
namespace {

// One row of NAME_state(): sizes of what there is, strides of what there is room for.
std::string state_row(const Program& p, size_t input, const StateMemory& memory) {
  const IoTensor& t = p.inputs[input];
  std::string s = "      view->name = " + c_string(t.name.raw()) + ";\n      view->data = " + memory.data(input) +
                  ";\n      view->rank = " + to_text(int64_t(t.dims.size())) + ";\n";
  int64_t stride = info(t.dtype).bytes;
  std::vector<int64_t> strides(t.dims.size());
  for (size_t d = t.dims.size(); d-- > 0; stride *= std::max<int64_t>(1, t.dims[d])) strides[d] = stride;
  for (size_t d = 0; d < t.dims.size(); d++) {
    std::string size = to_text(t.dims[d]);
    for (const IoSize& z : t.sizes)
      if (const size_t count = z.sum.terms[0].input; z.axis == int(d) && p.inputs[count].is_kept())
        size = memory.count(count);  // of a size that the caller chooses there is room for the largest
    s += "      view->sizes[" + to_text(int64_t(d)) + "] = " + size + ", view->strides[" + to_text(int64_t(d)) +
         "] = " + to_text(strides[d]) + ";\n";
  }
  return s + "      return 1;\n";
}

}  // namespace

std::vector<size_t> emptied_by_zeros(const Program& p) {
  std::vector<size_t> list;
  for (size_t k = 0; k < p.inputs.size(); k++) {
    const IoTensor& t = p.inputs[k];
    const bool grows = std::any_of(t.sizes.begin(), t.sizes.end(),
                                   [&](const IoSize& z) { return p.inputs[z.sum.terms[0].input].is_kept(); });
    if (t.is_kept() && !grows) list.push_back(k);
  }
  return list;
}

std::string rewind_function(const Program& p, const ProgramNames& n, const StateMemory& memory,
                            const std::string& begin, const std::string& refused, const std::string& end) {
  std::vector<std::string> tests = {refused, "n < 0"};
  std::string less;
  for (const auto& [k, each] : growths(p)) {
    tests.push_back(memory.count(k) + (each == 1 ? "" : " / " + to_text(each)) + " < n");
    less += "  " + memory.count(k) + " -= " + (each == 1 ? "n" : to_text(each) + " * n") + ";\n";
  }
  if (less.empty()) return "";
  return n.lower + "_status " + n.lower + "_rewind(" + n.lower + " *" + n.self + ", int64_t n)\n{\n" + begin +
         "  if (" + join(tests, " || ") + ") return " + n.upper + "_E_ARG;\n" + less + end + "  return " + n.upper +
         "_OK;\n}\n\n";
}

std::string state_function(const Program& p, const ProgramNames& n, const StateMemory& memory,
                           const std::string& begin) {
  std::string rows;
  int64_t number = 0;
  for (size_t k = 0; k < p.inputs.size(); k++)
    if (p.inputs[k].is_kept()) rows += "    case " + to_text(number++) + ":\n" + state_row(p, k, memory);
  return "int " + n.lower + "_state(" + n.lower + " *" + n.self + ", int k, " + n.lower + "_state_view *view)\n{\n" +
         begin + "  switch (k) {\n" + rows + "  }\n  return 0;\n}\n\n";
}

}  // namespace tc
