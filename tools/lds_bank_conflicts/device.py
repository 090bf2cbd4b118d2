"""Device code: how many cycles the banks of LDS need for one access of a wave.

In: the address that each active lane uses, and the target's bank model as constants. Out: cycles, cycles without
conflicts, and the worst group's; in one number where they are kept. Words at one distance from lane to lane need no
more than that distance. Else all groups are worked out at once, with masks of lanes instead of loops over banks.
"""

from __future__ import annotations

from luthier_py import Lane, device, i32, ptr, u32, u64
from luthier_py.intrinsics import (
    active_mask,
    all_,
    any_,
    atomic_add,
    atomic_max,
    ballot,
    is_first_lane,
    lane_id,
    mbcnt,
    popcount,
    read_first_lane,
    read_lane,
    wave_size,
)


@device
def matching(value: Lane[u32], key: Lane[u32], bits: u32, among: Lane[u64]) -> Lane[u64]:
    """Those lanes of ``among`` in whose ``key`` the low bits are as in this lane's ``value``."""
    found = among
    for bit in range(bits):
        ones = ballot((key >> bit) & 1 != 0)
        other = u32(i32(~value << (31 - bit)) >> 31)
        found = found & (ones ^ (u64(other) << 32 | other))
    return found


@device
def group_of(parity0: u32, parity1: u32, parity2: u32) -> Lane[u64]:
    """Active lanes that are served together with this one."""
    lane = lane_id()
    group = (popcount(lane & parity0) & 1) | (popcount(lane & parity1) & 1) << 1 | (popcount(lane & parity2) & 1) << 2
    return matching(group, group, u32(parity0 != 0) + u32(parity1 != 0) + u32(parity2 != 0), active_mask())


@device
def load_of_words(
    word: Lane[u32], dwords: u32, bank_bits: u32, address_bits: u32, shared: u32, group: Lane[u64]
) -> Lane[u32]:
    """How many words the bank of this lane's first word has to give to the group; its maximum is the group's cycles.

    A lane takes ``dwords`` from ``word`` on. With ``shared`` a word is given to all lanes at once: then of the lanes
    with one address only the first counts, and of its words those below the next higher address.
    """
    taken: Lane[u32] = dwords
    counts = active_mask()
    if shared != 0:
        counts = ballot(mbcnt(matching(word, word, address_bits, group)) == 0)
        for below in range(1, dwords):
            step = dwords - below
            higher = matching(word + step, word, address_bits, group)
            taken = step if higher != 0 else taken
    load = u32(0)
    for back in range(dwords):
        load += popcount(matching(word - back, word, bank_bits, group) & counts & ballot(taken > back))
    return load


@device
def load_of_word(word: Lane[u32], bank_bits: u32, address_bits: u32, shared: u32, group: Lane[u64]) -> Lane[u32]:
    """The same for one word (or aligned block of words) of each lane."""
    meeting = matching(word, word, bank_bits, group)
    load = popcount(meeting)
    if shared != 0 and any_(load > 1):
        row = word >> bank_bits
        load = popcount(meeting & ballot(mbcnt(matching(row, row, address_bits - bank_bits, meeting)) == 0))
    return load


@device
def cycles_of(load: Lane[u32], group: Lane[u64]) -> tuple[u32, u32, u32]:
    """Cycles of all groups together, cycles if none had a conflict, and the most of one group."""
    cycles, free, most = u32(0), u32(0), u32(0)
    busy = active_mask()
    while busy != 0:
        groups = popcount(ballot(mbcnt(group & busy) == 0) & busy)
        cycles += groups
        free = groups if most == 0 else free
        most += 1
        busy = ballot(load > most)
    return cycles, free, most


@device
def busy_groups(parity0: u32, parity1: u32, parity2: u32) -> u32:
    """Groups with an active lane."""
    groups, active = u32(0), active_mask()
    if parity0 == 32 and parity1 == 0:
        groups = u32(u32(active) != 0) + u32(active >> 32 != 0)
    else:
        groups = popcount(ballot(mbcnt(group_of(parity0, parity1, parity2)) == 0))
    return groups


@device
def ways_in_a_row(block: Lane[u32], blocks: u32, address_bits: u32, shared: u32) -> u32:
    """Cycles of each group where the aligned blocks that lanes want lie at one distance from lane to lane; else 0.

    ``blocks`` are side by side in the banks, and each group has a lane for every remainder by that number. So lanes at
    an odd distance have banks of their own, and others meet as many at a time as the power of two in their distance.
    This holds of all lanes together, and of some of them where nothing meets. Addresses are counted modulo LDS.
    """
    inside = (1 << address_bits) - 1
    step = (read_lane(block, 1) - read_lane(block, 0)) & inside
    start, power, ways = (block - lane_id() * step) & inside, step & (~step + 1), u32(0)
    if all_(start == read_first_lane(start)):
        if power == 0:
            ways = shared
        elif power == 1 or popcount(active_mask()) == wave_size() and power <= 1 << (address_bits - 6):
            ways = min(power, blocks)
    return ways


@device
def cycles_of_blocks(
    block: Lane[u32], bank_bits: u32, address_bits: u32, shared: u32, parity0: u32, parity1: u32, parity2: u32,
    regular: u32,
) -> tuple[u32, u32, u32]:
    """Of one word (or aligned block of words) of each lane."""
    free, worst = busy_groups(parity0, parity1, parity2), u32(0)
    if regular != 0:
        worst = ways_in_a_row(block, 1 << bank_bits, address_bits, shared)
    cycles = free * worst
    if worst == 0:
        group = group_of(parity0, parity1, parity2)
        cycles, free, worst = cycles_of(load_of_word(block, bank_bits, address_bits, shared, group), group)
    return cycles, free, worst


@device
def cycles_at(
    address: Lane[u32], dwords: u32, bank_bits: u32, address_bits: u32, shared: u32, parity0: u32, parity1: u32,
    parity2: u32, regular: u32,
) -> tuple[u32, u32, u32]:
    """Of an access of ``dwords`` from the word on that ``address`` is in."""
    word, cycles, free, worst = address >> 2, u32(0), u32(0), u32(0)
    if dwords == 1:
        cycles, free, worst = cycles_of_blocks(
            word, bank_bits, address_bits, shared, parity0, parity1, parity2, regular
        )  # fmt: skip
    elif dwords == 2 and all_(word & 1 == 0):  # lanes then share all of their words or none: one stands for all
        cycles, free, worst = cycles_of_blocks(
            word >> 1, bank_bits - 1, address_bits - 1, shared, parity0, parity1, parity2, regular
        )  # fmt: skip
    elif dwords == 4 and all_(word & 3 == 0):
        cycles, free, worst = cycles_of_blocks(
            word >> 2, bank_bits - 2, address_bits - 2, shared, parity0, parity1, parity2, regular
        )  # fmt: skip
    else:
        group = group_of(parity0, parity1, parity2)
        cycles, free, worst = cycles_of(load_of_words(word, dwords, bank_bits, address_bits, shared, group), group)
    return cycles, free, worst


@device
def packed(cycles: u32, free: u32, worst: u32) -> u32:
    return cycles | free << 16 | worst << 24


@device
def cycles_in(numbers: u32) -> u32:
    return numbers & 0xFFFF


@device
def free_in(numbers: u32) -> u32:
    return numbers >> 16 & 0xFF


@device
def worst_in(numbers: u32) -> u32:
    return numbers >> 24


@device
def count_one(counters: ptr[u64], cycles: u32, free: u32, worst: u32) -> None:
    """One more access, if there is an active lane."""
    if is_first_lane():
        atomic_add(counters, u64(1))
        atomic_add(counters + 1, u64(cycles))
        atomic_add(counters + 2, u64(free))
        atomic_max(counters + 3, u64(worst))
