"""Inserted code between two instructions of the application, executed once for all places where it is the same.

In: a clone, and what executes its runs. Out: Outcomes. Invariant: the outcome is what executing the run would give.

Two gaps are the same if they have the same bytes and the same calls, but for where they are, perhaps in other clones
in which the tool's values have the same locations, and MODE is known as well. Then they can differ in addresses
alone: of code, and of variables. They are added to and compared alone, so it is enough that they lie
in the same way to each other. The literals of `s_getpc; s_add; s_addc` differ from gap to gap; what counts is the
address that they make.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from luthier_py.base.errors import Malformed
from luthier_py.base.records import replace
from luthier_py.isa import SCC, InstructionSet, OpFlag
from luthier_py.proof.addresses import scalar_results
from luthier_py.proof.application import Clone
from luthier_py.proof.claim import Address, Call
from luthier_py.proof.now import Begin, Outcome
from luthier_py.proof.payloads import is_wait
from luthier_py.proof.pending import Pending, collect_pending_registers
from luthier_py.proof.runs import Runner

_LONGEST = 12  # dwords of a chain, at most
_WIDE = (1 << 64) - 1
_SOME = 0x12345678  # a literal


Outcomes = dict[Hashable, Outcome]


class Gaps:
    """Of one clone."""

    def __init__(self, clone: Clone, runner: Runner, starts: Sequence[int], outcomes: Outcomes) -> None:
        """``starts``: where calls start, in all clones, ascending; ``outcomes``: known ones, of other clones too, to
        which more are added."""
        self.clone, self.runner, self.outcomes = clone, runner, outcomes
        first, last = (bisect_left(starts, at) for at in (clone.base, clone.base + len(clone.data)))
        self.calls = starts[first:last]
        self.kept = frozenset(runner.locations.items()), runner.private, runner.floats

    def run(self, start: int, to: int, pending: Pending, begin: Begin) -> tuple[Outcome, Sequence[int]]:
        """From an address of the clone to that of the application's instruction which should come next, the number of
        which is ``to``; and the calls that ran here. Those of the outcome may be of another place."""
        stop = self.clone.places[to]
        if not (self.clone.end(to - 1) if to else self.clone.base) <= start <= stop:
            found = self.runner.run(start, pending, begin)
            return found, found.calls
        calls = self.calls[bisect_left(self.calls, start):bisect_left(self.calls, stop)]
        numbers = [self.runner.tool.calls[at][0] for at in calls]
        key = self._key(start, stop, calls), begin, self.kept
        known = self.outcomes.get(key)
        if known is not None and known.timed:
            known = self.outcomes.get((key, pending))
        if known is not None and not known.touched & collect_pending_registers(pending):
            return known, [numbers[rank] for rank in known.calls]
        found = self.runner.run(start, pending, begin)
        if self._alike(found, start, stop, calls):
            ranks = replace(found, calls=tuple(numbers.index(each) for each in found.calls))
            self.outcomes[key] = ranks
            self.outcomes[key, pending] = ranks
        return found, found.calls

    def _alike(self, found: Outcome, start: int, stop: int, calls: Sequence[int]) -> bool:
        """Whether a run has seen nothing but what its key has: its gap, as it was swept, chains of addresses whole."""
        tool = self.runner.tool
        inside = [range(chain.start - start + 1, chain.stop - start) for chain in self._near(start, stop)]
        edges = {0, stop - start, *(goal for at, inst in found.ran if (goal := inst.branch_target(at)) is not None)}
        hidden = any(OpFlag.GETS_PC in inst.op.flags for at in calls
                     for inst in tool.summaries[tool.calls[at][1].payload].insts)
        swept = all(0 <= at < stop - start and self.clone.swept(start + at) is not None for at, _ in found.ran)
        return swept and not hidden and found.to == stop - start and -1 not in found.calls and not any(
            edge in chain for edge in edges for chain in inside)

    def _key(self, start: int, stop: int, calls: Sequence[int]) -> Hashable:
        near = self._near(start, stop)
        addresses = [chain.address for chain in near]
        rows = [self._call_key(self.runner.tool.calls[at][1], at - start, addresses) for at in calls]
        code = self._chains[0][start - self.clone.base:stop - self.clone.base]
        apart = tuple([each - addresses[0] & _WIDE for each in addresses])
        return code, tuple(rows), tuple([(chain.start - start, chain.stop - start) for chain in near]), apart

    def _near(self, start: int, stop: int) -> list[_Chain]:
        """Chains that have something in a gap."""
        _, chains = self._chains
        first = bisect_left(chains, start - 4 * _LONGEST, key=_start)
        return [each for each in chains[first:bisect_left(chains, stop, key=_start)] if each.stop > start]

    def _call_key(self, call: Call, at: int, addresses: list[int]) -> Hashable:
        """Notes addresses that it is given."""
        arguments = []
        for value in call.arguments:
            base = self.runner.tool.variables.get(value.variable) if isinstance(value, Address) else None
            if base is not None and isinstance(value, Address):
                addresses.append(base + value.offset)
            arguments.append(value if base is None else None)
        return at, call.payload, tuple(arguments), call.into, call.constants

    @cached_property
    def _chains(self) -> tuple[bytes, list[_Chain]]:
        """The clone's bytes, with zeros where chains have literals; its chains."""
        clone, columns = self.clone, self.clone.columns
        isa, words = columns.distinct.isa, np.frombuffer(clone.data[:len(clone.data) // 4 * 4], "<u4").copy()
        chains = []
        for place in columns.pcs[columns.find_flagged(OpFlag.GETS_PC)].tolist():
            at = (place - clone.base) // 4
            near = words[at:at + _LONGEST].tolist()
            literals = _literals(isa, near)
            sum_of = sum(near[k] << 32 * half for half, k in enumerate(literals))
            words[[at + k for k in literals]] = 0
            chains.append(_Chain(place, place + 4 * max(literals, default=0) + 4, place + 4 + sum_of & _WIDE))
        return words.tobytes(), chains


class _Chain(NamedTuple):
    """From where it gets the PC to behind its last literal, and the address that it makes."""

    start: int
    stop: int
    address: int


def _start(chain: _Chain) -> int:
    return chain.start


def _literals(isa: InstructionSet, words: Sequence[int]) -> list[int]:
    """Which of the words that begin with s_getpc are literals that are added to the PC; waits may stand between."""
    found, at = [], 1
    for half in range(2):
        while at < len(words) - 1 and _waits(isa, words[at]):
            at += 1
        if at >= len(words) - 1 or not _adds(isa, words[0], words[at], half):
            return []
        found.append(at + 1)
        at += 2
    return found


@lru_cache(maxsize=1 << 12)
def _adds(isa: InstructionSet, getpc: int, word: int, half: int) -> bool:
    """Whether ``word`` begins the sum of a half of the PC, which ``getpc`` gets, with the literal behind it."""
    pair = isa.decode(getpc.to_bytes(4, "little"), 0)["sdst"].reg
    assert pair is not None
    try:
        inst = isa.decode((word | _SOME << 32).to_bytes(8, "little"), 0)
    except Malformed:
        return False
    if inst.size_bytes != 8 or inst.literal != _SOME or OpFlag.SALU not in inst.op.flags:
        return False
    found = scalar_results(inst, {SCC: ("below", _SOME, 0), pair.index + half: ("hi" if half else "lo", 0)})
    return found.get(pair.index + half) == (("hi", _SOME << 32 | _SOME) if half else ("lo", _SOME))


@lru_cache(maxsize=1 << 12)
def _waits(isa: InstructionSet, word: int) -> bool:
    try:
        inst = isa.decode(word.to_bytes(4, "little"), 0)
    except Malformed:
        return False
    return inst.size_bytes == 4 and is_wait(inst)
