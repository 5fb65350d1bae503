"""All rows, and the drawing of one."""
import control
import edges
import elementwise
import learned
import microsoft
import moves
import near_misses
import pictures
import products
import quantised
import rowwise
import texts
import turns
from evaluate import Unfit

TABLES = {"elementwise": (elementwise, 30), "moves": (moves, 22), "rowwise": (rowwise, 14), "products": (products, 22), "quantised": (quantised, 14), "near_misses": (near_misses, 20),
          "control": (control, 4), "microsoft": (microsoft, 4), "learned": (learned, 2), "pictures": (pictures, 0), "turns": (turns, 0), "edges": (edges, 0), "texts": (texts, 0)}

LARGE = ("pictures", "turns")


def draw_row(g, focus=None):
    """Adds the nodes of a row; raises Unfit, and then the graph is as before but for operands."""
    share = 0.9 if focus in LARGE else 0.6  # others would not be as large
    others = [name for name in TABLES if focus != "edges" or name in ("elementwise", "moves", "rowwise")]
    name = focus if focus and g.rng.random() < share else g.rng.choices(others, [TABLES[name][1] for name in others])[0]
    rows = TABLES[name][0].ROWS
    row = g.rng.choices(rows, [row.weight for row in rows])[0]
    row.draw(g, g.rng.choice(row.names() or [""]))


def operators():
    """(domain, operator) of every row."""
    return {(row.domain, op) for module, _ in TABLES.values() for row in module.ROWS for op in row.names()}
