// The operations on strings, by the functions of the support text.
#include "ir/text.h"

#include "ir/interpreter/machine.h"
#include "ir/interpreter/strings.h"
#include "templates/text/tc_string.h"

namespace tc::interp {
namespace {

tc_string view(int64_t handle) {
  const std::string& s = StringPool::text(handle);
  return {s.data(), s.size()};
}

int64_t handle_of(Machine& m, std::string_view text) {
  check(m.options.strings != nullptr, "a run that makes strings has a pool for them");
  return m.options.strings->handle(text);
}
int64_t handle_of(Machine& m, tc_string s) { return handle_of(m, std::string_view(s.data, s.size)); }

template <class F>
void each(Machine& m, const Instr& i, F f) {
  const int n = m.count(i);
  const int64_t *a = m.reg<int64_t>(i.a), *b = m.reg<int64_t>(i.b);
  for (int k = 0; k < n; ++k)
    m.reg<int64_t>(i.dst)[k] = !i.varying || m.active(k / i.width) ? f(a[i.a_step ? k : 0], b[i.b_step ? k : 0]) : 0;
}

}  // namespace

Fn text_fn(Op op) {
  switch (op) {
    case Op::TextSize:
      return [](Machine& m, const Instr& i) { each(m, i, [](int64_t a, int64_t) { return tc_string_size(view(a)); }); };
    case Op::TextByte:
      return [](Machine& m, const Instr& i) {
        each(m, i, [](int64_t a, int64_t b) { return tc_string_byte(view(a), b); });
      };
    case Op::TextFrom:
      return [](Machine& m, const Instr& i) {
        each(m, i, [&](int64_t a, int64_t b) { return handle_of(m, tc_string_from(view(a), b)); });
      };
    case Op::TextFirst:
      return [](Machine& m, const Instr& i) {
        each(m, i, [&](int64_t a, int64_t b) { return handle_of(m, tc_string_first(view(a), b)); });
      };
    case Op::TextJoin:
      return [](Machine& m, const Instr& i) {
        each(m, i, [&](int64_t a, int64_t b) { return handle_of(m, StringPool::text(a) + StringPool::text(b)); });
      };
    case Op::TextLower:
    case Op::TextUpper:
      return op == Op::TextLower
                 ? Fn([](Machine& m, const Instr& i) {
                     each(m, i, [&](int64_t a, int64_t) { return handle_of(m, in_case(StringPool::text(a), false)); });
                   })
                 : Fn([](Machine& m, const Instr& i) {
                     each(m, i, [&](int64_t a, int64_t) { return handle_of(m, in_case(StringPool::text(a), true)); });
                   });
    default: return nullptr;
  }
}

}  // namespace tc::interp
