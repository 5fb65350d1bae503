#include "passes/program/formula.h"

#include <map>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr size_t kLineLimit = 400;
constexpr size_t kMaxLines = 12;

class Formula {
 public:
  explicit Formula(const TensorFn& fn) : fn_(fn) {
    for (const Stage& s : fn.stages) {
      for (const Expr& v : s.values)
        walk(v, [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) reads_[l->buffer.get()]++;
          return true;
        });
      for (const Axis& a : s.axes) ranges_[a.var.get()] = {0, std::max<int64_t>(a.extent.value - 1, 0)};
      for (const Axis& a : s.raxes) ranges_[a.var.get()] = {0, std::max<int64_t>(a.extent.value - 1, 0)};
    }
    find_sums_of_sums();
    name_lines();
  }

  std::string text() {
    std::vector<std::string> lines;
    for (const Stage& s : fn_.stages) {
      if (in_place(s)) continue;
      std::vector<std::string> stores = s.kind == Stage::Kind::Nest ? store_lines(s.nest) : std::vector<std::string>();
      if (stores.empty()) stores.push_back(stage_line(s));
      lines.insert(lines.end(), stores.begin(), stores.end());
    }
    if (lines.size() > kMaxLines) {
      lines.resize(kMaxLines - 1);
      lines.push_back("...");
    }
    return join(lines, "\n");
  }

 private:
  // Two axes of one hint, or an axis and an operand, get different names.
  std::string name(const Var& v) {
    std::string& n = names_[v.get()];
    if (n.empty()) {
      n = v->name;
      for (int64_t k = 2; !taken_.insert(n).second; k++) n = v->name + to_text(k);
    }
    return n;
  }

  bool is_result(const Stage& s) const {
    for (const Buffer& o : fn_.outputs)
      for (const Buffer& b : s.outputs)
        if (o == b) return true;
    return false;
  }
  // What a reduction reads has a line of its own if it holds a reduction: nobody reads a sum within a sum.
  void find_sums_of_sums() {
    std::map<const BufferDef*, bool> reduces;  // written in place, it would hold a reduction
    for (const Stage& s : fn_.stages) {
      bool inside = s.kind == Stage::Kind::Reduce;
      for (const Expr& v : s.values)
        walk(v, [&](const Expr& e) {
          const Load* l = as<Load>(e);
          if (!l || !reduces[l->buffer.get()]) return true;
          inside = true;
          if (s.kind == Stage::Kind::Reduce) own_line_.insert(l->buffer.get());
          return true;
        });
      for (const Buffer& b : s.outputs) reduces[b.get()] = inside && in_place(s);
    }
  }

  // Two lines of one hint get different names; the result keeps its own, which is the parameter's.
  void name_lines() {
    std::set<std::string> taken;
    for (const auto* list : {&fn_.inputs, &fn_.outputs})
      for (const Buffer& b : *list) taken.insert(b->name);
    for (const Stage& s : fn_.stages)
      for (const Buffer& b : s.outputs) {
        if (in_place(s) || is_result(s)) continue;
        std::string n = b->name;
        for (int64_t k = 2; !taken.insert(n).second; k++) n = b->name + to_text(k);
        line_names_[b.get()] = n;
      }
  }

  bool in_place(const Stage& s) const {
    if (!s.outputs.empty() && own_line_.count(s.outputs[0].get()) != 0) return false;
    if (s.kind == Stage::Kind::Nest || s.outputs.size() != 1 || s.scan >= 0 || is_result(s)) return false;
    const auto it = reads_.find(s.outputs[0].get());
    return it == reads_.end() || it->second <= 1;
  }

  std::string point(const Buffer& b, const Exprs& index) {
    const auto named = line_names_.find(b.get());
    std::string s = named == line_names_.end() ? b->name : named->second;
    for (size_t i = 0; i < index.size(); i++) {
      if (b->shape[i] == Dim(1) && index.size() > 1) continue;  // axes of size 1 say nothing
      s += "[" + expr(simplify(index[i], ranges_), 0) + "]";
    }
    return s;
  }

  std::string stage_line(const Stage& s) {
    if (s.kind == Stage::Kind::Nest)
      return (s.outputs.empty() ? std::string("y") : s.outputs[0]->name) + " = " + s.name + "(...)";
    begin_line();
    Exprs index;
    for (const Axis& a : s.axes) index.push_back(Expr(a.var));
    return ended(point(s.outputs[0], index) + " = " + value(s, 0));
  }

  void begin_line() {
    names_.clear();
    taken_.clear();
    for (const Buffer& b : fn_.inputs) taken_.insert(b->name);
  }
  static std::string ended(const std::string& line) {
    return line.size() > kLineLimit ? line.substr(0, kLineLimit) + " ..." : line;
  }

  // Loops that no formula says, as what they store, one after the other: y[i] = x[i], then y[at[e]] += u[e]. Nothing where something
  // else is among them.
  std::vector<std::string> store_lines(const Stmt& nest) {
    std::vector<std::string> lines;
    const Seq* q = as<Seq>(nest);
    for (const Stmt& s : q ? q->list : Stmts{nest}) {
      begin_line();
      std::string line = store_line(s);
      if (line.empty()) return {};
      lines.push_back(ended(line));
    }
    return lines;
  }

  std::string store_line(const Stmt& s) {
    const auto site = only_store(s);
    if (!site) return "";
    const Store* k = site->store;
    std::string when;
    for (const Expr& c : site->conditions) when += (when.empty() ? "if " : " && ") + expr(c, 5);
    const std::string to = point(k->buffer, k->index);
    if (!when.empty()) when += ": ";
    if (!k->reduce) return when + to + " = " + expr(k->value, 0);
    const OpInfo& how = info(*k->reduce);
    if (how.c_infix.empty())
      return when + to + " = " + std::string(how.name) + "(" + to + ", " + expr(k->value, 0) + ")";
    return when + to + " " + std::string(how.c_infix) + "= " + expr(k->value, 0);
  }

  // A reduction names the axes that have more than one element.
  std::string value(const Stage& s, int parent) {
    if (s.kind == Stage::Kind::Compute) return expr(s.values[0], parent);
    if (!s.combiner.op) return s.name + "(...)";
    std::vector<std::string> axes;
    VarMap only;
    for (const Axis& a : s.raxes)
      if (a.extent == Dim(1))
        only[a.var.get()] = Expr(0);
      else
        axes.push_back(name(a.var));
    const Expr term = only.empty() ? s.values[0] : substitute(s.values[0], only);
    if (axes.empty()) return expr(term, parent);
    const Op op = *s.combiner.op;
    const std::string word = op == Op::Add ? "sum" : op == Op::Mul ? "product" : std::string(info(op).name);
    const std::string text = word + "(" + join(axes, ", ") + ") " + expr(term, 12);
    return parent > 11 ? "(" + text + ")" : text;
  }

  std::string expr(const Expr& e, int parent) {
    if (budget_ == 0) return "...";
    budget_--;
    return visit(
        e, [&](const IntImm& k) { return to_text(k.value); },
        [&](const FloatImm& k) { return e->dtype == DType::F64 ? to_text(k.value) : to_text(float(k.value)); },
        [&](const VarRef& k) { return name(k.var); }, [&](const Lanes&) { return std::string("VL"); },
        [&](const Apply& k) { return application(k, parent); },
        [&](const Select& k) {
          const std::string condition = expr(k.condition, 4), yes = expr(k.yes, 4);
          const std::string s = condition + " ? " + yes + " : " + expr(k.no, 3);
          return parent > 3 ? "(" + s + ")" : s;
        },
        [&](const Cast& k) { return std::string(info(e->dtype).name) + "(" + expr(k.value, 0) + ")"; },
        [&](const Bitcast& k) { return expr(k.value, parent); }, [&](const Load& k) { return read(k, parent); },
        [&](const Ramp& k) { return expr(k.base, parent); }, [&](const Broadcast& k) { return expr(k.value, parent); },
        [&](const Partial& k) { return expr(k.value, parent); });
  }

  std::string application(const Apply& k, int parent) {
    const OpInfo& row = info(k.op);
    if (k.op == Op::Index) return expr(k.args[0], parent);
    if (row.c_infix.empty()) {
      std::vector<std::string> args;
      for (const Expr& a : k.args) args.push_back(expr(a, 0));
      return std::string(row.name) + "(" + join(args, ", ") + ")";
    }
    if (row.arity == 1) return std::string(row.c_infix) + expr(k.args[0], row.precedence);
    // Names are given in the order of reading, which the operands of one sum of strings need not be looked at in.
    const std::string left = expr(k.args[0], row.precedence), right = expr(k.args[1], row.precedence + 1);
    const std::string s = left + " " + std::string(row.c_infix) + " " + right;
    return row.precedence < parent ? "(" + s + ")" : s;
  }

  std::string read(const Load& k, int parent) {
    const Stage* s = producer(fn_, k.buffer);
    if (!s || !in_place(*s)) return point(k.buffer, k.index);
    Stage at = *s;
    VarMap vars;
    for (size_t i = 0; i < s->axes.size(); i++) vars[s->axes[i].var.get()] = k.index[i];
    at.values[0] = substitute(s->values[0], vars);
    return value(at, parent);
  }

  const TensorFn& fn_;
  std::map<const BufferDef*, int> reads_;
  std::set<const BufferDef*> own_line_;                 // looked up only
  std::map<const BufferDef*, std::string> line_names_;  // looked up only
  Ranges ranges_;
  std::map<const VarDef*, std::string> names_;  // looked up only
  std::set<std::string> taken_;
  int budget_ = 400;
};

}  // namespace

std::string formula(const TensorFn& fn) { return Formula(fn).text(); }

}  // namespace tc
