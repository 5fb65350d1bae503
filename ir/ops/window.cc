// The rows of pooling, resampling and unfolding.
#include "ir/ops/window.h"

#include "ir/ops/families.h"
#include "ir/ops/numeric.h"

namespace tc {

OpFamily window_ops() {
  const std::vector<AttrSpec> window = {optional_attr("kernel_shape"),     optional_attr("pads"),
                                        optional_attr("strides"),          optional_attr("dilations"),
                                        string_attr("auto_pad", "NOTSET"), int_attr("ceil_mode", 0),
                                        string_attr("data_layout", "NCHW")};
  auto with = [&](AttrSpec a) {
    std::vector<AttrSpec> all = window;
    all.push_back(std::move(a));
    return all;
  };
  const AttrSpec layout = string_attr("data_layout", "NCHW");
  const std::vector<AttrSpec> resize = {string_attr("mode", "nearest"),
                                        string_attr("coordinate_transformation_mode", "half_pixel"),
                                        string_attr("nearest_mode", "round_prefer_floor"),
                                        float_attr("cubic_coeff_a", -0.75f),
                                        float_attr("extrapolation_value", 0),
                                        int_attr("exclude_outside", 0),
                                        int_attr("antialias", 0),
                                        string_attr("keep_aspect_ratio_policy", "stretch"),
                                        optional_attr("axes")};
  const std::vector<AttrSpec> roi_align = {
      string_attr("mode", "avg"),     int_attr("output_height", 1),
      int_attr("output_width", 1),    int_attr("sampling_ratio", 0),
      float_attr("spatial_scale", 1), string_attr("coordinate_transformation_mode", "half_pixel")};
  const std::vector<AttrSpec> grid = {string_attr("mode", "linear"), string_attr("padding_mode", "zeros"),
                                      int_attr("align_corners", 0)};
  return {
      marked(OpTrait::Chooses, {"MaxPool", 22, with(int_attr("storage_order", 0)), define_max_pool}),
      {"AveragePool", 22, with(int_attr("count_include_pad", 0)), define_average_pool},
      {"LpPool", 22, with(int_attr("p", 2)), define_lp_pool},
      {"GlobalAveragePool", 22, {layout}, define_global_average_pool},
      {"GlobalMaxPool", 22, {layout}, define_global_max_pool},
      {"GlobalLpPool", 22, {int_attr("p", 2), layout}, define_global_lp_pool},
      {"MaxUnpool",
       22,
       {optional_attr("kernel_shape"), optional_attr("pads"), optional_attr("strides")},
       define_max_unpool,
       "x indices"},
      {"MaxRoiPool",
       22,
       {optional_attr("pooled_shape"), float_attr("spatial_scale", 1)},
       define_max_roi_pool,
       "x rois"},
      {"RoiAlign", 22, roi_align, define_roi_align, "x rois batch"},
      {"Resize", 19, resize, define_resize, "x roi scales sizes"},
      {"Upsample", 10, {string_attr("mode", "nearest")}, define_upsample, "x scales"},
      {"GridSample", 22, grid, define_grid_sample, "x grid"},
      {"AffineGrid", 20, {int_attr("align_corners", 0)}, define_affine_grid, "theta size"},
      {"Col2Im", 18, {optional_attr("dilations"), optional_attr("pads"), optional_attr("strides")}, define_col2im},
  };
}

}  // namespace tc
