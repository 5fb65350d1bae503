#!/usr/bin/env python3
"""Tests of the random models: that seeds are models, that every operator is drawn, and that each judge can fail."""
import argparse
import collections
import dataclasses
import pathlib
import random
import re
import tempfile
import unittest

import numpy as np
import onnx
import onnx.parser
import onnxruntime

import batch
import rewritten
import run
import tables
from batch import CONFIGS, Compiler, Emitter, Outcome, run_batch
from evaluate import OPTIONS, Draft, evaluate
from graph import F16, F32, I32, Graph, Value, node_of
from judge import difference, verdict
from kept import keeping
from model import Model, random_model, walk

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Operators of the table that no row draws, and why.
ELSEWHERE = {
    "strings: differential/string_cases.py": {"StringNormalizer", "TfIdfVectorizer", "Tokenizer", "CategoryMapper"},
    "training: ONNX's suite": {"Adagrad", "Adam", "Momentum"},
    "newer than what ONNX Runtime runs: ONNX's suite": {"TreeEnsemble"},
    "part of rows of other names": {"SequenceEmpty", "SequenceConstruct", "SequenceLength", "OptionalGetElement"},
    "differential/ml_cases.py": {"SVMClassifier"},
    "maps: differential cases": {"CastMap", "DictVectorizer"},
    "differential/microsoft_cases.py": {"DynamicQuantizeLSTM"},
    "layers of language models: differential/language_cases.py": {"MoE", "QMoE", "LinearAttention", "LinearAttentionGate", "CausalConvWithState", "GatedRMSNorm", "GatedAdd", "MRotaryEmbedding"},
    "not in ONNX Runtime for processors: unit tests": {"NhwcConv", "NhwcFusedConv", "GroupNorm", "SkipGroupNorm", "BiasSplitGelu", "BiasAdd", "BiasDropout", "BiasSoftmax"},
}


def small_graph():
    import names
    rng = random.Random(1)
    g = Graph(rng, 17, (F32,), names=names.maker(random.Random(3)))
    g.shapes.append((3, 4))
    return g


class Generator(unittest.TestCase):
    def test_a_seed_is_a_model(self):
        first, again, other = (random_model(seed).proto().SerializeToString() for seed in (7, 7, 8))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_every_operator_has_a_row(self):
        rows = re.findall(r"^\| (ai\.onnx[a-z.]*|com\.microsoft) \| (\w+) \|", (ROOT / "docs" / "operators.md").read_text(), re.MULTILINE)
        self.assertGreater(len(rows), 200)
        self.assertEqual({name for _, name in rows} - {name for _, name in tables.operators()}, set.union(*ELSEWHERE.values()))

    def test_operators_of_all_kinds_come(self):
        models = [random_model(seed) for seed in range(150)]
        used = {node.proto.op_type for m in models for node in m.graph.nodes}
        self.assertGreater(len(used), 120)
        self.assertGreater(len({m.graph.opset for m in models}), 15)


def by_runtime(model):
    session = onnxruntime.InferenceSession(model.proto().SerializeToString(), OPTIONS, providers=["CPUExecutionProvider"])
    return session.run(None, {v.name: v.array for v in model.inputs})


class OtherWays(unittest.TestCase):
    def test_wrapped_models_mean_the_same(self):
        compared, used = 0, set()
        for seed in range(1, 40):
            model = random_model(seed, "wrapped")
            proto = model.proto()
            used |= {node.op_type for node in walk(proto.graph)} | {"a function" for _ in proto.functions}
            try:
                if verdict(model, by_runtime(dataclasses.replace(model, wrapping=False)))[0] == "failed":
                    continue  # ONNX Runtime loses what its own loops hand on
                arrays = by_runtime(model)
            except Exception:
                continue  # ONNX Runtime lacks an operator
            self.assertNotEqual(verdict(model, arrays)[0], "failed", seed)
            compared += 1
        self.assertGreater(compared, 15)
        self.assertLessEqual({"If", "Loop", "Scan", "a function"}, used)

    def test_sizes_have_names_and_bounds_around_them(self):
        models = [m for m in (random_model(seed, "sizes") for seed in range(1, 12)) if m.sizes.axes]
        self.assertGreater(len(models), 5)
        for m in models:
            self.assertEqual({d.dim_param for v in m.proto().graph.input for d in v.type.tensor_type.shape.dim} - {""}, set(m.sizes.values))
            self.assertTrue(all(low <= m.sizes.values[name] <= high for name, (low, high) in m.sizes.bounds.items()))

    def test_the_second_run_reads_what_the_first_one_wrote(self):
        g = small_graph()
        x, state = g.known(np.float32([1, 2]), False), g.known(np.float32([7, 7]), False)
        total = g.op("Add", x, state, kind="short")
        one = g.op("ReduceSum", total, g.known(np.array([0]), True), kind="short", keepdims=0)
        kept = keeping(random.Random(2), Model(1, g, [one]))
        self.assertEqual(list(kept.states.values()), [total.name])
        given, = kept.inputs
        np.testing.assert_array_equal(kept.outputs[0].array, 2 * given.array.sum())


class Judge(unittest.TestCase):
    def test_exact_numbers_are_equal(self):
        value = Value("y", np.float32([1, 2]))
        self.assertEqual(difference(np.float32([1, 2]), value), "")
        self.assertIn("1 of 2 exact", difference(np.nextafter(value.array, np.float32(9)) * np.float32([1, 0]) + np.float32([0, 2]), value))

    def test_rounded_numbers_are_close(self):
        value = Value("y", np.ones(50, np.float32), exact=False)
        self.assertEqual(difference(value.array * np.float32(1 + 1e-6), value), "")
        self.assertIn("relative", difference(value.array * np.float32(1.001), value))
        self.assertIn("inf", difference(value.array * np.float32(np.nan), value))

    def test_bytes_are_a_step_away(self):
        value = Value("y", np.int8([1, 2]), exact=False)
        self.assertEqual(difference(np.int8([2, 2]), value), "")
        self.assertIn("more than a step", difference(np.int8([3, 2]), value))

    def test_halves_are_computed_wider(self):
        # Operator set 5, which ONNX Runtime does not have: ONNX's evaluator would square thousands as halves.
        x = np.float16([[[1000, -3000, 2000]]])
        draft = Draft("InstanceNormalization", (Value("x", x), Value("s", np.ones(1, np.float16)), Value("b", np.zeros(1, np.float16))))
        y, = evaluate(draft, node_of(draft, ["y"]), {v.name: v.array for v in draft.operands}, 5)
        self.assertEqual(y.dtype, F16)
        np.testing.assert_allclose(y, x / np.sqrt(np.float64(14e6 / 3)), rtol=1e-3)

    def test_noise_excuses_no_wrong_number(self):
        g = small_graph()
        y = g.op("Exp", g.known(np.float32([1, 2, 3]), False))
        model = Model(1, g, [y])
        self.assertEqual(verdict(model, [y.array])[0], "passed")
        self.assertEqual(verdict(model, [y.array * np.float32(1.01)])[0], "failed")

    def test_halves_are_rounded_or_not(self):
        g = small_graph()
        tiny = g.op("Mul", g.known(np.float16([3e-5, 0.03, 0.1, 0.2]), False), g.known(np.float16(7.6e-6)))
        y = g.op("Mul", tiny, g.known(np.float16(1000)))  # of the first one nothing is left, as halves
        model, unrounded = Model(1, g, [y]), np.float16([2.28e-7, 2.28e-4, 7.6e-4, 1.52e-3])
        self.assertEqual(y.array[0], 0)
        self.assertEqual(verdict(model, [y.array])[0], "passed")
        self.assertEqual(verdict(model, [unrounded])[0], "passed")
        self.assertEqual(verdict(model, [np.float16((y.array + unrounded) / 2)])[0], "passed")
        for wrong in (unrounded * np.float16(1.1), -unrounded, np.zeros(4, np.float16), unrounded[::-1].copy()):
            self.assertEqual(verdict(model, [wrong])[0], "failed")

    def test_what_underflows_excuses_no_other_number(self):
        g = small_graph()
        x, small = np.float16([0.03, 0.1]), np.float16(7.6e-8)
        y = g.op("Mul", g.op("Mul", g.known(x, False), g.known(small)), g.known(np.float16(30000)))
        z = g.op("Exp", g.known(np.float16([1, 2]), False))
        model, unrounded = Model(1, g, [y, z]), (x.astype(F32) * small * 30000).astype(F16)
        self.assertEqual(verdict(model, [unrounded, z.array])[0], "passed")
        self.assertEqual(verdict(model, [unrounded, z.array * np.float16(1.1)])[0], "failed")
        self.assertEqual(verdict(model, [unrounded * np.float16(1.2), z.array])[0], "failed")

    def test_what_a_resize_cancels(self):
        # The middle of 1.1 and -1.1 is 0, or what rounding leaves of it.
        g = small_graph()
        x, sizes = g.known(np.float32([[[[1.1, -1.1]]]]), False), g.known(np.int64([1, 1, 1, 3]))
        middle = g.op("MatMul", g.op("Resize", x, None, None, sizes, mode="linear"), g.known(np.float32([[0], [1], [0]])))
        y = g.op("Tanh", g.op("Mul", middle, g.known(np.float32(1e7))))
        model = Model(1, g, [y])
        self.assertEqual(verdict(model, [y.array])[0], "passed")
        self.assertEqual(verdict(model, [y.array + np.float32(0.5)])[0], "unstable")

    def test_loops_are_gone_through_one_iteration_at_a_time(self):
        g = small_graph()
        body = onnx.parser.parse_graph("body (int64 i, bool go, int64[1] s, int64[1] t) => (bool more, int64[1] u, int64[1] v, int64 n)"
                                       " <int64[1] one = {1}, int64 two = {2}> { v = Add(s, one)  u = Identity(t)  n = Identity(i)  more = Less(i, two) }")
        a, b, n = g.op("Loop", g.known(np.int64(9)), None, g.known(np.int64([10])), g.known(np.int64([20])), body=body, outputs=3)
        self.assertEqual((a.array.tolist(), b.array.tolist(), n.array.tolist()), ([21], [12], [0, 1, 2]))
        body = onnx.parser.parse_graph("body (int64[1] s, int64[2] x) => (int64[1] t, int64[2] y, int64[1] z) <int64[1] first = {0}>"
                                       " { p = Gather(x, first)  t = Add(s, p)  y = Identity(x)  z = Identity(s) }")
        rows = g.known(np.int64([[1, 2, 3], [4, 5, 6]]))
        t, y, z = g.op("Scan", g.known(np.int64([0])), rows, body=body, num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1],
                       scan_output_axes=[1, 0], scan_output_directions=[0, 1], outputs=3)
        self.assertEqual((t.array.tolist(), y.array.tolist(), z.array.tolist()), ([6], [[3, 2, 1], [6, 5, 4]], [[5], [3], [0]]))

    def test_what_rounding_does_inside_of_a_loop(self):
        # Constants alone: 0.3 * 0.7 - 0.21 is 0, or what rounding leaves of it.
        g = small_graph()
        body = onnx.parser.parse_graph("body (int64 i, bool go, float[1] s) => (bool more, float[1] t) <float[1] a = {0.3}, float[1] b = {0.7}, float[1] c = {-0.21}, float[1] d = {1e7}>"
                                       " { more = Identity(go)  p = Mul(a, b)  q = Add(p, c)  r = Mul(q, d)  t = Tanh(r) }")
        y = g.op("Loop", g.known(np.int64(2)), None, g.known(np.float32([0])), body=body)
        self.assertEqual(verdict(Model(1, g, [y]), [y.array])[0], "passed")
        self.assertEqual(verdict(Model(1, g, [y]), [y.array + np.float32(0.5)])[0], "unstable")

    def test_quotients_of_halves(self):
        # 218.8 / 2.016 is 108.53, and 108.5 as a half.
        g = small_graph()
        g.opset = 21
        x, scale = g.known(np.float16([218.75, 2.0]), False), g.known(np.float16(2.015625))
        y, z = (g.op("QuantizeLinear", v, scale, kind="decides") for v in (x, g.known(np.float16([3.0, 2.0]), False)))
        for v, told in ((y, "passed"), (z, "failed")):
            self.assertEqual(verdict(Model(1, g, [v]), [v.array - np.uint8([1, 0])])[0], told)

    def test_what_is_computed_in_single_precision(self):
        g = small_graph()
        x = g.known(np.random.default_rng(1).random((2, 4, 5)), False)
        y = g.op("InstanceNormalization", x, g.known(np.ones(4)), g.known(np.zeros(4)))
        for far, told in ((5e-6, "unstable"), (1e-3, "failed")):
            self.assertEqual(verdict(Model(1, g, [y]), [y.array * (1 + far)])[0], told)

    def test_ties_of_quantisation(self):
        # The sum is 2.5e-5 of a step away from a tie. Noise crosses it now and then, not in the first trials.
        model = random_model(8011066)
        q = next(r for n in model.graph.nodes for r in n.results if r.name == "t46")
        y = next(v for v in model.outputs if v.name == "t48")
        model.outputs = [y]
        tied = np.argmin(np.abs(next(r for n in model.graph.nodes for r in n.results if r.name == "t43").array.astype(np.float64) / 0.02 % 1 - 0.5))
        other, far = y.array.copy(), y.array.copy()
        other.flat[tied] += 0.02 * (1 if q.array.flat[tied] % 2 else -1)
        far.flat[tied] += 0.2
        self.assertEqual(verdict(model, [other])[0], "unstable")
        self.assertEqual(verdict(model, [far])[0], "failed")


def planted(change, text=None):
    """What a batch says of a sound model whose emitted C was changed."""
    g = small_graph()
    y = g.op("Mul", g.op("Relu", g.known(np.float32([[1, 2, -3, 4]] * 3), False), kind="move"), g.known(np.float32([[2, 3, 4, 5]]), True), kind="short")
    model = Model(1, g, [y])
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        config = dataclasses.replace(CONFIGS["generic"], name="planted")
        compiler, emitter, emit = Compiler(folder, config), Emitter(ROOT / "build" / "tc-emit", folder), batch.emit

        def emit_wrong(*words):
            told = emit(*words)
            path = folder / "m1" / "m1.c"
            path.write_text(change(path.read_text()))
            return told
        batch.emit = emit_wrong
        try:
            result = run_batch([model], emitter, compiler, folder)[1]
        finally:
            batch.emit = emit
            emitter.close()
    return result if isinstance(result, Outcome) else Outcome(*verdict(model, result))


def in_run(statement):
    """A statement at the end of the model's run."""
    return lambda text: re.sub(r"(\n  return M1_OK;\n\}\n\nstatic int fits)", "\n  " + statement + r"\1", text, count=1)


class Planted(unittest.TestCase):
    def test_a_sound_package_passes(self):
        self.assertEqual(planted(lambda text: text), Outcome("passed"))

    def test_wrong_numbers(self):
        self.assertIn("exact elements differ", planted(in_run("*(float *)(void *)out->t4 += 1e-6f;")).text)

    def test_what_does_not_compile(self):
        self.assertIn("compile: error", planted(in_run("nothing at all;")).text)

    def test_warnings(self):
        self.assertIn("unused variable", planted(in_run("int unused;")).text)

    def test_crashes(self):
        self.assertIn("signal", planted(in_run("*(volatile int *)0 = 1;")).text)

    def test_hangs_are_ended(self):
        self.assertIn("signal 14", planted(in_run("for (;;) if (!m) break;")).text)

    def test_writes_outside(self):
        self.assertIn("outside", planted(in_run("((float *)(void *)out->t4)[12] = 0;")).text)

    def test_writes_into_inputs(self):
        self.assertIn("input", planted(in_run("*(float *)(void *)in->t1 = 9;")).text)

    def test_what_nobody_wrote(self):
        self.assertIn("two runs differ", planted(in_run("memcpy((void *)out->t4, m->workspace, 4);")).text)

    def test_a_status(self):
        self.assertIn("returned 4", planted(in_run("return (m1_status)4;")).text)


class Edges(unittest.TestCase):
    def test_nan_and_infinities_are_found_by_ranks(self):
        x = np.float32([[1, np.nan, 3], [-np.inf, -np.inf, -np.inf], [np.inf, 2, -1]])
        for op, expected in (("ReduceMax", [np.nan, -np.inf, np.inf]), ("ReduceMin", [np.nan, -np.inf, -1])):
            draft = Draft(op, (Value("x", x), Value("a", np.array([1]))), {"keepdims": 0})
            np.testing.assert_array_equal(evaluate(draft, node_of(draft, ["y"]), {v.name: v.array for v in draft.operands}, 18)[0], np.float32(expected))

    def test_they_come(self):
        arrays = [v.array for seed in range(1, 12) for v in random_model(seed, "edges").graph.inputs if v.dtype == F32]
        self.assertTrue(any(np.isnan(a).any() for a in arrays) and any(np.isinf(a).any() for a in arrays))


class Rewritten(unittest.TestCase):
    TEXT = "schedule for matmul -> f32[2]\n  tile(rows = 4, columns = 16)\n  split(i, 8) as a, b\n"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = pathlib.Path(self.folder.name) / "m"

    def test_numbers_and_steps_are_changed(self):
        texts = {rewritten.changed(random.Random(seed), self.TEXT) for seed in range(60)}
        self.assertGreater(len(texts), 20)
        self.assertTrue(any("split(i, 9)" in text for text in texts) and any("rows = 8" in text for text in texts))
        self.assertTrue(all(text.startswith("schedule for matmul") for text in texts))

    def said(self, refusal):
        """What becomes of a model whose changed schedules are refused so."""
        def emit(words):
            if "--write-schedules" in words:
                self.out.with_suffix(".tc").write_text(self.TEXT)
            given = "--schedules" in words and self.out.with_suffix(".tc").read_text() != self.TEXT
            return refusal if given else (0, "")
        return rewritten.by_schedules(emit, [], self.out, random.Random(1))[0]

    def test_refusals_have_their_place(self):
        self.assertEqual(self.said((1, "m.tc:2:8: rows = 99: it is from 1 to 8")), 0)
        self.assertEqual(self.said((1, "it cannot be")), 2001)
        self.assertEqual(self.said((70, "m.tc:2:8: internal error")), 2070)

    def test_another_package_is_found(self):
        made = iter(("one", "", "another"))

        def emit(words):
            self.out.mkdir(exist_ok=True)
            (self.out / "m.c").write_text(next(made))
            return 0, ""
        tool = ROOT / "build" / "tc-emit"
        code, said = rewritten.through_text(emit, [], self.out, random.Random(1), tool)
        self.assertEqual((code, said.endswith("another package: m.c")), (2000, True))


class Resuming(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tool, self.path = pathlib.Path(self.folder.name) / "tc-emit", pathlib.Path(self.folder.name) / "log"
        self.tool.write_text("one build")
        self.options = argparse.Namespace(seed=10, count=7, seconds=0, batch=3, configs=["generic", "cuda"])

    def left(self):
        return [(list(seeds), config) for seeds, config in run.Batches(self.options, run.Log(self.path, self.tool).done)]

    def test_goes_on_behind_what_is_done(self):
        self.assertEqual(self.left(), [([10, 11, 12], "generic"), ([13, 14, 15], "cuda"), ([16], "generic")])
        log = run.Log(self.path, self.tool)
        log.batch(13, 15, "cuda", collections.Counter(passed=2, failed=1))
        log.batch(10, 12, "cuda", collections.Counter(passed=3))  # in another way than the one whose turn it is
        self.assertEqual(self.left(), [([10, 11, 12], "generic"), ([16], "generic")])
        self.assertEqual(log.totals()["passed"], 5)
        self.assertEqual(log.totals()["failed"], 1)

    def test_another_build_needs_another_log(self):
        self.left()
        self.tool.write_text("another build")
        self.assertRaises(SystemExit, self.left)


if __name__ == "__main__":
    unittest.main()
