"""The ring between waves that push records and the host that takes them: who writes which word, and when.

There is one *head* for each channel and device, in the device's own memory, and one *ring* in memory that host and
device see alike. Numbers count records from 0 for as long as the ring lives; record ``n`` belongs into slot
``n % capacity``.

=========  =======================  ====================================================================
word       written by               meaning
=========  =======================  ====================================================================
reserved   waves, atomically        the next number that no wave has; it only grows
dropped    waves, atomically        records that found no room (where full means drop or stop)
seen       waves, atomic max        what some wave has read as ``taken``: never more than that
ring, capacity, drops   host, once  where the ring is, its slots, whether full means drop
taken      host alone               records below it were copied out of the ring; it only grows
slot       the one wave that reserved its number, until it has written ``number``; then the host, which only reads
=========  =======================  ====================================================================

A wave pushes so: (1) it adds the count of its records to ``reserved`` in one atomic operation, which gives it numbers
``first .. first + count - 1`` that no other wave has. (2) It waits until ``first + count <= taken + capacity``. (3) It
writes its records. (4) With a release that the whole system sees it writes ``number + 1``, as 32 bits, into each slot.
Where full means drop, (1) is a compare-and-swap that is tried only while there is room, and (2) never waits; what is
dropped is written to a spare slot before the others, which the host does not read. Which of both a channel does, and
its capacity, are in the code of a hook that is compiled for it; the head has them for all others.

The host looks at slot ``taken % capacity``: if its number is ``taken + 1``, as 32 bits, the record is whole. It copies
as many such records as stand one behind the other, and only then, with a release, moves ``taken`` behind them.

* **No record is seen half written**: the number of a slot is written after the record, with release, and read before
  it, with acquire. What the slot held a round ago has another number: they differ by ``capacity``, which is less than
  2**32. A new ring is zero, and number + 1 is 0 for the first time when every slot was used.
* **No record is lost or overwritten**: between (1) and (4) a slot is its wave's. It was free at (2): the record in it
  had a number below ``first + count - capacity <= taken``. ``seen`` may lag behind ``taken``, all the more as a wave
  reads it before (1): that makes it look again, not write too early. Every number below ``reserved`` is committed once.
* **It makes progress**: of the waves between (1) and (4) take the one with the lowest numbers. All records before
  its own are committed, so the host comes to ``taken = first``, and ``count <= capacity``: it need not wait for anybody
  but the host. A wave waits nowhere else between (1) and (4), so it cannot hold up the application's barriers for
  longer than the host takes, and a wave that has not started yet is never waited for. All lanes wait together.
* **Order**: records of one wave have ascending numbers, so they come in the order in which they were pushed; those
  of one push in the order of their lanes.

When the waves of a launch have ended, ``reserved`` does not change, and the host takes until ``taken`` has reached it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier_py.base.late_modules import np
from luthier_py.base.records import dataclass, field
from luthier_py.rewrite.tool.records.channel import Channel, Full

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESERVED, RING, SEEN, CAPACITY, DROPS, DROPPED = range(6)
HEAD_BYTES = 64
"""Of the head: these words, 64 bits each."""
SLOTS_AT = 64
"""In the ring: first ``taken``, 64 bits; here the spare slot, and then the others."""


def ring_bytes(channel: Channel) -> int:
    """The size of a channel's ring: ``taken``, the spare slot and the others."""
    return SLOTS_AT + (channel.capacity + 1) * channel.record.slot_bytes


def head_words(channel: Channel, ring: int) -> bytes:
    """The head as the host writes it before the first launch; ``ring``: the ring's address."""
    words = np.zeros(HEAD_BYTES // 8, "<u8")
    words[RING], words[CAPACITY], words[DROPS] = ring, channel.capacity, channel.full is not Full.WAIT
    return words.tobytes()


def cell_words(head: int, launch: int) -> bytes:
    """The channel's variable in a code object; ``head``: address of the head."""
    return np.array([head, launch], "<u8").tobytes()


@dataclass(slots=True)
class RingReader:
    """Mutable: the host's end of a ring in ``memory``, which is all of it."""

    channel: Channel
    memory: NDArray[np.uint8]
    taken: int = 0
    _word: NDArray[np.uint64] = field(init=False)
    _slots: NDArray[Any] = field(init=False)

    def __post_init__(self) -> None:
        record = self.channel.record
        self._word = self.memory[:8].view("<u8")
        self._slots = self.memory[SLOTS_AT + record.slot_bytes : ring_bytes(self.channel)].view(record.slots)

    def take(self) -> NDArray[Any]:
        """Slots whose records are whole, in order, up to the end of the ring at most; they are free then."""
        start = self.taken % self.channel.capacity
        count = self._whole(start)
        found: NDArray[Any] = self._slots[start : start + count].copy()
        self.taken += count
        self._word[0] = self.taken  # one store of 64 bits
        return found

    def _whole(self, start: int) -> int:
        """How many records stand there whole, one behind the other."""
        numbers = self._slots["#number"]
        done, step = 0, 64
        while start + done < len(numbers):
            here = numbers[start + done : start + done + step]
            first = self.taken + done + 1
            wanted = np.arange(first, first + len(here), dtype=np.uint64).astype(np.uint32)
            wrong = np.flatnonzero(here != wanted)
            if len(wrong):
                return done + int(wrong[0])
            done, step = done + len(here), 4 * step
        return done
