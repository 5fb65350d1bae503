"""Models beside the rewriting rules: for each rule one that it takes, and one for each of its preconditions, which breaks that alone.

The rules and their preconditions stand in the headers of passes/graph/*.cc. A function below builds the model of a rule; its
arguments are what a precondition speaks of, and `near` calls it once as it is and once for each change.
"""
import math

import numpy as np

from case import Case, ints

F16, F32, F64, I8, U8, I32, I64 = np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64
BAR = {np.dtype(F16): 3e-3, np.dtype(F32): 1e-5, np.dtype(F64): 1e-12}


def near(build, **changes):
    """The model of the rule, and the models that miss it by one change."""
    name = build.__name__
    yield build(name)
    for change, arguments in changes.items():
        yield build(f"{name}_but_{change}", **arguments)


def some(shape, t=F32, seed=0, scale=1.0):
    return (np.random.default_rng(seed + sum(shape)).standard_normal(shape) * scale).astype(t)


def bytes_of(shape, t=U8, seed=0, low=None, high=None):
    low, high = (np.iinfo(t).min if low is None else low), (np.iinfo(t).max if high is None else high)
    return np.random.default_rng(seed + sum(shape)).integers(low, high + 1, shape).astype(t)


def case(name, body, inputs, weights=None, outputs=("y",), bar=None, **more):
    types = [np.asarray(a).dtype for a in inputs.values() if np.asarray(a).dtype.kind == "f"]
    return Case(name, body, inputs, weights or {}, outputs, bar or max((BAR[t] for t in types), default=1e-5), **more)


def scalar(value, t=F32, rank=0):
    return np.full((1,) * rank, value, t)


# --- recognize_idioms

def gelu(name, root=math.sqrt(2), one=1.0, half=0.5, rank=0, t=F32, other=False, inner="Erf", u="a"):
    body = f"a = Div (x, r)\n b = {inner} ({u})\n c = Add (b, o)\n d = Mul ({'z' if other else 'x'}, c)\n y = Mul (d, h)"
    inputs = {"x": some((3, 7), t, scale=2)}
    if other:
        inputs["z"] = some((3, 7), t, 1)
    weights = {"r": scalar(root, t), "o": scalar(one, t), "h": scalar(half, t, rank)}
    return case(name, body, inputs, weights)


def tanh_gelu(name, c=math.sqrt(2 / math.pi), k=0.044715, power=3, half=0.5, one=1.0, rank=0, t=F32, outside="x"):
    body = ("p = Pow (x, n)\n q = Mul (p, k)\n s = Add (x, q)\n u = Mul (s, c)\n v = Tanh (u)\n w = Add (v, o)\n"
            f"z = Mul ({outside}, w)\n y = Mul (z, h)")
    weights = {"n": scalar(power, t, rank), "k": scalar(k, t), "c": scalar(c, t), "o": scalar(one, t), "h": scalar(half, t)}
    return case(name, body, {"x": some((4, 6), t, scale=2)}, weights)


def swish(name, other=False, t=F32, inner="Sigmoid"):
    return case(name, f"s = {inner} ({'z' if other else 'x'})\n y = Mul (x, s)", {"x": some((3, 5), t, scale=4), "z": some((3, 5), t, 1)} if other else {"x": some((3, 5), t, scale=4)})


def hard_sigmoid_swish(name, alpha=1 / 6, beta=0.5, other=False):
    inputs = {"x": some((40,), scale=4)}
    if other:
        inputs["z"] = some((40,), seed=1)
    return case(name, f"s = HardSigmoid <alpha = {alpha:.9f}, beta = {beta}> ({'z' if other else 'x'})\n y = Mul (x, s)", inputs)


def hard_swish(name, three=3.0, low=0.0, high=6.0, six=6.0, rank=0, six_rank=0, t=F32, divide="Div", first="x"):
    inputs = {"x": some((3, 20), t, scale=4)}
    if first != "x":
        inputs[first] = some((3, 20), t, 1)
    weights = {"a": scalar(three, t, rank), "l": scalar(low, t), "h": scalar(high, t), "s": scalar(six, t, six_rank)}
    return case(name, f"b = Add (x, a)\n c = Clip (b, l, h)\n d = Mul ({first}, c)\n y = {divide} (d, s)", inputs, weights)


def group_norm(name, groups=3, x=(2, 6, 4, 5), inner=1.0, shift=0.0, scale=None, bias=None, apart=None, back=None, t=F32, wide=False, shared=False, conv=True, first=False):
    c = x[1]
    scale, bias = (scale or (c,) + (1,) * (len(x) - 2)), (bias or (c,) + (1,) * (len(x) - 2))
    body = (f"a = Conv <pads = {[1] * 2 * (len(x) - 2)}> (x, w)\n" if conv else "a = Neg (x)\n") + " i = Reshape (a, s)\n j = InstanceNormalization (i, o, z)\n l = Reshape (j, r)\n m = Mul (" + ("k, l" if first else "l, k") + ")\n y = Add (m, b)" + ("\n v = Neg (j)" if shared else "")
    n = (apart or (0, groups, -1))[1]
    weights = {"s": ints(*(apart or (0, groups, -1))), "o": np.full(n, inner, t), "z": np.full(n, shift, t), "r": ints(*(back or x)), "k": some(scale, t, 1), "b": some(bias, t, 2)}
    if conv:
        weights["w"] = some((c, c) + (3,) * (len(x) - 2), t, 3, 0.3)
    return case(name, body, {"x": some(x, t)}, weights, ("y", "v") if shared else ("y",), bar=None if t != F32 else 3e-5)


def layer_norm(name, axes=(-1,), squared_axes=None, epsilon=1e-5, rank=0, power_rank=0, power=2.0, scale=None, bias=None, t=F32, x=(2, 3, 8),
               keep=1, squared_keep=1, root="Sqrt", root_power=None, root_rank=0, first="x", d="d"):
    tail = x[min(axes) % len(x):]
    body = (f"m = ReduceMean <keepdims = {keep}> (x, k)\n d = Sub ({first}, m)\n p = Pow ({d}, n)\n v = ReduceMean <keepdims = {squared_keep}> (p, j)\n"
            f"w = Add (v, e)\n r = {root} (w{', h' if root_power else ''})\n q = Div (d, r)\n s = Mul (q, g)\n y = Add (s, b)")
    weights = {"k": ints(*axes), "j": ints(*(squared_axes or axes)), "n": scalar(power, t, power_rank), "e": scalar(epsilon, t, rank),
               "g": some(tail if scale is None else scale, t, 3), "b": some(tail if bias is None else bias, t, 4)}
    if root_power:
        weights["h"] = scalar(root_power, t, root_rank)
    return case(name, body, {"x": some(x, t)} if first == "x" else {"x": some(x, t), first: some(x, t, 9)}, weights)


def masked_softmax(name, instead=0.0, odd=(0.5, 0.25), axis=-1, rank=0, test="p", other="p"):
    mask = np.zeros((4, 6), F32)
    mask[1] = -np.inf
    mask[2, 1:4] = -np.inf
    body = f"a = Add (x, f)\n p = Softmax <axis = {axis}> (a)\n n = IsNaN ({test})\n y = Where (n, z, {other})"
    x = some((4, 6))
    x[0, 2], x[3, 1] = odd
    return case(name, body, {"x": x}, {"f": mask, "z": scalar(instead, F32, rank)})


def idioms():
    yield from near(gelu, root=dict(root=1.41433), one=dict(one=1.0001), half=dict(half=0.50004), rank=dict(rank=3), half_precision=dict(t=F16),
                    double_precision=dict(t=F64), double_with_single_constant=dict(t=F64, root=float(F32(math.sqrt(2)))), other=dict(other=True),
                    tanh=dict(inner="Tanh"), argument=dict(u="x"))
    yield from near(tanh_gelu, factor=dict(c=0.79794), cubic=dict(k=0.044719), power=dict(power=2), half=dict(half=0.49996), one=dict(one=0.9999),
                    rank=dict(rank=3), half_precision=dict(t=F16), double_precision=dict(t=F64), outside=dict(outside="s"))
    yield from near(swish, other=dict(other=True), half_precision=dict(t=F16), inner=dict(inner="HardSigmoid"))
    yield from near(hard_sigmoid_swish, alpha=dict(alpha=0.16668), beta=dict(beta=0.50004), other=dict(other=True))
    yield from near(hard_swish, three=dict(three=3.0002), low=dict(low=1e-4), high=dict(high=6.0005), six=dict(six=6.0005), rank=dict(rank=3),
                    six_rank=dict(six_rank=3), half_precision=dict(t=F16), product=dict(divide="Mul", six=1 / 6), wrong_product=dict(divide="Mul", six=0.16668),
                    other=dict(first="z"), sum=dict(divide="Add"))
    yield from near(layer_norm, several=dict(axes=(1, 2)), inner_axis=dict(axes=(1,), scale=(1, 3, 1), bias=(1, 3, 1)), other_squares=dict(squared_axes=(1, 2)),
                    swapped=dict(axes=(2, 1)), epsilon_rank=dict(rank=4), power_rank=dict(power_rank=4), power=dict(power=3.0, epsilon=4.0), one_scale=dict(scale=(1,)),
                    bias_of_rows=dict(bias=(3, 1)), longer_scale=dict(scale=(3, 8)), half_precision=dict(t=F16), double_precision=dict(t=F64, epsilon=0.1), no_root=dict(root="Identity"),
                    other=dict(first="z"), squares_of_x=dict(d="x"), all_axes=dict(axes=(0, 1, 2)), rank_one=dict(x=(9,)), one_row=dict(x=(1, 1, 8), epsilon=0.5, rank=4),
                    wide_power=dict(x=(3, 8), power_rank=3, squared_axes=(1, 2), rank=0), root_as_power=dict(root="Pow", root_power=0.5), other_root=dict(root="Pow", root_power=0.501),
                    inverse_root=dict(root="Pow", root_power=-0.5), root_rank=dict(root="Pow", root_power=0.5, root_rank=4))
    yield from near(group_norm, no_conv=dict(conv=False), scaled=dict(inner=1.5), shifted=dict(shift=0.25), all=dict(groups=1), each=dict(groups=6), one_axis=dict(x=(2, 6, 9)), volume=dict(x=(1, 6, 2, 3, 4)), scale_4=dict(scale=(1, 6, 1, 1)), bias_4=dict(bias=(1, 6, 1, 1), first=True),
                    scale_each=dict(scale=(2, 6, 1, 1)), scale_rows=dict(scale=(4, 1)), bias_space=dict(bias=(4, 5)), one=dict(scale=(1,)), halves=dict(t=F16), doubles=dict(t=F64), shared=dict(shared=True), batch=dict(apart=(1, 6, -1)), other_back=dict(back=(2, 6, 5, 4)),
                    other_rows=dict(apart=(4, 3, -1), groups=3), points=dict(x=(2, 6, 1, 1)))
    yield from near(masked_softmax, nan=dict(odd=(np.nan, 1.0)), infinite=dict(odd=(np.inf, -np.inf)), instead=dict(instead=1.0), axis=dict(axis=0), rank=dict(rank=3), test=dict(test="a"), other=dict(other="a"))


# --- canonicalize_ops

def gemm(name, alpha=1.0, beta=1.0, a=0, b=0, t=F32, c=(6,), scale=1.0, bias=1.0):
    inputs = {"x": some((5, 4) if a else (4, 5), t, scale=scale)}
    weights = {"w": some((6, 5) if b else (5, 6), t, 1, scale)}
    if c is not None:
        weights["c"] = some(c, t, 2, bias)
    return case(name, f"y = Gemm <alpha = {alpha}, beta = {beta}, transA = {a}, transB = {b}> (x, w{', c' if c is not None else ''})", inputs, weights)


def variadic(name, op="Sum", count=3, t=F32, large=1.0, shapes=None):
    inputs = {f"x{k}": some((shapes or [(3, 4)] * count)[k], t, k) for k in range(count)}
    if large != 1:
        inputs = {f"x{k}": np.full((3, 4), large * (-1 if k == 2 else 1), t) for k in range(count)}
    return case(name, f"y = {op} ({', '.join(inputs)})", inputs)


def divided(name, divisor=4.0, t=F32, rank=0, scale=1.0, op="Div"):
    return case(name, f"y = {op} (x, c)", {"x": some((3, 5), t, scale=scale) if t not in (I32, I64) else bytes_of((3, 5), I8).astype(t)}, {"c": scalar(divisor, t, rank)})


def viewed(name, op="Flatten", x=(2, 3, 4), axes=None, attributes=""):
    weights = {} if axes is None else {"a": ints(*axes)}
    return case(name, f"r = {op} {attributes} (x{', a' if weights else ''})\n y = Neg (r)", {"x": some(x)}, weights)


def split(name, axis=1, x=(2, 7, 3), sizes=(2, 4, 1), used=(0, 1, 2)):
    names = [f"p{k}" for k in range(len(sizes))]
    return case(name, f"{', '.join(names)} = Split <axis = {axis}> (x, s)\n " + "\n ".join(f"y{k} = Neg (p{k})" for k in used), {"x": some(x)},
                {"s": ints(*sizes)}, outputs=tuple(f"y{k}" for k in used))


def pooled(name, op="GlobalAveragePool", x=(2, 3, 4, 5), t=F32):
    return case(name, f"y = {op} (x)", {"x": some(x, t)})


def canonical():
    yield from near(gemm, alpha=dict(alpha=0.25), beta=dict(beta=-2.0), no_beta=dict(beta=0.0), transposed=dict(a=1, b=1), no_bias=dict(c=None), column=dict(c=(4, 1)),
                    one=dict(c=(1,)), halves=dict(t=F16), large_halves=dict(t=F16, alpha=0.0009765625, scale=300.0), large_bias=dict(t=F16, scale=120.0, bias=30000.0),
                    doubles=dict(t=F64, alpha=0.3))
    yield from near(variadic, mean=dict(op="Mean"), two=dict(count=2), one=dict(count=1), mean_of_one=dict(op="Mean", count=1), broadcast=dict(shapes=[(3, 4), (4,), (3, 1)]),
                    large_halves=dict(t=F16, large=60000.0), mean_of_large_halves=dict(op="Mean", count=2, t=F16, large=60000.0), doubles=dict(t=F64), max=dict(op="Max"))
    for t, scale, divisors in ((F32, 1.0, (4.0, -0.5, 2.0 ** 99, 2.0 ** -99, 2.0 ** 127, 3.0)), (F64, 1.0, (2.0 ** -600, 2.0 ** 40)),
                               (F16, 1e-6, (2.0 ** -17, 2.0 ** -14)), (F16, 1e4, (2.0 ** 15, 2.0 ** 14, -2.0))):
        for k, divisor in enumerate(divisors):
            yield divided(f"divided_{np.dtype(t)}_{scale:g}_{k}".replace("-", "m").replace("+", ""), divisor, t, scale=scale)
    yield from near(divided, rank=dict(rank=3), integers=dict(t=I32, divisor=4), long_integers=dict(t=I64, divisor=-2))
    for t in (F32, F16, F64, I32):
        yield divided(f"subtracted_{np.dtype(t)}", 3, t, op="Sub", rank=1)
    yield from near(viewed, axis=dict(attributes="<axis = 2>"), axis_0=dict(attributes="<axis = 0>"), negative=dict(attributes="<axis = -1>"), empty=dict(x=(2, 0, 3)),
                    squeeze=dict(op="Squeeze", x=(1, 3, 1), axes=(2,)), squeeze_empty=dict(op="Squeeze", x=(1, 0, 3), axes=(0,)),
                    unsqueeze=dict(op="Unsqueeze", axes=(0, -1)), unsqueeze_empty=dict(op="Unsqueeze", x=(3, 0), axes=(0,)))
    yield from near(split, one_part=dict(sizes=(7,), used=(0,)), unread=dict(used=(1,)), empty=dict(sizes=(3, 0, 4)), negative=dict(axis=-2), first=dict(axis=0, sizes=(1, 1), used=(0, 1)))
    yield from near(pooled, max=dict(op="GlobalMaxPool"), one_axis=dict(x=(2, 3, 9)), points=dict(x=(2, 3, 1, 1)), halves=dict(t=F16), doubles=dict(op="GlobalMaxPool", t=F64))


# --- simplify_expr

def neutral(name, op="Mul", c=1, rank=0, t=F32, left=False, x=(3, 4)):
    value = some(x, t) if np.dtype(t).kind == "f" else bytes_of(x, I8).astype(t)
    return case(name, f"a = {op} ({'c, x' if left else 'x, c'})\n y = Neg (a)", {"x": value}, {"c": scalar(c, t, rank)})


def power(name, exponent=2.0, t=F32, rank=0, exponent_type=None, low=0.1):
    return case(name, "y = Pow (x, e)", {"x": np.abs(some((3, 6), t)) + t(low) if t in (F16, F32, F64) else bytes_of((3, 6), I8, low=-5, high=5).astype(t)}, {"e": scalar(exponent, exponent_type or t, rank)})


def twice(name, op="Neg", second=None, t=F32):
    x = some((3, 6), t, scale=3) if t != np.bool_ else some((3, 6)) > 0
    return case(name, f"a = {op} (x)\n y = {second or op} (a)", {"x": x})


def pair_of_constants(name, op="Mul", a=3.0, b=5.0, t=F32, rank=0, second=None, scale=1.0, shared=False, shapes=((), ())):
    value = some((3, 4), t, scale=scale) if np.dtype(t).kind == "f" else bytes_of((3, 4), I8).astype(t)
    weights = {"a": np.full(shapes[0], a, t), "b": np.full(shapes[1] or (1,) * rank, b, t)}
    return case(name, f"v = {op} (x, a)\n y = {second or op} (v, b)" + ("\n z = Neg (v)" if shared else ""), {"x": value}, weights, ("y", "z") if shared else ("y",))


def chain_of_constants(name, steps=(("Mul", 2), ("Add", 1), ("Mul", 3), ("Add", 4)), t=F32, scale=1.0, shared=None, x=None, left=False):
    """x through operators of one constant each; None: of none. `shared` is read by another output, too."""
    value = some((3, 4), t, scale=scale) if np.dtype(t).kind == "f" else bytes_of((3, 4), I8).astype(t)
    body, weights, last = [], {}, "x"
    for k, (op, number) in enumerate(steps):
        result = "y" if k == len(steps) - 1 else f"v{k}"
        operands = [last]
        for n, c in enumerate(number if isinstance(number, tuple) else () if number is None else (number,)):
            weights[f"c{k}_{n}"] = np.asarray(c, t)
            operands.append(f"c{k}_{n}")
        body.append(f"{result} = {op} ({', '.join(reversed(operands) if left and len(operands) == 2 else operands)})")
        last = result
    if shared is not None:
        body.append(f"z = Abs (v{shared})")
    return case(name, "\n ".join(body), {"x": value if x is None else np.asarray(x, t)}, weights, ("y",) if shared is None else ("y", "z"))


def negated_operand(name, op="Sub", body="n = Neg (z)", operands="x, n", t=F32, z=(3, 4), outputs=("y",)):
    value = (lambda shape, seed: some(shape, t, seed)) if np.dtype(t).kind == "f" else (lambda shape, seed: bytes_of(shape, I8, seed).astype(t))
    return case(name, f"{body}\n y = {op} ({operands})", {"x": value((3, 4), 0), "z": value(z, 1)}, outputs=outputs)


def integers_cast_twice():
    """Numbers that do not fit into what is between, or into what they become: all of them wrap."""
    integers = [t for t in TYPES if t.kind in "iu"]
    for first, through in ((a, b) for a in integers for b in integers if a != b):
        limits = np.iinfo(first)
        x = np.array([limits.min, limits.max, limits.max // 3, limits.min // 3, limits.max - 200 if limits.max > 200 else 77, 1], first)
        lines = [f"a = Cast <to = {TYPES[through]}> (x)"] + [f"y{k} = Cast <to = {TYPES[t]}> (a)" for k, t in enumerate(integers)]
        yield Case(f"cast_wrapping_{first}_{through}", "\n ".join(lines), {"x": x}, outputs=tuple(f"y{k}" for k in range(len(integers))), bar=1e-12)


def transposed_twice(name, first=(0, 2, 1, 3), second=(0, 2, 1, 3), x=(2, 3, 4, 5), shared=False):
    return case(name, f"a = Transpose <perm = {list(first)}> (x)\n y = Transpose <perm = {list(second)}> (a)" + ("\n z = Neg (a)" if shared else ""), {"x": some(x)},
                outputs=("y", "z") if shared else ("y",))


def reshaped_twice(name, x=(2, 3, 4), first=(6, 4), second=(4, 6), attributes=""):
    return case(name, f"a = Reshape {attributes} (x, s)\n b = Reshape {attributes} (a, t)\n y = Neg (b)", {"x": some(x)}, {"s": ints(*first), "t": ints(*second)})


def expanded(name, op="Add", x=(3, 1), to=(3, 4), other=(3, 4), left=True, slope=False):
    return case(name, f"e = Expand (x, s)\n y = {op} ({'e, z' if left else 'z, e'})", {"x": some(x), "z": some(other, seed=1)}, {"s": ints(*to)})


TYPES = {np.dtype(t): k for t, k in ((F32, 1), (U8, 2), (I8, 3), (np.uint16, 4), (np.int16, 5), (I32, 6), (I64, 7), (np.bool_, 9), (F16, 10), (F64, 11), (np.uint32, 12), (np.uint64, 13))}


def cast_twice():
    """x of every type, through every type, to every type, with numbers that the first two hold."""
    for first, through in ((a, b) for a in TYPES for b in TYPES if a != b):
        x = np.array([0, 1, 2, 3, 100, 7, 120], first) if first != np.bool_ else np.array([True, False])
        if first.kind == "f":
            x = np.array([0, 1.5, -0.0, 100.25, 0.1, 1.0009765625], first)
        lines = [f"a = Cast <to = {TYPES[through]}> (x)"]
        lines += [f"y{k} = Cast <to = {number}> (a)" for k, number in enumerate(TYPES.values())]
        yield Case(f"cast_{first}_{through}", "\n ".join(lines), {"x": x}, outputs=tuple(f"y{k}" for k in range(len(TYPES))), bar=1e-12)


def simplified():
    for t in (F32, F16, F64, I32):
        for what, arguments in {
                "times": {}, "rank": dict(rank=3), "two": dict(c=2), "left": dict(left=True), "plus": dict(op="Add", c=0), "plus_rank": dict(op="Add", c=0, rank=3),
                "plus_one": dict(op="Add", c=1), "minus": dict(op="Sub", c=0), "from": dict(op="Sub", c=0, left=True), "over": dict(op="Div"), "over_rank": dict(op="Div", rank=3),
                "minus_rank": dict(op="Sub", c=0, rank=3), "power_rank": dict(op="Pow", rank=3), "power": dict(op="Pow"), "base": dict(op="Pow", left=True, x=(2, 2)),
                "empty": dict(x=(0, 4))}.items():
            yield neutral(f"neutral_{np.dtype(t)}_{what}", t=t, **arguments)
    yield from near(power, **{f"{e:g}".replace("-", "m").replace(".", "_"): dict(exponent=e) for e in (3.0, -1.0, -2.0, 0.5, -0.5, 0.0, 4.0, 0.50001, -0.49999)}, rank=dict(rank=3), root_rank=dict(exponent=0.5, rank=3),
                    half_root=dict(t=F16, exponent=0.5), half_inverse=dict(t=F16, exponent=-0.5), double_root=dict(t=F64, exponent=-0.5), integer_root=dict(t=I32, exponent=0.5, exponent_type=F32),
                    halves=dict(t=F16, exponent=3.0), doubles=dict(t=F64, exponent=-1.0), integers=dict(t=I32, exponent=2), integer_base=dict(t=I32, exponent=2.0, exponent_type=F32),
                    integer_exponent=dict(exponent=3, exponent_type=I64))
    for op in ("Neg", "Relu", "Abs", "Floor", "Ceil", "Round", "Sign", "Reciprocal", "Exp", "Sin"):
        yield twice(f"twice_{op}", op)
    yield from near(twice, negation_of_abs=dict(op="Abs", second="Neg"), abs_of_negation=dict(second="Abs"), relu_of_negation=dict(second="Relu"), halves=dict(t=F16))
    yield case("twice_not", "a = Not (x)\n y = Not (a)", {"x": some((3, 6)) > 0})
    yield from near(pair_of_constants, sum=dict(op="Add"), rank=dict(rank=3), mixed=dict(second="Add"), shared=dict(shared=True), integers=dict(t=I32, a=70000, b=70000),
                    large_halves=dict(t=F16, a=1000.0, b=100.0, scale=0.1), small_halves=dict(t=F16, a=0.001, b=0.001, scale=3e4), doubles=dict(t=F64, a=0.1),
                    overflow=dict(a=1e30, b=1e30, scale=1e-30), underflow=dict(a=1e-30, b=1e-30, scale=1e30), there_and_back=dict(op="Add", a=12582912.0, b=-12582912.0, scale=30.0),
                    smaller_there_and_back=dict(op="Add", a=3e4, b=-3e4),
                    lowest=dict(op="Add", a=-3.4e38, b=-3.4e38), row_and_column=dict(shapes=((4,), (3, 1))), longer=dict(shapes=((4,), (2, 3, 4))))
    column, row, odd = np.array([[2.0], [3.0], [0.5]], F32), np.array([3.0, 4.0, 0.5, 7.0], F32), np.array([0.0, 4.0, 1e-40, 7.0], F32)
    yield from near(chain_of_constants, tiny=dict(steps=(("Mul", [1, 1e-30]), ("Mul", [1, 1e-20])), x=[[0, 1e38], [0, -1e38]]), left=dict(left=True), halves=dict(t=F16), doubles=dict(t=F64), integers=dict(t=I32, steps=(("Mul", 70001), ("Add", 99999), ("Mul", 70003), ("Add", -4))), long_integers=dict(t=I64), bytes=dict(t=I8, steps=(("Mul", 7), ("Add", 100), ("Mul", 9))),
                    shared_sum=dict(shared=1), shared_product=dict(shared=0), columns_and_rows=dict(steps=(("Mul", column), ("Add", row), ("Mul", row))), rows=dict(steps=(("Mul", row), ("Add", 2), ("Mul", row))), rank=dict(steps=(("Mul", 2), ("Add", 1), ("Mul", np.ones((1, 1, 1), F32) * 3))),
                    shrinks_behind=dict(steps=(("Mul", 6), ("Add", 1), ("Mul", 0.25)), x=[[1e38, -1e38, 3e38, 1]]), grows_behind=dict(steps=(("Mul", 0.25), ("Add", 1), ("Mul", 6)), x=[[1e38, -1e38, 3e38, 1e-45]]), zero=dict(steps=(("Mul", 0), ("Add", 1), ("Mul", 3))),
                    quotient=dict(steps=(("Div", 3), ("Mul", 6))), quotient_grows=dict(steps=(("Div", 3), ("Mul", 6)), x=[[3e38, -3e38, 1e38, 1e-45]]), quotient_behind=dict(steps=(("Mul", 0.3), ("Div", 7))), quotient_behind_growth=dict(steps=(("Mul", 6), ("Div", 3)), x=[[1e38, -3e38, 1e37, 1e-45]]),
                    quotients=dict(steps=(("Div", 3), ("Div", 7))), quotients_below_one=dict(steps=(("Div", 0.3), ("Div", 0.7))), quotients_apart=dict(steps=(("Div", 0.3), ("Div", 7)), x=[[3e38, -3e38, 1e38, 1]]), quotient_by_zero=dict(steps=(("Div", odd), ("Mul", 6)), x=[[1, 2, 3, 4], [0, -1, 0, 2]]),
                    quotient_of_constant=dict(steps=(("Div", 3), ("Mul", 6)), left=True, x=[[1, 2, 3, 4]]), quotient_rows=dict(steps=(("Div", column), ("Mul", row))), quotient_rank=dict(steps=(("Div", np.full((1, 1, 1), 3, F32)), ("Mul", 6))), quotient_of_integers=dict(t=I32, steps=(("Div", 3), ("Mul", 6))),
                    quotient_of_halves=dict(t=F16, steps=(("Div", 0.001), ("Mul", 0.001)), scale=5.0), quotient_shared=dict(steps=(("Div", 3), ("Mul", 6)), shared=0), negated=dict(steps=(("Mul", 3), ("Neg", None))), negated_first=dict(steps=(("Neg", None), ("Mul", 3))),
                    negated_shared=dict(steps=(("Mul", 3), ("Neg", None)), shared=0), negated_integers=dict(t=I32, steps=(("Mul", -2147483648), ("Neg", None))), negated_quotient=dict(steps=(("Div", 3), ("Neg", None))), negated_quotient_of_integers=dict(t=I32, steps=(("Div", 3), ("Neg", None))),
                    negated_quotient_left=dict(steps=(("Neg", None), ("Div", 3)), left=True, x=[[1, 2, 3, 4]]), negated_halves=dict(t=F16, steps=(("Mul", 3), ("Neg", None))), bounds=dict(steps=(("Clip", (-0.5, 0.75)), ("Clip", (0.0, 6.0)))), bounds_apart=dict(steps=(("Clip", (2.0, 3.0)), ("Clip", (-1.0, 1.0)))),
                    bounds_crossed=dict(steps=(("Clip", (0.5, -0.5)), ("Relu", None))), bounds_crossed_behind=dict(steps=(("Relu", None), ("Clip", (0.5, -0.5)))), bounds_of_relu=dict(steps=(("Relu", None), ("Clip", (-0.5, 0.25)))), bounds_below_relu=dict(steps=(("Clip", (-2.0, -1.0)), ("Relu", None))),
                    bounds_shared=dict(steps=(("Clip", (-0.5, 0.75)), ("Relu", None)), shared=0), bounds_of_integers=dict(t=I32, steps=(("Clip", (-50, 70)), ("Clip", (-100, 30)))), bounds_of_halves=dict(t=F16, steps=(("Clip", (-0.5, 0.75)), ("Relu", None))), one_bound=dict(steps=(("Clip", (-0.5,)), ("Clip", (0.25,)))))
    yield from near(negated_operand, added=dict(op="Add"), first=dict(op="Add", operands="n, x"), first_of_difference=dict(operands="n, x"), both=dict(body="n = Neg (z)\n m = Neg (x)", operands="m, n"), shared=dict(outputs=("y", "n")), integers=dict(t=I32), bytes=dict(t=I8), halves=dict(t=F16),
                    row=dict(z=(4,)), longer=dict(z=(2, 1, 4)), factor=dict(op="Mul"), itself=dict(operands="n, n"))
    yield from integers_cast_twice()
    yield from near(transposed_twice, other=dict(second=(0, 3, 1, 2)), shared=dict(shared=True), inverse=dict(first=(1, 2, 3, 0), second=(3, 0, 1, 2)), units=dict(x=(2, 1, 1, 5)), empty=dict(x=(2, 0, 4, 5)))
    yield from near(reshaped_twice, copied=dict(second=(0, 2, 2)), rest=dict(second=(2, -1)), back=dict(second=(2, 3, 4)), empty=dict(x=(2, 0, 3), first=(0, 3), second=(3, 0), attributes="<allowzero = 1>"),
                    empty_with_rest=dict(x=(0, 6), first=(3, 0, 2), second=(0, 5, 7), attributes="<allowzero = 1>"))
    yield from near(expanded, small_other=dict(other=(4,)), rank=dict(x=(4,), to=(3, 4)), both_small=dict(x=(3, 1), other=(1, 4)), right=dict(left=False), where_wider=dict(other=(2, 3, 4)),
                    power=dict(op="Pow", x=(3, 1), other=(3, 4), left=False), slope=dict(op="PRelu", left=False), sloped=dict(op="PRelu", x=(3, 1), other=(4,)),
                    less=dict(op="Less"), modulo=dict(op="Max"), empty=dict(x=(1, 1), to=(0, 4), other=(0, 4)))
    yield from cast_twice()


# --- simplify_inference, eliminate_common_subexpr

def batch_norm(name, t=F32, variance=1.0, mean=0.5, epsilon=1e-5, x=(2, 3, 4, 5), scale=1.0, statistics=None, spread=1.0):
    s = statistics or t
    c = x[1]
    weights = {"s": (some((c,), F32, 1) * scale).astype(s if statistics else t), "b": some((c,), F32, 2).astype(s if statistics else t), "m": np.full(c, mean, s),
               "v": np.full(c, variance, s)}
    return case(name, f"y = BatchNormalization <epsilon = {epsilon}> (x, s, b, m, v)", {"x": (some(x, F32) * spread + mean).astype(t)}, weights)


def inference():
    yield from near(batch_norm, halves=dict(t=F16), halves_far_from_zero=dict(t=F16, mean=300.0, spread=2.0), flat_halves=dict(t=F16, variance=1e-7, mean=0.001, spread=3e-4), doubles=dict(t=F64), vectors=dict(x=(4, 5)), volume=dict(x=(1, 3, 2, 2, 2)),
                    epsilon=dict(epsilon=0.5), flat=dict(variance=0.0, spread=1e-3), large_halves=dict(t=F16, mean=0.0, variance=1e4, spread=2e4, scale=10.0), empty=dict(x=(0, 3, 2, 2)))
    for first, second in (("<alpha = 0.0>", "<alpha = -0.0>"), ("<alpha = 0.1>", "<alpha = 0.2>"), ("", "<alpha = 0.01>")):
        yield case(f"equal_but_alpha_{len(first)}_{len(second)}", f"a = LeakyRelu {first} (x)\n b = LeakyRelu {second} (x)\n i = Reciprocal (a)\n j = Reciprocal (b)\n y = Concat <axis = 0> (i, j)", {"x": some((3, 5))})
    for op, attributes in (("ArgMax", ("select_last_index = 0", "select_last_index = 1")), ("ReduceSum", ("keepdims = 1", "keepdims = 0")), ("Softmax", ("axis = 0", "axis = 1")),
                           ("CumSum", ("exclusive = 1", "reverse = 1"))):
        axis = ", k" if op in ("ReduceSum", "CumSum") else ""
        x = np.round(some((4, 4)))
        yield case(f"equal_but_{op}", f"y = {op} <{attributes[0]}> (x{axis})\n z = {op} <{attributes[1]}> (x{axis})", {"x": x}, {"k": np.array(1, I64)} if axis else {}, ("y", "z"))
    for op in ("Add", "Mul", "Sub", "Div", "Pow", "PRelu"):
        x = np.array([0.0, -0.0, 1.5, -2.0], F32)
        yield case(f"exchanged_{op}", f"a = {op} (x, z)\n b = {op} (z, x)\n i = Reciprocal (a)\n j = Reciprocal (b)\n y = Concat <axis = 0> (i, j)", {"x": np.abs(x) if op == "Pow" else x, "z": np.array([-0.0, 0.0, 2.0, 1.0], F32)})
    for op in ("Equal", "Less"):
        yield case(f"exchanged_{op}", f"a = {op} (x, z)\n b = {op} (z, x)\n y = Xor (a, b)", {"x": np.round(some((9,))), "z": np.round(some((9,), seed=1))})
    for word, body in {"plain": "y = Relu (x)\n z = Relu (x)", "product": "y = MatMul (x, w)\n z = MatMul (x, w)", "grows": "y = Expand (x, e)\n z = Expand (x, e)", "two": "y, i = TopK (x, k)\n z, j = TopK (x, k)\n r = Cast <to = 1> (j)",
                       "behind": "a = Exp (x)\n y = Neg (a)\n b = Exp (x)\n z = Neg (b)"}.items():
        yield case(f"equal_outputs_{word}", body, {"x": some((4, 6))}, {"w": some((6, 5), F32, 1), "e": ints(3, 4, 6), "k": ints(2)}, ("y", "z"))
    branch = "if_{k} () => (float[n] a{k}) {{ a{k} = {op} (x) }}"
    for word, ops in {"equal": ("Neg", "Neg", "Abs", "Abs"), "else": ("Neg", "Neg", "Abs", "Exp"), "exchanged": ("Neg", "Abs", "Abs", "Neg")}.items():
        bodies = [branch.format(k=k, op=op) for k, op in enumerate(ops)]
        yield case(f"equal_branches_{word}", f"a = If (c) <then_branch = {bodies[0]}, else_branch = {bodies[2]}>\n b = If (c) <then_branch = {bodies[1]}, else_branch = {bodies[3]}>\n y = Sub (a, b)\n z = Add (a, b)", {"x": some((5,)), "c": np.bool_(1)}, outputs=("y", "z"))
