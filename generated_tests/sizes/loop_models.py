"""Scans along such a size, loops that run as often as one says or end when the data does, and states that have one."""
import numpy as np
from onnx import TensorProto, parser
from open_models import size


def read_across(b, y, axis=0):
    """What meets whatever lies behind the last element that there is."""
    b.output(y)
    b.output(b.op("ReduceMean", y, b.ints(axis), keepdims=0))
    b.output(b.op("Softmax", y, axis=axis))


def scans(b):
    """Forwards and backwards, along the first axis and the second, from a state that has a size, too."""
    x, s = b.input("x", ["n", "b", 3]), b.input("s", ["b", 3])
    transposed = b.op("Transpose", x, perm=[1, 0, 2])
    half = b.scalar(0.5)
    body = parser.parse_graph(f"""step (float[b, 3] before, float[b, 3] part, float[b, 3] other) => (float[b, 3] after, float[b, 3] y, float[b, 3] z) {{
        less = Mul(before, {half})  sum = Add(less, part)  after = Tanh(sum)  y = Sub(after, other)  z = Add(after, other) }}""")
    last, y, z = b.op("Scan", s, x, transposed, outputs=3, body=body, num_scan_inputs=2, scan_input_axes=[0, -2], scan_input_directions=[0, 1], scan_output_axes=[0, 1], scan_output_directions=[0, 1])
    b.output(last)
    read_across(b, y)
    read_across(b, z, axis=1)


def words(b):
    """An encoder that is written as a Scan over the words of a text, whose ids are looked up inside."""
    ids = b.input("ids", ["batch", "seq"], TensorProto.INT64)
    table, w, u = b.weight(40, 6), b.weight(6, 8), b.weight(8, 8)
    zeros = b.op("Expand", b.scalar(0.0), b.op("Concat", size(b, ids, 0), b.ints(8), axis=0))
    body = parser.parse_graph(f"""step (float[batch, 8] h, int64[batch] id) => (float[batch, 8] next, float[batch, 8] y, int64[batch] best) {{
        x = Gather({table}, id)  xw = MatMul(x, {w})  hu = MatMul(h, {u})  sum = Add(xw, hu)  next = Tanh(sum)  y = Neg(next)
        best = ArgMax <axis = 1, keepdims = 0> (next) }}""")
    h, y, best = b.op("Scan", zeros, ids, outputs=3, body=body, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1, 1])
    b.output(h)
    read_across(b, y, axis=1)
    b.output(b.op("Gather", b.weight(8, 5), best))


def rows_one_by_one(b):
    """As torch.jit.script exports a loop over x, and one that begins behind the first row."""
    x = b.input("x", ["n", 4])
    n = b.op("Squeeze", size(b, x, 0))
    yes, zero, one = b.constant(True), b.op("ReduceSum", b.op("Mul", x, b.scalar(0.0)), b.ints(0), keepdims=0), b.scalar(1, np.int64)
    text = """step (int64 i, bool go, float[4] sum) => (bool more, float[4] next, float[4] y, float[k, 4] all) {{
        more = Identity(go)  at = {at}  row = Gather({x}, at)  next = Add(sum, row)  y = Relu(next)  all = Add({x}, next) }}"""
    total, y, all_rows = b.op("Loop", n, yes, zero, outputs=3, body=parser.parse_graph(text.format(at="Identity(i)", x=x)))
    b.output(total)
    read_across(b, y)
    read_across(b, all_rows, axis=1)
    fewer = b.op("Sub", n, one)
    total, y, all_rows = b.op("Loop", fewer, yes, zero, outputs=3, body=parser.parse_graph(text.format(at=f"Add(i, {one})", x=x)))
    b.output(total)
    b.output(y)
    b.output(b.op("ReduceSum", y, b.ints(0), keepdims=0))


def until_enough(b):
    """Ends when the data says so, or has never begun; what was made until then, and how often."""
    x, least = b.input("x", ["n", 3]), b.input("least", [1])
    n = b.op("Squeeze", size(b, x, 0))
    begins = b.op("Squeeze", b.op("Less", least, b.scalar(1.0)))
    bound = b.op("Squeeze", b.op("Abs", least))
    text = """step (int64 i, bool go, float[3] sum) => (bool more, float[3] next, float[3] y, int64 at) {{
        row = Abs(sum)  next = Add(row, {one})  all = ReduceSum <keepdims = 0> (next)  scaled = Mul(all, {tenth})  more = Less(scaled, {bound})
        y = Neg(next)  at = Identity(i) }}"""
    body = text.format(one=b.scalar(1.0), tenth=b.scalar(0.1), bound=bound)
    first = b.op("ReduceSum", x, b.ints(0), keepdims=0)
    for trips, go in ((n, ""), (b.scalar(11, np.int64), ""), (b.scalar(5, np.int64), begins), (n, begins)):
        total, y, at = b.op("Loop", trips, go, first, outputs=3, body=parser.parse_graph(body))
        b.output(total)
        b.output(y)
        b.output(at, TensorProto.INT64)
        b.output(b.op("ReduceSum", y, b.ints(0), keepdims=0))
        b.output(b.op("Gather", b.weight(12, 2), at))


def states_of_a_size(b):
    """Two states that change places, each with sizes of the caller's; a loop in a loop."""
    x, y = b.input("x", ["n", "m"]), b.input("y", ["n", "m"])
    trips = b.scalar(3, np.int64)
    inner = f"""inner (float[m] before, float[m] part) => (float[m] after, float[m] kept) {{ sum = Add(before, part)  after = Tanh(sum)  kept = Neg(after) }}"""
    body = parser.parse_graph(f"""step (int64 i, bool go, float[n, m] p, float[n, m] q) => (bool more, float[n, m] q2, float[n, m] p2, float[n, m] s) {{
        more = Identity(go)  q2 = Sub(q, p)  p2 = Relu(p)  zero = Sub(p, p)  none = ReduceMax <keepdims = 0> (zero, {b.ints(0)})
        last, s = Scan <num_scan_inputs = 1, body = {inner}> (none, q) }}""")
    p, q, s = b.op("Loop", trips, "", x, y, outputs=3, body=body)
    for v in (p, q, s):
        b.output(v)
    b.output(b.op("ReduceMean", s, b.ints(1, 2), keepdims=0))


def grown(b):
    """What begins as long as the caller says, and grows as often as another size says, or until the data ends it."""
    x, m = b.input("x", ["n", 3]), b.input("m", ["k", 2])
    trips = b.op("Squeeze", size(b, m, 0))
    text = """step (int64 i, bool go, float[t, 3] s, float[b, t] w) => (bool more, float[t2, 3] s2, float[b, t2] w2) {{
        f = Cast <to = 1> (i)  row = ReduceMean <keepdims = 1> (s, {zero})  next = Add(row, f)  s2 = Concat <axis = 0> (s, next)
        top = ReduceMax <keepdims = 1> (w, {one})  w2 = Concat <axis = 1> (w, top)  more = {more} }}"""
    names = {"zero": b.ints(0), "one": b.ints(1)}
    turned = b.op("Transpose", x, perm=[1, 0])
    for more, how_often in (("Identity(go)", trips), (f"Less(f, {b.scalar(2.5)})", b.scalar(300, np.int64))):
        y, z = b.op("Loop", how_often, "", x, turned, outputs=2, body=parser.parse_graph(text.format(more=more, **names)))
        b.output(y)
        b.output(z)
        b.output(b.op("MatMul", z, y))
        b.output(b.op("Softmax", b.op("Transpose", z, perm=[1, 0]), axis=0))


def counted_outside(b):
    """Trip counts that a body gets from outside, in decisions and in other loops; fewer than none."""
    x, up = b.input("x", ["n", 3]), b.input("up", [1])
    n = b.op("Squeeze", size(b, x, 0))
    three, yes = b.scalar(3, np.int64), b.constant(True)
    fewer, more = b.op("Sub", n, three), b.op("Add", n, three)
    rows = """rows (int64 i, bool c) => (bool d, float[3] r) {{ d = Identity(c)  k = Mod(i, {n})  r = Gather({x}, k) }}"""
    yes_or_no = b.op("Squeeze", b.op("Greater", up, b.scalar(0.0)))
    taken = parser.parse_graph(f"""then () => (float[n, 3] t) {{ t = Loop <body = {rows.format(n=n, x=x)}> ({n}, {yes}) }}""")
    other = parser.parse_graph(f"""else () => (float[n, 3] e) {{ e = Neg({x}) }}""")
    b.output(b.op("If", yes_or_no, then_branch=taken, else_branch=other))
    inner = rows.format(n=n, x=x)
    outer = parser.parse_graph(f"""outer (int64 j, bool go, float[3] s) => (bool on, float[3] s2, float[k, 3] all) {{
        on = Identity(go)  all = Loop <body = {inner}> ({more}, {yes})  top = ReduceMax <keepdims = 0> (all, {b.ints(0)})  s2 = Add(s, top) }}""")
    for y in b.op("Loop", three, "", b.weight(3), outputs=2, body=outer):
        b.output(y)
    for trips in (fewer, more):
        both = parser.parse_graph("""both (int64 i, bool c) => (bool d, float[1, 3] r, int64 at) {{ d = Identity(c)  k = Mod(i, {n})  q = Gather({x}, k)
            r = Unsqueeze(q, {zero})  at = Identity(i) }}""".format(n=n, x=x, zero=b.ints(0)))
        kept, at = b.op("Loop", trips, "", outputs=2, body=both)
        b.output(kept)
        b.output(at, TensorProto.INT64)


def unrolled(b):
    """Loops that become their iterations, since a state grows, and stack something beside it."""
    x, w = b.input("x", ["n", 2]), b.weight(3, 4)
    four, yes = b.scalar(4, np.int64), b.constant(True)
    turned = b.op("Transpose", x, perm=[1, 0])
    body = parser.parse_graph(f"""step (int64 i, bool go, float[t, 2] s, float[v, n] r, float[3, 4] a) => (bool on, float[t2, 2] s2, float[v2, n] r2, float[3, 4] a2, int64 p, float[3, 4] q, float[2] o) {{
        on = Identity({yes})  s2 = Concat <axis = 0> (s, {b.weight(1, 2)})  r2 = Concat <axis = 0> (r, r)  a2 = Neg(a)  p = Neg(i)  q = Identity(a2)
        o = ReduceSum <keepdims = 0> (s2, {b.ints(0)}) }}""")
    y, r, a, p, q, o = b.op("Loop", four, yes, x, turned, w, outputs=6, body=body)
    for v in (y, r, a, q, o):
        b.output(v)
    b.output(p, TensorProto.INT64)
    sized = parser.parse_graph(f"step (int64 i, bool go, float[t, 2] s) => (bool on, float[t2, 2] s2, float[n, 2] q) {{ on = Identity({yes})  s2 = Concat <axis = 0> ({x}, s)  f = Cast <to = 1> (i)  q = Sub({x}, f) }}")
    y, q = b.op("Loop", four, yes, b.weight(3, 2), outputs=2, body=sized)
    b.output(y)
    b.output(q)
    b.output(b.op("ReduceSum", q, b.ints(1), keepdims=0))


def handed_on(b):
    """States that no iteration changes, and such that change places."""
    x, y = b.input("x", ["n", 2]), b.input("y", ["n", 2])
    n = b.op("Squeeze", size(b, x, 0))
    body = parser.parse_graph("step (int64 i, bool go, float[n, 2] s, float[n, 2] t) => (bool on, float[n, 2] s2, float[n, 2] t2, float[n, 2] p) { on = Identity(go)  s2 = Identity(s)  t2 = Neg(t)  p = Sub(t, s) }")
    for v in b.op("Loop", n, "", x, y, outputs=3, body=body):
        b.output(v)
    swap = parser.parse_graph("step (int64 i, bool go, float[n, 2] s, float[n, 2] t) => (bool go, float[n, 2] t, float[n, 2] s2) { s2 = Relu(s) }")
    s, t = b.op("Loop", b.scalar(3, np.int64), "", x, y, outputs=2, body=swap)
    b.output(b.op("Identity", s))
    b.output(t)
    kept = parser.parse_graph(f"""outer (int64 i, bool go, float[t, 2] s) => (bool on, float[t2, 2] s2) {{ on = Identity(go)
        u, v = Loop <body = inner (int64 j, bool c, float[t, 2] a, float[t, 2] b) => (bool d, float[t, 2] b2, float[t, 2] a2) {{ d = Identity(c)  b2 = Identity(b)  a2 = Neg(a) }}> ({b.scalar(3, np.int64)}, {b.constant(True)}, s, s)
        s2 = Concat <axis = 0> (u, {b.weight(1, 2)}) }}""")
    b.output(b.op("Loop", b.scalar(300, np.int64), b.op("Squeeze", b.op("Less", b.scalar(-9.0), b.op("ReduceSum", b.op("Abs", x), keepdims=1), ), b.ints(0, 1)), x, body=kept))


# ONNX Runtime divides by zero where a scanned tensor is empty.
ALL = [
    (scans, {"n": (1, 9), "b": (1, 4)}), (scans, {"n": (4, 4), "b": (1, 4)}), (words, {"batch": (1, 3), "seq": (1, 11)}), (words, {"batch": (2, 2), "seq": (1, 5)}),
    (unrolled, {"n": (1, 5)}), (handed_on, {"n": (1, 5)}), (counted_outside, {"n": (1, 7)}), (counted_outside, {"n": (1, 2)}), (grown, {"n": (1, 5), "k": (0, 6)}),
    (rows_one_by_one, {"n": (1, 8)}), (until_enough, {"n": (1, 9)}), (states_of_a_size, {"n": (1, 5), "m": (1, 7)}),
]
