// Einsum: the operands are contracted pairwise from left to right. Each step is one sum of products over the labels
// that neither the result nor a later operand needs; a repeated label reads the diagonal.
#include <algorithm>
#include <cctype>

#include "ir/ops/contraction.h"
#include "ir/ops/numeric.h"

namespace tc {
namespace {

/// Letters are their character codes; the axes of the ellipsis are -1 (last), -2, ... so that they align on the right.
using Label = int;
using Labels = std::vector<Label>;

struct Term {
  Labels labels;
  Tensor value;
};

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
  bool explicit_output = false;
};

bool contains(const Labels& l, Label x) { return std::find(l.begin(), l.end(), x) != l.end(); }

Equation split_equation(const OpBuilder& op) {
  std::string text;
  for (char c : op.attr_string("equation"))
    if (c != ' ') text += c;
  Equation e;
  std::string left = text;
  if (const size_t arrow = text.find("->"); arrow != std::string::npos) {
    left = text.substr(0, arrow);
    e.output = text.substr(arrow + 2);
    e.explicit_output = true;
  }
  for (size_t begin = 0;;) {
    const size_t comma = left.find(',', begin);
    e.inputs.push_back(left.substr(begin, comma == std::string::npos ? comma : comma - begin));
    if (comma == std::string::npos) return e;
    begin = comma + 1;
  }
}

/// The labels of one side of the equation; `ellipsis` is the number of axes that "..." stands for.
Labels parse_labels(const OpBuilder& op, const std::string& text, int ellipsis) {
  Labels labels;
  bool seen = false;
  for (size_t k = 0; k < text.size(); k++) {
    if (text.compare(k, 3, "...") == 0) {
      if (seen) op.reject("equation: \"...\" may occur once in a term");
      seen = true;
      for (int d = ellipsis; d > 0; d--) labels.push_back(-d);
      k += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[k]))) {
      labels.push_back(static_cast<unsigned char>(text[k]));
    } else {
      op.reject("equation: only letters, commas, \"...\" and \"->\" are allowed");
    }
  }
  return labels;
}

Labels implicit_output(const std::vector<Term>& terms) {
  std::map<Label, int> uses;  // sorted: the ellipsis comes first, then letters in alphabetical order
  for (const Term& t : terms)
    for (Label l : t.labels) uses[l]++;
  Labels out;
  for (const auto& [label, count] : uses)
    if (label < 0 || count == 1) out.push_back(label);
  return out;
}

struct Contraction {
  OpBuilder& op;
  std::map<Label, int64_t> extents;

  void note_extents(const Term& t, int operand) {
    for (size_t k = 0; k < t.labels.size(); k++) {
      int64_t& extent = extents.try_emplace(t.labels[k], 1).first->second;
      const int64_t own = t.value.dim(int(k));
      if (own != extent && own != 1 && extent != 1)
        op.reject("equation: one label stands for sizes " + to_text(extent) + " and " + to_text(own), operand);
      if (own != 1) extent = own;
    }
  }

  Expr element(const Term& t, const std::map<Label, Expr>& at) const {
    Exprs i;
    for (size_t k = 0; k < t.labels.size(); k++) i.push_back(t.value.dim(int(k)) == 1 ? Expr(0) : at.at(t.labels[k]));
    return widen(t.value(i));
  }

  /// One stage: the product of `factors`, summed over every label that is not in `out`.
  Term step(const std::vector<Term>& factors, const Labels& out) {
    Labels summed;
    for (const Term& f : factors)
      for (Label l : f.labels)
        if (!contains(out, l) && !contains(summed, l)) summed.push_back(l);
    Dims shape, reduced;
    std::vector<std::string> names;
    for (Label l : out) shape.push_back(extents.at(l)), names.push_back(name(l));
    for (Label l : summed) reduced.push_back(extents.at(l)), names.push_back(name(l));
    auto value = [&](const Exprs& i, const Exprs& r) {
      std::map<Label, Expr> at;
      for (size_t k = 0; k < out.size(); k++) at[out[k]] = i[k];
      for (size_t k = 0; k < summed.size(); k++) at[summed[k]] = r[k];
      Expr e = element(factors[0], at);
      for (size_t k = 1; k < factors.size(); k++) e = e * element(factors[k], at);
      return e;
    };
    const DType t = compute_type(factors[0].value.dtype());
    if (summed.empty())
      return {out, op.compute(
                       "einsum", t, shape, [&](const Exprs& i) { return value(i, {}); }, names)};
    return {out, op.reduce("einsum", Op::Add, t, shape, reduced, value, names)};
  }

  static std::string name(Label l) {
    return l < 0 ? "b" + to_text(int64_t(-l)) : std::string(1, char(std::tolower(l)));
  }
};

}  // namespace

void define_einsum(OpBuilder& op) {
  const Equation e = split_equation(op);
  if (int(e.inputs.size()) != op.num_inputs())
    op.reject("equation: " + to_text(int64_t(e.inputs.size())) + " terms for " + to_text(int64_t(op.num_inputs())) +
              " inputs");
  Contraction c{op, {}};
  std::vector<Term> terms;
  int ellipsis = 0;
  for (int k = 0; k < op.num_inputs(); k++) {
    const std::string& text = e.inputs[size_t(k)];
    const Tensor x = op.in(k);
    const int named = int(parse_labels(op, text, 0).size());
    const bool open = text.find("...") != std::string::npos;
    if (open ? named > x.rank() : named != x.rank())
      op.reject(
          "equation: the term names " + to_text(int64_t(named)) + " axes, the input has " + to_text(int64_t(x.rank())),
          k);
    ellipsis = std::max(ellipsis, x.rank() - named);
    terms.push_back({parse_labels(op, text, x.rank() - named), x});
    c.note_extents(terms.back(), k);
  }
  const Labels out = e.explicit_output ? parse_labels(op, e.output, ellipsis) : implicit_output(terms);
  for (size_t k = 0; k < out.size(); k++) {
    if (c.extents.count(out[k]) == 0) op.reject("equation: a label of the output occurs in no input");
    if (std::find(out.begin(), out.begin() + std::ptrdiff_t(k), out[k]) != out.begin() + std::ptrdiff_t(k))
      op.reject("equation: a label occurs twice in the output");
  }
  Term acc = terms[0];
  if (terms.size() == 1) acc = c.step({acc}, out);
  for (size_t k = 1; k < terms.size(); k++) {
    Labels keep;
    if (k + 1 == terms.size()) {
      keep = out;
    } else {
      for (const Term* t : {&acc, &terms[k]})
        for (Label l : t->labels) {
          bool needed = contains(out, l);
          for (size_t later = k + 1; later < terms.size(); later++) needed = needed || contains(terms[later].labels, l);
          if (needed && !contains(keep, l)) keep.push_back(l);
        }
    }
    acc = c.step({acc, terms[k]}, keep);
  }
  op.output(0, convert(op, acc.value, op.in(0).dtype(), "cast"));
}

}  // namespace tc
