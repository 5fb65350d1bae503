#include "passes/loop/launches.h"

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/loop/lower_thread_allreduce.h"
#include "passes/loop/lower_warp_memory.h"
#include "passes/loop/thread_sync.h"

namespace tc {
namespace {

bool has_barriers(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    found = found || as<Barrier>(x);
    return !found;
  });
  return found;
}

}  // namespace

Stmt each_launch(const Stmt& s, const std::function<Stmt(const Stmt& launch)>& f) {
  if (!s) return s;
  if (const Seq* k = as<Seq>(s)) {
    Stmts list;
    for (const Stmt& x : k->list) list.push_back(each_launch(x, f));
    return seq(std::move(list));
  }
  if (const Alloc* k = as<Alloc>(s); k && k->buffer->scope != Scope::Shared)
    return alloc(k->buffer, each_launch(k->body, f));
  if (const Comment* k = as<Comment>(s)) return comment(k->text, each_launch(k->body, f));
  if (const For* k = as<For>(s); k && k->kind == ForKind::Serial) {
    const Stmt body = each_launch(k->body, f);
    return body.same_as(k->body) ? s : loop(k->var, k->extent, body, k->kind, k->begin);
  }
  return f(s);
}

// A template inserts barriers by what it knows of its tiles and no analysis sees; its tests run it under the
// interpreter's race checker.
Stmt synchronise(const Stmt& s) {
  return each_launch(s, [](const Stmt& launch) {
    const Stmt lowered = lower_warp_memory(lower_thread_allreduce(launch));
    return has_barriers(launch) ? lowered : thread_sync(lowered);
  });
}

}  // namespace tc
