#include "ir/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "ir/verify_accesses.h"
#include "support/text.h"

namespace tc {
namespace {

[[noreturn]] void wrong(const std::string& what) { throw InternalError("verify: " + what); }

bool takes_floats_only(Op op) { return (op >= Op::Sqrt && op <= Op::IsInf) || op == Op::Atan2 || op == Op::Quotient; }
bool takes_ints_only(Op op) { return op == Op::BitNot || (op >= Op::BitAnd && op <= Op::Shr) || op == Op::Index; }
bool takes_strings(Op op) { return (op >= Op::Eq && op <= Op::Ge) || is_text_op(op); }
bool takes_position(Op op) { return op == Op::TextByte || op == Op::TextFrom || op == Op::TextFirst; }
bool is_lane_reduce(Op op) { return op == Op::ReduceAdd || op == Op::ReduceMax || op == Op::ReduceMin; }

// Expressions and statements under the names that are visible.
class LoopVerifier {
 public:
  LoopVerifier(const std::vector<Buffer>& buffers, const std::vector<Var>& vars) {
    for (const Buffer& b : buffers) buffers_.insert(b.get());
    for (const Var& v : vars) vars_[v.get()] = false;
  }

  void expr(const Expr& e) {
    if (!e) wrong("an expression is missing");
    if (!checked_.insert(e.get()).second) return;
    keep_.push_back(e);
    auto need = [&](bool ok, const char* what) {
      if (!ok) wrong(std::string(what) + " in " + to_text(e));
    };
    visit(
        e,
        [&](const IntImm& k) {
          need(!e->vector && !is_float(e->dtype), "an integer constant of float type");
          need(e->dtype != DType::String || k.value == 0, "a string constant that is not empty");
        },
        [&](const FloatImm&) { need(!e->vector && is_float(e->dtype), "a float constant of integer type"); },
        [&](const VarRef& k) {
          auto it = vars_.find(k.var.get());
          if (it == vars_.end()) wrong("variable \"" + printable(k.var->name) + "\" is not visible");
          need(k.var->dtype == e->dtype, "another type than the variable's");
          need(it->second == e->vector, "a vector variable used as a scalar, or the other way round");
        },
        [&](const Apply& k) { application(e, k); },
        [&](const Select& k) {
          expr(k.condition), expr(k.yes), expr(k.no);
          need(k.condition->dtype == DType::Bool, "a condition that is not bool");
          need(k.yes->dtype == e->dtype && k.no->dtype == e->dtype, "branches of another type");
          need(k.yes->vector == e->vector && k.no->vector == e->vector, "branches of another shape");
          need(!k.condition->vector || e->vector, "a vector condition of scalars");
        },
        [&](const Cast& k) {
          expr(k.value), need(k.value->vector == e->vector, "a cast that changes the shape");
          need((k.value->dtype == DType::String) == (e->dtype == DType::String), "a cast between strings and numbers");
        },
        [&](const Bitcast& k) {
          expr(k.value);
          need(info(k.value->dtype).bytes == info(e->dtype).bytes, "a bitcast that changes the size");
        },
        [&](const Load& k) {
          bool vector = access(k.buffer, k.index, "load");
          need(e->dtype == k.buffer->dtype, "another type than the buffer's");
          need(e->vector == vector, "the shape of a load is not that of its index");
        },
        [&](const Ramp& k) {
          scalar_index(k.base, "the base of a ramp");
          need(e->vector && e->dtype == DType::I64, "a ramp that is no vector of i64");
        },
        [&](const Broadcast& k) {
          expr(k.value), need(e->vector && !k.value->vector, "a broadcast of a vector");
          need(e->dtype == k.value->dtype, "a broadcast that changes the type");
        },
        [&](const Lanes&) { need(!e->vector && e->dtype == DType::I64, "VL that is no i64"); },
        [&](const Partial& k) {
          expr(k.value), scalar_index(k.count, "the count of a partial vector");
          need(e->vector && k.value->vector && e->dtype == k.value->dtype, "a partial scalar");
        });
  }

  void stmt(const Stmt& s) {
    if (!s) return;
    visit(
        s, [&](const Store& k) { store(k); },
        [&](const For& k) {
          scalar_index(k.begin, "the begin of a loop"), scalar_index(k.extent, "the extent of a loop");
          if (k.var->dtype != DType::I64) wrong("loop variable \"" + printable(k.var->name) + "\" is not i64");
          if (!k.body) wrong("loop \"" + printable(k.var->name) + "\" has no body");
          with_var(k.var, false, k.body);
        },
        [&](const While& k) { condition(k.condition), stmt(k.body); },
        [&](const If& k) { condition(k.condition), stmt(k.then), stmt(k.otherwise); },
        [&](const Let& k) {
          expr(k.value);
          if (k.value->dtype != k.var->dtype)
            wrong("let \"" + printable(k.var->name) + "\" has another type than its value");
          with_var(k.var, k.value->vector, k.body);
        },
        [&](const Alloc& k) { with_buffer(k.buffer, k.body); },
        [&](const Alias& k) {
          if (!buffers_.contains(k.base.get())) wrong("buffer \"" + printable(k.base->name) + "\" is not visible");
          scalar_index(k.offset, "the offset of a view");
          with_buffer(k.view, k.body);
        },
        [&](const Seq& k) {
          for (const Stmt& x : k.list) {
            if (!x) wrong("a statement of a list is missing");
            stmt(x);
          }
        },
        [&](const Barrier&) {}, [&](const Prefetch& k) { access(k.buffer, k.index, "prefetch"); },
        [&](const Intrin& k) { instruction_of(k); },
        [&](const Launch& k) {
          call(k.grid, {}), call(k.block, {});
          call(k.args, k.buffers);
        },
        [&](const Comment& k) { stmt(k.body); });
  }

 private:
  void instruction_of(const Intrin& k) {
    call(k.args, k.buffers);
    const Instruction* row = find_instruction(k.name);
    if (!row) wrong("no instruction has the name " + printable(k.name));
    const size_t n = k.buffers.size(), scalars = row->scalars.size();
    if (row->repeats_last ? n < row->operands.size() : n != row->operands.size())
      wrong("operand count of " + row->name);
    const size_t have = parse(k).scalars.size();
    if (have > scalars || have + size_t(row->optional_scalars) < scalars) wrong("scalar count of " + row->name);
    for (size_t i = 0; i < n; i++) {
      const std::vector<DType>& types = row->operand(i).types;
      if (!types.empty() && std::find(types.begin(), types.end(), k.buffers[i]->dtype) == types.end())
        wrong("buffer \"" + printable(k.buffers[i]->name) + "\" is of a type that " + row->name + " does not take");
    }
  }

  void application(const Expr& e, const Apply& k) {
    auto need = [&](bool ok, const char* what) {
      if (!ok) wrong(std::string(what) + " in " + to_text(e));
    };
    const OpInfo& row = info(k.op);
    if (int(k.args.size()) != row.arity) wrong("operand count of " + std::string(row.name));
    for (const Expr& a : k.args) expr(a);
    DType t = k.args[0]->dtype;
    bool mixed = k.op == Op::Shl || k.op == Op::Shr || k.op == Op::Pow || takes_position(k.op);
    if (row.arity == 2) {
      need(mixed || k.args[1]->dtype == t, "operands of different types");
      need(k.args[1]->vector == k.args[0]->vector, "a vector beside a scalar");
    }
    const bool number = k.op == Op::TextSize || k.op == Op::TextByte;
    need(e->dtype == (row.compares ? DType::Bool : number ? DType::I64 : t), "the type of the result");
    need(!is_text_op(k.op) || t == DType::String, "an operation on strings without one");
    need(!takes_position(k.op) || k.args[1]->dtype == DType::I64, "a position in a string that is not i64");
    need(e->vector == (k.args[0]->vector && !is_lane_reduce(k.op)), "the shape of the result");
    need(!is_lane_reduce(k.op) || k.args[0]->vector, "a horizontal operation on a scalar");
    need(!takes_floats_only(k.op) || is_float(t), "an integer operand of a float function");
    need(!takes_ints_only(k.op) || !is_float(t), "a float operand of an integer operation");
    need(suits_truth_values(k.op, t),
         t == DType::Bool ? "a bool operand of an operation on numbers" : "an operand that is not bool");
    need(takes_strings(k.op) || t != DType::String, "a string operand of an operation on numbers");
  }

  // Returns whether the access is of a vector.
  bool access(const Buffer& b, const Exprs& index, const char* what) {
    if (!b || !buffers_.contains(b.get()))
      wrong(std::string(what) + ": buffer \"" + printable(b ? b->name : "") + "\" is not visible");
    if (index.size() != b->shape.size())
      wrong(std::string(what) + ": rank of the index of buffer \"" + printable(b->name) + "\"");
    bool vector = false;
    for (const Expr& i : index) {
      expr(i);
      if (i->dtype != DType::I64) wrong(std::string(what) + ": index " + to_text(i) + " is not i64");
      vector |= i->vector;
    }
    return vector;
  }

  void store(const Store& k) {
    bool vector = access(k.buffer, k.index, "store");
    expr(k.value);
    std::string where = " in a store to buffer \"" + printable(k.buffer->name) + "\"";
    if (k.value->dtype != k.buffer->dtype) wrong("another type than the buffer's" + where);
    if (k.value->vector != vector) wrong("the shape of the value is not that of the index" + where);
    if (k.count.get() && !vector) wrong("a count of lanes of a scalar" + where);
    if (k.count) scalar_index(k.count, "the count of a store");
    if (k.reduce && info(*k.reduce).arity != 2) wrong("a join that does not take two operands" + where);
  }

  void scalar_index(const Expr& e, const char* what) {
    expr(e);
    if (e->dtype != DType::I64 || e->vector) wrong(std::string(what) + " is not a scalar i64: " + to_text(e));
  }
  void condition(const Expr& e) {
    expr(e);
    if (e->dtype != DType::Bool || e->vector) wrong("condition " + to_text(e) + " is not a scalar bool");
  }
  void call(const Exprs& args, const std::vector<Buffer>& buffers) {
    for (const Expr& e : args) expr(e);
    for (const Buffer& b : buffers)
      if (!buffers_.contains(b.get())) wrong("buffer \"" + printable(b->name) + "\" is not visible");
  }

  // Names are checked where they are used, so what was seen outside must be looked at again inside, and after.
  void with_var(const Var& v, bool vector, const Stmt& body) {
    if (!vars_.emplace(v.get(), vector).second)
      wrong("variable \"" + printable(v->name) + "\" is bound inside its own scope");
    stmt(body);
    vars_.erase(v.get());
    checked_.clear();
  }
  void with_buffer(const Buffer& b, const Stmt& body) {
    if (!buffers_.insert(b.get()).second)
      wrong("buffer \"" + printable(b->name) + "\" is allocated inside its own scope");
    stmt(body);
    buffers_.erase(b.get());
    checked_.clear();
  }

  std::set<const BufferDef*> buffers_;
  std::map<const VarDef*, bool> vars_;  // visible ones, and whether they are vectors
  std::set<const ExprNode*> checked_;   // in the present scope
  Exprs keep_;                          // keeps the keys of checked_ alive
};

// --- TensorFn
class FnVerifier {
 public:
  explicit FnVerifier(const TensorFn& fn) : fn_(fn) {}

  void run() {
    std::set<const BufferDef*> defined;
    for (const Buffer& b : fn_.inputs) {
      if (!b) wrong("an input is missing");
      if (!defined.insert(b.get()).second) wrong("input \"" + printable(b->name) + "\" is listed twice");
    }
    for (const Stage& s : fn_.stages)
      for (const Buffer& b : s.outputs)
        if (!b || !defined.insert(b.get()).second) wrong("stage \"" + s.name + "\" defines a buffer a second time");
    for (const Buffer& b : fn_.outputs)
      if (!defined.contains(b.get())) wrong("output \"" + printable(b ? b->name : "") + "\" is not defined");
    std::vector<Buffer> visible = fn_.inputs;
    std::set<int> closed;
    for (size_t i = 0; i < fn_.stages.size(); ++i) {
      const Stage& s = fn_.stages[i];
      std::vector<Buffer> readable = visible;
      if (s.scan >= 0) scan_group(i, closed, readable);
      stage(s, readable);
      visible.insert(visible.end(), s.outputs.begin(), s.outputs.end());
    }
  }

 private:
  // All buffers of a group are readable in it; the group is one run of stages with one axis 0.
  void scan_group(size_t at, std::set<int>& closed, std::vector<Buffer>& readable) {
    const Stage& s = fn_.stages[at];
    bool first = at == 0 || fn_.stages[at - 1].scan != s.scan;
    if (first && !closed.insert(s.scan).second) wrong("stage \"" + s.name + "\" comes after its scan group has ended");
    if (s.kind == Stage::Kind::Nest || s.axes.empty()) wrong("stage \"" + s.name + "\" of a scan has no axis 0");
    if (!first && fn_.stages[at - 1].axes[0].extent != s.axes[0].extent) wrong("stages of one scan differ in axis 0");
    for (const Stage& o : fn_.stages)
      if (o.scan == s.scan) readable.insert(readable.end(), o.outputs.begin(), o.outputs.end());
  }

  void stage(const Stage& s, std::vector<Buffer> readable) {
    auto need = [&](bool ok, const std::string& what) {
      if (!ok) wrong("stage \"" + s.name + "\": " + what);
    };
    try {
      need(!s.outputs.empty(), "no output");
      if (s.kind == Stage::Kind::Nest) {
        need(bool(s.nest), "a nest without statements");
        readable.insert(readable.end(), s.outputs.begin(), s.outputs.end());
        return verify(s.nest, readable);
      }
      axes_and_shapes(s, need);
      std::vector<Var> vars;
      for (const Axis& a : s.axes) vars.push_back(a.var);
      values(s, s.init, readable, vars, "init", need);
      for (const Axis& a : s.raxes) vars.push_back(a.var);
      values(s, s.values, readable, vars, "value", need);
      if (s.kind == Stage::Kind::Reduce) combiner(s, need);
    } catch (const InternalError& e) {
      std::string m = e.what();
      if (m.find("stage \"") != std::string::npos) throw;
      wrong("stage \"" + s.name + "\": " + m.substr(m.rfind("verify: ", 0) == 0 ? 8 : 0));
    }
  }

  template <class Need>
  void axes_and_shapes(const Stage& s, Need need) {
    size_t n = s.outputs.size();
    bool reduces = s.kind == Stage::Kind::Reduce;
    need(reduces || (n == 1 && s.raxes.empty() && s.init.empty()),
         "a compute stage has one output and no reduction axes");
    need(s.values.size() == n, "one value per output");
    need(!reduces || s.init.size() == n, "one initial value per output");
    std::set<const VarDef*> distinct;
    for (const auto* axes : {&s.axes, &s.raxes})
      for (const Axis& a : *axes) {
        need(a.var && a.var->dtype == DType::I64, "an axis whose variable is not i64");
        need(distinct.insert(a.var.get()).second, "two axes share a variable");
      }
    for (const Buffer& b : s.outputs) {
      need(b->shape.size() == s.axes.size(),
           "the rank of output \"" + printable(b->name) + "\" is not the number of axes");
      for (size_t d = 0; d < s.axes.size(); ++d)
        need(b->shape[d] == s.axes[d].extent,
             "the shape of output \"" + printable(b->name) + "\" is not that of the axes");
    }
  }

  template <class Need>
  void values(const Stage& s, const Exprs& list, const std::vector<Buffer>& readable, const std::vector<Var>& vars,
              const std::string& what, Need need) {
    LoopVerifier v(readable, vars);
    for (size_t k = 0; k < list.size(); ++k) {
      v.expr(list[k]);
      need(list[k]->dtype == s.outputs[k]->dtype,
           what + " of another type than output \"" + printable(s.outputs[k]->name) + "\"");
      need(!list[k]->vector, "a vector " + what);
    }
  }

  template <class Need>
  void combiner(const Stage& s, Need need) {
    const Combiner& c = s.combiner;
    size_t n = s.outputs.size();
    if (c.op) {
      need(n == 1 && c.lhs.empty() && c.rhs.empty() && c.result.empty(), "a plain combiner joins one value");
      return need(suits_truth_values(*c.op, s.outputs[0]->dtype), "a reduction that its type does not have");
    }
    need(c.lhs.size() == n && c.rhs.size() == n && c.result.size() == n, "the combiner has one component per output");
    std::vector<Var> vars = c.lhs;
    vars.insert(vars.end(), c.rhs.begin(), c.rhs.end());
    for (size_t k = 0; k < n; ++k) {
      DType t = s.outputs[k]->dtype;
      need(c.lhs[k]->dtype == t && c.rhs[k]->dtype == t, "the combiner's variables have another type than the output");
    }
    values(s, c.result, {}, vars, "combined value", need);
  }

  const TensorFn& fn_;
};

}  // namespace

void verify(const Stmt& s, const std::vector<Buffer>& buffers, const std::vector<Var>& vars) {
  LoopVerifier(buffers, vars).stmt(s);
  verify_accesses(s);
}

void verify(const TensorFn& fn) { FnVerifier(fn).run(); }

}  // namespace tc
