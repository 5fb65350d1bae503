"""Models beside the rules that join nodes: fusion, regions, storage in halves, loops that run once, lists, counted tensors (rules.py says how)."""
import numpy as np

from case import Case, ints
from rules import F16, F32, F64, case, near, scalar, some


# --- fuse_ops: what follows a sum of products, a diamond, rows, moves

def product(name, body, x=(4, 6), w=(6, 5), weights=None, inputs=None, outputs=("y",), t=F32):
    return case(name, f"t = MatMul (x, w)\n {body}", {"x": some(x, t), **(inputs or {})}, {"w": some(w, t, 1), **(weights or {})}, outputs, bar=3e-5)


def behind_products():
    row = {"b": some((5,), F32, 2)}
    bodies = {
        "bias": ("u = Add (t, b)\n y = Relu (u)", row, {}), "output": ("y = Add (t, b)", row, {"outputs": ("t", "y")}), "bias_of_rows": ("y = Add (t, b)", {"b": some((4, 1))}, {}),
        "wider": ("y = Add (t, b)", {"b": some((3, 4, 5))}, {}), "longer": ("y = Add (t, b)", {"b": some((1, 1, 5))}, {}), "itself": ("y = Mul (t, t)", {}, {}),
        "turned": ("r = Transpose (t)\n y = MatMul (t, r)", {}, {}), "turned_sum": ("r = Transpose (t)\n y = Add (t, r)", {}, {"w": (6, 4)}), "two_readers": ("u = Relu (t)\n v = Sigmoid (t)\n y = Sub (u, v)", {}, {}),
        "two_ends": ("y = Relu (t)\n z = Neg (t)", {}, {"outputs": ("y", "z")}), "reader_reduces": ("m = ReduceMax <keepdims = 1> (t)\n y = Sub (t, m)", {}, {}),
        "rows_behind": ("y = Softmax <axis = -1> (t)", {}, {}), "columns_behind": ("y = Softmax <axis = 0> (t)", {}, {}), "padded": ("y = Pad (t, p)", {"p": ints(1, 0, 0, 2)}, {}), "padded_then": ("u = Pad (t, p)\n y = Exp (u)", {"p": ints(1, 0, 0, 2)}, {}),
        "padded_reflected": ("y = Pad <mode = \"reflect\"> (t, p)", {"p": ints(1, 1, 1, 2)}, {}), "padded_away": ("y = Pad (t, p)", {"p": ints(-1, 0, 0, 2)}, {}), "turned_behind": ("u = Relu (t)\n y = Transpose (u)", {}, {}),
        "turned_then": ("u = Transpose (t)\n y = Exp (u)", {}, {}), "cut_behind": ("y = Slice (t, a, e, k)", {"a": ints(1), "e": ints(4), "k": ints(1)}, {}), "reversed": ("y = Slice (t, a, e, k, s)", {"a": ints(-1), "e": ints(-99), "k": ints(1), "s": ints(-1)}, {}),
        "picked": ("y = Gather <axis = 1> (t, i)", {"i": ints(3, 0, 0, 4)}, {}), "repeated": ("y = Expand (t, e)", {"e": ints(2, 4, 5)}, {}), "reshaped": ("u = Reshape (t, e)\n y = Add (u, b)", {"e": ints(2, 2, 5), **row}, {}),
        "reshaped_across": ("u = Reshape (t, e)\n y = Add (u, b)", {"e": ints(5, 4), "b": some((4,))}, {}), "other_product": ("u = MatMul (t, v)\n y = Add (u, t)", {"v": some((5, 5), F32, 3)}, {}),
        "same_product_twice": ("u = MatMul (x, w)\n y = Mul (t, u)", {}, {}), "through_another": ("u = MatMul (t, v)\n y = Add (t, u)", {"v": some((5, 5), F32, 4)}, {}),
    }
    for word, (body, weights, more) in bodies.items():
        for t in (F32, F64) if word in ("bias", "rows_behind") else (F32,):
            more = dict(more)
            yield product(f"product_{word}_{np.dtype(t).name}", body, weights={k: v.astype(t) if v.dtype == F32 else v for k, v in weights.items()}, t=t, **more)


def diamond(name, left="u = Relu (a)", right="v = Tanh (a)", join="y = Mul (u, v)", head="a = Exp (x)", outputs=("y",), weights=None, x=(3, 8)):
    return case(name, "\n".join((head, left, right, join)), {"x": some(x)}, {"w": some((8, 8), F32, 1), "p": ints(0, 1, 0, 1), "s": ints(8, 3), "k": ints(1), **(weights or {})}, outputs, bar=3e-5)


def chain(name, nodes=40, every=None, outputs=("y",), branch=None):
    """More nodes than one kernel takes: it is cut, perhaps where a value has two readers."""
    body, last = [], "x"
    for k in range(nodes):
        op = ("Neg", "Tanh", "Abs", "Softsign")[k % 4] if k % 5 else "Sigmoid"
        value = "y" if k == nodes - 1 else f"c{k}"
        body.append(f"{value} = Add ({last}, c{k - every})" if every and k > every and k % every == 0 else f"{value} = {op} ({last})")
        last = value
    if branch is not None:
        body.append(f"z = Neg (c{branch})")
    return case(name, "\n".join(body), {"x": some((3, 7))}, {}, outputs)


def rows(name, axis=-1, second=None, keep=1, between="", other="x", x=(3, 4, 6), tail="y = Div (e, s)", outputs=("y",)):
    body = (f"m = ReduceMax <keepdims = {keep}> (x, k)\n d = Sub ({other}, m)\n e = Exp (d)\n {between}s = ReduceSum <keepdims = 1> (e, j)\n {tail}")
    weights = {"k": ints(*np.atleast_1d(axis)), "j": ints(*np.atleast_1d(axis if second is None else second)), "i": ints(2, 0, 1)}
    return case(name, body, {"x": some(x)} if other == "x" else {"x": some(x), other: some(x, F32, 1)}, weights, outputs)


def moved_factor(name, move="t = Transpose <perm = [0,2,1]> (k)", k=(2, 5, 6), product_of="y = MatMul (x, t)", x=(2, 4, 6), outputs=("y",), weights=None):
    return case(name, f"{move}\n {product_of}", {"x": some(x), "k": some(k, F32, 1)}, {"e": ints(2, 3, 4, 5, 6), "r": ints(2, 12, 5, 6), "i": ints(1, 0), **(weights or {})}, outputs, bar=3e-5)


def heads(name, repeat=3, shared=True, x=(2, 6, 4, 8), k=(2, 2, 5, 8), axis=2, merged=None, outputs=("y",)):
    """Keys that several heads share, as exporters write it: Unsqueeze, Expand, Reshape."""
    batch, many, length, width = k
    wide = [batch, many, length, width]
    wide.insert(axis, repeat)
    body = "u = Unsqueeze (k, a)\n v = Expand (u, e)\n r = Reshape (v, m)\n t = Transpose <perm = [0,1,3,2]> (r)\n y = MatMul (x, t)"
    return case(name, body, {"x": some(x), "k": some(k, F32, 1)}, {"a": ints(axis), "e": ints(*wide), "m": ints(*(merged or (batch, many * repeat, length, width)))}, outputs, bar=3e-5)


def fusion():
    yield from behind_products()
    yield from near(diamond, output=dict(outputs=("y", "u")), head_output=dict(outputs=("y", "a")), product=dict(left="u = MatMul (a, w)"), pool=dict(left="b = Unsqueeze (a, k)\n c = MaxPool <kernel_shape = [1], strides = [1]> (b)\n u = Squeeze (c, k)"),
                    view=dict(left="b = Reshape (a, s)\n c = Neg (b)\n o = Shape (a)\n u = Reshape (c, o)"), rows=dict(left="u = Softmax (a)"), sums=dict(left="u = ReduceSum <keepdims = 1> (a, k)"), padded=dict(left="b = Pad (a, p)\n u = Neg (b)", right="v = Pad (a, p)"),
                    ends=dict(join="y = Neg (u)\n z = Neg (v)", outputs=("y", "z")), once_more=dict(join="y0 = Mul (u, v)\n y = Add (y0, a)"), turned=dict(left="u = Transpose (a)", right="v = Transpose (a)"), one_turned=dict(left="b = Neg (a)\n u = Transpose (b)", right="v = Tanh (a)", join="y = MatMul (v, u)"))
    yield from near(chain, shorter=dict(nodes=24), readers=dict(every=7), cut_reader=dict(nodes=60, every=13), output=dict(outputs=("y", "c20")), branch=dict(branch=23, outputs=("y", "z")), longest=dict(nodes=90, every=31))
    yield from near(rows, first=dict(axis=0), middle=dict(axis=1), two=dict(axis=(1, 2)), other_axis=dict(second=1), more_axes=dict(second=(1, 2)), dropped=dict(keep=0, x=(4, 4, 4)), other=dict(other="z"), gathered=dict(between="g = Gather (e, i)\n ", tail="h = Add (e, s)\n y = Mul (h, g)"),
                    output=dict(outputs=("y", "s")), turned=dict(tail="q = Div (e, s)\n y = Transpose <perm = [2,0,1]> (q)"), product=dict(tail="q = Div (e, s)\n r = Transpose <perm = [0,2,1]> (q)\n y = MatMul (q, r)"), one_column=dict(x=(3, 4, 1)), one_row=dict(x=(1, 1, 7)))
    yield from near(moved_factor, read_twice=dict(product_of="u = MatMul (x, t)\n v = ReduceSum <keepdims = 0> (t)\n y = Add (u, v)"), output=dict(outputs=("y", "t")), picked=dict(move="g = Gather (k, i)\n t = Transpose <perm = [0,2,1]> (g)"),
                    cut=dict(move="a = Transpose <perm = [0,2,1]> (k)\n t = Slice (a, b, c, d)", weights={"b": ints(1), "c": ints(4), "d": ints(2)}), backwards=dict(move="a = Transpose <perm = [0,2,1]> (k)\n t = Slice (a, b, c, d, m)", weights={"b": ints(-1), "c": ints(-99), "d": ints(2), "m": ints(-1)}),
                    reshaped=dict(move="t = Reshape (k, q)", weights={"q": ints(2, 6, 5)}), both=dict(product_of="z = Transpose <perm = [0,2,1]> (t)\n v = MatMul (x, t)\n y = MatMul (v, z)"))
    yield from near(heads, all=dict(k=(2, 1, 5, 8), repeat=6), none=dict(k=(2, 6, 5, 8), repeat=1), tiled=dict(axis=1), batches=dict(axis=0, k=(1, 6, 5, 8), repeat=2, merged=(2, 6, 5, 8)), lengths=dict(axis=3, k=(2, 6, 5, 8), repeat=2, merged=(2, 6, 10, 8)), output=dict(outputs=("y", "r")))


# --- form_regions: attention, inverted residuals

def attention(name, axis=-1, outputs=("y",), mask=None, scale=True, reader="p", q=(2, 3, 9, 8), k=(2, 3, 11, 8), v=(2, 3, 11, 5), perm="0,1,3,2", between="", t=F32):
    body = (f"r = Transpose <perm = [{perm}]> (k)\n s0 = MatMul (q, r)\n s1 = {'Mul (s0, f)' if scale else 'Identity (s0)'}\n s = {'Add (s1, m)' if mask is not None else 'Identity (s1)'}\n"
            f"p = Softmax <axis = {axis}> (s)\n {between}y = MatMul ({reader}, v)")
    weights = {"f": scalar(8 ** -0.5, t), **({"m": mask.astype(t)} if mask is not None else {})}
    return case(name, body, {"q": some(q, t), "k": some(k, t, 1), "v": some(v, t, 2)}, weights, outputs, bar=3e-3 if t == F16 else 3e-5)


def inverted(name, channels=6, wide=18, kernel=3, stride=1, group=None, outputs=("y",), residual=True, second="Relu", x=(2, 6, 9, 11)):
    pad = kernel // 2
    body = (f"a = Conv (x, e)\n b = Relu (a)\n c = Conv <pads = [{pad},{pad},{pad},{pad}], strides = [{stride},{stride}], group = {group or wide}> (b, d)\n g = {second} (c)\n"
            f"h = Conv (g, p)\n y = {'Add (h, x)' if residual else 'Identity (h)'}")
    weights = {"e": some((wide, channels, 1, 1), F32, 1, 0.4), "d": some((wide, wide // (group or wide), kernel, kernel), F32, 2, 0.4), "p": some((channels, wide, 1, 1), F32, 3, 0.4)}
    return case(name, body, {"x": some(x)}, weights, outputs, bar=3e-5)


def regions():
    hidden = np.where(np.arange(11)[None] > np.arange(9)[:, None], F32(-np.inf), F32(0))
    yield from near(attention, columns=dict(axis=2), heads=dict(axis=1), scores=dict(outputs=("y", "s")), weights=dict(outputs=("y", "p")), mask=dict(mask=hidden), mask_of_heads=dict(mask=some((3, 9, 11))), mask_of_keys=dict(mask=some((2, 1, 1, 11))), no_scale=dict(scale=False),
                    unturned=dict(perm="0,1,2,3", k=(2, 3, 8, 11)), scores_read=dict(reader="s"), both_read=dict(between="z = Add (p, s)\n ", reader="z"), one_head=dict(q=(2, 1, 9, 8), k=(2, 1, 11, 8), v=(2, 1, 11, 5)), shared_keys=dict(k=(2, 1, 11, 8), v=(2, 1, 11, 5)),
                    shared_queries=dict(q=(1, 3, 9, 8)), rank_three=dict(q=(3, 9, 8), k=(3, 11, 8), v=(3, 11, 5), perm="0,2,1"), one_key=dict(k=(2, 3, 1, 8), v=(2, 3, 1, 5)), half_precision=dict(t=F16), double_precision=dict(t=F64), capped=dict(between="z = Tanh (p)\n ", reader="z"))
    yield from near(inverted, no_residual=dict(residual=False), stride=dict(stride=2, residual=False), middle_output=dict(outputs=("y", "c")), first_output=dict(outputs=("y", "b")), groups=dict(group=9), whole=dict(group=1), five=dict(kernel=5), one=dict(kernel=1), sigmoid=dict(second="Sigmoid"), softmax=dict(second="Softmax <axis = 1>"),
                    odd=dict(wide=19), narrow=dict(x=(1, 6, 2, 2)))


# --- single_iteration, sequences

BODY = "b (int64 i, bool go, float[n] s) => (bool on, float[n] t, float[n] q) { on = Identity (go)\n t = Add (s, s)\n q = Mul (s, s) }"


def loop_once(name, trips=1, go=1, body=BODY, outputs=("y", "z"), given="n"):
    text = f"y, z = Loop <body = {body}> ({given}, c, x)"
    return case(name, text, {"x": some((5,))}, {"n": np.int64(trips), "c": np.bool_(go)}, outputs, counted=True)


def scan_once(name, length=1, axis=0, out=0, direction=0, states=1):
    body = "b (float[m] s, float[m] v) => (float[m] t, float[m] q) { t = Add (s, v)\n q = Mul (s, v) }"
    shape = [4, 4]
    shape[axis] = length
    return case(name, f"y, z = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}], scan_output_axes = [{out}], scan_input_directions = [{direction}], body = {body}> (s, x)", {"s": some((4,)), "x": some(tuple(shape), F32, 1)}, {}, ("y", "z"))


def lists(name, at=1, insert=None, new=0, axis=0, split=None, outputs=("y",)):
    body = "a = SequenceConstruct (x, z, w)\n"
    weights = {"p": np.int64(at), "w": some((3, 4), F32, 3)}
    last = "a"
    if insert is not None:
        body += f"b = SequenceInsert (a, w{', o' if insert < 99 else ''})\n"
        weights["o"], last = np.int64(insert), "b"
    if split is not None:
        body, last = "a = SplitToSequence <axis = 1, keepdims = 0> (x)\n", "a"
    return case(name, body + f"g = SequenceAt ({last}, p)\n h = ConcatFromSequence <axis = {axis}, new_axis = {new}> ({last})\n n = SequenceLength ({last})\n y = Neg (g)", {"x": some((3, 4)), "z": some((3, 4), F32, 1)}, weights, ("y", "h", "n"))


def control():
    never = BODY.replace("on = Identity (go)", "k = Constant <value = bool {0}> ()\n on = Identity (k)")
    reads = BODY.replace("q = Mul (s, s)", "j = Cast <to = 1> (i)\n q = Mul (s, j)")
    yield from near(loop_once, twice=dict(trips=2), ended=dict(trips=9, body=never), counts=dict(body=reads), counts_twice=dict(trips=2, body=reads), unbounded=dict(body=never, given=""))
    yield from near(scan_once, long=dict(length=3), last_axis=dict(axis=1), negative=dict(axis=-1), stacked_last=dict(out=1), stacked_from_end=dict(out=-1), backwards=dict(direction=1), backwards_long=dict(direction=1, length=3, axis=1, out=-1))
    yield from near(lists, first=dict(at=0), from_end=dict(at=-1), inserted=dict(insert=1, at=1), inserted_at_end=dict(insert=-1, at=-2), appended=dict(insert=99, at=3), stacked=dict(new=1), stacked_last=dict(new=1, axis=-1), other_axis=dict(axis=1), split=dict(split=1, axis=0, new=1))


# --- counted tensors: NonZero gives positions, and everything behind it has as many elements

def counted(name, body, x=None, outputs=("y",), weights=None, shown=False):
    x = np.array([0, 2, 0, -3, 0.5, 0, 0, 1], F32) if x is None else x
    given = {"v": some((8,), F32, 1), "m": some((8, 5), F32, 2), "k": ints(0), "o": ints(1), "last": ints(-1), **(weights or {})}
    return Case(name, f"n = NonZero (x)\n r = Squeeze (n, k)\n a = Gather (v, r)\n b = Gather (m, r)\n {body}", {"x": x}, given, outputs, counted=shown, nothing=True)


def counts():
    none, every = np.zeros(8, F32), np.arange(1, 9, dtype=F32)
    reduced = {f"reduce_{op.lower()}_{keep}": f"y = {op} <keepdims = {keep}> (b, k)" for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean", "ReduceL2", "ReduceLogSumExp") for keep in (0, 1)}
    bodies = {**reduced, "reduce_other": "y = ReduceMean <keepdims = 0> (b, o)", "reduce_all": "y = ReduceSum <keepdims = 0> (b)", "argmax": "y = ArgMax <axis = 0> (b)", "argmin": "y = ArgMin <axis = 0> (b)", "argmax_other": "y = ArgMax <axis = 1> (b)",
              "softmax": "y = Softmax <axis = 0> (b)", "softmax_other": "y = Softmax <axis = 1> (b)", "log_softmax": "y = LogSoftmax <axis = 0> (b)", "product_rows": "t = Transpose (b)\n y = MatMul (t, b)", 
              "concat": "y = Concat <axis = 0> (b, m)", "concat_front": "y = Concat <axis = 0> (m, b)", "concat_both": "y = Concat <axis = 0> (b, b)", "concat_other": "y = Concat <axis = 1> (b, b)", "last": "y = Gather (a, last)", "first": "y = Gather (a, k)", "reshape": "s = Constant <value_ints = [-1, 5, 1]> ()\n y = Reshape (b, s)",
              "flatten": "y = Flatten <axis = 0> (b)", "merged": "s = Constant <value_ints = [-1]> ()\n y = Reshape (b, s)", "turned": "y = Transpose (b)", "size": "y = Size (b)", "shape": "y = Shape (b)", "sum_shape": "s = Shape (b)\n y = ReduceSum <keepdims = 0> (s)", "cut": "e = Constant <value_ints = [3]> ()\n y = Slice (a, k, e)",
              "nonzero_again": "g = Relu (a)\n y = NonZero (g)", "where": "g = Greater (a, z)\n y = Where (g, a, z)", "scatter": "y = ScatterElements <axis = 0> (v, r, a)", "scatter_add": "y = ScatterElements <axis = 0, reduction = \"add\"> (v, r, a)",
              "cumsum": "y = CumSum (a, k0)", "cumsum_back": "y = CumSum <reverse = 1> (a, k0)", "expand": "s = Shape (b)\n y = Expand (z, s)", "range": "s = Shape (a)\n l = Squeeze (s)\n y = Range (i0, l, i1)", "top": "y, j = TopK (a, o)", "same_twice": "n2 = NonZero (x)\n r2 = Squeeze (n2, k)\n c = Gather (v, r2)\n y = Add (a, c)",
              "other_count": "n2 = NonZero (v)\n r2 = Squeeze (n2, k)\n c = Gather (x, r2)\n y = Concat <axis = 0> (a, c)", "dropped": "y = Dropout (a)", "expand_row": "y = Add (b, row)"}
    weights = {"z": scalar(0), "k0": np.int64(0), "i0": np.int64(0), "i1": np.int64(1), "row": some((5,), F32, 6)}
    for word, body in bodies.items():
        yield counted(f"counted_{word}", body, weights=weights, shown=True)
        if word in ("reduce_max_1", "reduce_sum_0", "softmax", "product_rows", "concat_both", "scatter_add", "merged", "size"):
            yield counted(f"counted_{word}_none", body, none, weights=weights, shown=True)
            yield counted(f"counted_{word}_every", body, every, weights=weights, shown=True)
