#include "passes/loop/launches.h"

#include <algorithm>

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

bool is_read_elsewhere(const std::vector<Stmt>& launches, const Stmt& launch, const std::vector<Buffer>& memory) {
  const auto stands_for = [&](const Buffer& b) { return std::find(memory.begin(), memory.end(), b) != memory.end(); };
  bool found = false;
  for (const Stmt& s : launches)
    if (!s.same_as(launch))
      walk(
          s,
          [&](const Stmt& x) {
            const Intrin* k = as<Intrin>(x);
            const Alias* a = as<Alias>(x);
            found = found || (a && stands_for(a->base)) ||
                    (k && std::any_of(k->buffers.begin(), k->buffers.end(), stands_for));
            return !found;
          },
          [&](const Expr& e) {
            const Load* l = as<Load>(e);
            found = found || (l && stands_for(l->buffer));
            return !found;
          });
  return found;
}

}  // namespace tc
