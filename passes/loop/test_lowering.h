// Loops under the loop passes of kernels of C, one after the other: each keeps every bit of the result. For tests only.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ir/interpreter.h"
#include "ir/loop/print.h"
#include "ir/verify.h"
#include "passes/loop/loop_pass.h"

namespace tc::testing {

/// `s` computes its outputs from `in`: its inputs, and what its prologue makes of others; `expected` are the right outputs.
inline void expect_passes_keep(const Scheduled& s, const std::vector<Constant>& in,
                               const std::vector<Constant>& expected, const std::string& what) {
  KernelInterface io(s);
  Lowering l{.body = io.body(), .visible = io.visible(), .io = &io};
  std::vector<std::vector<uint8_t>> memory;  // of the parameters: inputs, packed weights, outputs
  for (const Constant& c : in) memory.emplace_back(c->bytes.get(), c->bytes.get() + c->num_bytes);
  for (const Constant& c : expected) memory.emplace_back(c->num_bytes, uint8_t(0xa7));
  std::vector<size_t> seen(memory.size());  // what is visible, as memory; views behind the parameters
  std::iota(seen.begin(), seen.end(), 0);
  std::vector<Buffer> params = s.inputs;
  params.insert(params.end(), s.prologue.outputs.begin(), s.prologue.outputs.end());
  params.insert(params.end(), s.outputs.begin(), s.outputs.end());
  for (size_t i = 0; i < params.size(); i++)
    if (std::any_of(s.views.begin(), s.views.end(), [&](const Scheduled::View& v) { return v.of == params[i]; }))
      seen.push_back(i);
  for (const LoopPass& p : c_loop_passes()) {
    const std::string where = what + "after " + std::string(p.name) + "\n";
    ASSERT_NO_THROW(p.run(l)) << where;
    std::vector<Buffer> visible;
    std::vector<Binding> bindings;
    const auto bind = [&](const Buffer& b, uint8_t* bytes) {
      visible.push_back(b);
      bindings.push_back({b, bytes});
    };
    ASSERT_TRUE(l.visible.size() == memory.size() || l.visible.size() == seen.size()) << where;
    for (size_t i = 0; i < l.visible.size(); i++) {
      uint8_t* bytes = memory[seen[i]].data();
      bind(l.visible[i], bytes);
      const auto flat = l.flat.find(l.visible[i].get());
      if (flat != l.flat.end() && flat->second != l.visible[i]) bind(flat->second, bytes);
    }
    std::vector<uint8_t> scratch(size_t(l.scratch_bytes) + 64);
    if (l.scratch) bind(l.scratch, scratch.data());
    ASSERT_NO_THROW(verify(l.body, visible)) << where << to_text(l.body);
    for (size_t i = 0; i < expected.size(); i++)
      std::fill(memory[in.size() + i].begin(), memory[in.size() + i].end(), 0xa7);
    for (const int vl : {8, 4, 16}) {
      if (vl != 8 && p.name != "lower_lanes") continue;
      RunOptions o;
      o.vl = vl;
      ASSERT_NO_THROW(run(l.body, bindings, o)) << where << to_text(l.body);
      for (size_t i = 0; i < expected.size(); i++)
        ASSERT_EQ(std::memcmp(memory[in.size() + i].data(), expected[i]->bytes.get(), expected[i]->num_bytes), 0)
            << where << to_text(s.body) << to_text(l.body);
    }
  }
}

}  // namespace tc::testing
