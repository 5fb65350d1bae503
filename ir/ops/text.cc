// Counting of token sequences, and the vector operators of ai.onnx.ml that are formulas.
#include <algorithm>

#include "ir/ops/expansion.h"
#include "ir/ops/grams.h"
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

// n-grams whose loops the emitted text has, each one; more of them are sorted and looked for.
constexpr size_t kFewGrams = 64;

/// Of n-gram k of the pool ngram_indexes[k] is the index, and weights[k] the weight, whatever its index is.
template <class Reader>
std::vector<Gram> grams_of(const Reader& b) {
  const std::vector<float> weights = b.attr_string("mode") == "TF" ? std::vector<float>() : b.attr_floats("weights");
  const std::vector<int64_t> pool = b.attr_ints("pool_int64s"), starts = b.attr_ints("ngram_counts"),
                             indices = b.attr_ints("ngram_indexes");
  const int64_t shortest = b.attr_int("min_gram_length"), longest = b.attr_int("max_gram_length");
  std::vector<Gram> grams;
  size_t next = 0;  // number of the n-gram over all lengths
  for (size_t k = 0; k < starts.size(); k++) {
    const int64_t length = int64_t(k) + 1, begin = starts[k];
    const int64_t end = k + 1 < starts.size() ? starts[k + 1] : int64_t(pool.size());
    if (begin < 0 || end < begin || end > int64_t(pool.size()))
      b.reject("attribute ngram_counts does not fit the pool");
    for (int64_t at = begin; at + length <= end; at += length, next++) {
      if (next >= indices.size() || indices[next] < 0) b.reject("attribute ngram_indexes does not fit the pool");
      if (!weights.empty() && next >= weights.size()) b.reject("attribute weights does not fit the pool");
      const float weight = weights.empty() ? 1 : weights[next];
      if (length >= shortest && length <= longest)
        grams.push_back({{pool.begin() + at, pool.begin() + at + length}, indices[next], weight});
    }
  }
  return grams;
}

/// For each position where the gram's tokens stand a distance apart, its weight is added to y[row, index], or stored there.
Stmt count_gram(const Tensor& x, const Buffer& y, const Gram& gram, const Exprs& row, int64_t max_skip, bool adds) {
  const auto length = int64_t(gram.tokens.size()), n = x.dim(-1);
  Stmts list;
  for (int64_t distance = 1; distance <= (length == 1 ? 1 : max_skip + 1); distance++) {
    const int64_t starts = n - distance * (length - 1);
    if (starts <= 0) break;
    const Var start = make_var("start");
    Expr hit = make_int(DType::Bool, 1);
    for (int64_t k = 0; k < length; k++)
      hit =
          hit && eq(cast(DType::I64, x(concat(row, {Expr(start) + Expr(k * distance)}))), Expr(gram.tokens[size_t(k)]));
    const Exprs at = concat(row, {Expr(gram.index)});
    const Expr weight = make_float(DType::F32, double(gram.weight));
    list.push_back(loop(start, starts, if_then(hit, adds ? store(y, at, weight, Op::Add) : store(y, at, weight))));
  }
  return seq(list);
}

/// Words become numbers: their index among the sorted words of the pool, -1 for others.
Value* numbered(const Expansion& e, const std::vector<std::string>& pool, std::vector<int64_t>& numbers) {
  Value* x = e.in_of_any_type(0);
  if (x->type.dtype != DType::String) e.reject("the input must hold strings, as the pool does");
  std::vector<std::string> words = pool;
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::vector<int64_t> indices;
  for (size_t k = 0; k < words.size(); k++) indices.push_back(int64_t(k));
  for (const std::string& s : pool) numbers.push_back(std::lower_bound(words.begin(), words.end(), s) - words.begin());
  const auto count = int64_t(words.size());
  return e.op("sorted_lookup",
              {x, e.constant(string_constant({count}, words), "_pool"), e.constant(int64_constant(indices), "_places"),
               e.ints(DType::I64, {}, {-1}, "_unknown")},
              "_tokens", {}, "tc");
}

/// Of the attributes, with the numbers of words in place of the pool.
struct Vocabulary {
  const Expansion& e;
  std::vector<int64_t> pool;
  std::string attr_string(const std::string& name) const { return e.attr_string(name); }
  std::vector<float> attr_floats(const std::string& name) const { return e.attr_floats(name); }
  std::vector<int64_t> attr_ints(const std::string& name) const {
    return name == "pool_int64s" ? pool : e.attr_ints(name);
  }
  int64_t attr_int(const std::string& name) const { return e.attr_int(name); }
  [[noreturn]] void reject(const std::string& why) const { e.reject(why); }
};

bool expand_tf_idf(Graph& g, Node* n) {
  const Expansion e(g, n);
  const std::vector<std::string> words = e.attr_strings("pool_strings");
  std::vector<int64_t> numbers = e.attr_ints("pool_int64s");
  const bool many = numbers.size() + words.size() > kFewGrams;
  if (words.empty() && !many) return false;
  if (!words.empty()) numbers.clear();
  Value* ids = words.empty() ? e.in(0) : numbered(e, words, numbers);
  const std::vector<int64_t> indices = e.attr_ints("ngram_indexes");
  const int64_t rank = int64_t(dims_of_type(ids).size()), skip = e.attr_int("max_skip_count");
  const std::string mode = e.attr_string("mode");
  if (many && is_int(ids->type.dtype) && (rank == 1 || rank == 2) && !indices.empty() && skip >= 0 &&
      (mode == "TF" || mode == "IDF" || mode == "TFIDF")) {
    const int64_t size = checked_add(*std::max_element(indices.begin(), indices.end()), 1);
    Value* y = count_grams(e, ids, grams_of(Vocabulary{e, numbers}), size, std::min(skip, dims_of_type(ids).back()),
                           mode != "IDF");
    if (y) {
      e.finish(0, y);
      return true;
    }
  }
  if (words.empty()) return false;
  Attrs attrs = e.attrs_named(
      {"max_gram_length", "max_skip_count", "min_gram_length", "mode", "ngram_counts", "ngram_indexes", "weights"});
  attrs["pool_int64s"] = numbers;
  e.finish(0, e.op("TfIdfVectorizer", {ids}, "", std::move(attrs)));
  return true;
}

void define_tf_idf(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (!is_int(x.dtype()) || x.rank() < 1 || x.rank() > 2) b.reject("the tokens must be integers on one or two axes", 0);
  const std::string mode = b.attr_string("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") b.reject("attribute mode must be TF, IDF or TFIDF");
  const std::vector<int64_t> indices = b.attr_ints("ngram_indexes");
  if (indices.empty()) b.reject("attribute ngram_indexes is empty");
  const std::vector<Gram> grams = grams_of(b);
  if (grams.size() > kFewGrams) b.unsupported("a vocabulary of more than 64 n-grams that holds one of them twice");
  const int64_t size = checked_add(*std::max_element(indices.begin(), indices.end()), 1);
  if (b.attr_int("max_skip_count") < 0) b.reject("attribute max_skip_count must not be negative");
  const int64_t max_skip = std::min(b.attr_int("max_skip_count"), x.dim(-1));  // no n-gram skips more than there is
  Dims dims = x.dims();
  dims.back() = size;
  const auto counts =
      b.nest("tf_idf", {ValueType::tensor(DType::F32, to_shape(dims))}, [&](const std::vector<Buffer>& out) {
        const Var r = make_var("row"), c = make_var("col");
        const Exprs row = x.rank() == 2 ? Exprs{r} : Exprs{};
        Stmts body = {loop(c, size, store(out[0], concat(row, {Expr(c)}), make_float(DType::F32, 0)))};
        for (const Gram& g : grams) body.push_back(count_gram(x, out[0], g, row, max_skip, mode != "IDF"));
        return x.rank() == 2 ? loop(r, x.dim(0), seq(body)) : seq(body);
      });
  b.output(0, counts[0]);
}

Expr binarize(OpBuilder& b, const Expr& x) {
  return select(x > num(x, double(b.attr_float("threshold"))), num(x, 1), num(x, 0));
}

/// Columns of the last axis, by number.
void define_feature_extractor(OpBuilder& b) {
  const Tensor x = b.in(0), indices = b.in(1);
  if (!is_int(indices.dtype())) b.reject("indices must be integers", 1);
  if (x.rank() < 1) b.reject("the input needs at least one axis", 0);
  const int64_t n = num_elements(indices.dims());
  Dims dims = x.dims();
  dims.back() = n;
  if (dims.size() == 1) dims.insert(dims.begin(), 1);
  b.output(0, b.compute("feature_extractor", x.dtype(), dims, [&](const Exprs& i) {
    Exprs at(i.end() - x.rank(), i.end());
    at.back() = checked_index(indices(reshape_index({i.back()}, {n}, indices.dims())), x.dim(-1));
    return x(at);
  }));
}

/// Indices on several axes are a list, whatever their shape: rows of a run-time number of them are flattened by a Reshape, which the
/// passes know.
bool expand_feature_extractor(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* indices = e.in_of_any_type(1);
  if (dims_of_type(indices).size() == 1) return false;
  Value* list = e.op("Reshape", {indices, e.constant(int64_constant({-1}), "_list")}, "_indices");
  e.finish(0, e.op("ArrayFeatureExtractor", {e.in_of_any_type(0), list}, "", {}, "ai.onnx.ml"));
  return true;
}

}  // namespace

OpFamily text_ops() {
  const std::vector<AttrSpec> grams = {
      {"max_gram_length", {}}, {"max_skip_count", {}}, {"min_gram_length", {}}, {"mode", {}},   {"ngram_counts", {}},
      {"ngram_indexes", {}},   {"pool_int64s", {}},    {"pool_strings", {}},    {"weights", {}}};
  return {
      {"TfIdfVectorizer", 9, grams, define_tf_idf, "x", "tf_idf", "", expand_tf_idf},
      {"Binarizer", 1, {{"threshold", 0.0f}}, elementwise(binarize), "x", "binarizer", "ai.onnx.ml"},
      {.name = "ArrayFeatureExtractor",
       .since = 1,
       .attrs = {},
       .define = define_feature_extractor,
       .operands = "x indices",
       .label = "feature_extractor",
       .domain = "ai.onnx.ml",
       .expand = expand_feature_extractor},
  };
}

}  // namespace tc
