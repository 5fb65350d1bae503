#!/usr/bin/env python3
"""Times random blocks of networks against ONNX Runtime on one core of this machine, and names those that are slower.

usage: blocks.py [--seed 1] [--count 60] [--bar 1.05] [--keep DIR] [--tool build/tc-emit] [--cpu native] [--cc gcc] [KIND]...
                                                                                  (run it with `scripts/python_env base`)

KIND: pictures (convolutions, pooling, resizing and what stands between them), sequences (dense layers, attention,
recurrence, norms) and tables (perceptrons of few columns); all of them without. A block is one to four layers of sizes
that networks have, few and odd channels among them: what `ops.py` lists was thought of by somebody, this was not. Blocks
above --bar of ONNX Runtime's time are repeated with more rounds, and named only if they stay above; with --keep their
models are kept. Outputs are compared first. The exit code is 1 if a block is slower. A seed gives the same blocks everywhere.
"""
import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import machine
import ops
from case import Case, ints  # found by ops

CHANNELS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 18, 20, 24, 32, 36, 48, 64, 80, 96, 128)
FEATURES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 30, 32, 48, 64, 100, 128, 200, 256, 512)
ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Gelu", "Elu", "Mish", "Softplus", "HardSigmoid")


class Block:
    """Lines of ONNX text, and the shape of the value that the next line reads."""

    def __init__(self, rng, shape):
        self.rng, self.shape, self.lines, self.weights = rng, shape, [], {}
        self.inputs, self.value = {"x": shape}, "x"

    def pick(self, values):
        return values[int(self.rng.integers(len(values)))]

    def maybe(self, share):
        return self.rng.random() < share

    def weight(self, *shape, terms=None, array=None):
        """The name of a new one; `terms`: of a sum, so that results stay near one."""
        name = f"w{len(self.weights)}"
        if array is None:
            array = (self.rng.standard_normal(shape) / np.sqrt(terms or np.prod(shape[1:]))).astype(np.float32)
        self.weights[name] = np.asarray(array)
        return name

    def add(self, call, *operands, results=1):
        """One node; its result, or a list of them."""
        names = [f"v{len(self.lines)}_{k}" for k in range(results)]
        name, _, attributes = call.partition(" ")
        self.lines.append(f"{', '.join(names)} = {name} {attributes} ({', '.join(operands)})")
        return names[0] if results == 1 else names

    def then(self, call, *more):
        self.value = self.add(call, self.value, *more)

    def activate(self):
        name = self.pick(ACTIVATIONS + ("Silu", "", ""))
        if name == "Silu":
            self.then("Mul", self.add("Sigmoid", self.value))
        elif name:
            self.then(name)

    def case(self, name):
        lines = self.lines + [f"y = Identity ({self.value})"]
        return Case(name, "\n ".join(lines), self.inputs, self.weights, bar=1e-4)


# --- pictures: [n, c, h, w]
def convolution(b, out=None, kernel=None, group=1, dilation=1, stride=None):
    n, c, h, w = b.shape
    out, kernel, stride = out or b.pick(CHANNELS), kernel or b.pick((1, 1, 3, 3, 5, 7)), stride or b.pick((1, 1, 1, 2))
    pad = (kernel - 1) * dilation // 2
    bias = [b.weight(out)] if b.maybe(0.7) else []
    b.then(f"Conv <strides = {[stride] * 2}, pads = {[pad] * 4}, dilations = {[dilation] * 2}, group = {group}>",
           b.weight(out, c // group, kernel, kernel), *bias)
    b.shape = (n, out, -(-h // stride), -(-w // stride))


def depthwise(b):
    convolution(b, b.shape[1], group=b.shape[1])


def grouped(b):
    group = b.pick((2, 4, 8))
    if b.shape[1] % group == 0:
        convolution(b, group * max(1, b.pick(CHANNELS) // group), 3, group)


def transposed(b):
    n, c, h, w = b.shape
    kernel, stride, pad = b.pick(((2, 2, 0), (4, 2, 1), (3, 1, 1), (4, 4, 0), (8, 4, 2)))
    out = b.pick(CHANNELS)
    b.then(f"ConvTranspose <strides = {[stride] * 2}, pads = {[pad] * 4}>", b.weight(c, out, kernel, kernel, terms=c * kernel * kernel // stride**2), b.weight(out))
    b.shape = (n, out, (h - 1) * stride + kernel - 2 * pad, (w - 1) * stride + kernel - 2 * pad)


def pooled(b):
    n, c, h, w = b.shape
    kernel, stride = b.pick((2, 3, 5)), b.pick((1, 2))
    pad = kernel // 2 if kernel % 2 else 0
    if min(h, w) > kernel:
        b.then(f"{b.pick(('MaxPool', 'AveragePool'))} <kernel_shape = {[kernel] * 2}, strides = {[stride] * 2}, pads = {[pad] * 4}>")
        b.shape = (n, c, (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1)


def resized(b):
    n, c, h, w = b.shape
    by, mode = b.pick((2, 1.5, 4, 0.5)), b.pick(("nearest", "linear"))
    b.shape = (n, c, max(1, int(h * by)), max(1, int(w * by)))
    b.then(f'Resize <mode = "{mode}", coordinate_transformation_mode = "{b.pick(("half_pixel", "asymmetric"))}">', '""', '""', b.weight(array=ints(*b.shape)))


def normed(b):
    c = b.shape[1]
    call = b.pick(("InstanceNormalization", "GroupNormalization <num_groups = 1>", "channels"))
    if call == "channels":
        b.then("Transpose <perm = [0,2,3,1]>")
        b.then("LayerNormalization", b.weight(c), b.weight(c))
        b.then("Transpose <perm = [0,3,1,2]>")
    else:
        b.then(call, b.weight(c), b.weight(c))


def gated(b):
    n, c, h, w = b.shape
    gate = b.add("Relu", b.add("Conv", b.add("GlobalAveragePool", b.value), b.weight(max(1, c // 4), c, 1, 1)))
    b.then("Mul", b.add("Sigmoid", b.add("Conv", gate, b.weight(c, max(1, c // 4), 1, 1))))


def halves_gated(b):
    if b.shape[1] % 2 == 0:
        left, right = b.add("Split <axis = 1, num_outputs = 2>", b.value, results=2)
        b.value = b.add("Mul", left, b.add("Sigmoid", right))
        b.shape = (b.shape[0], b.shape[1] // 2, *b.shape[2:])


def joined(b):
    before, shape = b.value, b.shape
    convolution(b, stride=1)
    b.activate()
    b.value, b.shape = b.add("Concat <axis = 1>", before, b.value), (shape[0], shape[1] + b.shape[1], *shape[2:])


def residual(b):
    before, c = b.value, b.shape[1]
    convolution(b, c, 3, stride=1)
    b.activate()
    convolution(b, c, 3, stride=1)
    b.then("Add", before)


def shuffled(b):
    n, c, h, w = b.shape
    if c % 4 == 0:
        b.then('DepthToSpace <blocksize = 2, mode = "CRD">')
        b.shape = (n, c // 4, 2 * h, 2 * w)


def padded(b):
    n, c, h, w = b.shape
    b.then(f'Pad <mode = "{b.pick(("reflect", "edge", "constant"))}">', b.weight(array=ints(0, 0, 1, 2, 0, 0, 1, 2)))
    b.shape = (n, c, h + 2, w + 4)


def simple_picture(b):
    b.then(b.pick(("Softmax <axis = 1>", "LpNormalization <axis = 1>", "LRN <size = 5>", "Clip")))


PICTURES = (convolution, convolution, convolution, depthwise, grouped, transposed, pooled, resized, normed, gated, halves_gated, joined, residual,
            shuffled, padded, simple_picture, lambda b: convolution(b, kernel=3, dilation=b.pick((2, 3, 4)), stride=1))


def picture(rng):
    """Behind a first layer, mostly: what networks have inside lies as convolutions leave it."""
    side = int(rng.choice((7, 8, 13, 14, 20, 28, 32, 40, 56, 64, 80)))
    b = Block(rng, (int(rng.choice((1, 1, 1, 2, 4))), int(rng.choice((1, 3, 3, 4, 8, 16, 32, 64, 128))), side, int(rng.choice((side, side, 25, 50)))))
    if b.maybe(0.6):
        convolution(b, b.pick((8, 16, 32, 64)), 3, stride=1)
        b.then("Relu")
    for _ in range(int(rng.integers(1, 4))):
        b.pick(PICTURES)(b)
        if b.maybe(0.6):
            b.activate()
    return b


# --- sequences: [n, words, features], and tables: [rows, features]
def dense(b):
    out = b.pick(FEATURES)
    b.then("MatMul", b.weight(b.shape[-1], out, terms=b.shape[-1]))
    if b.maybe(0.7):
        b.then("Add", b.weight(out))
    b.activate()
    b.shape = (*b.shape[:-1], out)


def attention(b):
    n, words, features = b.shape
    heads = b.pick([h for h in (1, 2, 4, 8) if features % h == 0])

    def head():
        value = b.add("MatMul", b.value, b.weight(features, features))
        return b.add("Transpose <perm = [0,2,1,3]>", b.add("Reshape", value, b.weight(array=ints(n, words, heads, features // heads))))
    query, key, value = head(), head(), head()
    scores = b.add("MatMul", query, b.add("Transpose <perm = [0,1,3,2]>", key))
    weights = b.add("Softmax <axis = -1>", b.add("Mul", scores, b.weight(array=np.float32((features // heads) ** -0.5))))
    b.value = b.add("Transpose <perm = [0,2,1,3]>", b.add("MatMul", weights, value))
    b.then("Reshape", b.weight(array=ints(n, words, features)))


def recurrent(b):
    n, words, features = b.shape
    kind, gates = b.pick((("GRU", 3), ("LSTM", 4), ("RNN", 1)))
    size = b.pick((8, 16, 20, 32, 64, 100))
    b.then("Transpose <perm = [1,0,2]>")
    b.value = b.add(f"{kind} <hidden_size = {size}>", b.value, b.weight(1, gates * size, features), b.weight(1, gates * size, size), b.weight(1, 2 * gates * size))
    b.then("Squeeze", b.weight(array=ints(1)))
    b.then("Transpose <perm = [1,0,2]>")
    b.shape = (n, words, size)


def along_words(b):
    n, words, features = b.shape
    kernel, out = b.pick((1, 3, 5, 15)), b.pick(FEATURES)
    group, out = (features, features) if b.maybe(0.3) else (1, out)
    b.then("Transpose <perm = [0,2,1]>")
    b.then(f"Conv <pads = {[kernel // 2] * 2}, group = {group}>", b.weight(out, features // group, kernel), b.weight(out))
    b.activate()
    b.then("Transpose <perm = [0,2,1]>")
    b.shape = (n, words, out)


def turned(b):
    b.then("Transpose <perm = [0,2,1]>")
    b.shape = (b.shape[0], b.shape[2], b.shape[1])


def scaled(b):
    b.then("Mul", b.weight(b.shape[-1]))
    b.then("Add", b.weight(b.shape[-1]))
    b.activate()


def layer_norm(b):
    b.then("LayerNormalization", b.weight(b.shape[-1]), b.weight(b.shape[-1]))


def softmax(b):
    b.then(f"{b.pick(('Softmax', 'LogSoftmax', 'LpNormalization'))} <axis = -1>")


def beside(b):
    before, shape = b.value, b.shape
    dense(b)
    b.value, b.shape = b.add("Concat <axis = -1>", before, b.value), (*shape[:-1], shape[-1] + b.shape[-1])


def summed(b):
    axis = b.pick(range(1, len(b.shape)))
    b.then(f"{b.pick(('ReduceMean', 'ReduceMax', 'ReduceSum', 'ReduceL2'))} <keepdims = 1>", b.weight(array=ints(axis)))
    b.shape = tuple(1 if k == axis else size for k, size in enumerate(b.shape))


def running(b):
    b.then("CumSum", b.weight(array=np.int64(1)))


SEQUENCES = (dense, dense, dense, attention, recurrent, along_words, turned, scaled, layer_norm, softmax, beside, summed, running)
TABLES = (dense, dense, dense, scaled, layer_norm, softmax, beside, summed)


def layers_of(b, layers, most):
    for _ in range(int(b.rng.integers(1, most + 1))):
        b.pick(layers)(b)
    return b


def sequence(rng):
    return layers_of(Block(rng, (int(rng.choice((1, 1, 2, 4))), int(rng.choice((1, 7, 16, 50, 64, 128, 200))), int(rng.choice((16, 20, 32, 64, 96, 128, 256, 300))))), SEQUENCES, 3)


def table(rng):
    return layers_of(Block(rng, (int(rng.choice((1, 4, 16, 100, 256, 1000))), int(rng.choice((3, 7, 10, 20, 30, 64, 100, 300, 784))))), TABLES, 4)


KINDS = {"pictures": picture, "sequences": sequence, "tables": table}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="of blocks of each kind")
    parser.add_argument("--bar", type=float, default=1.05)
    parser.add_argument("--keep", type=Path, help="models, inputs and packages of slow blocks")
    parser.add_argument("--tool", type=Path, default=ops.ROOT / "build" / "tc-emit")
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    return parser.parse_args()


def ratio(case, folder, options):
    program = ops.prepare(case, folder, options)
    for options.rounds, options.seconds in ((2, 0.05), (5, 0.2)):
        peer, ours = ops.time_both(program, folder, options)
        if ours <= options.bar * peer:
            break
    return peer, ours


def main():
    options = parse_options()
    print(machine.processor(), flush=True)
    slower, logs = [], []
    for kind in options.kinds or KINDS:
        for number in range(options.seed, options.seed + options.count):
            case = KINDS[kind](np.random.default_rng([number, *kind.encode()])).case(f"{kind}_{number}")
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch) / case.name
                peer, ours = ratio(case, folder, options)
                logs.append(np.log(ours / peer))
                if ours > options.bar * peer:
                    slower.append(case.name)
                    print(f"{case.name:16}{peer:10.1f}{ours:10.1f}{ours / peer:8.2f}  {list(case.inputs.values())[0]}\n {case.body}", flush=True)
                    if options.keep:
                        shutil.copytree(folder, options.keep / case.name, dirs_exist_ok=True)
    print(f"{len(slower)} of {len(logs)} blocks above {options.bar:g} of ONNX Runtime's time; the geometric mean is {np.exp(np.mean(logs)):.2f}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
