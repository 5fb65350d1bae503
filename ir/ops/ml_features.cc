// Preparation of features (ai.onnx.ml): Scaler, Normalizer, Imputer, FeatureVectorizer, OneHotEncoder, LabelEncoder,
// CategoryMapper, DictVectorizer, CastMap. A map is two operands here, its keys and its values (importer/list_inputs.cc).
// Each is rewritten into operators of ai.onnx; looking up labels is an operator of our own.
#include <cmath>
#include <cstring>
#include <map>

#include "ir/ops/counting.h"
#include "ir/ops/helpers.h"
#include "ir/ops/ml_scores.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

constexpr int64_t kSearchedOneByOne = 16;  // strings; among more, a search by halves is faster

/// One number for all features or one for each: broadcast along the last axis of x.
Value* per_feature(const Expansion& e, Value* x, const std::vector<double>& v, const std::string& attr) {
  const Dims dims = dims_of_type(x);
  const int64_t features = dims.empty() ? 1 : dims.back();
  if (v.size() != 1 && int64_t(v.size()) != features)
    e.reject("attribute " + attr + " has " + to_text(int64_t(v.size())) + " numbers for " + to_text(features) +
             " features");
  return e.floats(x->type.dtype, v.size() == 1 ? Dims{} : Dims{features}, v, "_" + attr);
}

bool expand_scaler(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.cast(DType::F32, e.in(0), "_x");
  const std::vector<float> offset = e.attr_floats("offset"), scale = e.attr_floats("scale");
  if (!offset.empty()) x = e.op("Sub", {x, per_feature(e, x, doubles(offset), "offset")}, "_centred");
  e.finish(0,
           e.op("Mul", {x, per_feature(e, x, scale.empty() ? std::vector<double>{1} : doubles(scale), "scale")}, ""));
  return true;
}

bool expand_normalizer(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.cast(DType::F32, e.in(0), "_x");
  if (dims_of_type(x).empty() || dims_of_type(x).size() > 2) e.reject("the input must have one or two axes");
  const std::string norm = e.attr_string("norm");
  if (norm != "MAX" && norm != "L1" && norm != "L2") e.reject("attribute norm must be MAX, L1 or L2");
  Value* axis = e.constant(int64_constant({-1}), "_axis");
  Value* size = e.op(norm == "MAX" ? "ReduceMax" : norm == "L1" ? "ReduceL1" : "ReduceL2", {x, axis}, "_norm");
  // A row of norm zero stays as it is.
  Value* none = e.op("Equal", {size, e.number(DType::F32, 0, "_zero")}, "_none");
  Value* divisor = e.op("Where", {none, e.number(DType::F32, 1, "_one"), size}, "_divisor");
  e.finish(0, e.op("Div", {x, divisor}, ""));
  return true;
}

bool expand_imputer(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.in(0);
  if (x->type.dtype == DType::F32 || x->type.dtype == DType::F64) {
    const std::vector<float> to = e.attr_floats("imputed_value_floats");
    if (to.empty()) e.reject("attribute imputed_value_floats is missing");
    const double from = double(e.attr_float("replaced_value_float"));
    Value* missing = std::isnan(from) ? e.op("IsNaN", {x}, "_missing")
                                      : e.op("Equal", {x, e.number(x->type.dtype, from, "_from")}, "_missing");
    e.finish(0, e.op("Where", {missing, per_feature(e, x, doubles(to), "imputed_value_floats"), x}, ""));
    return true;
  }
  if (x->type.dtype != DType::I64 && x->type.dtype != DType::I32) e.reject("the input must hold f32, f64, i32 or i64");
  const std::vector<int64_t> to = e.attr_ints("imputed_value_int64s");
  const int64_t features = dims_of_type(x).empty() ? 1 : dims_of_type(x).back();
  if (to.size() != 1 && int64_t(to.size()) != features)
    e.reject("attribute imputed_value_int64s must have one number or one for each feature");
  const Dims dims = to.size() == 1 ? Dims{} : Dims{features};
  Value* from = e.ints(x->type.dtype, {}, {e.attr_int("replaced_value_int64")}, "_from");
  Value* missing = e.op("Equal", {x, from}, "_missing");
  e.finish(0, e.op("Where", {missing, e.ints(x->type.dtype, dims, to, "_imputed"), x}, ""));
  return true;
}

bool expand_feature_vectorizer(Graph& g, Node* n) {
  const Expansion e(g, n);
  const std::vector<int64_t> sizes = e.attr_ints("inputdimensions");
  std::vector<Value*> parts;
  for (size_t k = 0; k < n->inputs.size(); k++) {
    Value* x = e.cast(DType::F32, e.in(k), "_x" + to_text(int64_t(k)));
    const Dims dims = dims_of_type(x);
    if (dims.empty() || dims.size() > 2) e.reject("the inputs must have one or two axes");
    x = e.reshape(x, {dims.size() == 1 ? 1 : dims[0], dims.back()}, "_rows" + to_text(int64_t(k)));
    if (k < sizes.size() && sizes[k] != dims.back())
      e.unsupported("attribute inputdimensions differs from the sizes of the inputs");
    parts.push_back(x);
  }
  if (parts.empty()) e.reject("there is no input");
  e.finish(0, e.op("Concat", parts, "", {{"axis", int64_t(1)}}));
  return true;
}

/// Keys or values of a LabelEncoder.
Constant list_of(const Expansion& e, const std::string& prefix) {
  if (Constant c = e.attr_tensor(prefix + "_tensor")) return c;
  if (const auto v = e.attr_strings(prefix + "_strings"); !v.empty()) return string_constant({int64_t(v.size())}, v);
  if (const auto v = e.attr_ints(prefix + "_int64s"); !v.empty()) return int64_constant(v);
  const std::vector<float> v = e.attr_floats(prefix + "_floats");
  if (v.empty()) e.reject("attributes " + prefix + "_... are missing");
  return make_constant(DType::F32, {int64_t(v.size())}, v.data());
}

/// `list` in the order of `indices`.
Constant picked(const TensorData& list, const std::vector<int64_t>& indices) {
  MutableTensor m = new_tensor(list.dtype, {int64_t(indices.size())});
  const size_t width = size_t(info(list.dtype).bytes);
  for (size_t k = 0; k < indices.size(); k++)
    if (list.dtype == DType::String)
      m.data.strings[k] = list.strings[size_t(indices[k])];
    else
      std::memcpy(m.bytes + k * width, list.bytes.get() + size_t(indices[k]) * width, width);
  return std::make_shared<TensorData>(std::move(m.data));
}

/// values[k] where keys[k] == x, for the last such k, else the default. Many strings are sorted first.
Value* looked_up(const Expansion& e, Value* x, Constant keys, Constant values, const Constant& otherwise) {
  const bool sorted = keys->dtype == DType::String && keys->size() > kSearchedOneByOne;
  if (sorted) {
    std::map<std::string, int64_t> last;
    for (int64_t k = 0; k < keys->size(); k++) last[keys->strings[size_t(k)]] = k;
    std::vector<int64_t> indices;
    for (const auto& [key, index] : last) indices.push_back(index);
    values = picked(*values, indices);
    keys = picked(*keys, indices);
  }
  return e.op(sorted ? "sorted_lookup" : "label_lookup",
              {x, e.constant(keys, "_keys"), e.constant(values, "_values"), e.constant(otherwise, "_default")}, "", {},
              "tc");
}

bool expand_label_encoder(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.in_of_any_type(0);
  const Constant keys = list_of(e, "keys"), values = list_of(e, "values");
  if (keys->dtype != x->type.dtype) e.reject("the keys must have the type of the input");
  if (keys->size() != values->size()) e.reject("there must be as many keys as values");
  Constant otherwise = e.attr_tensor("default_tensor");
  if (!otherwise && values->dtype == DType::String) otherwise = string_constant({}, {e.attr_string("default_string")});
  if (!otherwise) {
    const bool fractions = is_float(values->dtype);
    otherwise = scalar_constant(
        values->dtype, fractions ? double(e.attr_float("default_float")) : double(e.attr_int("default_int64")));
  }
  if (otherwise->size() != 1 || otherwise->dtype != values->dtype)
    e.reject("the default must be one value of their type");
  e.finish(0, looked_up(e, x, keys, values, otherwise));
  return true;
}

/// Strings to numbers or numbers to strings, as its input asks; the two lists are of one length.
bool expand_category_mapper(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.in_of_any_type(0);
  const std::vector<std::string> words = e.attr_strings("cats_strings");
  const std::vector<int64_t> numbers = e.attr_ints("cats_int64s");
  const bool from_text = x->type.dtype == DType::String;
  if (!from_text && x->type.dtype != DType::I64) e.reject("the input must hold strings or i64");
  if (words.empty() || words.size() != numbers.size())
    e.reject("attributes cats_strings and cats_int64s must be lists of one length");
  const Constant text = string_constant({int64_t(words.size())}, words), indices = int64_constant(numbers);
  const Constant otherwise =
      from_text ? make_constant(DType::I64, {}, int64_constant({e.attr_int("default_int64")})->bytes.get())
                : string_constant({}, {e.attr_string("default_string")});
  e.finish(0, looked_up(e, x, from_text ? text : indices, from_text ? indices : text, otherwise));
  return true;
}

bool expand_one_hot(Graph& g, Node* n) {
  const Expansion e(g, n);
  const std::vector<int64_t> numbers = e.attr_ints("cats_int64s");
  const std::vector<std::string> words = e.attr_strings("cats_strings");
  const bool text = e.in_of_any_type(0)->type.dtype == DType::String;
  if (text ? words.empty() : numbers.empty())
    e.reject(std::string("attribute ") + (text ? "cats_strings" : "cats_int64s") + " is missing");
  Value* x = text ? e.in_of_any_type(0) : e.cast(DType::I64, e.in(0), "_x");
  Value* cats =
      e.constant(text ? string_constant({int64_t(words.size())}, words) : int64_constant(numbers), "_categories");
  e.finish(0, e.op("one_hot_categories", {x, cats}, "", {{"zeros", e.attr_int("zeros")}}, "tc"));
  return true;
}

void define_label_of(OpBuilder& b, const Tensor& index) {
  const Tensor values = b.in(2), otherwise = b.in(3);
  const Exprs only(size_t(otherwise.rank()), Expr(0));
  b.output(0, b.compute("label", values.dtype(), index.dims(), [&](const Exprs& i) {
    return select(index(i) < Expr(0), otherwise(only), values({max(index(i), Expr(0))}));
  }));
}

/// y = values[k] where keys[k] == x, else the default. The keys are sorted and differ.
void define_sorted_lookup(OpBuilder& b) {
  const Tensor x = b.in(0), keys = b.in(1);
  const int64_t n = keys.dim(0);
  const auto found =
      b.nest("place", {ValueType::tensor(DType::I64, to_shape(x.dims()))}, [&](const std::vector<Buffer>& out) {
        const Buffer low = counter("low"), high = counter("high");
        const Var middle = make_var("middle");
        const Expr last = min(value_of(low), Expr(n - 1));
        const Stmt body = for_each_index(x.dims(), [&](const Exprs& i) {
          const Stmt search = lower_bound(low, high, n, middle, keys({Expr(middle)}) < x(i));
          const Stmt told =
              store(out[0], i, select(value_of(low) < Expr(n) && eq(keys({last}), x(i)), value_of(low), Expr(-1)));
          return seq({search, told});
        });
        return alloc(low, alloc(high, body));
      });
  define_label_of(b, found[0]);
}

/// y = values[k] of the last k with keys[k] == x, else the default. A key that is NaN equals NaN.
void define_label_lookup(OpBuilder& b) {
  const Tensor x = b.in(0), keys = b.in(1);
  const Tensor index =
      b.reduce("place", Op::Max, DType::I64, x.dims(), keys.dims(), [&](const Exprs& i, const Exprs& r) {
        const Expr a = x(i), k = keys(r);
        Expr same = eq(a, k);
        if (is_float(x.dtype())) same = same || (apply(Op::IsNan, {a}) && apply(Op::IsNan, {k}));
        return select(same, r[0], Expr(-1));
      });
  define_label_of(b, index);
}

Dims with_last(Dims dims, int64_t n) {
  dims.push_back(n);
  return dims;
}

/// y[..., k] = x[...] == categories[k]. Without `zeros`, a value that is no category raises E_RANGE.
void define_one_hot_categories(OpBuilder& b) {
  const Tensor x = b.in(0), categories = b.in(1);
  const Dims dims = with_last(x.dims(), categories.dim(0));
  const auto hit = [&](const Exprs& at, const Expr& k) { return eq(x(at), categories({k})); };
  Tensor hits;
  if (b.attr_int("zeros") == 0)
    hits = b.reduce("hits", Op::Add, DType::I64, x.dims(), categories.dims(),
                    [&](const Exprs& i, const Exprs& r) { return select(hit(i, r[0]), Expr(1), Expr(0)); });
  b.output(0, b.compute("one_hot", DType::F32, dims, [&](const Exprs& i) {
    const Exprs at(i.begin(), i.end() - 1);
    const Expr y = select(hit(at, i.back()), make_float(DType::F32, 1), make_float(DType::F32, 0));
    return hits ? select(hits(at) > Expr(0), y, out_of_range(DType::F32)) : y;
  }));
}

Constant absent_value(DType t) { return t == DType::String ? string_constant({}, {""}) : scalar_constant(t, 0); }

/// The values of a map for a row of keys, 0 or "" where it has no such key.
Value* values_of(const Expansion& e, Value* keys, Value* values, Constant wanted, const std::string& suffix) {
  if (keys->type.dtype != wanted->dtype) e.reject("the keys of the map do not have the type that the attributes state");
  const DType t = values->type.dtype;
  if (dims_of_type(keys) == Dims{0}) {
    keys = e.constant(wanted, "_keys");
    values =
        e.op("Expand", {e.constant(absent_value(t), "_none"), e.constant(int64_constant({wanted->size()}), "_size")},
             "_values");
  }
  return e.op("label_lookup", {e.constant(wanted, "_wanted"), keys, values, e.constant(absent_value(t), "_absent")},
              suffix, {}, "tc");
}

Constant as_row(const TensorData& list) {
  TensorData row = list;
  row.dims = {1, list.size()};
  return std::make_shared<const TensorData>(std::move(row));
}

/// One column for each word of the vocabulary.
bool expand_dict_vectorizer(Graph& g, Node* n) {
  const Expansion e(g, n);
  const std::vector<std::string> words = e.attr_strings("string_vocabulary");
  const std::vector<int64_t> numbers = e.attr_ints("int64_vocabulary");
  if (words.empty() == numbers.empty()) e.reject("exactly one of string_vocabulary and int64_vocabulary must be given");
  const Constant wanted = words.empty() ? int64_constant(numbers) : string_constant({int64_t(words.size())}, words);
  e.finish(0, values_of(e, e.in_of_any_type(0), e.in_of_any_type(1), as_row(*wanted), ""));
  return true;
}

/// The values in the order of their keys, or each in the column of its key.
bool expand_cast_map(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value *keys = e.in(0), *values = e.in_of_any_type(1);
  const std::string to = e.attr_string("cast_to"), form = e.attr_string("map_form");
  const int64_t count = num_elements(dims_of_type(keys)), columns = e.attr_int("max_map");
  if (to != "TO_FLOAT" && to != "TO_INT64" && to != "TO_STRING")
    e.reject("attribute cast_to must be TO_FLOAT, TO_INT64 or TO_STRING");
  const DType t = to == "TO_FLOAT" ? DType::F32 : to == "TO_INT64" ? DType::I64 : DType::String;
  if (t == DType::String && values->type.dtype != t)
    e.unsupported("numbers of a map as text, which runtimes write in ways of their own; cast them behind the map");
  if (values->type.dtype != t) values = e.cast(t, values, "_cast");
  if (form == "SPARSE") {
    if (columns < 1 || columns > INT32_MAX) e.reject("attribute max_map must be positive for a sparse map");
    std::vector<int64_t> wanted(size_t(columns), 0);
    for (size_t k = 0; k < wanted.size(); k++) wanted[k] = int64_t(k);
    values = values_of(e, keys, values, as_row(*int64_constant(wanted)), "");
  } else if (form == "DENSE") {
    if (count > 1) {
      Node* sorted = e.node_of("TopK", {keys, e.constant(int64_constant({count}), "_count")}, 2, "_sorted",
                               {{"largest", int64_t(0)}, {"sorted", int64_t(1)}});
      values = e.op("Gather", {values, sorted->outputs[1]}, "_in_order");
    }
    values = e.reshape(values, {1, count}, "");
  } else {
    e.reject("attribute map_form must be DENSE or SPARSE");
  }
  e.finish(0, values);
  return true;
}

}  // namespace

OpFamily ml_feature_ops() {
  const std::vector<AttrSpec> imputer = {{"imputed_value_floats", {}},
                                         {"imputed_value_int64s", {}},
                                         {"replaced_value_float", 0.0f},
                                         {"replaced_value_int64", int64_t(0)}};
  const std::vector<AttrSpec> labels = {{"keys_tensor", {}},
                                        {"keys_strings", {}},
                                        {"keys_int64s", {}},
                                        {"keys_floats", {}},
                                        {"values_tensor", {}},
                                        {"values_strings", {}},
                                        {"values_int64s", {}},
                                        {"values_floats", {}},
                                        {"default_tensor", {}},
                                        {"default_string", std::string("_Unused")},
                                        {"default_int64", int64_t(-1)},
                                        {"default_float", -0.0f}};
  return {
      ml_row("Scaler", 1, {{"offset", {}}, {"scale", {}}}, expand_scaler),
      ml_row("Normalizer", 1, {{"norm", std::string("MAX")}}, expand_normalizer),
      ml_row("Imputer", 1, imputer, expand_imputer),
      ml_row("FeatureVectorizer", 1, {{"inputdimensions", {}}}, expand_feature_vectorizer),
      ml_row("OneHotEncoder", 1, {{"cats_int64s", {}}, {"cats_strings", {}}, {"zeros", int64_t(1)}}, expand_one_hot),
      ml_row("LabelEncoder", 4, labels, expand_label_encoder),
      ml_row("CategoryMapper", 1,
             {{"cats_int64s", {}},
              {"cats_strings", {}},
              {"default_int64", int64_t(-1)},
              {"default_string", std::string("_Unused")}},
             expand_category_mapper),
      ml_row("DictVectorizer", 1, {{"int64_vocabulary", {}}, {"string_vocabulary", {}}}, expand_dict_vectorizer),
      ml_row("CastMap", 1,
             {{"cast_to", std::string("TO_FLOAT")}, {"map_form", std::string("DENSE")}, {"max_map", int64_t(1)}},
             expand_cast_map),
      {.name = "sorted_lookup",
       .since = 1,
       .attrs = {},
       .define = define_sorted_lookup,
       .operands = "x keys values otherwise",
       .label = "sorted_lookup",
       .domain = "tc",
       .traits = {OpTrait::EachElement}},
      {"label_lookup", 1, {}, define_label_lookup, "x keys values otherwise", "label_lookup", "tc"},
      {"one_hot_categories", 1, {{"zeros", int64_t(1)}}, define_one_hot_categories, "x categories", "one_hot", "tc"},
  };
}

}  // namespace tc
