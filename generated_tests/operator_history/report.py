"""The table of docs/operator_history.md."""
import collections
import dataclasses


@dataclasses.dataclass
class Row:
    pair: tuple
    models: int
    judges: str
    status: str
    reason: str


def rows(pairs, results):
    """One for each pair; what is worst of its models counts."""
    by_pair = collections.defaultdict(list)
    for result in results:
        by_pair[result.case.pair].append(result)
    table = []
    for pair in pairs:
        some = by_pair[pair]
        status = next((s for s in ("wrong", "unjudged", "refused", "right") if any(r.status == s for r in some)), "untried")
        told = [r for r in some if r.status == status and r.reason]
        reason = told[0].reason if told else ""
        if status == "refused" and len(told) < len(some):
            reason = f"{len(told)} of {len(some)} models: {reason}"
        table.append(Row(pair, len(some), ", ".join(sorted({r.judge for r in some if r.judge})), status, reason))
    return table


def line(row):
    domain, operator, version = row.pair
    reason = row.reason.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
    return f"| {domain or 'ai.onnx'} | {operator} | {version} | {row.models} | {row.judges} | {row.status} | {reason} |"


def markdown(table):
    counts = collections.Counter(row.status for row in table)
    known = [row for row in table if "ONNX Runtime" in row.judges]
    refused = sum(row.status == "refused" for row in known)
    head = ["# Operators in every version", "",
            "Written by `generated_tests/operator_history/run.py --report`; do not edit. Each version of each operator in ONNX's schema history,",
            "in small models of the operator sets in which it was in force, with odd shapes and attributes that are not the defaults. They are",
            "emitted as C, compiled, run, and compared with ONNX Runtime, with a definition written out in NumPy where that has no kernel for them, or",
            "else with the reference evaluator of the `onnx` package. *Refused* means that tc-emit said why and wrote nothing.", "",
            f"Of {len(table)} pairs of operator and version {counts['right']} are right, {counts['refused']} refused and {counts['wrong']} wrong. "
            f"ONNX Runtime runs {len(known)} of them, of which {refused} are refused.", "",
            "| domain | operator | version | models | compared with | result | reason |", "|---|---|---|---|---|---|---|"]
    return "\n".join([*head, *map(line, table)]) + "\n"


def lost(table, file):
    """The pairs that are right, or refused, in the earlier table `file`, and worse now; prints those that are better."""
    order = ["wrong", "unjudged", "untried", "refused", "right"]
    known = {tuple(cells[:3]): cells[5] for cells in ([cell.strip() for cell in row.strip("|").split(" | ")] for row in file.read_text().splitlines()
                                                      if row.startswith("| ai.onnx")) if len(cells) >= 6}
    worse = []
    for row in table:
        domain, operator, version = row.pair
        before = known.get((domain or "ai.onnx", operator, str(version)))
        if before is None or order.index(row.status) < order.index(before):
            worse.append(f"{operator} of version {version} is {row.status}, in {file.name} {before or 'missing'}: {row.reason}")
        elif row.status != before:
            print(f"{operator} of version {version} is {row.status}, in {file.name} still {before}")
    return worse


def summary(table, worse, whole):
    tried = [row for row in table if row.models or whole]
    counts = collections.Counter(row.status for row in tried)
    bad = {row.pair for row in tried if row.status not in ("right", "refused")}
    failed = max(len(bad), len(worse))
    return f"{counts['right']} passed, {failed} failed, {counts['refused']} refused"
