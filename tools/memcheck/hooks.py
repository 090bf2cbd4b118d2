"""What runs before each access: whether lanes would access what they must not, reported before they do.

In: addresses, and what the launch may access: a table of allocations, and how much LDS its work-groups have. Out:
counts of lanes, and records of the first ones. Invariant: a flat address is judged by where it leads, each lane's for
itself; what leads to private memory is not judged.
"""

from __future__ import annotations

from luthier_py import Lane, bool_, channel, device, hook, ptr, u32, u64
from luthier_py.intrinsics import atomic_add, ballot, is_first_lane, is_lds, is_private, popcount, push, read_first_lane
from luthier_py.isa import Space
from luthier_py.rewrite.tool import is_outside
from luthier_py.tools.racecheck.memory import is_own, is_own_of_lane
from luthier_py.tools.racecheck.trace import FLAT as FLAT_SPACES

LDS, FLAT = Space.LDS.value, FLAT_SPACES.value


class BadAccess:
    """Lanes of a wave that would access what they must not. ``local``: those of them whose address is one of LDS, of
    which there are ``lds_bytes``."""

    site: u32
    wave: u32
    lds_bytes: u32
    lanes: u64
    local: u64
    address: Lane[u64]


@device
def misses(
    table: ptr[u64], lds_bytes: u32, at: Lane[u64], size: u32, align: u32, writes: bool_, near: Lane[bool_]
) -> Lane[bool_]:
    """Whether ``at`` is not aligned, or has not all of an element behind it that the launch may access. Where no
    allocations are known, anything else than LDS has."""
    wrong = (at & u64(align - 1)) != 0
    if near:
        wrong = wrong or u64(u32(at)) + u64(size) > u64(lds_bytes)
    elif u64(table) != 0:
        wrong = wrong or is_outside(table, at, size, writes)
    return wrong


@device
def wrong_lanes(
    table: ptr[u64], lds_bytes: u32, counts: ptr[u64], out: channel[BadAccess], site: u32, wave: u32, most: u64,
    at: Lane[u64], other: Lane[u64], size: u32, align: u32, writes: bool_, spaces: u32, elements: u32,
    passes: Lane[bool_],
) -> u64:
    """Which lanes may not access ``at``, or of two elements ``other``; ``passes``: what the range check of a buffer
    says."""
    near: Lane[bool_] = spaces == LDS
    if spaces == FLAT:
        near, passes = is_lds(at), passes and not is_private(at)
    first = misses(table, lds_bytes, at, size, align, writes, near)
    wrong = first
    if elements == 2:
        wrong = wrong or misses(table, lds_bytes, other, size, align, writes, near)
    lanes = ballot(wrong and passes)
    if lanes != 0:
        known = u64(0)
        if is_first_lane():
            known = atomic_add(counts, u64(popcount(lanes)))
        local = ballot(near)
        if read_first_lane(known) < most and wrong and passes:
            push(out, site, wave, lds_bytes, lanes, local, at if first else other)
    return lanes


@device
def judged(
    at: Lane[u64], writes: bool_, spaces: u32, passes: Lane[bool_], arguments: ptr[u32], argument_bytes: u32,
    packet: ptr[u32],
) -> Lane[bool_]:
    """Whether a lane's access is: what it reads of its own arguments is in no allocation."""
    if not writes and spaces != LDS:
        passes = passes and not is_own_of_lane(at, arguments, argument_bytes, packet)
    return passes


@hook(fold=("size", "align", "writes", "spaces", "elements"))
def check(
    table: ptr[u64], lds_bytes: u32, counts: ptr[u64], out: channel[BadAccess], site: u32, wave: u32, most: u64,
    at: Lane[u64], other: Lane[u64], size: u32, align: u32, writes: bool_, spaces: u32, elements: u32,
    passes: Lane[bool_], arguments: ptr[u32], argument_bytes: u32, packet: ptr[u32],
) -> u32:
    made = judged(at, writes, spaces, passes, arguments, argument_bytes, packet)
    return u32(wrong_lanes(table, lds_bytes, counts, out, site, wave, most, at, other, size, align, writes, spaces,
                           elements, made) != 0)


@hook(fold=("size", "align", "writes", "spaces", "elements"))
def watch(
    table: ptr[u64], lds_bytes: u32, counts: ptr[u64], out: channel[BadAccess], site: u32, wave: u32, most: u64,
    at: Lane[u64], other: Lane[u64], size: u32, align: u32, writes: bool_, spaces: u32, elements: u32,
    passes: Lane[bool_], arguments: ptr[u32], argument_bytes: u32, packet: ptr[u32],
) -> None:
    made = judged(at, writes, spaces, passes, arguments, argument_bytes, packet)
    wrong_lanes(table, lds_bytes, counts, out, site, wave, most, at, other, size, align, writes, spaces, elements,
                made)


@hook(lanes="one", fold=("size", "align", "writes"))
def watch_scalar(
    table: ptr[u64], counts: ptr[u64], out: channel[BadAccess], site: u32, wave: u32, most: u64, at: u64, size: u32,
    align: u32, writes: bool_, passes: bool_, arguments: ptr[u32], argument_bytes: u32, packet: ptr[u32],
) -> None:
    made = passes and not is_own(at, arguments, argument_bytes, packet)
    wrong_lanes(table, 0, counts, out, site, wave, most, at, at, size, align, writes, 0, 1, made)


@hook(lanes="one")
def keep(number: u32) -> u32:
    return number
