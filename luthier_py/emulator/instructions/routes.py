"""Which operands of an instruction are not the lanes, or the registers, that they name.

In: an instruction. Out: operands whose lanes are read by other lanes, each with the rows of shadows (layout) that get
what was read; operands whose number M0 adds to. Invariant: of registers that M0 chooses nothing else is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from luthier_py.isa.encoding.instruction import Access, Inst, Operand, OpFlag
from luthier_py.isa.model.registers import M0, RegFile, RegSet
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.cdna4 import SwapRows
from luthier_py.isa.semantics.control import CrossLane, Indexing
from luthier_py.isa.semantics.crossings import GatherInGroup, GatherInRow, RelativeMove
from luthier_py.isa.semantics.lds import Permute

INDEX_ROLES = {"src0": 0, "src1": 1, "src2": 2, "vdst": 3}
"""Bits of a region of indexed registers, which says which operands are relative to M0."""


class RelativeBits(IntEnum):
    """Of M0, that are added to a register's number."""

    NONE = 0
    ALL = 1
    LOW = 2   # [9:0]
    HIGH = 3  # [25:16]


_BITS = {None: RelativeBits.NONE, (0, 32): RelativeBits.ALL, (0, 10): RelativeBits.LOW, (16, 10): RelativeBits.HIGH}
_SCALAR_MOVES: dict[object, dict[str, RelativeBits]] = {
    Indexing.READ_SCALAR: {"src0": RelativeBits.ALL}, Indexing.WRITE_SCALAR: {"sdst": RelativeBits.ALL},
    Indexing.MOVE_SCALAR: {"src0": RelativeBits.LOW, "sdst": RelativeBits.HIGH},
}  # fmt: skip


def collect_moved_operands(inst: Inst) -> tuple[str, ...]:
    """Those that the instruction moves between lanes as they are: the results first, each with a row of its own, then
    a source that is no result."""
    row = find_meaning(inst.op)
    if isinstance(row, SwapRows):
        return "vdst", "src0"
    if isinstance(row, Permute):
        return "vdst", "addr" if row is Permute.SWIZZLE else "data0"
    if row is CrossLane.OTHER_HALF or isinstance(row, GatherInRow | GatherInGroup) and row is not GatherInGroup.ADDRESS:
        return "vdst", "src0"
    return ()


def map_routed_rows(inst: Inst) -> dict[str, int]:
    """By operand, the first row of what lanes read of it."""
    if moved := collect_moved_operands(inst):
        return {name: number if isinstance(find_meaning(inst.op), SwapRows) else 0 for number, name in enumerate(moved)}
    source = inst.find("src0")
    is_vector = source is not None and source.reg is not None and source.reg.file is not RegFile.SGPR
    return {"src0": 0} if OpFlag.DPP in inst.op.flags and is_vector else {}


def collect_written_operands(inst: Inst) -> list[Operand]:
    """V_MOVRELD's vdst among them, which tables leave out, since it may write any register."""
    moves = isinstance(find_meaning(inst.op), RelativeMove)
    return [operand for operand in inst.operands if operand.reg is not None
            and (Access.WRITE in operand.access or moves and operand.name == "vdst")]


def read_operands(inst: Inst) -> list[Operand]:
    """Without what only is among them since its other lanes, or another register in its place, keep what they have."""
    row = find_meaning(inst.op)
    keeps = row is CrossLane.WRITE or isinstance(row, RelativeMove) and len(row.row.signature.results) == 1
    return [operand for operand in inst.operands if operand.reg is not None and Access.READ in operand.access
            and not (keeps and operand.name == "vdst")]


def registers_of(inst: Inst) -> tuple[RegSet, RegSet]:
    """Read, and written; of those that M0 chooses the first that it can choose."""
    effects = inst.effects()
    if OpFlag.INDEXES_REGISTERS not in inst.op.flags:
        return effects.reads, effects.writes
    m0 = RegSet(1 << M0)
    named = RegSet.of(*(operand.reg for operand in read_operands(inst) if operand.reg is not None))
    written = RegSet.of(*(operand.reg for operand in collect_written_operands(inst) if operand.reg is not None))
    return named | effects.reads & m0, written | effects.writes & m0


def relative_operands(inst: Inst, indexed: int) -> Mapping[str, RelativeBits]:
    """Those to whose number M0 adds; ``indexed``: roles in the region of indexed registers that is open."""
    row = find_meaning(inst.op)
    if isinstance(row, RelativeMove):
        ways = {"src0": _BITS[row.source], "vdst": _BITS[row.target]}
    elif isinstance(row, Indexing):
        ways = _SCALAR_MOVES.get(row, {})
    else:
        ways = {operand.name: RelativeBits.ALL for operand in inst.operands if operand.reg is not None
                and operand.reg.file is RegFile.VGPR and indexed >> INDEX_ROLES.get(operand.name, 4) & 1}
    return {name: bits for name, bits in ways.items() if bits}
