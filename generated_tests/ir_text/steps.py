"""Schedules as steps over loops: six kinds of kernels under steps that a person wrote, on both targets; what is written is what is
replayed; every number counts; what cannot be is refused with its place and the loops."""

import functools
import json
import re

from checks import TOOL, files_of, run

HEADER = '<ir_version: 8, opset_import: ["" : 17, "my" : 1]>\n'
OPS = "op my.L1Distance(a: f32[N, K], b: f32[M, K]) -> y: f32[N, M]\n  y[i, j] = sum(k: K) abs(a[i, k] - b[j, k])\n"
MODELS = {
    "twins": "g (float[1, 3, 8] x, float[3, 2, 1] w, float[2] b) => (float[1, 2, 15] y) { y = ConvTranspose <strides = [2]> (x, w, b) }",
    "bare": "g (float[2, 8, 3, 5] x) => (float[2, 8, 3, 5] y) { y = Relu(x) }",
    "product": "g (double[12, 20] a, double[20, 30] b) => (double[12, 30] y) { y = MatMul(a, b) }",
    "column": "g (float[8, 17] a, float[17, 1] b) => (float[8, 1] y) { y = MatMul(a, b) }",
    "root": "g (float[6, 50] x, float[50] b) => (float[6, 50] y) { s = Add(x, b)  y = Sqrt(s) }",
    "rows": "g (float[6, 64] x, float[64] b) => (float[6, 64] y) { s = Add(x, b)  y = Sqrt(s) }",
    "filter": "g (float[1, 3, 10, 12] x, float[8, 3, 3, 3] w) => (float[1, 8, 8, 10] y) { c = Conv(x, w)  y = Relu(c) }",
    "pool": "g (float[1, 4, 9, 21] x) => (float[1, 4, 7, 19] y) { y = MaxPool <kernel_shape = [3, 3]> (x) }",
    "total": "g (float[8, 60] x) => (float[8] y) { y = ReduceSumSquare <axes = [1], keepdims = 0> (x) }",
    "softmax": "g (float[8, 24] x) => (float[8, 24] y) { y = Softmax(x) }",
    "distance": "g (float[16, 32] a, float[40, 32] b) => (float[16, 40] y) { y = my.L1Distance(a, b) }",
    "turn": "g (double[20, 30] x) => (double[30, 20] y) { y = Transpose(x) }",
    "move": "g (float[20, 32] x) => (float[32, 20] y) { y = Transpose(x) }",
    "quads": "g (uint8[6, 8] x) => (int32[6, 32] y) <int8[8, 32] w = {WEIGHTS}> { y = MatMulInteger(x, w) }".replace(
        "WEIGHTS", ", ".join(str((5 * k) % 251 - 125) for k in range(256))),
}

KERNELS = {"filter": "*conv2d*"}  # of a model, where the steps are not for all

# By target and model: the steps, and what the kernel's text then has.
STEPS = {
    ("c", "product"): ("""tile(m, n, 4, 16, min) as m_o, n_o, m_i, n_i
        decompose_reduction(m_i) as start, add, result
        reorder(k, add, n_i_2)
        unroll(add)
        parallel(m_o)""", "TC_UNROLL for (int add = 0; add < 4; add++)"),
    ("c", "root"): ("""compute_inline(add)
        fuse(i_2, j_2) as all
        split(all, 100) as part, element
        parallel(part)""", "int part)\n{"),
    ("c", "rows"): ("""compute_at(add, i_2, register)
        split(j, 16) as panel, column
        vectorize(column)
        vectorize(j_2)""", "add[0][panel * (16 / TC_VL) + v]"),
    ("c", "filter"): ("""reverse_compute_at(relu, oc)
        compute_at(transpose, oh, stack)
        unroll(kw)
        parallel(oh)""", "float transpose[108];"),
    ("c", "pool"): ("""unroll(kh)
        unroll(kw)
        vectorize(ow)""", "tc_load"),
    ("c", "total"): ("""split(r, 16) as r_o, lane
        rfactor(lane) as part
        vectorize(lane)
        parallel(i)""", "tc_vf"),
    ("c", "softmax"): ("""compute_at(max, i_2, register)
        rename(r) as position
        vectorize(j)""", "int position = 0"),
    ("c", "distance"): ("""tile(i, j, 4, 16) as i_o, j_o, i_i, j_i
        reorder(j_o, i_o)
        cache_read(b, j_o, stack) as columns
        transform_layout(columns, 1, 0)
        decompose_reduction(i_i) as start, add, result
        reorder(k, add, j_i_2)
        vectorize(j_i)
        vectorize(j_i_2)
        vectorize(j_i_3)
        unroll(start)
        unroll(add)
        unroll(result)
        parallel(j_o)""", "tc_vf acc[4][16 / TC_VL];"),
    ("c", "turn"): ("""tile(i, j, 8, 8, min) as i_o, j_o, i_i, j_i
        parallel(i_o)""", "int i_o)\n{"),
    ("c", "move"): ("""tile(i, j, 4, 4) as i_o, j_o, i_i, j_i
        annotate(i_o, "tiles of 4 columns, from the left")
        tensorize(i_i, transpose_tile)""", "  /* tiles of 4 columns, from the left */\n"),
    ("c", "quads"): ("""pack(b, [1, 0], [1, 0], [16, 4]) as panels
        split(n, 16) as n_o, n_i
        split(k, 4) as k_o, k_i
        decompose_reduction(n_i) as start, add, result
        reorder(k_o, add, k_i)
        blockize(add)
        vectorize(start)
        vectorize(result)
        parallel(n_o)
        tensorize(add, dot4) as v""", "tc_dot4_u8("),
    ("cuda", "product"): ("""tile(m, n, 4, 10) as m_o, n_o, m_i, n_i
        bind(m_o, block.y)
        bind(n_o, block.x)
        bind(m_i, thread.y)
        bind(n_i, thread.x)
        split(k, 5) as k_o, k_i
        cache_read(a, k_o, shared) as rows
        cache_read(b, k_o, shared) as columns
        pipeline([rows, columns], 2)""", "double columns[2][5][10];"),
    ("cuda", "root"): ("""compute_inline(add)
        fuse(i_2, j_2) as all
        split(all, 64) as block, thread
        bind(block, block.x)
        bind(thread, thread.x)""", "(int)blockIdx.x"),
    ("cuda", "rows"): ("""compute_inline(add)
        fuse(i_2, j_2, let) as all
        split(all, 48, guard, let) as block, thread
        bind(block, block.x)
        bind(thread, thread.x)""", "const int all = block * 48 + thread"),
    ("cuda", "filter"): ("""reverse_compute_at(relu, oc)
        bind(j, block.x)
        bind(k, thread.x)
        bind(oh, block.x)
        bind(ow, thread.y)
        bind(oc, thread.x)
        bind(j_2, block.x)
        bind(k_2, block.y)
        bind(l_2, thread.x)
        unroll(kw)""", "dim3(8, 10)"),
    ("cuda", "pool"): ("""fuse(n, c, oh) as row
        bind(row, block.x)
        bind(ow, thread.x)
        unroll(kh)
        unroll(kw)""", "dim3(28), dim3(19)"),
    ("cuda", "total"): ("""bind(i, thread.x)""", "threadIdx.x"),
    ("cuda", "softmax"): ("""bind(i, thread.x)
        bind(i_3, thread.x)
        bind(i_4, block.x)
        bind(j_2, thread.x)
        bind(i_2, block.x)
        bind(j, thread.x)""", "_kernel2"),
    ("cuda", "distance"): ("""tile(i, j, 4, 10) as i_o, j_o, i_i, j_i
        bind(i_o, block.y)
        bind(j_o, block.x)
        bind(i_i, thread.y)
        bind(j_i, thread.x)
        split(k, 16) as k_o, k_i
        cache_read(b, k_o, shared) as columns
        transform_layout(columns, 1, 0)""", "float columns[16][10];"),
    ("cuda", "move"): ("""annotate(i, "a row of the result")
        blockize(j)
        bind(i, block.x)""", "/* block: reads x[20, 1]; writes transpose[1, 20] */"),
    ("cuda", "twins"): ("""set_scope(conv1d_transpose, stack)""", "float *const transpose2 = "),
    ("cuda", "bare"): ("""bind(l, thread.x)
        bind(i, block.y)""", "const int l = (int)threadIdx.x;"),
    ("cuda", "quads"): ("""pack(b, [1, 0], [0], [4]) as columns
        bind(m, block.x)
        bind(n, thread.x)
        split(k, 4) as k_o, k_i
        unroll(k_i)""", "i8, packed: d1, d0 / 4, d0 % 4"),
}

PROCESSOR = {"c": ["--cpu", "x86-64-v3"], "cuda": ["--target", "cuda", "--arch", "sm_80"]}


def schedule(steps, kernels="*"):
    return f'schedule "{kernels}"\n' + "".join(f"  {line.strip()}\n" for line in steps.splitlines())


def texts(package):
    return "".join(text.decode() for name, text in package.items() if name.startswith("kernels/"))


def changed_numbers(text):
    """The text with each number of a step changed."""
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        for found in re.finditer(r"(?<=[(,] )\d+|(?<=[(\[])\d+", line.split(" as ")[0]):
            value = int(found.group())
            other = {0: 1, 1: 0}.get(value, value + 1) if "transform_layout" in line else value + 1
            yield f"{line.strip()}: {other}", "".join(lines[:at]) + line[:found.start()] + str(other) + line[found.end():] + "".join(lines[at + 1:])


class Steps:
    def __init__(self, check, tmp):
        self.check, self.tmp = check, tmp
        tmp.mkdir()
        (tmp / "ops.tc").write_text(OPS)
        for name, text in MODELS.items():
            (tmp / f"{name}.onnxtxt").write_text(HEADER + text)

    def emit(self, target, model, out, *flags):
        r = run(TOOL, "--quiet", self.tmp / f"{model}.onnxtxt", *PROCESSOR[target], "--ops", self.tmp / "ops.tc", "--name", "net", *flags, "-o", out)
        return r, files_of(out) if r.returncode == 0 else {}

    def stated(self, target, model):
        """A person's steps: the kernel is made of them, computes the same, and is the same when they are written and read again."""
        steps, expected = STEPS[target, model]
        name, folder = f"{target} {model}", self.tmp / f"{target}-{model}"
        folder.mkdir()
        file = folder / "steps.tc"
        file.write_text(schedule(steps, KERNELS.get(model, "*")))
        own, package = self.emit(target, model, folder / "own", "--schedules", file, "--write-schedules", folder / "written.tc")
        if not self.check(f"{name}: steps are taken", own.returncode == 0, own.stderr):
            return
        self.check(f"{name}: its text", expected in texts(package), texts(package))
        kernel = json.loads(package["manifest.json"])["kernels"][0]
        self.check(f"{name}: the manifest lists them", len(kernel["steps"]) >= len(steps.splitlines()), kernel["steps"])
        again, same = self.emit(target, model, folder / "again", "--schedules", folder / "written.tc")
        self.check(f"{name}: what is written is replayed", again.returncode == 0 and same == package, again.stderr)
        told = run(TOOL, "verify", self.tmp / f"{model}.onnxtxt", *PROCESSOR[target], "--ops", self.tmp / "ops.tc", "--schedules", file, "--against", "interpreter", "--verify-each")
        self.check(f"{name}: computes the same", told.returncode == 0, told.stdout + told.stderr)
        for k, (what, text) in enumerate(changed_numbers(file.read_text())):
            file.write_text(text)
            r, other = self.emit(target, model, folder / f"changed{k}", "--schedules", file)
            if r.returncode:
                self.check(f"{name}: {what} is refused with its place", r.returncode == 1 and re.search(r"steps\.tc:\d+:\d+: ", r.stderr), r.stderr)
            else:
                self.check(f"{name}: {what} counts", texts(other) != texts(package))

    def written(self, target):
        """What the compiler chose itself gives the same package again, on every model."""
        for model in MODELS:
            folder = self.tmp / f"own-{target}-{model}"
            _, package = self.emit(target, model, folder / "a", "--write-schedules", folder.with_suffix(".tc"))
            r, same = self.emit(target, model, folder / "b", "--schedules", folder.with_suffix(".tc"))
            self.check(f"{target} {model}: its own schedule is replayed", r.returncode == 0 and same == package, r.stderr)

    def dead_tiles(self):
        """A tile of a loop that is cut has no copy where no iteration reads it."""
        steps = self.tmp / "column.tc"
        steps.write_text(schedule("pad(n, 4)\ncache_read(b, n, register)"))
        for target in PROCESSOR:
            r, package = self.emit(target, "column", self.tmp / f"column-{target}", "--schedules", steps)
            self.check(f"{target} column: a tile, read once", r.returncode == 0 and texts(package).count("b_tile[17]") <= 1 and "b_tile_2" not in texts(package), r.stderr + texts(package))

    def shown(self):
        """--print-steps: the loops before the first step and behind every one."""
        steps = self.tmp / "shown.tc"
        steps.write_text(schedule("split(i, 3) as rows, row\nunroll(row)"))
        flags = [self.tmp / "turn.onnxtxt", *PROCESSOR["c"], "--schedules", steps]
        r = run(TOOL, *flags, "--print-steps", "transpose_*", "-o", self.tmp / "shown")
        self.check("steps are shown", r.returncode == 0 and r.stderr.count("transpose[") == 3 and "  split(i, 3) as rows, row\n    for rows in 0 .. +10:\n" in r.stderr, r.stderr)
        r = run(TOOL, *flags, "--print-steps", "nothing", "-o", self.tmp / "shown")
        self.check("a kernel that is not there", r.returncode == 1 and "no function of this model has the signature" in r.stderr and "there are transpose_20x30_30x20_f64" in r.stderr, r.stderr)

    def refused(self):
        file, out = self.tmp / "wrong.tc", self.tmp / "nothing"
        for target, text, *told in (
                ("c", "split(i, 3) as rows, row\n  vectorise(row)", "wrong.tc:3:3: there is no step vectorise; there are annotate, "),
                ("c", "split(z, 3)", "wrong.tc:2:9: split(z, 3): there is no loop z; there are i, j", "the loops before it:\n  for i in 0 .. +30:"),
                ("c", "split(i, 0)", "wrong.tc:2:12: split(i, 0, guard): the factor is below 1", "\n    split(i, 0)\n             ^\n"),
                ("c", "tile(i, j, 2, -1)", "wrong.tc:2:17: tile(i, j, 2, -1, guard): the second factor is below 1"),
                ("c", "split(i, 3, most)", "wrong.tc:2:15: split(i, 3, most): argument 3 is one of guard, min"),
                ("c", "split(i, 9223372036854775807)", "wrong.tc:2:12: split(i, 9223372036854775807): argument 2 is a number from -1099511627776 to 1099511627776"),
                ("c", "annotate(i, rows)", "wrong.tc:2:15: annotate(i, rows): argument 2 is what is said of the loop, a text in quotes"),
                ("c", 'annotate(i, "")', 'wrong.tc:2:15: annotate(i, ""): the text has from 1 to 100 characters'),
                ("c", 'annotate(i, "*/ int x; /*")', "wrong.tc:2:15: ", "the text has what no comment can have"),
                ("c", 'annotate(i, "a\\\\")', "wrong.tc:2:15: ", "the text has what no comment can have"),
                ("c", 'annotate("i", "rows")', "wrong.tc:2:12: ", "it is told the name of a loop here"),
                ("c", "blockize(j)\n  fuse(i, j)", "wrong.tc:3:3: fuse(i, j): loop j is not the only statement of loop i"),
                ("c", "pack(x, [1, 0])", 'wrong.tc:2:8: pack(x, [1, 0], [], []): "x" is no operand that is known while compiling'),
                ("c", "pack(x, 1)", "wrong.tc:2:11: pack(x, 1): argument 2 is the order of the dimensions, a list of numbers"),
                ("c", "tensorize(i, dot5)", "wrong.tc:2:16: tensorize(i, dot5): argument 2 is one of dot4, "),
                ("c", "tensorize(i, transpose_tile)", "wrong.tc:2:3: tensorize(i, transpose_tile): the loop does not compute what the instruction does: to[column * s + row] = from[row * t + column]"),
                ("cuda", "tensorize(i, transpose_tile)", "instructions of a GPU are a warp's"),
                ("c", "split(i, 3) as j, k", "wrong.tc:2:3: split(i, 3, guard) as i_o, i_i: the name j is taken"),
                ("c", "reorder(j, i)\n  parallel(i)\n  parallel(j)", "wrong.tc:4:3: parallel(j): loop i is parallel"),
                ("c", "bind(i, block.x)", "the C target has no blocks and threads"),
                ("c", "split(i 3)", "wrong.tc:2:11: expected ',' between arguments"),
                ("c", "split(i, rows = 3)", "wrong.tc:2:12: a decision has numbers with names"),
                ("cuda", "parallel(i)", "a GPU has blocks and threads: bind"),
                ("cuda", "bind(i, block.x)\n  bind(j, block.x)", "wrong.tc:3:3: bind(j, block.x): loop i is block.x too"),
                ("cuda", "bind(i, thread.x)\n  bind(j, block.x)", "wrong.tc:3:3: bind(j, block.x): a loop of threads stands around"),
                ("cuda", "split(i, 30) as a, b\n  bind(a, block.x)\n  pad(b, 32)\n  bind(j, thread.x)", "loops of blocks and threads stand inside of something that is no plain loop"),
                ("cuda", "split(i, 3) as a, b\n  partition(j, 10) as c, d\n  bind(c, thread.x)\n  bind(d, thread.x)", "")):
            file.write_text(f'schedule "*"\n  {text}\n')
            r, _ = self.emit(target, "turn", out, "--schedules", file)
            if told == [""]:
                self.check("two launches of one loop", r.returncode == 0, r.stderr)
                continue
            self.check(f"{target} {text}", r.returncode == 1 and all(t in r.stderr for t in told) and "nothing was written" in r.stderr and not out.exists(), (r.returncode, r.stderr))

    def cases(self):
        both = [functools.partial(self.stated, *key) for key in STEPS]
        return [self.shown, self.refused, self.dead_tiles, *(functools.partial(self.written, t) for t in PROCESSOR), *both]
