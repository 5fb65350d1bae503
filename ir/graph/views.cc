#include "ir/graph/views.h"

namespace tc {

bool is_view(const Node& n) { return n.is("Identity") || n.is("Reshape"); }

const Value* root_of(const Value* v) {
  while (v->producer && is_view(*v->producer)) v = v->producer->inputs[0];
  return v;
}

}  // namespace tc
