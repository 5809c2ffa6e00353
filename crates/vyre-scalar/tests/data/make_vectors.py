"""Makes vectors.txt: inputs of the elementary functions with their correctly rounded results, from MPFR.

A second opinion beside CORE-MATH: another library, another algorithm, another author. vectors.rs checks all of them.

In a directory outside the repository:

    python3 -m venv venv && venv/bin/pip install gmpy2 numpy
    venv/bin/python path/to/make_vectors.py > path/to/vectors.txt

It takes about ten minutes of CPU time: the hard-to-round inputs of the functions of one operand are found by trying all of them
in double precision. That only proposes; MPFR chooses, so the result does not depend on the machine.

Format: a line with a function's name, then a line per vector: the operands and the result as the hexadecimal bits of f32. Any
NaN is 7fc00000. Lines that start with # are comments.

Each function has the hardest inputs there are (closest to the middle between two floats), boundary and special values, and random
ones; pow, which has too many pairs to try all, hard ones from several sources. A result is computed to 400 bits and rounded here,
in integers; an exact tie is exact in 400 bits too.
"""

import random
import struct
import sys

import gmpy2
import numpy as np

gmpy2.get_context().precision = 400
gmpy2.get_context().emax = gmpy2.get_emax_max()
gmpy2.get_context().emin = gmpy2.get_emin_min()

NAN = 0x7FC00000
CANDIDATES = 900
HARDEST = 450
RANDOM = 300


def value(bits):
    return gmpy2.mpfr(struct.unpack("<f", struct.pack("<I", bits))[0])


def bits_of(number):
    """The bits of the f32 nearest to a Python float."""
    with np.errstate(over="ignore"):
        return int(np.float32(number).view(np.uint32))


def nearest(exact):
    """The bits of the f32 nearest to an mpfr, ties to even."""
    if gmpy2.is_nan(exact):
        return NAN
    sign = 0x80000000 if gmpy2.is_signed(exact) else 0
    if gmpy2.is_zero(exact):
        return sign
    if gmpy2.is_infinite(exact):
        return sign | 0x7F800000
    significand, exponent = abs(exact).as_mantissa_exp()
    significand, exponent = int(significand), int(exponent)
    # In units of the last place, which is never below 2^-149.
    last = max(significand.bit_length() + exponent - 24, -149)
    cut = last - exponent
    if cut <= 0:
        units = significand << -cut
    else:
        units, rest = significand >> cut, significand & ((1 << cut) - 1)
        half = 1 << (cut - 1)
        units += rest > half or (rest == half and units & 1)
    # The leading bit of a normal number adds one to the exponent field, and so does a carry.
    return sign | min(((last + 149) << 23) + units, 0x7F800000)


def distance_from_tie(exact):
    """In units of the last place of a normal f32; 1 where there is none."""
    if not gmpy2.is_finite(exact) or gmpy2.is_zero(exact):
        return 1
    significand, exponent = abs(exact).as_mantissa_exp()
    last = max(int(significand).bit_length() + int(exponent) - 24, -149)
    scaled = abs(exact) * gmpy2.exp2(-last)
    return abs(scaled - gmpy2.floor(scaled) - gmpy2.mpfr("0.5"))


# Double precision searches this far from a tie, in 2^-29 units of the last place of an f32, which is the last place of a double.
REACH = 1 << 11


def closest(inputs, results):
    """The inputs whose double precision results are closest to a tie, each after its distance."""
    # Below the last place of an f32 a double has 29 bits; at a tie the first is set.
    rest = results.view(np.uint64) & np.uint64((1 << 29) - 1)
    near = np.flatnonzero((rest - np.uint64((1 << 28) - REACH)) < np.uint64(2 * REACH))
    magnitude, rest = np.abs(results[near]), rest[near]
    normal = (magnitude > 2.0**-126) & (magnitude < 2.0**128)
    inputs, distance = inputs[near][normal], np.abs(rest[normal].astype(np.int64) - (1 << 28))
    order = np.argsort(distance, kind="stable")[:CANDIDATES]
    return list(zip(distance[order].tolist(), inputs[order].tolist()))


def hardest(exact, found, count):
    """The `count` hardest of those that `closest` found, as MPFR tells."""
    ranked = sorted((distance_from_tie(exact(bits)), bits) for _, bits in found)[:count]
    # Doubles are off by a few last places. What they left out is further from a tie than what is taken, or all are ties.
    reach = REACH if len(found) < CANDIDATES else found[-1][0]
    assert reach == 0 or ranked[-1][0] * 2**29 + 8 < reach, (float(ranked[-1][0] * 2**29), reach)
    return [bits for _, bits in ranked]


UNARY = {
    # MPFR's function, double precision, whether negative inputs are worth a search of their own.
    "exp": (gmpy2.exp, np.exp, True),
    "exp2": (gmpy2.exp2, np.exp2, True),
    "log": (gmpy2.log, np.log, False),
    "log2": (gmpy2.log2, np.log2, False),
    "sin": (gmpy2.sin, np.sin, False),
    "cos": (gmpy2.cos, np.cos, False),
    "tan": (gmpy2.tan, np.tan, False),
    "tanh": (gmpy2.tanh, np.tanh, False),
    "atan": (gmpy2.atan, np.arctan, False),
    "rsqrt": (gmpy2.rec_sqrt, lambda x: 1 / np.sqrt(x), False),
}


def hardest_of_all(exact, double, both_signs):
    found = []
    block = 1 << 22
    for sign in [0, 0x80000000] if both_signs else [0]:
        for start in range(sign, sign + 0x7F800000, block):
            inputs = np.arange(start, min(start + block, sign + 0x7F800000), dtype=np.uint64).astype(np.uint32)
            with np.errstate(all="ignore"):
                results = double(inputs.view(np.float32).astype(np.float64))
            found += closest(inputs, results)
            found = sorted(found)[:CANDIDATES]
    return hardest(lambda bits: exact(value(bits)), found, HARDEST)


def boundaries():
    centers = [field << 23 for field in range(0, 256, 5)] + [1 << 23, 126 << 23, 127 << 23, 128 << 23, 254 << 23, 255 << 23]
    pi, ln2 = 3.141592653589793, 0.6931471805599453
    centers += [bits_of(k * pi / 4) for k in [1, 2, 3, 4, 6, 8, 100, 10**6, 10**12, 10**30]]
    centers += [bits_of(x) for x in [ln2, 88.72284, 87.33655, 103.97208, 103.27893, 126, 149, 150, 9.010914, 2**-24, 2**-25]]
    inputs = {0x7FC00000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000}
    for center in centers:
        for near in [-1, 0, 1]:
            bits = min(max(center + near, 0), 0x7F800000)
            inputs |= {bits, bits | 0x80000000}
    return sorted(inputs)


def unary(name):
    exact, double, both_signs = UNARY[name]
    rng = random.Random(name)
    inputs = hardest_of_all(exact, double, both_signs)
    if not both_signs:
        inputs += [bits | 0x80000000 for bits in inputs[:100]]
    inputs += boundaries()
    inputs += [rng.getrandbits(32) for _ in range(RANDOM // 2)]
    # Where results are neither trivial nor out of range.
    inputs += [rng.getrandbits(1) << 31 | rng.randrange(0x3A000000, 0x43000000) for _ in range(RANDOM // 2)]
    inputs = [NAN if bits & 0x7FFFFFFF > 0x7F800000 else bits for bits in inputs]
    for bits in dict.fromkeys(inputs):
        operand = value(bits)
        # MPFR's conventions where IEEE 754-2019 has one of its own: 1/sqrt(-0) is -infinity.
        result = 0xFF800000 if name == "rsqrt" and bits == 0x80000000 else nearest(exact(operand))
        print(f"{bits:08x} {result:08x}")


# Found by the search in pow.rs: closer than 2^-36 units of the last place to a tie.
SEARCHED = """
4688e651 40006965
461bd0cc 4013f56f
30a95914 3fd30fab
41e95380 402362a6
072a0639 bf379140
389d7682 bf95c337
"""

# Listed by CORE-MATH (src/binary32/pow/powf.wc) as the hardest of its search in some ranges of y: next to a tie, down to 2^-52
# units of the last place, or next to a float; and three of its regressions.
LISTED = """
0x1.767d72p-31,0x1.002808p+0 0x1.0a75p+37,0x1.002accp+0 0x1.df833ep-56,0x1.00cae4p+0 0x1.f62f72p-58,0x1.0119ep+0
0x1.bc784cp+57,0x1.022be6p+0 0x1.2e9178p-119,0x1.023178p+0 0x1.e47e52p-36,0x1.0237eep+0 0x1.1716ecp+78,0x1.02aa0ap+0
0x1.20e9d8p-26,0x1.031f06p+0 0x1.9490dcp+68,0x1.0439bp+0 0x1.aa25fp-122,0x1.04d8e4p+0 0x1.908ccp-99,0x1.04f3e4p+0
0x1.9b35c6p+6,0x1.053cc8p+0 0x1.c347d6p-59,0x1.055618p+0 0x1.098cbcp-102,0x1.05f7dep+0 0x1.4afb2ap-40,0x1.063198p+0
0x1.e695eap-26,0x1.06a6a2p+0 0x1.f245ep+109,0x1.0791b6p+0 0x1.293686p-18,0x1.08594ep+0 0x1.5bc2b6p+34,0x1.08e49p+0
0x1.79395cp+69,0x1.0980c4p+0 0x1.3e29bep+3,0x1.09eb9ap+0 0x1.7c9318p-112,0x1.0a268ap+0 0x1.2ccb16p-12,0x1.0b9bdp+0
0x1.a8aa04p+31,0x1.0bb31cp+0 0x1.2ce352p-107,0x1.0cd3f8p+0 0x1.40d3dap+33,0x1.0cd484p+0 0x1.41c9f6p+24,0x1.0cf972p+0
0x1.d348eap+93,0x1.105df8p+0 0x1.d6a9eap-89,0x1.1249fcp+0 0x1.49b684p-69,0x1.1509f6p+0 0x1.8b178cp+69,0x1.159f0ap+0
0x1.58e756p+58,0x1.16d3fp+0 0x1.3dfbbep+97,0x1.16fb68p+0 0x1.fe9e08p+64,0x1.1709cap+0 0x1.545382p-57,0x1.176758p+0
0x1.267e7p-18,0x1.176c6p+0 0x1.d8c0f6p+8,0x1.17e80ep+0 0x1.e45312p-84,0x1.1977f6p+0 0x1.20cba8p-73,0x1.1af204p+0
0x1.cc53e8p-96,0x1.1bb752p+0 0x1.8b4c76p+26,0x1.1d14fep+0 0x1.3e4b38p+35,0x1.1dc21ap+0 0x1.89abdep-68,0x1.1e783ap+0
0x1.95c6c2p+113,0x1.1f771cp+0 0x1.6e7bbcp-15,0x1.20bb46p+0 0x1.e8ab78p+63,0x1.214b36p+0 0x1.78c6eep+93,0x1.22f03p+0
0x1.5079d4p+106,0x1.24861cp+0 0x1.147798p+75,0x1.2618d6p+0 0x1.060fc4p+91,0x1.262eeap+0 0x1.c1243cp-1,0x1.26ef18p+0
0x1.4ec09p-72,0x1.27766ep+0 0x1.f4ff26p-81,0x1.2a584p+0 0x1.dc62aap-3,0x1.2a7a1ep+0 0x1.731524p+80,0x1.2c788ap+0
0x1.8029bep+15,0x1.2d8c12p+0 0x1.a1d14ep-83,0x1.2ea14cp+0 0x1.14073ap-4,0x1.301934p+0 0x1.cc0b74p+14,0x1.3076dep+0
0x1.3cd062p-107,0x1.326734p+0 0x1.fd12b4p-1,-0x1.d0b058p+13 0x1.8fdb0ep-21,0x1.a31bp-102 0x1.0dfe0ep-56,-0x1.1c882ep-107
"""

# Bases near 1 with results near the ends of the range, where pxfm 0.1.30 is wrong.
MISSED = [
    (0x3F7F4B5E, 0xC68F3822),
    (0x3F7F3A60, 0x46B8D3D1),
    (0x3F7F98C2, 0xC71A8CCC),
    (0x3F805E83, 0x46A34D51),
    (0x3F7F4E38, 0x46B9DA76),
]


def pow_pairs():
    rng = random.Random("pow")
    pairs = [tuple(int(word, 16) for word in line.split()) for line in SEARCHED.split("\n") if line]
    pairs += [tuple(bits_of(float.fromhex(part)) for part in pair.split(",")) for pair in LISTED.split()]
    pairs += MISSED
    # For exponents that programs use, the hardest of all significands.
    mantissas = np.arange(0x3F800000, 0x40800000, dtype=np.uint64).astype(np.uint32)
    exponents = [2, 3, 4, 5, 6, 7, 10, -1, -2, -3, 0.5, 1.5, 2.5, -0.5, -1.5, 0.25, 0.75]
    exponents += [1 / 3, 2 / 3, 0.1, 1.1, 2.2, 2.4, 1 / 2.4, 3.14159]
    for y in map(bits_of, exponents):
        with np.errstate(all="ignore"):
            results = np.power(mantissas.view(np.float32).astype(np.float64), float(value(y)))
        found = closest(mantissas, results)
        pairs += [(x, y) for x in hardest(lambda x: value(x) ** value(y), found, 12)]
    # Ties and other exact powers: an odd number to an integer over a power of two, times a power of two.
    roots = [
        [3, 5, 7, 9, 11, 15, 27, 33, 63, 255, 257, 4095, 4097, 5793],
        [3, 5, 7, 45, 181, 1023, 4095],
        [3, 5, 7, 33, 63],
        [3, 5, 7],
    ]
    for halvings in range(4):
        for root in roots[halvings]:
            for k in range(1, 16, 1 if halvings == 0 else 2):
                if root**k < 1 << 26:
                    scale = rng.choice([-8, -2, 0, 1, 4])
                    x = root ** (1 << halvings) * 2.0 ** (scale << halvings)
                    pairs.append((bits_of(x), bits_of(k / (1 << halvings))))
    for e in [-149, -126, -64, -5, -2, -1, 1, 2, 7, 64, 127]:
        for y in [-150, -149, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 2.5, 3, 149 / 126, 150, 0.375]:
            pairs.append((bits_of(2.0**e), bits_of(y)))
    special = [0, 1, 0x007FFFFF, 0x00800000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3F000000, 0x40000000, 0x40400000]
    special += [0x4B7FFFFF, 0x4B800000, 0x4B800001, 0x7F7FFFFF, 0x7F800000, NAN]
    special += [bits | 0x80000000 for bits in special if bits != NAN]
    pairs += [(x, y) for x in special for y in special if rng.random() < 0.4 or NAN in (x, y) or x & 0x7FFFFFFF == 0]
    # Random: results anywhere in range, near its ends, near 1.
    targets = [
        lambda: rng.uniform(-151, 129),
        lambda: rng.choice([128, -126, -149, -150]) + rng.uniform(-1e-5, 1e-5),
        lambda: rng.uniform(-1e-6, 1e-6),
    ]
    for target in targets:
        for _ in range(RANDOM // 3):
            x = rng.randrange(1, 0x7F800000)
            if x != 0x3F800000:
                pairs.append((x, bits_of(target() / float(gmpy2.log2(value(x))))))
    pairs += [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(60)]
    return [tuple(NAN if bits & 0x7FFFFFFF > 0x7F800000 else bits for bits in pair) for pair in pairs]


def power(x, y):
    x, y = value(x), value(y)
    # MPFR would take a while for what is far out of range.
    if gmpy2.is_finite(x) and gmpy2.is_finite(y) and x != 0 and abs(x) != 1 and abs(y * gmpy2.log2(abs(x))) > 200:
        negative = gmpy2.is_signed(x)
        if negative and not gmpy2.is_integer(y):
            return NAN
        sign = 0x80000000 if negative and int(y) & 1 else 0
        return sign | (0x7F800000 if (y > 0) == (abs(x) > 1) else 0)
    return nearest(x**y)


print("# Made by make_vectors.py, where the format is described.")
for name in UNARY:
    print(name)
    unary(name)
    print(name, file=sys.stderr)
print("pow")
for x, y in dict.fromkeys(pow_pairs()):
    print(f"{x:08x} {y:08x} {power(x, y):08x}")
