"""Models beside the rules about products: quantisation, scales that move, products side by side, channels last, padding, loops (rules.py says how)."""
import numpy as np

from case import ints
from rules import F16, F32, F64, I8, I32, I64, U8, bytes_of, case, near, scalar, some


# --- realize_quantization, and the templates of products of bytes

def quantised_product(name, k=13, n=9, m=5, xt=U8, wt=I8, zx=3, zw=0, sw=0.02, axis=1, bias=None, bias_scale=None, bias_axis=None, bias_shape=None, op="MatMul", trans=0,
                      activation="", low=0.0, high=6.0, result=None, sy=0.05, zy=7, alpha=1.0, sx=0.05, precise=False, rank=0, wide=False):
    low_w, high_w = (None, None) if wide else ((-60, 60) if wt == I8 else (60, 190))
    weights = {"sx": scalar(sx, F32, rank), "zx": scalar(zx, xt, rank), "w": bytes_of((n, k) if trans else (k, n), wt, 1, low_w, high_w), "sw": np.asarray(sw, F32),
               "zw": np.full(np.shape(sw), zw, wt)}
    body = f"a = DequantizeLinear (x, sx, zx)\n b = DequantizeLinear <axis = {axis}> (w, sw, zw)\n"
    c = ""
    if bias is not None:
        scale = np.asarray(np.float32(sx) * np.asarray(sw, F32) if bias_scale is None else bias_scale, F32)
        weights.update(i=np.resize(bytes_of((n,), I8, 2).astype(I32) * bias, bias_shape or (n,)), si=scale, zi=np.zeros(scale.shape, I32))
        body += f"c = DequantizeLinear <axis = {0 if bias_axis is None else bias_axis}> (i, si, zi)\n"
        c = ", c"
    body += f"p = MatMul (a, b)\n" if op == "MatMul" else f"p = Gemm <alpha = {alpha}, transB = {trans}> (a, b{c})\n"
    if op == "MatMul" and c:
        body += "p2 = Add (p, c)\n"
    last = "p2" if op == "MatMul" and c else "p"
    if activation:
        body += f"r = {activation} ({last}{', lo, hi' if activation == 'Clip' else ''})\n"
        weights.update(**({"lo": F32(low), "hi": F32(high)} if activation == "Clip" else {}))
        last = "r"
    if result is not None:
        weights.update(sy=F32(sy), zy=result(zy))
        body += f"q = QuantizeLinear ({last}, sy, zy)\n y = DequantizeLinear (q, sy, zy)"
    else:
        body += f"y = Identity ({last})"
    return case(name, body, {"x": bytes_of((m, k), xt)}, weights, bar=1e-4 if result is None else 2e-2)


def quantised_conv(name, c=5, oc=6, kernel=1, xt=U8, wt=I8, zx=3, zw=0, sw=0.02, axis=0, bias=None, bias_scale=None, activation="", low=0.0, high=6.0, result=U8, sy=0.05, zy=0, sx=0.05,
                   groups=1, shared=False, wide=False, pads=0):
    low_w, high_w = (None, None) if wide else ((-60, 60) if wt == I8 else (60, 190))
    weights = {"sx": F32(sx), "zx": xt(zx), "w": bytes_of((oc, c // groups, kernel, kernel), wt, 1, low_w, high_w), "sw": np.asarray(sw, F32), "zw": np.full(np.shape(sw), zw, wt)}
    body = f"a = DequantizeLinear (x, sx, zx)\n b = DequantizeLinear <axis = {axis}> (w, sw, zw)\n"
    extra = ""
    if bias is not None:
        scale = np.asarray(np.float32(sx) * np.asarray(sw, F32) if bias_scale is None else bias_scale, F32)
        weights.update(i=bytes_of((oc,), I8, 2).astype(I32) * bias, si=scale, zi=np.zeros(scale.shape, I32))
        body += "c = DequantizeLinear <axis = 0> (i, si, zi)\n"
        extra = ", c"
    body += f"p = Conv <group = {groups}, pads = [{pads},{pads},{pads},{pads}]> (a, b{extra})\n"
    last = "p"
    if activation:
        body += f"r = {activation} ({last}{', lo, hi' if activation == 'Clip' else ''})\n"
        weights.update(**({"lo": F32(low), "hi": F32(high)} if activation == "Clip" else {}))
        last = "r"
    body += f"q = QuantizeLinear ({last}, sy, zy)\n y = DequantizeLinear (q, sy, zy)"
    weights.update(sy=F32(sy), zy=result(zy))
    if shared:
        body += f"\n z = Neg ({'p' if activation else last})"
    return case(name, body, {"x": bytes_of((2, c, 4, 5), xt)}, weights, ("y", "z") if shared else ("y",), bar=2e-2)


def chosen(name, op="MaxPool", attributes="<kernel_shape = [2,2]>", scale=0.1, other_scale=None, zero=3, other_zero=None, t=U8, shared=False, extra="", weights=None, other_type=None):
    body = f"a = DequantizeLinear (x, s, z)\n p = {op} {attributes} (a{extra})\n y = QuantizeLinear (p, u, v)" + ("\n w = Neg (p)" if shared else "")
    return case(name, body, {"x": bytes_of((1, 3, 4, 6), t)},
                {"s": F32(scale), "z": t(zero), "u": F32(scale if other_scale is None else other_scale), "v": (other_type or t)(zero if other_zero is None else other_zero), **(weights or {})},
                ("y", "w") if shared else ("y",))


def averaged(name, kernel=2, stride=2, pads=0, attributes="", scale=0.1, result_scale=0.0437, t=U8, zero=3, result_zero=7, made=True, shared=False, result=None, x=(1, 6, 8, 8)):
    """A mean between two quantisations; `made`: its operand is quantised by the model, too."""
    last = "p"
    body = ("q = QuantizeLinear (x, s, z)\n" if made else "") + f"a = DequantizeLinear ({'q' if made else 'x'}, s, z)\n p = AveragePool <kernel_shape = [{kernel},{kernel}], strides = [{stride},{stride}], pads = [{pads},{pads},{pads},{pads}]{attributes}> (a)\n"
    body += f"y = QuantizeLinear ({last}, u, v)" + ("\n w = Neg (p)" if shared else "")
    return case(name, body, {"x": some(x, F32, scale=8) if made else bytes_of(x, t)}, {"s": F32(scale), "z": t(zero), "u": F32(result_scale), "v": (result or t)(result_zero)}, ("y", "w") if shared else ("y",))


def joined(name, scales=(0.1, 0.1), zeros=(3, 3), scale=0.1, zero=3, t=U8, result=None, floats=0, shared=False, axis=1, kept=False):
    """Parts, some of them floats, side by side and then quantised."""
    body, inputs, weights, parts = "", {}, {"u": F32(scale), "v": (result or t)(zero)}, []
    for k, (s, z) in enumerate(zip(scales, zeros)):
        inputs[f"x{k}"], weights[f"s{k}"], weights[f"z{k}"] = bytes_of((2, 3 + (k if axis == 1 else 0), 4), t, k), F32(s), t(z)
        body += f"a{k} = DequantizeLinear (x{k}, s{k}, z{k})\n"
        parts.append(f"a{k}")
    for k in range(floats):
        inputs[f"f{k}"] = some((2, 3, 4), F32, k, 9)
        body += f"r{k} = Relu (f{k})\n"
        parts.append(f"r{k}")
    body += f"c = Concat <axis = {axis}> ({', '.join(parts)})\n y = QuantizeLinear (c, u, v)" + ("\n w = Neg (c)" if shared else "") + ("\n w = Neg (a0)" if kept else "")
    return case(name, body, inputs, weights, ("y", "w") if shared or kept else ("y",))


def integer_product(name, k=13, xt=I8, wt=U8, zx=None, zw=None, m=5, n=17, op="MatMulInteger", constant=True, columns=False):
    xw = {"x": bytes_of((m, k), xt)}
    weights = {"w": bytes_of((k, n), wt, 1, *((64, 190) if wt == U8 else (-63, 63)))}
    names = ""
    if zx is not None or zw is not None:
        weights["a"] = xt(zx or 0)
        names = ", a"
    if zw is not None:
        weights["b"] = bytes_of((n,), wt, 5) if columns else wt(zw)
        names += ", b"
    if not constant:
        xw["w"] = weights.pop("w")
    return case(name, f"y = MatMulInteger (x, w{names})", xw, weights)


def quantised_operator(name, xt=I8, wt=U8, k=7, conv=False, zw=120):
    if conv:
        x, w = bytes_of((1, k, 5, 6), xt), bytes_of((9, k, 3, 3), wt, 1, *((64, 190) if wt == U8 else (-63, 63)))
        body = "y = QLinearConv <pads = [1,1,1,1]> (x, s, z, w, t, n, u, v)"
    else:
        x, w = bytes_of((6, k), xt), bytes_of((k, 18), wt, 1, *((64, 190) if wt == U8 else (-63, 63)))
        body = "y = QLinearMatMul (x, s, z, w, t, n, u, v)"
    return case(name, body, {"x": x}, {"w": w, "s": F32(0.02), "z": xt(3), "t": F32(0.01), "n": wt(zw), "u": F32(0.5), "v": xt(1)})


def quantised_to_float(name, k=7, xt=I8, wt=U8, zw=120, bias=False):
    weights = {"w": bytes_of((k, 18), wt, 1, *((64, 190) if wt == U8 else (-63, 63))), "s": F32(0.02), "t": F32(0.01), "z": xt(3), "n": wt(zw), "b": some((18,))}
    return case(name, f"y = com.microsoft.MatMulIntegerToFloat (x, w, s, t, z, n{', b' if bias else ''})", {"x": bytes_of((6, k), xt)}, weights)


def odd_floats(name, t=U8, back=True, scale=0.1, zero=3, source=F32):
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e30, -1e30, 1, -1, 0.05, 0.15, 12.75, 12.65, 25.3, -13.1, 3] * 3, F32)
    if source == F16:  # ONNX Runtime's conversion of infinite halves is not defined
        x = np.where(np.abs(x) < 100, x, 5)
    x = x.astype(source)
    return case(name, "y = QuantizeLinear (x, s, z)" if not back else "q = QuantizeLinear (x, s, z)\n y = DequantizeLinear (q, s, z)", {"x": x}, {"s": source(scale), "z": t(zero)}, bar=1e-2 if source == F16 else None)


def quantised():
    for xt, wt, zx, zw in ((I8, U8, None, None), (I8, U8, -3, 120), (I8, I8, -3, 5), (I8, I8, None, None), (U8, U8, 9, 131), (U8, I8, 9, -7), (I8, U8, 4, 0)):
        for k in (1, 2, 3, 4, 6, 7, 13, 16):
            signs = f"{np.dtype(xt)}_{np.dtype(wt)}_{k}_{0 if zx is None else 1}{0 if zw in (None, 0) else 1}"
            yield integer_product(f"integer_product_{signs}", k, xt, wt, zx, zw)
            if k in (3, 6):
                yield integer_product(f"integer_product_of_two_{signs}", k, xt, wt, zx, zw, constant=False)
                yield integer_product(f"integer_product_of_columns_{signs}", k, xt, wt, zx, zw, columns=zw is not None)
                yield quantised_operator(f"quantised_matmul_{signs}", xt, wt, k, zw=zw or 0)
                yield quantised_operator(f"quantised_conv_{signs}", xt, wt, k, True, zw=zw or 0)
                yield quantised_to_float(f"quantised_to_float_{signs}", k, xt, wt, zw or 0)
                yield quantised_to_float(f"quantised_to_float_biased_{signs}", k, xt, wt, zw or 0, True)
                yield quantised_product(f"quantised_product_{signs}", k, xt=xt, wt=wt, zx=zx or 0, zw=zw or 0)
                yield quantised_conv(f"quantised_convolution_{signs}", k, xt=xt, wt=wt, zx=zx or 0, zw=zw or 0, result=xt)
    per_row, per_column = np.linspace(0.01, 0.03, 13).astype(F32), np.linspace(0.01, 0.03, 9).astype(F32)
    square = np.linspace(0.01, 0.05, 13).astype(F32)
    yield from near(quantised_product, rows=dict(sw=per_row, axis=0), columns=dict(sw=per_column), other_axis=dict(sw=square, n=13, axis=0), scale_rank=dict(rank=1),
                    result=dict(result=U8), relu=dict(result=U8, zy=0, activation="Relu"), gemm=dict(op="Gemm", bias=10), alpha=dict(op="Gemm", bias=10, alpha=0.5),
                    transposed=dict(op="Gemm", trans=1, sw=per_column, axis=0), transposed_other=dict(op="Gemm", trans=1, n=13, sw=square, axis=1),
                    bias=dict(op="Gemm", bias=10, sw=per_column), bias_scale=dict(op="Gemm", bias=1000, bias_scale=F32(0.05) * F32(0.02) * F32(1.00001)),
                    bias_of_rows=dict(op="Gemm", bias=10, m=9, sw=per_column, bias_shape=(9, 1), bias_axis=0), bias_matrix=dict(op="Gemm", bias=10, bias_shape=(9, 9), m=9, sw=per_column, bias_axis=0),
                    bias_matrix_columns=dict(op="Gemm", bias=10, bias_shape=(9, 9), m=9, sw=per_column, bias_axis=1), large_bias=dict(op="Gemm", bias=16900000),
                    negative_scale=dict(sw=-0.02, op="Gemm", bias=10), negative_input_scale=dict(sx=-0.05, result=I8), added=dict(bias=100))
    scales = np.linspace(0.01, 0.03, 6).astype(F32)
    yield from near(quantised_conv, channels=dict(sw=scales), input_channels=dict(c=6, sw=scales, axis=1), bias=dict(bias=10), biases=dict(sw=scales, bias=10),
                    bias_scale=dict(bias=1000, bias_scale=F32(0.05) * F32(0.02) * F32(1.00001)), relu=dict(activation="Relu"), relu_above=dict(activation="Relu", zy=9),
                    relu_signed=dict(activation="Relu", result=I8, zy=-128), relu_signed_above=dict(activation="Relu", result=I8, zy=-127), clip=dict(activation="Clip", high=12.75),
                    clip_below=dict(activation="Clip", high=6.0), clip_low=dict(activation="Clip", low=0.5, high=20.0), clip_all=dict(activation="Clip", low=-1.0, high=13.0),
                    negative_result=dict(sy=-0.05, activation="Relu"), negative_input=dict(sx=-0.05), shared=dict(shared=True), shared_before=dict(shared=True, activation="Relu"),
                    signed=dict(xt=I8, result=I8, zx=-5), groups=dict(c=6, groups=2), depthwise=dict(c=6, groups=6, kernel=3), padded=dict(kernel=3, pads=1, zx=128), tiny_result=dict(sy=1e-36),
                    large_bias=dict(bias=16900000), other_types=dict(xt=I8, result=U8))
    yield from near(chosen, negative_scale=dict(scale=-0.1), scale=dict(other_scale=0.2), zero=dict(other_zero=4), signed=dict(t=I8, zero=-5), shared=dict(shared=True),
                    other_type=dict(other_type=I8), average=dict(op="AveragePool"), huge_scale=dict(scale=3e38), tiny_scale=dict(scale=1e-44), padded=dict(attributes="<kernel_shape = [3,3], pads = [1,1,1,1]>"),
                    padded_signed=dict(t=I8, zero=100, attributes="<kernel_shape = [3,3], pads = [1,1,1,1]>"),
                    transposed=dict(op="Transpose", attributes="<perm = [0,2,3,1]>", scale=-0.1), reshaped=dict(op="Reshape", attributes="", extra=", shape", weights={"shape": ints(3, 24)}),
                    padded_by_pad=dict(op="Pad", attributes="", extra=", pads", weights={"pads": ints(0, 0, 1, 0, 0, 0, 0, 1)}), clipped=dict(op="Relu", attributes=""))
    I16, U16 = np.int16, np.uint16
    for t, z in ((I16, -300), (U16, 4000)):
        for op, attributes in (("MaxPool", "<kernel_shape = [2,2]>"), ("Transpose", "<perm = [0,2,3,1]>")):
            yield chosen(f"chosen_{np.dtype(t)}_{op}", op=op, attributes=attributes, t=t, zero=z)
            yield chosen(f"chosen_{np.dtype(t)}_{op}_other_zero", op=op, attributes=attributes, t=t, zero=z, other_zero=z + 1)
    yield from near(averaged, three=dict(kernel=3, stride=1), padded=dict(kernel=3, stride=1, pads=1), padding_counts=dict(kernel=3, stride=1, pads=1, attributes=", count_include_pad = 1"), ceil=dict(kernel=3, attributes=", ceil_mode = 1"), dilated=dict(kernel=3, stride=1, attributes=", dilations = [2,2]"),
                    given=dict(made=False), signed=dict(t=I8, zero=-5, result_zero=-9), other_type=dict(result=I8), shared=dict(shared=True), negative_scale=dict(scale=-0.1), negative_result=dict(result_scale=-0.05), tiny_result=dict(result_scale=1e-36), words=dict(t=U16), one=dict(kernel=1, stride=1))
    yield from near(joined, first_scale=dict(scales=(0.2, 0.1)), all_scales=dict(scales=(0.2, 0.3)), zero=dict(zeros=(3, 4)), result_zero=dict(zero=9), signed=dict(t=I8, zeros=(-5, -5), zero=-5), words=dict(t=U16), signed_words=dict(t=I16, scales=(0.2, 0.1)), other_type=dict(result=I8), one_float=dict(floats=1),
                    two_floats=dict(floats=2), shared=dict(shared=True), part_shared=dict(kept=True, scales=(0.2, 0.1)), three=dict(scales=(0.1, 0.2, 0.1), zeros=(3, 3, 3)), one=dict(scales=(0.1,), zeros=(3,)), last_axis=dict(axis=-1), first_axis=dict(axis=0), negative_scale=dict(scales=(-0.1, 0.1)))
    yield from near(odd_floats, signed=dict(t=I8, zero=-3), codes=dict(back=False), signed_codes=dict(t=I8, back=False), negative=dict(scale=-0.1), no_zero=dict(zero=0), halves=dict(source=F16))


# --- fold_scale_axis

def scaled_after(name, op="Mul", product="Conv", constant=None, t=F32, shared=False, bias=True, groups=1, w=1.0, left=False, computed=False, x=(2, 4, 5, 6), scale=1.0):
    rank = len(x)
    weights = {"c": np.asarray(constant if constant is not None else some((6,) + (1,) * (rank - 2), F32, 5), t)}
    inputs = {"x": some(x, t, scale=scale)}
    if product == "Conv":
        weights.update(w=some((6, x[1] // groups) + (1,) * (rank - 2), t, 1, w))
        if bias:
            weights.update(b=some((6,), t, 2, w))
        body = f"p = Conv <group = {groups}> (x, w{', b' if bias else ''})\n"
    else:
        weights.update(w=some((x[-1], 6), t, 1, w))
        body = "p = MatMul (x, w)\n" + ("v = Add (p, b)\n" if bias else "")
        if bias:
            weights.update(b=some((6,), t, 2, w))
    if computed:
        inputs["w"] = weights.pop("w")
    v = "v" if product == "MatMul" and bias else "p"
    body += f"y = {op} ({'c, ' + v if left else v + ', c'})" + (f"\n z = Neg ({v})" if shared else "")
    return case(name, body, inputs, weights, ("y", "z") if shared else ("y",))


def scaled_before(name, product="Conv", constant=None, t=F32, op="Mul", shared=False, groups=1, pads=0, w=1.0, x=(2, 4, 5, 6), scale=1.0):
    weights = {"c": np.asarray(constant if constant is not None else some((x[1], 1, 1) if product == "Conv" else (x[-1],), F32, 5), t),
               "w": some((6, x[1] // groups, 2, 2), t, 1, w) if product == "Conv" else some((x[-1], 6), t, 1, w)}
    body = f"m = {op} (x, c)\n" + (f"y = Conv <group = {groups}, pads = [{pads},{pads},{pads},{pads}]> (m, w)" if product == "Conv" else "y = MatMul (m, w)")
    return case(name, body + ("\n z = Neg (m)" if shared else ""), {"x": some(x, t, scale=scale)}, weights, ("y", "z") if shared else ("y",))


BETWEEN = {"relu": "{y} = Relu ({x})", "leaky": "{y} = LeakyRelu <alpha = 0.3> ({x})", "slope": "{y} = PRelu ({x}, slope)", "sigmoid": "{y} = Sigmoid ({x})", "most": "{y} = MaxPool <kernel_shape = [2,2], strides = [2,2]> ({x})",
           "mean": "{y} = AveragePool <kernel_shape = [2,2], strides = [2,2]> ({x})", "padded_mean": "{y} = AveragePool <kernel_shape = [3,3], pads = [1,1,1,1]> ({x})", "padded_most": "{y} = MaxPool <kernel_shape = [3,3], pads = [1,1,1,1]> ({x})",
           "all": "{y} = ReduceMean <keepdims = 1> ({x}, space)", "largest": "{y} = ReduceMax <keepdims = 1> ({x}, space)", "rows": "{y} = ReduceMean <keepdims = 1> ({x}, last)", "turned": "{y} = Transpose <perm = [0,1,3,2]> ({x})"}


def scaled_behind(name, between=("relu",), op="Mul", sign="positive", product="Conv", shared=False, t=F32, shift=False, constant=None):
    """A constant per channel behind a contraction and what is between the two."""
    c = some((6, 1, 1), F32, 5) if constant is None else np.asarray(constant, F32)
    c = np.abs(c) + F32(0.1) if sign == "positive" else c
    body, last = f"v0 = {product} (x, w, b)\n", "v0"
    for k, word in enumerate(between):
        body += BETWEEN[word].format(x=last, y=f"v{k + 1}") + "\n"
        last = f"v{k + 1}"
    body += f"y = {op} ({last}, c)" + (f"\n z = Neg ({'v0' if shared == 'first' else last})" if shared else "")
    weights = {"w": some((6, 4, 1, 1) if product == "Conv" else (4, 6, 1, 1), t, 1), "b": some((6,), t, 2), "c": c.astype(t), "slope": some((6, 1, 1), t, 3), "space": ints(2, 3), "last": ints(3)}
    return case(name, body, {"x": some((2, 4, 6, 6), t)}, weights, ("y", "z") if shared else ("y",))


def scaled_branches(name, op="Mul", join="Add", products=("Conv", "Conv"), sign="mixed", shared=None, axis=1):
    """Two branches that meet, scaled behind: each has a convolution, or is an operand as it is."""
    channels = 12 if join == "Concat" and axis == 1 else 6
    body = ""
    for k, product in enumerate(products):
        body += f"v{k} = {'Identity (x' if product == 'none' else f'{product} (x, w{k}'})\n" + (f"r{k} = Relu (v{k})\n" if product != "none" else f"r{k} = Abs (v{k})\n")
    body += (f"a = Concat <axis = {axis}> (r0, r1)\n" if join == "Concat" else "a = Add (r0, r1)\n") + f"y = {op} (a, c)" + (f"\n z = Neg (r{shared})" if shared is not None else "")
    c = some((channels, 1, 1), F32, 5)
    weights = {"w0": some((6, 6, 1, 1), F32, 1), "w1": some((6, 6, 1, 1), F32, 2), "c": np.abs(c) + F32(0.1) if sign == "positive" else c}
    return case(name, body, {"x": some((2, 6, 5, 5))}, weights, ("y", "z") if shared is not None else ("y",))


def shifted_before(name, product="Conv", constant=None, t=F32, pads=0, groups=1, bias=True, second=True, shared=False, scaled=False, x=(2, 4, 5, 6), largest=1.0, auto=""):
    shape = (x[1], 1, 1) if product != "MatMul" else (x[-1],)
    c = some(shape, t, 5) * t(largest) if constant is None else np.asarray(constant, t)
    weights = {"c": c, "s": some(shape, t, 6), "b": some((6,), t, 2), "w": some((x[-1], 6) if product == "MatMul" else (6, x[1] // groups, 2, 2) if product == "Conv" else (x[1], 6 // groups, 2, 2), t, 1)}
    body = ("m = Mul (x, s)\n" if scaled else "m = Identity (x)\n") + "a = Add (m, c)\n"
    if product == "MatMul":
        body += "p = MatMul (a, w)\n" + ("y = Add (p, b)" if second else "y = Relu (p)")
    else:
        place = f"auto_pad = \"{auto}\"" if auto else f"pads = [{pads},{pads},{pads},{pads}]"
        body += f"y = {product} <group = {groups}, {place}> (a, w{', b' if bias else ''})"
    return case(name, body + ("\n z = Neg (a)" if shared else ""), {"x": some(x, t)}, weights, ("y", "z") if shared else ("y",), bar=None if largest == 1 else 3e-5)


def scaled_ahead(name, between=("relu",), sign="positive", product="Conv", groups=1, shared=False, parts=False, sum_of_two=False, other=False, op="Mul"):
    """A constant per channel in front of a contraction and what is between the two."""
    c = some((6, 1, 1), F32, 5)
    c = np.abs(c) + F32(0.1) if sign == "positive" else c
    body, last = f"v0 = {op} (x, c)\n", "v0"
    if sum_of_two:
        body, last = body + f"u0 = {op} (x2, {'c2' if other else 'c'})\n v1 = Add (v0, u0)\n", "v1"
    if parts:
        body, last = body + "v1 = Concat <axis = 1> (x2, v0)\n", "v1"
    for k, word in enumerate(between):
        body += BETWEEN[word].format(x=last, y=f"b{k}") + "\n"
        last = f"b{k}"
    channels = 12 if parts else 6
    body += f"y = {product} <group = {groups}> ({last}, w)" + ("\n z = Neg (v0)" if shared else "")
    weights = {"c": c, "c2": np.abs(some((6, 1, 1), F32, 7)), "slope": some((channels, 1, 1), F32, 3), "space": ints(2, 3), "last": ints(3), "w": some((4, channels // groups, 1, 1) if product == "Conv" else (channels, 4 // groups, 1, 1), F32, 1)}
    return case(name, body, {"x": some((2, 6, 6, 6)), "x2": some((2, 6, 6, 6), F32, 1)}, weights, ("y", "z") if shared else ("y",))


def scaled_attention(name, c=0.25, d=None, t=F32, rank=0, shared=False, scale=1.0, softmax=True, shape=(2, 3, 8, 16), mask=None, op="Mul"):
    weights = {"c": np.asarray(c, t) if np.ndim(c) else scalar(c, t, rank)}
    body = f"a = {op} (q, c)\n k2 = Transpose <perm = [0,1,3,2]> (k)\n"
    if d is not None:
        weights["d"] = scalar(d, t)
        body += "b = Mul (k2, d)\n"
    body += f"s = MatMul (a, {'b' if d is not None else 'k2'})\n"
    if mask is not None:
        weights["mask"] = np.where(np.tri(shape[-2]) > 0, 0, mask).astype(t)
        body += "s2 = Add (s, mask)\n"
    last = "s2" if mask is not None else "s"
    body += (f"p = Softmax <axis = -1> ({last})\n y = MatMul (p, v)" if softmax else f"y = Neg ({last})") + ("\n z = Neg (a)" if shared else "")
    inputs = {"q": some(shape, t, 1, scale), "k": some(shape, t, 2, scale)}
    if softmax:
        inputs["v"] = some(shape, t, 3)
    return case(name, body, inputs, weights, ("y", "z") if shared else ("y",))


def masked_attention(name, odd=0.5, t=F32, shape=(2, 3, 8, 16), keys=24, masked=True):
    """Attention whose mask may forbid a query every key, with one odd number among the scores."""
    mask = np.zeros((shape[-2], keys), t)
    mask[1] = mask[2, 3:9] = -np.inf
    mask[0, 4] = odd
    body = "s = MatMul (q, k)\n a = Add (s, f)\n p = Softmax <axis = -1> (a)\n" + ("n = IsNaN (p)\n w = Where (n, zero, p)\n y = MatMul (w, v)" if masked else "y = MatMul (p, v)")
    return case(name, body, {"q": some(shape, t, 1), "k": some(shape[:2] + (shape[3], keys), t, 2), "v": some(shape[:2] + (keys, shape[3]), t, 3)}, {"f": mask, "zero": scalar(0, t)})


def products_side_by_side(name, n=(6, 4), bias=(1, 1), t=F32, follow=("Reshape", "Reshape"), other=False, x=(2, 3, 8), bias_shape=None, activation=None, heads=None):
    inputs, weights, body, outputs = {"x": some(x, t)}, {}, "", []
    if other:
        inputs["z"] = some(x, t, 9)
    for k, columns in enumerate(n):
        weights[f"w{k}"] = some(((heads[k],) if heads else ()) + (x[-1], columns), t, 10 + k)
        body += f"p{k} = MatMul ({'z' if other and k else 'x'}, w{k})\n"
        last = f"p{k}"
        if bias[k]:
            weights[f"b{k}"] = some(bias_shape or (((heads[k], 1) if heads else ()) + (columns,)), t, 20 + k)
            body += f"v{k} = Add (p{k}, b{k})\n"
            last = f"v{k}"
        if activation and activation[k]:
            weights.update(low=t(-0.3), high=t(0.7), higher=t(0.9))
            body += f"a{k} = {activation[k].format(x=last)}\n"
            last = f"a{k}"
        weights[f"s{k}"] = ints(-1, columns)
        body += {"Reshape": f"y{k} = Reshape ({last}, s{k})\n", "Transpose": f"y{k} = Transpose ({last})\n", "Relu": f"y{k} = Relu ({last})\n"}[follow[k]]
        outputs.append(f"y{k}")
    return case(name, body, inputs, weights, tuple(outputs))


def scales():
    c6 = some((6, 1, 1), F32, 5)
    yield from near(scaled_after, plus=dict(op="Add"), all_alike=dict(constant=0.5), left=dict(left=True), other_axis=dict(constant=some((6,), F32, 5)), plus_other_axis=dict(op="Add", constant=some((6,), F32, 5)),
                    square=dict(x=(2, 6, 6, 6), constant=some((6,), F32, 5)), square_rows=dict(x=(2, 6, 6, 6), constant=some((6, 1), F32, 5)), batch=dict(constant=some((2, 1, 1, 1), F32, 5)),
                    longer=dict(constant=some((3, 1, 1, 1, 1), F32, 5)), rank=dict(constant=np.ones((1, 1, 1, 1, 1), F32) * 0.5), shared=dict(shared=True), no_bias=dict(bias=False), groups=dict(groups=2),
                    minus=dict(op="Sub"), over=dict(op="Div"), computed=dict(computed=True), halves=dict(t=F16), small_halves=dict(t=F16, w=1e-4, constant=1e-3 * np.abs(c6), scale=3e3),
                    large_halves=dict(t=F16, w=100.0, constant=1000.0, scale=1e-2), large_sum_of_halves=dict(t=F16, op="Add", constant=-60000.0, w=100.0), overflow=dict(w=1e30, constant=1e30, scale=1e-32),
                    underflow=dict(w=1e-30, constant=1e-30, scale=1e30), doubles=dict(t=F64), infinite=dict(op="Add", constant=np.inf), zero=dict(constant=0.0), there_and_back=dict(op="Add", constant=12582912.0),
                    one_axis=dict(x=(2, 4, 9)), volume=dict(x=(1, 4, 2, 3, 2)))
    row = some((6,), F32, 5)
    for change, arguments in dict(plain={}, rows=dict(constant=some((4, 1), F32, 5)), square_rows=dict(x=(6, 6), constant=some((6, 1), F32, 5)), no_bias=dict(bias=False), all_alike=dict(constant=0.5),
                                  rank=dict(constant=np.full((1, 1, 1), 0.5, F32)), longer=dict(constant=some((3, 1, 6), F32)), shared=dict(shared=True), vector=dict(x=(5,)), vector_without_bias=dict(x=(5,), bias=False),
                                  batch=dict(x=(3, 4, 5)), halves=dict(t=F16), small_halves=dict(t=F16, w=1e-4, constant=row * 1e-3, scale=3e3),
                                  large_halves=dict(t=F16, w=100.0, constant=1000.0, scale=1e-2, bias=False), plus=dict(op="Add"), overflow=dict(w=1e30, constant=1e30, scale=1e-32),
                                  underflow=dict(w=1e-30, constant=1e-30, scale=1e30), computed=dict(computed=True), computed_without_bias=dict(computed=True, bias=False)).items():
        yield scaled_after(f"scaled_after_dense_{change}", product="MatMul", **{"constant": row, "x": (4, 5), **arguments})
    yield from near(scaled_before, all_alike=dict(constant=0.5), other_axis=dict(constant=some((6,), F32, 5)), square=dict(x=(2, 6, 6, 6), constant=some((6,), F32, 5)), groups=dict(groups=2), padded=dict(pads=1), plus=dict(op="Add", pads=1),
                    shared=dict(shared=True), halves=dict(t=F16), small_halves=dict(t=F16, w=1e-4, constant=1e-3, scale=3e3), overflow=dict(w=1e30, constant=1e30, scale=1e-32), infinite=dict(constant=np.inf, pads=1),
                    rank=dict(constant=np.full((1, 1, 1, 1), 0.5, F32)), dense=dict(product="MatMul", x=(4, 5)), dense_rows=dict(product="MatMul", x=(5, 5), constant=some((5, 1))), dense_rank=dict(product="MatMul", x=(4, 5), constant=np.full((1, 1, 1), 0.5, F32)),
                    dense_batch=dict(product="MatMul", x=(2, 3, 5)), dense_vector=dict(product="MatMul", x=(5,)), dense_halves=dict(product="MatMul", x=(4, 5), t=F16, w=1e-4, constant=1e-3, scale=3e3))
    yield from near(scaled_behind, **{word: dict(between=(word,)) for word in BETWEEN}, **{f"{word}_of_any_sign": dict(between=(word,), sign="any") for word in BETWEEN}, **{f"{word}_plus": dict(between=(word,), op="Add", sign="any") for word in BETWEEN},
                    several=dict(between=("leaky", "most", "mean")), transposed=dict(product="ConvTranspose"), over=dict(op="Div"), minus=dict(op="Sub"), zero=dict(constant=np.array([1, 0, 2, 3, 1, 1], F32).reshape(6, 1, 1), sign="any"), all_alike=dict(constant=0.5), negative=dict(constant=-0.5, sign="any"),
                    row=dict(constant=some((6,), F32, 5)), shared=dict(shared="last"), shared_before=dict(shared="first"), halves=dict(t=F16), doubles=dict(t=F64))
    yield case("scaled_number", "a = Mul (x, c)\n b = Add (a, c)\n y = Div (b, c)", {"x": F32(1.5)}, {"c": F32(3)})
    yield from near(scaled_branches, plus=dict(op="Add"), positive=dict(sign="positive"), one=dict(products=("Conv", "none"), sign="positive"), other=dict(products=("none", "Conv"), sign="positive"), shared=dict(shared=1, sign="positive"), concat=dict(join="Concat"), concat_positive=dict(join="Concat", sign="positive"),
                    concat_plus=dict(join="Concat", op="Add"), concat_one=dict(join="Concat", products=("Conv", "none"), sign="positive"), concat_rows=dict(join="Concat", axis=2, sign="positive"), concat_shared=dict(join="Concat", sign="positive", shared=0))
    yield from near(shifted_before, padded=dict(pads=1), same=dict(auto="SAME_UPPER"), valid=dict(auto="VALID"), groups=dict(groups=2), no_bias=dict(bias=False), shared=dict(shared=True), scaled=dict(scaled=True), scaled_padded=dict(scaled=True, pads=1), transposed=dict(product="ConvTranspose"), all_alike=dict(constant=0.5), row=dict(constant=some((6,), F32, 5)),
                    rank=dict(constant=np.full((1, 1, 1, 1), 0.5, F32)), longer=dict(constant=np.full((1, 1, 1, 1, 1), 0.5, F32)), large=dict(largest=100.0), larger=dict(largest=1000.0), infinite=dict(constant=np.inf), halves=dict(t=F16), doubles=dict(t=F64), dense=dict(product="MatMul", x=(4, 5)), dense_alone=dict(product="MatMul", x=(4, 5), second=False),
                    dense_scaled=dict(product="MatMul", x=(4, 5), scaled=True), dense_batch=dict(product="MatMul", x=(2, 3, 5)), dense_vector=dict(product="MatMul", x=(5,)), dense_rows=dict(product="MatMul", x=(5, 5), constant=some((5, 1))))
    yield from near(scaled_ahead, **{word: dict(between=(word,)) for word in BETWEEN}, **{f"{word}_of_any_sign": dict(between=(word,), sign="any") for word in BETWEEN}, groups=dict(groups=2), transposed=dict(product="ConvTranspose"), transposed_groups=dict(product="ConvTranspose", groups=2), over=dict(op="Div"), minus=dict(op="Sub"),
                    shared=dict(shared=True), parts=dict(parts=True), parts_of_any_sign=dict(parts=True, sign="any"), parts_in_groups=dict(parts=True, groups=2), sums=dict(sum_of_two=True), sums_of_two=dict(sum_of_two=True, other=True))
    yield from near(scaled_attention, both=dict(c=0.5, d=0.5), rank=dict(rank=4), longer=dict(rank=5, softmax=False), shared=dict(shared=True), vector=dict(c=np.linspace(0.1, 0.3, 16)), product=dict(softmax=False),
                    halves=dict(t=F16), large_halves=dict(t=F16, c=0.0883, d=0.0883, scale=70.0, shape=(1, 2, 8, 128)), large_halves_once=dict(t=F16, c=0.0078125, scale=70.0, shape=(1, 2, 8, 128), softmax=False),
                    small_halves=dict(t=F16, c=100.0, scale=1e-3, softmax=False), masked=dict(mask=-1e4), masked_halves=dict(t=F16, mask=-65504.0, scale=3.0), masked_rank=dict(mask=-1e4, rank=4),
                    overflow=dict(c=1e-30, scale=1e20, softmax=False), underflow=dict(c=1e30, scale=1e-22, softmax=False), zero=dict(c=0.0), doubles=dict(t=F64), quotient=dict(op="Div", c=4.0))
    yield from near(products_side_by_side, three=dict(n=(6, 4, 5), bias=(1, 1, 1), follow=("Reshape",) * 3), no_bias=dict(bias=(0, 0)), one_bias=dict(bias=(1, 0)), other=dict(other=True), transposed=dict(follow=("Transpose", "Reshape")),
                    used=dict(follow=("Relu", "Reshape")), bias_of_rows=dict(bias_shape=(3, 1)), one_number=dict(bias_shape=(1,)), vector=dict(x=(8,)), halves=dict(t=F16), matrix=dict(x=(5, 8)), activated=dict(activation=("Relu ({x})",) * 2), other_activation=dict(activation=("Relu ({x})", "Tanh ({x})")), one_activated=dict(activation=("Relu ({x})", None)), other_alpha=dict(activation=("LeakyRelu <alpha = 0.1> ({x})", "LeakyRelu <alpha = 0.2> ({x})")),
                    bounded=dict(activation=("Clip ({x}, low, high)",) * 2), other_bound=dict(activation=("Clip ({x}, low, high)", "Clip ({x}, low, higher)")), slopes=dict(activation=("PRelu ({x}, low)",) * 2), heads=dict(heads=(3, 3), x=(2, 1, 5, 8)), other_heads=dict(heads=(3, 1), x=(2, 1, 5, 8)), heads_without_bias=dict(heads=(3, 3), bias=(0, 0), x=(2, 1, 5, 8)),
                    heads_of_operand=dict(heads=(3, 3), x=(2, 3, 5, 8)), heads_activated=dict(heads=(3, 3), x=(2, 1, 5, 8), activation=("Gelu ({x})",) * 2), longer_bias=dict(n=(4, 4), bias_shape=(1, 1, 1, 4)))
    yield from near(masked_attention, nan=dict(odd=np.nan), infinite=dict(odd=np.inf), halves=dict(t=F16), nan_of_halves=dict(odd=np.nan, t=F16), unmasked=dict(masked=False, odd=np.nan),
                    long=dict(shape=(1, 1, 3, 16), keys=700), long_nan=dict(shape=(1, 1, 3, 16), keys=700, odd=np.nan))
