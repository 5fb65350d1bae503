// Schedule: construction and look-ups; what steps have in common is in step.cc.
#include "passes/schedule/primitives.h"

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

bool is_output(const TensorFn& fn, const Buffer& b) {
  for (const Buffer& o : fn.outputs)
    if (o == b) return true;
  return false;
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

Schedule::Schedule(const TensorFn& fn, const ScheduleOptions& options, const std::vector<bool>& known)
    : options_(options) {
  for (size_t i = 0; i < known.size(); i++)
    if (known[i]) known_.push_back(fn.inputs.at(i));
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

Schedule::Schedule(const Stmt& body, const ScheduleOptions& options, std::vector<Var> independent)
    : body_(bind_once(body)), options_(options), independent_(std::move(independent)) {}

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

void Schedule::hand_over(Scheduled& s) const {
  s.body = body_;
  s.prologue = prologue_;
  s.prologue_layouts = prologue_layouts_;
  s.views = views_;
  // What is read as it was packed only is no operand of the loops any more.
  for (const Buffer& b : prologue_.inputs) {
    const auto it = std::find(s.inputs.begin(), s.inputs.end(), b);
    if (it == s.inputs.end()) continue;
    s.input_index.erase(s.input_index.begin() + (it - s.inputs.begin()));
    s.inputs.erase(it);
  }
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

}  // namespace tc
