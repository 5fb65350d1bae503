"""Resize: every mode with every coordinate transformation, rounding, filter and way to say the size, against ONNX Runtime.

Many nodes read one input, so that a model is a column of the matrix. The whole matrix is computed while compiling, by the
definition; a column of it as C and CUDA, whose templates see the definition only."""
import re

import numpy as np

from case import Case, ints

F32 = np.float32
TRANSFORMS = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "asymmetric", "align_corners", "tf_crop_and_resize")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
FILTERS = {"linear": ("", "antialias = 1", "antialias = 1, exclude_outside = 1"),
           "cubic": ("", "exclude_outside = 1", "antialias = 1", "antialias = 1, exclude_outside = 1", "cubic_coeff_a = -0.5")}
# What ONNX Runtime takes for its scale where a size is given is in single precision, as the scales themselves are.
SCALES = ((0.6, 1.7), (1.7, 0.6), (2.0, 3.0), (0.5, 0.25), (2.3, 1.2), (0.15, 0.15))
SIZES = ((5, 12), (12, 5), (1, 1), (3, 21))


def forms():
    """(mode, attributes) of every way to interpolate."""
    for rounding in NEAREST:
        yield "nearest", f'nearest_mode = "{rounding}"'
    for mode, filters in FILTERS.items():
        for attributes in filters:
            yield mode, attributes


def ways():
    """(name, attributes, operands behind x, weights) of every way to say where the result lies."""
    for k, (h, w) in enumerate(SCALES):
        yield f"scales{k}", "", f"roi4, s{k}", {f"s{k}": F32([1, 1, h, w]), "roi4": F32([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.3])}
        if k < 2:
            yield f"scales{k}_axes", "axes = [-1, 2]", f"roi2, t{k}", {f"t{k}": F32([w, h]), "roi2": F32([0.2, 0.1, 1.3, 0.8])}
    for k, (h, w) in enumerate(SIZES):
        yield f"sizes{k}", "", f"roi4, , z{k}", {f"z{k}": ints(1, 2, h, w), "roi4": F32([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.3])}
        for policy in ("not_larger", "not_smaller") if k != 2 else ():
            yield f"sizes{k}_{policy}", f'axes = [2, 3], keep_aspect_ratio_policy = "{policy}"', f"roi3, , u{k}", \
                {f"u{k}": ints(h, w), "roi3": F32([0.1, 0.2, 0.8, 1.3])}


def matrix(transform, chosen, x, name, **options):
    """One model of all forms and ways of a coordinate transformation."""
    nodes, weights = [], {}
    for way, placed, operands, needed in ways():
        if way not in chosen:
            continue
        for mode, form in forms():
            # The one is for the nearest element, the other for those around it: where a position is a tie, rounding decides.
            if {"tf_half_pixel_for_nn": mode != "nearest", "half_pixel_symmetric": mode == "nearest"}.get(transform):
                continue
            attributes = ", ".join(a for a in (f'mode = "{mode}", coordinate_transformation_mode = "{transform}"', form, placed) if a)
            if transform != "tf_crop_and_resize":
                operands = re.sub("roi.", "", operands)
            else:
                attributes += ", extrapolation_value = 7.5"
            nodes.append(f"y{len(nodes)} = Resize <{attributes}> (x, {operands})")
            weights |= {key: value for key, value in needed.items() if key in operands}
    return Case(name, "\n".join(nodes), {"x": x}, weights, tuple(f"y{k}" for k in range(len(nodes))), bar=1e-4, **options)


def ties():
    """Positions in the middle between two elements, which a rounded scale puts next to it."""
    nodes, weights = [], {}
    for k, (h, w) in enumerate(((8, 26), (2, 4), (12, 22), (10, 16))):
        weights |= {f"z{k}": ints(1, 1, h, w), f"s{k}": F32([1, 1, h / 7, w / 11])}
        for operands in (f"x, , , z{k}", f"x, , s{k}"):
            for transform in ("asymmetric", "half_pixel", "align_corners"):
                for rounding in NEAREST:
                    nodes.append(f'y{len(nodes)} = Resize <mode = "nearest", coordinate_transformation_mode = "{transform}", nearest_mode = "{rounding}"> ({operands})')
    return Case("resize_ties", "\n".join(nodes), {"x": (1, 1, 7, 11)}, weights, tuple(f"y{k}" for k in range(len(nodes))), folded_only=True)


def cases():
    yield ties()
    every = [way for way, *_ in ways()]
    scales = [way for way in every if way.startswith("scales")]
    for transform in TRANSFORMS:  # tf_half_pixel_for_nn is for the nearest element, and older than sizes' policies
        yield matrix(transform, scales if transform == "tf_half_pixel_for_nn" else every, (1, 2, 8, 7), f"resize_matrix_{transform}", folded_only=True)
        yield matrix(transform, ("scales0",), (1, 2, 8, 7), f"resize_column_{transform}")
