// Sums of products with weights of few bits: y[rows, n] = epilogue(sum(k) p[rows, k] * (number[k, n] - zero) * scale).
//
// The numbers stay as narrow as they are, also in memory: a word of 32 bits has those of 32 / bits steps of k for one
// column, and words of neighbouring columns lie side by side, so that a vector of their j-th numbers is two shifts and
// a conversion away. few_bits.cc has the loops for few rows, few_bits_rows.cc those for many.
#pragma once
#include "templates/cpu/contraction.h"
#include "templates/cpu/lanes.h"
#include "templates/few_bits.h"

namespace tc {

/// What a function has to be for these loops.
struct FewBitsProduct {
  Contraction m;  // one axis of k, rows merged into one axis at most, no outer axes
  FewBits w;
  int64_t rows() const { return points(m.rows); }
  int64_t depth() const { return m.k[0].extent.value; }
};
/// Null: it is something else.
std::optional<FewBitsProduct> match_few_bits(const TemplateArgs& a);

struct FewBitsPlan {
  Tile tile;
  int64_t stretch = 0;  // many rows: steps of k that are unpacked at a time; 0: few rows
  int64_t group = 1;    // many rows: panels that share copies of rows
  int64_t part = 1;     // many rows: groups of a chunk
  int64_t block = 1;    // many rows: of which copies are kept
  bool parallel = false;
};
/// `columns` of a panel of few rows; 0: the model decides.
FewBitsPlan plan_few_bits(const FewBitsProduct& p, const CpuModel& cpu, int64_t columns, const PlanEntry& plan);

/// The right factor in panels of columns, packed while compiling: [panel][word of k][column]; scales and zero points
/// [panel][block of k][column]. Zeros fill what is missing in the last panel and the last word.
class FewBitsPanels {
 public:
  /// `columns` a panel; words for `steps` of k, a multiple of a word's.
  FewBitsPanels(const FewBitsProduct& p, int64_t columns, int64_t steps);
  /// Adds words, scales and zero points to s.prologue and s.views.
  void pack(Scheduled& s);

  int64_t count() const { return count_; }
  int64_t blocks() const { return blocks_; }
  bool has_scale() const { return bool(p_.w.scale); }
  bool has_zero() const { return bool(p_.w.zero); }
  /// What the numbers stand for; null: themselves.
  const Buffer& table() const { return table_; }
  /// Vectors of a panel that begin at `column`: words; scales and zeros of a block as f32, which may be one number for all.
  Expr words(const Expr& panel, const Expr& word, const Expr& column) const;
  Expr scale(const Expr& panel, const Expr& block, const Expr& column) const;
  Expr zero(const Expr& panel, const Expr& block, const Expr& column) const;

 private:
  Buffer pack_blocks(Scheduled& s, const Expr& value, const char* what) const;
  Expr of_block(const Buffer& packed, const Expr& known, const Expr& at) const;

  const FewBitsProduct& p_;
  const int64_t columns_, count_, blocks_, words_;
  Buffer packed_, scales_, zeros_, table_;
};

/// What the loops for few and for many rows share.
class FewBitsLoops {
 public:
  FewBitsLoops(const FewBitsProduct& p, const FewBitsPlan& plan);

 protected:
  using OfVector = std::function<Stmt(const Expr& column)>;
  using OfTile = std::function<Stmt(const Expr& i, const Expr& column)>;
  using OfNumber = std::function<Stmt(const Expr& j, const Buffer& x)>;

  /// x = number - zero, or table[number], for the first `numbers` of a word, one after the other; inside of with_zero.
  Stmt with_numbers(const Expr& word, int64_t numbers, const OfNumber& use) const;
  /// Around the numbers of a block: its zero points.
  Stmt with_zero(const Expr& block, const std::function<Stmt()>& make);
  /// All vectors of the panel; of `height` rows of it.
  Stmt of_vectors(const OfVector& body) const;
  Stmt of_tile(int64_t height, const OfTile& body) const;
  Buffer registers(const char* name, int64_t rows = 0) const;
  LanePoint point(const Expr& row, const Expr& column, Expr acc = {}) const;
  Expr left(const Expr& row, const Expr& k) const;

  const FewBitsProduct& p_;
  const Contraction& m_;
  const FewBits& w_;
  const FewBitsPlan& plan_;
  const int64_t rows_, depth_, columns_;
  FewBitsPanels panels_;
  Expr panel_;   // at which the loops are
  Buffer zero_;  // of the block
};

/// The loops for many rows; plan.stretch is not 0.
Stmt many_rows(const FewBitsProduct& p, const FewBitsPlan& plan, Scheduled& s);

}  // namespace tc
