// Where results are computed: reverse_compute_at.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"
#include "passes/schedule/compute_at.h"
#include "support/text.h"

namespace tc {
namespace {

// A nest that contains the loop, and the statement behind it that fills the buffer.
struct Follow {
  LoopSite site;
  Accesses made;  // by the loop
  Stmt nest, reader;
  Stmts between;  // from the nest to right before the reader
  PlainNest plain;
  Accesses reads;  // of the reader
};

Follow find_reader(const StepCheck& step, const Buffer& b, const Var& v) {
  Follow f{step.find(v), {}, {}, {}, {}, {}, {}};
  step.require_insertion_point(f.site, Scope::Register);
  f.made = accesses_of(f.site.stmt, f.site.ranges);
  const Alloc* own = find_alloc(step.body(), b);
  for (const Stmt& s : siblings_of(own ? own->body : step.body())) {
    if (contains(s, f.site.stmt.get())) f.nest = s;
    const bool fills_b = touches(accesses_of(s), b, false, true);
    step.require(!fills_b || !f.reader, "\"" + b->name + "\" is filled in several places", step.body());
    if (fills_b) {
      step.require(f.nest && !f.nest.same_as(s), "\"" + b->name + "\" is not filled behind loop " + v->name,
                   step.body());
      f.reader = s;
    }
    if (f.nest && !f.reader) f.between.push_back(s);
  }
  step.require(f.nest && f.reader, "\"" + b->name + "\" is not filled behind loop " + v->name, step.body());
  const auto plain = plain_nest(f.reader, b);
  step.require(plain.has_value(), "the loops of \"" + b->name + "\" are not plain any more", f.reader);
  f.plain = *plain;
  f.reads = accesses_of(f.reader);
  require_fits(step, f.site, f.reader);
  return f;
}

// The reader may run where the loop is: it sees the same memory there.
void require_same_memory(const StepCheck& step, const Buffer& b, const Follow& f) {
  for (const Access& a : f.reads.list) {
    step.require(!a.write || a.buffer == b, "the loops of \"" + b->name + "\" fill \"" + a.buffer->name + "\" too",
                 f.reader);
    Stmt scope;
    step.require(!find_alloc(step.body(), a.buffer, &scope) || contains(scope, f.site.stmt.get()),
                 "\"" + a.buffer->name + "\" does not exist in loop " + f.site.loop->var->name, f.site.stmt);
  }
  for (const Stmt& s : f.between) {
    const Accesses here = accesses_of(s);
    step.require(here.opaque.empty(), "there is " + here.opaque, s);
    step.require(!touches(here, b, true, true), "\"" + b->name + "\" is used before", s);
    for (const Access& a : f.reads.list) {
      const bool by_loop = s.same_as(f.nest) && touches(f.made, a.buffer, false, true);
      step.require(a.write || by_loop || !touches(here, a.buffer, false, true),
                   "\"" + a.buffer->name + "\" is filled in between", s);
    }
  }
}

// An iteration of the loop fills its part `box` of `t` for good, and all iterations together all of it.
void require_complete(const StepCheck& step, const Follow& f, const Buffer& t, const Region& box) {
  const std::string loop = "loop " + f.site.loop->var->name;
  step.require(fills(f.site.loop->body, t, box, false, inside_of(f.site)),
               "an iteration of " + loop + " does not fill its part of \"" + t->name + "\" completely", f.site.stmt);
  // From where the buffer is visible: inside its allocation it is no local one.
  const Alloc* own = find_alloc(step.body(), t);
  const Accesses rest = accesses_of(replace_stmt(own ? own->body : step.body(), f.site.stmt.get(), {}));
  Region whole;
  for (const Dim& n : t->shape) whole.begin.push_back(0), whole.size.push_back(n.value);
  step.require(!touches(rest, t, false, true) && fills(f.nest, t, whole, false),
               loop + " does not fill all of \"" + t->name + "\"", f.nest);
  std::vector<const For*> around = f.site.outer;
  around.push_back(f.site.loop);
  for (const For* g : around) {
    if (!find_loop(f.nest, g->var)) continue;
    for (const Conflict& c : conflicts(f.nest, g->var, {}))
      step.require(c.buffer && c.buffer != t,
                   "\"" + t->name + "\" is complete behind loop " + g->var->name + " only: it " + c.text, f.nest);
  }
}

// The part of `b` that belongs to the parts of its operands.
class Part {
 public:
  Part(const StepCheck& step, const Buffer& b, const Follow& f)
      : step_(step), b_(b), f_(f), known_(b->shape.size(), false) {
    for (const Dim& d : b->shape) region.begin.push_back(0), region.size.push_back(d.value), region.in.push_back(true);
  }

  // Read `a` is of box `box` of its buffer.
  void add(const Access& a, const Region& box) {
    const Buffer& t = a.buffer;
    for (size_t d = 0; d < a.index.size(); d++) {
      if (is_const(a.index[d], 0) && t->shape[d] == Dim(1)) continue;
      const VarRef* x = as<VarRef>(a.index[d]);
      const std::vector<Var>& axes = f_.plain.vars;
      const auto axis = std::find_if(axes.begin(), axes.end(), [&](const Var& w) { return x && w == x->var; });
      step_.require(axis != axes.end(),
                    "\"" + t->name + "\" is read at another place than that of \"" + b_->name + "\"", f_.reader);
      const size_t k = size_t(axis - axes.begin());
      step_.require(b_->shape[k] == t->shape[d], "the axes of \"" + t->name + "\" and \"" + b_->name + "\" differ",
                    f_.reader);
      const bool same = known_[k] && region.size[k] == box.size[d] && same_atom(region.begin[k], box.begin[d]);
      step_.require(!known_[k] || same, "operands of \"" + b_->name + "\" are filled in different parts", f_.site.stmt);
      region.begin[k] = box.begin[d], region.size[k] = box.size[d], region.in[k] = box.in[d], known_[k] = true;
    }
  }

  Region region;

 private:
  const StepCheck& step_;
  const Buffer& b_;
  const Follow& f_;
  std::vector<bool> known_;
};

}  // namespace

// A result is computed inside a loop of what it reads, as soon as its operands are there.
//   for i: for j: t[i, j] = ...; for p: for q: y[p, q] = t[p, q] + 1
//   for i: { for j: t[i, j] = ...; for q: y[i, q] = t[i, q] + 1 }
// Refused: loops that were changed; operands that are read at another index than [axes]; a loop, or one around it, that
// carries a reduction of the operand; an operand, or a part of it, that the loop does not fill completely; other uses
// of the buffers in between.
void Schedule::reverse_compute_at(const Buffer& b, const Var& v) {
  StepCheck step(*this, "reverse_compute_at", {{b}, {v}});
  const Follow f = find_reader(step, b, v);
  require_same_memory(step, b, f);
  Part part(step, b, f);
  bool reads_any = false;
  for (const Access& a : f.reads.list) {
    if (a.write || !touches(f.made, a.buffer, false, true)) continue;
    const auto box = region_of(f.made.list, a.buffer, without(f.made.bound, v), inside_of(f.site));
    step.require(box.has_value(), "\"" + a.buffer->name + "\" is used in vectors", f.site.stmt);
    part.add(a, *box);
    require_complete(step, f, a.buffer, *box);
    reads_any = true;
  }
  step.require(reads_any, "\"" + b->name + "\" reads nothing that loop " + v->name + " fills", f.reader);
  const Stmt point = compute_region(f.plain, b, part.region, [](const Stmt& s) { return s; });
  const Stmt loop = tidy(with_body(*f.site.loop, seq({f.site.loop->body, point})), f.site.ranges);
  step.done(replace_stmt(replace_stmt(body_, f.reader.get(), {}), f.site.stmt.get(), loop));
}

}  // namespace tc
