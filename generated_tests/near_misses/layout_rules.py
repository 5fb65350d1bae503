"""Models beside the rules about places: channels last, padding, transposed convolutions, empty results, loops (rules.py says how)."""
import numpy as np

from case import ints
from rules import F16, F32, F64, I32, I64, bytes_of, case, near, scalar, some

CONV = "t = Conv <pads = [1,1,1,1]> (x, w)\n"


def after_conv(name, body, x=(2, 3, 4, 5), channels=6, weights=None, inputs=None, kernel=3, outputs=("y",), t=F32, back=True):
    """An operator between two convolutions, which want the channels last."""
    pads = kernel // 2
    given = {"w": some((channels, x[1]) + (kernel,) * (len(x) - 2), t, 1, 0.5), **(weights or {})}
    text = f"t = Conv <pads = {[pads] * 2 * (len(x) - 2)}> (x, w)\n {body}"
    return case(name, text, {"x": some(x, t), **(inputs or {})}, given, outputs, bar=3e-5)


# name: (body, weights, inputs); t is the result of the convolution, [2, c, h, w]
def operators(c, h, w):
    yield from {
        "transpose_space": ("y = Transpose <perm = [0,1,3,2]> (t)", {}), "transpose_channels": ("y = Transpose <perm = [0,2,3,1]> (t)", {}), "transpose_all": ("y = Transpose (t)", {}),
        "transpose_twice": ("u = Transpose <perm = [0,1,3,2]> (t)\n v = Relu (u)\n y = Transpose <perm = [0,3,1,2]> (v)", {}),
        "row": ("y = Add (t, k)", {"k": some((w,))}), "channel": ("y = Mul (t, k)", {"k": some((c, 1, 1))}), "rows": ("y = Add (k, t)", {"k": some((h, 1))}), "longer": ("y = Add (t, k)", {"k": some((2, 1, 1, 1, 1))}),
        "longer_pair": ("u = Add (t, k)\n v = Relu (u)\n y = Mul (v, j)", {"k": some((3, 1, c, 1, w)), "j": some((c, 1, 1))}), "one": ("y = Add (t, k)", {"k": scalar(0.5, F32, 4)}),
        "one_longer": ("y = Add (t, k)", {"k": scalar(0.5, F32, 5)}),
        "slope": ("y = PRelu (t, k)", {"k": some((c, 1, 1))}), "slope_row": ("y = PRelu (t, k)", {"k": some((w,))}), "less": ("a = Less (t, k)\n y = Where (a, t, k)", {"k": some((h, w))}),
        "clip": ("y = Clip (t, l, k)", {"l": F32(-0.5), "k": F32(0.5)}), "max": ("y = Max (t, k, j)", {"k": some((c, 1, 1)), "j": some((w,))}), "modulo": ("y = Mod <fmod = 1> (t, k)", {"k": np.abs(some((c, 1, 1))) + F32(0.5)}),
        **{f"softmax_{a}".replace("-", "m"): (f"y = Softmax <axis = {a}> (t)", {}) for a in (0, 1, 2, -1)}, "log_softmax": ("y = LogSoftmax (t)", {}), "hardmax": ("y = Hardmax <axis = 1> (t)", {}),
        "concat": ("u = Relu (t)\n y = Concat <axis = 1> (t, u)", {}), "concat_rows": ("u = Relu (t)\n y = Concat <axis = -2> (t, u)", {}), "concat_constant": ("y = Concat <axis = 1> (t, k)", {"k": some((2, 2, h, w))}),
        "concat_one": ("y = Concat <axis = 3> (t)", {}),
        "slice": ("y = Slice (t, b, e, a)", {"b": ints(0), "e": ints(1), "a": ints(1)}), "slice_default": ("y = Slice (t, b, e)", {"b": ints(0, 0), "e": ints(1, 5)}),
        "slice_back": ("y = Slice (t, b, e, a, s)", {"b": ints(-1, 0), "e": ints(-100, 1), "a": ints(-1, 1), "s": ints(-1, 1)}),
        "pad": ("y = Pad (t, p, k)", {"p": ints(0, 1, 0, 2, 0, 0, 1, 0), "k": F32(0.25)}), "pad_axes": ("y = Pad (t, p, , a)", {"p": ints(1, 0, 0, 2), "a": ints(1, -1)}),
        "pad_edge": ('y = Pad <mode = "edge"> (t, p)', {"p": ints(0, 1, 0, 2, 0, 0, 1, 0)}), "pad_wrap": ('y = Pad <mode = "wrap"> (t, p)', {"p": ints(0, 1, 0, 1, 0, 1, 0, 0)}),
        **{f"{op.lower()}_{'_'.join(str(a) for a in axes)}_{keep}".replace("-", "m"): (f"y = {op} <keepdims = {keep}> (t, k)", {"k": ints(*axes)})
           for op in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2") for axes in ((1,), (2, 3), (1, 2), (-1,), (0,), (0, 2, 3), (3, 1)) for keep in (0, 1)},
        "reduce_all": ("y = ReduceSum <keepdims = 1> (t)", {}), "reduce_nothing": ("y = ReduceSum <noop_with_empty_axes = 1> (t)", {}), "reduce_all_away": ("y = ReduceMax <keepdims = 0> (t)", {}),
        "reduce_no_axes": ("y = ReduceSum <noop_with_empty_axes = 1> (t, k)", {"k": ints()}), "argmax": ("y = ArgMax <axis = 1> (t)", {}),
        "max_pool": ("y = MaxPool <kernel_shape = [2,2], pads = [1,0,1,1]> (t)", {}), "average_pool": ("y = AveragePool <kernel_shape = [2,2], pads = [1,0,0,1]> (t)", {}), "global_pool": ("y = GlobalAveragePool (t)", {}),
        "average_counted": ("y = AveragePool <kernel_shape = [2,2], pads = [1,0,0,1], count_include_pad = 1> (t)", {}), "max_pool_ceil": ("y = MaxPool <kernel_shape = [2,2], strides = [2,2], ceil_mode = 1> (t)", {}),
        "lp_pool": ("y = LpPool <kernel_shape = [2,1]> (t)", {}), "flatten": ("u = Flatten (t)\n y = MatMul (u, k)", {"k": some((c * h * w, 5), scale=0.2)}),
        "flatten_left": ("u = Flatten (t)\n y = MatMul (k, u)", {"k": some((3, 2))}), "flatten_all": ("u = Flatten <axis = 2> (t)\n y = MatMul (u, k)", {"k": some((h * w, 5))}),
        "flatten_shared": ("u = Flatten (t)\n y = MatMul (u, k)\n z = Neg (u)", {"k": some((c * h * w, 5), scale=0.2)}),
        "merge": ("u = Reshape (t, s)\n y = Relu (u)", {"s": ints(0, 0, -1)}), "merge_others": ("u = Reshape (t, s)\n y = Relu (u)", {"s": ints(2, -1, w)}), "regroup": ("u = Reshape (t, s)\n y = Transpose <perm = [0,2,1,3,4]> (u)", {"s": ints(2, -1, c // 2 or 1, h, w)}),
        "squeeze": ("u = ReduceMean (t, k)\n y = Squeeze (u, k)", {"k": ints(2, 3)}), "unsqueeze": ("u = Unsqueeze (t, k)\n y = Relu (u)", {"k": ints(1)}), "expand": ("y = Expand (t, s)", {"s": ints(2, c, h, w)}), "expand_longer": ("y = Expand (t, s)", {"s": ints(3, 1, c, h, w)}),
        "tile": ("y = Tile (t, s)", {"s": ints(1, 2, 1, 1)}), "trilu": ("y = Trilu (t)", {}), "trilu_lower": ("y = Trilu <upper = 0> (t, k)", {"k": np.array(1, I64)}), "cumsum": ("y = CumSum (t, k)", {"k": np.array(1, I64)}),
        "resize": ('y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (t, , s)', {"s": np.array([1, 1, 2, 2], F32)}),
        "resize_channels": ('y = Resize <mode = "linear"> (t, , s)', {"s": np.array([1, 2, 1, 1], F32)}), "resize_axes": ('y = Resize <mode = "linear", axes = [3]> (t, , s)', {"s": np.array([2], F32)}),
        "resize_sizes": ('y = Resize <mode = "linear", axes = [2,3]> (t, , , s)', {"s": ints(3, 7)}), "gather": ("y = Gather <axis = 1> (t, k)", {"k": ints(0, 0)}), "gather_elements": ("y = GatherElements <axis = 1> (t, k)", {"k": np.zeros((2, 1, h, w), I64)}),
        "instance_norm": ("y = InstanceNormalization (t, k, k)", {"k": some((c,))}), "layer_norm": ("y = LayerNormalization <axis = 1> (t, k)", {"k": some((c, h, w))}), "quantize": ("q = QuantizeLinear <axis = 1> (t, k, z)\n y = DequantizeLinear <axis = 1> (q, k, z)", {"k": np.abs(some((c,))) + F32(0.1), "z": np.zeros(c, np.uint8)}),
        "quantize_row": ("q = QuantizeLinear <axis = 3> (t, k, z)\n y = DequantizeLinear <axis = 3> (q, k, z)", {"k": np.abs(some((w,))) + F32(0.1), "z": np.zeros(w, np.uint8)}), "split": ("y, z = Split <axis = 3, num_outputs = 2> (t)", {}) if w > 1 else ("y = Neg (t)\n z = Relu (t)", {}),
        "depth_to_space": ("y = DepthToSpace <blocksize = 1> (t)", {}), "space_to_depth": ("y = SpaceToDepth <blocksize = 1> (t)", {}), "top_k": ("y, z = TopK <axis = 1> (t, k)", {"k": ints(1)}),
        "reverse": ("y = ReverseSequence <batch_axis = 0, time_axis = 1> (t, k)", {"k": ints(1, c)}), "lrn": ("y = LRN <size = 3> (t)", {}), "lp_norm": ("y = LpNormalization <axis = 1> (t)", {}), "mvn": ("y = MeanVarianceNormalization (t)", {}),
        "sum": ("y = Sum (t, k, j)", {"k": some((c, 1, 1)), "j": some((w,))}), "not": ("a = Greater (t, k)\n b = Not (a)\n y = Cast <to = 1> (b)", {"k": some((c, 1, 1))}), "shape": ("u = Shape (t)\n y = Cast <to = 1> (u)", {}),
        "self": ("u = Transpose <perm = [0,1,3,2]> (t)\n y = MatMul (t, u)", {}), "output": ("y = Relu (t)\n z = Identity (t)", {}),
    }.items()


def layouts():
    for label, x, channels in (("plain", (2, 3, 4, 5), 6), ("points", (2, 3, 1, 1), 4), ("one_channel", (2, 3, 4, 5), 1), ("column", (2, 3, 5, 1), 4), ("one", (2, 3, 1, 1), 1)):
        for op, (body, weights) in operators(channels, *x[2:]):
            if min(x[2:]) < 2 and ("[2,2]" in body or "[2,1]" in body):
                continue  # kernels of pools fit into what they read
            two = " z = " in "\n " + body or "y, z" in body
            yield after_conv(f"after_conv_{label}_{op}", body, x, channels, weights, outputs=("y", "z") if two else ("y",), t=F32)
    for shape in ((2, 3, 5), (1, 3, 2, 4, 3)):
        rank = len(shape)
        yield after_conv(f"after_conv_{rank}_add", "u = Add (t, k)\n y = ReduceMean <keepdims = 0> (u, a)", shape, 4, {"k": some((4,) + (1,) * (rank - 2)), "a": ints(2)})


# --- convert_layout: shuffles of channels, what the model itself puts channels last; program/parts: tensors inside of others

def shuffled(name, x=(2, 3, 4, 5), channels=6, parts=None, perm=(0, 2, 1, 3, 4), back=None, conv=True, shared=False):
    parts = parts or (x[0], 2, channels // 2) + x[2:]
    body = ("a = Conv <pads = [1,1,1,1]> (x, w)\n" if conv else "a = Identity (x)\n") + f" s = Reshape (a, p)\n t = Transpose <perm = {list(perm)}> (s)\n u = Reshape (t, q)\n y = Relu (u)" + ("\n v = Neg (t)" if shared else "")
    c = channels if conv else x[1]
    weights = {"p": ints(*parts), "q": ints(*(back or (x[0], c) + x[2:]))}
    if conv:
        weights["w"] = some((channels, x[1], 3, 3), scale=0.5)
    return case(name, body, {"x": some(x)}, weights, ("y", "v") if shared else ("y",), bar=3e-5)


def last_by_model(name, perm=(0, 3, 1, 2), first=(0, 2, 3, 1), other=None, work="s = Mul (u, l)", l=(8, 1, 1), conv=True, x=(2, 8, 6, 6), outputs=("y",), after="y = Conv <pads = [1,1,1,1]> (z, w)"):
    """Linear layers on channels last, between convolutions on channels first."""
    rank = len(x)
    body = ("a = Conv <pads = [1,1,1,1]> (x, w)\n" if conv else "a = Neg (x)\n") + f" t = Transpose <perm = {list(first)}> (a)\n p = MatMul (t, m)\n u = Transpose <perm = {list(perm)}> (p)\n {work}\n z = Add (s, {other or 'a'})\n {after}"
    weights = {"m": some((x[first[-1]], x[first[-1]]), scale=0.4), "l": some(l), "k": ints(2, 3)}
    if "Conv" in body:
        weights["w"] = some((8, 8) + (3,) * (rank - 2), scale=0.2)
    return case(name, body, {"x": some(x), **({other: some(x, seed=4)} if other else {})}, weights, outputs, bar=1e-4)


def inside(name, x=(2, 8, 20, 9), parts=(16, 24), axis=1, reader="y = Sigmoid (e)", work="c = Relu (a)", operands="c, d", t=F32, outputs=("y",), weights=None, kernel=3):
    """A Concat of what two convolutions make."""
    p, q = parts
    pads = [kernel // 2] * 4
    body = f"a = Conv <pads = {pads}> (x, v)\n {work}\n d = Conv (x, w)\n e = Concat <axis = {axis}> ({operands})\n {reader}"
    return case(name, body, {"x": some(x, t)}, {"v": some((p, x[1], kernel, kernel), t, 1, 0.3), "w": some((q, x[1], 1, 1), t, 2, 0.3), **(weights or {})}, outputs, bar=None if t != F32 else 3e-5)


def rows_inside(name, op="r = ReduceMax <keepdims = 0> (x, k)", other="Neg", shape=(6, 40, 30), axis=-1, reader="y = Sigmoid (e)", outputs=("y",), t=F32):
    """A Concat of what reductions along rows make."""
    return case(name, f"{op}\n q = {other} (r)\n p = Softmax (q)\n e = Concat <axis = {axis}> (r, p, q)\n {reader}", {"x": some(shape, t)}, {"k": ints(-1), "g": some((shape[-1],), t), "b": some((shape[-1],), t, 1)}, outputs)


def neighbours():
    yield from near(rows_inside, mean=dict(op="r = ReduceMean <keepdims = 0> (x, k)"), first=dict(axis=0), rank=dict(shape=(40, 30), axis=0), norm=dict(op="r = LayerNormalization (x, g, b)"), norm_rows=dict(op="r = LayerNormalization (x, g, b)", axis=1), softmax=dict(op="r = Softmax (x)", other="Softmax"), log_softmax=dict(op="r = LogSoftmax (x)"),
                    read=dict(op="r = LayerNormalization (x, g, b)", reader="y = Sigmoid (e)\n z = Softmax (r)", outputs=("y", "z")), whole=dict(op="r = Softmax (x)", reader="y = Softmax (e)\n z = ReduceSum <keepdims = 0> (e, k)", outputs=("y", "z")), columns=dict(op="r = Softmax <axis = 1> (x)"), doubles=dict(op="r = LayerNormalization (x, g, b)", t=F64), argument=dict(op="a = ArgMax <axis = -1, keepdims = 0> (x)\n r = Cast <to = 1> (a)"))
    yield from near(shuffled, shared=dict(shared=True), no_conv=dict(conv=False, x=(2, 6, 4, 5)), three=dict(parts=(2, 3, 2, 4, 5)), one=dict(parts=(2, 1, 6, 4, 5)), space=dict(perm=(0, 1, 2, 4, 3)), space_too=dict(perm=(0, 2, 1, 4, 3)), none=dict(perm=(0, 1, 2, 3, 4)), batch=dict(perm=(1, 0, 2, 3, 4)),
                    other_parts=dict(parts=(2, 6, 2, 2, 5), perm=(0, 2, 1, 3, 4)), other_size=dict(back=(2, 6, 5, 4)), flat=dict(back=(2, 120)), square=dict(x=(2, 3, 4, 4), parts=(2, 4, 6, 4, 1), perm=(0, 2, 1, 3, 4)), points=dict(x=(2, 3, 1, 1)))
    yield from near(last_by_model, other=dict(other="r"), no_conv=dict(conv=False), perm=dict(perm=(0, 3, 2, 1)), same=dict(perm=(0, 1, 2, 3), first=(0, 1, 3, 2), l=(6,)), output=dict(outputs=("y", "u")), scale_rows=dict(l=(6, 1)), scale_all=dict(l=(2, 8, 6, 6)),
                    mean=dict(work="q = ReduceMean <keepdims = 1> (u, k)\n s = Mul (q, l)"), softmax=dict(work="s = Softmax <axis = 1> (u)"), first_perm=dict(first=(0, 3, 2, 1)), no_conv_behind=dict(after="y = Relu (z)"), nothing=dict(conv=False, after="y = Relu (z)"), twice=dict(work="q = Transpose <perm = [0,2,3,1]> (u)\n r = Relu (q)\n s = Transpose <perm = [0,3,1,2]> (r)"))
    pool = "y = MaxPool <kernel_shape = [2,2]> ({})"
    three = {"u": some((5, 40, 3, 3), scale=0.2)}
    yield from near(inside, output=dict(outputs=("y", "c")), whole_output=dict(outputs=("y", "e")), twice=dict(operands="c, c"), thrice=dict(operands="c, d, c"), input=dict(operands="c, x, d"), short=dict(parts=(4, 7)), short_one=dict(parts=(2, 40)), rows=dict(axis=2, parts=(16, 16)), columns=dict(axis=3, parts=(16, 16)), batch=dict(axis=0, parts=(16, 16)),
                    small=dict(x=(1, 8, 3, 3)), halves=dict(t=F16), doubles=dict(t=F64), read=dict(reader="y = Sigmoid (e)\n z = MaxPool <kernel_shape = [2,2]> (c)", outputs=("y", "z")), viewed=dict(reader="y = Sigmoid (e)\n f = Reshape (c, s)\n z = Neg (f)", outputs=("y", "z"), weights={"s": ints(2, -1)}),
                    view_of_whole=dict(reader="f = Reshape (e, s)\n y = Neg (f)", weights={"s": ints(2, -1)}), view=dict(work="b = Relu (a)\n r = Reshape (b, s)\n q = Neg (r)\n c = Reshape (q, s2)", weights={"s": ints(2, 16, -1), "s2": ints(2, 16, 20, 9)}),
                    softmax=dict(work="c = Softmax <axis = 1> (a)"), read_by_softmax=dict(reader="y = Softmax <axis = 1> (e)"), read_by_norm=dict(reader="y = Sigmoid (e)\n z = LayerNormalization <axis = 3> (c, s)", outputs=("y", "z"), weights={"s": some((9,))}), top_k=dict(reader="y = Sigmoid (e)\n z, i = TopK <axis = 1> (c, s)", outputs=("y", "z"), weights={"s": ints(3)}),
                    cumsum=dict(reader="y = Sigmoid (e)\n z = CumSum (c, s)", outputs=("y", "z"), weights={"s": np.array(1, I64)}), padded=dict(reader="y = Conv <pads = [1,1,1,1]> (e, u)", weights=three), padded_end=dict(reader="y = Conv <pads = [0,0,2,1]> (e, u)", weights=three), padded_and_product=dict(reader="y = Conv <pads = [1,1,1,1]> (e, u)\n z = Conv (e, r)", outputs=("y", "z"), weights={**three, "r": some((3, 40, 1, 1))}),
                    padded_and_pool=dict(reader="y = Conv <pads = [1,1,1,1]> (e, u)\n z = MaxPool <kernel_shape = [2,2]> (e)", outputs=("y", "z"), weights=three), padded_twice=dict(reader="y = Conv <pads = [1,1,1,1]> (e, u)\n z = Conv <pads = [0,0,2,2]> (e, u)", outputs=("y", "z"), weights=three), concat_of_concat=dict(reader="f = Concat <axis = 1> (d, e)\n y = Neg (f)"),
                    concat_again=dict(reader="f = Concat <axis = 1> (d, c)\n y = Neg (f)\n z = Sigmoid (e)", outputs=("y", "z")), prefix=dict(reader="f = Concat <axis = 1> (c, d, c)\n y = Neg (f)\n z = Sigmoid (e)", outputs=("y", "z")), slice=dict(reader="f = Slice (e, s, s2, k)\n y = MaxPool <kernel_shape = [2,2]> (f)\n z = Sigmoid (f)", outputs=("y", "z"), weights={"s": ints(3), "s2": ints(20), "k": ints(1)}),
                    slice_rows=dict(reader="f = Slice (e, s, s2, k)\n y = MaxPool <kernel_shape = [2,2]> (f)\n z = Sigmoid (f)", outputs=("y", "z"), weights={"s": ints(3), "s2": ints(19), "k": ints(2)}), slice_steps=dict(reader="f = Slice (e, s, s2, k, p)\n y = MaxPool <kernel_shape = [2,2]> (f)\n z = Sigmoid (f)", outputs=("y", "z"), weights={"s": ints(3), "s2": ints(20), "k": ints(1), "p": ints(2)}),
                    slice_output=dict(reader="f = Slice (e, s, s2, k)\n y = MaxPool <kernel_shape = [2,2]> (f)", outputs=("y", "f"), weights={"s": ints(3), "s2": ints(20), "k": ints(1)}), slice_back=dict(reader="f = Slice (e, s, s2, k)\n g = Concat <axis = 1> (f, c)\n y = Sigmoid (g)", weights={"s": ints(3), "s2": ints(20), "k": ints(1)}),
                    residual=dict(work="b = Relu (a)\n g = Conv <pads = [1,1,1,1]> (b, u)\n c = Add (g, b)", weights={"u": some((16, 16, 3, 3), scale=0.2)}), branch=dict(reader="y = If <then_branch = th () => (float[2,40,20,9] o) { o = Neg (e) }, else_branch = el () => (float[2,40,20,9] o) { o = Abs (c0) }> (q)", weights={"q": np.array(True), "c0": some((2, 40, 20, 9))}))


# --- explicit_pad, phases, trailing pads

def transposed_conv(name, x=(1, 3, 4, 5), oc=4, kernel=(2, 2), strides=(2, 2), pads=(0, 0, 0, 0), more=(0, 0), dilations=(1, 1), group=1, bias=False, t=F32, before="", auto="", shape=None, computed=False):
    attributes = [f"strides = {list(strides)}", f"dilations = {list(dilations)}", f"group = {group}"]
    attributes += [f'auto_pad = "{auto}"'] if auto else [f"pads = {list(pads)}", f"output_padding = {list(more)}"]
    if shape:
        attributes = [a for a in attributes if not a.startswith("pads")] + [f"output_shape = {list(shape)}"]
    weights = {"w": some((x[1], oc // group) + tuple(kernel), t, 1), "b": some((oc,), t, 2)}
    inputs = {"x": some(x, t)}
    if computed:
        inputs["w"] = weights.pop("w")
    body = ("u = Relu (x)\n" if before else "") + f"y = ConvTranspose <{', '.join(attributes)}> ({'u' if before else 'x'}, w{', b' if bias else ''})"
    return case(name, body, inputs, weights, bar=3e-5)


def resized(name, x=(1, 2, 4, 5), scales=None, sizes=None, mode="nearest", axes=None, coordinates="half_pixel"):
    weights = {"s": np.array(scales, F32) if scales else ints(*sizes)}
    attributes = f'mode = "{mode}", coordinate_transformation_mode = "{coordinates}"' + (f", axes = {list(axes)}" if axes else "")
    return case(name, f"y = Resize <{attributes}> (x, {', s' if scales else ', , s'})", {"x": some(x)}, weights)


def chosen_by(name, condition=(), x=(), y=(), constant=True, no=2.5, swapped=False, compare=None):
    values = np.asarray(np.random.default_rng(len(condition)).random(condition) > 0.5)
    inputs, weights = {"c": values, "x": some(x) if x else F32(1.5)}, {"z": np.full(y, no, F32)}
    return case(name, f"y = Where (c, {'z, x' if swapped else 'x, z'})", inputs, weights)


def padded(name, mode="constant", pads=(1, 0, 0, 2), x=(3, 4), then="", value=0.5, mask=None):
    weights = {"p": ints(*pads), "v": F32(value)}
    body = f'y = Pad <mode = "{mode}"> (x, p{", v" if mode == "constant" else ""})'
    return case(name, body, {"x": some(x)}, weights)


# --- combine_parallel_conv2d

def parallel_convs(name, channels=(5, 6, 3), attributes=("", "", ""), biases=(1, 1, 1), activations=("Relu", "Relu", "Relu"), readers=("conv", "conv", "conv"), kernels=((3, 3),) * 3,
                   t=F32, group=1, other=False, computed=False, shared=False, slope=False, outputs=None):
    """Convolutions of one tensor with too few channels for a vector, an activation behind each, and readers."""
    body, inputs, weights = ["v = Neg (x)"], {"x": some((2, 4, 7, 6), t)}, {"r": ints(2, -1), "e": some((1,), t, 9), "f": some((1,), t, 8)}
    results = []
    for k, (c, (kh, kw)) in enumerate(zip(channels, kernels)):
        weights |= {f"w{k}": some((c, 4 // group, kh, kw), t, k), f"b{k}": some((c,), t, k + 7), f"u{k}": some((3, c, 1, 1), t, k + 3), f"p{k}": some((3, c, 3, 3), t, k + 5), f"s{k}": some((c, 1, 1), t, k)}
        if computed:
            inputs[f"w{k}"] = weights.pop(f"w{k}")
        body.append(f"c{k} = Conv <group = {group}{attributes[k]}> ({'x' if other and k else 'v'}, w{k}{f', b{k}' if biases[k] else ''})")
        act = activations[k]
        body.append(f"a{k} = {act} (c{k}{f', s{k}' if act == 'PRelu' and slope else f', {act[-1]}' if act[:-1] == 'PRelu_' else ''})".replace("PRelu_e", "PRelu").replace("PRelu_f", "PRelu") if act else f"a{k} = Identity (c{k})")
        reader = {"conv": f"y{k} = Conv (a{k}, u{k})", "padded": f"y{k} = Conv <pads = [1,1,1,1]> (a{k}, p{k})", "reshape": f"y{k} = Reshape (a{k}, r)", "work": f"y{k} = Exp (a{k})", "output": f"y{k} = Identity (a{k})"}[readers[k]]
        body.append(reader)
        results.append(f"y{k}")
    if shared:
        body.append("z = Mul (c0, c0)")
        results.append("z")
    return case(name, "\n".join(body), inputs, {k: w for k, w in weights.items() if any(k in line.replace(",", " ").replace("(", " ").replace(")", " ").split() for line in body)}, tuple(results), bar=3e-5 if t == F32 else None)


def parallel():
    yield from near(parallel_convs, without_activation=dict(activations=("", "", "")), one_activation=dict(activations=("Relu", "", "")), activations=dict(activations=("Relu", "Tanh", "Relu")), one_slope=dict(activations=("PRelu_e",) * 3),
                    slopes=dict(activations=("PRelu_e", "PRelu_f", "PRelu_e")), slope_of_channels=dict(activations=("PRelu",) * 3, slope=True), slope_of_equal_channels=dict(channels=(5, 5, 5), activations=("PRelu",) * 3, slope=True),
                    no_bias=dict(biases=(0, 0, 0)), one_bias=dict(biases=(1, 0, 1)), kernel=dict(kernels=((3, 3), (1, 3), (3, 3))), strides=dict(attributes=("", ", strides = [2,2]", "")), all_strides=dict(attributes=(", strides = [2,1]",) * 3),
                    pads=dict(attributes=(", pads = [1,0,0,1]", "", "")), all_pads=dict(attributes=(", pads = [1,0,0,1]",) * 3), auto_pad=dict(attributes=(', auto_pad = "SAME_UPPER"',) * 3), dilations=dict(attributes=(", dilations = [2,1]", "", "")),
                    group=dict(group=2, channels=(4, 6, 2)), operand=dict(other=True), computed=dict(computed=True), halves=dict(t=F16), reads_before=dict(shared=True), padded=dict(readers=("padded", "conv", "padded")),
                    moved=dict(readers=("reshape",) * 3), worked_on=dict(readers=("work", "conv", "work")), outputs=dict(readers=("output",) * 3), full=dict(channels=(16, 32, 16)), one_full=dict(channels=(16, 5, 3), readers=("output", "conv", "conv")),
                    equal=dict(channels=(5, 5, 5)), many=dict(channels=(24, 40, 20)))


def windows():
    yield from near(transposed_conv, batch=dict(x=(2, 3, 4, 5)), wide_batch=dict(x=(2, 24, 10, 12), oc=24), wide_batch_3=dict(x=(3, 16, 9, 11), oc=16, kernel=(3, 3), pads=(1, 1, 1, 1), more=(1, 1)), wide_batch_4=dict(x=(2, 32, 8, 8), oc=16, kernel=(4, 4), pads=(1, 1, 1, 1)),
                    large_batch=dict(x=(2, 32, 16, 16), oc=32), groups=dict(x=(2, 4, 4, 5), group=2), stride_3=dict(strides=(3, 1), kernel=(3, 3)), computed=dict(computed=True), computed_batch=dict(x=(2, 24, 10, 12), oc=24, computed=True), bias_batch=dict(x=(2, 24, 10, 12), oc=24, bias=True), relu_batch=dict(x=(2, 24, 10, 12), oc=24, before="r"),
                    single=dict(x=(1, 3, 1, 1)), single_axis=dict(x=(1, 3, 1, 5)), single_more=dict(x=(1, 3, 1, 5), more=(1, 1)), single_beyond=dict(x=(1, 3, 1, 5), kernel=(1, 2), more=(1, 1)), single_far_beyond=dict(x=(1, 3, 1, 5), kernel=(2, 3), strides=(4, 2), more=(3, 1)),
                    single_other=dict(x=(1, 3, 5, 1), kernel=(3, 1), strides=(2, 3), more=(0, 2)), more=dict(more=(1, 1)), more_beyond=dict(kernel=(1, 1), more=(1, 1)), dilated=dict(dilations=(2, 2)), dilated_batch=dict(x=(2, 8, 4, 5), oc=8, dilations=(2, 1)), same=dict(auto="SAME_UPPER", kernel=(3, 3)), lower=dict(auto="SAME_LOWER", kernel=(3, 3)),
                    sized=dict(shape=(9, 10)), halves=dict(t=F16), halves_batch=dict(t=F16, x=(2, 24, 10, 12), oc=24), uneven=dict(pads=(0, 1, 1, 0), kernel=(3, 4), strides=(2, 3)), one_channel=dict(x=(2, 1, 6, 7), oc=1), one_result=dict(x=(2, 8, 6, 7), oc=1), stride_1=dict(x=(2, 8, 6, 7), strides=(1, 1)),
                    line=dict(x=(2, 8, 6, 1), kernel=(2, 1), strides=(2, 1), oc=16), many=dict(x=(4, 16, 5, 6), oc=24, kernel=(5, 5), strides=(3, 2)))
    for t in ((2, 3, 9), (2, 8, 3, 4, 5)):
        n = len(t) - 2
        yield transposed_conv(f"transposed_conv_{n}", t, 16, (2,) * n, (2,) * n, (0,) * 2 * n, (0,) * n, (1,) * n)
    yield from near(lambda name, **a: resized(name.replace("<lambda>", "resized"), **{"scales": (1, 1, 2, 2), **a}), empty=dict(scales=(1, 1, 0.1, 1)), empty_linear=dict(scales=(1, 1, 0.1, 1), mode="linear"), empty_cubic=dict(scales=(1, 1, 1, 0.1), mode="cubic"),
                    empty_sizes=dict(scales=None, sizes=(1, 2, 0, 5)), empty_input=dict(x=(0, 2, 4, 5)), one=dict(scales=(1, 1, 0.3, 0.3)))
    yield from near(chosen_by, vector=dict(x=(3,)), condition=dict(condition=(3,), x=(3,)), one=dict(condition=(1,), x=(1,)), ones=dict(condition=(1, 1), x=(1, 1), y=(1, 1)), swapped=dict(swapped=True), wide=dict(condition=(), x=(2, 3)), empty=dict(condition=(0,), x=(0,)), column=dict(condition=(3, 1), x=(3, 4)))
    yield from near(padded, other_side=dict(pads=(0, 2, 1, 0)), nothing=dict(pads=(0, 0, 0, 0)), one=dict(x=(1, 1)), cut=dict(pads=(-1, 1, 0, 0)), empty=dict(x=(0, 4)), edge=dict(mode="edge"), reflect=dict(mode="reflect"), scalar_like=dict(x=(1,), pads=(2, 3)), all_padding=dict(x=(1, 4), pads=(0, 0, -1, 1)))


# --- loops

def loop(name, trip=3, condition=True, body="", state=(2, 3), outside="", weights=None, scan=None, runtime=False, kept=()):
    inner = f"loop (int64 i, bool c, float{list(state)} s) => (bool d, float{list(state)} t{', float' + str(list(scan)) + ' u' if scan is not None else ''}) {{ d = Identity (c)\n {body} }}"
    given = {"cond": np.array(condition), **(weights or {})}
    inputs = {"x": some(state), "k": some((3, 2), seed=3)}
    (inputs if runtime else given)["n"] = np.array(trip, I64)
    return case(name, f"{outside} y{', z' if scan is not None else ''} = Loop <body = {inner}> (n, cond, x)", inputs, given, ("y", "z") if scan is not None else ("y",), counted=scan is not None)


def states_unread(name, next_s="s2 = Add (s, s)", next_t="t2 = Mul (t, u)", next_u="u2 = Add (u, one)", go="d = Identity (c)", part="p = Neg (s)", outputs=("y", "z"), trip=5, condition=True, runtime=False, x=True, stacked=True):
    """A loop of three states, of which the second and third reach nothing else; `x`: the first one begins with an input."""
    body = f"b (int64 i, bool c, float[2,3] s, float[2,3] t, float[2,3] u) => (bool d, float[2,3] s2, float[2,3] t2, float[2,3] u2{', float[2,3] p' if stacked else ''}) {{ {go}\n {next_s}\n {next_t}\n {next_u}\n {part if stacked else ''} }}"
    start = some((2, 3), scale=1e-3)
    inputs, given = {"other": some((2, 3), seed=2)}, {"cond": np.array(condition), "one": scalar(1), "limit": F32(3), "a": some((2, 3), seed=1)}
    (inputs if x else given)["x"] = start
    (inputs if runtime else given)["n"] = np.array(trip, I64)
    return case(name, f"y, v, w{', z' if stacked else ''} = Loop <body = {body}> (n, cond, x, a, a)\n r = Neg (other)", inputs, given, tuple(outputs) + ("r",), counted=True)


def loops():
    moved = "t = Add (s, s)\n r = Reshape (k, shape)\n u = Identity (r)"
    computed = "t = Add (s, s)\n r = Relu (k)\n u = Neg (r)"
    captured = "t = Add (s, s)\n u = Identity (k)"
    for what, body, scan in (("reshaped", "t = Add (s, s)\n u = Reshape (k, shape)", (2, 3)), ("moved", moved, (2, 3)), ("computed", computed, (3, 2)), ("captured", captured, (3, 2)), ("transposed", "t = Add (s, s)\n u = Transpose (k)", (2, 3)),
                             ("state", "t = Add (s, s)\n u = Reshape (s, back)", (3, 2)), ("product", "t = Add (s, s)\n u = MatMul (k, k2)", (3, 3)), ("sum", "t = Add (s, s)\n u = ReduceSum <keepdims = 0> (k)", ())):
        for trip in (0, 1, 3):
            yield loop(f"loop_{what}_{trip}", trip, True, body, scan=scan, weights={"shape": ints(2, 3), "back": ints(3, 2), "k2": some((2, 3))})
        yield loop(f"loop_{what}_never", 3, False, body, scan=scan, weights={"shape": ints(2, 3), "back": ints(3, 2), "k2": some((2, 3))})
    for trip in (0, 1, 2):
        yield loop(f"loop_invariant_{trip}", trip, True, "p = MatMul (k2, k)\n q = ReduceSum <keepdims = 1> (p)\n t = Add (s, q)", weights={"k2": some((2, 3))})
        yield loop(f"loop_index_{trip}", trip, True, "g = Gather (k, far)\n q = ReduceSum <keepdims = 1> (g)\n t = Add (s, q)", weights={"far": np.array(1, I64)})


# --- explicit_pad

def padded_window(name, op="Conv", x=(2, 3, 6, 7), pads=(1, 1, 1, 1), auto="", kernel=(3, 3), strides=(1, 1), dilations=(1, 1), more="", t=F32, before=True, shared=False, groups=1, zero=None):
    attributes = [f"strides = {list(strides)}", f"dilations = {list(dilations)}", f"kernel_shape = {list(kernel)}"] + ([more] if more else [])
    attributes += [f'auto_pad = "{auto}"'] if auto else [f"pads = {list(pads)}"]
    weights = {}
    if "Conv" in op:
        attributes.append(f"group = {groups}")
        weights["w"] = some((6, x[1] // groups) + tuple(kernel), t, 1) if op == "Conv" else bytes_of((6, x[1] // groups) + tuple(kernel), np.uint8, 1, 64, 190)
    if zero is not None:
        weights["zero"] = np.uint8(zero)
    operands = f"u{', w' if weights else ''}{', zero' if zero is not None else ''}"
    integer = op == "ConvInteger"
    body = f"u = {'Relu' if before and not integer else 'Identity'} (x)\n y = {op} <{', '.join(attributes)}> ({operands})" + (f"\n z = {op} <{', '.join(attributes)}> ({operands})\n v = Neg (z)" if shared else "")
    return case(name, body, {"x": bytes_of(x) if integer else some(x, t)}, weights, ("y", "v") if shared else ("y",), bar=3e-5)


def padding():
    for op in ("Conv", "MaxPool", "AveragePool", "LpPool", "ConvInteger"):
        changes = dict(plain={}, begin=dict(pads=(1, 0, 0, 0)), end=dict(pads=(0, 0, 0, 2)), uneven=dict(pads=(0, 2, 1, 0)), same=dict(auto="SAME_UPPER"), lower=dict(auto="SAME_LOWER", kernel=(2, 4)), valid=dict(auto="VALID"),
                       strides=dict(strides=(2, 3)), dilations=dict(dilations=(2, 1)), first=dict(before=False), one_axis=dict(x=(2, 3, 9), pads=(1, 2), kernel=(3,), strides=(2,), dilations=(1,)), points=dict(x=(2, 3, 1, 1)), batch=dict(x=(5, 2, 3, 3)))
        if op == "Conv":
            changes.update(shared=dict(shared=True), groups=dict(groups=3), halves=dict(t=F16), far=dict(pads=(4, 4, 4, 4)), volume=dict(x=(1, 2, 3, 4, 5), pads=(1, 0, 1, 0, 1, 1), kernel=(2, 2, 2), strides=(1, 1, 2), dilations=(1, 1, 1)))
        if op == "ConvInteger":
            changes.update(zero=dict(zero=7), highest=dict(zero=255), groups=dict(groups=3))
        if op.endswith("Pool"):
            changes.update(ceil=dict(more="ceil_mode = 1", strides=(2, 2), pads=(0, 0, 0, 0)), ceil_padded=dict(more="ceil_mode = 1", strides=(2, 3)))
        if op == "AveragePool":
            changes.update(counted=dict(more="count_include_pad = 1"), counted_ceil=dict(more="count_include_pad = 1, ceil_mode = 1", strides=(2, 2)), counted_uneven=dict(more="count_include_pad = 1", pads=(0, 2, 1, 0)))
        for change, arguments in changes.items():
            yield padded_window(f"padded_{op}_{change}", op, **arguments)
    yield case("padded_pool_and_conv", "u = Relu (x)\n a = MaxPool <kernel_shape = [3,3], pads = [1,1,1,1]> (u)\n b = Conv <pads = [1,1,1,1]> (u, w)\n y = Concat <axis = 1> (a, b)", {"x": some((2, 3, 5, 6)) - F32(1)}, {"w": some((4, 3, 3, 3))}, bar=3e-5)


# --- eliminate_identity, compose_moves, sink_reshape: chains of moves

def moves(seed):
    """A chain of operators that only move, with work between them."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    shape = tuple(int(d) for d in rng.choice([1, 2, 3, 4, 6], rank))
    start, lines, weights, last = shape, [], {}, "x"
    if rng.random() < 0.5:  # behind a sum of products
        k = int(rng.integers(2, 6))
        weights["m"] = some((shape[-1], k), seed=seed)
        lines.append("t = MatMul (x, m)")
        last, shape = "t", shape[:-1] + (k,)
    for step in range(int(rng.integers(2, 7))):
        to, size = f"v{step}", int(np.prod(shape))
        kind = rng.choice(["transpose", "reshape", "slice", "work", "work", "expand", "pad", "concat", "unsqueeze", "split", "tile", "identity", "flatten", "gather", "cast"])
        n = len(shape)
        axis = int(rng.integers(0, n)) if n else 0
        if kind == "transpose" and n:
            perm = [int(p) for p in rng.permutation(n)]
            lines.append(f"{to} = Transpose <perm = {perm}> ({last})")
            shape = tuple(shape[p] for p in perm)
        elif kind == "reshape":
            factors = [f for f in (1, 2, 3, 4, 6) if size % f == 0]
            a = int(rng.choice(factors))
            new = [(a, size // a), (size // a, a), (size,), (1, a, size // a), (a, 1, size // a)][int(rng.integers(0, 5))]
            weights[f"s{step}"] = np.array(new, I64)
            lines.append(f"{to} = Reshape ({last}, s{step})")
            shape = new
        elif kind == "slice" and n and shape[axis] > 0:
            back = rng.random() < 0.3
            begin, end, by = (-1, -1000, -1) if back else (int(rng.integers(0, shape[axis])), 1000, int(rng.integers(1, 3)))
            weights.update({f"b{step}": ints(begin), f"e{step}": ints(end), f"a{step}": ints(axis - n if rng.random() < 0.3 else axis), f"s{step}": ints(by)})
            lines.append(f"{to} = Slice ({last}, b{step}, e{step}, a{step}, s{step})")
            count = len(range(shape[axis])[begin:None if back else end:by])
            shape = shape[:axis] + (count,) + shape[axis + 1:]
        elif kind == "expand":
            new = (2,) + shape if rng.random() < 0.3 and n < 5 else shape
            weights[f"s{step}"] = np.array(new, I64)
            lines.append(f"{to} = Expand ({last}, s{step})")
            shape = new
        elif kind == "pad" and n:
            begin, end = int(rng.integers(0, 2)), int(rng.integers(0, 3))
            weights.update({f"p{step}": ints(begin, end), f"c{step}": F32(rng.integers(-1, 2)), f"a{step}": ints(axis)})
            lines.append(f"{to} = Pad ({last}, p{step}, c{step}, a{step})")
            shape = shape[:axis] + (shape[axis] + begin + end,) + shape[axis + 1:]
        elif kind == "concat" and n:
            lines.append(f"{to} = Concat <axis = {axis}> ({last}, {last})" if rng.random() < 0.5 else f"{to} = Concat <axis = {axis}> ({last})")
            shape = shape if lines[-1].endswith(f"({last})") else shape[:axis] + (2 * shape[axis],) + shape[axis + 1:]
        elif kind == "unsqueeze" and n < 5:
            weights[f"a{step}"] = ints(axis)
            lines.append(f"{to} = Unsqueeze ({last}, a{step})")
            shape = shape[:axis] + (1,) + shape[axis:]
        elif kind == "tile" and n:
            repeats = [1] * n
            repeats[axis] = int(rng.integers(1, 3))
            weights[f"s{step}"] = np.array(repeats, I64)
            lines.append(f"{to} = Tile ({last}, s{step})")
            shape = tuple(d * r for d, r in zip(shape, repeats))
        elif kind == "flatten":
            lines.append(f"{to} = Flatten <axis = {axis}> ({last})")
            shape = (int(np.prod(shape[:axis])), int(np.prod(shape[axis:])))
        elif kind == "gather" and n and shape[axis] > 0:
            weights[f"g{step}"] = rng.integers(-shape[axis], shape[axis], int(rng.integers(1, 4))).astype(I64)
            lines.append(f"{to} = Gather <axis = {axis}> ({last}, g{step})")
            shape = shape[:axis] + (len(weights[f"g{step}"]),) + shape[axis + 1:]
        elif kind == "work":
            other = tuple(d if rng.random() < 0.6 else 1 for d in shape)[int(rng.integers(0, n + 1)):] if n else ()
            weights[f"w{step}"] = some(other, seed=seed + step)
            lines.append(f"{to} = {rng.choice(['Add', 'Mul', 'Sub'])} ({last}, w{step})")
        else:
            lines.append(f"{to} = {rng.choice(['Identity', 'Relu', 'Neg'])} ({last})")
        if int(np.prod(shape)) > 4000:
            break
        last = to
    outputs = [last]
    if rng.random() < 0.3 and len(lines) > 2:
        outputs.append(f"v{int(rng.integers(0, len(lines) - 2))}")
    made = {line.split(" =")[0] for line in lines}
    outputs = [o for k, o in enumerate(outputs) if o in made and o not in outputs[:k]]
    return case(f"moves_{seed}", "\n ".join(lines), {"x": some(start, seed=seed)}, weights, tuple(outputs) or (lines[-1].split(" =")[0],))


def chains():
    for seed in range(150):
        yield moves(seed)
    yield states_unread("states_unread")
    for what, arguments in {"read_by_state": dict(next_s="s2 = Add (s, u)"), "read_by_end": dict(go="m = ReduceMax <keepdims = 0> (u)\n d = Less (m, limit)", stacked=False, outputs=("y",)), "stacked": dict(part="p = Neg (u)"), "swapped": dict(next_t="t2 = Identity (u)", next_u="u2 = Identity (t)"),
                            "read": dict(outputs=("y", "v")), "read_once": dict(outputs=("v", "y"), trip=0), "never": dict(condition=False), "at_run_time": dict(runtime=True, stacked=False, outputs=("y",)), "constant": dict(x=False), "constant_never": dict(x=False, condition=False), "constant_at_run_time": dict(x=False, runtime=True, stacked=False, outputs=("y", "w")),
                            "constant_states": dict(x=False, outputs=("y", "v", "w", "z")), "constant_long": dict(x=False, trip=100000)}.items():
        yield states_unread(f"states_unread_but_{what}", **arguments)
