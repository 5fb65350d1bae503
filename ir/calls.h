// Walking through the calls of a program.
#pragma once
#include "ir/program.h"

namespace tc {

/// Calls `f(const Call&)` for each call among the steps in their order, those of bodies and branches included.
template <class F>
void for_each_call(const std::vector<Step>& steps, const F& f) {
  for (const Step& s : steps) {
    if (const Call* c = std::get_if<Call>(&s.kind)) f(*c);
    if (const LoopStep* l = std::get_if<LoopStep>(&s.kind)) for_each_call(l->body, f);
    if (const IfStep* i = std::get_if<IfStep>(&s.kind)) {
      for_each_call(i->then, f);
      for_each_call(i->otherwise, f);
    }
  }
}

}  // namespace tc
