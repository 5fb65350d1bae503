"""Recurrent cells, control flow, losses, signals, random numbers, text, attention, training."""
import numpy as np
import onnx
from onnx import helper

from history import const, recipe

F32 = np.float32


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent(kind, x, w, r, b, h, reverse, activations=(np.tanh,), linear=0):
    """Y of one direction: x [time, batch, input]; the cells as ONNX writes them."""
    n = h.shape[-1]
    c, out = np.zeros_like(h), []
    for t in (range(len(x) - 1, -1, -1) if reverse else range(len(x))):
        u, v = x[t] @ w.T + b[:len(b) // 2], h @ r.T + b[len(b) // 2:]
        if kind == "RNN":
            h = activations[0](u + v)
        elif kind == "GRU":
            z, q = sigmoid((u + v)[:, :n]), sigmoid((u + v)[:, n:2 * n])
            k = np.tanh(u[:, 2 * n:] + (q * v[:, 2 * n:] if linear else (q * h) @ r[2 * n:].T + b[len(b) // 2:][2 * n:]))
            h = (1 - z) * k + z * h
        else:
            i, o, f, g = np.split(u + v, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.stack(out[::-1] if reverse else out), h, c


@recipe("RNN", "GRU", "LSTM")
def cells(o):
    kind = o.schema.name
    gates, results = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind], 3 if kind == "LSTM" else 2

    def calculate(x, w, r, b=None, *_, direction="forward", linear=0, activation=np.tanh):
        n, ways = r.shape[2], []
        for d in range(len(w)):
            bias = np.zeros(2 * gates * n) if b is None else b[d]
            ways.append(recurrent(kind, *(v.astype(np.float64) for v in (x, w[d], r[d], bias, np.zeros((x.shape[1], n)))),
                                  direction == "reverse" or d == 1, (activation,), linear))
        y = np.stack([w[0] for w in ways], 1)
        last = [np.stack([w[k] for w in ways]) for k in (1, 2)]
        return [v.astype(x.dtype) for v in [y, *last][:results]]

    old = {"output_sequence": 1} if o.has("output_sequence") else {}
    for direction, d in (("forward", 1), ("reverse", 1), ("bidirectional", 2), (None, 1)):
        more = {"linear_before_reset": 1} if kind == "GRU" and o.has("linear_before_reset") and d == 2 else {}
        activation = {"activations": ["Sigmoid"] * d} if kind == "RNN" and direction == "reverse" else {}
        yield o(o.x(5, 2, 3), const(o.x(d, gates * 4, 3, low=-1, high=1), o.dtype), const(o.x(d, gates * 4, 4, low=-1, high=1), o.dtype),
                const(o.x(d, 2 * gates * 4, low=-1, high=1), o.dtype) if direction else None, hidden_size=4, direction=direction, outputs=results, **old,
                **more, **activation, bar=1e-4,
                expect=lambda *v, k=direction, m=more, a=activation: calculate(*v, direction=k, linear=len(m), activation=sigmoid if a else np.tanh))
    if o.has("layout"):  # ONNX Runtime has layout 0 only
        def batch_first(x, w, r):
            y, *last = calculate(x.transpose(1, 0, 2), w, r)
            return [y.transpose(2, 0, 1, 3), *[v.transpose(1, 0, 2) for v in last]]
        yield o(o.x(2, 5, 3), const(o.x(1, gates * 4, 3, low=-1, high=1), o.dtype), const(o.x(1, gates * 4, 4, low=-1, high=1), o.dtype), hidden_size=4,
                layout=1, outputs=results, expect=batch_first, bar=1e-4)


@recipe("If")
def branch(o):
    for taken in (True, False):
        yield o.text("y = If (c) <then_branch = t () => (float[3] a) { a = Neg (x) }, else_branch = e () => (float[3] b) { b = Abs (x) }>",
                     {"c": np.array(taken), "x": o.f(3)})


@recipe("Loop")
def loop(o):
    body = "b (int64 i, bool c, float[3] s) => (bool d, float[3] t, float[3] u) { d = Identity (c) \n t = Mul (s, x) \n u = Neg (t) }"
    yield o.text(f"y, z = Loop <body = {body}> (n, c, s)", {"n": const(4), "c": const(True, bool), "s": o.f(3), "x": o.f(3)}, ("y", "z"))
    yield o.text(f"y, z = Loop <body = {body}> (n, , s)", {"n": const(3), "s": o.f(3), "x": o.f(3)}, ("y", "z"))


@recipe("Scan")
def scan(o):
    body = "b (float[3] s, float[3] e) => (float[3] t, float[3] u) { t = Add (s, e) \n u = Mul (t, s) }"
    if o.version == 8:
        def batched(s, x, backwards=False):
            out = np.zeros_like(x)
            for t in (range(x.shape[1] - 1, -1, -1) if backwards else range(x.shape[1])):
                before = s
                s = s + x[:, t]
                out[:, -1 - t if backwards else t] = s * before
            return [s, out]
        operands = {"s": o.f(2, 3), "x": o.f(2, 5, 3)}
        yield o.text(f"y, z = Scan <num_scan_inputs = 1, body = {body}> (, s, x)", operands, ("y", "z"), expect=batched)
        yield o.text(f"y, z = Scan <num_scan_inputs = 1, directions = [1], body = {body}> (, s, x)", operands, ("y", "z"), expect=lambda s, x: batched(s, x, True))
        lengths = np.array([5, 3])

        def ragged(s, x, n):
            rows = [batched(s[k:k + 1], x[k:k + 1, :n[k]]) for k in range(2)]
            padded = [np.pad(z, [(0, 0), (0, x.shape[1] - z.shape[1]), (0, 0)]) for _, z in rows]
            return [np.concatenate([r[0] for r in rows]), np.concatenate(padded)]
        yield o.text(f"y, z = Scan <num_scan_inputs = 1, body = {body}> (n, s, x)", {**operands, "n": const(lengths)}, ("y", "z"), expect=ragged)
        return
    yield o.text(f"y, z = Scan <num_scan_inputs = 1, body = {body}> (s, x)", {"s": o.f(3), "x": o.f(5, 3)}, ("y", "z"))
    yield o.text(f"y, z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], scan_input_directions = [1], body = {body}> (s, x)",
                 {"s": o.f(3), "x": o.f(3, 5)}, ("y", "z"))


@recipe("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(o):
    for reduction in ("none", "sum", "mean"):
        yield o(o.x(3, 5, 4), o.rng.integers(0, 5, (3, 4)), const(o.x(5, low=0.5, high=2), o.dtype), reduction=reduction, ignore_index=2, bar=1e-4)
    yield o(o.x(3, 5), o.rng.integers(0, 5, 3), bar=1e-4)


@recipe("DFT")
def dft(o):
    x = o.x(1, 6, 5, 1)
    for axis, inverse, onesided in ((1, 0, 0), (2, 0, 1), (None, 0, 0)):
        if o.has("axis"):
            yield o(x, axis=axis, inverse=inverse, onesided=onesided, bar=1e-4)
        else:
            yield o(x, None, None if axis is None else const(axis), inverse=inverse, onesided=onesided, bar=1e-4)
    y = o.x(1, 6, 5, 2)
    yield o(y, const(8), axis=1, inverse=1, bar=1e-4) if o.has("axis") else o(y, const(8), const(1), inverse=1, bar=1e-4)


@recipe("STFT")
def stft(o):
    yield o(o.x(1, 40, 1), const(8), const(o.x(16, low=0.5, high=1), o.dtype), const(16), bar=1e-4)
    yield o(o.x(1, 40, 1), const(8), None, const(16), onesided=0, bar=1e-4)


@recipe("BlackmanWindow", "HammingWindow", "HannWindow")
def window(o):
    yield o(const(9), periodic=0, bar=1e-4)
    yield o(const(10), output_datatype=onnx.TensorProto.DOUBLE, bar=1e-4)


@recipe("MelWeightMatrix")
def mel(o):
    yield o(const(8), const(16), const(8192), const(0, F32), const(4096, F32))


def spread(low, high, mean, deviation, share=1.0):
    def check(outputs):
        v = outputs[0].astype(float)
        return "" if v.min() >= low and v.max() <= high and abs(v.mean() - mean) < 0.15 * (1 + deviation) and abs(v.std() - deviation) < 0.15 * deviation \
            else f"{v.min():.3g} to {v.max():.3g}, mean {v.mean():.3g}, deviation {v.std():.3g}"
    return check


@recipe("RandomNormal", "RandomNormalLike")
def normal(o):
    like = (o.x(30, 40),) if o.schema.name.endswith("Like") else ()
    shape = {} if o.is_float and like else {"dtype": 1} if like else {"shape": [30, 40]}
    yield o(*like, **shape, mean=2.0, scale=3.0, seed=5.0, check=spread(-30, 30, 2, 3))


@recipe("RandomUniform", "RandomUniformLike")
def uniform(o):
    like = (o.x(30, 40),) if o.schema.name.endswith("Like") else ()
    shape = {} if o.is_float and like else {"dtype": 1} if like else {"shape": [30, 40]}
    yield o(*like, **shape, low=-2.0, high=4.0, seed=5.0, check=spread(-2, 4, 1, 6 / 12 ** 0.5))


@recipe("Bernoulli")
def bernoulli(o):
    yield o(np.full((30, 40), 0.25, o.dtype), seed=5.0, check=spread(0, 1, 0.25, 0.433))


@recipe("Multinomial")
def multinomial(o):
    yield o(np.log(np.full((2, 2), 0.5, o.dtype)), sample_size=900, seed=5.0, check=spread(0, 1, 0.5, 0.5))


def words(*values):
    return np.array(values, object)


@recipe("StringConcat")
def string_concat(o):
    yield o(words("a", "Zo\u00eb", ""), words("b", "", "c d"))


@recipe("StringSplit")
def string_split(o):
    yield o(words("a,b", "c,,d"), delimiter=",", outputs=2)
    yield o(words("a,b", "c,,d"), delimiter=",", maxsplit=1, outputs=2)


@recipe("StringNormalizer")
def string_normalizer(o):
    yield o(words("Monday", "tuesday", "Wednesday"), case_change_action="UPPER", stopwords=["Monday"], is_case_sensitive=1)
    yield o(words("Monday", "tuesday"), case_change_action="LOWER")


@recipe("RegexFullMatch")
def regex(o):
    yield o(words("www.google.com", "www.facebook.com", "www.bbc.co.uk"), pattern=r"www\.[\w.-]+\.\bcom\b" if False else "www[.][a-z]+[.]com")


@recipe("TfIdfVectorizer")
def tf_idf(o):
    for mode in ("TF", "IDF", "TFIDF"):
        yield o(np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int32), mode=mode, min_gram_length=1, max_gram_length=2, max_skip_count=1,
                ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 4, 5, 6], pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7], weights=[0.5, 1.5, 2.0, 1.0, 0.25, 3.0, 1.0])


@recipe("Attention")
def attention(o):
    yield o(o.x(2, 3, 4, 8), o.x(2, 3, 6, 8), o.x(2, 3, 6, 8), scale=0.25, bar=4e-3 if o.dtype.itemsize == 2 else 1e-5)
    yield o(o.x(2, 4, 24), o.x(2, 6, 24), o.x(2, 6, 24), o.x(4, 6), q_num_heads=3, kv_num_heads=3, softcap=2.0, bar=4e-3 if o.dtype.itemsize == 2 else 1e-5)


@recipe("RotaryEmbedding")
def rotary(o):
    yield o(o.x(2, 3, 4, 8), o.x(10, 4), o.x(10, 4), const(o.rng.integers(0, 10, (2, 4))), interleaved=1)
    yield o(o.x(2, 4, 24), o.x(2, 4, 4), o.x(2, 4, 4), num_heads=3)


@recipe("LinearAttention")
def linear_attention(o):
    yield o(o.x(2, 5, 12), o.x(2, 5, 12), o.x(2, 5, 15), q_num_heads=3, kv_num_heads=3, update_rule="linear", outputs=2, bar=1e-4)


@recipe("CausalConvWithState")
def causal_conv(o):
    yield o(o.x(2, 3, 7), o.x(3, 1, 4), o.x(3), outputs=2, activation="silu", bar=1e-4)


@recipe("FlexAttention", domain="ai.onnx.preview")
def flex_attention(o):
    yield o(o.x(2, 3, 4, 8), o.x(2, 3, 6, 8), o.x(2, 3, 6, 8), scale=0.25)


@recipe("ImageDecoder")
def image_decoder(o):
    yield o(o.rng.integers(0, 255, 64).astype(np.uint8), check=lambda outputs: "", expect=lambda x: [np.zeros((1, 1, 3), np.uint8)])


@recipe("Adagrad", domain="ai.onnx.preview.training")
def adagrad(o):
    yield o(np.array(0.1, F32), np.array(3), o.x(4, 3), o.x(4, 3), o.x(4, 3, low=0), outputs=2, norm_coefficient=0.01, decay_factor=0.1, epsilon=1e-3)


@recipe("Adam", domain="ai.onnx.preview.training")
def adam(o):
    yield o(np.array(0.1, F32), np.array(3), o.x(4, 3), o.x(4, 3), o.x(4, 3, low=0), o.x(4, 3, low=0), outputs=3, norm_coefficient=0.01, alpha=0.8, beta=0.9)


@recipe("Momentum", domain="ai.onnx.preview.training")
def momentum(o):
    for mode in ("standard", "nesterov"):
        yield o(np.array(0.1, F32), np.array(3), o.x(4, 3), o.x(4, 3), o.x(4, 3), outputs=2, norm_coefficient=0.01, alpha=0.8, beta=0.9, mode=mode)


@recipe("Gradient", domain="ai.onnx.preview.training")
def gradient(o):
    nodes = [helper.make_node("Mul", ["a", "a"], ["c"]), helper.make_node("Gradient", ["a"], ["d"], domain="ai.onnx.preview.training", xs=["a"], y="c")]
    yield o.graph(nodes, {"a": o.f(3)}, ["c", "d"], expect=lambda a: [a * a, 2 * a])
