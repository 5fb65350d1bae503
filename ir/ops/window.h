// The definitions behind window_ops(): pooling, resampling and unfolding.
#pragma once
#include "ir/ops/op.h"
#include "ir/ops/spatial.h"

namespace tc {

/// The mean of the taps, by the attributes of AveragePool, or of the whole image.
Tensor average_pool(OpBuilder& op, const Tensor& x, const Layout& layout, bool global);
void define_max_pool(OpBuilder& op);
void define_average_pool(OpBuilder& op);
void define_lp_pool(OpBuilder& op);
void define_global_average_pool(OpBuilder& op);
void define_global_max_pool(OpBuilder& op);
void define_global_lp_pool(OpBuilder& op);
void define_max_unpool(OpBuilder& op);
void define_max_roi_pool(OpBuilder& op);
void define_roi_align(OpBuilder& op);
void define_resize(OpBuilder& op);
void define_upsample(OpBuilder& op);
void define_grid_sample(OpBuilder& op);
void define_affine_grid(OpBuilder& op);
void define_col2im(OpBuilder& op);

}  // namespace tc
