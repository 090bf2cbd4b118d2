"""What is known of EXEC, and of the modes that change what vector instructions mean: a forward analysis.

In: the supergraph. Out: an :class:`ExecState` before every instruction, and the stretches of a block. Invariant: each
claim holds whenever control gets there, on every path. A wave starts with some lane active.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from luthier_py.analysis.cfg import Graph, solve
from luthier_py.analysis.changes import EXEC_BITS, Changes
from luthier_py.ir import Block
from luthier_py.isa import EXEC, Inst, InstructionSet, Operand, OperandKind, OpFlag

_EXEC_BIT = 1 << EXEC

_MOVES = frozenset({"S_MOV_B32", "S_MOV_B64"})
_ORS = frozenset({"S_OR_B32", "S_OR_B64"})
_SAVES = frozenset(
    f"S_{operation}_SAVEEXEC_B{width}" for width in (32, 64)
    for operation in ("AND", "OR", "XOR", "ANDN1", "ANDN2", "ORN1", "ORN2", "NAND", "NOR", "XNOR")
)
_INDEX_ON = frozenset({"S_SET_GPR_IDX_ON", "S_SET_GPR_IDX_MODE"})
_SETREG = frozenset({"S_SETREG_B32", "S_SETREG_IMM32_B32"})
_MODE_REGISTER, _GPR_IDX_BIT = 1, 27  # hwreg id of MODE, and its bits gpr_idx_en and vskip (Vega ISA 3.3.2)


class Skipping(IntEnum):
    """Whether vector instructions may be skipped. S_SETVSKIP wants one wait state after it (Vega ISA 12.4)."""

    NEVER = 0
    ENDING = 1  # the instruction before said so: not where something is inserted, but behind what comes next
    PERHAPS = 2


class ExecState(NamedTuple):
    """``nonzero``: bit i says that the lane mask in SGPR i (and i + 1 in wave64) has some lane."""

    value: int | None  # of EXEC, if it is the same on all paths
    nonzero: int
    indexed: bool      # VGPR operands may be relative to M0
    skipping: Skipping

    @property
    def some_lane(self) -> bool:
        return bool(self.nonzero & _EXEC_BIT)


START = ExecState(None, _EXEC_BIT, False, Skipping.NEVER)
UNKNOWN = ExecState(None, 0, False, Skipping.NEVER)  # code that is not known keeps to the ABI, where both modes are off


def exec_states(isa: InstructionSet, graph: Graph, changes: Changes) -> list[ExecState]:
    """The state before each node; UNKNOWN where control never comes."""
    boundary: list[ExecState | None] = [
        UNKNOWN if node.index in graph.arrives else START if node.index in graph.kernels else None
        for node in graph.nodes
    ]

    def flow(index: int, state: ExecState) -> ExecState:
        for _, inst in changes[index]:
            state = step(isa, inst, state)
        return state

    def along(index: int, target: int, state: ExecState) -> ExecState:
        return _after_branch(graph, index, target, state)

    states = solve(range(len(graph.nodes)), graph.successors, boundary, _join, flow, along)
    return [UNKNOWN if state is None else state for state in states]


def _join(a: ExecState, b: ExecState) -> ExecState:
    return ExecState(a.value if a.value == b.value else None, a.nonzero & b.nonzero, a.indexed or b.indexed,
                     max(a.skipping, b.skipping))


def _after_branch(graph: Graph, index: int, target: int, state: ExecState) -> ExecState:
    """s_cbranch_execz falls through, and s_cbranch_execnz jumps, only when some lane is active."""
    block = graph.nodes[index].block
    base = block.instrs[-1].inst.op.base
    if base not in ("S_CBRANCH_EXECZ", "S_CBRANCH_EXECNZ") or len(block.successors) != 2:
        return state
    taken, following = block.successors
    some_lane = taken if base == "S_CBRANCH_EXECNZ" else following
    if graph.nodes[target].block.address == some_lane:
        return state._replace(nonzero=state.nonzero | _EXEC_BIT)
    return state


def step(isa: InstructionSet, inst: Inst, state: ExecState) -> ExecState:
    """The state after an instruction."""
    op = inst.op
    if state.skipping is Skipping.ENDING:
        state = state._replace(skipping=Skipping.NEVER)
    if OpFlag.INDEXES_REGISTERS in op.flags or op.base in _SETREG or op.base == "S_SETVSKIP":
        state = _modes(inst, state)
    written = inst.writes.sgpr
    if not written or not (written & EXEC_BITS or state.nonzero & (written | written >> 1) or op.base in _GENERATES):
        return state
    nonzero = state.nonzero & ~(written | written >> 1)
    if OpFlag.SALU in op.flags:
        nonzero |= _nonzero_after(inst, state)
    value = _exec_value(isa, inst) if written & EXEC_BITS else state.value
    return ExecState(value, nonzero | (_EXEC_BIT if value else 0), state.indexed, state.skipping)


def _modes(inst: Inst, state: ExecState) -> ExecState:
    base = inst.op.base
    if base in _SETREG:
        simm = inst["simm16"].value
        reaches = (simm >> 6 & 31) + (simm >> 11 & 31) >= _GPR_IDX_BIT
        on = simm & 63 == _MODE_REGISTER and reaches
        return state._replace(indexed=True, skipping=Skipping.PERHAPS) if on else state
    if base == "S_SETVSKIP":
        return state._replace(skipping=_skipping_after(inst))
    if base == "S_SET_VGPR_MSB":
        return state._replace(indexed=inst["simm16"].value & 0xFF != 0)
    if base in _INDEX_ON:
        return state._replace(indexed=True)
    return state._replace(indexed=False) if base == "S_SET_GPR_IDX_OFF" else state


def _skipping_after(inst: Inst) -> Skipping:
    """VSKIP = S0[S1[4:0]] (Vega ISA 12.4)."""
    value, bit = inst["src0"], inst["src1"]
    if value.kind is not OperandKind.CONSTANT:
        return Skipping.PERHAPS
    off = not value.value >> (bit.value & 31) & 1 if bit.kind is OperandKind.CONSTANT else value.value == 0
    return Skipping.ENDING if off else Skipping.PERHAPS


def _nonzero_after(inst: Inst, state: ExecState) -> int:
    """The mask bit of the destination, if the result has some lane."""
    target = inst.find("sdst")
    if target is None or target.reg is None:
        return 0
    base = inst.op.base
    sources = [operand for name in ("src0", "src1") if (operand := inst.find(name)) is not None]
    if base in _SAVES:
        return 1 << target.reg.index if state.some_lane and target.reg.index != EXEC else 0
    if (base in _MOVES or base in _ORS) and any(_is_nonzero(source, state) for source in sources):
        return 1 << target.reg.index
    return 0


def _is_nonzero(operand: Operand, state: ExecState) -> bool:
    if operand.kind is OperandKind.CONSTANT:
        return operand.value != 0
    return operand.reg is not None and bool(state.nonzero >> operand.reg.index & 1)


def _exec_value(isa: InstructionSet, inst: Inst) -> int | None:
    """EXEC after an instruction that writes it, if that is a constant."""
    source = inst.find("src0")
    whole = inst.writes.sgpr & EXEC_BITS == EXEC_BITS or isa.wave_size == 32
    if inst.op.base not in _MOVES or source is None or source.kind is not OperandKind.CONSTANT or not whole:
        return None
    return source.value & (1 << isa.wave_size) - 1


_GENERATES = _MOVES | _ORS | _SAVES


def stretches(block: Block, ends: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Index ranges with one value of EXEC. ``ends``: in the function those that write EXEC, and calls; each is the last
    of its stretch."""
    start, stop = block.start, block.stop
    inside = [at + 1 - start for at in ends[bisect_left(ends, start) : bisect_left(ends, stop)]]
    if not inside or inside[-1] != stop - start:
        inside.append(stop - start)
    return tuple(zip([0, *inside[:-1]], inside, strict=True))
