"""Makes a failing model small: nodes are dropped, and their results become inputs with the values that they had.

Each round tries every such step at once, as one batch, and goes on with the smallest model that still fails.
"""
import copy
import dataclasses
import shutil

from batch import Outcome, run_batch
from graph import free_names_of
from judge import verdict

ROUNDS = 12
MOST_TRIES = 40


def needed(nodes, outputs, dropped=()):
    """(nodes, names that they read) of what the outputs need; results of `dropped` nodes are taken from outside."""
    wanted, kept = {v.name for v in outputs}, []
    for node in reversed(nodes):
        if node not in dropped and any(name in wanted for name in node.proto.output):
            kept.append(node)
            wanted |= {name for name in node.proto.input if name} | free_names_of(node.proto)
    return kept[::-1], wanted


def smaller(model, seed, outputs, dropped):
    """The model without the nodes in `dropped` and all that nobody needs then; None where nothing would be left."""
    g = copy.copy(model.graph)
    kept, read = needed(g.nodes, outputs, dropped)
    made = {name for node in kept for name in node.proto.output}
    cut = [r for node in g.nodes for r in node.results if r.name in read and r.name not in made]
    if not kept or any(name in read and name not in made and name not in {v.name for v in g.inputs + g.constants + cut} for name in read):
        return None
    g.nodes = kept
    g.inputs = [v for v in g.inputs if v.name in read] + cut
    g.constants = [v for v in g.constants if v.name in read]
    return dataclasses.replace(model, graph=g, outputs=[v for v in outputs if v.name in made], seed=seed)


def candidates(model):
    tries = []
    if len(model.outputs) > 1:
        tries += [([v], ()) for v in model.outputs]
    tries += [(model.outputs, (node,)) for node in model.graph.nodes]
    tries += [(node.results, ()) for node in model.graph.nodes[:-1] if node.results]
    models = [smaller(model, k + 1, outputs, dropped) for k, (outputs, dropped) in enumerate(tries[:MOST_TRIES])]
    return [m for m in models if m is not None and m.outputs and len(m.graph.nodes) + len(m.outputs) < len(model.graph.nodes) + len(model.outputs)]


def failing(models, emitter, compiler, folder):
    """Those that fail, with what they failed by."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    results = run_batch(models, emitter, compiler, folder)
    judged = [(m, results[m.seed] if isinstance(results[m.seed], Outcome) else Outcome(*verdict(m, results[m.seed]))) for m in models]
    return [(m, outcome) for m, outcome in judged if outcome.kind == "failed"]


def step_of(text):
    """Which step failed: a smaller model has to fail in the same one."""
    return text.split(" ")[0] + (text if text.startswith("emit") else "")[:30]


def reduce(model, outcome, emitter, compiler, folder):
    """(the smallest failing model that was found, how it fails)."""
    for _ in range(ROUNDS):
        tries = candidates(model)
        found = [(m, o) for m, o in (failing(tries, emitter, compiler, folder) if tries else []) if step_of(o.text) == step_of(outcome.text)]
        if not found:
            break
        model, outcome = min(found, key=lambda pair: (len(pair[0].graph.nodes), sum(v.size for v in pair[0].inputs)))
    return model, outcome
