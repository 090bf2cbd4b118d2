"""What scripts call in device code: functions of all lanes, places in tables, updates of rows.

In: numbers of 64 bits, as scripts have them. Out: numbers, and words in memory. Invariant: whatever order waves and
lanes come in, the words are the same in the end; but for which keys find no place once a table is full.
"""

from __future__ import annotations

from luthier_py import Lane, bool_, device, f64, i64, ptr, u32, u64
from luthier_py.intrinsics import (
    active_mask,
    as_bits,
    atomic_add,
    atomic_cas,
    atomic_max,
    ballot,
    count_trailing_zeros,
    popcount,
    read_first_lane,
    read_lane,
)
from luthier_py.tools.memory_divergence import touched

from .tables import DIGIT_BITS

TOP = 1 << 63
PROBES = 64  # places where a key is looked for
NO_ROW = 0xFFFFFFFF
DIGIT = (1 << DIGIT_BITS) - 1
SCATTER = 0x9E3779B97F4A7C15  # Knuth's multiplicative hash: neighbours go far from each other


@device
def distinct(x: Lane[i64]) -> u32:
    left = active_mask()
    count = u32(0)
    while left != 0:
        left &= ~ballot(x == read_lane(x, count_trailing_zeros(left)))
        count += 1
    return count


@device
def most(x: Lane[i64]) -> u32:
    left = active_mask()
    count = u32(0)
    while left != 0:
        same = ballot(x == read_lane(x, count_trailing_zeros(left)))
        left &= ~same
        count = max(count, popcount(same))
    return count


@device
def segments(at: Lane[i64], size: u32, shift: u32) -> u32:
    """How many segments of ``1 << shift`` bytes accesses of ``size`` bytes touch, no more than two each."""
    return touched(u64(at) >> shift, (u64(at) + size - 1) >> shift)


@device
def lanes(condition: Lane[bool_]) -> u32:
    return popcount(ballot(condition))


@device
def first(x: Lane[i64]) -> i64:
    return read_first_lane(x)


@device
def isnan(x: Lane[f64]) -> Lane[bool_]:
    return x != x


@device
def isinf(x: Lane[f64]) -> Lane[bool_]:
    return abs(x) > 1.7976931348623157e308


@device
def bit_length(x: Lane[u64]) -> Lane[u32]:
    """The bit length of a number that is not negative."""
    length = u32(0)
    for step in range(6):
        width = u32(32) >> u32(step)
        if x >> width != 0:
            x = x >> width
            length += width
    return length + u32(x)


@device
def ordered(x: Lane[f64]) -> Lane[u64]:
    """Bits that are in order as the numbers are."""
    bits = as_bits(x)
    return ~bits if bits >> 63 != 0 else bits ^ u64(TOP)


@device
def row_of(keys: ptr[u64], key: Lane[i64], mask: u32) -> Lane[u32]:
    """The row of a key: the place where it is found, or a free one, which is its own from now on."""
    stored = u64(key) ^ u64(TOP)
    at = u32((stored * u64(SCATTER)) >> 40) & mask
    found = u32(NO_ROW)
    left = u32(0) if stored == 0 else u32(PROBES)
    while left != 0:
        old = atomic_cas(keys + at, u64(0), stored)
        left -= 1
        if old == 0 or old == stored:
            found = at
            left = u32(0)
        at = (at + 1) & mask
    return found


@device
def count(row: Lane[ptr[u64]]) -> None:
    atomic_add(row, u64(1))


@device
def total(row: Lane[ptr[u64]], x: Lane[i64]) -> None:
    atomic_add(row, u64(1))
    atomic_add(row + 1, u64(x))


@device
def total_float(row: Lane[ptr[u64]], x: Lane[f64]) -> None:
    """Exact: the number in digits, each added to a separate counter, which has room above for carries."""
    bits = as_bits(x)
    exponent = u32(bits >> 52) & 0x7FF
    if exponent == 0x7FF:
        atomic_add(row + (u32(1) if x != x else u32(2) + u32(bits >> 63)), u64(1))
    else:
        fraction = bits & ((1 << 52) - 1)
        number = fraction if exponent == 0 else fraction | (1 << 52)
        place = max(exponent, u32(1)) - 1
        shift = place % DIGIT_BITS
        digits = row + 4 + place // DIGIT_BITS
        low = (number << shift) & DIGIT
        middle = (number >> (DIGIT_BITS - shift)) & DIGIT
        high = number >> (2 * DIGIT_BITS - shift)
        minus = bits >> 63 != 0
        atomic_add(row, u64(1))
        atomic_add(digits, -low if minus else low)
        atomic_add(digits + 1, -middle if minus else middle)
        atomic_add(digits + 2, -high if minus else high)


@device
def greatest(row: Lane[ptr[u64]], x: Lane[i64]) -> None:
    atomic_add(row, u64(1))
    atomic_max(row + 1, u64(x) ^ u64(TOP))


@device
def least(row: Lane[ptr[u64]], x: Lane[i64]) -> None:
    atomic_add(row, u64(1))
    atomic_max(row + 1, ~(u64(x) ^ u64(TOP)))


@device
def greatest_float(row: Lane[ptr[u64]], x: Lane[f64]) -> None:
    if x != x:
        atomic_add(row + 2, u64(1))
    else:
        atomic_add(row, u64(1))
        atomic_max(row + 1, ordered(x))


@device
def least_float(row: Lane[ptr[u64]], x: Lane[f64]) -> None:
    if x != x:
        atomic_add(row + 2, u64(1))
    else:
        atomic_add(row, u64(1))
        atomic_max(row + 1, ~ordered(x))


@device
def power(row: Lane[ptr[u64]], x: Lane[i64]) -> None:
    """Bucket 0 is 0, n is 2**(n-1) up to 2**n; 63 + n the same below 0."""
    bucket = bit_length(u64(x)) if x >= 0 else 63 + bit_length(u64(-x))
    atomic_add(row + bucket, u64(1))


@device
def power_float(row: Lane[ptr[u64]], x: Lane[f64]) -> None:
    """By sign and exponent, of which there are as many as of floats; the last one has what is no number."""
    bits = as_bits(x)
    exponent = min(max(i64((bits >> 52) & 0x7FF) - 896, i64(0)), i64(255))
    bucket = i64(512) if x != x else exponent + i64(bits >> 63) * 256
    atomic_add(row + bucket, u64(1))


@device
def linear(row: Lane[ptr[u64]], x: Lane[i64], step: i64, buckets: i64) -> None:
    """The first has what is below 0, the last what is above all others."""
    bucket = min(max(x // step, i64(-1)), buckets) + 1
    atomic_add(row + bucket, u64(1))


@device
def linear_float(row: Lane[ptr[u64]], x: Lane[f64], step: f64, buckets: i64) -> None:
    """The same; behind them is what is no number."""
    scaled = x / step
    bucket = i64(0) if scaled < 0 else min(i64(scaled), buckets) + 1
    atomic_add(row + (buckets + 2 if x != x else bucket), u64(1))
