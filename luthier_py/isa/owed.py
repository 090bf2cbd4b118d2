"""What instructions owe to those behind them: wait states and open chains of hazards, followed along the code.

In: instructions in the order in which they run. Out: what must stand before the next one. Invariant: whoever follows
the code, one instruction after another, and joins where paths meet, misses no hazard of `hazards` and `hazards_cured`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from luthier_py.isa import chains, hazards
from luthier_py.isa.chains import Chains
from luthier_py.isa.hazards import Hazard
from luthier_py.isa.hazards_cured import Cured
from luthier_py.isa.instruction import Inst, OpInfo
from luthier_py.isa.instruction_set import InstructionSet
from luthier_py.isa.registers import NO_REGS, RegSet

NOP_STATES = 16  # s_nop waits for SIMM16[3:0] + 1 states (AMD ISA, SOPP)
_EVERY_SGPR = RegSet(sgpr=(1 << 108) - 1)


@dataclass(frozen=True, slots=True)
class Owed:
    """What is owed at a place."""

    states: hazards.OwedStates = field(default_factory=dict)
    chains: Chains = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.states or self.chains)

    def join(self, other: Owed) -> Owed:
        if not (self and other):
            return self or other
        return Owed(hazards.joined(self.states, other.states), _joined(self.chains, other.chains))

    def behind(self, isa: InstructionSet, inst: Inst) -> Owed:
        """What ``inst`` leaves of it."""
        if not self:
            return self
        return Owed(hazards.passed(isa, self.states, inst), chains.left(self.chains, inst))

    def carried(self, isa: InstructionSet, inst: Inst) -> Owed:
        """Chains that go on with ``inst``."""
        return Owed({}, chains.carried(isa, self.chains, inst)) if self.chains else NOTHING


NOTHING = Owed()


@dataclass(frozen=True, slots=True)
class Missing:
    """What must stand before an instruction: wait states, and what ends chains."""

    states: int = 0
    rows: frozenset[Cured] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.states or self.rows)

    def join(self, other: Missing) -> Missing:
        return Missing(max(self.states, other.states), self.rows | other.rows)

    def instructions(self, isa: InstructionSet, inst: Inst) -> list[Inst]:
        """Instructions that make up for it before ``inst``."""
        whole, rest = divmod(self.states, NOP_STATES)
        nops = [isa.make("s_nop", states - 1) for states in [NOP_STATES] * whole + [rest] * bool(rest)]
        return nops + chains.cures_of(isa, self.rows, inst)


NONE_MISSING = Missing()


@dataclass(frozen=True, slots=True)
class Possible:
    """Hazards that may be in some code: between operations that occur in it."""

    states: frozenset[Hazard]
    chains: frozenset[Cured]

    def outlived(self, isa: InstructionSet, insts: Iterable[Inst]) -> int | None:
        """How many of ``insts``, the last one first, it takes until nothing is owed from before them; None if chains
        may last for ever, or there are too few."""
        longest, clause = max((row.states for row in self.states), default=0), any(row.clause for row in self.states)
        states = 0
        for count, inst in enumerate(insts if not self.chains else ()):
            if states >= longest and not clause:
                return count
            states += hazards.states_of(inst)
            clause = clause and hazards.goes_on(isa, inst.op)
        return None


def possible(isa: InstructionSet, ops: Collection[OpInfo]) -> Possible:
    return Possible(hazards.possible(isa, ops), chains.possible(isa, ops))


@lru_cache(maxsize=1 << 16)
def own(isa: InstructionSet, inst: Inst, rows: Possible) -> Owed:
    """What ``inst`` itself owes, of hazards that are possible."""
    states, begun = hazards.produced(isa, inst), chains.started(isa, inst)
    return Owed({key: regs for key, regs in states.items() if key[0] in rows.states},
                {key: regs for key, regs in begun.items() if key[0] in rows.chains})


def missing(isa: InstructionSet, owed: Iterable[Owed], inst: Inst) -> Missing:
    """What must stand before ``inst``, where all of ``owed`` is owed."""
    found = NONE_MISSING
    for debt in owed:
        if debt:
            states, rows = hazards.missing(isa, debt.states, inst), chains.met(isa, debt.chains, inst)
            if states or rows:
                found = found.join(Missing(states, frozenset(rows)))
    return found


def unknown(rows: Possible) -> Owed:
    """What code that nobody sees may owe where it is entered or left: compilers settle the rest there."""
    return Owed({}, {(row, 1, 0): _EVERY_SGPR for row in rows.chains if row.settled_at_calls})


def _joined(a: Chains, b: Chains) -> Chains:
    if not a or not b:
        return a or b
    return {**a, **{key: a.get(key, NO_REGS) | regs for key, regs in b.items()}}
