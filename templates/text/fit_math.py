# SPDX-License-Identifier: 0BSD
"""Derives the coefficients of tc_math.h: minimax fits by the Remez exchange, in relative error.

    python3 fit_math.py        (needs mpmath)

Prints each fit's coefficients, lowest power first, rounded to float, and the relative error of the fit before and after
that rounding (an ulp of a float is 6e-8 to 1.2e-7 of its value). Nothing else is used to build or run emitted code.
"""

import struct

from mpmath import asin, atan, cos, erf, exp, linspace, log, lu_solve, matrix, mp, mpf, pi, sin, sqrt, tanh

mp.dps = 50


def as_float(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def horner(coefficients, x):
    value = mpf(0)
    for c in reversed(coefficients):
        value = value * x + c
    return value


def least_squares(known, p_terms, q_terms, rounds=120):
    """p and q that nearly minimise the largest error on the grid: least squares, linear once q is known in the weights,
    each point's weight growing with its error (Lawson)."""
    n = p_terms + q_terms
    q = [mpf(1)]
    lawson = [mpf(1)] * len(known)
    for _ in range(rounds):
        a, b = matrix(n, n), matrix(n, 1)
        for (x, fx, wx), l in zip(known, lawson):
            w = l * (wx / horner(q, x)) ** 2
            row = [x**j for j in range(p_terms)] + [-fx * x ** (j + 1) for j in range(q_terms)]
            for i in range(n):
                b[i] += w * row[i] * fx
                for j in range(n):
                    a[i, j] += w * row[i] * row[j]
        s = lu_solve(a, b)
        p, q = [s[i] for i in range(p_terms)], [mpf(1)] + [s[p_terms + i] for i in range(q_terms)]
        e = [abs((horner(p, x) / horner(q, x) - fx) * wx) for x, fx, wx in known]
        total = sum(l * v for l, v in zip(lawson, e))
        lawson = [len(known) * l * v / total for l, v in zip(lawson, e)]
    return p, q


def peaks_of(known, p, q):
    """(error, x) where the error is largest, for each run of one sign."""
    peaks = []
    for x, fx, wx in known:
        e = (horner(p, x) / horner(q, x) - fx) * wx
        if peaks and (peaks[-1][0] > 0) == (e > 0):
            if abs(e) > abs(peaks[-1][0]):
                peaks[-1] = (e, x)
        else:
            peaks.append((e, x))
    return peaks


def remez(f, weight, low, high, p_terms, grid=1501):
    """The polynomial p with p_terms terms that is nearest to f on [low, high] in the largest (p - f) * weight."""
    nodes = [(low + high) / 2 - (high - low) / 2 * cos(pi * (2 * k + 1) / (2 * p_terms + 2)) for k in range(p_terms + 1)]
    grid_x = [(low + high) / 2 - (high - low) / 2 * cos(pi * k / grid) for k in range(1, grid)]
    known = [(x, f(x), weight(x)) for x in grid_x]
    for _ in range(40):
        a, b = matrix(p_terms + 1, p_terms + 1), matrix(p_terms + 1, 1)
        for i, x in enumerate(nodes):
            for j in range(p_terms):
                a[i, j] = x**j
            a[i, p_terms] = (-1) ** i / weight(x)
            b[i] = f(x)
        s = lu_solve(a, b)
        p, level = [s[i] for i in range(p_terms)], abs(s[p_terms])
        peaks = peaks_of(known, p, [mpf(1)])
        while len(peaks) > p_terms + 1:
            peaks.pop(0 if abs(peaks[0][0]) < abs(peaks[-1][0]) else -1)
        nodes = [x for _, x in peaks]
        if max(abs(e) for e, _ in peaks) < level * mpf("1.01"):
            break
    return p, [mpf(1)]


def quotient(f, weight, low, high, p_terms, q_terms, grid=301):
    """p / q near the best one for f on [low, high] in the largest (p / q - f) * weight; for functions of x^2."""
    grid_x = [low + (high - low) * ((1 - cos(pi * k / grid)) / 2) ** 2 for k in range(1, grid)]
    return least_squares([(x, f(x), weight(x)) for x in grid_x], p_terms, q_terms)


def report(name, f, weight, low, high, p_terms, q_terms=0):
    low, high = mpf(low), mpf(high)
    p, q = quotient(f, weight, low, high, p_terms, q_terms) if q_terms else remez(f, weight, low, high, p_terms)
    pf, qf = [as_float(c) for c in p], [as_float(c) for c in q]
    points = [low + (high - low) * (x**2 if q_terms else x) for x in linspace(0, 1, 3000)[1:]]
    fitted, rounded = (max(abs((horner(a, x) / horner(b, x) - f(x)) * weight(x)) for x in points) for a, b in ((p, q), (pf, qf)))
    print(f"{name}: error {float(fitted):.2e}, with float coefficients {float(rounded):.2e}")
    print("  p:", ", ".join(f"{c:.9g}f" for c in pf))
    if q_terms:
        print("  q:", ", ".join(f"{c:.9g}f" for c in qf))


def main():
    half_ln2 = log(2) / 2 * mpf("1.001")
    # exp(r) = 1 + r + r^2 p(r)
    report("exp", lambda r: (exp(r) - 1 - r) / r**2, lambda r: r**2 / exp(r), -half_ln2, half_ln2, 5)
    # log(1 + f) = f - f^2 / 2 + f^3 p(f)
    report("log", lambda f: (log(1 + f) - f + f**2 / 2) / f**3, lambda f: f**3 / log(1 + f), sqrt(mpf("0.5")) - 1, sqrt(mpf(2)) - 1, 9)
    # tanh(x) = x p(x^2) / q(x^2); 1 in float from 9.011 on
    report("tanh", lambda t: tanh(sqrt(t)) / sqrt(t), lambda t: sqrt(t) / tanh(sqrt(t)), mpf(10) ** -8, mpf("9.02") ** 2, 5, 4)
    # erf(x) = x p(x^2) / q(x^2); 1 in float from 3.92 on
    report("erf", lambda t: erf(sqrt(t)) / sqrt(t), lambda t: sqrt(t) / erf(sqrt(t)), mpf(10) ** -8, mpf("3.93") ** 2, 6, 5)
    # sin(r) = r + r^3 p(r^2), cos(r) = 1 - r^2 / 2 + r^4 p(r^2)
    quarter = (pi / 4 * mpf("1.001")) ** 2
    report("sin", lambda t: (sin(sqrt(t)) / sqrt(t) - 1) / t, lambda t: t * sqrt(t) / sin(sqrt(t)), mpf(10) ** -6, quarter, 3)
    report("cos", lambda t: (cos(sqrt(t)) - 1 + t / 2) / t**2, lambda t: t**2 / cos(sqrt(t)), mpf(10) ** -6, quarter, 3)
    # atan(u) = u + u^3 p(u^2) up to 1, asin(u) = u + u^3 p(u^2) up to 1/2
    report("atan", lambda t: (atan(sqrt(t)) / sqrt(t) - 1) / t, lambda t: t * sqrt(t) / atan(sqrt(t)), mpf(10) ** -6, 1, 9)
    report("asin", lambda t: (asin(sqrt(t)) / sqrt(t) - 1) / t, lambda t: t * sqrt(t) / asin(sqrt(t)), mpf(10) ** -6, mpf("0.25"), 5)
    split("ln2", log(2), [16])
    split("pi/2", pi / 2, [11, 11, 11])
    split("pi/2", pi / 2, [24])
    split("pi", pi, [24])


def split(name, value, bits):
    """value as a sum of floats: the leading ones of few bits, so that their product with a small integer is exact."""
    parts = []
    for b in bits:
        scale = mpf(2) ** (b - 1 - int(mp.floor(log(abs(value), 2))))
        part = mp.nint(value * scale) / scale
        parts.append(part)
        value -= part
    parts.append(value)
    print(f"{name}:", " + ".join(f"{as_float(c):.9g}f" for c in parts))


if __name__ == "__main__":
    main()
