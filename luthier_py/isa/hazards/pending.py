"""What instructions owe to those behind them: wait states and open chains of hazards, followed along the code.

In: instructions in the order in which they run. Out: what must precede the next one. Invariant: an analysis that
follows the code, one instruction after another, and joins where paths meet, misses no hazard of `hazards` and
`mitigated_hazards`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from luthier_py.base.records import dataclass, field
from luthier_py.isa.by_target import InstructionSet
from luthier_py.isa.encoding.instruction import Inst, OpInfo
from luthier_py.isa.hazards import patterns as hazard_patterns
from luthier_py.isa.hazards import wait_states as hazards
from luthier_py.isa.hazards.mitigated import Mitigated
from luthier_py.isa.hazards.patterns import OpenPatterns
from luthier_py.isa.hazards.wait_states import Hazard
from luthier_py.isa.model.registers import EVERY_REG, RegSet

NOP_STATES = 16  # s_nop waits for SIMM16[3:0] + 1 states (AMD ISA, SOPP)
_EVERY_SGPR = RegSet.by_file(sgpr=(1 << 108) - 1)


@dataclass(frozen=True, slots=True)
class PendingHazards:
    """What is pending at a place."""

    states: hazards.PendingStates = field(default_factory=dict)
    patterns: OpenPatterns = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.states or self.patterns)

    def join(self, other: PendingHazards) -> PendingHazards:
        """What is pending where two paths meet: what either owes. ``self`` itself, the same object, if ``other`` adds
        nothing."""
        if not self or not other:
            return other if other else self
        states, links = (
            hazards.join_hazards(self.states, other.states),
            hazard_patterns.join_patterns(self.patterns, other.patterns),
        )
        return self if states is self.states and links is self.patterns else PendingHazards(states, links)

    def behind(self, isa: InstructionSet, inst: Inst) -> PendingHazards:
        """What ``inst`` leaves of it."""
        states = hazards.advance_hazards(isa, self.states, inst) if self.states else self.states
        links = hazard_patterns.drop_ended_patterns(self.patterns, inst) if self.patterns else self.patterns
        return self if states is self.states and links is self.patterns else PendingHazards(states, links)

    def extend_patterns(self, isa: InstructionSet, inst: Inst) -> PendingHazards:
        """Chains that go on with ``inst``."""
        found = hazard_patterns.extend_patterns(isa, self.patterns, inst) if self.patterns else None
        return PendingHazards({}, found) if found else NOTHING


NOTHING = PendingHazards()


@dataclass(frozen=True, slots=True)
class Missing:
    """What must stand before an instruction: wait states, and what ends chains."""

    states: int = 0
    rows: frozenset[Mitigated] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.states or self.rows)

    def join(self, other: Missing) -> Missing:
        """What satisfies both: the larger number of wait states, and what ends the chains of either."""
        return Missing(max(self.states, other.states), self.rows | other.rows)

    def instructions(self, isa: InstructionSet, inst: Inst) -> list[Inst]:
        """Instructions that make up for it before ``inst``."""
        whole, rest = divmod(self.states, NOP_STATES)
        nops = [isa.make("s_nop", states - 1) for states in [NOP_STATES] * whole + [rest] * bool(rest)]
        return nops + hazard_patterns.mitigations_of(isa, self.rows, inst)


NONE_MISSING = Missing()


@dataclass(frozen=True, slots=True)
class Possible:
    """Hazards that may be in some code, with the registers by which they may be: of chains by the links that they have
    already."""

    states: Mapping[Hazard, RegSet]
    patterns: Mapping[tuple[Mitigated, int], RegSet]

    def select_consumed_by(self, isa: InstructionSet, insts: Iterable[Inst]) -> Possible:
        """Those of which one of ``insts`` would be the consumer, or of a chain a later link."""
        states, links = defaultdict[Hazard, RegSet](RegSet), defaultdict[tuple[Mitigated, int], RegSet](RegSet)
        for inst in insts:
            for hazard, regs in hazards.find_consumed_hazards(isa, inst).items():
                states[hazard] |= regs
            for link, regs in hazard_patterns.joins(isa, inst).items():
                links[link] |= regs
        for row, made in sorted(links, key=lambda link: -link[1]):
            links[row, made - 1] |= links[row, made]
        return Possible({hazard: regs for hazard, regs in states.items() if hazard in self.states},
                        {link: regs for link, regs in links.items() if link in self.patterns})

    def own(self, isa: InstructionSet, inst: Inst) -> PendingHazards:
        """What ``inst`` itself owes of them."""
        begun = hazard_patterns.start_patterns(isa, inst) if self.patterns else {}
        states = {key: regs for key, made in hazards.find_produced_hazards(isa, inst).items()
                  if (met := self.states.get(key[0])) is not None and (regs := made & (met | key[0].needs))}
        links = {key: regs & met for key, regs in begun.items()
                 if (met := self.patterns.get(key[:2])) is not None and regs.overlaps(met)}
        return PendingHazards(states, links) if states or links else NOTHING

    def can_arise_from(self, isa: InstructionSet, op: OpInfo) -> bool:
        """Whether instructions of ``op`` may owe any of them."""
        return (not self.states.keys().isdisjoint(hazards.rows_of(isa, op)[0])
                or any(made == 1 and row in hazard_patterns.begun_by(isa, op) for row, made in self.patterns))

    def unknown(self) -> PendingHazards:
        """Hazards that unknown code may leave pending where it is entered or left: compilers resolve the rest
        there."""
        return PendingHazards({}, {(row, 1, 0): met & _EVERY_SGPR for (row, made), met in self.patterns.items()
                         if made == 1 and row.resolved_at_calls and met.overlaps(_EVERY_SGPR)})


def possible(isa: InstructionSet, ops: Collection[OpInfo]) -> Possible:
    """Hazards that code of these operations can have."""
    rows = hazard_patterns.possible_patterns(isa, ops)
    return Possible(dict.fromkeys(hazards.possible_hazards(isa, ops), EVERY_REG),
                    {(row, made + 1): EVERY_REG for row in rows for made in range(len(row.links))})


def find_missing_mitigations(isa: InstructionSet, pending: Iterable[PendingHazards], inst: Inst) -> Missing:
    """What must stand before ``inst``, where all of ``pending`` is pending."""
    found = NONE_MISSING
    for pending_hazard in pending:
        if pending_hazard:
            states, rows = (
                hazards.compute_missing_states(isa, pending_hazard.states, inst),
                hazard_patterns.find_triggered_hazards(isa, pending_hazard.patterns, inst),
            )
            if states or rows:
                found = found.join(Missing(states, frozenset(rows)))
    return found
