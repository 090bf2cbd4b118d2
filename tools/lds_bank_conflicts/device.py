"""Device code: how many cycles conflicts of one access of a wave cost the banks of LDS.

In: the lanes that take part, the address that each of them uses, and the target's bank model as constants. Out: cycles
beyond one for each group of lanes, and how many the worst group had beyond its first. Code here runs in all lanes.

The banks are played, cycle by cycle: each lane sends the word that it requests to the lane whose number is that of its
bank (and its group; each group has lanes enough), where one of them arrives, and reads there whose it was. A lane that
finds its own word is served; the others try again. That is what LDS does, so no word is ever compared with all others.

Where the banks of all groups are more than a wave's lanes, or a lane's words not aligned as one block, words are
counted instead, with masks of lanes that a ballot for each bit of their addresses gives.
"""

from __future__ import annotations

from luthier_py import Lane, device, hook, i32, ptr, u32, u64
from luthier_py.intrinsics import atomic_add, atomic_max, ballot, lane_id, mbcnt, popcount, read_lane, wave_size

from .exchange import fetched, first_in, half_of_lane, is_in, sent
from .samples import keep


@device
def some(lanes: u32) -> u32:
    """1 if there is a lane, else 0; written so that it stays in scalar registers."""
    return (popcount(lanes) + 31) >> 5


@device
def some_in(lanes: u64) -> u32:
    return some(u32(lanes)) | some(u32(lanes >> 32)) if wave_size() == 64 else some(u32(lanes))


@device
def groups_in(lanes: u64, span: u32, heads: u64, mask0: u32, mask1: u32, mask2: u32, mask3: u32) -> u32:
    """Groups that have one of ``lanes``: of ``span`` neighbours, whose first ones are ``heads``, or these masks."""
    groups = u32(0)
    if span != 0:
        folded = lanes | lanes >> 4
        folded = folded | folded >> 2
        folded = folded | folded >> 1
        if span == 16:
            folded = folded | folded >> 8
        groups = popcount(folded & heads)
    else:
        groups = groups_in_half(u32(lanes), mask0, mask1, mask2, mask3)
        if wave_size() == 64:
            groups += groups_in_half(u32(lanes >> 32), mask0, mask1, mask2, mask3)
    return groups


@device
def groups_in_half(lanes: u32, mask0: u32, mask1: u32, mask2: u32, mask3: u32) -> u32:
    groups = some(lanes & mask0)
    if mask1 != 0:
        groups += some(lanes & mask1)
    if mask2 != 0:
        groups += some(lanes & mask2) + some(lanes & mask3)
    return groups


# -- played --------------------------------------------------------------------------------------


@device
def seat_of(block: Lane[u32], block_bits: u32, shared: u32, parity0: u32, parity1: u32, parity2: u32) -> Lane[u32]:
    """What a lane requests: in bits 2 to 7 the lane that represents its bank, above them what has to be the same.

    That is the rest of the word's number; where lanes do not share words, it is the lane.
    """
    bank = (1 << block_bits) - 1
    group = Lane[u32](0)
    if parity1 != 0:
        lane = lane_id()
        group = parity(lane, parity0, 5) + parity(lane, parity1, 4)
        if parity2 != 0:
            group += parity(lane, parity2, 3)
    elif wave_size() == 64:
        group = half_of_lane()
    if shared == 0:
        return (lane_id() << 6 | (block & bank) + group) << 2
    return (block + (block & ~bank) * ((64 >> block_bits) - 1) + group) << 2


@device
def parity(lane: Lane[u32], mask: u32, bit: u32) -> Lane[u32]:
    return lane & mask if mask == 1 << bit else (popcount(lane & mask) & 1) << bit


@device
def losers(seat: Lane[u32], playing: u64) -> u64:
    """Those of the lanes that are not served now. The others do what the first of these does, so they change nothing.
    """
    first = read_lane(seat, first_in(playing))
    wanted = seat if is_in(playing) else first
    return playing & ballot(fetched(wanted, sent(wanted, wanted)) != wanted)


@device
def played(
    cycles: u64, worst: u32, lanes: u64, seat: Lane[u32], span: u32, heads: u64, mask0: u32, mask1: u32, mask2: u32,
    mask3: u32,
) -> tuple[u64, u32]:
    """``cycles`` and ``worst`` with those of one more access."""
    left, rounds, more = losers(seat, lanes), u32(0), u32(0)
    if left != 0:
        while left != 0:
            rounds += 1
            more += groups_in(left, span, heads, mask0, mask1, mask2, mask3)
            left = losers(seat, left)
        worst = max(worst, rounds)
        cycles += more
    return cycles, worst


# -- counted -------------------------------------------------------------------------------------


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
def group_of(lanes: u64, parity0: u32, parity1: u32, parity2: u32) -> Lane[u64]:
    """Those of ``lanes`` that are served together with this one."""
    lane = lane_id()
    group = (popcount(lane & parity0) & 1) | (popcount(lane & parity1) & 1) << 1 | (popcount(lane & parity2) & 1) << 2
    return matching(group, group, u32(parity0 != 0) + u32(parity1 != 0) + u32(parity2 != 0), lanes)


@device
def load_of(
    word: Lane[u32], dwords: u32, bank_bits: u32, address_bits: u32, shared: u32, lanes: u64, group: Lane[u64]
) -> Lane[u32]:
    """How many words the bank of this lane's first word has to give to the group; its maximum is the group's cycles.

    A lane takes ``dwords`` from ``word`` on. With ``shared`` a word is given to all lanes at once: then of the lanes
    with one address only the first counts, and of its words those below the next higher address.
    """
    taken: Lane[u32] = dwords
    counts = lanes
    if shared != 0:
        counts = lanes & ballot(mbcnt(matching(word, word, address_bits, group)) == 0)
        for below in range(1, dwords):
            step = dwords - below
            higher = matching(word + step, word, address_bits, group)
            taken = step if higher != 0 else taken
    load = u32(0)
    for back in range(dwords):
        load += popcount(matching(word - back, word, bank_bits, group) & counts & ballot(taken > back))
    return load


@device
def counted(
    cycles: u64, worst: u32, lanes: u64, load: Lane[u32], span: u32, heads: u64, mask0: u32, mask1: u32, mask2: u32,
    mask3: u32,
) -> tuple[u64, u32]:
    """``cycles`` and ``worst`` with those of one more access."""
    busy, rounds, more = lanes & ballot(load > 1), u32(0), u32(0)
    while busy != 0:
        rounds += 1
        more += groups_in(busy, span, heads, mask0, mask1, mask2, mask3)
        busy = lanes & ballot(load > rounds + 1)
    return cycles + more, max(worst, rounds)


# -- either --------------------------------------------------------------------------------------


@device
def one_more(
    cycles: u64, worst: u32, lanes: u64, address: Lane[u32], dwords: u32, bank_bits: u32, address_bits: u32,
    shared: u32, parity0: u32, parity1: u32, parity2: u32, seats: u32, span: u32, heads: u64, mask0: u32, mask1: u32,
    mask2: u32, mask3: u32,
) -> tuple[u64, u32]:
    """``cycles`` and ``worst`` with those of an access of ``dwords`` from the word on that ``address`` is in."""
    word = address >> 2
    if seats != 0 and dwords == 1:
        seat = seat_of(word, bank_bits, shared, parity0, parity1, parity2)
        cycles, worst = played(cycles, worst, lanes, seat, span, heads, mask0, mask1, mask2, mask3)
    elif seats != 0 and lanes & ballot(word & (dwords - 1) != 0) == 0:  # lanes share all of their words or none
        half = dwords >> 1
        seat = seat_of(word >> half, bank_bits - half, shared, parity0, parity1, parity2)
        cycles, worst = played(cycles, worst, lanes, seat, span, heads, mask0, mask1, mask2, mask3)
    else:
        group = group_of(lanes, parity0, parity1, parity2)
        load = load_of(word, dwords, bank_bits, address_bits, shared, lanes, group)
        cycles, worst = counted(cycles, worst, lanes, load, span, heads, mask0, mask1, mask2, mask3)
    return cycles, worst


@device
def packed(cycles: u64, worst: u32) -> u32:
    return u32(cycles) | worst << 16


@device
def cycles_in(numbers: u32) -> u32:
    return numbers & 0xFFFF


@device
def worst_in(numbers: u32) -> u32:
    return numbers >> 16


# -- hooks ---------------------------------------------------------------------------------------


@hook(lanes="all", fold=True)
def known(
    exec: u64, x: Lane[u32], y: Lane[u32], z: Lane[u32], packed_ids: u32, of_lane: u32, of_x: u32, of_y: u32,
    of_z: u32, start: u32, dwords: u32, bank_bits: u32, address_bits: u32, shared: u32, parity0: u32, parity1: u32,
    parity2: u32, seats: u32, span: u32, heads: u64, mask0: u32, mask1: u32, mask2: u32, mask3: u32,
) -> u32:
    """The conflicts of an access with these multiples, in the lanes that the wave starts with."""
    if packed_ids != 0:
        address = (x & 1023) * of_x + (x >> 10 & 1023) * of_y + (x >> 20 & 1023) * of_z
    else:
        address = x * of_x + y * of_y + z * of_z
    address += lane_id() * of_lane + start
    cycles, worst = one_more(
        u64(0), u32(0), exec, address, dwords, bank_bits, address_bits, shared, parity0, parity1, parity2, seats,
        span, heads, mask0, mask1, mask2, mask3,
    )  # fmt: skip
    return packed(cycles, worst)


@hook
def again(times: u64) -> u64:
    return times + 1


@hook
def count_turnout(accesses: u64, exec: u64) -> u64:
    return accesses + some_in(exec)


@hook(lanes="one")
def count_turnout_in_memory(counters: ptr[u64], exec: u64) -> None:
    if exec != 0:
        atomic_add(counters, u64(1))


@hook(lanes="all", fold=True)
def access(
    cycles: u64, worst: u32, exec: u64, address: Lane[u32], low: u32, dwords: u32, bank_bits: u32,
    address_bits: u32, shared: u32, parity0: u32, parity1: u32, parity2: u32, seats: u32, span: u32, heads: u64,
    mask0: u32, mask1: u32, mask2: u32, mask3: u32,
) -> tuple[u64, u32]:
    """``low``: the offset's bits below a word. Whole words turn the banks round for all lanes: nothing changes."""
    cycles, worst = one_more(
        cycles, worst, exec, address + low, dwords, bank_bits, address_bits, shared, parity0, parity1, parity2,
        seats, span, heads, mask0, mask1, mask2, mask3,
    )  # fmt: skip
    return cycles, worst


@hook(lanes="all", fold=True)
def access_in_memory(
    counters: ptr[u64], exec: u64, address: Lane[u32], low: u32, dwords: u32, bank_bits: u32, address_bits: u32,
    shared: u32, parity0: u32, parity1: u32, parity2: u32, seats: u32, span: u32, heads: u64, mask0: u32,
    mask1: u32, mask2: u32, mask3: u32,
) -> None:
    cycles, worst = one_more(
        u64(0), u32(0), exec, address + low, dwords, bank_bits, address_bits, shared, parity0, parity1, parity2,
        seats, span, heads, mask0, mask1, mask2, mask3,
    )  # fmt: skip
    if worst != 0 and lane_id() == 0:
        atomic_add(counters, cycles)
        atomic_max(counters + 1, u64(worst))


@hook(lanes="all", fold=True)
def sample(
    samples: ptr[u32], exec: u64, address: Lane[u32], low: u32, dwords: u32, bank_bits: u32, address_bits: u32,
    shared: u32, parity0: u32, parity1: u32, parity2: u32, seats: u32, span: u32, heads: u64, mask0: u32,
    mask1: u32, mask2: u32, mask3: u32,
) -> None:
    if some_in(exec) != 0:
        _, worst = one_more(
            u64(0), u32(0), exec, address + low, dwords, bank_bits, address_bits, shared, parity0, parity1,
            parity2, seats, span, heads, mask0, mask1, mask2, mask3,
        )  # fmt: skip
        keep(samples, exec, address, worst, groups_in(exec, span, heads, mask0, mask1, mask2, mask3))


@hook(lanes="one")
def flush_accesses(counters: ptr[u64], accesses: u64) -> None:
    if accesses != 0:
        atomic_add(counters, accesses)


@hook(lanes="one")
def flush_known(counters: ptr[u64], times: u64, known: u32) -> None:
    if known != 0 and times != 0:
        atomic_add(counters, times * cycles_in(known))
        atomic_max(counters + 1, u64(worst_in(known)))


@hook(lanes="one")
def flush(counters: ptr[u64], cycles: u64, worst: u32) -> None:
    if worst != 0:
        atomic_add(counters, cycles)
        atomic_max(counters + 1, u64(worst))
