"""What `push` does before it writes: numbers for records, and room for them, as `rewrite/tool/records/ring` says."""

from __future__ import annotations

from luthier_py.rewrite.tool import Lane, device, ptr, u32, u64
from luthier_py.rewrite.tool.records.ring import DROPPED, RESERVED, SEEN

from .atomic_add import atomic_add
from .atomic_cas import atomic_cas
from .atomic_load import atomic_load
from .atomic_max import atomic_max
from .is_first_lane import is_first_lane
from .load_acquire import load_acquire
from .pause import pause
from .read_first_lane import read_first_lane


@device
def taken_until(head: ptr[u64], ring: ptr[u64], least: u64, waits: u32) -> u64:
    """Records that the host has taken: ``least`` at least, as far as they are waited for."""
    taken: u64 = load_acquire(ring)
    while taken < least and waits != 0:
        pause()
        taken = load_acquire(ring)
    if is_first_lane():
        atomic_max(head + SEEN, taken)
    return taken


@device
def reserve(
    head: ptr[u64], ring: ptr[u64], count: u32, capacity: u64, drops: u64, is_first: Lane[u32], below: Lane[u32]
) -> tuple[u32, Lane[u32]]:
    """The first of ``count`` numbers, its low half, and the free slot of this lane: ``below`` lanes are before
    it. Slots count from 1; that of records that are dropped is 0.

    ``capacity`` more than ``seen`` is where the numbers end whose slots are known to be free: all is counted from
    there on, so that nothing falls below 0. ``seen`` only grows: read early it says less, not more.
    """
    first, given = u64(0), u32(1)
    seen: u64 = atomic_load(head + SEEN)
    if drops == 0:
        mine = u64(0)
        if is_first != 0:
            mine = atomic_add(head + RESERVED, u64(count))
        first = read_first_lane(mine)
        if first + count > seen + capacity:
            taken_until(head, ring, first + count - capacity, 1)
    else:
        first = atomic_load(head + RESERVED)
        trying = u32(1)
        while trying != 0:
            end = first + count
            if end > seen + capacity:
                seen = taken_until(head, ring, end - capacity, 0)
            if end > seen + capacity:
                trying = u32(0)
                given = u32(0)
            else:
                now = u64(0)
                if is_first != 0:
                    now = atomic_cas(head + RESERVED, first, end)
                before = read_first_lane(now)
                trying = u32(before != first)
                first = before
        if given == 0:
            if is_first != 0:
                atomic_add(head + DROPPED, u64(count))
    place: Lane[u32] = u32(0)
    if given != 0:
        place = ((u32(first) + below) & u32(capacity - 1)) + 1
    return u32(first), place
