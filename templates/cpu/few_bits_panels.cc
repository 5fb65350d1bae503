// Recognises weights of few bits, and packs them in panels.
#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/few_bits.h"

namespace tc {

std::optional<FewBitsProduct> match_few_bits(const TemplateArgs& a) {
  if (a.options.strict_fp || !a.canonical || a.canonical->border) return {};
  auto m = match_contraction(a, true);
  if (!m || m->right != Contraction::Right::Packed || !m->outer.empty() || m->rows.size() > 1) return {};
  if (m->k.size() != 1 || m->q_k.size() != 1) return {};
  auto w = few_bits_form(m->q_value, m->q_k[0]);
  if (!w) return {};
  return FewBitsProduct{std::move(*m), std::move(*w)};
}

FewBitsPanels::FewBitsPanels(const FewBitsProduct& p, int64_t columns, int64_t steps)
    : p_(p),
      columns_(columns),
      count_(ceil_div(p.m.n.extent.value, columns)),
      blocks_(p.w.block >= p.depth() ? 1 : ceil_div(steps, p.w.block)),
      words_(steps / p.w.per_word()) {}

void FewBitsPanels::pack(Scheduled& s) {
  const FewBits& w = p_.w;
  const Axis &n = p_.m.n, &k = p_.m.q_k[0];
  const Axis panel{make_var("nb"), Dim(count_)}, word{make_var("word"), Dim(words_)},
      lane{make_var("ni"), Dim(columns_)};
  const Expr at = Expr(panel.var) * Expr(columns_) + Expr(lane.var);
  const Expr value = word_of(w, [&](int64_t j) {
    const Expr step = Expr(word.var) * Expr(w.per_word()) + Expr(j);
    const Expr number = substitute(w.number, {{n.var.get(), at}, {k.var.get(), step}});
    Expr exists;
    if (count_ * columns_ != n.extent.value) exists = at < Expr(n.extent);
    if (words_ * w.per_word() != k.extent.value) exists = both(exists, step < Expr(k.extent));
    return exists ? select(exists, number, make_int(DType::I32, 0)) : number;
  });
  const std::string& name = n.var->name;
  packed_ = add_packed(s, p_.m.c, {panel, word, lane}, value,
                       "packed: " + name + " block, " + k.var->name + " / " + to_text(w.per_word()) + ", " + name +
                           " in block; numbers of " + to_text(w.bits) + " bits " +
                           (w.table ? "that stand for those of a table" : "with a sign") + ", the first " +
                           k.var->name + " lowest");
  if (w.table) {
    const Axis code{make_var("code"), w.table->shape[0]};
    table_ = add_packed(s, p_.m.c, {code}, load(w.table, {Expr(code.var)}), "what the numbers stand for");
  }
  if (w.scale.get() && !as_const_number(w.scale)) scales_ = pack_blocks(s, w.scale, "scales");
  if (w.zero.get() && !as_const_number(w.zero))
    zeros_ = pack_blocks(s, w.zero->dtype == DType::F32 ? w.zero : cast(DType::I8, w.zero), "zero points");
}

Buffer FewBitsPanels::pack_blocks(Scheduled& s, const Expr& value, const char* what) const {
  const Axis &n = p_.m.n, &k = p_.m.q_k[0];
  const Axis panel{make_var("nb"), Dim(count_)}, block{make_var("block"), Dim(blocks_)},
      lane{make_var("ni"), Dim(columns_)};
  const Expr at = Expr(panel.var) * Expr(columns_) + Expr(lane.var);
  Expr packed = substitute(at_block(value, k.var, p_.w.block, Expr(block.var)), {{n.var.get(), at}});
  Expr exists;
  if (count_ * columns_ != n.extent.value) exists = at < Expr(n.extent);
  if (const int64_t used = ceil_div(p_.depth(), p_.w.block); blocks_ != used)
    exists = both(exists, Expr(block.var) < Expr(used));
  if (exists) packed = select(exists, packed, tc::zero(packed->dtype));
  const std::string& name = n.var->name;
  return add_packed(s, p_.m.c, {panel, block, lane}, packed,
                    std::string(what) + ": " + name + " block, block of " + to_text(p_.w.block) + " " + k.var->name +
                        ", " + name + " in block");
}

Expr FewBitsPanels::words(const Expr& panel, const Expr& word, const Expr& column) const {
  return load(packed_, {ramp((panel * Expr(words_) + word) * Expr(columns_) + column)});
}

Expr FewBitsPanels::of_block(const Buffer& packed, const Expr& known, const Expr& at) const {
  if (!packed) return broadcast(known);
  const Expr e = load(packed, {ramp(at)});
  return e->dtype == DType::F32 ? e : cast(DType::F32, e);
}

Expr FewBitsPanels::scale(const Expr& panel, const Expr& block, const Expr& column) const {
  return of_block(scales_, p_.w.scale, (panel * Expr(blocks_) + block) * Expr(columns_) + column);
}

Expr FewBitsPanels::zero(const Expr& panel, const Expr& block, const Expr& column) const {
  return of_block(zeros_, p_.w.zero, (panel * Expr(blocks_) + block) * Expr(columns_) + column);
}

}  // namespace tc
