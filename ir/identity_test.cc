// Every field of every struct is changed by itself, in a function, kernel or program that has the struct in it.
#include "ir/identity.h"

#include <gtest/gtest.h>

#include "ir/fields.h"
#include "ir/loop/build.h"

namespace tc::identity_test {
namespace {

// --- another value of each type
template <class T>
void change(T& v) requires std::is_integral_v<T> || std::is_enum_v<T> {
  v = T(int(v) + 1);
}
void change(bool& v) { v = !v; }
void change(double& v) { v += 1; }
void change(std::string& s) { s += "x"; }
void change(ModelText& name) { name = ModelText("other"); }
template <class T>
void change(std::vector<T>& list) {
  list.push_back(T{});
}
template <class T>
void change(std::optional<T>& v) {
  v = T{};
}
template <class T>
void change(std::shared_ptr<const T>& p) {
  p = std::make_shared<const T>();
}
void change(Expr& e) { e = Expr(7); }
void change(Stmt& s) { s = barrier(Scope::Shared); }
template <class... K>
void change(std::variant<K...>& v) {
  v = std::variant_alternative_t<1, std::variant<K...>>{};
}
template <class S>
void change(S& s) requires std::is_class_v<S> {
  bool first = true;  // a struct in a struct: its first field
  for_each_field(s, [&](const char*, const auto& field) {
    if (first) change(const_cast<std::decay_t<decltype(field)>&>(field));
    first = false;
  });
}

// --- where a struct stands
std::string identity(const Program& p) { return identity_of(p); }
std::string identity(const Kernel& k) { return identity_of(k); }
std::string identity(const TensorFn& fn) { return identity_of(fn); }
std::string identity(const Stage& s) { return identity_of(TensorFn{{}, {s}, {}}); }
std::string identity(const Axis& a) {
  Stage s;
  s.axes = {a};
  return identity(s);
}
std::string identity(const Combiner& c) {
  Stage s;
  s.combiner = c;
  return identity(s);
}
std::string identity(const Dim& d) { return identity(Axis{nullptr, d}); }
std::string identity(const VarDef& v) { return identity(Axis{std::make_shared<VarDef>(v), {}}); }
std::string identity(const BufferDef& b) { return identity_of(TensorFn{{std::make_shared<BufferDef>(b)}, {}, {}}); }
std::string identity(const Step& s) {
  Program p;
  p.steps = {s};
  return identity_of(p);
}
std::string identity(const Operand& o) { return identity(Step{ContinueStep{o}}); }

template <class T, class V>
struct IsAlternative;
template <class T, class... K>
struct IsAlternative<T, std::variant<K...>> : std::bool_constant<(std::is_same_v<T, K> || ...)> {};

template <class T>
std::string identity(const T& s) requires(IsAlternative<T, decltype(StmtNode::kind)>::value) {
  return identity_of(Stmt(std::make_shared<const StmtNode>(StmtNode{s})));
}
template <class T>
std::string identity(const T& e) requires(IsAlternative<T, decltype(ExprNode::kind)>::value) {
  return identity(While{Expr(std::make_shared<const ExprNode>(ExprNode{DType::I64, false, e})), {}});
}
template <class T>
std::string identity(const T& s) requires(IsAlternative<T, decltype(Step::kind)>::value) {
  return identity(Step{s});
}
template <class T>
std::string identity_in(std::vector<T> Program::*list, const T& x) {
  Program p;
  (p.*list) = {x};
  return identity_of(p);
}
std::string identity(const Slot& x) { return identity_in(&Program::slots, x); }
std::string identity(const Weight& x) { return identity_in(&Program::weights, x); }
std::string identity(const IoTensor& x) { return identity_in(&Program::inputs, x); }
std::string identity(const Param& x) {
  Kernel k;
  k.params = {x};
  return identity_of(k);
}
std::string identity(const DeviceFunction& x) {
  Kernel k;
  k.device = {x};
  return identity_of(k);
}

template <class T>
constexpr bool kIsName = std::is_same_v<T, ModelText> || std::is_same_v<T, std::vector<ModelText>>;
template <class T>
constexpr bool kLeftOut = std::is_same_v<T, KernelWork> || std::is_same_v<T, std::function<Constant()>>;

// Changes each field of an S by itself.
template <class S>
void expect_all_count() {
  const std::string base = identity(S{});
  for_each_field(S{}, [&](const char* name, const auto& first) {
    S changed{};
    std::string_view wanted = name;
    using Field = std::decay_t<decltype(first)>;
    if constexpr (!kLeftOut<Field>) {
      if (std::is_same_v<S, Program> &&
          (wanted == "name" || wanted == "weights_layout" || wanted == "external_weights"))
        return;
      for_each_field(changed, [&](const char* n, const auto& field) {
        if constexpr (std::is_same_v<Field, std::decay_t<decltype(field)>>)
          if (wanted == n) change(const_cast<Field&>(field));
      });
      EXPECT_EQ(identity(changed) == base, kIsName<Field>) << typeid(S).name() << "::" << name;
    }
  });
}

template <class... S>
void expect_all_count_in() {
  (expect_all_count<S>(), ...);
}
template <class... S>
void expect_alternatives_count(const std::variant<S...>*) {
  expect_all_count_in<S...>();
}

TEST(Identity, EveryFieldOfAFunctionCounts) {
  expect_all_count_in<Dim, VarDef, BufferDef, Axis, Combiner, Stage, TensorFn>();
  expect_alternatives_count(static_cast<decltype(ExprNode::kind)*>(nullptr));
  expect_alternatives_count(static_cast<decltype(StmtNode::kind)*>(nullptr));
}

TEST(Identity, EveryFieldOfAKernelAndAProgramCounts) {
  expect_all_count_in<Param, DeviceFunction, Kernel, Operand, Step, Slot, Weight, IoTensor, Program>();
  expect_alternatives_count(static_cast<decltype(Step::kind)*>(nullptr));
}

TEST(Identity, KindsOfExpressionsAndTheirTypesCount) {
  const auto typed = [](DType t, bool vector) {
    return identity_of(Stmt(std::make_shared<const StmtNode>(
        StmtNode{While{Expr(std::make_shared<const ExprNode>(ExprNode{t, vector, Lanes{}})), {}}})));
  };
  EXPECT_NE(typed(DType::I64, false), typed(DType::I32, false));
  EXPECT_NE(typed(DType::I64, false), typed(DType::I64, true));
  EXPECT_NE(identity(IntImm{0}), identity(FloatImm{0}));
  EXPECT_NE(identity(FloatImm{0.0}), identity(FloatImm{-0.0}));
}

// x[i] + x[j] against x[i] + x[i]; the same with other objects of the same names.
TEST(Identity, VariablesAndBuffersCountByOrder) {
  const auto sum = [](bool same) {
    const Var i = make_var("i"), j = make_var("i");
    const Buffer x = make_buffer("x", DType::F32, to_shape({4})), y = make_buffer("y", DType::F32, to_shape({4, 4}));
    TensorFn fn{{x}, {Stage{}}, {y}};
    fn.stages[0].axes = {{i, 4}, {j, 4}};
    fn.stages[0].values = {load(x, {i}) + load(x, {same ? i : j})};
    fn.stages[0].outputs = {y};
    return identity_of(fn);
  };
  EXPECT_EQ(sum(false), sum(false));
  EXPECT_NE(sum(false), sum(true));
}

TEST(Identity, SharingDoesNotCount) {
  const Var i = make_var("i");
  const Expr e = Expr(i) * 3;
  EXPECT_EQ(identity(While{e + e, {}}), identity(While{Expr(i) * 3 + Expr(i) * 3, {}}));
}

// What a retrained model changes keeps its layout; what the executor does is part of it.
TEST(Identity, OfAProgramLeavesOutNamesAndNumbers) {
  Program p;
  p.name = "a";
  p.weights = {{ModelText("w"), "", scalar_constant(DType::F32, 1), "", 64}};
  LoopStep loop;
  loop.trips = 3;
  p.steps = {{loop}};
  Program q = p;
  q.name = "b";
  q.weights[0].name = ModelText("v");
  q.weights[0].data = scalar_constant(DType::F32, 2);
  EXPECT_EQ(identity_of(p), identity_of(q));
  std::get<LoopStep>(q.steps[0].kind).trips = 4;
  EXPECT_NE(identity_of(p), identity_of(q));
}

}  // namespace
}  // namespace tc::identity_test
