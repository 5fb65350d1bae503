// Where loops store into tensors of which only the first elements along an axis are needed.
#pragma once
#include <functional>

#include "ir/loop/linear.h"
#include "passes/loop/kernel_interface.h"

namespace tc {

/// Where a store lies along the counted axis: at least at `at`, in units of which `unit` make an element of the axis.
struct LiveCoordinate {
  Linear at;
  int64_t unit = 1;
};

/// Where a piece of work begins, of a store to it: it is needed if `first` < unit * (elements that are needed).
struct LivePiece {
  Expr first;
  int64_t unit = 1;
  int64_t rest = 0;    // the place of its first element, but for what is outside
  bool moves = false;  // from one element of the axis to another, by what is outside
};

/// The n of n / VL.
std::optional<int64_t> elements_of_vectors(const Expr& extent);
/// The v of v * VL.
const VarDef* vector_number(const Expr& e);

class LiveStores {
 public:
  using Live = KernelInterface::Live;
  /// Says whether the coordinate along a live axis of a store's tensor serves.
  using Serves = std::function<bool(const Live&, const LiveCoordinate&)>;

  /// `live` has to outlive this.
  LiveStores(const Stmt& body, const std::vector<Live>& live);

  /// Is every store in `s` to a tensor that is needed in part, where `serves`, or to memory for which `is_local`? Names in
  /// coordinates stand for their values, but for those of `kept`.
  bool all(const Stmt& s, const std::vector<Var>& kept, const std::function<bool(const Buffer&)>& is_local,
           const Serves& serves) const;

  /// Of a store at `c`; `outside` says which terms are the same in all of the piece. Nothing where the others have no least.
  std::optional<LivePiece> piece(const LiveCoordinate& c, const std::function<bool(const Expr&)>& outside) const;

  /// The least that a sum can be; INT64_MIN: not known.
  int64_t least(const Linear& l) const;

  Ranges ranges;  // of the loops' variables and of names

 private:
  /// The loops, names and instructions of `body`.
  void look_at(const Stmt& body);
  Range range_of_loop(const For& f) const;
  Range range_of(const Linear& l) const;
  /// `count`: so many lanes are stored; null: all.
  bool store(Buffer b, Exprs index, const Expr& count, const std::vector<Var>& kept,
             const std::function<bool(const Buffer&)>& is_local, const Serves& serves) const;
  Expr without_names(Expr e, const std::vector<Var>& kept) const;
  std::optional<LiveCoordinate> coordinate(const Live& l, const Buffer& b, const Exprs& index, const Expr& count,
                                           const std::vector<Var>& kept) const;
  std::optional<LiveCoordinate> middle(const Linear& flat, int64_t inner, int64_t whole, const Expr& count) const;

  const std::vector<Live>& live_;
  VarMap lets_;                                       // the values of names
  std::map<const VarDef*, int64_t> vectors_;          // of loops over so many elements, a vector each
  std::map<const BufferDef*, const Alias*> aliases_;  // looked up only
  /// What instructions do, element by element: a tile may end in another row than it begins in. Looked up only.
  std::map<const Intrin*, Stmt> assigned_;
};

}  // namespace tc
