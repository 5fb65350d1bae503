// StepCheck: the check of one step, and its record in the names that the loops have as text.
#include "passes/schedule/step.h"

#include <algorithm>
#include <map>

#include "ir/loop/build.h"
#include "ir/loop/named_buffers.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {

std::string excerpt(const Stmt& s) {
  constexpr int kLines = 24;
  const std::string all = to_text(s, 1);
  size_t end = 0;
  for (int line = 0; line < kLines && end != std::string::npos; line++) end = all.find('\n', end + (line > 0));
  return end == std::string::npos || end + 1 >= all.size() ? all : all.substr(0, end + 1) + "  ...\n";
}

namespace {

// Memory that a hint may be about; registers and what threads share are no memory behind a cache.
bool may_be_fetched(const Buffer& b) {
  return b->scope == Scope::Global || b->scope == Scope::Workspace || b->scope == Scope::Stack;
}

bool is_allocated(const Stmt& s, const Buffer& b) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    const Alloc* a = as<Alloc>(x);
    found = found || (a && a->buffer == b);
    return !found;
  });
  return found;
}

// A hint about a temporary that is gone, or came into registers, or is not visible where the hint came to stand.
const StmtNode* lost_prefetch(const Stmt& s, const Stmt& before, const Stmt& after, std::vector<Buffer>& visible) {
  if (const Prefetch* k = as<Prefetch>(s)) {
    if (!may_be_fetched(k->buffer)) return s.get();
    for (const Buffer& b : visible)
      if (b == k->buffer) return nullptr;
    return is_allocated(before, k->buffer) || is_allocated(after, k->buffer) ? s.get() : nullptr;
  }
  auto inner = [&](const Stmt& x) { return x ? lost_prefetch(x, before, after, visible) : nullptr; };
  if (const Alloc* k = as<Alloc>(s)) {
    visible.push_back(k->buffer);
    const StmtNode* lost = inner(k->body);
    visible.pop_back();
    return lost;
  }
  if (const Seq* k = as<Seq>(s)) {
    for (const Stmt& x : k->list)
      if (const StmtNode* lost = inner(x)) return lost;
    return nullptr;
  }
  if (const For* k = as<For>(s)) return inner(k->body);
  if (const Let* k = as<Let>(s)) return inner(k->body);
  if (const While* k = as<While>(s)) return inner(k->body);
  if (const Comment* k = as<Comment>(s)) return inner(k->body);
  if (const If* k = as<If>(s)) {
    const StmtNode* lost = inner(k->then);
    return lost ? lost : inner(k->otherwise);
  }
  return nullptr;
}

}  // namespace

namespace {

using Names = std::map<const void*, std::string>;

// What is called as to_text() calls it; what does not occur, as it is named.
template <class T>
std::string name_of(const Names& names, const T& x) {
  const auto it = names.find(x.get());
  return it == names.end() ? x->name : it->second;
}

StepArg named(const Names& names, const StepOperand& o) {
  return std::visit(Cases{[&](const Var& v) { return StepArg{name_of(names, v)}; },
                          [&](const Buffer& b) { return StepArg{name_of(names, b)}; },
                          [&](int64_t n) { return StepArg{n}; }, [&](const std::string& word) { return StepArg{word}; },
                          [&](const StepArg::Text& text) { return StepArg{text}; },
                          [&](const StepOperand::List& list) {
                            StepArg::List all;
                            for (const StepOperand& x : list) all.push_back(named(names, x));
                            return StepArg{std::move(all)};
                          }},
                    o.value);
}

constexpr const char* kGone = "_";

// Of what a step has made; a loop that runs once is none any more.
std::string result_name(const Names& names, const StepOperand& o) {
  const Var* v = std::get_if<Var>(&o.value);
  return v && names.count(v->get()) == 0 ? kGone : std::get<std::string>(named(names, o).value);
}

}  // namespace

std::vector<std::string> Schedule::steps() const {
  std::vector<std::string> texts;
  for (const PlanLine& l : lines_) texts.push_back(language::print(l));
  return texts;
}

void Schedule::rename_all(const std::function<std::string(const void* id, const std::string& name)>& renamed) {
  std::map<const VarDef*, Var> loops;
  BufferMap buffers;
  VarMap uses;
  walk(body_, [&](const Stmt& s) {
    if (const For* f = as<For>(s))
      if (const std::string name = renamed(f->var.get(), f->var->name); !name.empty())
        uses[f->var.get()] = Expr(loops[f->var.get()] = make_var(name));
    if (const Alloc* a = as<Alloc>(s))
      if (const std::string name = renamed(a->buffer.get(), a->buffer->name); !name.empty()) {
        auto def = std::make_shared<BufferDef>(*a->buffer);
        def->name = name;
        buffers[a->buffer.get()] = def;
      }
    return true;
  });
  for (size_t i = 0; i < prologue_.outputs.size(); i++) {
    Buffer& b = prologue_.outputs[i];
    const std::string name = renamed(b.get(), b->name);
    if (name.empty()) continue;
    auto def = std::make_shared<BufferDef>(*b);
    def->name = name;
    buffers[b.get()] = def;
    prologue_.stages[i].outputs = {def};
    for (Scheduled::View& v : views_)
      if (v.of == b) v.of = def;
    b = def;
  }
  if (!buffers.empty()) body_ = substitute_buffers(body_, buffers);
  if (!loops.empty())
    body_ = rewrite(substitute(body_, uses), {}, [&](const Stmt& s) {
      const For* f = as<For>(s);
      const auto it = f ? loops.find(f->var.get()) : loops.end();
      return it == loops.end() ? Stmt() : loop(it->second, f->extent, f->body, f->kind, f->begin);
    });
  // Who remembers loops and temporaries remembers the new ones.
  auto follow = [](auto& x, const auto& renamed_ones) {
    if (const auto it = renamed_ones.find(x.get()); it != renamed_ones.end()) x = it->second;
  };
  for (Result& r : results_)
    for (Buffer& b : r.buffers) follow(b, buffers);
  for (Var& v : independent_) follow(v, loops);
  for (StepOperand& o : made_) {
    if (Var* v = std::get_if<Var>(&o.value)) follow(*v, loops);
    if (Buffer* b = std::get_if<Buffer>(&o.value)) follow(*b, buffers);
  }
}

std::map<std::string, std::string> Schedule::tell_apart() {
  const Names names = printed_names(body_);
  std::map<std::string, std::string> meant;
  rename_all([&](const void* id, const std::string& name) {
    const std::string& own = names.at(id);
    if (own != name) meant[own] = name;
    return own == name ? "" : own;
  });
  return meant;
}

void Schedule::call_again(const std::map<std::string, std::string>& names) {
  rename_all([&](const void*, const std::string& name) {
    const auto it = names.find(name);
    return it == names.end() ? "" : it->second;
  });
}

bool Schedule::only(const std::vector<std::string>& names) const {
  return std::all_of(lines_.begin(), lines_.end(),
                     [&](const PlanLine& l) { return std::find(names.begin(), names.end(), l.name) != names.end(); });
}

void Schedule::name_results(const std::vector<std::string>& names) {
  const std::string text = lines_.empty() ? "" : language::print(lines_.back());
  if (names.size() != made_.size())
    throw ScheduleError(text + ": it makes " + to_text(int64_t(made_.size())) + ", " + to_text(int64_t(names.size())) +
                        " names are given");
  const Names printed = printed_names(body_);
  Names wanted, kept;
  const auto call = [&](const StepOperand& o, const std::string& name, Names& list) {
    if (const Var* v = std::get_if<Var>(&o.value)) list[v->get()] = name;
    if (const Buffer* b = std::get_if<Buffer>(&o.value)) list[b->get()] = name;
  };
  for (size_t i = 0; i < names.size(); i++) {
    const std::string before = result_name(printed, made_[i]);
    if (names[i] == before) {
      call(made_[i], before, kept);
      continue;
    }
    if (names[i] == kGone || before == kGone)
      throw ScheduleError(
          text + ": result " + to_text(int64_t(i + 1)) +
          (before == kGone ? " runs once and is no loop: its name is _" : " is a loop, its name is not _"));
    for (const auto& [_, taken] : printed)
      if (taken == names[i]) throw ScheduleError(text + ": the name " + names[i] + " is taken");
    call(made_[i], names[i], wanted);
  }
  // Where the first of two of a name is called something else the second one stays what it is.
  if (!wanted.empty()) wanted.insert(kept.begin(), kept.end());
  rename_all([&](const void* id, const std::string&) {
    const auto it = wanted.find(id);
    return it == wanted.end() ? "" : it->second;
  });
  if (!lines_.empty()) lines_.back().results = names;
}

StepCheck::StepCheck(Schedule& s, std::string name, const std::vector<StepOperand>& args)
    : s_(s), line_{std::move(name), {}} {
  const Names names = printed_names(s.body_);
  for (const StepOperand& a : args) line_.args.push_back(named(names, a));
}

LoopSite StepCheck::find(const Var& v) const {
  auto site = find_loop(s_.body_, v);
  if (!site) refuse("no loop " + printable(v->name), s_.body_);
  return std::move(*site);
}

void StepCheck::refuse(const std::string& why, const Stmt& where, std::optional<size_t> argument) const {
  throw ScheduleError(language::print(line_) + ": " + why + (where ? "\n" + excerpt(where) : ""), argument);
}

void StepCheck::require_fixed_bounds(const LoopSite& site) const {
  require(reads_nothing(site.loop->begin) && reads_nothing(site.loop->extent),
          "the bounds of loop " + printable(site.loop->var->name) + " read memory", site.stmt);
}

void StepCheck::require_independent(const LoopSite& site) const {
  if (is_independent(site.loop->var)) return;
  const std::vector<Conflict> found = conflicts(site.stmt, site.loop->var, site.ranges);
  if (found.empty()) return;
  const Conflict& c = found[0];
  const std::string name = printable(site.loop->var->name);
  if (!c.buffer) refuse("loop " + name + " " + c.text, site.stmt);
  if (c.reduce) refuse("loop " + name + " carries a reduction: it " + c.text, site.stmt);
  refuse("iterations of loop " + name + " may depend on each other: it " + c.text, site.stmt);
}

void StepCheck::require_insertion_point(const LoopSite& site, Scope scope) const {
  const std::string name = "loop " + printable(site.loop->var->name);
  require(site.loop->kind != ForKind::Vector, name + " is vector", site.stmt);
  for (const For* f : loops_in(site.loop->body))
    require(!is_gpu(f->kind), name + " has GPU loops inside; this place is for what one thread does", site.stmt);
  require_scope(site, scope);
}

void StepCheck::require_scope(const LoopSite& site, Scope scope) const {
  bool gpu = is_gpu(site.loop->kind);
  for (const For* f : site.outer) gpu = gpu || is_gpu(f->kind);
  require(!gpu || scope == Scope::Register || scope == Scope::Stack,
          "a thread of a GPU can have buffers in registers and on the stack only", site.stmt);
  require(scope == Scope::Register || scope == Scope::Stack || scope == Scope::Workspace,
          "the buffer can be in registers, on the stack or in the workspace", site.stmt);
}

void StepCheck::rename_result(const Buffer& from, const Buffer& to) {
  for (auto& r : s_.results_)
    for (Buffer& b : r.buffers)
      if (b == from) b = to;
}

bool StepCheck::is_independent(const Var& v) const {
  return std::find(s_.independent_.begin(), s_.independent_.end(), v) != s_.independent_.end();
}

namespace {

// Steps behind which every iteration of a loop touches what it has touched before.
bool keeps_accesses(const std::string& step) {
  static constexpr std::string_view kSteps[] = {"bind",    "fuse",  "parallel", "rename",
                                                "reorder", "split", "unroll",   "vectorize"};
  return std::find(std::begin(kSteps), std::end(kSteps), step) != std::end(kSteps);
}

}  // namespace

namespace {

// A loop whose iterations are threads that would share memory which each thread has for itself: registers or the stack around it.
struct SharedMemory {
  const Alloc* memory = nullptr;
  const For* threads = nullptr;
};
SharedMemory wrongly_shared(const Stmt& body) {
  SharedMemory found;
  walk(body, [&](const Stmt& s) {
    const Alloc* a = as<Alloc>(s);
    if (!a || found.memory || (a->buffer->scope != Scope::Register && a->buffer->scope != Scope::Stack))
      return !found.memory;
    for (const For* f : loops_in(a->body))
      if ((f->kind == ForKind::Parallel || is_gpu(f->kind)) && uses_buffer(f->body, a->buffer)) found = {a, f};
    return !found.memory;
  });
  return found;
}

bool has_threads(const Stmt& s) {
  const std::vector<const For*> loops = loops_in(s);
  return std::any_of(loops.begin(), loops.end(), [](const For* f) { return is_thread(f->kind); });
}

// Does it store to memory that all threads of a block see?
bool stores_for_all(const Stmt& s) {
  const std::vector<Access> list = accesses_of(s).list;
  return std::any_of(list.begin(), list.end(), [](const Access& x) {
    const Scope scope = x.buffer->scope;
    return x.write && (scope == Scope::Global || scope == Scope::Workspace || scope == Scope::Shared);
  });
}

// The loop of threads of a block beside which something is stored: each of them would store it.
const For* crowded(const Stmt& body) {
  const For* found = nullptr;
  walk(body, [&](const Stmt& s) {
    const For* f = as<For>(s);
    if (found || !f || !is_gpu(f->kind) || !has_threads(f->body)) return !found;
    walk(f->body, [&](const Stmt& x) {
      const For* inner = as<For>(x);
      const Seq* list = as<Seq>(x);
      if (found || (inner && is_thread(inner->kind))) return false;
      if (!list || !has_threads(x)) return true;
      for (const Stmt& y : list->list)
        if (!has_threads(y) && stores_for_all(y)) found = f;
      return !found;
    });
    return !found;
  });
  return found;
}

constexpr int64_t kMostLocal = 65536;              // bytes; a thread's stack is to hold them
constexpr int64_t kMostMemory = int64_t(1) << 35;  // larger numbers stand for sizes without an upper bound

int64_t bytes_of(const BufferDef& b) {
  int64_t bytes = std::max<int64_t>(info(b.dtype).bytes, 1);
  for (const Dim& d : b.shape)
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(d.value, 1), &bytes)) return INT64_MAX;
  return bytes;
}

// Why there cannot be such a temporary; null: there can.
const char* too_large(const BufferDef& b, bool in_gpu_loop) {
  const int64_t bytes = bytes_of(b);
  if (bytes > kMostMemory) return "32 GiB of memory";
  if (b.scope == Scope::Register && bytes > kMostLocal) return "64 KiB of registers";
  return b.scope == Scope::Stack && in_gpu_loop && bytes > kMostStack ? "4 KiB of a thread's stack" : nullptr;
}

struct TooLarge {
  const BufferDef* buffer = nullptr;
  const char* limit = nullptr;
};
TooLarge too_large(const Stmt& body, bool in_gpu_loop = false) {
  TooLarge found;
  walk(body, [&](const Stmt& s) {
    if (found.buffer) return false;
    if (const Alloc* a = as<Alloc>(s))
      if (const char* limit = too_large(*a->buffer, in_gpu_loop)) found = {a->buffer.get(), limit};
    const For* f = as<For>(s);
    if (!f || in_gpu_loop || !is_gpu(f->kind)) return !found.buffer;
    found = too_large(f->body, true);
    return false;
  });
  return found;
}

}  // namespace

void StepCheck::done(Stmt body, std::vector<StepOperand> results) {
  if (const For* block = crowded(body); block && !crowded(s_.body_))
    refuse("all threads of a block would do what stands beside their loop in \"" + block->var->name + "\"");
  if (const TooLarge large = too_large(body); large.buffer && !too_large(s_.body_).buffer)
    refuse("\"" + large.buffer->name + "\" would be more than " + large.limit);
  if (const SharedMemory wrong = wrongly_shared(body); wrong.memory)
    refuse("\"" + wrong.memory->buffer->name + "\" would be " + scope_name(wrong.memory->buffer->scope) +
           " memory outside of \"" + wrong.threads->var->name + "\", whose iterations are threads");
  std::vector<Buffer> visible;
  while (const StmtNode* lost = lost_prefetch(body, s_.body_, body, visible)) body = replace_stmt(body, lost, {});
  s_.body_ = std::move(body);
  const Names names = results.empty() ? Names() : printed_names(s_.body_);
  for (const StepOperand& r : results) line_.results.push_back(result_name(names, r));
  if (!keeps_accesses(line_.name)) s_.independent_.clear();
  s_.lines_.push_back(std::move(line_));
  s_.made_ = std::move(results);
}

}  // namespace tc
