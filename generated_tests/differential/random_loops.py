"""Random loops: states that are kept, exchanged, overwritten and stacked, ends of every kind, loops and decisions in bodies.

All tensors are float32 of three whole numbers, which stay small, so that every right program gives the same bits.
"""
import random

import numpy as np

from case import Case

LOOPS = 8  # of a model
INPUTS = {"a": np.float32([1, 2, -3]), "b": np.float32([0, -1, 4]), "e": np.float32([5, 1, 1]), "columns": np.arange(15, dtype=np.float32).reshape(3, 5) - 7,
          "rows": np.arange(12, dtype=np.float32).reshape(4, 3) - 5, "trips0": np.int64(0), "trips3": np.int64(3), "trips5": np.int64(5)}
CONSTANTS = {"once": np.int64(1), "twice": np.int64(2), "four": np.int64(4), "yes": np.bool_(True), "zero": np.float32(0), "zeros": np.zeros(3, np.float32),
             "one": np.float32(1), "low": np.float32(-50), "high": np.float32(50)}
TRIPS = {"known": ["once", "twice", "four"], "counted": ["trips0", "trips3"], "ended": ["", "four"], "both": ["trips3", "trips5"]}


def tensors(names):
    return ", ".join(f"float[3] {name}" for name in names)


class Loops:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.count = 0

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def step(self, body, visible):
        """Appends an operation, or a decision, on visible tensors; returns its result."""
        rng, result = self.rng, self.name("v")
        left, right = rng.choice(visible), rng.choice(visible)
        kind = rng.choice(["Add", "Sub", "Max", "Min", "Neg", "If"])
        if kind == "If":
            total, large, yes, no = (self.name(letter) for letter in "tgyn")
            body.append(f"{total} = ReduceSum <keepdims = 0> ({left})  {large} = Greater({total}, zero)\n"
                        f"{result} = If ({large}) <then_branch = {self.name('then')} () => (float[3] {yes}) {{ {yes} = Sub({right}, one) }}, "
                        f"else_branch = {self.name('else')} () => (float[3] {no}) {{ {no} = Identity({left}) }}>")
        else:
            body.append(f"{result} = {kind}({left})" if kind == "Neg" else f"{result} = {kind}({left}, {right})")
        return result

    def work(self, body, states, visible, depth):
        """Fills a body; returns the names of the next states and of what is stacked."""
        rng = self.rng
        for _ in range(rng.randint(1, 5)):
            visible.append(self.step(body, visible))
        if depth < 2 and rng.random() < 0.5:
            line, results, _ = self.loop(visible, depth + 1)
            body.append(line)
            visible += results
        following = []
        for _ in states:
            value = rng.choice(states if rng.random() < 0.4 else visible)
            if value not in states:
                bounded = self.name("c")
                body.append(f"{bounded} = Clip({value}, low, high)")
                value = bounded
            following.append(self.renamed(body, value))
        return following, [self.renamed(body, rng.choice(visible)) for _ in range(rng.randint(0, 2))]

    def renamed(self, body, value):
        result = self.name("o")
        body.append(f"{result} = Identity({value})")
        return result

    def loop(self, outer, depth):
        """(text, names of the last states, names of what is stacked) of a loop that may read `outer`."""
        rng = self.rng
        states = [self.name("s") for _ in range(rng.randint(1, 4))]
        first = [rng.choice(outer) for _ in states]
        visible, body = states + rng.sample(outer, min(2, len(outer))), []
        kind = rng.choice([*TRIPS, "scan"])
        if kind == "scan":
            part, axis = self.name("x"), rng.randint(0, 1)
            following, stacked = self.work(body, states, visible + [part], depth)
            attributes = f"num_scan_inputs = 1, scan_input_axes = [{axis}], scan_input_directions = [{rng.randint(0, 1)}]"
            if stacked:
                attributes += f", scan_output_axes = [{', '.join(str(rng.randint(-1, 1)) for _ in stacked)}]"
                attributes += f", scan_output_directions = [{', '.join(str(rng.randint(0, 1)) for _ in stacked)}]"
            head = f"Scan ({', '.join([*first, 'columns' if axis else 'rows'])}) <{attributes}, body = {self.name('body')} ({tensors([*states, part])}) => ("
        else:
            number, going, go_on, float_number, row = (self.name(letter) for letter in "ignfr")
            body.append(f"{float_number} = Cast <to = 1> ({number})  {row} = Add({float_number}, zeros)")
            following, stacked = self.work(body, states, visible + [row], depth)
            trips = rng.choice(TRIPS[kind])
            if kind != "known" and trips != "four":
                stacked = []  # there is no bound of their number, which would have to be declared
            body.append(f"{go_on} = Less({number}, {rng.choice(['twice', 'four'])})" if kind in ("ended", "both") else f"{go_on} = Identity({going})")
            start = rng.choice(["", "yes"] if kind == "known" else ["", "yes", "maybe"])
            head = f"Loop ({trips}, {start}, {', '.join(first)}) <body = {self.name('body')} "
            head += f"(int64 {number}, bool {going}, {tensors(states)}) => (bool {go_on}, "
        results, wholes = [self.name("r") for _ in states], [self.name("q") for _ in stacked]
        return f"{', '.join(results + wholes)} = {head}{tensors(following + stacked)}) {{\n" + "\n".join(body) + "\n}>", results, wholes


def random_case(seed):
    """A model of several loops, each of which may go on with the last states of those before it."""
    loops, lines, outputs, visible = Loops(seed), [], [], ["a", "b", "e"]
    for _ in range(LOOPS):
        line, results, wholes = loops.loop(visible, 0)
        lines.append(line)
        outputs += results + wholes
        visible = (visible + results)[-6:]
    inputs = {**INPUTS, "maybe": np.bool_(seed % 3 != 0)}
    return Case(f"random_loops_{seed}", "\n".join(lines), inputs, CONSTANTS, outputs=tuple(outputs), counted=seed % 2 == 1)
