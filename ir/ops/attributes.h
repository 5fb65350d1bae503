// What the model says of an attribute, or the operator's row instead.
#pragma once
#include <string>

#include "ir/graph/origin.h"
#include "ir/ops/op.h"

namespace tc {

/// Null if neither gives it. Throws Error TC0201 where the model gives another type.
template <class T>
const T* find_attr(const Node& n, const std::string& name) {
  if (const auto it = n.attrs.find(name); it != n.attrs.end() && it->second.index() != 0) {
    const T* v = std::get_if<T>(&it->second);
    if (!v) throw Error(problem_of(n, "TC0201", ExitCode::Rejected, "attribute " + name + " has the wrong type"));
    return v;
  }
  const OpRow* row = row_of(n);
  if (!row) return nullptr;
  for (const AttrSpec& a : row->attrs)
    if (a.name == name) return std::get_if<T>(&a.otherwise);
  return nullptr;
}

}  // namespace tc
