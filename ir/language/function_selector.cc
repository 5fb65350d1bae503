#include "ir/language/function_selector.h"

#include <algorithm>

#include "ir/language/evaluator.h"
#include "ir/language/formula_parser.h"
#include "support/text.h"

namespace tc {
namespace {

// Stages against a list in which "*" stands for any number of them: greedy, with one point to come back to.
bool fits_stages(const std::vector<std::string>& pattern, const std::vector<std::string>& stages) {
  size_t p = 0, s = 0, resumed = 0;
  std::optional<size_t> star;
  while (s < stages.size()) {
    if (p < pattern.size() && pattern[p] == "*") {
      star = p++;
      resumed = s;
    } else if (p < pattern.size() && pattern[p] == stages[s]) {
      p++;
      s++;
    } else if (star) {
      p = *star + 1;
      s = ++resumed;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + std::ptrdiff_t(p), pattern.end(), [](const auto& x) { return x == "*"; });
}

bool fits_operand(const FunctionSelector::Operand& o, const Buffer& b) {
  const Dims dims = static_dims(b->shape);
  return (o.name.empty() || o.name == b->name) && o.dtype == b->dtype &&
         std::equal(o.dims.begin(), o.dims.end(), dims.begin(), dims.end(),
                    [](const std::optional<int64_t>& x, int64_t y) { return !x || *x == y; });
}

bool fits_operands(const std::optional<FunctionSelector::Operands>& o, const std::vector<Buffer>& list) {
  if (!o) return true;
  if (o->more ? list.size() < o->list.size() : list.size() != o->list.size()) return false;
  return std::equal(o->list.begin(), o->list.end(), list.begin(), fits_operand);
}

bool is_exact_list(const std::optional<FunctionSelector::Operands>& o) {
  return o && !o->more && std::all_of(o->list.begin(), o->list.end(), [](const FunctionSelector::Operand& x) {
           return std::all_of(x.dims.begin(), x.dims.end(), [](const auto& d) { return d.has_value(); });
         });
}

FunctionSelector::Operands operands_of(const std::vector<Buffer>& list, bool named) {
  FunctionSelector::Operands o;
  for (const Buffer& b : list) {
    FunctionSelector::Operand x{named && language::is_name(b->name) ? b->name : "", b->dtype, {}};
    for (const int64_t d : static_dims(b->shape)) x.dims.push_back(d);
    o.list.push_back(std::move(x));
  }
  return o;
}

}  // namespace

bool FunctionSelector::fits(const TensorFn& fn, const std::vector<std::string>& stages_of_fn) const {
  return fits_stages(stages, stages_of_fn) && fits_operands(inputs, fn.inputs) && fits_operands(outputs, fn.outputs);
}

bool FunctionSelector::is_exact() const {
  return std::find(stages.begin(), stages.end(), "*") == stages.end() && is_exact_list(inputs) &&
         is_exact_list(outputs);
}

FunctionSelector selector_of(const TensorFn& fn, const std::vector<std::string>& stages_of_fn) {
  FunctionSelector s;
  for (const std::string& name : stages_of_fn) s.stages.push_back(language::is_name(name) ? name : "*");
  s.inputs = operands_of(fn.inputs, true);
  s.outputs = operands_of(fn.outputs, false);
  return s;
}

namespace language {
namespace {

// "x: f32[1, *, 8]"
FunctionSelector::Operand read_operand_pattern(TokenReader& r) {
  FunctionSelector::Operand o;
  if (r.is_name() && r.is_symbol(":", 1)) {
    o.name = r.take().text;
    r.take();
  }
  const Place at = r.peek().at;
  const std::string type = r.expect_name("an element type, or '*' for all that follows");
  const std::optional<DType> dtype = element_type_of(type, Mode::Fn);
  if (!dtype) r.fail(at, "there is no element type " + type);
  o.dtype = *dtype;
  r.expect("[", "after the element type");
  while (!r.accept("]")) {
    if (!o.dims.empty()) r.expect(",", "between sizes");
    if (r.accept("*"))
      o.dims.emplace_back();
    else
      o.dims.emplace_back(r.expect_integer("a size, or '*' for any"));
  }
  return o;
}

// At `*` for all that follows, the list ends.
bool read_pattern(TokenReader& r, FunctionSelector::Operands& list) {
  list.more = r.accept("*");
  if (!list.more) list.list.push_back(read_operand_pattern(r));
  return !list.more;
}

}  // namespace

FunctionSelector read_selector(TokenReader& r) {
  FunctionSelector s;
  do s.stages.push_back(r.accept("*") ? "*" : r.expect_name("the name of a stage, or '*' for any"));
  while (r.accept("+"));
  if (r.accept("(")) {
    s.inputs = FunctionSelector::Operands();
    if (!r.is_symbol(")"))
      while (read_pattern(r, *s.inputs) && r.accept(",")) {
      }
    r.expect(")", "after the operands");
  }
  if (r.accept("->")) {
    s.outputs = FunctionSelector::Operands();
    while (read_pattern(r, *s.outputs) && r.accept(",")) {
    }
  }
  return s;
}

namespace {

std::string print(const FunctionSelector::Operands& o) {
  std::vector<std::string> texts;
  for (const FunctionSelector::Operand& x : o.list) {
    std::vector<std::string> sizes;
    for (const auto& d : x.dims) sizes.push_back(d ? std::to_string(*d) : "*");
    texts.push_back((x.name.empty() ? "" : x.name + ": ") + std::string(info(x.dtype).name) + "[" + join(sizes, ", ") +
                    "]");
  }
  if (o.more) texts.emplace_back("*");
  return join(texts, ", ");
}

}  // namespace

std::string print(const FunctionSelector& s) {
  return join(s.stages, " + ") + (s.inputs ? " (" + print(*s.inputs) + ")" : "") +
         (s.outputs ? " -> " + print(*s.outputs) : "");
}

}  // namespace language
}  // namespace tc
