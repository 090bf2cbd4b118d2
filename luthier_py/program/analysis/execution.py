"""What is known of EXEC, and of the modes that change what vector instructions mean: a forward analysis.

In: the supergraph. Out: an :class:`ExecState` before every instruction, and the ranges of a block with one EXEC.
Invariant: each claim holds whenever control gets there, on every path. A wave starts with some lane active.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from luthier_py.isa import EXEC, MODE, Inst, InstructionSet, OperandKind, OpFlag, OpInfo, RegFile, Target
from luthier_py.isa.properties.vector_modes import Turned, classify_mode_switch
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action, Branch, Indexing, Switch
from luthier_py.isa.semantics.readers.evaluate import evaluate
from luthier_py.isa.semantics.readers.lane_bits import SOME, some_lanes
from luthier_py.isa.semantics.readers.numbers import UNIFORM, Known, Number, constant
from luthier_py.program.analysis.cfg import Graph, solve
from luthier_py.program.analysis.changes import EXEC_BITS, Changes

if TYPE_CHECKING:
    from luthier_py.program.ir import Block

_EXEC_BIT = 1 << EXEC


class Skipping(IntEnum):
    """Whether vector instructions may be skipped. S_SETVSKIP wants one wait state after it (Vega ISA 12.4)."""

    NEVER = 0
    ENDING = 1  # the instruction before said so: not where something is inserted, but behind what comes next
    PERHAPS = 2


class ExecState(NamedTuple):
    """``nonzero``: bit i says that the lane mask in SGPR i (and i + 1 in wave64) has some lane. ``foreign``: masks that
    inserted code writes, of which nothing is known."""

    value: int | None  # of EXEC, if it is the same on all paths
    nonzero: int
    indexed: bool      # VGPR operands may be relative to M0
    skipping: Skipping
    foreign: int = 0

    @property
    def some_lane(self) -> bool:
        """Whether EXEC surely is not 0 here: some lane is active."""
        return bool(self.nonzero & _EXEC_BIT)


START = ExecState(None, _EXEC_BIT, False, Skipping.NEVER)
UNKNOWN = ExecState(None, 0, False, Skipping.NEVER)  # code that is not known keeps to the ABI, where both modes are off


def exec_states(isa: InstructionSet, graph: Graph, changes: Changes, foreign: int = 0) -> list[ExecState]:
    """The state before each node; UNKNOWN where control never comes."""
    start, unknown = START._replace(foreign=foreign), UNKNOWN._replace(foreign=foreign)
    boundary: list[ExecState | None] = [
        unknown if node.index in graph.arrives else start if node.index in graph.kernels else None
        for node in graph.nodes
    ]

    def flow(index: int, state: ExecState) -> ExecState:
        for _, inst in changes[index]:
            state = step(isa, inst, state)
        return state

    ways = _ways_with_lanes(graph)

    def along(index: int, target: int, state: ExecState) -> ExecState:
        some = (index, graph.nodes[target].block.address) in ways
        return state._replace(nonzero=state.nonzero | _EXEC_BIT) if some else state

    states, _ = solve(graph.successors, boundary, _join, flow, along)
    return [unknown if state is None else state for state in states]


def _join(a: ExecState, b: ExecState) -> ExecState:
    return ExecState(a.value if a.value == b.value else None, a.nonzero & b.nonzero, a.indexed or b.indexed,
                     max(a.skipping, b.skipping), a.foreign)


def _ways_with_lanes(graph: Graph) -> set[tuple[int, int]]:
    """Nodes, and blocks that they go to only when some lane is active: s_cbranch_execz falls through, and
    s_cbranch_execnz jumps."""
    found: set[tuple[int, int]] = set()
    branches = graph.where(lambda distinct: distinct.match_ops(_branch_on_exec),
                           lambda distinct, kind: _branch_on_exec(distinct.op(kind)))
    for node, places in zip(graph.nodes, branches, strict=True):
        row = places[-1][1] if places else None
        if row is not None and len(node.block.successors) == 2:
            taken, following = node.block.successors
            found.add((node.index, following if row.if_zero else taken))
    return found


def _branch_on_exec(op: OpInfo) -> Branch | None:
    row = find_meaning(op)
    return row if isinstance(row, Branch) and row.register == "exec" else None


@lru_cache(maxsize=1 << 14)  # code repeats itself, and is gone through more than once
def step(isa: InstructionSet, inst: Inst, state: ExecState) -> ExecState:
    """The state after an instruction."""
    flags, written = inst.op.flags, inst.writes.sgpr
    if state.skipping is Skipping.ENDING:
        state = state._replace(skipping=Skipping.NEVER)
    if OpFlag.INDEXES_REGISTERS in flags or written >> MODE & 1:
        state = _modes(isa.target, inst, state)
    overwritten = written | written >> 1
    if not written or OpFlag.SALU not in flags and not (written & EXEC_BITS or state.nonzero & overwritten):
        return state
    nonzero = state.nonzero & ~overwritten
    for mask, enough in some_lanes(inst, isa.wave_size):
        if any(source == SOME or state.nonzero >> source & 1 for source in enough):
            nonzero |= 1 << mask
    value = _exec_after(inst, state, isa.wave_size // 32) if written & EXEC_BITS else state.value
    nonzero = nonzero & ~state.foreign | (_EXEC_BIT if value else 0)
    return ExecState(value, nonzero, state.indexed, state.skipping, state.foreign)


def _modes(target: Target, inst: Inst, state: ExecState) -> ExecState:
    row = find_meaning(inst.op)
    if row in (Action.SETREG, Action.SETREG_IMM):
        switch = classify_mode_switch(target, inst)
        skipping = Skipping.PERHAPS if switch is Turned.BOTH_ON else state.skipping
        return state if switch is Turned.NOT else state._replace(indexed=True, skipping=skipping)
    if row is Switch.SKIP:
        return state._replace(skipping=_compute_skipping_after(inst))
    if row is Switch.UPPER:
        return state._replace(indexed=inst["simm16"].value & 0xFF != 0)
    if row in (Indexing.ON, Switch.OPERANDS):
        return state._replace(indexed=True)
    return state._replace(indexed=False) if row is Indexing.OFF else state


def _compute_skipping_after(inst: Inst) -> Skipping:
    """VSKIP = S0[S1[4:0]] (Vega ISA 12.4)."""
    value, bit = inst["src0"], inst["src1"]
    if value.kind is not OperandKind.CONSTANT:
        return Skipping.PERHAPS
    off = not value.value >> (bit.value & 31) & 1 if bit.kind is OperandKind.CONSTANT else value.value == 0
    return Skipping.ENDING if off else Skipping.PERHAPS


def _exec_after(inst: Inst, state: ExecState, dwords: int) -> int | None:
    """EXEC after an instruction that writes it, if that is a constant."""
    before = None if state.value is None else [constant(state.value >> 32 * half) for half in range(dwords)]

    def read(file: RegFile, index: int) -> Known:
        in_exec = before is not None and file is RegFile.SGPR and 0 <= index - EXEC < dwords
        return before[index - EXEC] if in_exec and before is not None else UNIFORM if file is RegFile.SGPR else None

    after = evaluate(inst, read)
    found = 0
    for half in range(dwords):
        untouched = not inst.writes.sgpr >> EXEC + half & 1
        known = read(RegFile.SGPR, EXEC + half) if untouched else after.get((RegFile.SGPR, EXEC + half))
        if not isinstance(known, Number) or known.constant is None:
            return None
        found |= known.constant << 32 * half
    return found


def stretches(block: Block, ends: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Index ranges with one value of EXEC. ``ends``: in the function those that write EXEC, and calls; each is the last
    of its range."""
    start, stop = block.start, block.stop
    inside = [at + 1 - start for at in ends[bisect_left(ends, start) : bisect_left(ends, stop)]]
    if not inside or inside[-1] != stop - start:
        inside.append(stop - start)
    return tuple(zip([0, *inside[:-1]], inside, strict=True))
