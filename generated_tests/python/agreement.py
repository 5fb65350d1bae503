"""Do two arrays agree? The bars of the drivers that compare with ONNX Runtime."""
import numpy as np


def difference(actual, expected, bar=1e-5):
    """"" if the arrays agree, or what differs."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype} {list(actual.shape)} instead of {expected.dtype} {list(expected.shape)}"
    if expected.dtype.kind != "f":
        wrong = int((actual != expected).sum())
        return f"{wrong} of {expected.size} elements differ" if wrong else ""
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        gap = np.where((a == e) | (np.isnan(a) & np.isnan(e)), 0, np.abs(a - e))
    if not np.isfinite(gap).all():
        return f"{a[~np.isfinite(gap)][0]} instead of {e[~np.isfinite(gap)][0]}"
    e = e[np.isfinite(e)]
    norm = np.linalg.norm(gap) / max(np.linalg.norm(e), 1e-30)
    worst = gap.max(initial=0) / max(np.abs(e).max(initial=0), 1e-30)
    return "" if norm < bar and worst < 10 * bar else f"relative error {norm:.2e} in norm, {worst:.2e} at worst"


def distribution_difference(actual, expected):
    """"" if two arrays of drawn numbers may have one distribution, by the largest distance of their cumulative ones
    (Kolmogorov and Smirnov): one pair in a thousand of such arrays is further apart."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype} {list(actual.shape)} instead of {expected.dtype} {list(expected.shape)}"
    a, e = (np.sort(value.astype(np.float64).ravel()) for value in (actual, expected))
    if not np.isfinite(a).all():
        return "a drawn number is not finite"
    points = np.union1d(a, e)
    below = [np.searchsorted(value, points, side="right") / value.size for value in (a, e)]
    distance = np.abs(below[0] - below[1]).max(initial=0)
    return "" if distance < 1.95 * np.sqrt(2 / max(a.size, 1)) else f"distributions are {distance:.3f} apart"
