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
