#include "ir/language/elaborate.h"

#include <algorithm>

#include "ir/language/nest.h"
#include "ir/language/rounding.h"
#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/ops/helpers.h"
#include "support/text.h"

namespace tc::language {
namespace {

std::string count_text(size_t n) { return tc::to_text(int64_t(n)); }

// "i", then "j": the axes of a list called i, as the tool calls those of its own operators.
std::string axis_name(const std::string& list, size_t k) {
  if (k == 0) return list;
  if (list.size() == 1 && list[0] >= 'a' && list[0] + int(k) <= 'z') return std::string(1, char(list[0] + int(k)));
  return list + tc::to_text(int64_t(k));
}

Op reduction_op(const std::string& word) {
  if (word == "sum") return Op::Add;
  if (word == "product") return Op::Mul;
  if (word == "max") return Op::Max;
  if (word == "min") return Op::Min;
  return word == "all" ? Op::And : Op::Or;
}

class Elaborator {
 public:
  Elaborator(const Definition& d, Names names, Mode mode, Problems& problems)
      : d_(d), names_(std::move(names)), mode_(mode), problems_(problems) {
    for (const auto& [name, b] : names_.tensors) operands_.insert(name);
    for (const StageSyntax& s : d.stages)
      for (const Target& t : s.targets) names_.later.insert(t.name);
  }

  Elaborated run() {
    const size_t before = problems_.size();
    for (const Operand& o : d_.outputs) attempt([&] { declare_output(o); });
    if (problems_.size() > before) return {};
    for (size_t k = 0; k < d_.stages.size(); k++) {
      const bool first = k == 0 || d_.stages[k].scan != d_.stages[k - 1].scan;
      if (first) group_.clear();
      if (first && d_.stages[k].scan >= 0) open_scan(k);
      const size_t told = problems_.size();
      attempt([&] { stage(d_.stages[k], k); });
      if (problems_.size() > told && !assume_defined(d_.stages[k])) break;  // what reads it would be told, too
    }
    for (const Operand& o : d_.outputs) attempt([&] { collect_output(o, problems_.size() > before); });
    return std::move(result_);
  }

 private:
  struct Declared {
    DType type;
    Dims dims;
  };
  struct Axes {
    std::vector<Axis> list;
    Dims extents;
  };

  template <class F>
  void attempt(F&& f) {
    try {
      f();
    } catch (const FormulaError& e) {
      problems_.push_back(e.problem);
    }
  }

  // Names become hints of the IR: those of a user's op could be words of C.
  std::string hint(const std::string& name) const {
    return mode_ == Mode::Fn ? name.substr(0, name.find('~')) : make_identifier(name, 40);
  }

  DType type_of(const std::string& name, const Place& at) const {
    if (const auto t = names_.types.find(name); t != names_.types.end()) return t->second;
    if (const auto t = element_type_of(name, mode_)) return *t;
    fail(at, "no element type is called '" + name + "'");
  }

  DType computed(DType t) const { return mode_ != Mode::Fn && is_narrow_float(t) ? DType::F32 : t; }

  // --- results
  void declare_output(const Operand& o) {
    if (o.optional) fail(o.at, "results are always there: leave the '?' out");
    if (mode_ != Mode::Fn && operands_.count(o.name)) fail(o.at, "'" + o.name + "' is an operand already");
    if (mode_ == Mode::Fn && outputs_.count(o.name)) return;  // one tensor may be two results
    const Declared d{type_of(o.type, o.at), Evaluator(names_, mode_).sizes(o.sizes)};
    if (!outputs_.emplace(o.name, d).second) fail(o.at, "'" + o.name + "' is a result already");
    names_.later.insert(o.name);
  }

  void collect_output(const Operand& o, bool quiet) {
    const auto b = names_.tensors.find(o.name);
    if (b != names_.tensors.end()) return result_.outputs.push_back(b->second);
    if (!quiet) fail(o.at, "no stage defines the result '" + o.name + "'");
  }

  // A stage that is wrong: its results have the types that are declared, nothing is known of other targets.
  bool assume_defined(const StageSyntax& s) {
    for (const Target& t : s.targets) {
      const auto o = outputs_.find(t.name);
      if (o == outputs_.end()) return false;
      if (!operands_.count(t.name))
        names_.tensors[t.name] = make_buffer(hint(t.name), o->second.type, to_shape(o->second.dims));
    }
    return true;
  }

  // --- axes
  // What the axes of a target run over; `declared` has the sizes of a result.
  Dims extents_of(const StageSyntax& s, const std::vector<AxisSyntax>& axes, const Declared* declared,
                  std::vector<size_t>& widths) {
    const auto lists = size_t(std::count_if(axes.begin(), axes.end(), [](const AxisSyntax& a) { return a.spread; }));
    Dims all;
    Evaluator sizes(names_, mode_);
    const bool by_result =
        declared && std::any_of(axes.begin(), axes.end(), [](const AxisSyntax& a) { return !a.extent; });
    if (by_result && lists > 1) fail(s.at, "only one list of axes can take what the other axes leave over");
    const size_t single = axes.size() - lists;
    if (declared && (declared->dims.size() < single || (lists == 0 && declared->dims.size() != single)))
      fail(s.at, "'" + s.targets[0].name + "' has rank " + count_text(declared->dims.size()) + ", not " +
                     count_text(axes.size()));
    for (const AxisSyntax& a : axes) {
      Dims own;
      if (a.extent)
        own = sizes.sizes({*a.extent});
      else if (!declared)
        fail(a.at, "how far does '" + a.name + "' run? Write " + (a.spread ? "*" + a.name + ": *S" : a.name + ": N"));
      else
        own.assign(
            declared->dims.begin() + std::ptrdiff_t(all.size()),
            declared->dims.begin() + std::ptrdiff_t(all.size() + (a.spread ? declared->dims.size() - single : 1)));
      if (a.extent && (a.extent->kind == Formula::Kind::Spread) != a.spread)
        fail(a.at, a.spread ? "'*" + a.name + "' runs over a list of sizes, as in *" + a.name + ": *S"
                            : "'" + a.name + "' runs over one size; a list of axes is *" + a.name);
      widths.push_back(own.size());
      all.insert(all.end(), own.begin(), own.end());
    }
    if (declared && all != declared->dims && mode_ != Mode::Trial)
      fail(s.at, "the axes of '" + s.targets[0].name + "' are " + sizes_text(all) + ", its type says " +
                     sizes_text(declared->dims));
    return all;
  }

  static std::string sizes_text(const Dims& d) { return "[" + tc::to_text(to_shape(d)) + "]"; }

  // Variables for the axes; their names mean them from here on.
  Axes bind_axes(const StageSyntax& s, const std::vector<AxisSyntax>& axes, const Declared* declared, Names& names) {
    std::vector<size_t> widths;
    Axes result;
    result.extents = extents_of(s, axes, declared, widths);
    size_t at = 0;
    for (size_t k = 0; k < axes.size(); k++) {
      const AxisSyntax& a = axes[k];
      if (names.axes.count(a.name)) fail(a.at, "'" + a.name + "' is an axis already");
      if (names.constants.count(a.name)) fail(a.at, "'" + a.name + "' is a size or an attribute already");
      Exprs& values = names.axes[a.name];
      for (size_t j = 0; j < widths[k]; j++) {
        const Var v = make_var(hint(axis_name(a.name, j)));
        result.list.push_back({v, Dim(result.extents[at++])});
        values.emplace_back(v);
      }
      if (a.spread) names.spread.insert(a.name);
    }
    return result;
  }

  // --- scans
  // Within a scan every stage may read what the others have computed at earlier steps.
  void open_scan(size_t first) {
    for (size_t k = first; k < d_.stages.size() && d_.stages[k].scan == d_.stages[first].scan; k++)
      for (const Target& t : d_.stages[k].targets)
        attempt([&] {
          const Declared* result = outputs_.count(t.name) ? &outputs_[t.name] : nullptr;
          if (!result && t.type.empty()) return;  // readable once it is defined
          if (names_.tensors.count(t.name)) return;
          std::vector<size_t> widths;
          const Dims dims = extents_of(d_.stages[k], d_.stages[k].axes, result, widths);
          const Buffer b = make_buffer(hint(t.name), result ? result->type : type_of(t.type, t.at), to_shape(dims));
          names_.tensors[t.name] = b;
          group_[b.get()] = k;
        });
  }

  // --- stages
  void check_targets(const StageSyntax& s) {
    for (const Target& t : s.targets) {
      if (operands_.count(t.name)) fail(t.at, "'" + t.name + "' is an operand; a stage needs a name of its own");
      if (!defined_.insert(t.name).second) fail(t.at, "'" + t.name + "' is defined twice");
    }
    if (s.targets.size() > 1 && s.reduction != "fold" && s.results.empty())
      fail(s.at, "only a fold has several results");
    if (s.reduction == "fold" &&
        (s.values.size() != s.targets.size() || s.init.size() != s.targets.size() || s.lhs.size() != s.targets.size() ||
         s.rhs.size() != s.targets.size() || s.result.size() != s.targets.size()))
      fail(s.at, "a fold has a value, a beginning ('from'), two names and a joined value for each of its " +
                     count_text(s.targets.size()) + " results");
  }

  // The word for the stage in kernel names: that of a result is the operator's.
  std::string label_of(const StageSyntax& s) const {
    if (!s.label.empty()) return hint(s.label);
    const std::string& target = s.targets[0].name;
    return hint(mode_ != Mode::Fn && outputs_.count(target) ? snake_case(d_.name) : target);
  }

  void stage(const StageSyntax& s, size_t number) {
    check_targets(s);
    if (!s.results.empty()) return nest(s);
    const auto result = outputs_.find(s.targets[0].name);
    const Declared* declared = result == outputs_.end() ? nullptr : &result->second;
    Names names = names_;
    const Axes axes = bind_axes(s, s.axes, declared, names);
    if (s.scan >= 0 && (axes.list.empty() || s.axes[0].spread))
      fail(s.at, "the first axis of a stage in a scan is the step");
    for (const Target& t : s.targets)
      if (const auto o = outputs_.find(t.name);
          o != outputs_.end() && o->second.dims != axes.extents && mode_ != Mode::Trial)
        fail(t.at, "the axes of '" + t.name + "' are not those of its type");

    KnownFacts facts;
    for (const Axis& a : axes.list) facts.add_axis(a.var, a.extent.value);
    const Evaluator::Access access = [&](const Place& at, const Buffer& b, const Exprs& index,
                                         const KnownFacts& known) {
      check_access(s, number, axes, at, b, index, known);
    };
    Stage out;
    out.name = label_of(s);
    out.axes = axes.list;
    out.scan = s.scan;
    const std::vector<DType> types = declared_types(s);
    Evaluator outer(names, mode_, facts, access);
    Names inside = names;
    if (!s.reduction.empty()) {
      out.kind = Stage::Kind::Reduce;
      out.raxes = bind_axes(s, s.raxes, nullptr, inside).list;
      for (const Axis& a : out.raxes) facts.add_axis(a.var, a.extent.value);
    }
    Evaluator inner(inside, mode_, facts, access);
    for (size_t k = 0; k < s.values.size(); k++) out.values.push_back(inner.value(s.values[k], computed(types[k])));
    for (size_t k = 0; k < s.init.size(); k++) out.init.push_back(outer.value(s.init[k], out.values[k]->dtype));
    if (s.reduction == "fold") join(s, out);
    if (!s.reduction.empty() && s.reduction != "fold") reduce(s, out);
    finish(s, std::move(out), types, axes.extents, number);
  }

  void nest(const StageSyntax& s) {
    if (mode_ != Mode::Fn) fail(s.at, "loops are for functions of the compiler's (fn)");
    Stage out;
    out.kind = Stage::Kind::Nest;
    out.name = label_of(s);
    out.scan = s.scan;
    for (const Operand& o : s.results) {
      const Declared own{type_of(o.type, o.at), Evaluator(names_, mode_).sizes(o.sizes)};
      const auto declared = outputs_.find(o.name);
      if (declared != outputs_.end() && (declared->second.type != own.type || declared->second.dims != own.dims))
        fail(o.at, "the result '" + o.name + "' has another type");
      out.outputs.push_back(make_buffer(hint(o.name), own.type, to_shape(own.dims)));
      names_.tensors[o.name] = out.outputs.back();
    }
    out.nest = nest_of(s.loops, names_);
    result_.stages.push_back(std::move(out));
  }

  // Undefined where the value's own type is the target's.
  std::vector<DType> declared_types(const StageSyntax& s) const {
    std::vector<DType> types;
    for (const Target& t : s.targets) {
      const auto o = outputs_.find(t.name);
      const DType said = t.type.empty() ? DType::Undefined : type_of(t.type, t.at);
      if (o == outputs_.end()) {
        types.push_back(said);
        continue;
      }
      if (said != DType::Undefined && said != o->second.type)
        fail(t.at, "the result '" + t.name + "' has another type");
      types.push_back(o->second.type);
    }
    return types;
  }

  void reduce(const StageSyntax& s, Stage& out) const {
    const Op op = reduction_op(s.reduction);
    const DType t = out.values[0]->dtype;
    const bool logical = op == Op::And || op == Op::Or;
    const bool of_any = op == Op::Max || op == Op::Min;  // false is less than true
    if (logical != (t == DType::Bool) && !of_any)
      fail(s.values[0].at,
           s.reduction + " is of " + (logical ? "conditions" : "numbers") + ", not of " + std::string(info(t).name));
    out.combiner.op = op;
    if (out.init.empty()) out.init = {identity_of(op, t)};
    check(bool(out.init[0]), "a reduction has an identity");
  }

  void join(const StageSyntax& s, Stage& out) const {
    Names names = names_;
    names.tensors.clear();
    names.axes.clear();
    names.spread.clear();
    const auto bind = [&](const std::vector<std::string>& list, std::vector<Var>& vars) {
      for (size_t k = 0; k < list.size(); k++) {
        vars.push_back(make_var(hint(list[k]), out.values[k]->dtype));
        if (!names.axes.emplace(list[k], Exprs{Expr(vars.back())}).second)
          fail(s.at, "'" + list[k] + "' stands twice in the tuples that the fold joins");
      }
    };
    bind(s.lhs, out.combiner.lhs);
    bind(s.rhs, out.combiner.rhs);
    for (size_t k = 0; k < s.result.size(); k++) {
      out.combiner.result.push_back(Evaluator(names, mode_).value(s.result[k], out.values[k]->dtype));
    }
  }

  // The buffers, and stages that round to a narrow float what a reduction has computed as f32.
  void finish(const StageSyntax& s, Stage out, const std::vector<DType>& types, const Dims& extents, size_t number) {
    if (mode_ == Mode::Op) (void)num_elements(extents);
    std::vector<Stage> conversions;
    for (size_t k = 0; k < s.targets.size(); k++) {
      const std::string& name = s.targets[k].name;
      const DType type = types[k] == DType::Undefined ? out.values[k]->dtype : types[k];
      Buffer& b = names_.tensors[name];
      if (!b) b = make_buffer(hint(name), type, to_shape(extents));
      if (s.scan >= 0) group_[b.get()] = number;
      if (s.reduction.empty()) out.values[k] = narrowed(out.values[k], type);
      if (out.values[k]->dtype == type) {
        out.outputs.push_back(b);
        continue;
      }
      const Buffer wide = make_buffer(b->name, out.values[k]->dtype, to_shape(extents));
      out.outputs.push_back(wide);
      conversions.push_back(rounding_stage(out, wide, b));
    }
    result_.stages.push_back(std::move(out));
    for (Stage& c : conversions) result_.stages.push_back(std::move(c));
  }

  // --- accesses
  void check_access(const StageSyntax& s, size_t number, const Axes& axes, const Place& at, const Buffer& b,
                    const Exprs& index, const KnownFacts& known) const {
    if (mode_ != Mode::Op) return;
    if (const auto member = group_.find(b.get()); s.scan >= 0 && member != group_.end()) {
      const bool now = member->second < number;  // what a stage above has computed at this step may be read
      if (index.empty() || !known.is_nonnegative(Expr(axes.list[0].var) - index[0] - Expr(now ? 0 : 1)))
        fail(at, "'" + b->name + "' is of the same scan: this must read an earlier step, as in where(" +
                     axes.list[0].var->name + " > 0, " + b->name + "[" + axes.list[0].var->name + " - 1], 0)");
    }
    const Dims dims = static_dims(b->shape);
    for (size_t k = 0; k < dims.size(); k++)
      if (!known.is_inside(index[k], dims[k]))
        fail(at, "axis " + count_text(k) + " of '" + b->name + "' has " + tc::to_text(dims[k]) +
                     " elements, the index is " + known.range_text(index[k]) +
                     "; guard it as in where(i < n, x[i], 0), or let index(i, n) check it when the model runs");
  }

  const Definition& d_;
  Names names_;
  Mode mode_;
  Problems& problems_;
  Elaborated result_;
  std::set<std::string> operands_, defined_;
  std::map<std::string, Declared> outputs_;
  std::map<const BufferDef*, size_t> group_;  // of the scan that is open: number of the stage; looked up only
};

}  // namespace

Elaborated elaborate(const Definition& d, Names names, Mode mode, Problems& problems) {
  return Elaborator(d, std::move(names), mode, problems).run();
}

}  // namespace tc::language
