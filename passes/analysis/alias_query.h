// Alias queries: may two accesses touch one element? For iterations of a loop (dependence.h) and for threads of a block
// (thread_sync).
#pragma once
#include <set>
#include <vector>

#include "ir/loop/linear.h"
#include "passes/analysis/dependence.h"

namespace tc {

/// Two accesses of one buffer, made by two instances of the same code. Variables that are not in `varies` have one
/// value in both; memory that is not in `written` holds the same. An access without an index is to any element. What is
/// passed has to outlive the object.
class AliasQuery {
 public:
  AliasQuery(const Access& a, const Access& b, const std::set<const VarDef*>& varies,
             const std::set<const BufferDef*>& written);

  /// They never touch the same element.
  bool no_alias() const { return no_alias_; }
  /// Where they do, v has the same value in both.
  bool implies_equal(const Var& v);
  /// It is known that e has the same value in both.
  void assume_equal(const Expr& e) { equate(e, e); }

 private:
  using Wide = __int128;
  struct Term {
    Expr atom;  // whose difference it is; null: learns nothing
    int64_t coefficient;
    Range range;
  };
  /// Between what a sum of terms lies.
  struct Sum {
    Wide low, high;
    void add(const Term& t);
  };

  bool is_fixed(const Expr& e) const;
  void equate(const Expr& x, const Expr& y);
  void solve(std::vector<Term> terms, int64_t constant);
  static bool never_zero(const std::vector<Term>& terms, int64_t constant);
  static bool has_reach(const Term& t);
  bool has(const Expr& atom) const;
  void learn(const Expr& atom);
  void close();
  bool knows_quotient(const Linear& x, int64_t n) const;

  const Access &a_, &b_;
  const std::set<const VarDef*>& varies_;
  const std::set<const BufferDef*>& written_;
  Exprs known_;
  bool no_alias_ = false;
};

}  // namespace tc
