#include "passes/schedule/apply_step.h"

#include <algorithm>
#include <map>

#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "support/interrupt.h"
#include "support/text.h"

namespace tc {
namespace {

// What a line says, as loops, buffers, numbers and words of the schedule that it is for.
class Arguments {
 public:
  Arguments(const Schedule& s, const PlanLine& line, bool gpu) : s_(s), line_(line), gpu_(gpu) {
    const std::map<const void*, std::string> names = printed_names(s.body());
    for (const Var& v : s.loops()) loops_[names.at(v.get())] = v;
    auto add = [&](const Buffer& b) { buffers_[names.at(b.get())] = b; };
    walk(
        s.body(),
        [&](const Stmt& x) {
          if (const Store* k = as<Store>(x)) add(k->buffer);
          if (const Alloc* k = as<Alloc>(x)) add(k->buffer);
          return true;
        },
        [&](const Expr& e) {
          if (const Load* k = as<Load>(e)) add(k->buffer);
          return true;
        });
  }

  bool gpu() const { return gpu_; }
  size_t size() const { return line_.args.size(); }
  bool has(size_t i) const { return i < size(); }
  const std::vector<std::string>& results() const { return line_.results; }

  Var loop(size_t i) const { return find(loops_, argument(i, "a loop"), i, "a loop"); }
  Buffer buffer(size_t i) const { return buffer_of(argument(i, "a buffer"), i); }
  int64_t number(size_t i, const std::string& what) const {
    // Sums and products with the extents of loops are numbers of 64 bits, too.
    constexpr int64_t kMost = int64_t(1) << 40;
    const auto* n = std::get_if<int64_t>(&argument(i, what).value);
    if (n && (*n < -kMost || *n > kMost))
      refuse("argument " + to_text(int64_t(i + 1)) + " is a number from " + to_text(-kMost) + " to " + to_text(kMost),
             i);
    if (n) return *n;
    refuse("argument " + to_text(int64_t(i + 1)) + " is " + what + ", a number", i);
  }
  /// The position of the word in `words`; `otherwise` if there is no such argument.
  size_t word(size_t i, const std::vector<std::string>& words, std::optional<size_t> otherwise = std::nullopt) const {
    if (!has(i) && otherwise) return *otherwise;
    const auto* w = std::get_if<std::string>(&argument(i, "a word").value);
    const auto at = w ? std::find(words.begin(), words.end(), *w) : words.end();
    if (at == words.end()) refuse("argument " + to_text(int64_t(i + 1)) + " is one of " + join(words, ", "), i);
    return size_t(at - words.begin());
  }
  /// Whether the last argument is this word, and no loop of that name.
  bool ends_in(const std::string& word) const {
    const auto* w = size() > 0 ? std::get_if<std::string>(&line_.args.back().value) : nullptr;
    return w && *w == word && loops_.count(word) == 0;
  }
  /// All arguments from there on, but for the last `rest`.
  std::vector<Var> loops_from(size_t first, size_t rest = 0) const {
    std::vector<Var> list;
    for (size_t i = first; i + rest < size(); i++) list.push_back(loop(i));
    return list;
  }
  std::vector<int64_t> numbers_from(size_t first, const std::string& what) const {
    std::vector<int64_t> list;
    for (size_t i = first; i < size(); i++) list.push_back(number(i, what));
    return list;
  }
  /// A list of numbers; empty if there is no such argument.
  std::vector<int64_t> number_list(size_t i, const std::string& what) const {
    std::vector<int64_t> all;
    if (!has(i)) return all;
    const auto* list = std::get_if<StepArg::List>(&argument(i, what).value);
    if (!list) refuse("argument " + to_text(int64_t(i + 1)) + " is " + what + ", a list of numbers", i);
    for (const StepArg& x : *list) {
      const auto* n = std::get_if<int64_t>(&x.value);
      if (!n) refuse("argument " + to_text(int64_t(i + 1)) + " is " + what + ", a list of numbers", i);
      all.push_back(*n);
    }
    return all;
  }
  /// One buffer, or a list of them.
  std::vector<Buffer> buffers(size_t i) const {
    const StepArg& a = argument(i, "a buffer or a list of buffers");
    std::vector<Buffer> list;
    if (const auto* several = std::get_if<StepArg::List>(&a.value))
      for (const StepArg& x : *several) list.push_back(buffer_of(x, i));
    else
      list.push_back(buffer_of(a, i));
    return list;
  }

  std::string text(size_t i, const std::string& what) const {
    if (const auto* t = std::get_if<StepArg::Text>(&argument(i, what).value)) return t->text;
    refuse("argument " + to_text(int64_t(i + 1)) + " is " + what + ", a text in quotes", i);
  }

  void require_at_most(size_t n) const {
    if (size() > n) refuse("it takes " + to_text(int64_t(n)) + " arguments at most", n);
  }
  [[noreturn]] void refuse(const std::string& why, std::optional<size_t> argument = std::nullopt) const {
    throw ScheduleError(language::print(line_) + ": " + why + "\n" + to_text(s_.body(), 1), argument);
  }

 private:
  const StepArg& argument(size_t i, const std::string& what) const {
    if (!has(i)) refuse("argument " + to_text(int64_t(i + 1)) + " is missing: " + what);
    return line_.args[i];
  }
  template <class T>
  const T& find(const std::map<std::string, T>& list, const StepArg& a, size_t i, const std::string& what) const {
    const auto* name = std::get_if<std::string>(&a.value);
    if (!name) refuse("it is told the name of " + what + " here", i);
    const auto it = list.find(*name);
    if (it != list.end()) return it->second;
    std::vector<std::string> all;
    for (const auto& [n, _] : list) all.push_back(n);
    refuse("there is no " + what.substr(2) + " " + *name + (all.empty() ? "" : "; there are " + join(all, ", ")), i);
  }
  Buffer buffer_of(const StepArg& a, size_t i) const { return find(buffers_, a, i, "a buffer"); }

  const Schedule& s_;
  const PlanLine& line_;
  const bool gpu_;
  std::map<std::string, Var> loops_;
  std::map<std::string, Buffer> buffers_;
};

Tail tail_of(const Arguments& a, size_t i) { return a.word(i, {"guard", "min"}, 0) == 1 ? Tail::Min : Tail::Guard; }

Scope scope_of(const Arguments& a, size_t i, std::optional<size_t> otherwise = std::nullopt) {
  static constexpr Scope kScopes[] = {Scope::Register, Scope::Stack, Scope::Workspace, Scope::Shared};
  std::vector<std::string> words;
  for (const Scope s : kScopes) words.push_back(scope_name(s));
  return kScopes[a.word(i, words, otherwise)];
}
constexpr size_t kRegister = 0, kWorkspace = 2;

void annotate(Schedule& s, const Arguments& a) { s.annotate(a.loop(0), a.text(1, "what is said of the loop")); }

void bind(Schedule& s, const Arguments& a) {
  static constexpr ForKind kKinds[] = {ForKind::BlockX,  ForKind::BlockY,  ForKind::BlockZ,
                                       ForKind::ThreadX, ForKind::ThreadY, ForKind::ThreadZ};
  std::vector<std::string> words;
  for (const ForKind k : kKinds) words.push_back(std::string(kind_name(k)));
  if (!a.gpu()) a.refuse("the C target has no blocks and threads; parallel shares a loop among threads");
  s.bind(a.loop(0), kKinds[a.word(1, words)]);
}

void parallel(Schedule& s, const Arguments& a) {
  if (a.gpu()) a.refuse("a GPU has blocks and threads: bind");
  s.parallel(a.loop(0));
}

void rename(Schedule& s, const Arguments& a) {
  if (a.results().size() != 1) a.refuse("the new name stands behind 'as'");
  s.rename(a.loop(0), a.results()[0]);
}

void bind_reduction(Schedule& s, const Arguments& a) {
  if (!a.gpu()) a.refuse("threads of a GPU share sums; those of a CPU do not");
  s.bind_reduction(a.loop(0));
}

void blockize(Schedule& s, const Arguments& a) { s.blockize(a.loop(0)); }
void cache_read(Schedule& s, const Arguments& a) { s.cache_read(a.buffer(0), a.loop(1), scope_of(a, 2)); }
void cache_write(Schedule& s, const Arguments& a) { s.cache_write(a.buffer(0), a.loop(1), scope_of(a, 2)); }
void compute_at(Schedule& s, const Arguments& a) { s.compute_at(a.buffer(0), a.loop(1), scope_of(a, 2, kWorkspace)); }
void compute_inline(Schedule& s, const Arguments& a) { s.compute_inline(a.buffer(0)); }
void decompose_reduction(Schedule& s, const Arguments& a) {
  s.decompose_reduction(a.loop(0), scope_of(a, 1, kRegister));
}
void double_buffer(Schedule& s, const Arguments& a) { s.pipeline(a.buffers(0), 2); }
void fuse(Schedule& s, const Arguments& a) {
  const bool let = a.ends_in("let");
  s.fuse(a.loops_from(0, let ? 1 : 0), {{}, let});
}
void pack(Schedule& s, const Arguments& a) {
  s.pack(a.buffer(0), a.number_list(1, "the order of the dimensions"), a.number_list(2, "dimensions that are cut"),
         a.number_list(3, "the tiles"));
}
void pad(Schedule& s, const Arguments& a) {
  s.pad(a.loop(0), a.number(1, "a multiple"),
        a.word(2, {"guard", "identity"}, 0) == 1 ? PadWith::Identity : PadWith::Guard);
}
void partition(Schedule& s, const Arguments& a) { s.partition(a.loop(0), a.numbers_from(1, "an iteration")); }
void pipeline(Schedule& s, const Arguments& a) { s.pipeline(a.buffers(0), a.number(1, "how many stages there are")); }
void prefetch(Schedule& s, const Arguments& a) {
  if (a.gpu()) a.refuse("other threads work while one waits for memory; pipeline and double_buffer copy ahead");
  s.prefetch(a.buffer(0), a.loop(1), a.number(2, "the distance"));
}
void reorder(Schedule& s, const Arguments& a) { s.reorder(a.loops_from(0)); }
void reverse_compute_at(Schedule& s, const Arguments& a) { s.reverse_compute_at(a.buffer(0), a.loop(1)); }
void rfactor(Schedule& s, const Arguments& a) { s.rfactor(a.loop(0), scope_of(a, 1, kRegister)); }
void set_scope(Schedule& s, const Arguments& a) { s.set_scope(a.buffer(0), scope_of(a, 1)); }
void split(Schedule& s, const Arguments& a) {
  const bool let = a.has(3) && a.word(3, {"let"}) == 0;
  s.split(a.loop(0), a.number(1, "the factor"), tail_of(a, 2), {{}, let});
}
void storage_align(Schedule& s, const Arguments& a) {
  const int64_t dimension = a.number(1, "a dimension"), factor = a.number(2, "the factor");
  if (dimension < 0) a.refuse("dimensions count from 0");
  s.storage_align(a.buffer(0), size_t(dimension), factor, a.has(3) ? a.number(3, "the offset") : 0);
}
void tile(Schedule& s, const Arguments& a) {
  s.tile(a.loop(0), a.loop(1), a.number(2, "the first factor"), a.number(3, "the second factor"), tail_of(a, 4));
}
void tensorize(Schedule& s, const Arguments& a) {
  if (a.gpu()) a.refuse("instructions of a GPU are a warp's; vectorize makes accesses of 16 bytes of a thread's");
  const std::vector<std::string> names = tensorizable_instructions();
  s.tensorize(a.loop(0), names[a.word(1, names)]);
}
void transform_layout(Schedule& s, const Arguments& a) {
  s.transform_layout(a.buffer(0), a.numbers_from(1, "a dimension"));
}
void unroll(Schedule& s, const Arguments& a) { s.unroll(a.loop(0)); }
void vectorize(Schedule& s, const Arguments& a) { s.vectorize(a.loop(0)); }

struct StepRow {
  std::string_view name;
  void (*take)(Schedule& s, const Arguments& a);
  size_t most;  // arguments
};
constexpr size_t kAny = SIZE_MAX;
constexpr StepRow kSteps[] = {
    {"annotate", annotate, 2},
    {"bind", bind, 2},
    {"bind_reduction", bind_reduction, 1},
    {"blockize", blockize, 1},
    {"cache_read", cache_read, 3},
    {"cache_write", cache_write, 3},
    {"compute_at", compute_at, 3},
    {"compute_inline", compute_inline, 1},
    {"decompose_reduction", decompose_reduction, 2},
    {"double_buffer", double_buffer, 1},
    {"fuse", fuse, kAny},
    {"pack", pack, 4},
    {"pad", pad, 3},
    {"parallel", parallel, 1},
    {"partition", partition, kAny},
    {"pipeline", pipeline, 2},
    {"prefetch", prefetch, 3},
    {"rename", rename, 1},
    {"reorder", reorder, kAny},
    {"reverse_compute_at", reverse_compute_at, 2},
    {"rfactor", rfactor, 2},
    {"set_scope", set_scope, 2},
    {"split", split, 4},
    {"storage_align", storage_align, 4},
    {"tensorize", tensorize, 2},
    {"tile", tile, 5},
    {"transform_layout", transform_layout, kAny},
    {"unroll", unroll, 1},
    {"vectorize", vectorize, 1},
};

}  // namespace

void apply_step(Schedule& s, const PlanLine& line, bool gpu) {
  stop_if_interrupted();
  const auto row =
      std::find_if(std::begin(kSteps), std::end(kSteps), [&](const StepRow& r) { return r.name == line.name; });
  if (row == std::end(kSteps))
    throw ScheduleError("there is no step " + line.name + "; there are " + join(step_names(), ", "));
  Schedule taken = s;
  const Arguments a(taken, line, gpu);
  if (row->most != kAny) a.require_at_most(row->most);
  row->take(taken, a);
  if (!line.results.empty()) taken.name_results(line.results);
  s = std::move(taken);
}

std::vector<std::string> step_names() {
  std::vector<std::string> names;
  for (const StepRow& r : kSteps) names.emplace_back(r.name);
  return names;
}

}  // namespace tc
