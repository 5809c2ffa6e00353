"""Makes the coefficients of the elementary functions: polynomials whose largest relative error is the smallest.

    python3 -m venv venv && venv/bin/pip install mpmath && venv/bin/python minimax.py

It prints each polynomial's bits and the base-2 logarithm of its error, coefficients rounded to f64, and takes half a minute.
"""

import struct
from mpmath import atan, cos, exp, expm1, log, log1p, lu_solve, matrix, mp, mpf, pi, sign, sin

mp.dps = 50


def minimax(f, fixed, factor, variable, count, low, high):
    """fixed(x) + factor(x) (c0 + c1 v + c2 v^2 + ...), v = variable(x), next to f(x): the exchange algorithm of Remez."""
    at = lambda n, of: (low + high) / 2 - (high - low) / 2 * cos(pi * n / of)
    points = [at(n, count) for n in range(count + 1)]
    if low == 0:
        points[0] = high / 10**6
    grid = [x for x in [at(n, 1200) for n in range(1201)] if abs(x) > high / 10**9]
    known = [(x, f(x), fixed(x), factor(x), variable(x)) for x in grid]
    for _ in range(30):
        left, right = matrix(count + 1, count + 1), matrix(count + 1, 1)
        for row, x in enumerate(points):
            for n in range(count):
                left[row, n] = factor(x) * variable(x) ** n / f(x)
            left[row, count] = (-1) ** row
            right[row] = 1 - fixed(x) / f(x)
        *coefficients, level = lu_solve(left, right)
        errors = [(x, error(coefficients, *rest)) for x, *rest in known]
        extremes = []
        for x, e in errors:
            if not extremes or sign(extremes[-1][1]) != sign(e):
                extremes.append((x, e))
            elif abs(e) > abs(extremes[-1][1]):
                extremes[-1] = (x, e)
        while len(extremes) > count + 1:
            extremes.pop(0 if abs(extremes[0][1]) < abs(extremes[-1][1]) else -1)
        points = [x for x, _ in extremes]
        if max(abs(e) for _, e in errors) < 1.001 * abs(level):
            break
    rounded = [mpf(float(c)) for c in coefficients]
    return rounded, max(abs(error(rounded, *rest)) for _, *rest in known)


def error(coefficients, f, fixed, factor, variable):
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * variable + c
    return (fixed + factor * total) / f - 1


one, zero, x1, x2, x3 = lambda x: mpf(1), lambda x: mpf(0), lambda x: x, lambda x: x * x, lambda x: x**3
ln2, slack = log(2), 1 + mpf(2) ** -20
log_low, log_high = mpf(-59) / 1000, mpf(1) / 16
WANTED = [
    ("EXP", exp, zero, one, x1, 10, -ln2 / 2 * slack, ln2 / 2 * slack),
    ("EXP_2", lambda x: exp(x * ln2), zero, one, x1, 10, mpf(-1) / 2, mpf(1) / 2),
    ("EXP_MINUS_1, before it is scaled", expm1, zero, x1, x1, 9, -ln2 / 2 * slack, ln2 / 2 * slack),
    ("LOG", log1p, zero, x1, x1, 9, log_low, log_high),
    ("LOG_2", lambda x: log1p(x) / ln2, zero, x1, x1, 9, log_low, log_high),
    ("LONG_LOG_2", lambda x: log1p(x) / ln2, zero, x1, x1, 11, log_low, log_high),
    ("SINE", sin, x1, x3, x2, 6, mpf(0), pi / 2 * slack),
    ("SHORT_SINE", sin, x1, x3, x2, 5, mpf(0), pi / 4 * slack),
    ("SHORT_COSINE", cos, one, x2, x2, 6, mpf(0), pi / 4 * slack),
    ("ARC_TANGENT", atan, x1, x3, x2, 15, mpf(0), mpf(1)),
]
for name, *problem in WANTED:
    coefficients, largest = minimax(*problem)
    print(f"{name}: 2^{float(log(largest, 2)):.2f}")
    for c in coefficients:
        print(f"    {struct.unpack('<Q', struct.pack('<d', float(c)))[0]:#018x}")
