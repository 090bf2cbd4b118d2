"""What each instruction of a program does to registers, at its place.

In: the supergraph, and what is known of EXEC and modes on it. Out: effects by node. Invariant: as for `effects.effect`;
results are cached by kind of instruction, not by instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from luthier_py.isa import OpFlag
from luthier_py.isa.columns import Kinds
from luthier_py.isa.encoding.scan import Array
from luthier_py.program.analysis.changes import Changes, changes_modes
from luthier_py.program.analysis.effects import Effect, Summary, effect, everything, summarise_effects, usual_effects
from luthier_py.program.analysis.execution import ExecState, step
from luthier_py.program.analysis.registers import collect_owned_registers

if TYPE_CHECKING:
    from luthier_py.program.analysis.cfg import Graph
    from luthier_py.program.ir import Program


class ProgramEffects:
    """Effects at all places of a program: those of kinds, but where a mode or an empty EXEC makes a difference."""

    def __init__(self, program: Program, graph: Graph, states: Sequence[ExecState], changes: Changes) -> None:
        self.isa, self.graph, self._states, self._changes = program.isa, graph, states, changes
        self.owned = {f: regs & everything(program.isa) for f, regs in collect_owned_registers(program).items()}
        numbers: dict[Effect, int] = {}
        usual = {distinct: np.array([numbers.setdefault(each, len(numbers)) for each in usual_effects(distinct)], int)
                 for distinct in {code.distinct for code in graph.places.starts}}
        self._usual = list(numbers)
        self._numbers = {code: usual[code.distinct][code.kinds] for code in graph.places.starts}
        self._summary = cache(self._summarise_numbers)
        self._first_lane = graph.where(_reads_first_lane, Kinds.inst)
        self._modes = graph.where(changes_modes, Kinds.inst)

    def inside(self, index: int) -> list[Effect]:
        """The effects of each instruction of a node."""
        node, state = self.graph.nodes[index], self._states[index]
        numbers = self._numbers[node.function.code][node.start : node.stop]
        found = [self._usual[number] for number in numbers.tolist()]
        if self._in_modes(index):
            for place, instr in enumerate(node.instrs):
                found[place] = effect(self.isa, instr.inst, state, self.owned[node.function])
                state = step(self.isa, instr.inst, state)
        elif self._first_lane[index]:
            self._with_first_lanes(index, found)
        return found

    def summaries(self, index: int, bounds: Iterable[tuple[int, int]]) -> list[Summary]:
        """Summaries of some ranges of a node."""
        if self._first_lane[index] or self._in_modes(index):
            effects = self.inside(index)
            return [summarise_effects(effects[start:end]) for start, end in bounds]
        node = self.graph.nodes[index]
        numbers = self._numbers[node.function.code][node.start : node.stop]
        return [self._summary(numbers[start:end].tobytes()) for start, end in bounds]

    def _summarise_numbers(self, numbers: bytes) -> Summary:
        return summarise_effects([self._usual[number] for number in np.frombuffer(numbers, int).tolist()])

    def _in_modes(self, index: int) -> bool:
        state = self._states[index]
        return bool(self._modes[index] or state.indexed or state.skipping)

    def _with_first_lanes(self, index: int, found: list[Effect]) -> None:
        """Lane 0 is read where EXEC may be empty."""
        state = self._states[index]
        changes = dict(self._changes[index])
        first = dict(self._first_lane[index])
        for place in sorted(changes | first):
            if place in first and not state.some_lane:
                found[place] = effect(self.isa, first[place], state)
            if place in changes:
                state = step(self.isa, changes[place], state)


def _reads_first_lane(distinct: Kinds) -> Array:
    found: Array = distinct.flags & OpFlag.READS_FIRST_LANE.value != 0
    return found
