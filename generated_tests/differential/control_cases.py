"""Models whose sizes or steps depend on data: loops, branches, sequences, counted tensors."""
import numpy as np

from case import Case, ints


def run_time_cases():
    """Parameters that are inputs of the model, which declares the shape of the result."""
    for mode in ("nearest", "linear", "cubic"):
        for transform in ("half_pixel", "asymmetric", "align_corners"):
            # ONNX measures corners by scale * length, ONNX Runtime by the rounded size: the two are one number here.
            shape, scales = ((1, 2, 10, 6), [1, 1, 1.5, 0.5]) if transform == "align_corners" else ((1, 2, 9, 7), [1, 1, 1.7, 0.6])
            yield Case(f"run_time_resize_{mode}_{transform}", f'y = Resize <mode = "{mode}", coordinate_transformation_mode = "{transform}"> (x, , scales)',
                       {"x": shape, "scales": np.array(scales, np.float32)})
    yield Case("run_time_resize_antialias", 'y = Resize <mode = "linear", antialias = 1, axes = [2,3]> (x, , scales)',
               {"x": (1, 3, 21, 16), "scales": np.array([0.3, 0.55], np.float32)})
    yield Case("run_time_col2im", "y = Col2Im <strides = [2,1], pads = [1,0,1,0]> (x, i, b)", {"x": (2, 18, 20), "i": ints(7, 7), "b": ints(2, 3)})
    yield Case("run_time_center_crop_pad", "y = CenterCropPad (x, s)", {"x": (9, 6, 3), "s": ints(4, 11, 3)})
    yield Case("run_time_slice", "y = Slice (x, s, e, a, t)", {"x": (9, 21), "s": ints(-2, 1), "e": ints(0, 20), "a": ints(0, 1), "t": ints(-2, 3)})
    yield Case("run_time_pad", "y = Pad (x, p, v)", {"x": (4, 9), "p": ints(2, 0, 1, 3), "v": np.float32(1.5)})


def counted_cases():
    """Sizes that depend on data and that the model does not declare."""
    rng = np.random.default_rng(9)
    boxes = {"boxes": (rng.random((2, 33, 4)) * 8).astype(np.float32), "scores": rng.random((2, 5, 33)).astype(np.float32)}
    limits = {"limit": ints(7), "iou": np.array([0.3], np.float32), "least": np.array([0.25], np.float32)}
    for form in (0, 1):
        yield Case(f"counted_boxes_{form}", f"y = NonMaxSuppression <center_point_box = {form}> (boxes, scores, limit, iou, least)", boxes, limits, counted=True)
    # Equal scores in the order of the boxes, both zeros among them; scores below zero; infinite ones; no limit but the boxes.
    few = rng.choice(np.float32([-np.inf, -2, -0.5, -0.0, 0.0, 0.5, 3, np.inf]), (2, 5, 33)).astype(np.float32)
    yield Case("counted_boxes_equal_scores", "y = NonMaxSuppression (boxes, scores, limit, iou)", {"boxes": np.floor(boxes["boxes"]), "scores": few},
               {"limit": ints(40), "iou": np.float32([0.2])}, counted=True)
    yield Case("counted_boxes_defaults", "y = NonMaxSuppression (boxes, scores, limit)", boxes, {"limit": ints(40)}, counted=True)
    yield Case("counted_detector", """y = NonMaxSuppression (boxes, scores, limit, iou, least)
k = Gather <axis = 1> (y, bk)
b = GatherND (boxes, k)
s = GatherND (scores, y)
w = MatMul (b, m)
first = Slice (w, zero, five, zero)""", boxes, limits | {"bk": ints(0, 2), "m": np.eye(4, 6, dtype=np.float32), "zero": ints(0), "five": ints(5)},
               outputs=("y", "b", "s", "first"), counted=True)
    sparse = np.round(rng.standard_normal((5, 7, 3)) * 0.6).astype(np.float32)
    # What detectors do behind their heads: the best boxes of each level above a threshold, joined, and no overlaps.
    levels = [f"""a{k} = Greater (s{k}, bar)\n p{k} = NonZero (a{k})\n r{k} = Transpose (p{k})\n v{k} = GatherND (s{k}, r{k})
              q{k} = Squeeze (p{k}, zero)\n n{k} = Shape (q{k})\n m{k} = Concat <axis = 0> (most, n{k})\n k{k} = ReduceMin <keepdims = 0> (m{k})
              j{k} = Reshape (k{k}, one)\n w{k}, i{k} = TopK (v{k}, j{k})\n g{k} = Gather (q{k}, i{k})\n h{k} = Gather (b{k}, g{k})""" for k in (1, 2)]
    head = "\n".join(levels) + """
              boxes = Concat <axis = 0> (h1, h2)\n scores = Concat <axis = 0> (w1, w2)\n top = ReduceMax <keepdims = 0> (boxes)
              moved = Add (boxes, top)\n u = Unsqueeze (moved, zero)\n t = Unsqueeze (scores, both)\n chosen = NonMaxSuppression (u, t, limit, iou)
              last = Gather <axis = 1> (chosen, column)\n keep = Squeeze (last, one_axis)\n y = Gather (boxes, keep)\n z = Gather (scores, keep)"""
    for name, bar in (("some", 0.6), ("few", 0.97), ("all", -1.0)):
        corners = rng.random((2, 30, 2)) * 4
        sides = [np.concatenate([c, c + 1 + rng.random((30, 2))], -1).astype(np.float32) for c in corners]
        yield Case(f"counted_levels_{name}", head, {"s1": rng.random(30).astype(np.float32), "s2": rng.random(30).astype(np.float32),
                                                  "b1": sides[0], "b2": sides[1]},
                   {"bar": np.float32(bar), "zero": ints(0), "one": ints(1), "most": ints(12), "both": ints(0, 1), "limit": ints(40),
                    "iou": np.float32([0.3]), "column": ints(2), "one_axis": ints(1)}, outputs=("y", "z"), counted=True)
    yield Case("counted_nonzero", "y = NonZero (x)\nt = Transpose (y)\nv = GatherND (x, t)\nn = Shape (y)", {"x": sparse}, outputs=("y", "t", "v", "n"), counted=True)
    yield Case("counted_nothing", "y = NonZero (x)\nt = Transpose (y)", {"x": np.zeros((3, 4), np.float32)}, outputs=("y", "t"), counted=True)
    yield Case("counted_unique", "y, i, j, c = Unique <axis = 1> (x)\nz = Neg (y)", {"x": sparse[:, :, 0]}, outputs=("z", "i", "j", "c"), counted=True)
    yield Case("counted_compress", "y = Compress <axis = 2> (x, c)\nz = Mul (y, w)", {"x": (3, 4, 9), "c": rng.random(9) < 0.5}, {"w": (4, 1)}, outputs=("y", "z"),
               counted=True)
    # Rows above a threshold: what people do with them behind a mask.
    rows = "top = ReduceMax <keepdims = 0> (x, last)\n hit = Greater (top, bar)\n at = NonZero (hit)\n k = Squeeze (at, zero)\n v = Gather (x, k)\n"
    table = {"x": (13, 5)}
    fixed = {"last": ints(-1), "zero": ints(0)}
    tails = {
        "merged": ("f = Reshape (v, all)\n m = Greater (f, low)\n j = NonZero (m)\n jj = Squeeze (j, zero)\n y = Gather (f, jj)\n z = Reshape (f, fives)",
                   {"all": ints(-1), "low": np.float32(0.2), "fives": ints(-1, 5)}),
        "transposed": ("t = Transpose (v)\n y = Reshape (t, all)\n h = Reshape (y, halves)\n z = Neg (h)", {"all": ints(-1), "halves": ints(5, -1)}),
        "shapes": ("s = Shape (v)\n n = Gather (s, zero)\n w = Gather (s, one)\n p = Mul (n, w)\n y = Reshape (v, p)\n r = Squeeze (n)\n q = Range (start, r, step)\n"
                   "u = Unsqueeze (q, one)\n uf = Cast <to = 1> (u)\n z = Add (v, uf)", {"one": ints(1), "start": np.int64(0), "step": np.int64(1)}),
        "means": ("y = ReduceMean <keepdims = 0> (v, zero)\n z = ReduceMean (v)", {}),
        "softmax": ("y = Softmax <axis = 0> (v)\n z = CumSum (v, first)", {"first": np.int64(0)}),
        "attention": ("t = Transpose (v)\n s = MatMul (x, t)\n p = Softmax (s)\n y = MatMul (p, v)\n z = MatMul (t, v)", {}),
        "from_end": ("y = Gather (v, ends)\n z = GatherND (v, places)", {"ends": ints(-1, 0), "places": np.array([[-1, -2], [0, 3]], np.int64)}),
    }
    for name, (tail, weights) in tails.items():
        bars = {"some": 0.9, "all": -9} if name in ("means", "softmax", "attention", "from_end") else {"some": 0.9, "all": -9, "none": 9}
        for amount, bar in bars.items():
            yield Case(f"counted_rows_{name}_{amount}", rows + tail, table, fixed | weights | {"bar": np.float32(bar)}, outputs=("y", "z"), counted=True)
    # Bags of rows between offsets, as an exporter's loop has them; slices that run over the border; scattering by a mask.
    bags = """all = Concat <axis = 0> (offsets, total)\n ends = Slice (all, one, many, zero)\n n = Size (ends)
y = Loop (n, yes) <body = b (int64 i, bool go) => (bool on, float[d] row) {
  on = Identity (go)\n s = Gather (all, i)\n e = Gather (ends, i)\n s1 = Unsqueeze (s, zero)\n e1 = Unsqueeze (e, zero)
  k = Slice (indices, s1, e1, zero)\n r = Gather (table, k)\n f = Slice (factors, s1, e1, zero)\n f1 = Unsqueeze (f, one)\n w = Mul (r, f1)
  row = %s <keepdims = 0> (w, zero) }>"""
    for op in ("ReduceSum", "ReduceMean", "ReduceMax"):
        yield Case(f"counted_bags_{op.lower()}", bags % op, {"indices": rng.integers(0, 19, 23), "offsets": ints(0, 4, 5, 17), "factors": (23,)},
                   {"table": (19, 7), "total": ints(23), "zero": ints(0), "one": ints(1), "many": ints(2 ** 62), "yes": np.bool_(True)}, counted=True)
    for name, start, end in (("inside", 3, 8), ("negative", -5, -1), ("over", 9, 99), ("nothing", 6, 2), ("before", -99, 4)):
        yield Case(f"counted_slice_{name}", "y = Slice (x, s, e, a)\n z = ReduceSum (y, a)\n d = Mul (x, x)\n f = Slice (d, s, e, a)\n g = Add (f, y)",
                   {"x": (4, 11), "s": ints(start), "e": ints(end)}, {"a": ints(1)}, outputs=("y", "z", "g"), counted=True)
    yield Case("counted_masked_scatter", """e = NonZero (m)\n p = Transpose (e)\n s = Shape (p)\n n = Gather (s, zero)\n flat = Reshape (z, open)
part = Slice (flat, zero, n, zero)\n y = ScatterND (x, p, part)""", {"x": (5, 7), "z": (6, 6), "m": rng.random((5, 7)) < 0.4},
               {"zero": ints(0), "open": ints(-1)})
    # Exporters write a mask's positions once for each tensor that it selects from, and once more to write there.
    for name, bar in (("some", 0.4), ("all", -9.0), ("none", 9.0)):
        yield Case(f"counted_mask_twice_{name}", """m = Greater (x, bar)\n e = NonZero (m)\n p = Transpose (e)\n v = GatherND (x, p)\n y = Add (v, half)
                   shape = Shape (x)\n wide = Expand (m, shape)\n e2 = NonZero (wide)\n p2 = Transpose (e2)\n s = Shape (p2)\n n = Gather (s, zero)
                   flat = Reshape (y, open)\n part = Slice (flat, zero, n, zero)\n z = ScatterND (x, p2, part)
                   again = Greater (x, bar2)\n e3 = NonZero (again)\n p3 = Transpose (e3)\n u = GatherND (w, p3)\n d = Mul (u, v)""",
                   {"x": (5, 7), "w": (5, 7)}, {"bar": np.float32(bar), "bar2": np.float32(bar), "half": np.float32(0.5), "zero": ints(0), "open": ints(-1)},
                   outputs=("y", "z", "d"), counted=True)
        yield Case(f"counted_boxes_of_good_scores_{name}", """m = Greater (s, bar)\n e = NonZero (m)\n p = Transpose (e)\n b = GatherND (boxes, p)
                   e2 = NonZero (m)\n p2 = Transpose (e2)\n t = GatherND (s, p2)\n u = Unsqueeze (b, zero)\n w = Unsqueeze (t, both)
                   chosen = NonMaxSuppression (u, w, limit, iou)\n last = Gather <axis = 1> (chosen, column)\n keep = Squeeze (last, one)
                   y = Gather (b, keep)\n z = Gather (t, keep)""", {"s": rng.random(30).astype(np.float32), "boxes": sides[0]},
                   {"bar": np.float32(bar), "zero": ints(0), "both": ints(0, 1), "one": ints(1), "limit": ints(9), "iou": np.float32([0.4]), "column": ints(2)},
                   outputs=("y", "z"), counted=True)
    yield Case("counted_in_a_branch", rows + """y = If (yes) <then_branch = t () => (float[5] a) { a = ReduceSum <keepdims = 0> (v, zero) },
else_branch = f () => (float[5] b) { b = ReduceMax <keepdims = 0> (v, zero) }>""", table | {"yes": np.bool_(False)}, fixed | {"bar": np.float32(0.9)})


def sequence_cases():
    """Sequences whose contents are known while compiling."""
    yield Case("sequence_of_parts", "s = SplitToSequence <axis = 1> (x, n)\na = SequenceAt (s, last)\nt = SequenceInsert (s, a, one)\nu = SequenceErase (t, last)\n"
               "y = ConcatFromSequence <axis = 1> (u)\nl = SequenceLength (u)", {"x": (3, 11, 2)}, {"n": np.int64(4), "last": np.int64(-1), "one": np.int64(1)},
               outputs=("y", "a", "l"))
    yield Case("sequence_of_slices", "s = SplitToSequence <axis = 0, keepdims = 0> (x)\ny = ConcatFromSequence <axis = -1, new_axis = 1> (s)", {"x": (4, 3, 5)})
    yield Case("sequence_of_sizes", "s = SplitToSequence <axis = -1> (x, n)\ny = SequenceAt (s, one)", {"x": (3, 9)}, {"n": ints(2, 4, 3), "one": np.int64(1)})
    yield Case("sequence_in_a_loop", """e = SequenceEmpty ()
s = SplitToSequence <axis = 0> (x)
n = SequenceLength (s)
t, rows = Loop (n, , e) <body = b (int64 i, bool go, seq(float[1,5]) held) => (bool on, seq(float[1,5]) more, float[1,5] row) {
  on = Identity(go)  v = SequenceAt(s, i)  f = Cast <to = 1> (i)  row = Mul(v, f)  more = SequenceInsert(held, row, front) }>
y = ConcatFromSequence <axis = 0> (t)""", {"x": (4, 5)}, {"front": np.int64(0)}, outputs=("y", "rows"))


def loop_cases():
    """Loops that run when the model runs: ends that depend on data, states that swap, loops and decisions in bodies."""
    rng = np.random.default_rng(23)
    yield Case("run_time_loop_of_messages", """y = Loop (many, , x) <body = step (int64 i, bool go, float[150,64] s) => (bool more, float[150,64] t) {
    more = Identity (go)\n g = Gather (s, f)\n p = Mul (g, w)\n a = ScatterND <reduction = "add"> (s, at, p)\n t = Tanh (a) }>""",
               {"x": (150, 64), "many": np.array(3), "f": rng.integers(-150, 150, 300), "at": rng.integers(-150, 150, (300, 1)), "w": (300, 1)})
    yield Case("loop_newton", """
        root, steps = Loop (, , a, zero) <body = step (int64 i, bool c, float[7] x, int64 n) => (bool go, float[7] x2, int64 n2) {
          xx = Mul(x, x)  r = Sub(xx, a)  d = Mul(x, two)  q = Div(r, d)  x2 = Sub(x, q)
          size = Abs(q)  m = ReduceMax <keepdims = 0> (size)  go = Greater(m, eps)  n2 = Add(n, one) }>
        y = Mul(root, root)""", {"a": np.linspace(0.5, 9, 7, dtype=np.float32)},
               {"zero": np.int64(0), "one": np.int64(1), "two": np.float32(2), "eps": np.float32(1e-3)}, outputs=("root", "steps", "y"))
    for name, trips, go in (("runs", 5, True), ("never_starts", 5, False), ("no_trips", 0, True), ("negative", -2, True)):
        yield Case(f"loop_{name}", """
            y, z, sum = Loop (m, go, x, w, n) <body = b (int64 i, bool c, float[3,5] p, float[3,5] q, int64 k) => (bool d, float[3,5] r, float[3,5] s, int64 l) {
              d = Identity(c)  r = Identity(q)  s = Identity(p)  l = Add(k, i) }>""",
                   {"x": (3, 5), "w": (3, 5), "m": np.int64(trips), "go": np.bool_(go), "n": np.int64(3)}, outputs=("y", "z", "sum"))
    yield Case("loop_rotation_with_capture", """
        e = Exp (x)
        a, b, c, all = Loop (four, , x, z, w) <body = t (int64 i, bool go, float[6] p, float[6] q, float[6] r) => (bool on, float[6] q1, float[6] r1, float[6] n, float[6] o) {
          on = Identity(go)  q1 = Identity(q)  r1 = Identity(r)  m = Mul(p, e)  n = Tanh(m)  o = Identity(p) }>""",
               {"x": (6,), "z": (6,), "w": (6,)}, {"four": np.int64(4)}, outputs=("a", "b", "c", "all"))
    yield Case("loop_declared_length", """
        y, ys = Loop (m, , x) <body = t (int64 i, bool go, float[4] s) => (bool on, float[4] n, float[4] o) {
          on = Identity(go)  f = Cast <to = 1> (i)  n = Add(s, f)  o = Mul(n, x) }>""",
               {"x": (4,), "m": np.int64(6)}, outputs=("y", "ys"))
    yield Case("loop_stops_in_time", """
        y, ys = Loop (m, go, x) <body = t (int64 i, bool c, float[4] s) => (bool on, float[4] n, float[4] o) {
          n = Add(s, x)  sum = ReduceSum <keepdims = 0> (n)  on = Less(sum, limit)  o = Neg(s) }>""",
               {"x": np.float32([0.5, 1, 0.25, 2]), "m": np.int64(100), "go": np.bool_(True)}, {"limit": np.float32(12)}, outputs=("y", "ys"))
    # As often as one of the two says, which no declaration does: until the sum is large enough, at most 100 times.
    for name, limit, go in (("soon", 3, True), ("late", 1e4, True), ("never_begins", 9, False)):
        yield Case(f"loop_counts_{name}", """
        y, ys, at, all = Loop (m, go, x) <body = t (int64 i, bool c, float[4] s) => (bool on, float[4] n, float[4] o, int64 j, float[2,3] r) {
          n = Add(s, x)  sum = ReduceSum <keepdims = 0> (n)  on = Less(sum, limit)  o = Neg(s)  j = Mod(i, five)  f = Cast <to = 1> (i)  r = Sub(w, f) }>
        total = ReduceSum <keepdims = 0> (ys, first)\n p = Softmax <axis = 0> (ys)\n rows = Gather (table, at)\n k = Shape (ys)
        flat = Reshape (all, open)\n twice = Concat <axis = 0> (ys, ys)""",
                   {"x": np.float32([0.5, 1, 0.25, 2]), "go": np.bool_(go), "w": (2, 3)},
                   {"limit": np.float32(limit), "m": np.int64(100), "five": np.int64(5), "first": ints(0), "table": (5, 3), "open": ints(-1, 3)},
                   outputs=("y", "ys", "total", "p", "rows", "k", "flat", "twice"), counted=True, nothing=not go)
    # States that grow, more often than a loop is unrolled, or until data says that it is enough.
    yield Case("loop_grows_a_text", """
        tokens = Loop (most, go, start) <body = step (int64 i, bool c, int64[1,t] s) => (bool more, int64[1,t2] s2) {
          tail = Gather <axis = 1> (s, last)  sum = ReduceSum <keepdims = 1> (s, axis)  square = Mul(tail, tail)  b = Add(square, sum)  d = Add(b, one)
          next = Mod(d, forty)  s2 = Concat <axis = 1> (s, next)  e = Equal(next, end)  f = Not(e)  more = Squeeze(f) }>
        n = Shape (tokens)\n rows = Gather (table, tokens)\n total = ReduceSum <keepdims = 0> (rows, axis)""", {"start": ints(3, 5).reshape(1, 2), "go": np.bool_(True), "table": (40, 3)},
               {"most": np.int64(300), "last": ints(-1), "axis": ints(1), "one": np.int64(1), "forty": np.int64(40), "end": np.int64(7)},
               outputs=("tokens", "n", "rows", "total"), counted=True)
    for name, most, go in (("often", 290, True), ("never", 290, False), ("no_trips", 0, True)):
        yield Case(f"loop_grows_at_both_ends_{name}", """
        y, z = Loop (most, go, x, x) <body = step (int64 i, bool c, float[t,3] s, float[u,3] w) => (bool more, float[t2,3] s2, float[u2,3] w2) {
          f = Cast <to = 1> (i)  n = Add(x, f)  s2 = Concat <axis = 0> (n, s)  v = Neg(n)  w2 = Concat <axis = 0> (w, v, x)  more = Less(f, bar) }>
        t = Transpose (y)""", {"x": (2, 3), "go": np.bool_(go)}, {"most": np.int64(most), "bar": np.float32(40)}, outputs=("y", "z", "t"), counted=True)
    yield Case("loop_grows_keys_and_values", """
        k0 = MatMul (x, wk)\n v0 = MatMul (x, wv)
        last, keys, values, all = Loop (most, , x, k0, v0) <body = step (int64 i, bool c, float[1,8] q, float[t,8] k, float[t,8] v) => (bool more, float[1,8] y, float[t2,8] k2, float[t2,8] v2, float[1,8] o) {
          kx = MatMul(q, wk)  vx = MatMul(q, wv)  k2 = Concat <axis = 0> (k, kx)  v2 = Concat <axis = 0> (v, vx)  kt = Transpose(k2)  s = MatMul(q, kt)
          p = Softmax <axis = -1> (s)  o = MatMul(p, v2)  r = Add(o, q)  h = Mul(r, half)  y = Tanh(h)  m = ReduceMax <keepdims = 0> (y)  more = Less(m, bar) }>
        steps = Shape (all)""", {"x": (1, 8), "wk": (8, 8), "wv": (8, 8)}, {"most": np.int64(257), "bar": np.float32(5), "half": np.float32(0.5)},
               outputs=("last", "keys", "values", "all", "steps"), counted=True)
    yield Case("loop_without_rows_at_first", """
        y, p = Loop (most, , x) <body = step (int64 i, bool c, int64[t,4] s) => (bool more, int64[u,4] s2, int64 q) {
          s2 = Concat <axis = 0> (s, r)  k = ReduceMax <keepdims = 0> (s2)  more = Less(k, bar)  q = Neg(k) }>""",
               {"x": np.zeros((0, 4), np.int64), "r": ints(1, 2, 3, 4).reshape(1, 4)}, {"most": np.int64(4), "bar": np.int64(6)}, outputs=("y", "p"), counted=True)
    yield Case("loop_counts_in_loop", """
        a, all = Loop (m, , x) <body = outer (int64 i, bool c, float[3] s) => (bool on, float[3] t, float[3] sum) {
          f = Cast <to = 1> (i)  bar = Add(f, four)
          u, rows = Loop (eight, , s) <body = inner (int64 j, bool e, float[3] p) => (bool g, float[3] q, float[3] r) {
            q = Add(p, one)  h = ReduceMax <keepdims = 0> (q)  g = Less(h, bar)  r = Sub(p, s) }>
          sum = ReduceSum <keepdims = 0> (rows, first)  t = Sub(u, half)  on = Identity(c) }>""", {"x": np.float32([0.5, -1, 2])},
               {"m": np.int64(3), "eight": np.int64(8), "four": np.float32(4), "one": np.float32(1), "half": np.float32(0.5), "first": ints(0)}, outputs=("a", "all"))
    yield Case("loop_greedy_decoding", """
        last, state, tokens = Loop (steps, , start, h0) <body = t (int64 i, bool c, int64 token, float[1,24] h) => (bool on, int64 next, float[1,24] h2, int64 said) {
          row = Gather(embedding, token)  x = Unsqueeze(row, axis)  a = MatMul(x, wx)  b = MatMul(h, wh)  s = Add(a, b)  h2 = Tanh(s)
          logits = MatMul(h2, head)  best = ArgMax <axis = 1, keepdims = 0> (logits)  next = Squeeze(best)  said = Identity(token)  on = Identity(c) }>""",
               {"start": np.int64(3), "h0": (1, 24)},
               {"steps": np.int64(12), "embedding": (40, 16), "axis": ints(0), "wx": (16, 24), "wh": (24, 24), "head": (24, 40)},
               outputs=("last", "state", "tokens"))
    yield Case("loop_in_loop", """
        a, all = Loop (m, , x) <body = outer (int64 i, bool c, float[3] s) => (bool on, float[3] t, float[2,3] rows) {
          t, rows = Loop (two, , s) <body = inner (int64 j, bool e, float[3] p) => (bool f, float[3] q, float[3] r) {
            ij = Mul(i, j)  k = Add(ij, i)  g = Cast <to = 1> (k)  h = Mul(p, w)  q = Add(h, g)  r = Sub(p, s)  f = Identity(e) }>
          on = Identity(c) }>""", {"x": (3,), "m": np.int64(3), "w": (3,)}, {"two": np.int64(2)}, outputs=("a", "all"))
    yield Case("loop_with_decision", """
        y = Loop (ten, , x) <body = t (int64 i, bool c, float[5] s) => (bool on, float[5] n) {
          sum = ReduceSum <keepdims = 0> (s)  large = Greater(sum, limit)
          n = If (large) <then_branch = yes () => (float[5] a) { a = Mul(s, shrink) }, else_branch = no () => (float[5] b) { d = Mul(s, grow)  b = Add(d, x) }>
          on = Identity(c) }>""", {"x": np.float32([0.5, 1, 0.25, 2, 1])},
               {"ten": np.int64(10), "limit": np.float32(20), "shrink": np.float32(0.25), "grow": np.float32(1.5)})
    yield Case("loop_in_decision", """
        n = ReduceSum <keepdims = 0> (x)  up = Greater(n, zero)
        y = If (up) <then_branch = yes () => (float[5] a) {
            a = Loop (m, , x) <body = t (int64 i, bool c, float[5] s) => (bool on, float[5] o) { o = Add(s, x)  on = Identity(c) }> },
          else_branch = no () => (float[5] b) { b = Neg(x) }>""", {"x": np.float32([0.5, 1, -0.25, 2, 1]), "m": np.int64(4)}, {"zero": np.float32(0)})
    yield Case("loop_once_in_scan_of_one", """
        last, ys = Scan (h0, x) <num_scan_inputs = 1, scan_output_axes = [-1], body = cell (float[5] s, float[3,5] xt) => (float[5] t, float[3,5] o) {
          u, all = Loop (one, , s) <body = b (int64 i, bool c, float[5] p) => (bool d, float[5] q, float[5] r) { d = Identity(z)  q = Exp(p)  r = Add(p, p) }>
          v = Add(u, all)  t = Squeeze(v, axis)  o = Add(xt, t) }>""", {"h0": (5,), "x": (1, 3, 5), "z": np.bool_(True)}, {"one": np.int64(1), "axis": ints(0)}, outputs=("last", "ys"))
    yield Case("loop_numbers", """
        last, all, again = Loop (m, , n) <body = t (int64 i, bool c, int64 s) => (bool on, int64 next, int64 o, int64 p) {
          on = Identity(c)  next = Identity(i)  o = Identity(i)  p = Add(i, s) }>""", {"m": np.int64(7), "n": np.int64(40)}, outputs=("last", "all", "again"))
    yield Case("loop_long", "y = Loop (n, , x) <body = t (int64 i, bool c, float[5] s) => (bool on, float[5] o) "
               "{ f = Cast <to = 1> (i)  g = Mul(f, small)  a = Add(s, g)  o = Mul(a, keep)  on = Identity(c) }>", {"x": (5,)},
               {"n": np.int64(3000), "small": np.float32(1e-3), "keep": np.float32(0.99)})
    yield Case("scan_rnn_cell", """
        h, ys = Scan (h0, x) <num_scan_inputs = 1, body = cell (float[2,12] s, float[2,7] xt) => (float[2,12] t, float[2,12] o) {
          a = MatMul(xt, wx)  b = MatMul(s, wh)  c = Add(a, b)  t = Tanh(c)  o = Identity(t) }>""", {"h0": (2, 12), "x": (9, 2, 7)},
               {"wx": (7, 12), "wh": (12, 12)}, outputs=("h", "ys"))
    yield Case("scan_two_states_reversed_axis", """
        h, g, ys, zs = Scan (h0, g0, x, z) <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0], scan_output_axes = [1, -1],
            scan_output_directions = [1, 0], body = cell (float[6,3] s, float[6,3] u, float[6,3] xt, float[3] zt) => (float[6,3] s2, float[6,3] u2, float[6,3] o, float[6,3] q) {
          a = Add(s, xt)  b = Mul(a, zt)  u2 = Identity(s)  s2 = Add(b, u)  o = Sub(u, b)  q = Identity(u) }>""",
               {"h0": (6, 3), "g0": (6, 3), "x": (6, 5, 3), "z": (5, 3)}, outputs=("h", "g", "ys", "zs"))
    yield Case("scan_of_scan", """
        t, ys = Scan (s0, x) <num_scan_inputs = 1, body = rows (float s, float[6] row) => (float s2, float[6] o) {
          s2, o = Scan (s, row) <num_scan_inputs = 1, scan_output_directions = [1], body = cells (float p, float v) => (float q, float w) { m = Mul(p, half)  q = Add(m, v)  w = Identity(q) }> }>""",
               {"s0": (), "x": (4, 6)}, {"half": np.float32(0.5)}, outputs=("t", "ys"))
    yield Case("loop_reads_what_none_stacked", """
        c, none = Loop (zero, yes, yes) <body = b (int64 i, bool go, bool s) => (bool g2, bool s2, int64 o) { g2 = Identity(go)  s2 = Identity(s)  o = Identity(i) }>
        e, y = Loop (n, yes, none, x) <body = d (int64 i, bool go, int64[0] t, float[5] u) => (bool g2, int64[0] t2, float[5] u2) {
          g2 = Identity(go)  t2 = Identity(t)  u2 = Add(u, u) }>""", {"x": (5,), "n": np.int64(3)}, {"zero": np.int64(0), "yes": np.bool_(True)})
    for name, view in (("squeezed", "w = Squeeze(q, ax)"), ("as_it_is", "w = Identity(q)"), ("reshaped", "w = Reshape(q, two)")):
        part = "1,2" if name == "as_it_is" else "2"
        yield Case(f"scan_of_a_step_{name}", f"""
            z, ws = Scan (s0, x) <num_scan_inputs = 1, body = b (float[1,2] p, float[2] r) => (float[1,2] t, float[{part}] w) {{ q = Add(p, r)  t = Neg(q)  {view} }}>
            last = Exp(z)
            y = Exp(ws)""", {"s0": (1, 2), "x": (3, 2)}, {"ax": ints(0), "two": ints(2)}, outputs=("last", "y"))
        yield Case(f"loop_of_a_step_{name}", f"""
            z, ws = Loop (trips, , s0) <body = b (int64 i, bool c, float[1,2] p) => (bool on, float[1,2] t, float[{part}] w) {{ q = Add(p, r)  t = Neg(q)  {view}  on = Identity(c) }}>
            last = Exp(z)
            y = Exp(ws)""", {"s0": (1, 2), "r": (2,)}, {"ax": ints(0), "two": ints(2), "trips": np.int64(3)}, outputs=("last", "y"))
    for name, body in (("as_it_is", "c = Identity(a)  q = Identity(p)"), ("computed", "c = Neg(a)  q = Identity(p)"), ("twice", "c = Identity(a)  q = Reshape(p, all)")):
        many = "35" if name == "twice" else "7,5"
        yield Case(f"scan_whose_part_nobody_reads_{name}", f"""
            t, none = Scan (w, z) <num_scan_inputs = 2, body = b (float[7,5] p, float[7,2] a) => (float[7,2] c, float[{many}] q) {{ {body} }}>
            y = Transpose <perm = [1, 2, 0]> (t)""", {"w": (2, 7, 5), "z": (2, 7, 2)}, {"all": ints(-1)})
    yield Case("scan_without_states", "y = Scan (x) <num_scan_inputs = 1, scan_input_axes = [-1], body = b (float[4] p) => (float[4] o) { o = Softmax <axis = 0> (p) }>", {"x": (4, 9)})


def masked_cases():
    """y[mask] = v as exporters write it: the places are counted by NonZero, the values by a sum."""
    rng = np.random.default_rng(21)
    sums = "a = NonZero(m)\n t = Transpose <perm = [1, 0]> (a)\n flat = Reshape(m, all)\n numbers = Cast <to = 7> (flat)\n k = ReduceSum(numbers)\n"
    values = {"scalar": ("e = Expand(v, k)", {"v": np.float32(1.5)}), "one": ("e = Expand(v, k)", {"v": (1,)}),
              "of_another": ("g = GatherND(v, t)\n e = Expand(g, k)", {"v": (4, 6)}), "of_itself": ("g = GatherND(x, t)\n r = Relu(g)\n e = Expand(r, k)", {})}
    masks = {"some": rng.random((4, 6)) < 0.4, "none": np.zeros((4, 6), bool), "all": np.ones((4, 6), bool)}
    for name, (made, more) in values.items():
        for which, mask in masks.items():
            if which == "some" or name == "of_another":
                yield Case(f"mask_put_{name}_{which}", f"{sums} {made}\n u = Reshape(e, all)\n y = ScatterND(x, t, u)", {"x": (4, 6), "m": mask} | more, {"all": ints(-1)})
    yield Case("mask_put_added", f"{sums} e = Expand(v, k)\n y = ScatterND <reduction = \"add\"> (x, t, e)", {"x": (4, 6), "m": masks["some"], "v": np.float32(2)}, {"all": ints(-1)})
    yield Case("mask_sum_first", """numbers = Cast <to = 7> (m)\n k = ReduceSum <keepdims = 0> (numbers, both)\n n = Unsqueeze(k, zero)\n e = Expand(v, n)
                                    a = NonZero(m)\n t = Transpose <perm = [1, 0]> (a)\n y = ScatterND(x, t, e)""",
               {"x": (4, 6), "m": masks["some"], "v": np.float32(2)}, {"both": ints(0, 1), "zero": ints(0)})
    # Whole rows: the mask of the rows is repeated, and counted once.
    for which, rows in (("some", [1, 0, 1, 1]), ("none", [0, 0, 0, 0])):
        yield Case(f"mask_put_rows_{which}", """c = Unsqueeze(m, last)\n w = Expand(c, sizes)\n a = NonZero(w)\n t = Transpose <perm = [1, 0]> (a)
                   flat = Reshape(m, last)\n numbers = Cast <to = 7> (flat)\n k = ReduceSum(numbers)\n n = Concat <axis = 0> (k, six)
                   e = Expand(v, n)\n u = Reshape(e, last)\n y = ScatterND(x, t, u)""",
                   {"x": (4, 6), "m": np.array(rows, bool), "v": (6,)}, {"last": ints(-1), "sizes": ints(4, 6), "six": ints(6)})


def growing_cases():
    """Loops whose states get longer: they end after a number of iterations that is known while compiling."""
    rows = "(int64 i, bool c, float[k,3] s) => (bool on, float[l,3] t)"
    yield Case("grow_from_nothing", f"y = Loop (four, , none) <body = t {rows} {{ on = Identity(c)  f = Cast <to = 1> (i)  a = Mul(x, f)  t = Concat <axis = 0> (s, a) }}>",
               {"x": (2, 3)}, {"four": np.int64(4), "none": np.zeros((0, 3), np.float32)})
    yield Case("grow_reads_itself", f"""y = Loop (five, yes, x) <body = t {rows} {{
          on = Not(never)  last = Gather(s, end)  n = Tanh(last)  m = ReduceMean <keepdims = 1> (s, end)  v = Add(n, m)  t = Concat <axis = 0> (s, v) }}>""",
               {"x": (1, 3)}, {"five": np.int64(5), "yes": np.bool_(True), "never": np.bool_(False), "end": ints(-1)})
    yield Case("grow_beside", """
        s, h, rows, counts = Loop (three, , x, z) <body = t (int64 i, bool c, float[2,k] p, float[2] q) => (bool on, float[2,l] r, float[2] n, float[2] o, int64 w) {
          e = Unsqueeze(q, one)  r = Concat <axis = 1> (p, e)  sum = ReduceSum <keepdims = 0> (r, one)  n = Sub(q, sum)  o = Neg(n)  sz = Shape(r)  w = Gather(sz, last)  on = Identity(c) }>""",
               {"x": (2, 2), "z": (2,)}, {"three": np.int64(3), "one": ints(1), "last": np.int64(1)}, outputs=("s", "h", "rows", "counts"))
    yield Case("grow_until", f"y = Loop (, , x) <body = t {rows} {{ j = Add(i, one)  on = Less(j, six)  t = Concat <axis = 0> (x, s) }}>",
               {"x": (2, 3)}, {"one": np.int64(1), "six": np.int64(6)})
    yield Case("grow_twice_as_long", f"y = Loop (four, , x) <body = t {rows} {{ on = Identity(c)  n = Neg(s)  t = Concat <axis = 0> (s, n) }}>", {"x": (1, 3)}, {"four": np.int64(4)})
    yield Case("grow_shrinks", f"y = Loop (three, , x) <body = t {rows} {{ on = Identity(c)  t = Slice(s, one, all, zero) }}>",
               {"x": (5, 3)}, {"three": np.int64(3), "one": ints(1), "all": ints(99), "zero": ints(0)})
    yield Case("grow_in_a_loop", """
        y, all = Loop (m, , x) <body = outer (int64 i, bool c, float[2,3] s) => (bool on, float[2,3] t, float[3] o) {
          g = Loop (three, , s) <body = inner (int64 j, bool e, float[k,3] p) => (bool f, float[l,3] q) { f = Identity(e)  n = Mul(s, w)  q = Concat <axis = 0> (p, n) }>
          u = Slice(g, two, six, zero)  v = ReduceMean <keepdims = 0> (g, zero)  t = Slice(u, zero, two, zero)  o = Identity(v)  on = Identity(c) }>""",
               {"x": (2, 3), "m": np.int64(3), "w": (3,)}, {"three": np.int64(3), "two": ints(2), "six": ints(6), "zero": ints(0)}, outputs=("y", "all"))
    yield Case("grow_of_growing", f"""y = Loop (two, , x) <body = outer {rows} {{ on = Identity(c)
          t = Loop (two, , s) <body = inner (int64 j, bool e, float[m,3] p) => (bool f, float[n,3] q) {{ f = Identity(e)  n = Add(s, x)  q = Concat <axis = 0> (p, n) }}> }}>""",
               {"x": (1, 3)}, {"two": np.int64(2)})
    yield Case("grow_in_a_decision", f"""up = Greater(b, zero)
        y = If (up) <then_branch = yes () => (float[4,3] a) {{ a = Loop (three, , x) <body = t {rows} {{ on = Identity(c)  t = Concat <axis = 0> (s, x) }}> }},
                     else_branch = no () => (float[4,3] d) {{ d = Expand(x, sizes) }}>""",
               {"x": (1, 3), "b": np.float32(1)}, {"three": np.int64(3), "zero": np.float32(0), "sizes": ints(4, 3)})
    yield Case("grow_by_what_is_there", f"""at = NonZero(b)  k = Squeeze(at, zero)
        y = Loop (three, , none) <body = t {rows} {{ on = Identity(c)  v = Gather(x, k)  t = Concat <axis = 0> (s, v) }}>""",
               {"x": (5, 3), "b": np.float32([0, 1, 1, 0, 2])}, {"three": np.int64(3), "none": np.zeros((0, 3), np.float32), "zero": ints(0)}, counted=True)


def cases():
    for family in (masked_cases, growing_cases, run_time_cases, counted_cases, sequence_cases, loop_cases):
        yield from family()
