"""What runs on the device: counts written registers, and makes one of them wrong.

In: the value that an instruction has written, how many are left until the fault's turn comes, the fault. Out: the value
that the application continues with. Invariant: every model is ``(value & keep) ^ flip``; without a hit each value
stays.
"""

from __future__ import annotations

from dataclasses import dataclass

from luthier_py import Lane, device, hook, ptr, u32, u64
from luthier_py.intrinsics import (
    active_mask,
    atomic_add,
    ballot,
    count_trailing_zeros,
    is_first_lane,
    lane_id,
    mbcnt,
    popcount,
    read_first_lane,
)

NEVER = 1 << 63  # more than a wave can count down
EVERY_LANE = 0xFFFFFFFF


@dataclass
class Hit:
    """The first register that was made wrong. ``lane``: 0 of a scalar."""

    site: u32
    wave: u32
    lane: u32
    before: u32
    after: u32


@device
def first_left(when: u64, chosen: u32, wave: u32) -> u64:
    return when if chosen == wave else u64(NEVER)


@hook(lanes="one")
def begin(when: u64, chosen: u32, wave: u32) -> u64:
    return first_left(when, chosen, wave)


@hook(lanes="one")
def finish(executions: ptr[u64], left: u64, when: u64, chosen: u32, wave: u32) -> None:
    executions[0] = first_left(when, chosen, wave) - left


@hook(lanes="one", fold=())
def begin_held(wave: u32, unit: u32, mask: u32, wanted: u32) -> u32:
    """The wave's number and 1, or 0 where it runs elsewhere."""
    return wave + 1 if unit & mask == wanted else u32(0)


@device
def claimed(counter: ptr[u64], many: u32) -> u64:
    """How many there were before, in all waves."""
    first = u64(0)
    if is_first_lane():
        first = atomic_add(counter, u64(many))
    return read_first_lane(first)


@device
def note(times: ptr[u64], hit: ptr[Hit], site: u32, wave: u32, lane: Lane[u32], x: Lane[u32], y: Lane[u32]) -> None:
    if atomic_add(times, u64(1)) == 0:
        hit[0] = Hit(site, wave, lane, x, y)


@device
def struck(
    x: Lane[u32], left: u64, many: u32, keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit], site: u32,
    wave: u32
) -> Lane[u32]:
    """The active lane with ``left`` others before it."""
    value: Lane[u32] = x
    if left < u64(many):
        if mbcnt(active_mask()) == u32(left):
            value = (x & keep[0]) ^ flip[0]
            note(times, hit, site, wave, lane_id(), x, value)
    return value


@device
def struck_lane(
    x: Lane[u32], lane: u32, keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit], site: u32, wave: u32
) -> Lane[u32]:
    value: Lane[u32] = x
    if lane_id() == lane or lane == u32(EVERY_LANE):
        value = (x & keep[0]) ^ flip[0]
        note(times, hit, site, wave, lane_id(), x, value)
    return value


@device
def struck_scalar(
    x: u32, keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit], site: u32, wave: u32
) -> u32:
    value = (x & keep[0]) ^ flip[0]
    note(times, hit, site, wave, 0, x, value)
    return value


@hook(fold=())
def in_wave(
    x: Lane[u32], left: u64, keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit], site: u32,
    chosen: ptr[u32]
) -> tuple[Lane[u32], u64]:
    many = popcount(active_mask())
    return struck(x, left, many, keep, flip, times, hit, site, chosen[0]), left - u64(many)


@hook(fold=())
def in_wave_lane(
    x: Lane[u32], left: u64, lane: ptr[u32], keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit], site: u32,
    chosen: ptr[u32]
) -> tuple[Lane[u32], u64]:
    value: Lane[u32] = x
    if left == 0:
        value = struck_lane(x, lane[0], keep, flip, times, hit, site, chosen[0])
    return value, left - 1


@hook(lanes="one", fold=())
def in_wave_scalar(
    x: u32, left: u64, keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit], site: u32, chosen: ptr[u32]
) -> tuple[u32, u64]:
    value = x
    if left == 0:
        value = struck_scalar(x, keep, flip, times, hit, site, chosen[0])
    return value, left - 1


@hook(fold=())
def in_launch(
    x: Lane[u32], when: u64, counter: ptr[u64], keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit],
    site: u32, wave: u32
) -> Lane[u32]:
    many = popcount(active_mask())
    return struck(x, when - claimed(counter, many), many, keep, flip, times, hit, site, wave)


@hook(fold=())
def in_launch_lane(
    x: Lane[u32], when: u64, counter: ptr[u64], lane: ptr[u32], keep: ptr[u32], flip: ptr[u32], times: ptr[u64],
    hit: ptr[Hit], site: u32, wave: u32
) -> Lane[u32]:
    value: Lane[u32] = x
    if claimed(counter, 1) == when:
        value = struck_lane(x, lane[0], keep, flip, times, hit, site, wave)
    return value


@hook(lanes="one", fold=())
def in_launch_scalar(
    x: u32, when: u64, counter: ptr[u64], keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit], site: u32,
    wave: u32
) -> u32:
    value = x
    if claimed(counter, 1) == when:
        value = struck_scalar(x, keep, flip, times, hit, site, wave)
    return value


@hook(fold=())
def held(
    x: Lane[u32], wave: u32, lane: ptr[u32], keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit], site: u32
) -> Lane[u32]:
    """``wave``: as `begin_held` gives it."""
    value: Lane[u32] = x
    if wave != 0:
        value = struck_lane(x, lane[0], keep, flip, times, hit, site, wave - 1)
    return value


@hook(lanes="one", fold=())
def held_scalar(
    x: u32, wave: u32, keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit], site: u32
) -> u32:
    value = x
    if wave != 0:
        value = struck_scalar(x, keep, flip, times, hit, site, wave - 1)
    return value


@hook(fold=())
def stuck(
    x: Lane[u32], left: u64, held: u32, at: u32, register: u32, lane: ptr[u32], keep: ptr[u32], flip: ptr[u32],
    times: ptr[u64], hit: ptr[Hit], site: u32, chosen: ptr[u32]
) -> tuple[Lane[u32], u64, u32, u32]:
    """``held``: the register that is stuck, 0 before its turn has come, in lane ``at``."""
    many = popcount(active_mask())
    if left < u64(many):
        held = register
        at = lane[0]
        if at != u32(EVERY_LANE):
            at = count_trailing_zeros(ballot(mbcnt(active_mask()) == u32(left)))
    value: Lane[u32] = x
    if held == register:
        value = struck_lane(x, at, keep, flip, times, hit, site, chosen[0])
    return value, left - u64(many), held, at


@hook(lanes="one", fold=())
def stuck_scalar(
    x: u32, left: u64, held: u32, register: u32, keep: ptr[u32], flip: ptr[u32], times: ptr[u64], hit: ptr[Hit],
    site: u32, chosen: ptr[u32]
) -> tuple[u32, u64, u32]:
    if left == 0:
        held = register
    value = x
    if held == register:
        value = struck_scalar(x, keep, flip, times, hit, site, chosen[0])
    return value, left - 1, held
