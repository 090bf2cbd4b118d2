"""Inserted code between two instructions of the application, executed once for all places where it is the same.

In: a clone, and what executes its runs. Out: Outcomes. Invariant: the outcome is what executing the run would give.

Two gaps are the same if they have the same bytes and the same calls, but for where they stand. Then all that can tell
them apart is addresses: of code, and of variables. They are added to and compared alone, so it is enough that they lie
in the same way to each other. The literals of `s_getpc; s_add; s_addc` differ from gap to gap; what counts is the
address that they make.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np

from luthier_py.isa import InstructionSet, OpFlag, sgpr
from luthier_py.isa.glue import add, add_with_carry
from luthier_py.proof.application import Clone
from luthier_py.proof.claim import Address, Call
from luthier_py.proof.pending import Pending, owed
from luthier_py.proof.runs import Outcome, Runner

_CHAIN_WORDS = 5  # of a chain: s_getpc, s_add with its literal, s_addc with its own
_WIDE = (1 << 64) - 1


class Gaps:
    """Of one clone (mutable: keeps outcomes)."""

    def __init__(self, clone: Clone, runner: Runner) -> None:
        self.clone, self.runner = clone, runner
        self.calls = sorted(at for at in runner.tool.calls if clone.base <= at < clone.base + len(clone.data))
        self.outcomes: dict[Hashable, Outcome] = {}

    def run(self, start: int, to: int, pending: Pending, cleared: int) -> Outcome:
        """From an address of the clone to that of the application's instruction which should come next, the number of
        which is ``to``."""
        stop = self.clone.places[to]
        if not (self.clone.end(to - 1) if to else self.clone.base) <= start <= stop:
            return self.runner.run(start, pending, cleared)
        calls = self.calls[bisect_left(self.calls, start):bisect_left(self.calls, stop)]
        numbers = [self.runner.tool.calls[at][0] for at in calls]
        key = self._key(start, stop, calls), cleared
        known = self.outcomes.get(key)
        if known is not None and known.timed:
            known = self.outcomes.get((key, pending))
        if known is not None and not known.touched & owed(pending):
            return replace(known, calls=tuple([numbers[rank] for rank in known.calls])) if numbers else known
        found = self.runner.run(start, pending, cleared)
        if self._alike(found, start, stop, calls):
            ranks = replace(found, calls=tuple(numbers.index(each) for each in found.calls))
            self.outcomes[key] = ranks
            self.outcomes[key, pending] = ranks
        return found

    def _alike(self, found: Outcome, start: int, stop: int, calls: list[int]) -> bool:
        """Whether a run has seen nothing but what its key has: its gap, as it was swept, chains of addresses whole."""
        tool = self.runner.tool
        inside = [range(place - start + 1, place - start + 4 * _CHAIN_WORDS) for place in self._near(start, stop)[0]]
        edges = {0, stop - start, *(goal for at, inst in found.ran if (goal := inst.branch_target(at)) is not None)}
        hidden = any(OpFlag.GETS_PC in inst.op.flags for at in calls
                     for inst in tool.summaries[tool.calls[at][1].payload].insts)
        swept = all(0 <= at < stop - start and self.clone.swept(start + at) is not None for at, _ in found.ran)
        return swept and not hidden and found.to == stop - start and -1 not in found.calls and not any(
            edge in chain for edge in edges for chain in inside)

    def _key(self, start: int, stop: int, calls: list[int]) -> Hashable:
        places, addresses = self._near(start, stop)
        rows = [self._call_key(self.runner.tool.calls[at][1], at - start, addresses) for at in calls]
        code = self._addresses[0][start - self.clone.base:stop - self.clone.base]
        apart = tuple([each - addresses[0] & _WIDE for each in addresses])
        return code, tuple(rows), tuple([place - start for place in places]), apart

    def _near(self, start: int, stop: int) -> tuple[list[int], list[int]]:
        """Where chains begin that have something in a gap, and the addresses that they make."""
        _, places, made = self._addresses
        first, last = bisect_left(places, start - 4 * (_CHAIN_WORDS - 1)), bisect_left(places, stop)
        return places[first:last], made[first:last]

    def _call_key(self, call: Call, at: int, addresses: list[int]) -> Hashable:
        """Notes addresses that it is given."""
        arguments = []
        for value in call.arguments:
            base = self.runner.tool.variables.get(value.variable) if isinstance(value, Address) else None
            if base is not None and isinstance(value, Address):
                addresses.append(base + value.offset)
            arguments.append(value if base is None else None)
        return at, call.payload, tuple(arguments), call.into, call.exec, call.constants

    @cached_property
    def _addresses(self) -> tuple[bytes, list[int], list[int]]:
        """The clone's bytes, with zeros where chains have literals; where it gets the PC, and what becomes of that."""
        clone, columns = self.clone, self.clone.columns
        words = np.frombuffer(clone.data[:len(clone.data) // 4 * 4], "<u4").copy()
        places: list[int] = columns.pcs[columns.flagged(OpFlag.GETS_PC)].tolist()
        made = []
        for place in places:
            at = (place - clone.base) // 4
            chain = words[at:at + _CHAIN_WORDS]
            literals = (int(chain[2]), int(chain[4])) if len(chain) == _CHAIN_WORDS else (0, 0)
            end = place + columns.distinct.isa.decode(clone.data, place - clone.base).size_bytes
            if len(chain) == _CHAIN_WORDS and _is_chain(columns.distinct.isa, *map(int, chain[[0, 1, 3]])):
                end += literals[0] + (literals[1] << 32)
                words[[at + 2, at + 4]] = 0
            made.append(end & _WIDE)
        return words.tobytes(), places, made


@lru_cache(maxsize=1 << 12)
def _is_chain(isa: InstructionSet, getpc: int, low: int, high: int) -> bool:
    """Whether these words, with literals behind the last two, add the literals to the PC."""
    pair = isa.decode(getpc.to_bytes(4, "little"), 0)["sdst"].reg
    if pair is None:
        return False
    halves = sgpr(pair.index), sgpr(pair.index + 1)
    wanted = add(isa, halves[0], halves[0]), add_with_carry(isa, halves[1], halves[1])
    return [int.from_bytes(inst.raw[:4], "little") for inst in wanted] == [low, high]
