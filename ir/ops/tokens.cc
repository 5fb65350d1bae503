// Texts as rows of tokens: com.microsoft's Tokenizer, as scikit-learn's converter writes CountVectorizer and TfidfVectorizer, and the
// count of n-grams of a vocabulary (TfIdfVectorizer) that is too large for a loop each.
//   t = Tokenizer(x) {tokenexp = "[a-z]+"}  y = TfIdfVectorizer(t)
//     ->   t = tc.tokenize(x, the pattern's automaton): [N, 1024], padded   y = tc.count_grams(tokens' numbers, sorted n-grams)
// How many tokens there are is data. What only TfIdfVectorizer reads may be padded, for no n-gram holds the pad.
#include <algorithm>

#include "ir/graph/origin.h"
#include "ir/ops/counting.h"
#include "ir/ops/expansion.h"
#include "ir/ops/grams.h"
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"
#include "ir/ops/text_parts.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr int64_t kMostTokens = 1024;  // of a text; one with more ends the run with E_RANGE

/// Do ways to match differ in what they match first and what is longest, or does the pattern ask what stands around a match? The
/// automaton knows the longest match that begins somewhere.
bool looks_around(const std::string& pattern) {
  bool in_class = false;
  for (size_t k = 0; k < pattern.size(); k++) {
    const char c = pattern[k], next = k + 1 < pattern.size() ? pattern[k + 1] : '\0';
    if (c == '\\') {
      if (!in_class && std::string_view("bBAz").find(next) != std::string_view::npos && next != '\0') return true;
      k++;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
      if (next == '^') k++;
      if (k + 1 < pattern.size() && pattern[k + 1] == ']') k++;
    } else if (c == '|' || c == '^' || c == '$' ||
               (std::string_view("*+?}").find(c) != std::string_view::npos && next == '?')) {
      return true;
    }
  }
  return false;
}

/// Is each use of the tokens, past views of them, a TfIdfVectorizer with a pool that does not hold the pad?
bool only_counted(const Value* tokens, const std::string& pad) {
  std::vector<const Value*> open = {tokens};
  while (!open.empty()) {
    const Value* v = open.back();
    open.pop_back();
    if (v->output_uses > 0) return false;
    for (const Node* n : v->users) {
      if (n->is("TfIdfVectorizer")) {
        const auto pool = n->attrs.find("pool_strings");
        const auto* words = pool == n->attrs.end() ? nullptr : std::get_if<std::vector<std::string>>(&pool->second);
        if (!words || std::find(words->begin(), words->end(), pad) != words->end()) return false;
      } else if ((n->is("Flatten") || n->is("Reshape") || n->is("Identity")) && n->inputs[0] == v) {
        open.push_back(n->outputs.at(0));
      } else {
        return false;
      }
    }
  }
  return true;
}

/// From which states an accepting one can still be reached by another byte.
std::vector<uint8_t> leading_on(const Automaton& a) {
  std::vector<uint8_t> on(size_t(a.states()), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (int s = 0; s < a.states(); s++)
      for (int c = 0; c < a.classes && !on[size_t(s)]; c++) {
        const auto to = size_t(a.next[size_t(s) * size_t(a.classes) + size_t(c)]);
        on[size_t(s)] = a.accepts[to] || on[to];
        changed = changed || on[size_t(s)];
      }
  }
  return on;
}

bool expand_tokenizer(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.in_of_any_type(0);
  if (x->type.dtype != DType::String) e.reject("the input must hold strings");
  const std::vector<std::string> separators = e.attr_strings("separators");
  const bool characters = separators == std::vector<std::string>{""};
  std::string pattern = characters ? "(.|\\n)" : e.attr_string("tokenexp");
  if (pattern.empty()) e.unsupported("tokens between separators: give the pattern of a token, tokenexp");
  if (e.attr_int("mark") != 0) e.unsupported("marks around the tokens of a text");
  const int64_t least = e.attr_int("mincharnum");
  if (least < 1) e.reject("attribute mincharnum must be positive");
  if (!characters && looks_around(pattern))
    e.unsupported("a pattern of tokens with |, lazy repetitions, or conditions on what is around");
  const std::string pad = e.attr_string("pad_value");
  if (!only_counted(n->outputs.at(0), pad))
    e.unsupported(
        "tokens that others than TfIdfVectorizer read, or a vocabulary that holds the pad: how many there are, only "
        "data says");
  const Automaton a = automaton_of(e, pattern);
  const std::vector<uint8_t> on = leading_on(a);
  std::vector<Value*> in = tables_of(e, a);
  in.insert(in.begin(), x);
  in.push_back(e.constant(make_constant(DType::Bool, {a.states()}, on.data()), "_leads_on"));
  in.push_back(e.constant(string_constant({}, {pad}), "_pad"));
  e.finish(0, e.op("tokenize", in, "", {{"tokens", kMostTokens}, {"characters", least}}, "tc"));
  return true;
}

/// Counters of the walk through a text.
struct Walk {
  Buffer at = counter("at"), end = counter("end"), next = counter("next"), state = counter("state"),
         tokens = counter("tokens"), length = counter("length");
  Stmt around(Stmt s) const {
    for (const Buffer& b : {length, tokens, state, next, end, at}) s = alloc(b, s);
    return s;
  }
};

/// y[..., k]: token k of a text, the longest match that begins behind the one before; those of fewer than `characters` are left out.
void define_tokenize(OpBuilder& b) {
  const Tensor x = b.in(0), classes = b.in(1), table = b.in(2), accepts = b.in(3), leads_on = b.in(4), pad = b.in(5);
  const int64_t most = b.attr_int("tokens"), least = b.attr_int("characters");
  Dims dims = x.dims();
  dims.push_back(most);
  const auto y =
      b.nest("tokens", {ValueType::tensor(DType::String, to_shape(dims))}, [&](const std::vector<Buffer>& out) {
        const Walk w;
        return w.around(for_each_index(x.dims(), [&](const Exprs& i) {
          const Expr text = x(i), kind = cast(DType::I64, classes({byte_of(text, value_of(w.next))}));
          const Stmt step = seq({set(w.state, cast(DType::I64, table({value_of(w.state), kind}))), increment(w.next),
                                 if_then(accepts({value_of(w.state)}), set(w.end, value_of(w.next)))});
          const Stmt match = seq({set(w.state, 0), set(w.next, value_of(w.at)), set(w.end, value_of(w.at)),
                                  while_loop(value_of(w.next) < size_of(text) && leads_on({value_of(w.state)}), step)});
          const Expr part = part_of(text, value_of(w.at), value_of(w.end));
          Stmt found =
              seq({if_then(value_of(w.tokens) < Expr(most), store(out[0], concat(i, {value_of(w.tokens)}), part)),
                   increment(w.tokens)});
          if (least > 1) {  // bytes that begin a code point
            const Expr byte = byte_of(text, value_of(w.next));
            const Stmt each =
                seq({if_then(byte < Expr(0x80) || byte >= Expr(0xC0), increment(w.length)), increment(w.next)});
            found = seq({set(w.length, 0), set(w.next, value_of(w.at)),
                         while_loop(value_of(w.next) < value_of(w.end), each),
                         if_then(value_of(w.length) >= Expr(least), found)});
          }
          const Stmt walk =
              while_loop(value_of(w.at) < size_of(text),
                         seq({match, if_then(value_of(w.end) > value_of(w.at), seq({found, set(w.at, value_of(w.end))}),
                                             increment(w.at))}));
          const Stmt fill =
              while_loop(value_of(w.tokens) < Expr(most),
                         seq({store(out[0], concat(i, {value_of(w.tokens)}), pad({})), increment(w.tokens)}));
          return seq({set(w.at, 0), set(w.tokens, 0), walk, fill, must_be(w.tokens, most)});
        }));
      });
  b.output(0, y[0]);
}

/// y[row, index] of n-grams that are sorted by their tokens: for each length their tokens [grams, length], indices and weights.
void define_count_grams(OpBuilder& b) {
  const Tensor x = b.in(0);
  const int64_t max_skip = b.attr_int("max_skip");
  const bool adds = b.attr_int("adds") != 0;
  Dims dims = x.dims();
  dims.back() = b.attr_int("size");
  const auto y = b.nest("tf_idf", {ValueType::tensor(DType::F32, to_shape(dims))}, [&](const std::vector<Buffer>& out) {
    const Var r = make_var("row"), c = make_var("col");
    const Buffer low = counter("low"), high = counter("high");
    const Exprs row = x.rank() == 2 ? Exprs{r} : Exprs{};
    Stmts body = {loop(c, dims.back(), store(out[0], concat(row, {Expr(c)}), make_float(DType::F32, 0)))};
    for (int k = 1; b.has(k + 2); k += 3) {
      const Tensor grams = b.in(k), index = b.in(k + 1), weight = b.in(k + 2);
      const int64_t count = grams.dim(0), length = grams.dim(1);
      for (int64_t distance = 1; distance <= (length == 1 ? 1 : max_skip + 1); distance++) {
        const int64_t starts = x.dim(-1) - distance * (length - 1);
        if (starts <= 0) break;
        const Var start = make_var("start"), middle = make_var("middle");
        const auto token = [&](int64_t at) {
          return cast(DType::I64, x(concat(row, {Expr(start) + Expr(at * distance)})));
        };
        const Expr last = min(value_of(low), Expr(count - 1));
        Expr less, same = value_of(low) < Expr(count);
        for (int64_t at = length; at-- > 0;) {
          const Expr known = grams({Expr(middle), Expr(at)});
          less = less ? known < token(at) || (eq(known, token(at)) && less) : known < token(at);
        }
        for (int64_t at = 0; at < length; at++) same = same && eq(grams({last, Expr(at)}), token(at));
        const Stmt search = lower_bound(low, high, count, middle, less);
        const Exprs to = concat(row, {index({last})});
        const Stmt hit = adds ? store(out[0], to, weight({last}), Op::Add) : store(out[0], to, weight({last}));
        body.push_back(loop(start, starts, seq({search, if_then(same, hit)})));
      }
    }
    const Stmt all = alloc(low, alloc(high, seq(body)));
    return x.rank() == 2 ? loop(r, x.dim(0), all) : all;
  });
  b.output(0, y[0]);
}

}  // namespace

Value* count_grams(const Expansion& e, Value* ids, std::vector<Gram> grams, int64_t size, int64_t max_skip, bool adds) {
  std::sort(grams.begin(), grams.end(), [](const Gram& a, const Gram& b) {
    return a.tokens.size() != b.tokens.size() ? a.tokens.size() < b.tokens.size() : a.tokens < b.tokens;
  });
  for (size_t k = 1; k < grams.size(); k++)
    if (grams[k].tokens == grams[k - 1].tokens) return nullptr;
  std::vector<Value*> in = {ids};
  for (size_t first = 0, last = 0; first < grams.size(); first = last) {
    std::vector<int64_t> tokens, indices;
    std::vector<double> weights;
    const size_t length = grams[first].tokens.size();
    for (; last < grams.size() && grams[last].tokens.size() == length; last++) {
      tokens.insert(tokens.end(), grams[last].tokens.begin(), grams[last].tokens.end());
      indices.push_back(grams[last].index);
      weights.push_back(double(grams[last].weight));
    }
    const auto count = int64_t(indices.size());
    const std::string of = "_of_" + to_text(int64_t(length));
    in.push_back(e.ints(DType::I64, {count, int64_t(length)}, tokens, "_grams" + of));
    in.push_back(e.ints(DType::I64, {count}, indices, "_index" + of));
    in.push_back(e.floats(DType::F32, {count}, weights, "_weight" + of));
  }
  return e.op("count_grams", in, "_counts", {{"size", size}, {"max_skip", max_skip}, {"adds", int64_t(adds)}}, "tc");
}

OpFamily token_ops() {
  const std::vector<AttrSpec> tokenizer = {{"mark", int64_t(0)},
                                           {"mincharnum", int64_t(1)},
                                           {"pad_value", std::string()},
                                           {"separators", {}},
                                           {"tokenexp", {}}};
  return {
      expanding_row("com.microsoft", "Tokenizer", 1, tokenizer, expand_tokenizer),
      {.name = "tokenize",
       .since = 1,
       .attrs = {{"tokens", int64_t(1)}, {"characters", int64_t(1)}},
       .define = define_tokenize,
       .operands = "x classes next accepts leads_on pad",
       .label = "tokenize",
       .domain = "tc",
       .traits = {OpTrait::EachElement}},
      {.name = "count_grams",
       .since = 1,
       .attrs = {{"size", int64_t(1)}, {"max_skip", int64_t(0)}, {"adds", int64_t(1)}},
       .define = define_count_grams,
       .operands = "x grams index weight",
       .label = "tf_idf",
       .domain = "tc",
       .traits = {OpTrait::EachRow}},
  };
}

}  // namespace tc
