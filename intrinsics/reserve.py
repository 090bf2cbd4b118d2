"""What `push` does before it writes: numbers for records, and room for them, as `luthier_py.tool.ring` says."""

from __future__ import annotations

from luthier_py.tool import Lane, device, ptr, u32, u64
from luthier_py.tool.ring import CAPACITY, DROPPED, DROPS, RESERVED, RING, SEEN, SLOTS_AT

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
    taken: u64 = atomic_load(head + SEEN)
    if taken < least:
        taken = load_acquire(ring)
        while taken < least and waits != 0:
            pause()
            taken = load_acquire(ring)
        if is_first_lane():
            atomic_max(head + SEEN, taken)
    return taken


@device
def reserve(cell: ptr[ptr[ptr[u64]]], count: u32) -> tuple[u64, u32]:
    """The first of ``count`` numbers, whose slots are free; and whether they were given: else the records are dropped.

    A number plus 1 minus the capacity is how many records must have been taken before its slot is free: all is counted
    from the capacity on, so that nothing falls below 0.
    """
    words, head = cell[0], ptr[u64](u64(cell[0]))
    ring, capacity = words[RING], head[CAPACITY]
    first, given = u64(0), u32(1)
    if head[DROPS] == 0:
        mine = u64(0)
        if is_first_lane():
            mine = atomic_add(head + RESERVED, u64(count))
        first = read_first_lane(mine)
        end = first + count
        if end > capacity:
            taken_until(head, ring, end - capacity, 1)
    else:
        first = atomic_load(head + RESERVED)
        trying = u32(1)
        while trying != 0:
            end = first + count
            least = u64(0)
            if end > capacity:
                least = end - capacity
            if taken_until(head, ring, least, 0) < least:
                trying = u32(0)
                given = u32(0)
            else:
                seen = u64(0)
                if is_first_lane():
                    seen = atomic_cas(head + RESERVED, first, end)
                before = read_first_lane(seen)
                trying = u32(before != first)
                first = before
        if given == 0:
            if is_first_lane():
                atomic_add(head + DROPPED, u64(count))
    return first, given


@device
def slot_of(cell: ptr[ptr[ptr[u64]]], number: Lane[u64], given: u32, slot_bytes: u64) -> Lane[u64]:
    """Address of a number's slot; of the spare one where no number was given."""
    words, head = cell[0], ptr[u64](u64(cell[0]))
    place = u64(0)
    if given != 0:
        place = (number & (head[CAPACITY] - 1)) + 1
    return u64(words[RING]) + SLOTS_AT + place * slot_bytes


@device
def launch_of(cell: ptr[ptr[ptr[u64]]]) -> u32:
    return u32(u64(cell[1]))
