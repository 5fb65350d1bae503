// Operators on the text of strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch. All are nests, so that no
// string is made twice; what they take out of a string is a view of it.
#include <algorithm>

#include "ir/graph/origin.h"
#include "ir/ops/counting.h"
#include "ir/ops/expansion.h"
#include "ir/ops/parts.h"
#include "ir/ops/text_parts.h"
#include "ir/text.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr size_t kMaxDelimiter = 32;

Tensor text_operand(OpBuilder& b, int k) {
  const Tensor x = b.in(k);
  if (x.dtype() != DType::String) b.reject("it must hold strings", k);
  return x;
}

void define_concat(OpBuilder& b) {
  const Tensor x = text_operand(b, 0), y = text_operand(b, 1);
  const Dims dims = broadcast_dims(b, {x, y});
  const auto joined =
      b.nest("string_concat", {ValueType::tensor(DType::String, to_shape(dims))}, [&](const std::vector<Buffer>& out) {
        return for_each_index(dims, [&](const Exprs& i) {
          return store(out[0], i, apply(Op::TextJoin, {x.broadcast_at(i), y.broadcast_at(i)}));
        });
      });
  b.output(0, joined[0]);
}

// --- StringSplit
struct Splitting {
  Tensor x;
  std::string delimiter;     // empty: runs of white space
  int64_t most = -1;         // splits; -1: any number
  int64_t capacity = 0;      // pieces
  bool counts_only = false;  // nobody wants the pieces
  Buffer at, start, pieces, largest, y, z;

  Expr text(const Exprs& i) const { return x(i); }
  Expr here(const Exprs& i) const { return byte_of(text(i), value_of(at)); }
  Expr inside(const Exprs& i) const { return value_of(at) < size_of(text(i)); }
  Expr is_space(const Exprs& i) const {
    const Expr c = here(i);
    return eq(c, Expr(' ')) || (c >= Expr('\t') && c <= Expr('\r'));
  }
  Expr may_split() const { return most < 0 ? make_int(DType::Bool, 1) : value_of(pieces) < Expr(most); }
  Stmt begin_piece(const Expr& from) const { return counts_only ? Stmt() : set(start, from); }
  /// Bytes start..to-1 are the next piece.
  Stmt piece(const Exprs& i, const Expr& to) const {
    if (counts_only) return increment(pieces);
    const Stmt put = store(y, concat(i, {value_of(pieces)}), part_of(text(i), value_of(start), to));
    return seq({if_then(value_of(pieces) < Expr(capacity), put), increment(pieces)});
  }
  Stmt by_delimiter(const Exprs& i) const {
    const auto length = int64_t(delimiter.size());
    Expr hit = value_of(at) + Expr(length) <= size_of(text(i));
    for (int64_t k = 0; k < length; k++)
      hit = hit && eq(byte_of(text(i), value_of(at) + Expr(k)), Expr(int64_t(uint8_t(delimiter[size_t(k)]))));
    const Stmt split = seq({piece(i, value_of(at)), set(at, value_of(at) + Expr(length)), begin_piece(value_of(at))});
    return seq({begin_piece(0), while_loop(inside(i), if_then(may_split() && hit, split, increment(at))),
                piece(i, size_of(text(i)))});
  }
  Stmt by_space(const Exprs& i) const {
    const Stmt skip = while_loop(inside(i) && is_space(i), increment(at));
    const Stmt word = if_then(may_split(), while_loop(inside(i) && logical_not(is_space(i)), increment(at)),
                              set(at, size_of(text(i))));
    return seq({skip, while_loop(inside(i), seq({begin_piece(value_of(at)), word, piece(i, value_of(at)), skip}))});
  }
  Stmt whole() const {
    const Stmt most_so_far = counts_only ? Stmt() : set(largest, max(value_of(largest), value_of(pieces)));
    const Stmt each = for_each_index(x.dims(), [&](const Exprs& i) {
      return seq({set(at, 0), set(pieces, 0), delimiter.empty() ? by_space(i) : by_delimiter(i),
                  store(z, i, value_of(pieces)), most_so_far});
    });
    if (counts_only) return alloc(at, alloc(pieces, each));
    return alloc(at,
                 alloc(start, alloc(pieces, alloc(largest, seq({set(largest, 0), each, must_be(largest, capacity)})))));
  }
};

/// y[..., k]: piece k of each string; z: how many it has. Some string has as many pieces as y's declared last axis.
void define_split(OpBuilder& b) {
  Splitting s;
  s.x = text_operand(b, 0);
  s.delimiter = b.attr_string("delimiter");
  if (s.delimiter.size() > kMaxDelimiter) b.unsupported("a delimiter of more than 32 bytes");
  if (b.has_attr("maxsplit")) s.most = b.attr_int("maxsplit");
  Dims dims = s.x.dims();
  dims.push_back(0);
  // Of no strings there are no pieces; else the model says how many, if anybody wants them.
  s.counts_only = !b.is_read(0) && !b.declares(0);
  if (!s.counts_only && (!has_no_elements(s.x.dims()) || b.declares(0))) dims = b.declared_dims(0, 0);
  if (int(dims.size()) != s.x.rank() + 1 || Dims(dims.begin(), dims.end() - 1) != s.x.dims())
    b.reject("the declared shape does not fit the input", 0);
  s.capacity = dims.back();
  s.at = counter("at"), s.start = counter("start"), s.pieces = counter("pieces"), s.largest = counter("largest");
  const auto results =
      b.nest("string_split",
             {ValueType::tensor(DType::String, to_shape(dims)), ValueType::tensor(DType::I64, to_shape(s.x.dims()))},
             [&](const std::vector<Buffer>& out) {
               s.y = out[0];
               s.z = out[1];
               return s.whole();
             });
  b.output(0, results[0]);
  b.output(1, results[1]);
}

// --- StringNormalizer
/// Without stop words each string stands for itself; with them the operand `stopwords` has them as they are compared.
bool expand_normalizer(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.in_of_any_type(0);
  if (x->type.dtype != DType::String) e.reject("the input must hold strings");
  const std::string action = e.attr_string("case_change_action");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    e.reject("attribute case_change_action must be NONE, LOWER or UPPER");
  std::vector<std::string> stop = e.attr_strings("stopwords");
  const bool sensitive = e.attr_int("is_case_sensitive") != 0;
  if (!sensitive)
    for (std::string& s : stop) s = in_case(s, action == "UPPER");
  std::sort(stop.begin(), stop.end());
  stop.erase(std::unique(stop.begin(), stop.end()), stop.end());
  if (stop.empty() && !has_no_elements(dims_of_type(x))) {
    e.finish(0, e.op("change_case", {x}, "", {{"case", action}}, "tc"));
    return true;
  }
  std::vector<Value*> in = {x};
  if (!stop.empty()) in.push_back(e.constant(string_constant({int64_t(stop.size())}, stop), "_stopwords"));
  Node* y = insert_for(g, *n, n, "normalize_strings", in, {n->outputs[0]->name},
                       {{"case", action}, {"sensitive", int64_t(sensitive)}}, "tc");
  y->outputs[0]->type = n->outputs[0]->type;  // what the model declares of it
  infer_types(g, *y);
  e.finish(0, y->outputs[0]);
  return true;
}

Expr in_case_of(const Expr& s, const std::string& action) {
  return action == "NONE" ? s : apply(action == "UPPER" ? Op::TextUpper : Op::TextLower, {s});
}

/// One row of strings, of which there is at least one: without stop words each stands for itself.
void define_change_case(OpBuilder& b) {
  const Tensor x = text_operand(b, 0);
  if (x.rank() < 1 || x.rank() > 2 || (x.rank() == 2 && x.dim(0) != 1)) b.reject("the input must have one row", 0);
  const auto y = b.nest(
      "string_normalizer", {ValueType::tensor(DType::String, to_shape(x.dims()))}, [&](const std::vector<Buffer>& out) {
        return for_each_index(
            x.dims(), [&](const Exprs& i) { return store(out[0], i, in_case_of(x(i), b.attr_string("case"))); });
      });
  b.output(0, y[0]);
}

void define_normalize(OpBuilder& b) {
  const Tensor x = text_operand(b, 0);
  const std::string action = b.attr_string("case");
  if (x.rank() < 1 || x.rank() > 2 || (x.rank() == 2 && x.dim(0) != 1)) b.reject("the input must have one row", 0);
  const bool stops = b.has(1);
  Dims dims = stops ? b.declared_dims(0, 0) : x.dims();
  if (!stops && has_no_elements(dims)) dims.back() = 1;
  if (int(dims.size()) != x.rank() || (dims.size() == 2 && dims[0] != 1))
    b.reject("the declared shape does not fit the input", 0);
  const int64_t count = dims.back();
  const auto y = b.nest(
      "string_normalizer", {ValueType::tensor(DType::String, to_shape(dims))}, [&](const std::vector<Buffer>& out) {
        const Buffer next = counter("next"), stopped = counter("stopped");
        const Var i = make_var("i"), k = make_var("k"), same = make_var("key", DType::String);
        const Exprs row = x.rank() == 2 ? Exprs{Expr(0)} : Exprs{};
        const Expr s = x(concat(row, {Expr(i)}));
        const Stmt put =
            if_then(value_of(next) < Expr(count), store(out[0], concat(row, {value_of(next)}), in_case_of(s, action)));
        Stmt body = seq({put, increment(next)});
        if (stops) {
          const Tensor words = b.in(1);
          const Expr key = b.attr_int("sensitive") != 0 ? s : in_case_of(s, action == "UPPER" ? "UPPER" : "LOWER");
          const Stmt look = loop(k, words.dim(0), if_then(eq(Expr(same), words({Expr(k)})), set(stopped, 1)));
          body = seq({set(stopped, 0), let(same, key, look), if_then(eq(value_of(stopped), 0), body)});
        }
        // Nothing left is one empty string.
        const Stmt none = if_then(eq(value_of(next), 0), set(next, 1));
        return alloc(next, alloc(stopped, seq({set(next, 0), loop(i, x.dim(-1), body), none, must_be(next, count)})));
      });
  b.output(0, y[0]);
}

// --- RegexFullMatch
bool expand_regex(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.in_of_any_type(0);
  if (x->type.dtype != DType::String) e.reject("the input must hold strings");
  if (!e.has("pattern")) e.reject("attribute pattern is missing");
  std::vector<Value*> in = tables_of(e, automaton_of(e, e.attr_string("pattern")));
  in.insert(in.begin(), x);
  e.finish(0, e.op("full_match", in, "", {}, "tc"));
  return true;
}

/// An automaton over bytes: y = accepts[state behind the last byte].
void define_full_match(OpBuilder& b) {
  const Tensor x = text_operand(b, 0), classes = b.in(1), next = b.in(2), accepts = b.in(3);
  const auto y =
      b.nest("full_match", {ValueType::tensor(DType::Bool, to_shape(x.dims()))}, [&](const std::vector<Buffer>& out) {
        const Buffer at = counter("at"), state = counter("state");
        return alloc(
            at,
            alloc(state, for_each_index(x.dims(), [&](const Exprs& i) {
                    const Expr kind = cast(DType::I64, classes({byte_of(x(i), value_of(at))}));
                    const Stmt step = seq({set(state, cast(DType::I64, next({value_of(state), kind}))), increment(at)});
                    return seq({set(at, 0), set(state, 0), while_loop(value_of(at) < size_of(x(i)), step),
                                store(out[0], i, accepts({value_of(state)}))});
                  })));
      });
  b.output(0, y[0]);
}

}  // namespace

OpFamily string_ops() {
  const std::vector<AttrSpec> normalizer = {{"case_change_action", std::string("NONE")},
                                            {"is_case_sensitive", int64_t(0)},
                                            {"locale", {}},
                                            {"stopwords", {}}};
  return {
      {"StringConcat", 20, {}, define_concat, "x y", "string_concat"},
      {"StringSplit", 20, {{"delimiter", {}}, {"maxsplit", {}}}, define_split, "x", "string_split"},
      expanding_row("", "StringNormalizer", 10, normalizer, expand_normalizer),
      {.name = "change_case",
       .since = 1,
       .attrs = {{"case", std::string("NONE")}, {"none_is_one", int64_t(1)}},
       .define = define_change_case,
       .operands = "x",
       .label = "string_normalizer",
       .domain = "tc",
       .traits = {OpTrait::EachElement}},
      {"normalize_strings",
       1,
       {{"case", std::string("NONE")}, {"sensitive", int64_t(0)}},
       define_normalize,
       "x stopwords",
       "string_normalizer",
       "tc"},
      expanding_row("", "RegexFullMatch", 20, {{"pattern", {}}}, expand_regex),
      {"full_match", 1, {}, define_full_match, "x classes next accepts", "full_match", "tc"},
  };
}

}  // namespace tc
