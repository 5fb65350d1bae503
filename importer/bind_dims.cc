// Step 4: every size of every input becomes a number. A symbolic size gets its value from --dim NAME=K, from
// --dim INPUT:AXIS=K or from --input-shape INPUT=AxBxC, and then has that value wherever its name stands in the model.
//
//   input x: float[batch, 3, H, W]  with  --dim batch=1 --input-shape x=1x3x224x224   ->   float[1, 3, 224, 224]
//
// A size that is bound to a range keeps its name, INPUT:AXIS where the model gives none, and the range goes to Context::ranges.
//
//   input x: float[batch, 3]  with  --dim batch=1..8   ->   float[batch, 3], batch from 1 to 8
//
// One that follows from others (--dim total=past+seq, or a name that says so, as exporters write it) is their sum.
//
// Leaves: the main graph's inputs with constant sizes or such names; outputs and bodies with the same names replaced.
#include <algorithm>

#include "importer/context.h"
#include "importer/states.h"
#include "ir/open_size.h"

namespace tc::importer {

namespace {

using Dimension = onnx::TensorShapeProto::Dimension;

class DimBinder {
 public:
  DimBinder(Context& c, onnx::ModelProto& m) : c_(c), model_(m) {
    for (const auto& t : m.graph().initializer()) initialized_.insert(t.name());
  }

  void run() {
    // Some exporters write "?" for a size that has no name.
    for (auto& v : *model_.mutable_graph()->mutable_input())
      if (v.type().has_tensor_type() && v.type().tensor_type().has_shape())
        for (auto& d : *v.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
          if (d.dim_param() == "?") d.clear_value();
    for (const auto& v : model_.graph().input()) collect_symbols(v.type());
    for (auto& v : *model_.mutable_graph()->mutable_input())
      if (is_open(v)) apply_shapes(v);
    for (const auto& [name, value] : c_.options.dims)
      if (name.find(':') == std::string::npos) bind(name, value, "--dim " + printable(name));
    resolve_sums();
    for (auto& v : *model_.mutable_graph()->mutable_input())
      if (is_open(v)) finish(v);
    report_unbound();
    report_unused();
    limit_states(c_, model_.graph(), find_states(c_, model_.graph(), true));  // later steps rename outputs' symbols
    for_each_graph(*model_.mutable_graph(), [&](onnx::GraphProto& g) {
      for (auto& v : *g.mutable_input()) replace(*v.mutable_type());
      for (auto& v : *g.mutable_output()) replace(*v.mutable_type());
      for (auto& v : *g.mutable_value_info()) replace(*v.mutable_type());
    });
  }

 private:
  /// Inputs with sizes to bind: tensors without a default value.
  bool is_open(const onnx::ValueInfoProto& v) const {
    return v.type().has_tensor_type() && !initialized_.count(v.name());
  }

  void collect_symbols(const onnx::TypeProto& type) {
    const onnx::TypeProto* t = &type;
    while (t->has_sequence_type() || t->has_optional_type())
      t = t->has_sequence_type() ? &t->sequence_type().elem_type() : &t->optional_type().elem_type();
    for (const auto& d : t->tensor_type().shape().dim())
      if (!d.dim_param().empty()) symbols_.insert(d.dim_param());
  }

  // Bounds of sums are known when all others are bound; sums of sums take several rounds.
  void resolve_sums() {
    std::set<std::string> named = symbols_;
    for (const auto& v : model_.graph().output())
      for (const auto& d : v.type().tensor_type().shape().dim())
        if (!d.dim_param().empty()) named.insert(d.dim_param());
    for (const std::string& symbol : named)
      if (sizes_.count(symbol) == 0)
        if (const auto e = parse_size_expression(symbol); e && e->terms != SizeExpression{{{symbol, 1}}, 0}.terms)
          sizes_.emplace(symbol, *e);
    for (const auto& [name, range] : sizes_)
      if (!range.follows() && !range.is_fixed()) {
        Dim d = Dim::symbolic(name, range.most);
        d.least = range.least;
        c_.ranges.emplace(name, d);
      }
    for (bool again = true; again;) {
      again = false;
      for (auto& [name, range] : sizes_)
        again = (range.follows() && c_.ranges.count(name) == 0 && resolve(name, range)) || again;
    }
    std::erase_if(sizes_, [&](const auto& s) {
      if (!s.second.follows() || c_.ranges.count(s.first) != 0) return false;
      if (c_.options.dims.count(s.first) != 0) report_open_sum(s.first, s.second);
      return true;
    });
  }

  /// True if all sizes that it follows from are known now.
  bool resolve(const std::string& name, SizeRange& range) {
    std::vector<DimTerm> terms;
    int64_t addend = range.sum.addend;
    const auto add = [&](const DimTerm& t) {
      const auto known =
          std::find_if(terms.begin(), terms.end(), [&](const DimTerm& o) { return o.symbol == t.symbol; });
      if (known == terms.end())
        terms.push_back(t);
      else
        known->factor += t.factor;
    };
    for (const auto& [symbol, factor] : range.sum.terms) {
      const auto it = sizes_.find(symbol);
      if (it == sizes_.end()) return false;
      if (it->second.is_fixed()) {
        addend = checked_add(addend, checked_mul(factor, it->second.most));
      } else if (!it->second.follows()) {
        add({symbol, factor, it->second.least, it->second.most});
      } else {
        const auto sum = c_.ranges.find(symbol);
        if (sum == c_.ranges.end()) return false;
        addend = checked_add(addend, checked_mul(factor, sum->second.addend));
        for (const DimTerm& t : sum->second.terms) add({t.symbol, checked_mul(t.factor, factor), t.least, t.most});
      }
    }
    for (const auto& [symbol, factor] : range.sum.terms) used_.insert(symbol);
    std::erase_if(terms, [](const DimTerm& t) { return t.factor == 0; });
    if (terms.empty()) {
      if (addend < 0)
        c_.error("TC0152", ExitCode::Usage, nullptr,
                 "dimension " + quoted(name) + " is " + to_text(range) + ", that is " + to_text(addend));
      range = SizeRange(std::max<int64_t>(0, addend));
      return false;
    }
    c_.ranges.emplace(name, sum_of(std::move(terms), addend));
    return true;
  }

  void report_open_sum(const std::string& name, const SizeRange& range) {
    std::vector<std::string> open;
    for (const auto& [symbol, factor] : range.sum.terms)
      if (sizes_.count(symbol) == 0 || (sizes_.at(symbol).follows() && c_.ranges.count(symbol) == 0))
        open.push_back(printable(symbol));
    c_.error("TC0152", ExitCode::Usage, nullptr,
             "--dim " + printable(name) + "=" + printable(to_text(range)) + ": " + join(open, " and ") + " has no size",
             {"give it one: --dim " + open.at(0) + "=1..8 (for example)"});
  }

  void bind(const std::string& symbol, SizeRange value, const std::string& by) {
    if (value.least < 0) return c_.error("TC0152", ExitCode::Usage, nullptr, by + ": a size cannot be negative");
    if (value.most < value.least)
      return c_.error("TC0152", ExitCode::Usage, nullptr, by + "=" + to_text(value) + ": the range is empty");
    const auto [it, added] = sizes_.emplace(symbol, value);
    if (!added && it->second != value)
      c_.error("TC0152", ExitCode::Usage, nullptr,
               by + "=" + to_text(value) + ": dimension " + quoted(symbol) + " is already " + to_text(it->second));
  }

  /// Gives `d` the value that the command line states for it.
  void set(const onnx::ValueInfoProto& v, Dimension& d, int axis, SizeRange value, const std::string& by) {
    if (value.least < 0) return c_.error("TC0152", ExitCode::Usage, nullptr, by + ": a size cannot be negative");
    if (d.has_dim_value() && d.dim_value() >= 0 && value != d.dim_value())
      return c_.error("TC0152", ExitCode::Usage, nullptr,
                      by + "=" + to_text(value) + ": the model fixes axis " + to_text(int64_t(axis)) + " of input " +
                          quoted(v.name()) + " to " + to_text(d.dim_value()));
    if (d.dim_param().empty() && !value.is_fixed()) d.set_dim_param(v.name() + ":" + to_text(int64_t(axis)));
    if (!d.dim_param().empty()) return bind(d.dim_param(), value, by);
    d.set_dim_value(value.most);
  }

  void apply_shapes(onnx::ValueInfoProto& v) {
    auto& tensor = *v.mutable_type()->mutable_tensor_type();
    if (const auto it = c_.options.input_shapes.find(v.name()); it != c_.options.input_shapes.end()) {
      used_.insert(v.name());
      const std::string by = "--input-shape " + printable(v.name());
      const bool had_rank = tensor.has_shape();
      auto& shape = *tensor.mutable_shape();
      if (had_rank && shape.dim_size() != int(it->second.size())) {
        c_.error("TC0152", ExitCode::Usage, nullptr,
                 by + " has " + to_text(int64_t(it->second.size())) + " sizes, the input has rank " +
                     to_text(int64_t(shape.dim_size())));
      } else {
        while (shape.dim_size() < int(it->second.size())) shape.add_dim();
        for (int k = 0; k < shape.dim_size(); ++k) set(v, *shape.mutable_dim(k), k, it->second[size_t(k)], by);
      }
    }
    for (int k = 0; k < tensor.shape().dim_size(); ++k) {
      const std::string key = v.name() + ":" + to_text(int64_t(k));
      if (const auto it = c_.options.dims.find(key); it != c_.options.dims.end()) {
        used_.insert(key);
        set(v, *tensor.mutable_shape()->mutable_dim(k), k, it->second, "--dim " + printable(key));
      }
    }
  }

  void finish(onnx::ValueInfoProto& v) {
    auto& tensor = *v.mutable_type()->mutable_tensor_type();
    const std::string who = "input " + quoted(v.name());
    const std::string flag = "--input-shape " + printable(v.name()) + "=";
    if (!tensor.has_shape())
      return c_.reject("TC0150", nullptr, who + " has no shape",
                       {"give it one: " + flag + "1x3x224x224 (for example)"});
    Dims dims;
    bool open = false;
    std::vector<std::string> nameless;  // axes
    for (int k = 0; k < tensor.shape().dim_size(); ++k) {
      Dimension& d = *tensor.mutable_shape()->mutable_dim(k);
      const std::string symbol = d.dim_param();
      if (const auto it = sizes_.find(symbol); !symbol.empty() && it != sizes_.end()) {
        if (it->second.is_fixed()) d.set_dim_value(it->second.most);
        dims.push_back(it->second.is_fixed() ? it->second.most : c_.ranges.at(symbol).value);
        continue;
      }
      if (d.has_dim_value() && d.dim_value() >= 0) {
        dims.push_back(d.dim_value());
        continue;
      }
      open = true;
      if (!symbol.empty())
        note_unbound(symbol, v.name(), k);
      else if (d.has_dim_value())
        c_.reject("TC0150", nullptr,
                  who + " has the size " + to_text(d.dim_value()) + " on axis " + to_text(int64_t(k)) +
                      "; code is made for fixed sizes",
                  {"give it one: --dim " + printable(v.name()) + ":" + to_text(int64_t(k)) + "=1 (for example)"});
      else
        nameless.push_back(to_text(int64_t(k)));
    }
    if (!nameless.empty()) {
      std::string flags;
      for (const std::string& axis : nameless) flags += " --dim " + printable(v.name()) + ":" + axis + "=1";
      c_.reject("TC0150", nullptr,
                who + " has no size on axis " + join(nameless, " and ") + "; code is made for fixed sizes",
                {"give it one:" + flags + " (for example)"});
    }
    if (!open) check_size(who, tensor.elem_type(), dims);
  }

  /// A symbolic size without a value, and the axes where it stands: "x" axis 0, "z" axis 0 and 1.
  void note_unbound(const std::string& symbol, const std::string& input, int axis) {
    if (!unbound_axes_.count(symbol)) unbound_.push_back(symbol);
    auto& axes = unbound_axes_[symbol];
    if (axes.empty() || axes.back().first != input) axes.push_back({input, {}});
    axes.back().second.push_back(to_text(int64_t(axis)));
  }

  void report_unbound() {
    constexpr size_t kMost = 4;  // inputs that a message names
    for (const std::string& symbol : unbound_) {
      const auto& axes = unbound_axes_[symbol];
      std::vector<std::string> named;
      for (size_t k = 0; k < axes.size() && k < kMost; ++k)
        named.push_back(quoted(axes[k].first) + " axis " + join(axes[k].second, " and "));
      const size_t more = axes.size() - named.size();
      c_.reject("TC0150", nullptr,
                "the symbolic size " + quoted(symbol) +
                    " has no value; code is made for fixed sizes. It is that of input" +
                    (axes.size() == 1 ? " " : "s ") + join(named, ", ") +
                    (more > 0 ? " and of " + to_text(int64_t(more)) + " more" : ""),
                {"give it one: --dim " + printable(symbol) + "=1 (for example), or a range: --dim " +
                 printable(symbol) + "=1..8"});
    }
  }

  void check_size(const std::string& who, int type, const Dims& dims) {
    try {
      checked_mul(num_elements(dims), std::max(1, info(DType(type)).bytes));
    } catch (const Error&) {
      const bool grows = std::any_of(dims.begin(), dims.end(), [](int64_t d) { return tc::is_open(d); });
      c_.error(
          "TC0501", ExitCode::Limit, nullptr, who + ": its size in bytes does not fit in 64 bits",
          grows ? std::vector<std::string>{"a tensor may have one size without an upper bound: give others one, --dim "
                                           "NAME=1..64 (for example)"}
                : std::vector<std::string>{});
    }
  }

  void report_unused() {
    std::vector<std::string> known;
    for (const std::string& s : symbols_) known.push_back(printable(s));
    const std::string have =
        known.empty() ? "the model has no symbolic dimensions" : "the model has: " + join(known, ", ");
    for (const auto& [name, value] : c_.options.dims)
      if (!used_.count(name) && !symbols_.count(name))
        c_.error("TC0151", ExitCode::Usage, nullptr, "--dim " + printable(name) + " names no dimension of an input",
                 {have});
    std::vector<std::string> inputs;
    for (const auto& v : model_.graph().input())
      if (is_open(v)) inputs.push_back(printable(v.name()));
    for (const auto& [name, shape] : c_.options.input_shapes)
      if (!used_.count(name))
        c_.error("TC0151", ExitCode::Usage, nullptr, "--input-shape " + printable(name) + " names no tensor input",
                 {"the model has: " + join(inputs, ", ")});
  }

  void replace(onnx::TypeProto& type) {
    onnx::TypeProto* t = &type;
    while (t->has_sequence_type() || t->has_optional_type())
      t = t->has_sequence_type() ? t->mutable_sequence_type()->mutable_elem_type()
                                 : t->mutable_optional_type()->mutable_elem_type();
    if (!t->has_tensor_type() || !t->tensor_type().has_shape()) return;
    for (auto& d : *t->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      if (d.has_dim_value() && d.dim_value() < 0) d.clear_value();
      if (d.dim_param().empty()) continue;
      if (const auto it = sizes_.find(d.dim_param()); it != sizes_.end() && it->second.is_fixed())
        d.set_dim_value(it->second.most);
    }
  }

  Context& c_;
  onnx::ModelProto& model_;
  std::set<std::string> initialized_, used_, symbols_;
  std::map<std::string, SizeRange> sizes_;
  std::vector<std::string> unbound_;  // symbols in the order in which they are met
  std::map<std::string, std::vector<std::pair<std::string, std::vector<std::string>>>> unbound_axes_;
};

}  // namespace

void bind_dims(Context& c, onnx::ModelProto& m) { DimBinder(c, m).run(); }

}  // namespace tc::importer

namespace tc {

std::string to_text(const SizeRange& r) {
  if (r.follows()) return to_text(r.sum);
  if (r.is_fixed()) return to_text(r.most);
  return to_text(r.least) + ".." + (is_open(r.most) ? "" : to_text(r.most));
}

}  // namespace tc
