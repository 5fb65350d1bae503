#include "ir/loop/named_buffers.h"

#include <algorithm>

#include "ir/loop/visit.h"

namespace tc {

std::vector<Buffer> named_buffers(const Stmt& s) {
  if (const Store* k = as<Store>(s)) return {k->buffer};
  if (const Alias* k = as<Alias>(s)) return {k->base};
  if (const Prefetch* k = as<Prefetch>(s)) return {k->buffer};
  if (const Intrin* k = as<Intrin>(s)) return k->buffers;
  if (const Launch* k = as<Launch>(s)) return k->buffers;
  return {};
}

bool uses_buffer(const Stmt& s, const Buffer& b) {
  bool found = false;
  walk(
      s,
      [&](const Stmt& x) {
        const std::vector<Buffer> named = named_buffers(x);
        found |= std::find(named.begin(), named.end(), b) != named.end();
        return !found;
      },
      [&](const Expr& e) {
        if (const Load* l = as<Load>(e)) found |= l->buffer == b;
        return !found;
      });
  return found;
}

}  // namespace tc
