// Parts of functions, for templates that compute several contractions in one kernel: some of the stages, and a tile of
// a result (one row, a few rows of one matrix), whose operands are seen from where the tile reads them.
#pragma once
#include "templates/canonical.h"

namespace tc {

/// Stages [begin, end) of fn as a function of what they read: operands of fn, and results of its other stages. The last
/// stage's output is the result. Empty (no stages) if one of the stages is a Nest, a scan, or has several outputs.
TensorFn stages_of(const TensorFn& fn, size_t begin, size_t end);

/// Positions begin .. begin + extent - 1 along one axis of a result.
struct AxisRange {
  size_t axis = 0;
  Expr begin;
  int64_t extent = 1;
};

/// fn over some ranges of its result's axes.
struct ResultTile {
  struct Operand {
    Buffer part, whole;         // part: whole's elements from the offset on; the same buffer: read everywhere
    std::vector<int64_t> step;  // elements that the offset grows by with the begin of each range
    Expr offset(const std::vector<AxisRange>& ranges) const;
  };
  TensorFn fn;                    // its inputs are the operands' parts; its result has the strides of the whole one
  std::vector<Operand> operands;  // one per input; one operand of the whole function may be seen in several ways
  Operand result;
};

/// Null unless every stage computes just what the tile needs: ranges are of axes of all stages, and indices of loads
/// are affine in them. fn has one output, the last stage's.
std::optional<ResultTile> result_tile(const TensorFn& fn, const std::vector<AxisRange>& ranges);

/// The memory behind the flat buffers of tiles: one flat view for each operand of the whole function, and scratch
/// buffers for the results of stages between.
class TileMemory {
 public:
  explicit TileMemory(const TensorFn& whole);
  /// Results of other stages live here.
  void keep_in(const Buffer& result, const Buffer& scratch, const Expr& offset = 0);
  /// `body` reads and writes the flat buffers of c, the canonical form of tile.fn: they become views of memory. Views
  /// are named after their operands, with the suffix.
  Stmt see(Stmt body, const ResultTile& tile, const Canonical& c, const std::vector<AxisRange>& ranges,
           const std::string& suffix) const;
  /// The flat view of an operand of the whole function.
  Buffer flat(const Buffer& operand) const { return memory_.at(operand.get()).flat; }
  /// Inputs, outputs and views of a schedule whose body is complete.
  void bind(Scheduled& s) const;

 private:
  struct Memory {
    Buffer flat;
    Expr offset;
  };
  Stmt see_operand(const Stmt& body, const Buffer& view, const ResultTile::Operand& o,
                   const std::vector<AxisRange>& ranges, const std::string& suffix) const;

  const TensorFn& fn_;
  std::map<const BufferDef*, Memory> memory_;  // looked up only
};

}  // namespace tc
