#include "ir/language/bind.h"

#include <algorithm>

#include "support/text.h"

namespace tc::language {
namespace {

constexpr int64_t kSampleSize = 3;
constexpr size_t kSampleRank = 2;  // of a list of sizes

// The sizes that a dimension names for the first time; others are compared.
bool is_new(const Formula& f, const Names& names) {
  return f.kind == Formula::Kind::Name && !names.constants.count(f.word) && f.word != "true" && f.word != "false" &&
         f.word != "inf" && f.word != "nan";
}

void check_spreads(const Operand& o) {
  const auto lists =
      std::count_if(o.sizes.begin(), o.sizes.end(), [](const Formula& f) { return f.kind == Formula::Kind::Spread; });
  if (lists > 1) fail(o.at, "an operand has one list of sizes at most");
}

Meaning meaning_of(const Attribute::Value& v, const std::string& type) {
  if (auto* i = std::get_if<int64_t>(&v)) return *i;
  if (auto* d = std::get_if<double>(&v)) return double(float(*d));
  if (auto* s = std::get_if<std::string>(&v)) return *s;
  if (auto* l = std::get_if<std::vector<int64_t>>(&v)) return *l;
  if (auto* l = std::get_if<std::vector<double>>(&v)) return *l;
  if (type == "int") return int64_t(1);
  if (type == "float") return 1.0;
  if (type == "string") return std::string();
  if (type == "ints") return std::vector<int64_t>();
  return std::vector<double>();
}

class NodeBinder {
 public:
  NodeBinder(const Definition& d, const SourceText& source, OpBuilder& b) : d_(d), source_(source), b_(b) {}

  Names run() {
    if (b_.num_inputs() > int(d_.inputs.size()))
      b_.reject("it has " + tc::to_text(int64_t(b_.num_inputs())) + " inputs, " + full_name(d_) + " takes at most " +
                tc::to_text(int64_t(d_.inputs.size())));
    if (b_.num_outputs() > int(d_.outputs.size()))
      b_.reject("it has " + tc::to_text(int64_t(b_.num_outputs())) + " outputs, " + full_name(d_) + " gives " +
                tc::to_text(int64_t(d_.outputs.size())));
    attributes();
    for (size_t k = 0; k < d_.inputs.size(); k++) operand(d_.inputs[k], int(k));
    return std::move(names_);
  }

 private:
  [[noreturn]] void reject(const Place& at, const std::string& why, int input = -1) const {
    b_.reject(why + " (" + place_text(source_, at) + ")", input);
  }

  void attributes() {
    for (const auto& [name, value] : b_.node().attrs)
      if (std::none_of(d_.attributes.begin(), d_.attributes.end(),
                       [&, n = name](const Attribute& a) { return a.name == n; }))
        b_.reject("attribute \"" + printable(name) + "\" is none of " + full_name(d_));
    for (const Attribute& a : d_.attributes) {
      if (std::holds_alternative<std::monostate>(a.otherwise) && !b_.has_attr(a.name))
        reject(a.at, "attribute " + a.name + " is missing");
      Meaning& m = names_.constants[a.name];
      if (a.type == "int") m = b_.attr_int(a.name);
      if (a.type == "float") m = double(b_.attr_float(a.name));
      if (a.type == "string") m = b_.attr_string(a.name);
      if (a.type == "ints") m = b_.attr_ints(a.name);
      if (a.type == "floats") {
        const std::vector<float> l = b_.attr_floats(a.name);
        m = std::vector<double>(l.begin(), l.end());
      }
    }
  }

  void operand(const Operand& o, int input) {
    if (o.optional) names_.optional.insert(o.name);
    if (o.optional && !b_.has(input)) {
      names_.tensors[o.name] = nullptr;
      return;
    }
    const Tensor t = b_.in(input);
    names_.tensors[o.name] = t.buffer();
    type(o, t.dtype(), input);
    sizes(o, t.dims(), input);
  }

  void type(const Operand& o, DType given, int input) {
    const std::string found(info(given).name);
    if (const auto fixed = element_type_of(o.type)) {
      if (*fixed != given) reject(o.at, o.name + " is " + o.type + ", not " + found, input);
      return;
    }
    if (const auto [known, fresh] = names_.types.emplace(o.type, given); !fresh) {
      if (known->second != given)
        reject(
            o.at,
            o.type + " is " + std::string(info(known->second).name) + " by the operands before, and " + found + " here",
            input);
      return;
    }
    for (const TypeParameter& p : d_.types) {
      if (p.name != o.type) continue;
      const std::vector<DType> set = types_of(p);
      if (std::find(set.begin(), set.end(), given) == set.end())
        reject(o.at, o.name + " is " + join(p.types, " or ") + ", not " + found, input);
    }
  }

  void sizes(const Operand& o, const Dims& dims, int input) {
    const bool open =
        std::any_of(o.sizes.begin(), o.sizes.end(), [](const Formula& f) { return f.kind == Formula::Kind::Spread; });
    const size_t least = o.sizes.size() - (open ? 1 : 0);
    if (dims.size() < least || (!open && dims.size() != least))
      reject(o.at,
             o.name + " has " + (open ? "at least " : "") + "rank " + tc::to_text(int64_t(least)) + ", not " +
                 tc::to_text(int64_t(dims.size())),
             input);
    size_t at = 0;
    for (const Formula& f : o.sizes) {
      const size_t width = f.kind == Formula::Kind::Spread ? dims.size() - least : 1;
      const Dims own(dims.begin() + std::ptrdiff_t(at), dims.begin() + std::ptrdiff_t(at + width));
      size(o, f, own, at, input);
      at += width;
    }
  }

  void size(const Operand& o, const Formula& f, const Dims& given, size_t axis, int input) {
    const auto differs = [&](const std::string& said, const std::string& found) {
      reject(f.at,
             "axis " + tc::to_text(int64_t(axis)) + " of " + o.name + " has " + found + " elements, " + to_text(f) +
                 " is " + said,
             input);
    };
    if (f.kind == Formula::Kind::Spread) {
      const auto [known, fresh] = names_.lists.emplace(f.word, given);
      if (!fresh && known->second != given)
        reject(f.at,
               "the sizes " + to_text(f) + " of " + o.name + " are " + tc::to_text(to_shape(given)) +
                   ", before they were " + tc::to_text(to_shape(known->second)),
               input);
      return;
    }
    if (is_new(f, names_)) {
      names_.constants[f.word] = given[0];
      return;
    }
    try {
      const int64_t said = Evaluator(names_, Mode::Op).integer(f);
      if (said != given[0]) differs(tc::to_text(said), tc::to_text(given[0]));
    } catch (const FormulaError& e) {
      reject(e.problem.at, e.problem.message, input);
    }
  }

  const Definition& d_;
  const SourceText& source_;
  OpBuilder& b_;
  Names names_;
};

}  // namespace

std::vector<DType> types_of(const TypeParameter& t) {
  using enum DType;
  std::vector<DType> set;
  for (const std::string& word : t.types) {
    const bool floats = word == "float" || word == "number", ints = word == "int" || word == "number";
    if (floats) set.insert(set.end(), {F32, F64, F16, BF16});
    if (ints) set.insert(set.end(), {I64, I32, I16, I8, U64, U32, U16, U8});
    if (floats || ints) continue;
    const auto one = element_type_of(word);
    if (!one) fail(t.at, "no element type is called '" + word + "'; sets of types are float, int and number");
    set.push_back(*one);
  }
  return set;
}

Names bind_node(const Definition& d, const SourceText& source, OpBuilder& b) { return NodeBinder(d, source, b).run(); }

Names bind_samples(const Definition& d, const std::map<std::string, DType>& types) {
  Names names;
  names.types = types;
  for (const Attribute& a : d.attributes)
    if (!names.constants.emplace(a.name, meaning_of(a.otherwise, a.type)).second)
      fail(a.at, "'" + a.name + "' is an attribute already");
  for (const Operand& o : d.inputs) {
    check_spreads(o);
    if (o.optional) names.optional.insert(o.name);
    const auto parameter = types.find(o.type);
    const auto t = parameter != types.end() ? std::optional(parameter->second) : element_type_of(o.type);
    if (!t) fail(o.at, "no element type is called '" + o.type + "'");
    for (const Formula& f : o.sizes) {
      if (f.kind == Formula::Kind::Spread)
        names.lists.emplace(f.word, Dims(kSampleRank, kSampleSize));
      else if (is_new(f, names))
        names.constants[f.word] = kSampleSize;
    }
    const Dims dims = Evaluator(names, Mode::Trial).sizes(o.sizes);
    if (!names.tensors.emplace(o.name, make_buffer(o.name, *t, to_shape(dims))).second)
      fail(o.at, "'" + o.name + "' is an operand already");
  }
  return names;
}

}  // namespace tc::language
