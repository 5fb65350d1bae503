#include "ir/ops/expansion.h"

#include <algorithm>

#include "ir/open_size.h"
#include "ir/ops/attributes.h"

namespace tc {

namespace {

template <class T>
T attr_or_default(const Node& n, const std::string& name) {
  const T* v = find_attr<T>(n, name);
  return v ? *v : T{};
}

}  // namespace

Dims dims_of_type(const Value* v) { return static_dims(v->type.shape); }

Value* Expansion::in(size_t k) const {
  Value* v = in_of_any_type(k);
  if (v->type.dtype == DType::String)
    unsupported("the element type of operand " + to_text(int64_t(k)) + " cannot be compiled: " + to_text(v->type));
  return v;
}

Value* Expansion::in_of_any_type(size_t k) const {
  Value* v = k < n_->inputs.size() ? n_->inputs[k] : nullptr;
  if (!v) reject("operand " + to_text(int64_t(k)) + " is missing");
  if (!v->type.is_static_tensor())
    unsupported("the element type or the sizes of operand " + to_text(int64_t(k)) +
                " cannot be compiled: " + to_text(v->type));
  return v;
}

Value* Expansion::optional(size_t k) const { return k < n_->inputs.size() && n_->inputs[k] ? in(k) : nullptr; }

int64_t Expansion::attr_int(const std::string& name) const { return attr_or_default<int64_t>(*n_, name); }
float Expansion::attr_float(const std::string& name) const { return attr_or_default<float>(*n_, name); }
std::string Expansion::attr_string(const std::string& name) const { return attr_or_default<std::string>(*n_, name); }
std::vector<int64_t> Expansion::attr_ints(const std::string& name) const {
  return attr_or_default<std::vector<int64_t>>(*n_, name);
}
std::vector<float> Expansion::attr_floats(const std::string& name) const {
  return attr_or_default<std::vector<float>>(*n_, name);
}
std::vector<std::string> Expansion::attr_strings(const std::string& name) const {
  return attr_or_default<std::vector<std::string>>(*n_, name);
}
Attrs Expansion::attrs_named(const std::vector<std::string>& names) const {
  Attrs found;
  for (const std::string& name : names)
    if (has(name)) found[name] = n_->attrs.at(name);
  return found;
}
Constant Expansion::attr_tensor(const std::string& name) const { return attr_or_default<Constant>(*n_, name); }

ModelText Expansion::derived(std::string_view suffix) const {
  for (const Value* v : n_->outputs)
    if (v) return ModelText(v->name.raw() + std::string(suffix));
  return ModelText(std::string(suffix));
}

bool Expansion::has(const std::string& name) const {
  const auto it = n_->attrs.find(name);
  return it != n_->attrs.end() && it->second.index() != 0;
}

Value* Expansion::constant(Constant c, std::string_view suffix) const {
  return g_.add_constant(derived(suffix), std::move(c));
}

Value* Expansion::number(DType t, double v, std::string_view suffix) const {
  return constant(scalar_constant(t, v), suffix);
}

Value* Expansion::floats(DType t, Dims dims, const std::vector<double>& v, std::string_view suffix) const {
  check(num_elements(dims) == int64_t(v.size()), "Expansion::floats: one number per element");
  if (t == DType::F64) return constant(make_constant(t, std::move(dims), v.data()), suffix);
  check(t == DType::F32, "Expansion::floats: f32 or f64");
  const std::vector<float> narrow(v.begin(), v.end());
  return constant(make_constant(t, std::move(dims), narrow.data()), suffix);
}

Value* Expansion::ints(DType t, Dims dims, const std::vector<int64_t>& v, std::string_view suffix) const {
  check(num_elements(dims) == int64_t(v.size()), "Expansion::ints: one number per element");
  if (t == DType::I64) return constant(make_constant(t, std::move(dims), v.data()), suffix);
  check(t == DType::I32, "Expansion::ints: i32 or i64");
  const std::vector<int32_t> narrow(v.begin(), v.end());
  return constant(make_constant(t, std::move(dims), narrow.data()), suffix);
}

// Operands that must be of one type, of operators that expansions make; bit k: operand k. Other domains' definitions are
// not known to ONNX's checker, so what reaches these operators may be of any type.
static uint32_t of_one_type(std::string_view name) {
  static constexpr std::string_view kAll[] = {"Add", "Sub",  "Mul",   "Div",     "MatMul", "Gemm",          "Max",
                                              "Min", "Less", "Equal", "Greater", "Concat", "GreaterOrEqual"};
  if (std::find(std::begin(kAll), std::end(kAll), name) != std::end(kAll)) return ~0u;
  if (name == "Where") return 0b110;
  if (name == "Attention") return 0b110111;  // but the mask
  return 0;
}

void Expansion::check_types(std::string_view name, const std::vector<Value*>& in) const {
  const Value* first = nullptr;
  for (size_t k = 0; k < in.size() && k < 32; k++) {
    if (!in[k] || (of_one_type(name) >> k & 1) == 0) continue;
    if (!first) first = in[k];
    if (first->type.dtype == DType::Bool && name != "Equal" && name != "Concat" && name != "Where")
      reject("an operand of type BOOL meets " + std::string(name) + ", which needs numbers");
    if (in[k]->type.dtype != first->type.dtype)
      reject("operands of types " + std::string(info(first->type.dtype).onnx_name) + " and " +
             std::string(info(in[k]->type.dtype).onnx_name) + " meet in " + std::string(name) +
             "; they must be of one type");
  }
}

Node* Expansion::node_of(std::string name, std::vector<Value*> in, int outputs, std::string_view suffix, Attrs attrs,
                         std::string domain) const {
  std::vector<ModelText> names = {derived(suffix)};
  for (int k = 1; k < outputs; k++) names.push_back(derived(std::string(suffix) + to_text(int64_t(k))));
  while (!in.empty() && !in.back()) in.pop_back();
  if (domain.empty()) check_types(name, in);
  Node* n =
      insert_for(g_, *n_, n_, std::move(name), std::move(in), std::move(names), std::move(attrs), std::move(domain));
  infer_types(g_, *n);
  return n;
}

Value* Expansion::op(std::string name, std::vector<Value*> in, std::string_view suffix, Attrs attrs,
                     std::string domain) const {
  return node_of(std::move(name), std::move(in), 1, suffix, std::move(attrs), std::move(domain))->outputs[0];
}

Value* Expansion::cast(DType t, Value* x, std::string_view suffix) const {
  if (x->type.dtype == t) return x;
  return op("Cast", {x}, suffix, {{"to", int64_t(t)}});
}

Value* Expansion::reshape(Value* x, const Dims& dims, std::string_view suffix) const {
  if (dims_of_type(x) == dims) return x;
  return op("Reshape", {x, constant(int64_constant(dims), std::string(suffix) + "_shape")}, suffix);
}

Value* Expansion::slice(Value* x, int64_t axis, int64_t from, int64_t to, const std::string& suffix) const {
  const auto one = [&](int64_t v, const char* what) { return constant(int64_constant({v}), suffix + what); };
  return op("Slice", {x, one(from, "_start"), one(to, "_end"), one(axis, "_axis")}, suffix);
}

Value* Expansion::unsqueeze(Value* x, const std::vector<int64_t>& axes, const std::string& suffix) const {
  return op("Unsqueeze", {x, constant(int64_constant(axes), suffix + "_axes")}, suffix);
}

Value* Expansion::transpose(Value* x, const std::vector<int64_t>& perm, std::string_view suffix) const {
  return op("Transpose", {x}, suffix, {{"perm", perm}});
}

Value* Expansion::scalar(DType t, double v, std::string_view suffix) const {
  return constant(scalar_constant(t, v), suffix);
}

void Expansion::need_bounds(const Dims& dims) const {
  if (std::none_of(dims.begin(), dims.end(), is_open) || std::ranges::count(dims, 0) > 0) return;
  throw Error(problem_of(*n_, "TC0303", ExitCode::Unsupported,
                         "the operator makes numbers along a size that has no upper bound"));
}

Value* Expansion::zeros(DType t, const Dims& dims, std::string_view suffix) const {
  need_bounds(dims);
  return constant(std::make_shared<const TensorData>(new_tensor(t, dims).data), suffix);
}

Value* Expansion::counted(const Dims& dims, std::string_view suffix) const {
  need_bounds(dims);
  std::vector<int64_t> v(size_t(num_elements(dims)), 0);
  for (size_t k = 0; k < v.size(); k++) v[k] = int64_t(k);
  return ints(DType::I64, dims, v, suffix);
}

void Expansion::finish(size_t k, Value* v) const {
  Value* from = n_->outputs.at(k);
  check(v->producer != nullptr, "Expansion::finish: a value without a producer");
  if (g_.is_output(v) || v->producer->id < n_->id) {
    Node* copy = insert_for(g_, *n_, n_, "Identity", {v}, {from->name});
    infer_types(g_, *copy);
    v = copy->outputs[0];
  }
  v->name = from->name;
  g_.replace_uses(from, v);
}

void Expansion::reject(const std::string& why) const {
  throw Error(problem_of(*n_, "TC0201", ExitCode::Rejected, why));
}
void Expansion::unsupported(const std::string& why) const {
  throw Error(problem_of(*n_, "TC0301", ExitCode::Unsupported, why));
}

OpRow expanding_row(std::string_view domain, std::string_view name, int since, std::vector<AttrSpec> attrs,
                    bool (*expand)(Graph&, Node*)) {
  return {
      .name = name, .since = since, .attrs = std::move(attrs), .define = nullptr, .domain = domain, .expand = expand};
}

}  // namespace tc
