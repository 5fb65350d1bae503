"""Operators that move, choose or make elements."""
import numpy as np
import onnx
from onnx import helper

from history import const, recipe


@recipe("Concat")
def concat(o):
    for axis in ([None] if o.version < 4 else []) + [1, 2] + ([-3] if o.version >= 11 else []):
        shapes = [(2, 3, 4), (2, 3, 4)]
        k = 1 if axis is None else axis
        shapes[1] = tuple(5 if d == k % 3 else n for d, n in enumerate(shapes[1]))
        yield o(o.x(*shapes[0]), o.x(*shapes[1]), axis=axis, expect=lambda *v, k=k: [np.concatenate(v, k)])
    yield o(o.x(2, 3), axis=1)


@recipe("Split")
def split(o):
    def calculate(axis, sizes):
        return lambda x, *_: np.split(x, np.cumsum(sizes)[:-1], axis)

    x = o.x(4, 9, 6)
    sizes = [2, 3, 4]
    for axis in (0, 1, 2) + ((-2,) if o.version >= 11 else ()):
        yield o(x, axis=axis, outputs=2 if axis != 1 and axis != -2 else 3, expect=lambda v, k=axis: np.split(v, 3 if k in (1, -2) else 2, k)
                ) if o.version < 18 else o(x, axis=axis, num_outputs=3, outputs=3, expect=lambda v, k=axis: [
                    p for p in np.split(v, [-(-v.shape[k] // 3) * i for i in (1, 2)], k)])
    if o.has("split"):
        yield o(x, axis=1, split=sizes, outputs=3, expect=calculate(1, sizes))
        yield o(x, split=[1, 3], axis=0, outputs=2, expect=calculate(0, [1, 3]))
    if len(o.schema.inputs) > 1:
        yield o(x, const(sizes, o.dtype if o.version == 1 else np.int64), axis=1, outputs=3, expect=calculate(1, sizes))
    if o.version >= 18:
        yield o(o.x(7, 2), axis=0, num_outputs=3, outputs=3)


@recipe("Reshape")
def reshape(o):
    forms = [((6, 20), (6, 20)), ((0, -1, 2), (3, 20, 2)), ((-1,), (120,))]
    for asked, shape in forms:
        if o.has("shape"):
            yield o(o.x(3, 4, 10), shape=asked, expect=lambda x, s=shape: [x.reshape(s)])
        else:
            yield o(o.x(3, 4, 10), const(asked), expect=lambda x, _, s=shape: [x.reshape(s)])
    if o.has("allowzero"):
        yield o(o.x(0, 4), const([3, 0]), allowzero=1)


@recipe("Transpose")
def transpose(o):
    for perm in ([2, 0, 1], None, [0, 2, 1]):
        yield o(o.x(3, 4, 5), perm=perm, expect=lambda x, p=perm: [np.transpose(x, p)])


@recipe("Squeeze", "Unsqueeze")
def squeeze(o):
    forms = [[0, 2], [2]] + ([[-1, 0]] if o.version >= 11 else [])
    shape = (1, 3, 1, 5, 1) if o.schema.name == "Squeeze" else (3, 5)
    for axes in forms:
        if o.schema.name == "Squeeze" and axes == [-1, 0]:
            axes = [0, -1]
        run = (lambda x, *_, a=axes: [np.squeeze(x, tuple(a))]) if o.schema.name == "Squeeze" else (lambda x, *_, a=axes: [np.expand_dims(x, tuple(a))])
        yield o(o.x(*shape), axes=axes, expect=run) if o.has("axes") else o(o.x(*shape), const(axes), expect=run)
    if o.schema.name == "Squeeze":
        yield o(o.x(*shape), expect=lambda x: [np.squeeze(x)])


@recipe("Flatten")
def flatten(o):
    for axis in (None, 0, 2, 4) + ((-1,) if o.version >= 11 else ()):
        k = 1 if axis is None else axis
        yield o(o.x(2, 3, 4, 5), axis=axis, expect=lambda x, k=k: [x.reshape(int(np.prod(x.shape[:k])), -1)])


@recipe("Tile")
def tile(o):
    if o.version == 1:
        for axis in (0, 1):
            yield o(o.x(3, 4), const(3, np.float32), const(axis, np.float32), expect=lambda x, n, k: [np.concatenate([x] * int(n), int(k))])
            yield o(o.x(3, 4), const([2], np.float32), const([axis], np.float32), expect=lambda x, n, k: [np.concatenate([x] * int(n[0]), int(k[0]))])
    else:
        for repeats in ((2, 3), (1, 2), (3, 1)):
            yield o(o.x(3, 5), const(repeats), expect=lambda x, r: [np.tile(x, r)])


@recipe("Expand")
def expand(o):
    for x, shape in (((3, 1), (2, 3, 4)), ((3, 4), (1, 1)), ((1, 5), (3, 1))):
        yield o(o.x(*x), const(shape))


@recipe("Slice")
def slices(o):
    def calculate(starts, ends, axes, steps):
        def run(x, *_):
            where = [slice(None)] * x.ndim
            for s, e, a, t in zip(starts, ends, axes or range(x.ndim), steps or [1] * len(starts)):
                where[a] = slice(s, e, t)
            return [x[tuple(where)]]
        return run

    forms = [([1, 0], [3, 1000], [0, 2], None), ([-2, 1], [1 << 40, -1], [2, 1], None), ([1, 0, 2], [3, 4, 5], None, None), ([1], [2], [1], None)]
    if o.version >= 10:
        forms += [([0, 5], [9, 0], [0, 2], [2, -2]), ([-1], [-1000], [1], [-1])]
    for starts, ends, axes, steps in forms:
        run = calculate(starts, ends, axes, steps)
        if o.has("starts"):
            yield o(o.x(4, 5, 7), starts=starts, ends=ends, axes=axes, expect=run)
        else:
            yield o(o.x(4, 5, 7), const(starts), const(ends), None if axes is None else const(axes), None if steps is None else const(steps), expect=run)


@recipe("Pad")
def pad(o):
    name = "paddings" if o.has("paddings") else "pads"
    forms = [("constant", [1, 0, 2, 0, 3, 1]), ("reflect", [1, 2, 0, 2, 0, 3]), ("edge", [0, 2, 1, 3, 1, 0])]
    if o.version >= 2:
        forms.append(("constant", [0, -1, 2, 1, 0, -2]))
    if o.version >= 19:
        forms.append(("wrap", [2, 0, 1, 1, 3, 0]))
    for mode, pads in forms:
        def calculate(x, *_, mode=mode, pads=pads):
            cut = x[tuple(slice(max(-b, 0), n - max(-e, 0)) for b, e, n in zip(pads[:3], pads[3:], x.shape))]
            more = {"constant_values": 1} if mode == "constant" else {}
            return [np.pad(cut, [(max(b, 0), max(e, 0)) for b, e in zip(pads[:3], pads[3:])], mode, **more)]
        if o.has(name):
            yield o(o.x(3, 4, 5), mode=mode, value=1.0, **{name: pads}, expect=calculate)
        else:
            yield o(o.x(3, 4, 5), const(pads), const(1, o.dtype), mode=mode, expect=calculate)
    if o.version >= 18:
        yield o(o.x(3, 4, 5), const([1, 2, 0, 1]), None, const([2, -3]), mode="reflect")


@recipe("Gather")
def gather(o):
    for axis in (0, 1, 2) + ((-1,) if o.version >= 11 else ()):
        index = np.array([[0, 2], [1, 1]]) if o.version < 11 else np.array([[0, -1], [1, -2]])
        yield o(o.x(3, 4, 5), index, axis=axis, expect=lambda x, i, k=axis: [np.take(x, i, k)],
                decided=o.dtype == object)  # of rows of strings ONNX Runtime copies the first
        yield o(o.x(3, 4, 5), const(1, np.int32), axis=axis, expect=lambda x, i, k=axis: [np.take(x, i, k)],
                decided=o.dtype == object)  # of rows of strings ONNX Runtime copies the first


@recipe("GatherElements")
def gather_elements(o):
    yield o(o.x(3, 4), np.array([[0, -1], [2, 1], [0, 3]]), axis=1)
    yield o(o.x(3, 4), np.array([[0, -1, 2, 1]], np.int32), axis=-2)


@recipe("GatherND")
def gather_nd(o):
    yield o(o.x(3, 4, 5), np.array([[[0, -1]], [[2, 1]]]))
    if o.has("batch_dims"):
        yield o(o.x(3, 4, 5), np.array([[1], [-1], [0]]), batch_dims=1)


@recipe("Scatter", "ScatterElements")
def scatter(o):
    for axis in (0, 1, -1) if o.version >= 11 else (0, 1):
        index = np.array([[1, 0, 2, 1], [0, 2, 1, 2]]) if axis == 0 else np.array([[1, 3], [0, 2], [3, 1]])
        def calculate(x, i, u, axis=axis):
            y = x.copy()
            np.put_along_axis(y, i, u, axis)
            return [y]
        yield o(o.x(3, 4), index, o.x(*index.shape), axis=axis, expect=calculate)
        for reduction in ([] if not o.has("reduction") or o.dtype.kind not in "fiu" else ["add", "mul"] + (["max", "min"] if o.version >= 18 else [])):
            index = np.array([[1, 1], [0, -1], [3, 3]])
            yield o(o.x(3, 4), index, o.x(3, 2), axis=1, reduction=reduction)


@recipe("ScatterND")
def scatter_nd(o):
    yield o(o.x(3, 4, 2), np.array([[1], [0]]), o.x(2, 4, 2))
    yield o(o.x(3, 4), np.array([[2, -1], [0, 1]]), o.x(2))
    for reduction in ([] if not o.has("reduction") or o.dtype.kind not in "fiu" else ["add", "mul"] + (["max", "min"] if o.version >= 18 else [])):
        yield o(o.x(3, 4), np.array([[1], [1]]), o.x(2, 4), reduction=reduction)


@recipe("DepthToSpace")
def depth_to_space(o):
    for mode in (None, "DCR", "CRD") if o.has("mode") else (None,):
        def calculate(x, mode=mode):
            n, c, h, w = x.shape
            d = x.reshape(n, 2, 2, c // 4, h, w).transpose(0, 3, 4, 1, 5, 2) if mode != "CRD" else x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)
            return [d.reshape(n, c // 4, h * 2, w * 2)]
        yield o(o.x(2, 12, 3, 5), blocksize=2, mode=mode, expect=calculate)


@recipe("SpaceToDepth")
def space_to_depth(o):
    def calculate(x):
        n, c, h, w = x.shape
        return [x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * 4, h // 2, w // 2)]
    yield o(o.x(2, 3, 4, 6), blocksize=2, expect=calculate)


@recipe("OneHot")
def one_hot(o):
    for axis in (-1, 0, 1):
        yield o(np.array([[1, 4, 2], [0, 3, 9]]), const(5), const([2, 7], np.float32), axis=axis)
    if o.version >= 11:
        yield o(np.array([[-1, 4], [0, -3]], np.int32), const(5, np.int32), const([0, 1], np.int64), axis=1)


@recipe("Compress")
def compress(o):
    for axis in (None, 1) + ((-3,) if o.version >= 11 else ()):
        yield o(o.x(3, 4, 2), np.array([True, False, True]), axis=axis, counted=True)


@recipe("Trilu")
def trilu(o):
    yield o(o.x(2, 4, 5), const(1), upper=0)
    yield o(o.x(4, 3), const(-1))
    yield o(o.x(4, 3))


@recipe("EyeLike")
def eye_like(o):
    yield o(o.x(4, 6), k=1, dtype=onnx.TensorProto.INT32) if False else o.text("y = EyeLike <k = 1, dtype = 6> (x)", {"x": o.x(4, 6)})
    yield o(o.x(4, 6), k=-2)


@recipe("ReverseSequence")
def reverse_sequence(o):
    yield o(o.x(5, 3, 2), np.array([2, 5, 1]), batch_axis=1, time_axis=0)
    yield o(o.x(3, 5, 2), np.array([2, 5, 1]), batch_axis=0, time_axis=1)


@recipe("TensorScatter")
def tensor_scatter(o):
    yield o(o.x(3, 2, 6, 4), o.x(3, 2, 2, 4), np.array([1, 0, 4]))
    yield o(o.x(3, 6, 4), o.x(3, 2, 4), np.array([5, 0, 4]), mode="circular", axis=1)


@recipe("Range")
def ranges(o):
    yield o(const(2, o.dtype), const(11, o.dtype), const(3, o.dtype))
    yield o(const(5, o.dtype), const(-5, o.dtype), const(-2, o.dtype))


@recipe("NonZero")
def non_zero(o):
    x = o.x(4, 5)
    x[1, 2:4] = np.zeros(2, o.dtype) if o.dtype != object else ""
    if o.dtype != object:
        yield o(x, counted=True)


@recipe("Unique")
def unique(o):
    for axis, order in ((None, 1), (0, 1), (1, 0)):
        yield o(o.x(4, 3, low=0, high=1), axis=axis, **{"sorted": order}, outputs=4, counted=True)


@recipe("CenterCropPad")
def center_crop_pad(o):
    yield o(o.x(9, 6, 3), const([4, 11, 3]))
    yield o(o.x(9, 6, 3), const([3, 8]), axes=[2, 1])


@recipe("Shape", "Size")
def shape(o):
    yield o(o.x(3, 4, 5), expect=lambda x: [np.array(x.shape if o.schema.name == "Shape" else x.size, np.int64)])
    yield o(o.x(7), expect=lambda x: [np.array(x.shape if o.schema.name == "Shape" else x.size, np.int64)])
    if o.has("start"):
        yield o(o.x(3, 4, 5), start=1)
        yield o(o.x(3, 4, 5), start=-2, end=-1)


@recipe("Constant")
def constant(o):
    value = o.x(2, 3)

    def plus_zero(**attributes):
        # What is constant alone is no program: the constant is moved.
        nodes = [helper.make_node("Constant", [], ["c"], **attributes), helper.make_node("Identity", ["c"], ["y"])]
        return o.graph(nodes, {}, ["y"])

    yield plus_zero(value=onnx.numpy_helper.from_array(value))
    if o.has("value_float"):
        yield plus_zero(value_float=1.5)
        yield plus_zero(value_ints=[3, -4])
        yield plus_zero(value_strings=["a", "b"])
    if o.has("sparse_value"):
        values, indices = helper.make_tensor("v", 1, [2], [1.5, -2.5]), helper.make_tensor("i", 7, [2], [1, 4])
        sparse = helper.make_sparse_tensor(values, indices, [2, 3])
        yield plus_zero(sparse_value=sparse)


@recipe("ConstantOfShape")
def constant_of_shape(o):
    yield o(const([2, 3]))
    for kind in (np.int64, np.float64, np.bool_, np.float16):
        yield o(const([4, 1]), value=onnx.numpy_helper.from_array(np.array([1], kind)))


@recipe("SequenceAt", "SequenceConstruct")
def sequence_at(o):
    yield o.text("s = SequenceConstruct (a, b, c)\n y = SequenceAt (s, i)", {"a": o.x(2, 3), "b": o.x(4), "c": o.x(1, 5), "i": const(-1)})


@recipe("SequenceEmpty", "SequenceInsert", "SequenceErase")
def sequence_insert(o):
    yield o.text("e = SequenceEmpty <dtype = 1> ()\n s = SequenceInsert (e, a)\n t = SequenceInsert (s, b, zero)\n u = SequenceInsert (t, a)\n"
                 " v = SequenceErase (u, one)\n y = SequenceAt (v, zero)\n z = SequenceAt (v, one)",
                 {"a": o.x(2, 3, dtype=np.float32), "b": o.x(4, dtype=np.float32), "zero": const(0), "one": const(1)}, ("y", "z"))


@recipe("SequenceLength")
def sequence_length(o):
    yield o.text("s = SequenceConstruct (a, b)\n y = SequenceLength (s)", {"a": o.x(2, 3), "b": o.x(4)})


@recipe("ConcatFromSequence")
def concat_from_sequence(o):
    yield o.text("s = SequenceConstruct (a, b)\n y = ConcatFromSequence <axis = 1> (s)", {"a": o.x(2, 3), "b": o.x(2, 4)})
    yield o.text("s = SequenceConstruct (a, b)\n y = ConcatFromSequence <axis = -1, new_axis = 1> (s)", {"a": o.x(2, 3), "b": o.x(2, 3)})


@recipe("SplitToSequence")
def split_to_sequence(o):
    yield o.text("s = SplitToSequence <axis = 1> (x, n)\n y = SequenceAt (s, i)", {"x": o.x(2, 7), "n": const([3, 4]), "i": const(1)})
    yield o.text("s = SplitToSequence <axis = 0, keepdims = 0> (x)\n y = SequenceAt (s, i)", {"x": o.x(3, 5), "i": const(-1)})


@recipe("SequenceMap")
def sequence_map(o):
    yield o.text("s = SequenceConstruct (a, b)\n t = SequenceMap <body = g (float[k] p, float[1] q) => (float[k] r) { r = Mul (p, q) }> (s, c)\n"
                 " y = SequenceAt (t, i)\n z = SequenceAt (t, j)", {"a": o.f(3), "b": o.f(5), "c": o.f(1), "i": const(0), "j": const(1)}, ("y", "z"))


@recipe("Optional", "OptionalGetElement", "OptionalHasElement")
def optional(o):
    yield o.text("p = Optional (x)\n y = OptionalGetElement (p)\n z = OptionalHasElement (p)", {"x": o.x(3, 4)}, ("y", "z"))
