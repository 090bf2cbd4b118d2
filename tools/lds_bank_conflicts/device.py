"""Device code: how many cycles the banks of LDS need for one access of a wave.

In: the address that each active lane uses, and the target's bank model as constants. Out: cycles, cycles without
conflicts, and the worst group's. All groups are worked out at once, with masks of lanes instead of loops over banks.
"""

from __future__ import annotations

from luthier_py import Lane, device, i32, i64, u32, u64
from luthier_py.intrinsics import active_mask, any_, ballot, lane_id, mbcnt, popcount


@device
def matching(value: Lane[u32], key: Lane[u32], bits: u32, among: Lane[u64]) -> Lane[u64]:
    """Those lanes of ``among`` in whose ``key`` the low bits are as in this lane's ``value``."""
    found = among
    for bit in range(bits):
        ones = ballot((key >> bit) & 1 != 0)
        found = found & (ones ^ u64(i64(i32(~value << (31 - bit)) >> 31)))
    return found


@device
def group_of(parity0: u32, parity1: u32, parity2: u32) -> Lane[u64]:
    """Active lanes that are served together with this one."""
    lane = lane_id()
    group = (popcount(lane & parity0) & 1) | (popcount(lane & parity1) & 1) << 1 | (popcount(lane & parity2) & 1) << 2
    return matching(group, group, 3, active_mask())


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
