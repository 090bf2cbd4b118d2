"""Instructions that read or write registers of other lanes.

In: an instruction and its row. Out: IR on the wave's memory, after everything put off is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier_py.emulator.operands import Raw, read_scalar, row_of
from luthier_py.emulator.layout import row_offset
from luthier_py.errors import Unsupported
from luthier_py.isa.instruction import Inst
from luthier_py.isa.registers import RegFile
from luthier_py.isa.semantics.algebra import U32, U64, Value, ctz, select
from luthier_py.isa.semantics.control import CrossLane
from luthier_py.isa.semantics.lds import Permute

if TYPE_CHECKING:
    from luthier_py.emulator.translate import Translator


def cross_lane(t: Translator, inst: Inst, row: CrossLane) -> None:
    source, target = inst["src0"], inst.find("vdst") or inst["sdst"]
    assert target.reg is not None
    if row is CrossLane.WRITE:
        value = read_scalar(source, 32, t.context)
        lane = _lane(t, inst)
        t.settle()
        t.emitter.emit(f"store i32 {value.ref}, ptr {_element(t, row_of(target.reg), lane)}, align 4")
        return
    if source.reg is None or source.reg.file is RegFile.SGPR:
        t.scalars.write(target.reg.index, read_scalar(source, 32, t.context))
        return
    if row is CrossLane.READ_FIRST:
        mask = t.exec().to(U64)
        lane = select(mask.eq(0), 0, ctz(mask))
    else:
        lane = _lane(t, inst)
    t.settle()
    pointer = _element(t, row_of(source.reg), lane)
    t.scalars.write(target.reg.index, t.ops.let(U32, f"load i32, ptr {pointer}, align 4"))


def _lane(t: Translator, inst: Inst) -> Value:
    return (read_scalar(inst["src1"], 32, t.context) & (t.wave_size - 1)).to(U64)


def _element(t: Translator, row: int, lane: Value) -> str:
    base = t.emitter.let(f"getelementptr i8, ptr %wave, i64 {row_offset(row, t.wave_size)}")
    return t.emitter.let(f"getelementptr i32, ptr {base}, i64 {lane.ref}")


def permute(t: Translator, inst: Inst, row: Permute) -> None:
    raise Unsupported(f"the emulator does not know {inst.op.mnemonic}")


__all__ = ["Raw", "cross_lane", "permute"]
