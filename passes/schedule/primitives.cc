// Schedule: construction, look-ups, and the bookkeeping of a step.
#include "passes/schedule/primitives.h"

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

// Long nests are cut: the message shows where, not everything.
std::string excerpt(const Stmt& s) {
  constexpr int kLines = 24;
  const std::string all = to_text(s, 1);
  size_t end = 0;
  for (int line = 0; line < kLines && end != std::string::npos; line++) end = all.find('\n', end + (line > 0));
  return end == std::string::npos || end + 1 >= all.size() ? all : all.substr(0, end + 1) + "  ...\n";
}

bool is_output(const TensorFn& fn, const Buffer& b) {
  for (const Buffer& o : fn.outputs)
    if (o == b) return true;
  return false;
}

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

// Loops around a store that `wanted` accepts, outermost first; of the last such store, or of the first.
class StoreFinder {
 public:
  StoreFinder(std::function<bool(const Store&)> wanted, bool first) : wanted_(std::move(wanted)), first_(first) {}

  void stmt(const Stmt& s) {
    if (!s) return;
    if (const Store* k = as<Store>(s)) {
      if (!wanted_(*k) || (first_ && found)) return;
      found = true, loops = around_, path = path_;
      return;
    }
    path_.push_back(s);
    if (const For* f = as<For>(s)) {
      around_.push_back(f->var);
      stmt(f->body);
      around_.pop_back();
    }
    if (const Seq* k = as<Seq>(s))
      for (const Stmt& x : k->list) stmt(x);
    if (const If* k = as<If>(s)) stmt(k->then), stmt(k->otherwise);
    if (const Let* k = as<Let>(s)) stmt(k->body);
    if (const While* k = as<While>(s)) stmt(k->body);
    if (const Alloc* k = as<Alloc>(s)) stmt(k->body);
    if (const Alias* k = as<Alias>(s)) stmt(k->body);
    if (const Comment* k = as<Comment>(s)) stmt(k->body);
    path_.pop_back();
  }

  bool found = false;
  std::vector<Var> loops;
  std::vector<Stmt> path;

 private:
  std::function<bool(const Store&)> wanted_;
  bool first_;
  std::vector<Var> around_;
  std::vector<Stmt> path_;
};

}  // namespace

Schedule::Schedule(const TensorFn& fn, const ScheduleOptions& options) : options_(options) {
  // lower_naive gives temporaries a buffer of their own, the first one innermost.
  const Stmt body = lower_naive(fn);
  std::vector<Buffer> temporaries;
  Stmt at = body;
  for (const Stage& s : fn.stages)
    for (const Buffer& b : s.outputs)
      if (!is_output(fn, b)) {
        const Alloc* a = as<Alloc>(at);
        check(a != nullptr, "an allocation per temporary");
        temporaries.push_back(a->buffer);
        at = a->body;
      }
  for (const Stage& s : fn.stages) {
    Result r{s.name, s.outputs.at(0), {}};
    for (const Buffer& b : s.outputs) {
      r.buffers.push_back(is_output(fn, b) ? b : temporaries.back());
      if (!is_output(fn, b)) temporaries.pop_back();
    }
    results_.push_back(std::move(r));
  }
  body_ = bind_once(body);
}

Schedule::Schedule(const Stmt& body, const ScheduleOptions& options) : body_(bind_once(body)), options_(options) {}

Buffer Schedule::buffer(const std::string& stage, size_t result) const {
  for (const Result& r : results_)
    if (r.stage == stage && result < r.buffers.size()) return r.buffers[result];
  throw ScheduleError("no stage \"" + printable(stage) + "\" in\n" + excerpt(body_));
}

Buffer Schedule::buffer(const Stage& stage, size_t result) const {
  for (const Result& r : results_)
    if (r.original == stage.outputs.at(0) && result < r.buffers.size()) return r.buffers[result];
  throw ScheduleError("stage \"" + printable(stage.name) + "\" is not one of\n" + excerpt(body_));
}

bool Schedule::attempt(const std::function<void(Schedule&)>& steps) {
  Schedule s = *this;
  try {
    steps(s);
  } catch (const ScheduleError&) {
    return false;
  }
  *this = std::move(s);
  return true;
}

std::vector<Var> Schedule::loops() const {
  std::vector<Var> list;
  for (const For* f : loops_in(body_)) list.push_back(f->var);
  return list;
}

std::vector<Var> Schedule::loops(const Buffer& b) const {
  StoreFinder f([&](const Store& k) { return k.buffer == b; }, false);
  f.stmt(body_);
  if (!f.found) throw ScheduleError("nothing is stored to \"" + printable(b->name) + "\" in\n" + excerpt(body_));
  return f.loops;
}

std::vector<Var> Schedule::reduction_loops(const Buffer& b) const {
  StoreFinder f([&](const Store& k) { return k.buffer == b; }, false);
  f.stmt(body_);
  if (!f.found) throw ScheduleError("nothing is stored to \"" + printable(b->name) + "\" in\n" + excerpt(body_));
  // The nest that fills b: inside its last loop, or the whole.
  Stmt nest = body_;
  for (const Stmt& s : f.path)
    if (as<For>(s)) nest = s;
  auto joins = [&](const Store& k) {
    if (k.reduce) return true;
    bool reads = false;  // a tuple: next = f(acc, value); acc = next
    for (const Expr& e : k.index) reads = reads || uses_buffer(e, k.buffer);
    return reads || uses_buffer(k.value, k.buffer);
  };
  StoreFinder r(joins, true);
  r.stmt(nest);
  std::vector<Var> inner;
  for (const Var& v : r.loops) {
    bool outside = false;
    for (const Var& o : f.loops) outside = outside || o == v;
    if (!outside) inner.push_back(v);
  }
  return inner;
}

const For& Schedule::loop_of(const Var& v) const {
  const auto site = find_loop(body_, v);
  if (!site) throw ScheduleError("no loop " + printable(v->name) + " in\n" + excerpt(body_));
  return *site->loop;
}

Step::Step(Schedule& s, std::string name, const std::vector<std::string>& args)
    : s_(s), text_(std::move(name) + "(" + join(args, ", ") + ")") {}

LoopSite Step::find(const Var& v) const {
  auto site = find_loop(s_.body_, v);
  if (!site) refuse("no loop " + printable(v->name), s_.body_);
  return std::move(*site);
}

void Step::refuse(const std::string& why, const Stmt& where) const {
  throw ScheduleError(text_ + ": " + why + (where ? "\n" + excerpt(where) : ""));
}

void Step::require_fixed_bounds(const LoopSite& site) const {
  require(reads_nothing(site.loop->begin) && reads_nothing(site.loop->extent),
          "the bounds of loop " + printable(site.loop->var->name) + " read memory", site.stmt);
}

void Step::require_independent(const LoopSite& site) const {
  const std::vector<Conflict> found = conflicts(site.stmt, site.loop->var, site.ranges);
  if (found.empty()) return;
  const Conflict& c = found[0];
  const std::string name = printable(site.loop->var->name);
  if (!c.buffer) refuse("loop " + name + " " + c.text, site.stmt);
  if (c.reduce) refuse("loop " + name + " carries a reduction: it " + c.text, site.stmt);
  refuse("iterations of loop " + name + " may depend on each other: it " + c.text, site.stmt);
}

void Step::require_insertion_point(const LoopSite& site, Scope scope) const {
  const std::string name = "loop " + printable(site.loop->var->name);
  require(site.loop->kind != ForKind::Vector, name + " is vector", site.stmt);
  for (const For* f : loops_in(site.loop->body))
    require(!is_gpu(f->kind), name + " has GPU loops inside; this place is for what one thread does", site.stmt);
  require_scope(site, scope);
}

void Step::require_scope(const LoopSite& site, Scope scope) const {
  bool gpu = is_gpu(site.loop->kind);
  for (const For* f : site.outer) gpu = gpu || is_gpu(f->kind);
  require(!gpu || scope == Scope::Register || scope == Scope::Stack,
          "a thread of a GPU can have buffers in registers and on the stack only", site.stmt);
  require(scope == Scope::Register || scope == Scope::Stack || scope == Scope::Workspace,
          "the buffer can be in registers, on the stack or in the workspace", site.stmt);
}

void Step::rename_result(const Buffer& from, const Buffer& to) {
  for (auto& r : s_.results_)
    for (Buffer& b : r.buffers)
      if (b == from) b = to;
}

void Step::done(Stmt body, const std::vector<std::string>& results) {
  std::vector<Buffer> visible;
  while (const StmtNode* lost = lost_prefetch(body, s_.body_, body, visible)) body = replace_stmt(body, lost, {});
  s_.body_ = std::move(body);
  s_.steps_.push_back(text_ + (results.empty() ? "" : " -> " + join(results, ", ")));
}

}  // namespace tc
