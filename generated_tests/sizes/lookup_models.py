"""Models whose positions, parts and sums go by axes of symbolic sizes: Einsum, Range, Tile, scattering, gathering, Split, places of pools."""
import numpy as np
from onnx import TensorProto, helper
from open_models import size


def number(b, x, axis):
    return b.op("Squeeze", size(b, x, axis))


def einsums(b):
    x, z = b.input("x", ["batch", "seq", 8]), b.input("z", ["batch", "t", 8])
    scores = b.op("Einsum", x, x, equation="bid,bjd->bij")
    b.output(b.op("Einsum", b.op("Softmax", scores, axis=-1), x, equation="bij,bjd->bid"))
    b.output(b.op("Einsum", x, z, equation="bid,bjd->ij"))  # over the batch
    b.output(b.op("Einsum", x, equation="bid->d"))
    b.output(b.op("Einsum", scores, equation="bii->bi"))
    b.output(b.op("Einsum", x, z, b.weight(8, 3), equation="bid,bjd,de->jbe"))
    b.output(b.op("Einsum", scores, b.op("ReduceMax", x, b.ints(2), keepdims=0), equation="...ij,...j->...i"))
    rows = b.op("Reshape", x, b.ints(-1, 8))
    b.output(b.op("Gemm", rows, rows, b.weight(8), transA=1, alpha=0.5))


def ranges(b):
    x = b.input("x", ["n"])
    n, zero, one = number(b, x, 0), b.scalar(0, np.int64), b.scalar(1, np.int64)
    real = b.op("Cast", n, to=TensorProto.FLOAT)
    b.output(b.op("Add", x, b.op("Range", b.scalar(0), real, b.scalar(1))))
    b.output(b.op("Range", b.scalar(0.5), real, b.scalar(0.25)))
    for start, end, step in ((one, n, 2), (b.op("Sub", n, one), b.scalar(-1, np.int64), -1), (b.op("Neg", n), n, 3), (n, b.op("Add", n, b.scalar(3, np.int64)), 1)):
        b.output(b.op("Range", start, end, b.scalar(step, np.int64)), TensorProto.INT64)
    half = b.op("Range", zero, b.op("Div", n, b.scalar(2, np.int64)), one)
    b.output(b.op("Gather", x, b.op("Sub", half, n)))
    small = b.op("Range", b.scalar(0, np.int32), b.op("Cast", n, to=TensorProto.INT32), b.scalar(2, np.int32))
    b.output(small, TensorProto.INT32)


def tiles(b):
    x, y = b.input("x", ["n", 1, 3]), b.input("y", ["n", "m"])
    n = size(b, x, 0)
    b.output(b.op("Tile", x, b.op("Concat", b.ints(1), n, b.ints(1), axis=0)))
    b.output(b.op("Tile", x, b.op("Concat", b.ints(2, 1), size(b, y, 1), axis=0)))
    b.output(b.op("Tile", y, b.op("Concat", b.ints(2), n, axis=0)))
    b.output(b.op("Tile", b.weight(1, 2), b.op("Concat", n, b.ints(1), axis=0)))
    list_of_sizes = b.op("OneHot", b.ints(1), b.scalar(3, np.int64), b.op("Concat", b.ints(1), n, axis=0), axis=0)
    b.output(b.op("Tile", x, b.op("Reshape", list_of_sizes, b.ints(-1))))


def scattered(b):
    """Positions from the front and from the end; as many as there are elements, or fewer, or in what has a fixed size."""
    x, i, u = b.input("x", ["n", 5]), b.input("i", ["k", 5], TensorProto.INT64), b.input("u", ["k", 5])
    n = size(b, x, 0)
    _, order = b.op("TopK", x, n, outputs=2, axis=0)
    b.output(b.op("ScatterElements", x, order, b.op("Tanh", x), axis=0))
    b.output(b.op("ScatterElements", x, b.op("Sub", order, n), b.op("Tanh", x), axis=0))
    _, best = b.op("TopK", x, b.ints(2), outputs=2, axis=1)
    b.output(b.op("ScatterElements", x, b.op("Sub", best, b.ints(5)), b.op("GatherElements", x, best, axis=1), axis=1, reduction="add"))
    places = b.op("Mod", i, n)
    b.output(b.op("ScatterElements", x, b.op("Sub", places, n), u, axis=0, reduction="add"))
    b.output(b.op("ScatterElements", b.weight(7, 5), b.op("Sub", b.op("Mod", i, b.ints(7)), b.ints(7)), u, axis=0, reduction="max"))
    b.output(b.op("ScatterElements", x, b.constant(np.array([[0, -1, 0, -1, 0]])), b.weight(1, 5), axis=0))
    first = b.op("Unsqueeze", b.op("Gather", places, b.scalar(0, np.int64), axis=1), b.ints(1))
    b.output(b.op("ScatterND", x, b.op("Sub", first, n), u, reduction="add"))
    b.output(b.op("ScatterND", b.weight(7, 5), b.op("Mod", first, b.ints(7)), u, reduction="add"))
    # x[:, -1] = x[:, 0] and x[-1] = 0
    rows = b.op("Unsqueeze", b.op("Range", b.scalar(0, np.int64), b.op("Squeeze", n), b.scalar(1, np.int64)), b.ints(1))
    pairs = b.op("Concat", rows, b.op("Sub", b.op("Mul", rows, b.ints(0)), b.ints(1)), axis=1)
    b.output(b.op("ScatterND", x, pairs, b.op("Gather", x, b.scalar(0, np.int64), axis=1)))
    b.output(b.op("ScatterND", x, b.constant(np.array([[-1]])), b.constant(np.zeros((1, 5), np.float32))))


def graph_layers(b):
    """Messages along the edges of a graph, as exporters write sums and extremes of neighbours: numbers of nodes and edges of the run."""
    x, edges, w = b.input("x", ["n", 64]), b.input("edges", [2, "e"], TensorProto.INT64), b.input("w", ["e", 1])
    n = size(b, x, 0)
    edges = b.op("Mod", edges, n)
    source, target = (b.op("Gather", edges, b.scalar(k, np.int64), axis=0) for k in (0, 1))
    message = b.op("Mul", b.op("Gather", x, source, axis=0), w)
    rows = b.op("Expand", b.op("Unsqueeze", target, b.ints(1)), b.op("Shape", message))
    zeros = b.op("ConstantOfShape", b.op("Shape", x))
    summed = b.op("ScatterElements", zeros, rows, message, axis=0, reduction="add")
    b.output(summed)
    hidden = b.op("Relu", b.op("MatMul", summed, b.weight(64, 96)))
    places = b.op("Unsqueeze", b.op("Sub", target, n), b.ints(1))
    most = b.op("ScatterND", hidden, places, b.op("Gather", hidden, source, axis=0), reduction="max")
    heads = b.op("Reshape", most, b.ints(-1, 6, 16))
    scores = b.op("Sigmoid", b.op("Gather", b.op("ReduceSum", heads, b.ints(2)), source, axis=0))
    weighted = b.op("Mul", b.op("Gather", heads, source, axis=0), scores)
    b.output(b.op("ScatterND", heads, places, weighted, reduction="add"))
    fixed = b.op("Unsqueeze", b.op("Mod", source, b.ints(150)), b.ints(1))
    b.output(b.op("ScatterND", b.weight(150, 64), fixed, message, reduction="add"))


def gathered(b):
    x, i = b.input("x", ["n", "m"]), b.input("i", ["k"], TensorProto.INT64)
    n, m = size(b, x, 0), size(b, x, 1)
    half = b.op("Add", b.op("Div", m, b.ints(2)), b.ints(1))
    values, order = b.op("TopK", x, half, outputs=2, axis=1)
    b.output(values)
    for positions in (order, b.op("Sub", order, m)):
        b.output(b.op("GatherElements", x, positions, axis=1))
    b.output(b.op("TopK", x, b.ints(1), outputs=2, axis=1, largest=0)[0])
    rows, columns = (b.op("Unsqueeze", b.op("Sub", b.op("Mod", i, s), s), b.ints(1)) for s in (n, m))
    b.output(b.op("GatherND", x, b.op("Concat", rows, columns, axis=1)))
    b.output(b.op("GatherND", b.op("Relu", x), rows))


def words(b, width=16):
    """Rows as a network has them: what a kernel computes for each word."""
    ids = b.input("ids", ["batch", "seq"], TensorProto.INT64)
    x = b.op("Gather", b.weight(40, width), b.op("Mod", ids, b.scalar(40, np.int64)))
    hidden = b.op("Relu", b.op("MatMul", x, b.weight(width, 48)))
    return ids, b.op("LayerNormalization", b.op("Add", x, b.op("MatMul", hidden, b.weight(48, width))), b.weight(width))


def pooled(b):
    """Of each text the first word, the last one, the one with the largest number, the one that a mask ends with."""
    ids, x = words(b)
    mask = b.input("mask", ["batch", "seq"], TensorProto.INT64)
    b.output(b.op("Tanh", b.op("Gather", x, b.scalar(0, np.int64), axis=1)))
    b.output(b.op("Gather", x, b.scalar(-1, np.int64), axis=1))
    rows = b.op("Range", b.scalar(0, np.int64), number(b, ids, 0), b.scalar(1, np.int64))
    best = b.op("ArgMax", ids, axis=1, keepdims=0)
    one = b.ints(1)
    b.output(b.op("GatherND", x, b.op("Concat", b.op("Unsqueeze", rows, one), b.op("Unsqueeze", best, one), axis=1)))
    last = b.op("Sub", b.op("ReduceSum", mask, one), one)  # [batch, 1]; none: the last word
    whole = b.op("Expand", b.op("Unsqueeze", last, b.ints(2)), b.op("Concat", size(b, ids, 0), one, b.ints(16), axis=0))
    b.output(b.op("GatherElements", x, whole, axis=1))


def of_one(b):
    """The same of a single text, whose first word alone is read."""
    ids = b.input("ids", [1, "seq"], TensorProto.INT64)
    x = b.op("Gather", b.weight(40, 16), b.op("Mod", ids, b.scalar(40, np.int64)))
    hidden = b.op("Relu", b.op("MatMul", x, b.weight(16, 48)))
    rows = b.op("LayerNormalization", b.op("Add", x, b.op("MatMul", hidden, b.weight(48, 16))), b.weight(16))
    b.output(rows)
    b.output(b.op("Tanh", b.op("Gather", rows, b.scalar(0, np.int64), axis=1)))
    b.output(b.op("Gather", b.op("Reshape", rows, b.ints(-1, 16)), b.op("ArgMax", ids, axis=1, keepdims=0)))


def looked_up(b):
    """The caller's positions, which may lie behind what there is."""
    _, x = words(b)
    k, row = b.input("k", ["count"], TensorProto.INT64), b.input("row", [], TensorProto.INT64)
    b.output(b.op("Gather", x, k, axis=1))
    b.output(b.op("Gather", x, row, axis=0))


def scattered_to(b):
    """The same where updates go."""
    x, row, u = b.input("x", ["n", 5]), b.input("row", [2, 1], TensorProto.INT64), b.input("u", [2, 5])
    b.output(b.op("ScatterND", x, row, u, reduction="add"))
    pairs = b.op("Concat", b.op("Mul", row, b.ints(0)), row, axis=1)
    b.output(b.op("ScatterND", b.op("Transpose", x, perm=[1, 0]), pairs, b.op("Gather", u, b.scalar(0, np.int64), axis=1)))
    b.output(b.op("ScatterElements", x, b.op("Expand", row, b.ints(2, 5)), u, axis=0, reduction="add"))


def ranked(b):
    """As many as half of them, where they stand, too."""
    x = b.input("x", [2, "m"])
    for result, kind in zip(b.op("TopK", x, b.op("Div", size(b, x, 1), b.ints(2)), outputs=2, axis=1), (TensorProto.FLOAT, TensorProto.INT64)):
        b.output(result, kind)


def best(b):
    """The first few of each row, and many of them; of each column."""
    x = b.input("x", ["n", 300])
    for k, largest in ((5, 1), (70, 0)):
        for result, kind in zip(b.op("TopK", x, b.ints(k), outputs=2, axis=1, largest=largest), (TensorProto.FLOAT, TensorProto.INT64)):
            b.output(result, kind)
    b.output(b.op("TopK", b.op("Reshape", x, b.ints(-1, 20, 15)), b.ints(3), outputs=2, axis=1)[0])


def neighbours(b):
    """Labels of the nearest rows, as scikit-learn's converter writes them; and such rows as elements of a sequence."""
    b.imports["ai.onnx.ml"] = 1
    x = b.input("x", ["n", 6])
    distances, nearest = b.op("TopK", x, b.ints(2), outputs=2, axis=1, largest=0)
    labels = b.op("ArrayFeatureExtractor", b.constant(np.array([3, 1, 4, 1, 5, 9], np.int64)), b.op("Flatten", nearest), domain="ai.onnx.ml")
    b.output(b.op("Reshape", labels, b.ints(-1, 2)), TensorProto.INT64)
    b.output(b.op("ArrayFeatureExtractor", b.weight(3, 6), nearest, domain="ai.onnx.ml"))
    both = b.op("SequenceConstruct", distances, b.op("Relu", x))
    b.output(b.op("SequenceAt", both, b.scalar(1, np.int64)))
    b.output(b.op("ConcatFromSequence", both, axis=1))


def clipped(b):
    """At most five of them, at least two, as RT-DETR limits its queries."""
    x = b.input("x", ["n", 4])
    n = size(b, x, 0)
    some = b.op("Clip", n, b.scalar(2, np.int64), b.scalar(5, np.int64))
    b.output(b.op("Expand", b.weight(1, 4), b.op("Concat", some, b.ints(4), axis=0)))
    b.output(b.op("Tile", b.weight(1, 4), b.op("Concat", b.op("Clip", n, "", b.scalar(3, np.int64)), b.ints(1), axis=0)))
    b.output(b.op("Slice", x, b.ints(0), b.op("Clip", n, b.scalar(1, np.int64)), b.ints(0)))


def no_elements(b):
    """A slice of nothing, moved: what a window's shift of 0 leaves."""
    x = b.input("x", ["h", 6])
    e = b.op("Slice", x, b.ints(0), b.ints(0), b.ints(1))
    b.output(b.op("Reshape", e, b.op("Concat", b.op("Shape", e), b.ints(1), axis=0)))
    b.output(b.op("ReduceSum", e, b.ints(1)))


def one_or_none(b):
    """The last row, if there is one, between other axes of one element."""
    x = b.input("x", ["n", 1, 2])
    last = b.op("Slice", x, b.ints(-1), b.ints(2**31 - 1), b.ints(0))
    for axis in (0, 1, -1):
        b.output(b.op("Unsqueeze", last, b.ints(axis)))
    b.output(b.op("Squeeze", last, b.ints(1)))


def quantised_recurrent(b):
    """Weights of bytes, as ONNX Runtime's dynamic quantiser leaves a tagger. It rounds the activations, too."""
    x = b.input("x", ["n", 2, 6])
    w, r = (b.constant(b.random.integers(0, 255, (2, depth, 20)).astype(np.uint8)) for depth in (6, 5))
    scale, zero = b.constant(np.full(2, 0.01, np.float32)), b.constant(np.full(2, 128, np.uint8))
    outputs = b.op("DynamicQuantizeLSTM", x, w, r, b.weight(2, 40), "", "", "", "", scale, zero, scale, zero, domain="com.microsoft", outputs=3,
                   hidden_size=5, direction="bidirectional")
    for y in outputs:
        b.output(y)


def quantised_windows(b):
    """Pictures of bytes of any height and width, with the channels first and last, as ONNX Runtime's quantiser leaves them."""
    x, t = b.input("x", ["n", 4, "h", 9], TensorProto.UINT8), b.input("t", ["n", "h", 7, 4], TensorProto.UINT8)
    scale, zero = b.scalar(0.05, np.float32), b.scalar(3, np.uint8)
    quantised = (scale, zero, b.scalar(0.0431, np.float32), b.scalar(7, np.uint8))
    for attributes in ({"kernel_shape": [2, 2], "strides": [2, 2]}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 0}):
        b.output(b.op("QLinearAveragePool", x, *quantised, domain="com.microsoft", **attributes), TensorProto.UINT8)
    b.output(b.op("QLinearAveragePool", t, *quantised, domain="com.microsoft", kernel_shape=[2, 3], channels_last=1), TensorProto.UINT8)
    w = b.constant(b.random.integers(0, 255, (6, 4, 3, 3)).astype(np.uint8))
    b.output(b.op("QLinearConv", t, scale, zero, w, b.scalar(0.01, np.float32), b.scalar(128, np.uint8), b.scalar(0.2, np.float32), zero,
                  domain="com.microsoft", channels_last=1, pads=[1, 1, 1, 1]), TensorProto.UINT8)


def half_rows(b):
    """The first half of each picture's rows: a computed size, beside one that has no upper bound and one that has."""
    x = b.input("x", ["n", "h", "w"])
    b.output(b.op("Tanh", b.op("Slice", x, b.ints(0), b.op("Div", size(b, x, 1), b.ints(2)), b.ints(1))))


def places(b):
    x = b.input("x", ["batch", 3, "h", "w"])
    for attributes in ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, {"kernel_shape": [2, 1], "strides": [1, 2], "storage_order": 1},
                       {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}):
        y, at = b.op("MaxPool", x, outputs=2, **attributes)
        b.output(y)
        b.output(at, TensorProto.INT64)


def unpooled(b):
    x = b.input("x", ["batch", 2, "2*h", "2*w"])
    y, at = b.op("MaxPool", x, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    b.output(b.op("MaxUnpool", b.op("Tanh", y), at, kernel_shape=[2, 2], strides=[2, 2]))


def parts(b):
    x, y = b.input("x", ["batch", "n", 6]), b.input("y", ["batch", "m", 6])
    n, m = size(b, x, 1), size(b, y, 1)
    both = b.op("Concat", x, y, axis=1)
    first, second = b.op("Split", b.op("Relu", both), b.op("Concat", n, m, axis=0), outputs=2, axis=1)
    b.output(b.op("Sub", first, x))
    b.output(b.op("ReduceSum", second, b.ints(1)))
    for part in b.op("Split", both, outputs=2, axis=1, num_outputs=2):
        b.output(part)
    for part in b.op("Split", both, b.ints(2, 4), outputs=2, axis=2):
        b.output(part)


def signals(b):
    x, lengths = b.input("x", ["batch", "n", 1]), b.input("lengths", ["batch"], TensorProto.INT64)
    b.output(b.op("STFT", x, b.scalar(3, np.int64), b.constant(np.hanning(9).astype(np.float32)), b.scalar(9, np.int64)))
    counts = b.op("Add", b.op("Mod", lengths, size(b, x, 1)), b.ints(1))
    b.output(b.op("ReverseSequence", x, counts, batch_axis=0, time_axis=1))


def regions(b):
    x, corners, sides = b.input("x", ["batch", 3, "h", "w"]), b.input("corners", ["k", 2]), b.input("sides", ["k", 2])
    corners = b.op("Mul", b.op("Abs", corners), b.scalar(4))
    boxes = b.op("Concat", corners, b.op("Add", corners, b.op("Mul", b.op("Abs", sides), b.scalar(6))), axis=1)
    image = b.op("ConstantOfShape", size(b, boxes, 0), value=helper.make_tensor("zero", TensorProto.INT64, [1], [0]))
    for attributes in ({"sampling_ratio": 2}, {"sampling_ratio": 0, "spatial_scale": 0.5}, {"sampling_ratio": 1, "coordinate_transformation_mode": "output_half_pixel"}):
        b.output(b.op("RoiAlign", x, boxes, image, output_height=3, output_width=2, **attributes))


def decided(b):
    """Conditions that are the same for all sizes."""
    x = b.input("x", ["n", 4])
    n = number(b, x, 0)

    def branch(kind):
        info = helper.make_tensor_value_info(f"{kind}_y", TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node(kind, [x], [info.name])], kind, [], [info])

    for compare, bound in (("Equal", 1), ("Less", 2), ("Greater", 1)):
        b.output(b.op("If", b.op(compare, n, b.scalar(bound, np.int64)), then_branch=branch("Tanh"), else_branch=branch("Exp")))
    sizes = b.op("Mod", b.ints(1), size(b, x, 0))  # 1 where there are two at least
    b.output(b.op("Slice", x, b.ints(0), sizes, b.ints(0)))


def listed(b):
    """Parts of lists of numbers, from places that formulas say, backwards, beside tensors that go another way."""
    x, v = b.input("x", ["n", 2]), b.input("v", [4], TensorProto.INT64)
    turned = b.op("Mod", size(b, x, 0), b.ints(4))
    for factor, step in ((4, -2), (4, -1), (1, -2)):
        start = b.op("Mul", turned, b.ints(factor))
        b.output(b.op("Cast", b.op("ReduceSum", b.op("Slice", v, start, b.ints(3), b.ints(0), b.ints(step)), keepdims=1), to=TensorProto.FLOAT))
    b.output(b.op("Transpose", x, perm=[1, 0]))


def undecided(b):
    """Conditions that the run decides; both branches give as many elements."""
    x, z, flag = b.input("x", ["batch", "n", 4]), b.input("z", ["batch", "n", 4]), b.input("flag", [], TensorProto.INT64)
    whole = helper.make_node("Softmax", [x], ["whole"], axis=1)
    axes = helper.make_node("Constant", [], ["axes"], value_ints=[1])

    def branch(name, *nodes):
        infos = [helper.make_tensor_value_info(f"{name}_{k}", TensorProto.FLOAT, None) for k in range(2)]
        return helper.make_graph(list(nodes), name, [], infos)

    def then(name):
        return branch(name, whole, axes, helper.make_node("Add", ["whole", z], [f"{name}_0"]), helper.make_node("ReduceSum", [z, "axes"], [f"{name}_1"], keepdims=0))

    def otherwise(name):
        return branch(name, axes, helper.make_node("Exp", [z], [f"{name}_0"]), helper.make_node("ReduceMax", [x, "axes"], [f"{name}_1"], keepdims=0))

    conditions = b.op("Greater", flag, b.scalar(20, np.int64)), b.op("Greater", number(b, x, 1), b.scalar(4, np.int64))
    for k, condition in enumerate(conditions):
        y, sums = b.op("If", condition, outputs=2, then_branch=then(f"then{k}"), else_branch=otherwise(f"else{k}"))
        b.output(y)
        b.output(b.op("Add", b.op("ReduceMean", y, b.ints(1), keepdims=0), sums))
        b.output(b.op("Softmax", b.op("Mul", y, x), axis=1))


def kept(b):
    """Operators that keep the axis that they look along."""
    x = b.input("x", ["batch", "n", 4])
    for axis in (0, 1, 2):
        b.output(b.op("Hardmax", x, axis=axis))
        for p in (1, 2):
            b.output(b.op("LpNormalization", x, axis=axis, p=p))
    for axes in ([1], [0, 1], [1, 2], [0, 1, 2], [2]):
        b.output(b.op("MeanVarianceNormalization", x, axes=axes))
    b.output(b.op("ReduceMax", b.op("MeanVarianceNormalization", b.op("Unsqueeze", x, b.ints(1))), keepdims=0))


def padded_by_size(b):
    """Windows in strides whose padding auto_pad makes of the size."""
    x = b.input("x", [2, 3, "h", "w"])
    for pad in ("SAME_UPPER", "SAME_LOWER"):
        y = b.op("Relu", b.op("Conv", x, b.weight(8, 3, 3, 3), b.weight(8), strides=[2, 2], auto_pad=pad))
        y = b.op("Conv", y, b.weight(8, 1, 5, 4), group=8, strides=[2, 1], auto_pad=pad)
        b.output(b.op("Conv", y, b.weight(5, 8, 2, 3), strides=[3, 2], auto_pad=pad, dilations=[1, 1]))
        b.output(b.op("MaxPool", b.op("Sub", x, b.scalar(9)), kernel_shape=[3, 3], strides=[2, 3], auto_pad=pad))
        for included in (0, 1):
            b.output(b.op("AveragePool", b.op("Add", x, b.scalar(3)), kernel_shape=[3, 5], strides=[2, 3], auto_pad=pad, count_include_pad=included))
        b.output(b.op("AveragePool", x, kernel_shape=[2, 3], strides=[2, 1], auto_pad=pad))
        b.output(b.op("LpPool", x, kernel_shape=[4, 3], strides=[3, 1], auto_pad=pad))
        quantised, _, zero = b.op("DynamicQuantizeLinear", x, outputs=3)
        b.output(b.op("ConvInteger", quantised, b.constant(np.arange(1, 55, dtype=np.uint8).reshape(2, 3, 3, 3)), zero, strides=[2, 2], auto_pad=pad), TensorProto.INT32)
        b.output(b.op("Cast", b.op("MaxPool", quantised, kernel_shape=[2, 3], strides=[2, 2], auto_pad=pad), to=TensorProto.FLOAT))
    b.output(b.op("ReduceMax", b.op("Conv", x, b.weight(4, 3, 1, 2), strides=[3, 4], auto_pad="SAME_UPPER"), b.ints(2, 3)))


def deformed(b):
    """Windows whose taps are moved, also out of the image that a run has."""
    b.imports[""] = 19
    x, y = b.input("x", ["batch", 3, "h", "w"]), b.input("y", ["batch", 3, "h", "w"])
    offset = b.op("Mul", b.op("Conv", y, b.weight(18, 3, 3, 3), pads=[1, 1, 1, 1]), b.scalar(2))
    mask = b.op("Sigmoid", b.op("Conv", y, b.weight(9, 3, 1, 1)))
    b.output(b.op("DeformConv", x, b.weight(5, 3, 3, 3), offset, b.weight(5), mask, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    offset = b.op("Conv", y, b.weight(16, 3, 2, 2), strides=[2, 1])
    b.output(b.op("Relu", b.op("DeformConv", x, b.weight(4, 3, 2, 2), b.op("Slice", offset, b.ints(0), b.ints(8), b.ints(1)), kernel_shape=[2, 2], strides=[2, 1])))


def wrapped(b):
    """Pads that begin again at the other end: constants, and what is missing to a multiple of 4."""
    b.imports[""] = 19
    x = b.input("x", [2, "h", "w"])
    b.output(b.op("Pad", x, b.ints(1, 2, 3, 0, 1, 2), mode="wrap"))
    y = b.op("Pad", b.op("Tanh", x), b.ints(3, 0), "", b.ints(-1), mode="wrap")
    b.output(b.op("ReduceSum", y, b.ints(2), keepdims=0))
    missing = b.op("Sub", b.ints(3), b.op("Mod", b.op("Add", size(b, x, 1), b.ints(3)), b.ints(4)))
    b.output(b.op("Pad", x, b.op("Concat", b.ints(0), missing, axis=0), "", b.ints(1), mode="wrap"))


def integers(b):
    """Products of integers over an axis whose size the run gives, with zero points of every kind, and parts of one."""
    x, z = b.input("x", ["n", 6, "k"]), b.input("z", ["n", "k", 5])
    parameters = {}
    for name, of in (("x", x), ("z", z)):
        parameters[name] = b.op("DynamicQuantizeLinear", of, outputs=3)
    (qx, sx, zx), (qz, sz, zz) = parameters["x"], parameters["z"]
    b.output(b.op("Cast", b.op("MatMulInteger", qx, qz, zx, zz), to=TensorProto.FLOAT))
    b.output(b.op("Cast", b.op("MatMulInteger", qx, qz), to=TensorProto.FLOAT))
    row = b.op("Squeeze", b.op("Slice", qx, b.ints(0), b.ints(1), b.ints(0)), b.ints(0))
    column = b.op("Squeeze", b.op("Slice", qz, b.ints(0), b.ints(1), b.ints(0)), b.ints(0))
    b.output(b.op("Cast", b.op("MatMulInteger", row, column, zx, b.constant(np.arange(90, 95, dtype=np.uint8))), to=TensorProto.FLOAT))
    y = b.op("QLinearMatMul", qx, sx, zx, qz, sz, zz, b.scalar(0.07), b.scalar(117, np.uint8))
    b.output(b.op("DequantizeLinear", y, b.scalar(0.07), b.scalar(117, np.uint8)))
    b.output(b.op("MatMulIntegerToFloat", qx, qz, sx, sz, zx, zz, domain="com.microsoft"))
    for axis in (0, 2):
        whole = b.op("QLinearConcat", b.scalar(0.05), b.scalar(120, np.uint8), qx, sx, zx, qx, sz, zz, domain="com.microsoft", axis=axis)
        b.output(b.op("DequantizeLinear", whole, b.scalar(0.05), b.scalar(120, np.uint8)))


ALL = [
    (deformed, {"batch": (1, 2), "h": (3, 9), "w": (2, 11)}), (wrapped, {"h": (3, 9), "w": (3, 7)}),
    (padded_by_size, {"h": (4, 14), "w": (3, 11)}), (padded_by_size, {"h": (13, 17), "w": (8, 9)}), (kept, {"batch": (1, 3), "n": (2, 9)}), (integers, {"n": (1, 3), "k": (1, 11)}),
    (listed, {"n": (1, 8)}), (listed, {"n": (0, 3)}),
    (einsums, {"batch": (1, 3), "seq": (1, 9), "t": (1, 5)}), (ranges, {"n": (1, 13)}), (ranges, {"n": (0, 4)}), (tiles, {"n": (1, 6), "m": (1, 4)}),
    (scattered, {"n": (1, 9), "k": (1, 6)}), (gathered, {"n": (1, 5), "m": (1, 8), "k": (1, 7)}), (places, {"batch": (1, 2), "h": (3, 12), "w": (3, 9)}),
    (unpooled, {"batch": (1, 3), "h": (1, 5), "w": (1, 4)}), (parts, {"batch": (1, 2), "n": (1, 6), "m": (1, 5)}), (signals, {"batch": (1, 3), "n": (9, 30)}),
    (regions, {"batch": (1, 2), "h": (3, 14), "w": (4, 11), "k": (1, 5)}), (decided, {"n": (2, 9)}),
    (undecided, {"batch": (1, 3), "n": (1, 11)}), (ranked, {"m": (1, 35)}), (neighbours, {"n": (1, 9)}), (clipped, {"n": (2, 9)}), (quantised_windows, {"n": (1, 3), "h": (3, 9)}), (quantised_recurrent, {"n": (1, 7)}), (one_or_none, {"n": (0, 5)}), (no_elements, {"h": (1, 9)}),
    (pooled, {"batch": (1, 3), "seq": (1, 30)}), (of_one, {"seq": (1, 40)}), (looked_up, {"batch": (30, 45), "seq": (1, 60), "count": (0, 3)}),
    (scattered_to, {"n": (1, 60)}), (graph_layers, {"n": (1, 200), "e": (1, 600)}),
]
