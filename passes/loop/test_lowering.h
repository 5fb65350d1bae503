// Loops under the loop passes of kernels of C, one after the other: each keeps every bit of the result. For tests only.
#pragma once
#include <gtest/gtest.h>

#include <cstring>

#include "ir/interpreter.h"
#include "ir/loop/print.h"
#include "ir/verify.h"
#include "passes/loop/loop_pass.h"

namespace tc::testing {

/// `body` computes fn.outputs from fn.inputs, which are `in`; `expected` are the right outputs.
inline void expect_passes_keep(const TensorFn& fn, const Stmt& body, const std::vector<Constant>& in,
                               const std::vector<Constant>& expected, const std::string& what) {
  Scheduled s;
  s.inputs = fn.inputs;
  for (size_t i = 0; i < fn.inputs.size(); i++) s.input_index.push_back(int(i));
  s.outputs = fn.outputs;
  s.body = body;
  KernelInterface io(s);
  Lowering l{.body = io.body(), .visible = io.visible(), .io = &io};
  std::vector<std::vector<uint8_t>> memory;  // of the parameters: inputs, outputs
  for (const Constant& c : in) memory.emplace_back(c->bytes.get(), c->bytes.get() + c->num_bytes);
  for (const Constant& c : expected) memory.emplace_back(c->num_bytes, uint8_t(0xa7));
  for (const LoopPass& p : c_loop_passes()) {
    const std::string where = what + "after " + std::string(p.name) + "\n";
    ASSERT_NO_THROW(p.run(l)) << where;
    std::vector<Buffer> visible;
    std::vector<Binding> bindings;
    const auto bind = [&](const Buffer& b, uint8_t* bytes) {
      visible.push_back(b);
      bindings.push_back({b, bytes});
    };
    ASSERT_EQ(l.visible.size(), memory.size()) << where;
    for (size_t i = 0; i < memory.size(); i++) {
      bind(l.visible[i], memory[i].data());
      const auto flat = l.flat.find(l.visible[i].get());
      if (flat != l.flat.end() && flat->second != l.visible[i]) bind(flat->second, memory[i].data());
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
            << where << to_text(body) << to_text(l.body);
    }
  }
}

}  // namespace tc::testing
