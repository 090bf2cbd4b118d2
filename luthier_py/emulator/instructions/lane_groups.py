"""Lanes that read a lane of their group, whose size a scalar says.

In: an instruction, and which lane it means. Out: vdst. Invariant: what no source defines (groups that are no power of
two, a lane that is not active) leaves with a fault before anything is written.
"""

from __future__ import annotations

from luthier_py.emulator.instructions.access import AccessCode
from luthier_py.emulator.instructions.crosslane import permute_backward
from luthier_py.emulator.instructions.operands import read_scalar, register, row_of
from luthier_py.emulator.records.layout import TEMPORARY_MASKS, TEMPORARY_ROW, SurfaceRefusal
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.semantics.algebra import U32, U64, Prim, Value, select
from luthier_py.isa.semantics.crossings import GatherInGroup

_ASKED_ROW, _MOST_AWAY, _WIDEST = TEMPORARY_ROW + 1, 63, 32
_MISSING = TEMPORARY_MASKS[0]


def gather_in_group(access: AccessCode, inst: Inst, row: GatherInGroup) -> None:
    """Emit V_PERMLANE_BCAST, _UP, _DOWN, _XOR or _IDX_GEN (VOP3Instructions.td of LLVM)."""
    w, addresses = access.w, row is GatherInGroup.ADDRESS
    source, target = (row_of(register(inst[name])) for name in ("src0", "vdst"))
    size = read_scalar(inst["src1" if addresses else "src2"], 32, w.context)
    away = size if addresses else read_scalar(inst["src1"], 32, w.context)
    unknown = (size & (size - 1)).ne(0) | size.eq(0) | (size > _WIDEST)
    if row not in (GatherInGroup.ONE, GatherInGroup.ADDRESS):
        unknown = unknown | (away > _MOST_AWAY)
    active = w.exec()
    access.refuse_where(active.ne(0) & unknown, SurfaceRefusal.LANE_GROUP)
    if addresses:
        w.put_off(lambda strip: strip.write_row(
            target, _select_lane_in_group(strip.ops.apply(Prim.LANE, U32), strip.row(source), strip.splat(size)) << 2))
        return

    def ask(strip: LaneStrip) -> None:
        lane = strip.ops.apply(Prim.LANE, U32)
        asked = _compute_source_lane(row, lane, strip.splat(away), strip.splat(size))
        strip.write_row(_ASKED_ROW, asked << 2)
        strip.write_mask(_MISSING, ((strip.splat(active) >> asked) & 1).eq(0))

    w.put_off_ahead(ask, _MISSING)
    missing = w.scalars.read(_MISSING, w.wave_size // 32)
    access.refuse_where(missing.ne(0), SurfaceRefusal.OTHER_LANE)
    permute_backward(w, active.to(U64), _ASKED_ROW, source, TEMPORARY_ROW)
    w.put_off(lambda strip: strip.write_row(target, strip.row(TEMPORARY_ROW)))


def _select_lane_in_group(lane: Value, number: Value, size: Value) -> Value:
    """The lane with a number in the group that ``lane`` is in."""
    return (lane & ~(size - 1)) | (number & (size - 1))


def _compute_source_lane(row: GatherInGroup, lane: Value, away: Value, size: Value) -> Value:
    if row is GatherInGroup.ONE:
        return _select_lane_in_group(lane, away, size)
    if row is GatherInGroup.CROSSED:
        other = lane ^ away
        return select(other > (lane | (size - 1)), lane, other)
    place = lane & (size - 1)
    if row is GatherInGroup.BELOW:
        return select(place < away, lane, lane - away)
    return select(place + away < size, lane + away, lane)
