"""What runs on the device: looks at the bits of a result and of its operands, counts, and keeps the first example.

In: numbers of any format as bits, and the infinity of each format, from which sign, exponent and mantissa follow. Out:
counts by kind. Invariant: nothing is computed in floating point, so no mode of the kernel matters.
"""

from __future__ import annotations

from dataclasses import dataclass

from luthier_py import Lane, bool_, device, hook, i32, ptr, u32, u64
from luthier_py.intrinsics import atomic_add, count_trailing_zeros, is_first_lane, lane_id

KINDS = ("nan", "nan_passed", "infinity", "division_by_zero", "infinity_passed", "denormal", "denormal_passed",
         "cancellation", "nan_of_unknown", "infinity_of_unknown", "denormal_of_unknown", "denormal_lost")
"""What is counted, for each result one at most, and for each dword of operands whose denormals are lost. ``passed``: an
operand is such, too. ``of_unknown``: of operands that cannot be looked at. Hooks have their numbers; one that is passed
is the next one's."""
(NAN, _, INFINITY, DIVISION_BY_ZERO, INFINITY_PASSED, DENORMAL, _, CANCELLATION, NAN_OF_UNKNOWN, INFINITY_OF_UNKNOWN,
 DENORMAL_OF_UNKNOWN, DENORMAL_LOST) = range(len(KINDS))
NOTHING = len(KINDS)
KEPT = 2  # dwords of a lane that an instruction overwrites


@dataclass
class Example:
    """The first result of a kind that a lane came to: what the operands and the result were."""

    a: u64
    b: u64
    c: u64
    result: u64
    wave: u32
    lane: u32


@hook(fold=("at",))
def keep(memory: ptr[u32], wave: u32, at: u32, value: Lane[u32]) -> None:
    memory[(wave * 64 + lane_id()) * KEPT + at] = value


@device
def kept(memory: ptr[u32], wave: u32, at: u32) -> Lane[u32]:
    return memory[(wave * 64 + lane_id()) * KEPT + at]


@device
def whole(x: Lane[u32]) -> Lane[u64]:
    return u64(x)


@device
def low_half(x: Lane[u32]) -> Lane[u64]:
    return u64(x & 0xFFFF)


@device
def high_half(x: Lane[u32]) -> Lane[u64]:
    return u64(x >> 16)


@device
def pair(low: Lane[u32], high: Lane[u32]) -> Lane[u64]:
    return u64(low) | u64(high) << 32


@device
def lowest(infinity: u32) -> u32:
    """The least number that is not denormal."""
    return infinity & (0 - infinity)


@device
def magnitude(x: Lane[u64], infinity: u32) -> Lane[u32]:
    """Bits without the sign; of a double those of its upper half, the last one set if there are any in the lower."""
    bits = u32(x)
    if infinity == 0x7FF00000:
        bits = u32(x >> 32) | u32(u32(x) != 0)
    return bits & (infinity | (lowest(infinity) - 1))


@device
def is_nan(x: Lane[u32], infinity: u32) -> Lane[u32]:
    return u32(x > infinity)


@device
def is_infinite(x: Lane[u32], infinity: u32) -> Lane[u32]:
    return u32(x == infinity) if infinity != 0 else u32(0)


@device
def is_denormal(x: Lane[u32], infinity: u32) -> Lane[u32]:
    return u32(x != 0) & u32(x < lowest(infinity))


@device
def is_pole(x: Lane[u32], infinity: u32, alone: bool_) -> Lane[bool_]:
    """Reciprocals, roots and logarithms take denormals for 0."""
    return x < lowest(infinity) if alone else x == 0


@device
def exponent(x: Lane[u32], infinity: u32) -> Lane[i32]:
    shift = count_trailing_zeros(infinity)
    return i32(-100000) if x == 0 else i32(x >> shift) - i32((infinity >> shift) >> 1)


@device
def term(which: u32, a: Lane[i32], b: Lane[i32], c: Lane[i32]) -> Lane[i32]:
    """The exponent of a product, or one less."""
    found = i32(0)
    if which & 1 != 0:
        found += a
    if which & 2 != 0:
        found += b
    if which & 4 != 0:
        found += c
    return found


@device
def special(x: Lane[u32], y: Lane[u32], z: Lane[u32], r: Lane[u32], of_a: u32, of_b: u32, of_c: u32, of_result: u32,
            pole: bool_) -> Lane[u32]:
    """The kind of a result that is NaN, infinite or denormal."""
    if r > of_result:
        nan = is_nan(x, of_a) | is_nan(y, of_b) | is_nan(z, of_c)
        return NAN + nan if of_a != 0 else u32(NAN_OF_UNKNOWN)
    if r == of_result:
        infinite = is_infinite(x, of_a) | is_infinite(y, of_b) | is_infinite(z, of_c)
        made = u32(DIVISION_BY_ZERO) if pole and is_pole(x, of_a, of_b == 0) else u32(INFINITY)
        return u32(INFINITY_OF_UNKNOWN) if of_a == 0 else u32(INFINITY_PASSED) if infinite != 0 else made
    denormal = is_denormal(x, of_a) | is_denormal(y, of_b) | is_denormal(z, of_c)
    return DENORMAL + denormal if of_a != 0 else u32(DENORMAL_OF_UNKNOWN)


@hook(fold=("of_a", "of_b", "of_c", "of_result", "terms", "lost", "pole", "scalar"))
def check(
    counts: ptr[u64], examples: ptr[Example], wave: u32, a: Lane[u64], b: Lane[u64], c: Lane[u64], result: Lane[u64],
    of_a: u32, of_b: u32, of_c: u32, of_result: u32, terms: u32, lost: i32, pole: bool_, scalar: bool_,
) -> None:
    """``of_``: the infinity of each number's format, 0 where there is none. ``terms``: three bits for each, which
    operands it is the product of; ``lost``: bits. ``pole``: whether an infinity may be exact."""
    x, y, z, r = magnitude(a, of_a), magnitude(b, of_b), magnitude(c, of_c), magnitude(result, of_result)
    least, kind = lowest(of_result), u32(NOTHING)
    if r - least >= of_result - least:
        if r != 0:
            kind = special(x, y, z, r, of_a, of_b, of_c, of_result, pole)
    elif terms != 0:
        at, bt, ct = exponent(x, of_a), exponent(y, of_b), exponent(z, of_c)
        largest = max(term(terms & 7, at, bt, ct), term(terms >> 3, at, bt, ct))
        if largest - exponent(r, of_result) >= lost:
            denormal = is_denormal(x, of_a) | is_denormal(y, of_b) | is_denormal(z, of_c)
            kind = u32(CANCELLATION) if denormal == 0 else u32(NOTHING)
    if kind != NOTHING and (not scalar or is_first_lane()):
        if atomic_add(counts + kind, u64(1)) == 0:
            examples[kind] = Example(a, b, c, result, wave, lane_id())


@hook(fold=("infinity",))
def lose(counts: ptr[u64], examples: ptr[Example], wave: u32, dword: Lane[u64], infinity: u32) -> None:
    """Two numbers of 16 bits, of which the instruction takes denormals as zeros."""
    low, high = dword & 0xFFFF, dword >> 16
    in_low = is_denormal(magnitude(low, infinity), infinity)
    if in_low | is_denormal(magnitude(high, infinity), infinity) != 0:
        if atomic_add(counts + DENORMAL_LOST, u64(1)) == 0:
            lost = low if in_low != 0 else high
            examples[DENORMAL_LOST] = Example(u64(0), u64(0), u64(0), lost, wave, lane_id())
