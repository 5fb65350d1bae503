#include "templates/sketch.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "passes/analysis/dependence.h"
#include "passes/analysis/nest.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"

namespace tc {
namespace {

constexpr int64_t kStackBytes = 4096;

bool is_output(const TensorFn& fn, const Stage& stage) {
  return std::any_of(stage.outputs.begin(), stage.outputs.end(), [&](const Buffer& b) {
    return std::find(fn.outputs.begin(), fn.outputs.end(), b) != fn.outputs.end();
  });
}

/// Of a part; more than the stack has, if that is all that is known.
int64_t bytes_of(const Buffer& b) {
  int64_t n = (info(b->dtype).bits + 7) / 8;
  for (const Dim& d : b->shape) n = d.is_const() && n <= kStackBytes ? n * d.value : kStackBytes + 1;
  return n;
}

void compute_inline(Schedule& s, const TensorFn& fn, const PlanEntry& plan, SketchedStages& made) {
  for (const Stage& stage : fn.stages) {
    bool gone = false;
    if (is_plain(stage) && stage.kind == Stage::Kind::Compute && !is_output(fn, stage)) {
      const Buffer b = s.buffer(stage);
      gone = plan.flag("inline_" + name_of(s, b), !is_costly(stage.values[0])) &&
             s.attempt([&](Schedule& t) { t.compute_inline(b); });
    }
    if (!gone) made.list.push_back(&stage);
  }
}

void compute_at(Schedule& s, const TensorFn& fn, const PlanEntry& plan, int64_t most_bytes, SketchedStages& made) {
  const Stage& last = *made.list.back();
  if (made.list.size() < 2 || !is_plain(last)) return;
  const std::vector<Var> loops = s.loops(s.buffer(last));
  const int64_t at = plan.in_range(
      "at", [] { return 0; }, 0, int64_t(loops.size()));
  if (at == 0) return;
  const Var& v = loops[size_t(at) - 1];
  bool moved = false;
  for (size_t i = made.list.size() - 1; i-- > 0;) {
    if (!is_plain(*made.list[i]) || is_output(fn, *made.list[i])) continue;
    moved |= s.attempt([&](Schedule& t) {
      const Buffer part = t.compute_at(t.buffer(*made.list[i]), v);
      const int64_t bytes = bytes_of(part);
      if (bytes > most_bytes) throw ScheduleError("a part is too large");
      if (bytes <= kStackBytes) t.attempt([&](Schedule& u) { u.set_scope(part, Scope::Stack); });
    });
  }
  if (moved) made.shared.insert(loops.begin(), loops.begin() + at);
}

/// The store that joins into a sum; null where there is none, or several.
const Store* joining_store(const Stmt& s) {
  const Store* found = nullptr;
  int count = 0;
  walk(s, [&](const Stmt& x) {
    if (const Store* k = as<Store>(x); k && k->reduce) found = k, count++;
    return true;
  });
  return count == 1 ? found : nullptr;
}

/// The sum of which `result` is made at last; null where there is none.
Buffer sum_of(const Stmt& body, const Buffer& result) {
  Buffer sum;
  walk(body, [&](const Stmt& s) {
    const Store* k = as<Store>(s);
    if (!k || k->buffer != result) return true;
    walk(k->value, [&](const Expr& e) {
      if (const Load* l = as<Load>(e); l && l->index.empty() && l->buffer->scope == Scope::Register) sum = l->buffer;
      return true;
    });
    return true;
  });
  return sum;
}

}  // namespace

bool is_plain(const Stage& stage) {
  return stage.kind != Stage::Kind::Nest && stage.scan < 0 && stage.outputs.size() == 1;
}

std::string name_of(const Schedule& s, const Buffer& b) {
  const auto names = printed_names(s.body());
  const auto it = names.find(b.get());
  return it == names.end() ? b->name : it->second;
}

std::string unused_name(const Schedule& s, const std::string& name) {
  const auto names = printed_names(s.body());
  std::string own = name;
  const auto taken = [&](const auto& x) { return x.second == own; };
  for (int64_t n = 2; std::any_of(names.begin(), names.end(), taken); n++) own = name + "_" + to_text(n);
  return own;
}

std::optional<int64_t> trips(const Schedule& s, const Var& v) { return as_const_int(s.loop_of(v).extent); }

KnobValues parts_of(int64_t n, int64_t most) {
  std::vector<int64_t> list;
  for (int64_t v = 1; v <= std::min(n, most); v++)
    if (n % v == 0 || ((v & (v - 1)) == 0 && n >= 2 * v)) list.push_back(v);
  return KnobValues::list(std::move(list));
}

std::vector<Var> nest_from(const Schedule& s, const Var& v) {
  std::vector<Var> list;
  const std::optional<LoopSite> site = find_loop(s.body(), v);
  if (!site) return list;  // it runs once
  const std::optional<Chain> chain = chain_of(site->stmt, nullptr);
  for (const For* f : chain->loops) list.push_back(f->var);
  return list;
}

std::string SketchedStages::suffix(const Schedule& s, const Buffer& result) const {
  return list.size() > 1 ? "_" + name_of(s, result) : "";
}

SketchedStages place_temporaries(Schedule& s, const TensorFn& fn, const PlanEntry& plan, int64_t most_bytes) {
  SketchedStages made;
  compute_inline(s, fn, plan, made);
  compute_at(s, fn, plan, most_bytes, made);
  return made;
}

void finish_sketch(Schedule& s, const std::map<std::string, std::string>& names, const PlanEntry& plan) {
  std::vector<PlanLine> lines = {{"naive", {}}};
  lines.insert(lines.end(), s.lines().begin(), s.lines().end());
  plan.stands_for(std::move(lines));
  s.call_again(names);
}

SketchedNest::SketchedNest(Schedule& s, const Buffer& result, const std::set<Var>& shared, std::string suffix,
                           const PlanEntry& plan)
    : s_(s), suffix_(std::move(suffix)), plan_(plan) {
  const std::map<const void*, std::string> names = printed_names(s.body());
  const auto take = [&](const std::vector<Var>& loops, std::vector<Var>& list) {
    for (const Var& v : loops)
      if (const auto n = trips(s, v); shared.count(v) == 0 && n && *n > 1) {
        list.push_back(v);
        name_[v] = names.at(v.get());
      }
  };
  take(s.loops(result), space_);
  if (const Buffer acc = sum_of(s.body(), result)) {
    std::vector<Var> loops = s.loops(acc);
    std::erase_if(loops, [&](const Var& v) { return is_space(v); });
    take(loops, red_);
  }
  const std::vector<Var>& outermost = space_.empty() ? red_ : space_;
  if (!outermost.empty()) nest_ = find_loop(s.body(), outermost[0])->stmt;
  if (!red_.empty()) sum_ = joining_store(nest_);
}

bool SketchedNest::is_space(const Var& v) const { return std::find(space_.begin(), space_.end(), v) != space_.end(); }

std::vector<Var> SketchedNest::loops() const {
  std::vector<Var> list = space_;
  list.insert(list.end(), red_.begin(), red_.end());
  return list;
}

int64_t SketchedNest::number(const std::string& name, int64_t model, const KnobValues& values) const {
  return plan_.number(
      name + suffix_, [&] { return values.at(values.below(model)); }, values);
}

int64_t SketchedNest::kind(const std::string& name, int64_t model, const KnobValues& values) const {
  return plan_.kind(
      name + suffix_, [&] { return model; }, values);
}

bool SketchedNest::may_join_parts(bool strict_fp) const {
  return sum_ && bool(identity_of(*sum_->reduce, sum_->buffer->dtype)) &&
         may_reorder({sum_->buffer, sum_->reduce, ""}, strict_fp);
}

void SketchedNest::reorder(const std::vector<Var>& order) {
  if (order.size() > 1) s_.reorder(order);
}

std::pair<Var, Var> SketchedNest::cut(const Var& v, int64_t size, const Naming& names) {
  if (size >= *trips(s_, v)) return {nullptr, v};
  if (size <= 1) return {v, nullptr};
  Naming unused = names;
  for (std::string& name : unused.made) name = unused_name(s_, name);
  return s_.split(v, size, Tail::Guard, unused);
}

void SketchedNest::finish(std::vector<Var> loops, bool lanes) {
  Var last;
  if (lanes && !loops.empty()) last = loops.back(), loops.pop_back();
  for (const Var& v : loops)
    if (*trips(s_, v) <= kMostUnrolled) s_.unroll(v);
  if (last) s_.vectorize(last);
}

void SketchedNest::finish_tile(const std::vector<Var>& tile, const std::vector<Var>& made, bool lanes) {
  finish(tile, lanes);
  for (const Var& v : made)
    if (std::find(tile.begin(), tile.end(), v) == tile.end()) finish(nest_from(s_, v), lanes);
}

void SketchedNest::choose_inner() {
  const auto count = int64_t(red_.size());
  if (count > 0) inner_ = count > 1 ? number("inner", count, KnobValues::range(1, count)) - 1 : 0;
}

}  // namespace tc
