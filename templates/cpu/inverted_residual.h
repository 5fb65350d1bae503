// What the template for inverted residuals (inverted_residual.cc) finds in a function.
#pragma once
#include "ir/loop/build.h"
#include "templates/cpu/contraction.h"
#include "templates/result_tile.h"

namespace tc {

/// A 1 x 1 convolution that expands the channels, a depthwise one and a 1 x 1 one that projects them back, row by row.
struct InvertedResidual {
  // One of the two dense convolutions, as a product for one row.
  struct Dense {
    ResultTile tile;
    Contraction m;
  };

  // The depthwise convolution of one row: the sum over (kh, kw) of
  // x[line * kh + pixel * (ow * stride + kw * dilation) + c].
  struct Depthwise {
    ResultTile tile;
    Canonical c;
    Axis ow, channel;
    int64_t kh = 1, kw = 1;
    int64_t row_step = 1, row_dilation = 1;        // rows of x
    int64_t column_step = 1, column_dilation = 1;  // columns of x
    Expr weight;                                   // the factor, over kh, kw and channel, before buffers were made flat
    Axis kh_axis, kw_axis;
  };

  Dense expand, project;
  Depthwise depthwise;
  Buffer expanded, interior, filtered;  // results of stages: with the border, without it, and of the depthwise part
  int64_t images = 1, height = 1, width = 1;    // of the expanded tensor, without its border
  int64_t top = 0, left = 0, padded_width = 1;  // its border
  int64_t channels = 1, out_height = 1, out_width = 1;
  Var image = make_var("image"), source = make_var("source"), y = make_var("y");
  std::vector<AxisRange> row(const Var& at) const {
    if (images == 1) return {{1, Expr(at), 1}};
    return {{1, Expr(at), 1}, {0, Expr(image), 1}};
  }
  std::vector<AxisRange> source_row() const { return row(source); }
  std::vector<AxisRange> result_row() const { return row(y); }
};

/// Null if the function is none.
std::optional<InvertedResidual> match_inverted_residual(const TemplateArgs& a);

}  // namespace tc
