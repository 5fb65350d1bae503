"""Nodes that a pass may not expect: without operands, with operands that are left out in every position, with results that
nobody reads, with tensors without elements. Random numbers are judged by their distribution."""
import numpy as np

from case import Case, ints

F32 = np.float32
ODD = (3, 5, 7)
SIZE = "shape = [40, 500]"


def random_cases():
    for name, op in (("uniform", f"RandomUniform <low = -1.0, high = 3.0, seed = 1.0, {SIZE}> ()"), ("normal", f"RandomNormal <mean = 2.0, scale = 0.5, seed = 1.0, {SIZE}> ()"),
                     ("double", f"RandomNormal <dtype = 11, {SIZE}> ()")):
        yield Case(f"random_{name}", f"y = {op}", {}, random=True)
        yield Case(f"random_{name}_used", f"r = {op}\n y = Relu (r)", {}, random=True)
        yield Case(f"random_{name}_unused", f"r = {op}\n y = Relu (x)", {"x": ODD})
    large = np.zeros((40, 500), F32)
    yield Case("random_uniform_like", "y = RandomUniformLike <low = 1.0, high = 2.0> (x)", {"x": large}, random=True)
    yield Case("random_normal_like", "y = RandomNormalLike <mean = -1.0> (x)", {"x": large}, random=True)
    # ONNX Runtime draws ones with the probability 1 - p.
    yield Case("random_bernoulli", "y = Bernoulli (x)", {"x": large + F32(0.5)}, random=True)
    yield Case("random_multinomial", "y = Multinomial <sample_size = 20000> (x)", {"x": np.log(F32([[0.2, 0.5, 0.3]]))}, random=True)
    branch = "g () => (float[40,500] {0}) {{ {0} = RandomNormal <mean = {1}, seed = 3.0, shape = [40, 500]> () }}"
    yield Case("random_in_a_branch", f"y = If (c) <then_branch = {branch.format('a', 4.0)}, else_branch = {branch.format('b', -4.0)}>", {"c": np.array(True)}, random=True)


def wrapping_cases():
    """Numbers at the ends of 64 bits, whose sums and products wrap. None has bit 31 set: ONNX Runtime's Max and Min of int64 mistake it for a sign."""
    most, least = 2**63 - 1, -2**63
    x = {"x": np.int64([0, -9, 3, 6, 2**62, 2**32 + 2**30, most, most - 2, least])}
    n = {"a": np.int64(0), "b": np.int64(31), "c": np.int64(1000003), "d": np.int64(6364136223846793005), "e": np.int64(1442695040888963407), "f": np.int64(least), "g": np.int64(most), "h": np.int64(7)}
    for name, body in (("product", "p = Max (x, a)\n q = Mul (p, b)\n y = Max (q, a)"), ("sum", "p = Max (x, a)\n q = Add (p, b)\n y = Greater (q, a)"),
                       ("absolute", "p = Abs (x)\n y = Max (p, a)"), ("square", "p = Mul (x, x)\n y = Max (p, a)"), ("negative", "p = Min (x, a)\n q = Neg (p)\n y = Less (q, a)"),
                       ("hash", "p = Max (x, a)\n q = Mul (p, d)\n r = Add (q, e)\n y = Mod (r, c)"), ("remainders", "p = Mod (x, h)\n q = Sub (p, f)\n y = Mod (q, g)"),
                       ("least", "p = Equal (x, f)\n y = Where (p, a, x)"), ("above_least", "p = Greater (x, f)\n y = Where (p, x, h)")):
        yield Case(f"wraps_{name}", body, x, {k: v for k, v in n.items() if f"{k})" in body or f"{k}," in body})
    yield Case("wraps_clamped_product", "p = Min (x, far)\n q = Max (p, near)\n r = Mul (q, q)\n y = Add (r, q)", x, {"far": np.int64(2**40), "near": np.int64(-2**41)})
    yield Case("wraps_clamped_powers", "p = Min (x, far)\n q = Max (p, a)\n r = Mul (q, q)\n s = Mul (r, r)\n t = Mul (s, q)\n y = Add (t, q)", x, {"far": np.int64(2**20), "a": n["a"]})
    # Bounds that are none, and products of narrow numbers that do not fit.
    ends = {"least": np.int64(-2**63), "most": np.int64(2**63 - 1), "five": np.int64(5), "low": np.int64(-3), "zero": np.int64(0), "far": np.int64(2**40), "top": np.int64(2**63 - 4)}
    narrow = {"u": np.uint8([0, 1, 7, 200, 255]), "w": np.uint32([0, 1, 2**31, 2**32 - 1, 2**23])}
    for name, body in (("min_most", "p = Sub (c, five)\n y = Min (p, most)"), ("less_most", "p = Sub (c, five)\n y = Less (p, most)"), ("max_least", "p = Add (c, five)\n y = Max (p, least)"),
                       ("clip_most", "p = Sub (c, five)\n y = Clip (p, low, most)"), ("product_negative", "p = Mul (d, far)\n y = Less (p, zero)"), ("product_small", "p = Mul (d, far)\n y = Less (p, five)"),
                       ("product_bounded", "p = Mul (d, far)\n y = Max (p, low)"), ("sum_negative", "p = Add (d, top)\n y = Less (p, zero)")):
        source = "u" if "(c," in body else "w"
        yield Case(f"wraps_narrow_{name}", f"{'c' if source == 'u' else 'd'} = Cast <to = 7> ({source})\n {body}", {source: narrow[source]},
                   {k: v for k, v in ends.items() if f" {k})" in body or f" {k}," in body})
    for least in (0, 2):
        for name, body in (("powers", "t = Mul (s, q)\n y = Add (t, r)"), ("sign", "y = Less (s, zero)")):
            yield Case(f"wraps_clamped_number_{name}_{least}", f"p = Min (x, most)\n q = Max (p, least)\n r = Mul (q, q)\n s = Mul (r, r)\n {body}", {"x": np.int64(2**31 - 3)},
                       {"most": np.int64(2**31 - 1), "least": np.int64(least), **({"zero": np.int64(0)} if name == "sign" else {})})
    yield Case("wraps_tokens", "p = Cast <to = 7> (x)\n q = Mul (p, d)\n y = Mod (q, c)", {"x": np.uint16([0, 1, 2, 3, 777])}, {"d": n["d"], "c": n["c"]})
    u = {"x": np.uint64([0, 5, 2**63 - 1, 2**63, 2**64 - 1])}
    m = {"a": np.uint64(2**63 - 1), "b": np.uint64(4), "c": np.uint64(2**63), "d": np.uint64(2**64 - 1), "e": np.uint64(0), "i": np.int64(3), "j": np.int64(7)}
    for name, body in (("min", "y = Min (x, a)"), ("max", "y = Max (x, a)"), ("clip", "y = Clip (x, b, a)"), ("above", "p = Greater (x, c)\n y = Where (p, i, j)"),
                       ("below", "p = Less (x, d)\n y = Where (p, i, j)"), ("negative", "y = Less (x, e)")):
        yield Case(f"wraps_unsigned_{name}", body, u, {k: v for k, v in m.items() if f"{k})" in body or f"{k}," in body})


def absent_cases():
    """Optional operands and results left out, one after the other."""
    low, high = {"low": F32(-0.5)}, {"high": F32(0.7)}
    yield Case("absent_clip_min", "y = Clip (x, , high)", {"x": ODD}, high)
    yield Case("absent_clip_max", "y = Clip (x, low)", {"x": ODD}, low)
    yield Case("absent_clip_both", "c = Clip (x)\n y = Neg (c)", {"x": ODD})
    yield Case("absent_pad_value", "y = Pad (x, p, , a)", {"x": ODD}, {"p": ints(1, 2), "a": ints(1)})
    yield Case("absent_slice_axes", "y = Slice (x, s, e, , t)", {"x": ODD}, {"s": ints(0, 4, 1), "e": ints(3, 0, 7), "t": ints(1, -2, 2)})
    yield Case("absent_dropout", "y, m = Dropout (x)", {"x": ODD}, outputs=("y", "m"))
    yield Case("absent_dropout_ratio", "y = Dropout (x, , t)", {"x": ODD}, {"t": np.array(False)})
    for direction, states in (("forward", 1), ("bidirectional", 2)):
        w = {"w": (states, 12, 4), "r": (states, 12, 3)}
        x = {"x": (5, 2, 4)}
        lstm = f'LSTM <hidden_size = 3, direction = "{direction}">'
        yield Case(f"absent_lstm_{direction}_sequence", f"y = {lstm} (x, w, r)", x, w)
        yield Case(f"absent_lstm_{direction}_cell", f", , y = {lstm} (x, w, r, , , h)", {**x, "h": (states, 2, 3)}, w)
        yield Case(f"absent_lstm_{direction}_hidden", f", y = {lstm} (x, w, r, , , , c)", {**x, "c": (states, 2, 3)}, w)
        yield Case(f"absent_lstm_{direction}_peepholes", f"y = {lstm} (x, w, r, , , , , p)", x, {**w, "p": (states, 9)})
        yield Case(f"absent_gru_{direction}", f', y = GRU <hidden_size = 3, direction = "{direction}"> (x, v, q, , l)', x,
                   {"v": (states, 9, 4), "q": (states, 9, 3), "l": np.int32([5, 3])})
    yield Case("absent_topk_values", "v, y = TopK (x, k)", {"x": ODD}, {"k": ints(2)})
    # Sizes that are known only when the model runs are those of the results that are there.
    yield Case("absent_topk_values_of_a_computed_k", "v, y = TopK (x, k)", {"x": ODD, "k": ints(2)})
    yield Case("absent_topk_positions_of_a_computed_k", "y, i = TopK (x, k)", {"x": ODD, "k": ints(2)})
    yield Case("absent_part_of_a_computed_split", "a, b, y = Split <axis = 2> (x, s)", {"x": ODD, "s": ints(2, 1, 4)})
    yield Case("absent_parts_of_a_computed_split", "a, y, b, c = Split <axis = 2> (x, s)", {"x": (3, 7), "s": ints(1, 3, 2, 1)} | {"x": ODD}, outputs=("y", "a"))
    yield Case("absent_max_pool_values", "v, y = MaxPool <kernel_shape = [2, 2]> (x)", {"x": (2, 3, 6, 7)})
    yield Case("absent_batch_norm_results", "y, m, v = BatchNormalization <training_mode = 1> (x, s, b, n, t)", {"x": (4, 3, 5)},
               {"s": (3,), "b": (3,), "n": (3,), "t": np.abs(F32([1, 2, 0.5]))}, outputs=("v",))
    repeated = {"x": np.round(np.random.default_rng(2).standard_normal(40)).astype(F32)}
    yield Case("absent_unique_values", "v, i, y = Unique (x)", repeated)
    yield Case("absent_unique_count", "v, i, p = Unique (x)\n y = Gather (v, p)", repeated)
    yield Case("absent_zero_point", "q = QuantizeLinear (x, s)\n y = DequantizeLinear (q, s)", {"x": ODD}, {"s": F32(0.05)})
    yield Case("absent_gemm_bias", "g = Gemm <transB = 1> (x, w)\n y = Relu (g)", {"x": (3, 5)}, {"w": (7, 5)})
    yield Case("absent_layer_norm_bias", "y = LayerNormalization (x, s)", {"x": ODD}, {"s": (7,)})
    yield Case("absent_non_max_suppression_limits", "y = NonMaxSuppression (b, s, m)", {"b": np.random.default_rng(5).uniform(0, 1, (1, 6, 4)).astype(F32), "s": np.random.default_rng(6).uniform(0, 1, (1, 2, 6)).astype(F32)},
               {"m": ints(3)}, counted=True)


def whole_sum_cases():
    """What is summed becomes an integer of 64 bits: a position, as far as its type says."""
    x, w = np.arange(24, dtype=F32).reshape(4, 6) / 8 - 1, np.arange(42, dtype=F32).reshape(6, 7) / 16 - 1
    for op in ("Round", "Floor", "Identity"):
        for name, inputs, weights, body in (
                ("matmul", {"x": x}, {"w": w}, "s = MatMul (x, w)"), ("dense", {"x": x}, {"w": w, "b": (7,)}, "m = MatMul (x, w)\n s = Add (m, b)"),
                ("conv", {"x": (1, 2, 5, 6)}, {"w": (5, 2, 3, 3), "b": (5,)}, "s = Conv <pads = [1, 1, 1, 1]> (x, w, b)"),
                ("transposed", {"x": (1, 2, 4, 5)}, {"w": (2, 4, 3, 3), "b": (4,)}, "s = ConvTranspose <strides = [2, 2]> (x, w, b)"),
                ("outer", {"x": (4, 6)}, {"b": (1, 7)}, "r = ReduceSum (x, a)\n s = Mul (r, b)")):
            weights = weights | ({"a": ints(1)} if name == "outer" else {})
            yield Case(f"whole_sums_{name}_{op.lower()}", f"{body}\n t = {op} (s)\n y = Cast <to = 7> (t)", inputs, weights)
    yield Case("whole_sums_remainder", "s = MatMul (x, w)\n t = Cast <to = 7> (s)\n u = Add (t, c)\n y = Mod (u, d)", {"x": x}, {"w": w, "c": ints(*range(7)), "d": ints(17)})


def old_row_cases():
    """Softmax and its kin before version 13 take a matrix, of tensors without elements, too."""
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for shape, axis in (((3, 3, 0, 2), 1), ((2, 0, 3), 1), ((0, 2, 3), 2), ((2, 3, 0), 1)):
            yield Case(f"old_{op.lower()}_{'x'.join(map(str, shape))}", f"y = {op} <axis = {axis}> (x)", {"x": shape}, opset=10, nothing=True)


def long_integer_cases():
    """Extremes among integers of 64 bits, of which vectors hold 32."""
    for name, a, b, body in (("chosen", 2**40, 2**41, ""), ("added", 2**31 - 1, 5, "Add"), ("multiplied", 2**20, 2**21, "Mul")):
        chosen = "c = Greater (x, o)\n u = Where (c, a, b)\n "
        if body:
            chosen += f"d = Greater (z, o)\n v = Where (d, a, b)\n w = {body} (u, v)\n "
        for op in ("ArgMax", "ArgMin"):
            for axis in (0, 1):
                yield Case(f"long_integers_{name}_{op.lower()}_{axis}", f"{chosen}y = {op} <axis = {axis}, keepdims = 0> ({'w' if body else 'u'})",
                           {"x": (9, 37)} | ({"z": (9, 37)} if body else {}), {"o": F32(0), "a": np.array(a), "b": np.array(b)})
    # Products of what was cast from 32 or 8 bits leave 64: they have signs, remainders below 0 and positions from the end.
    r = np.random.default_rng(9)
    for name, x, product in (("words", r.integers(2**31, 2**32, (4, 16), dtype=np.uint32), "w = Mul (v, v)\n z = Mul (w, v)"),
                             ("bytes", r.integers(128, 256, (4, 16), dtype=np.uint8), "a = Mul (v, v)\n b = Mul (a, a)\n c = Mul (b, b)\n z = Mul (c, v)")):
        wide = f"v = Cast <to = 7> (x)\n {product}\n "
        zero = {"o": np.array(0), "m": np.array(1000), "n": np.array(-1)}
        yield Case(f"long_integers_{name}_sign", f"{wide}d = Less (z, o)\n y = Where (d, n, z)", {"x": x}, {k: zero[k] for k in "on"})
        yield Case(f"long_integers_{name}_remainder", f"{wide}e = Div (z, m)\n f = Mul (e, m)\n q = Sub (z, f)\n s = Add (q, z)\n d = Less (q, o)\n y = Where (d, n, s)", {"x": x}, zero)
        yield Case(f"long_integers_{name}_positions", f"{wide}e = Div (z, m)\n f = Mul (e, m)\n q = Sub (z, f)\n g = Gather (t, q)\n h = Gather (u, q)\n y = Add (g, h)", {"x": x, "t": (1000,), "u": (1000,)}, {"m": zero["m"]})
    for name, rows, depth, columns in (("few_columns", 1, 4096, 12), ("three_columns", 1, 16384, 3), ("two_rows", 2, 8192, 4)):
        w = np.random.default_rng(7).standard_normal((depth, columns)).astype(F32)
        yield Case(f"long_dots_{name}", "y = MatMul (x, w)", {"x": (rows, depth)}, {"w": w})
    yield Case("long_dots_window", "y = Conv (x, w)", {"x": (1, 64, 16, 16)}, {"w": (4, 64, 16, 16)})


def apart_cases():
    """Costly functions of elements that do not lie side by side."""
    for end in ("y = Tanh (v)", "y = Mish (v)", "e = Exp (v)\n d = Sigmoid (v)\n a = Add (e, d)\n y = Mul (a, v)"):
        name = end[4:8].strip().lower()
        yield Case(f"apart_behind_steps_{name}", f"v = Slice (x, s, e0, a0, t)\n {end}", {"x": (3, 5, 47)}, {"s": ints(-1), "e0": ints(-100), "a0": ints(2), "t": ints(-2)})
        for mode in ("reflect", "edge", "wrap"):
            yield Case(f"apart_{mode}_{name}", f"v = Pad <mode = \"{mode}\"> (x, p)\n {end}", {"x": (2, 3, 9, 14)}, {"p": ints(0, 0, 1, 3, 0, 0, 2, 2)})
        yield Case(f"apart_at_positions_{name}", f"v = Gather <axis = 1> (x, i)\n {end}", {"x": (7, 30), "i": np.random.default_rng(4).integers(-30, 30, 21)})
        yield Case(f"apart_resized_{name}", f"v = Resize <mode = \"nearest\"> (x, , r)\n {end}", {"x": (1, 3, 8, 12)}, {"r": np.array([1, 1, 1.5, 2.5], F32)})
        yield Case(f"apart_shuffled_{name}", f"u = Reshape (x, s)\n w = Transpose <perm = [0, 3, 1, 2, 4]> (u)\n v = Reshape (w, t)\n {end}", {"x": (2, 45, 4)}, {"s": ints(2, 3, 3, 5, 4), "t": ints(2, 45, 4)})
        yield Case(f"apart_halves_{name}", f"h = Cast <to = 10> (x)\n g = Slice (h, s, e0, a0, t)\n v = Cast <to = 1> (g)\n {end.replace('y =', 'z =')}\n y = Cast <to = 10> (z)", {"x": (5, 60)}, {"s": ints(0), "e0": ints(60), "a0": ints(1), "t": ints(3)}, bar=1e-3)
        yield Case(f"apart_chosen_{name}", f"c = Greater (x, z)\n g = Gather <axis = 1> (x, i)\n w = Where (c, g, z)\n v = Abs (w)\n {end}", {"x": (6, 21), "z": (6, 21), "i": np.random.default_rng(5).integers(0, 21, 21)})


def nothing_cases():
    """Tensors without elements on the way; the sum of nothing, its mean and its place are what NumPy says."""
    none = {"x": np.zeros((3, 0, 7), F32), "z": (3, 2, 7)}
    for name, body in (("matmul", "e = MatMul (x, w)\n y = Concat <axis = 1> (e, z)"), ("gather", "i = Cast <to = 7> (w0)\n e = Gather <axis = 1> (z, i)\n y = Concat <axis = 1> (e, z)"),
                       ("transpose", "t = Transpose <perm = [0, 2, 1]> (x)\n e = Transpose <perm = [0, 2, 1]> (t)\n y = Concat <axis = 1> (e, z)"),
                       ("sum", "y = ReduceSum <keepdims = 0> (x, a)"),
                       ("softmax", "e = Softmax <axis = 2> (x)\n y = Concat <axis = 1> (e, z)"), ("cast", "c = Cast <to = 6> (x)\n e = Cast <to = 1> (c)\n y = Concat <axis = 1> (e, z)"),
                       ("where", "c = Greater (x, x)\n e = Where (c, x, x)\n y = Concat <axis = 1> (e, z)"), ("layer_norm", "e = LayerNormalization (x, s)\n y = Concat <axis = 1> (e, z)"),
                       ("argmax", "i = ArgMax <axis = 2, keepdims = 1> (x)\n c = Cast <to = 1> (i)\n e = Add (c, x)\n y = Concat <axis = 1> (e, z)"),
                       ("argmax_columns", "i = ArgMax <axis = 0, keepdims = 1> (x)\n c = Cast <to = 1> (i)\n e = Add (c, x)\n y = Concat <axis = 1> (e, z)"),
                       ("pad", "y = Pad (x, p)")):
        used = {name: value for name, value in none.items() if name in body.replace("(", " ").replace(",", " ").replace(")", " ").split()}
        weights = {"w": (7, 7), "w0": np.zeros((0,), F32), "a": ints(1), "s": (7,), "p": ints(0, 1, 0, 0, 2, 0)}
        yield Case(f"nothing_{name}", body, used, {key: value for key, value in weights.items() if f" {key})" in body or f" {key}," in body or f"({key})" in body}, nothing=True)


def bound_cases():
    """Bounds that are no numbers: what is compared with NaN is NaN."""
    bounds = {"a": np.array([0.5, np.nan, -1, np.inf], F32), "n": F32(np.nan)}
    for op in ("Max", "Min"):
        yield Case(f"bound_{op.lower()}_nan", f"y = {op} (x, n)", {"x": (5, 4)}, {"n": bounds["n"]}, nothing=True)
        yield Case(f"bound_{op.lower()}_some_nan", f"y = {op} (x, a)", {"x": (5, 4)}, {"a": bounds["a"]}, nothing=True)


def byte_cases():
    """Conversions to bytes take the low bits of the whole number, and the lowest i32 stands for what has none."""
    wide = np.random.default_rng(5).uniform(-70000, 70000, 211).astype(F32)
    x = np.concatenate([wide, F32([255.9, 256, -0.9, -1, -128.5, 2147483520, -2147483648])])
    for name, to in (("uint8", 2), ("int8", 3)):
        yield Case(f"{name}_of_float", f"y = Cast <to = {to}> (x)", {"x": x})
        yield Case(f"{name}_of_product", f"p = Mul (x, x) a = Sqrt (p) y = Cast <to = {to}> (a)", {"x": wide})
        yield Case(f"{name}_of_int32", f"y = Cast <to = {to}> (x)", {"x": x.astype(np.int32)})
        yield Case(f"{name}_and_back", f"b = Cast <to = {to}> (x) y = Cast <to = 1> (b)", {"x": x})
        yield Case(f"{name}_twice_read", f"b = Cast <to = {to}> (x) c = Cast <to = 6> (b) y = Add (c, z)", {"x": wide, "z": np.arange(211, dtype=np.int32)}, outputs=("y", "b"))


def padded_row_cases():
    """Rows that end behind their operand: what several steps of a row read there is not the operand's."""
    for before, after in ((0, 1), (1, 0), (2, 3)):
        for shape in ((2,), (3, 5), (2, 33)):
            pads = [0] * (len(shape) - 1) + [before] + [0] * (len(shape) - 1) + [after]
            for name, rest in (("softmax", "y = Softmax (v)"), ("deviation", "m = ReduceMean (v, last) d = Sub (v, m) q = Mul (d, v) y = ReduceMax (q, last)"),
                               ("norm", "y = LpNormalization <axis = -1> (v)")):
                yield Case(f"padded_row_{name}_{before}_{after}_{'x'.join(map(str, shape))}", f"v = Pad (x, p, one) {rest}", {"x": shape},
                           {"p": ints(*pads), "one": np.float32(1.5), "last": ints(-1)})


def exchanged_cases():
    """Rows whose stages have their axes in different orders, all of one size, so that sizes do not tell them apart."""
    for first, second in (((0, 3, 1, 2), (0, 2, 3, 1)), ((0, 2, 1, 3), (0, 2, 1, 3)), ((1, 0, 2, 3), (0, 1, 3, 2)), ((3, 2, 1, 0), (1, 0, 3, 2)), ((0, 1, 3, 2), (2, 3, 0, 1))):
        moved = f"t = Transpose <perm = {list(first)}> (x) s = Sigmoid (t) u = Transpose <perm = {list(second)}> (s)"
        name = "".join(map(str, first + second))
        yield Case(f"exchanged_row_{name}", f"{moved} m = ReduceMean (u, a) y = Sub (u, m)", {"x": (3, 3, 3, 3)}, {"a": ints(-1)})
        yield Case(f"exchanged_plane_{name}", f"{moved} m = ReduceMax (u, a) d = Sub (u, m) y = Transpose <perm = {list(first)}> (d)", {"x": (3, 3, 3, 3)}, {"a": ints(1, 3)})
        yield Case(f"exchanged_all_{name}", f"{moved} n = MeanVarianceNormalization <axes = [0, 1, 2, 3]> (u) y = Mul (n, t)", {"x": (3, 3, 3, 3)})
        yield Case(f"exchanged_softmax_{name}", f"{moved} n = Softmax (u) y = Add (n, s)", {"x": (3, 3, 3, 3)})


def cases():
    return [*random_cases(), *wrapping_cases(), *absent_cases(), *whole_sum_cases(), *long_integer_cases(), *apart_cases(), *nothing_cases(), *bound_cases(), *byte_cases(), *exchanged_cases(), *padded_row_cases(), *old_row_cases()]
