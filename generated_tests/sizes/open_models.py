"""Models whose operators look along axes of symbolic sizes, or at the sizes themselves: Resize, GridSample, Slice, shape arithmetic."""
import numpy as np
from onnx import TensorProto


def size(b, x, axis):
    return b.op("Gather", b.op("Shape", x), b.ints(axis), axis=0)


def resize_like(b, y, x, **attributes):
    """y in the height and width of x, as exporters ask for it."""
    shape = b.op("Shape", y), b.op("Shape", x)
    sizes = b.op("Concat", b.op("Slice", shape[0], b.ints(0), b.ints(2)), b.op("Slice", shape[1], b.ints(2), b.ints(4)), axis=0)
    return b.op("Resize", y, "", "", sizes, **attributes)


def pyramid(b):
    """Maps of half and of a quarter the size, which come back to sizes that are no multiples of theirs; a pooled one, too."""
    x = b.input("x", ["batch", 3, "h", "w"])
    half = b.op("Relu", b.op("Conv", x, b.weight(8, 3, 3, 3), b.weight(8), strides=[2, 2], pads=[1, 1, 1, 1]))
    quarter = b.op("Relu", b.op("Conv", half, b.weight(8, 8, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]))
    up = b.op("Add", half, resize_like(b, quarter, half, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"))
    b.output(up)
    y = resize_like(b, b.op("GlobalAveragePool", quarter), half, mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    y = b.op("Conv", b.op("Concat", up, y, axis=1), b.weight(3, 16, 1, 1))
    b.output(resize_like(b, y, x, mode="linear", coordinate_transformation_mode="half_pixel"))
    b.output(b.op("ArgMax", resize_like(b, y, x, mode="linear", coordinate_transformation_mode="align_corners"), axis=1), TensorProto.INT64)
    b.output(resize_like(b, b.weight(1, 2, 4, 4), x, mode="cubic", coordinate_transformation_mode="half_pixel"))


def corners_aligned(b):
    """Positions that depend on how many elements there are, for scales and for sizes."""
    x = b.input("x", [1, 2, "h", "w"])
    for mode in ("linear", "cubic"):
        for scale in (2, 0.5, 1.3):
            b.output(b.op("Resize", x, "", b.constant(np.array([1, 1, scale, scale], np.float32)), mode=mode, coordinate_transformation_mode="align_corners"))
    for coordinates in ("half_pixel", "asymmetric", "half_pixel_symmetric", "pytorch_half_pixel"):
        b.output(b.op("Resize", x, "", b.constant(np.array([1, 1, 1.3, 2], np.float32)), mode="linear", coordinate_transformation_mode=coordinates))
    b.output(b.op("Resize", x, "", b.constant(np.array([1, 1, 0.7, 1.7], np.float32)), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"))
    b.output(b.op("Resize", x, "", b.constant(np.array([0.5, 0.5], np.float32)), mode="linear", antialias=1, axes=[2, 3]))
    b.output(b.op("Resize", x, "", b.constant(np.array([1, 1, 1.3, 2], np.float32)), mode="cubic", exclude_outside=1))
    fixed = b.op("Concat", b.op("Slice", b.op("Shape", x), b.ints(0), b.ints(2)), b.ints(7, 1), axis=0)
    for coordinates in ("align_corners", "half_pixel", "pytorch_half_pixel"):
        b.output(b.op("Resize", x, "", "", fixed, mode="linear", coordinate_transformation_mode=coordinates))


def sampled(b):
    x, grid = b.input("x", ["n", 2, "h", "w"]), b.input("grid", ["n", "r", 5, 2])
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                b.output(b.op("GridSample", x, grid, mode=mode, padding_mode=padding, align_corners=align))
    y = b.op("Relu", b.op("Slice", x, b.ints(0), b.ints(1), b.ints(0)))
    b.output(b.op("GridSample", y, b.weight(1, 3, 4, 2, scale=1.0)))


def slices(b):
    """Ends that count from the back, steps, and what is left of them where there are fewer elements."""
    x = b.input("x", [2, "n", 3, "m"])
    far = 2**63 - 1
    for start, end, step in ((1, far, 1), (-1, far, 1), (-3, -1, 1), (0, -1, 1), (3, 5, 1), (0, far, 2), (1, far, 3), (-1, -far, -1), (-2, -far, -2), (4, 1, -1),
                             (-2, 0, -1), (2, -2, 2), (0, 4, 3)):
        b.output(b.op("Slice", x, b.ints(start), b.ints(end), b.ints(1), b.ints(step)))
    b.output(b.op("Slice", x, b.ints(1, -2, -1), b.ints(far, far, -far), b.ints(1, 2, 3), b.ints(1, 1, -1)))
    less = [b.op("Sub", size(b, x, axis), b.ints(1)) for axis in (1, 3)]
    b.output(b.op("Slice", x, b.ints(0, 0), b.op("Concat", *less, axis=0), b.ints(1, 3)))
    # Parts that fit again: a roll, neighbours, halves.
    b.output(b.op("Add", x, b.op("Concat", b.op("Slice", x, b.ints(1), b.ints(far), b.ints(1)), b.op("Slice", x, b.ints(0), b.ints(1), b.ints(1)), axis=1)))
    b.output(b.op("Sub", b.op("Slice", x, b.ints(1), b.ints(far), b.ints(3)), b.op("Slice", x, b.ints(0), b.ints(-1), b.ints(3))))
    # A part of a table as long as the positions between two elements.
    n = size(b, x, 1)
    table = b.op("Slice", b.weight(30, 2), b.op("Sub", b.ints(15), n), b.op("Add", b.ints(14), n), b.ints(0))
    b.output(table)


def relative_positions(b):
    """The shift of relative positions: a column of zeros, and the same elements in other rows."""
    x = b.input("x", ["n", 4])
    n, zero = size(b, x, 0), b.ints(0)
    scores = b.op("Pad", b.op("MatMul", x, b.op("Transpose", x, perm=[1, 0])), b.ints(0, 1, 0, 0))
    moved = b.op("Reshape", scores, b.op("Concat", b.op("Add", n, b.ints(1)), n, axis=0))
    b.output(b.op("Softmax", b.op("Slice", moved, b.ints(1), b.ints(2**63 - 1), zero), axis=-1))


def up_to_a_multiple(b):
    """Images that are padded to a multiple of 4, behind or on both sides, and cut again."""
    x = b.input("x", ["batch", 2, "h", "w"])

    def missing(axis):
        return b.op("Mod", b.op("Sub", b.ints(4), b.op("Mod", size(b, x, axis), b.ints(4))), b.ints(4))
    h, w = missing(2), missing(3)
    pads = b.op("Concat", b.ints(0, 0, 0, 0, 0, 0), h, w, axis=0)
    y = b.op("Conv", b.op("Pad", x, pads), b.weight(3, 2, 4, 4), strides=[4, 4])
    b.output(y)
    b.output(b.op("Slice", b.op("Relu", b.op("Pad", x, pads, b.scalar(2.5))), b.ints(0, 0), b.op("Concat", size(b, x, 2), size(b, x, 3), axis=0), b.ints(2, 3)))
    # As torch.onnx.export writes pads: pairs from the last axis on, turned round.
    pairs = b.op("Reshape", b.op("Concat", b.ints(0), w, b.ints(0), h, b.ints(0, 0, 0, 0), axis=0), b.ints(-1, 2))
    pairs = b.op("Slice", pairs, b.ints(-1), b.ints(-2**63), b.ints(0), b.ints(-1))
    b.output(b.op("Pad", x, b.op("Reshape", b.op("Transpose", pairs, perm=[1, 0]), b.ints(-1)), mode="edge"))
    above, left = b.op("Div", h, b.ints(2)), b.op("Div", w, b.ints(2))
    both = b.op("Concat", b.ints(0, 0), above, left, b.ints(0, 0), b.op("Sub", h, above), b.op("Sub", w, left), axis=0)
    for mode in ("constant", "edge", "reflect"):
        b.output(b.op("Pad", x, both, mode=mode))
    b.output(b.op("Pad", b.weight(1, 2, 4, 3), both))


def one_row_or_none(b):
    """A size that is 1 at most is no size that is 1."""
    x = b.input("x", ["n", 4])
    rows = b.op("Concat", b.op("Div", size(b, x, 0), b.ints(3)), b.ints(4), axis=0)
    copies = b.op("Expand", b.weight(1, 4), rows)
    b.output(copies)
    b.output(b.op("Concat", copies, x, b.op("Tanh", copies), axis=0))


def size_arithmetic(b):
    x = b.input("x", ["n", "m"])
    n, m = size(b, x, 0), size(b, x, 1)

    def filled(*sizes):
        b.output(b.op("ConstantOfShape", b.op("Concat", *sizes, axis=0) if len(sizes) > 1 else sizes[0]))

    filled(b.op("Mod", n, b.ints(4)), b.op("Max", n, m))
    filled(b.op("Min", n, b.ints(4)), b.op("Max", m, b.ints(4)))
    filled(b.op("Mod", b.op("Sub", b.ints(4), b.op("Mod", n, b.ints(4))), b.ints(4)))
    filled(b.op("Neg", b.op("Div", b.op("Neg", n), b.ints(2))))
    filled(b.op("Sub", n, b.op("Div", b.op("Sub", n, b.ints(1)), b.ints(3))))
    filled(b.op("ReduceProd", b.op("Shape", x), b.ints(0)))
    filled(*b.op("Split", b.op("Shape", x), outputs=2, num_outputs=2))
    real = b.op("Cast", n, to=1)
    for rounded in (b.op("Ceil", b.op("Div", real, b.scalar(3.0))), b.op("Floor", b.op("Mul", real, b.scalar(1.5))), b.op("Mul", real, b.scalar(0.25))):
        filled(b.op("Cast", rounded, to=7))
    # Windows of 4: as many as there are elements, filled up.
    windows = b.op("Div", b.op("Add", n, b.op("Mod", b.op("Sub", b.ints(4), b.op("Mod", n, b.ints(4))), b.ints(4))), b.ints(4))
    b.output(b.op("Expand", b.weight(1, 4), b.op("Concat", windows, b.ints(4), axis=0)))


ALL = [
    (pyramid, {"batch": (1, 2), "h": (4, 19), "w": (5, 14)}), (corners_aligned, {"h": (2, 12), "w": (2, 9)}),
    (sampled, {"n": (1, 2), "h": (1, 9), "w": (2, 8), "r": (1, 4)}), (slices, {"n": (1, 11), "m": (2, 6)}), (relative_positions, {"n": (1, 9)}),
    (up_to_a_multiple, {"batch": (1, 2), "h": (3, 11), "w": (4, 9)}), (one_row_or_none, {"n": (1, 3)}), (size_arithmetic, {"n": (1, 13), "m": (2, 6)}),
]
