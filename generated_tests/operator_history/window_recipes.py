"""Convolutions, pools, products, quantisation, resizing and sampling."""
import numpy as np
import onnx

from history import const, recipe

U8, I8, I32, F32 = np.uint8, np.int8, np.int32, np.float32


def halves(o):
    return 4e-3 if o.dtype.itemsize == 2 else 1e-5


@recipe("Conv")
def conv(o):
    yield o(o.x(2, 4, 9, 7), o.x(6, 2, 3, 2), o.x(6), group=2, strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2], kernel_shape=[3, 2], bar=halves(o))
    yield o(o.x(1, 3, 8, 9), o.x(5, 3, 3, 3), auto_pad="SAME_LOWER", strides=[2, 2], bar=halves(o))
    yield o(o.x(2, 3, 11), o.x(4, 3, 5), auto_pad="VALID", bar=halves(o))


@recipe("ConvTranspose")
def conv_transpose(o):
    yield o(o.x(1, 4, 5, 6), o.x(4, 3, 3, 2), o.x(6), group=2, strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 0], bar=halves(o))
    yield o(o.x(1, 3, 5, 4), o.x(3, 2, 3, 3), strides=[2, 2], output_shape=[10, 9], auto_pad="SAME_UPPER", bar=halves(o))
    yield o(o.x(1, 3, 7), o.x(3, 2, 3), dilations=[2], bar=halves(o))


def windows(x, kernel, strides, pads, fill):
    """[n, c, oh, ow, kh * kw]: the windows of a padded image."""
    padded = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))[:, :, ::strides[0], ::strides[1]]
    return view.reshape(*view.shape[:4], -1)


@recipe("AveragePool", "MaxPool", "LpPool")
def pool(o):
    kind = o.schema.name

    def calculate(x, kernel, strides, pads, p=2):
        w = windows(x.astype(np.float64), kernel, strides, pads, {"AveragePool": np.nan, "MaxPool": -np.inf, "LpPool": 0}[kind])
        y = {"AveragePool": lambda: np.nanmean(w, -1), "MaxPool": lambda: w.max(-1), "LpPool": lambda: (np.abs(w) ** p).sum(-1) ** (1 / p)}[kind]()
        return [y.astype(x.dtype)]

    lp = {"p": 3.0 if o.version < 2 else 3} if kind == "LpPool" else {}
    form = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    expect = lambda x: calculate(x, (3, 2), (2, 1), (1, 0, 1, 1), lp.get("p", 2))
    yield o(o.x(2, 3, 9, 8), **form, **lp, expect=expect, bar=halves(o))
    yield o(o.x(2, 3, 7, 8), kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2], expect=lambda x: calculate(x, (3, 3), (2, 2), (1, 0, 1, 1)), bar=halves(o))
    for more in ({"count_include_pad": 1}, {"ceil_mode": 1}, {"dilations": [2, 1]}):
        if all(map(o.has, more)):
            yield o(o.x(2, 3, 8, 8), **form, **lp, **more, bar=halves(o))
    if o.has("storage_order"):
        yield o(o.x(2, 3, 9, 8), **form, storage_order=1, outputs=2)
    yield o(o.x(2, 3, 11), kernel_shape=[3], strides=[2], expect=lambda x: [calculate(x[..., None], (3, 1), (2, 1), (0, 0, 0, 0))[0][..., 0]], bar=halves(o))


@recipe("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(o):
    kind = o.schema.name
    fold = {"GlobalAveragePool": np.mean, "GlobalMaxPool": np.max}.get(kind, lambda x, **k: (np.abs(x) ** 3).sum(**k) ** (1 / 3))
    yield o(o.x(2, 3, 5, 7), **({"p": 3.0 if o.version < 2 else 3} if kind == "GlobalLpPool" else {}), bar=halves(o),
            expect=lambda x: [fold(x.astype(np.float64), axis=(2, 3), keepdims=True).astype(x.dtype)])


@recipe("MaxRoiPool")
def max_roi_pool(o):
    yield o(o.x(2, 3, 8, 9), np.array([[0, 1, 1, 6, 5], [1, 0, 2, 4, 7]], o.dtype), pooled_shape=[2, 3], spatial_scale=1.0)


@recipe("MaxUnpool")
def max_unpool(o):
    yield o(o.x(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]]), kernel_shape=[2, 2], strides=[2, 2])


@recipe("RoiAlign")
def roi_align(o):
    rois = np.array([[1, 1, 6, 5], [0.5, 2.25, 4, 7.5]], o.dtype)
    for more in ({"mode": "avg"}, {"mode": "max", "sampling_ratio": 1}) + (({"coordinate_transformation_mode": "output_half_pixel"},) if o.version >= 16 else ()):
        yield o(o.x(2, 3, 8, 9), rois, const([0, 1]), output_height=3, output_width=2, spatial_scale=0.75, **{"sampling_ratio": 2, **more}, bar=halves(o))


@recipe("DeformConv")
def deform_conv(o):
    yield o(o.x(1, 2, 5, 6), o.x(3, 2, 2, 2), o.x(1, 8, 4, 5, low=-1, high=1), o.x(3), o.x(1, 4, 4, 5, low=0, high=1), bar=1e-4)


@recipe("Col2Im")
def col2im(o):
    yield o(o.x(2, 18, 20), const([7, 7]), const([2, 3]), strides=[2, 1], pads=[1, 0, 1, 0])


@recipe("GridSample")
def grid_sample(o):
    o.dtype = o.dtype if o.is_float else np.dtype(F32)
    modes = ("bilinear", "bicubic", "nearest") if o.version < 20 else ("linear", "cubic", "nearest")
    for mode in modes:
        for padding, corners in (("border", 1), ("reflection", 0), ("zeros", 0)):
            yield o(o.x(2, 3, 5, 6), o.x(2, 4, 3, 2, low=-1.2, high=1.2), mode=mode, padding_mode=padding, align_corners=corners, bar=1e-4)
    if o.version >= 20:
        yield o(o.x(1, 2, 3, 5, 4), o.x(1, 2, 3, 4, 3, low=-1, high=1), mode="linear", bar=1e-4)


@recipe("AffineGrid")
def affine_grid(o):
    yield o(o.x(2, 2, 3), const([2, 3, 5, 6]), align_corners=1)
    yield o(o.x(1, 3, 4), const([1, 2, 3, 4, 5]))


def upsampled(x, scales, mode):
    """Each result is at index / scale of the operand."""
    kind = x.dtype
    for axis, scale in enumerate(scales):
        if scale == 1:
            continue
        at = np.arange(int(x.shape[axis] * scale)) / scale
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        w = (at - low).reshape((-1,) + (1,) * (x.ndim - axis - 1)) if mode not in (None, "nearest") else 0
        x = x.take(low, axis) * (1 - w) + x.take(high, axis) * w
    return [x.astype(kind)]


@recipe("Upsample")
def upsample(o):
    for mode, scales in ((None, (1, 1, 2, 3)), ("nearest", (1, 1, 1.5, 2)), ("bilinear" if o.version < 7 else "linear", (1, 1, 2, 2.5))):
        run = lambda x, *_, m=mode, s=scales: upsampled(x, s, m)
        if o.has("height_scale"):
            yield o(o.x(1, 2, 3, 4), height_scale=float(scales[2]), width_scale=float(scales[3]), mode=mode, expect=run)
        elif o.has("scales"):
            yield o(o.x(1, 2, 3, 4), scales=[float(s) for s in scales], mode=mode, expect=run)
        else:
            yield o(o.x(1, 2, 3, 4), const(scales, F32), mode=mode, expect=run)


@recipe("Resize")
def resize(o):
    x = o.x(1, 2, 6, 5)
    if o.version < 11:
        for mode, scales in (("nearest", (1, 1, 2, 1.6)), ("nearest", (1, 1, 0.5, 2)), ("linear", (1, 1, 1.5, 2)), ("linear", (1, 1, 0.5, 0.6))):
            if o.is_float or mode == "nearest":
                yield o(x, const(scales, F32), mode=mode, expect=lambda x, _, m=mode, s=scales: upsampled(x, s, m))
        return
    roi = const([], F32) if o.version < 13 else None
    for mode, scales, more in (("nearest", (1, 1, 2, 1.6), {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}),
                               ("nearest", (1, 1, 0.5, 0.6), {"nearest_mode": "round_prefer_ceil"}), ("linear", (1, 1, 1.5, 2), {}),
                               ("linear", (1, 1, 0.5, 2), {"coordinate_transformation_mode": "pytorch_half_pixel"}),
                               ("cubic", (1, 1, 2, 2), {"cubic_coeff_a": -0.5, "coordinate_transformation_mode": "asymmetric", "exclude_outside": 1}),
                               ("linear", (1, 1, 2, 2), {"coordinate_transformation_mode": "align_corners"})):
        yield o(x, roi, const(scales, F32), mode=mode, **more, bar=1e-4)
    if o.version < 13:
        yield o(x, roi, const((1, 1, 2, 1.6), F32), coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor")
    yield o(x, const([0, 0, 0.2, 0.1, 1, 1, 0.7, 0.9], F32), const([] if o.version < 13 else [1, 1, 1.5, 2], F32),
            *([const([1, 2, 9, 10])] if o.version < 13 else []), mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=3.0, bar=1e-4)
    yield o(x, roi, const([], F32) if o.version < 13 else None, const([1, 2, 9, 3]), mode="linear", bar=1e-4)
    if o.has("axes"):
        yield o(x, None, None, const([9, 3]), axes=[2, 3], mode="linear", antialias=1, bar=1e-4)
        yield o(x, None, None, const([9, 3]), axes=[2, 3], mode="linear", keep_aspect_ratio_policy="not_smaller", bar=1e-4)
    if o.version >= 19:
        yield o(x, None, const((1, 1, 1.5, 0.7), F32), mode="linear", coordinate_transformation_mode="half_pixel_symmetric", bar=1e-4)


@recipe("MatMul")
def matmul(o):
    for a, b in (((3, 5), (5, 4)), ((2, 3, 5), (2, 5, 4)), ((5,), (5, 4)), ((2, 1, 3, 5), (3, 5, 1))):
        yield o(o.x(*a), o.x(*b), expect=lambda x, y: [np.asarray(np.matmul(x, y)).astype(x.dtype)], bar=halves(o))


@recipe("Gemm")
def gemm(o):
    def calculate(a, b, c=0, alpha=1, beta=1, ta=0, tb=0):
        return [(alpha * ((a.T if ta else a) @ (b.T if tb else b)) + beta * c).astype(a.dtype)]

    scales = {"alpha": 0.5, "beta": 2.0} if o.is_float else {}
    run = lambda *v, **k: calculate(*v, **scales, **k)
    yield o(o.x(3, 5), o.x(5, 4), o.x(3, 4), **scales, expect=run, bar=halves(o))
    shapes = [(4,), (1, 4), (1,), (3, 1), (1, 1)]
    for shape in shapes:
        yield o(o.x(5, 3), o.x(4, 5), o.x(*shape), transA=1, transB=1, **scales, broadcast=1 if o.has("broadcast") else None,
                expect=lambda *v: run(*v, ta=1, tb=1), bar=halves(o))
    if o.version >= 11:
        yield o(o.x(3, 5), o.x(5, 4), bar=halves(o))


@recipe("MatMulInteger")
def matmul_integer(o):
    def whole(low, high, *shape, kind=U8):
        return o.rng.integers(low, high, shape).astype(kind)
    yield o(whole(0, 255, 5, 7), whole(0, 255, 7, 3), const(12, U8), const(7, U8))
    yield o(whole(-128, 127, 2, 5, 9, kind=I8), whole(0, 255, 9, 3), const(-3, I8))


@recipe("QLinearMatMul")
def qlinear_matmul(o):
    a, b = o.rng.integers(0, 255, (5, 7)).astype(U8), o.rng.integers(-60, 60, (7, 3)).astype(I8)
    for kind in (F32,) if o.version < 21 else (F32, np.float16):
        yield o(a, const(0.05, kind), const(12, U8), b, const(0.02, kind), const(0, I8), const(0.25, kind), const(100, U8))


@recipe("QLinearConv")
def qlinear_conv(o):
    x, w = o.rng.integers(0, 255, (1, 3, 8, 7)).astype(U8), o.rng.integers(-60, 60, (4, 3, 3, 3)).astype(I8)
    yield o(x, const(0.02, F32), const(110, U8), const(w, I8), const([0.01, 0.02, 0.005, 0.01], F32), const([0, 0, 0, 0], I8), const(0.1, F32), const(90, U8),
            const([100, -50, 3, 0], I32), pads=[1, 0, 1, 2], strides=[2, 1])


@recipe("ConvInteger")
def conv_integer(o):
    yield o(o.rng.integers(0, 255, (1, 3, 8, 7)).astype(U8), o.rng.integers(0, 255, (4, 3, 3, 3)).astype(U8), const(110, U8), pads=[1, 0, 1, 2])


@recipe("Einsum")
def einsum(o):
    yield o(o.x(3, 4, 5), o.x(5, 4), equation="bij,jk->bik" if False else "bij,ji->bi")
    yield o(o.x(3, 5), o.x(5, 4), equation="ij,jk", bar=halves(o))


@recipe("Det")
def det(o):
    yield o(o.x(2, 3, 3), bar=1e-4)


@recipe("QuantizeLinear")
def quantize(o):
    x = o.x(3, 4, 5, low=-9, high=9, dtype=F32)
    yield o(x, const(0.125, F32), const(100, U8))
    yield o(x, const(0.125, F32), const(-3, I8))
    yield o(x, const(0.25, F32))
    if o.has("axis"):
        for axis, n in ((None, 4), (0, 3), (-1, 5)):
            yield o(x, const(o.f(n, low=0.05, high=0.2), F32), const(o.rng.integers(90, 160, n), U8), axis=axis)
    if o.version >= 19:
        yield o(x.astype(np.float16), const(0.125, np.float16), const(100, U8))
    if o.has("output_dtype"):
        yield o(x, const(0.03, F32), output_dtype=onnx.TensorProto.INT16)
        yield o(x, const(o.f(3, 2, 5, low=0.05, high=0.2), F32), const(o.rng.integers(90, 160, (3, 2, 5)), U8), axis=1, block_size=2)


@recipe("DequantizeLinear")
def dequantize(o):
    x = o.rng.integers(0, 255, (3, 4, 5)).astype(U8)
    yield o(x, const(0.125, F32), const(100, U8))
    yield o((x // 2).astype(I8), const(0.25, F32))
    yield o(x.astype(I32), const(0.25, F32))
    if o.has("axis"):
        for axis, n in ((None, 4), (0, 3), (-1, 5)):
            yield o(x, const(o.f(n, low=0.05, high=0.2), F32), const(o.rng.integers(90, 160, n), U8), axis=axis)
    if o.version >= 19:
        yield o(x, const(0.125, np.float16), const(100, U8), bar=2e-3)
    if o.has("block_size"):
        yield o(x, const(o.f(3, 2, 5, low=0.05, high=0.2), F32), const(o.rng.integers(90, 160, (3, 2, 5)), U8), axis=1, block_size=2)


@recipe("DynamicQuantizeLinear")
def dynamic_quantize(o):
    yield o(o.x(5, 7, dtype=F32), outputs=3)


@recipe("NonMaxSuppression")
def non_max_suppression(o):
    boxes, scores = (o.rng.random((2, 9, 4)) * 8).astype(F32), o.rng.random((2, 3, 9)).astype(F32)
    for form in (0, 1):
        yield o(boxes, scores, const([4]), const([0.3], F32), const([0.25], F32), center_point_box=form, counted=True)
