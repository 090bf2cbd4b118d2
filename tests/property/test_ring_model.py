"""The ring's protocol, as rewrite/tool/records/ring.py words it: any interleaving of waves and host loses nothing.

Waves are written here anew, from those words, one shared word a step. The host is once written here anew, too, and once
the reader that the project uses. Whatever the schedule, what comes is what was pushed, whole, once, and in each wave's
order; and a schedule that is fair ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier_py.rewrite.tool import Channel, u32, u64
from luthier_py.rewrite.tool.records.ring import RingReader, ring_bytes

CAPACITY = 128


class Pair:
    first: u32
    second: u64


@dataclass
class Shared:
    """Words that all see. A slot: number, first, second."""

    capacity: int
    reserved: int = 0
    dropped: int = 0
    seen: int = 0
    taken: int = 0
    slots: list[list[int]] = field(default_factory=list)
    got: list[tuple[int, int]] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)


def wave(shared: Shared, name: int, pushes: list[int], drops: bool) -> Iterator[None]:
    """Each yield is where others may come between."""
    done = 0
    for count in pushes:
        records = [(1000 * name + done + k, 7 * (1000 * name + done + k) + 1) for k in range(count)]
        done += count
        seen = shared.seen
        yield
        first = shared.reserved
        if drops:
            yield
            while True:
                least = first + count - shared.capacity
                if seen < least:
                    seen = shared.taken
                    yield
                    shared.seen = max(shared.seen, seen)
                    yield
                if seen < least:
                    first = -1
                    shared.dropped += count
                    shared.lost += records
                    yield
                    break
                if shared.reserved == first:  # compare and swap
                    shared.reserved = first + count
                    break
                first = shared.reserved
                yield
            if first < 0:
                continue
        else:
            shared.reserved += count
            yield
            while seen < first + count - shared.capacity:
                seen = shared.taken
                yield
                shared.seen = max(shared.seen, seen)
                yield
        for k, (one, other) in enumerate(records):
            slot = shared.slots[(first + k) % shared.capacity]
            slot[1] = one
            yield
            slot[2] = other
            yield
        for k in range(count):
            shared.slots[(first + k) % shared.capacity][0] = first + k + 1 & 0xFFFFFFFF
            yield


def host(shared: Shared) -> Iterator[None]:
    while True:
        number = shared.slots[shared.taken % shared.capacity][0]
        yield
        if number == shared.taken + 1 & 0xFFFFFFFF:
            slot = shared.slots[shared.taken % shared.capacity]
            one = slot[1]
            yield
            shared.got.append((one, slot[2]))
            yield
            shared.taken += 1
        yield


def reading(shared: Shared, reader: RingReader, whole: np.ndarray) -> Iterator[None]:
    """The project's host, on slots that were written down from the model's."""
    while True:
        whole["#number"] = [slot[0] for slot in shared.slots]
        whole["first"] = [slot[1] for slot in shared.slots]
        whole["second"] = [slot[2] for slot in shared.slots]
        yield
        shared.got += [(int(slot["first"]), int(slot["second"])) for slot in reader.take()]
        yield
        shared.taken = int(reader.memory[:8].view("<u8")[0])
        yield


def play(shared: Shared, actors: list[Iterator[None]], schedule: list[int]) -> None:
    """As scheduled, then all in turn until every wave has ended and everything was taken."""
    running = dict(enumerate(actors))
    last = len(actors) - 1  # the host, which never ends

    def step(actor: int) -> None:
        if actor in running and next(running[actor], StopIteration) is StopIteration:
            del running[actor]

    for choice in schedule:
        step(choice % len(actors))
    for _ in range(100_000):
        if set(running) == {last} and shared.taken == shared.reserved:
            return
        for actor in list(running):
            step(actor)
    raise AssertionError("no end")


def check(shared: Shared, waves: list[list[int]]) -> None:
    assert all(other == 7 * one + 1 for one, other in shared.got), "half a record"
    everything = sorted(1000 * name + k for name, pushes in enumerate(waves) for k in range(sum(pushes)))
    assert sorted(one for one, _ in shared.got + shared.lost) == everything
    assert len(shared.lost) == shared.dropped and len(shared.got) == shared.taken
    for name in range(len(waves)):
        mine = [one for one, _ in shared.got if one // 1000 == name]
        assert mine == sorted(mine)


WAVES = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=4)
SCHEDULE = st.lists(st.integers(0, 59), max_size=300)


@settings(max_examples=300, deadline=None)
@given(WAVES, SCHEDULE, st.booleans(), st.sampled_from([4, 8]))
def test_no_interleaving_loses_or_tears_a_record(
    waves: list[list[int]], schedule: list[int], drops: bool, capacity: int
) -> None:
    shared = Shared(capacity, slots=[[0, 0, 0] for _ in range(capacity)])
    actors = [wave(shared, name, pushes, drops) for name, pushes in enumerate(waves)]
    play(shared, [*actors, host(shared)], schedule)
    check(shared, waves)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(1, 64), min_size=1, max_size=8), min_size=1, max_size=3), SCHEDULE, st.booleans())
def test_the_reader_takes_what_waves_write(waves: list[list[int]], schedule: list[int], drops: bool) -> None:
    shared = Shared(CAPACITY, slots=[[0, 0, 0] for _ in range(CAPACITY)])
    channel = Channel(Pair, capacity=CAPACITY)
    memory = np.zeros(ring_bytes(channel), np.uint8)
    reader = RingReader(channel, memory)
    actors = [wave(shared, name, pushes, drops) for name, pushes in enumerate(waves)]
    play(shared, [*actors, reading(shared, reader, reader._slots)], schedule)
    check(shared, waves)


def test_numbers_go_on_behind_32_bits() -> None:
    channel = Channel(Pair, capacity=CAPACITY)
    reader = RingReader(channel, np.zeros(ring_bytes(channel), np.uint8), taken=(1 << 32) - 3)
    for number in range((1 << 32) - 3, (1 << 32) + 5):
        reader._slots["#number"][number % CAPACITY] = number + 1 & 0xFFFFFFFF
        reader._slots["first"][number % CAPACITY] = number & 0xFFFFFFFF
    got = [*reader.take()["first"].tolist(), *reader.take()["first"].tolist()]
    assert got == [number & 0xFFFFFFFF for number in range((1 << 32) - 3, (1 << 32) + 5)]


def test_the_model_notices_a_host_that_frees_slots_too_early() -> None:
    """A check of the check: a host that moves on before it has copied."""
    def hasty(shared: Shared) -> Iterator[None]:
        while True:
            if shared.slots[shared.taken % shared.capacity][0] == shared.taken + 1:
                slot = shared.slots[shared.taken % shared.capacity]
                shared.taken += 1
                for _ in range(20):
                    yield
                shared.got.append((slot[1], slot[2]))
            yield

    shared = Shared(4, slots=[[0, 0, 0] for _ in range(4)])
    waves = [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]
    play(shared, [*(wave(shared, n, p, False) for n, p in enumerate(waves)), hasty(shared)], [])
    try:
        check(shared, waves)
    except AssertionError:
        return
    raise AssertionError("the model sees nothing")
