"""Which lanes an instruction reads, for native code that follows values which were never written.

In: an instruction before its own code. Out: IR that runs it on shadows, rows that have 1 in lanes where a register was
never written: what it moves between lanes, they move. Invariant: how lanes cross is said once, by the code of the
instruction itself; nothing of the wave but temporary rows is another afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from luthier_py.emulator.instructions.access import AccessCode
from luthier_py.emulator.instructions.crosslane import chosen_lane
from luthier_py.emulator.instructions.dpp import Dpp
from luthier_py.emulator.instructions.operands import register, row_of
from luthier_py.emulator.instructions.routes import moved_operands, relative_operands, routed_rows
from luthier_py.emulator.instructions.steps import register_number
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.instructions.writers import WRITERS
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.records.layout import GIVEN_SHADOWS, ROUTED_SHADOWS, WRITTEN_LANES
from luthier_py.emulator.strips.strip import LaneChunk
from luthier_py.isa.instruction import Inst
from luthier_py.isa.registers import Reg, vgpr
from luthier_py.isa.semantics import meaning
from luthier_py.isa.semantics.algebra import U32, select
from luthier_py.isa.semantics.control import CrossLane


def watch(access: AccessCode, inst: Inst) -> None:
    """Tell who watches what the instruction is going to do, and how lanes cross."""
    if access.w.settings.checks & Checks.INIT:
        _follow(access, inst)
    access.watch(inst)


def _follow(access: AccessCode, inst: Inst) -> None:
    w, row = access.w, meaning(inst.op)
    if isinstance(row, CrossLane) and row is not CrossLane.OTHER_HALF:
        lane = chosen_lane(w, inst, row)
        w.emitter.call("void", "luthier_watch_lane", [("ptr", "%wave"), ("i64", str(lane.ref))])
    elif moved := moved_operands(inst):
        w.finish_state()
        shadowed = _on_shadows(w, inst, moved)
        WRITERS[type(row)](access, shadowed, row)
    elif routed_rows(inst) and not relative_operands(inst, w.index.roles if w.index else 0):
        w.finish_state()
        _cross(w, inst)


def _on_shadows(w: WaveCode, inst: Inst, moved: tuple[str, ...]) -> Inst:
    """The instruction with rows of shadows in the place of what it moves. Results begin as what their registers are,
    which lanes that are left out keep."""
    places = {name: ROUTED_SHADOWS + routed_rows(inst)[name] for name in moved}
    if len(set(places.values())) == 1:
        places[moved[-1]] = GIVEN_SHADOWS
    for name, place in places.items():
        _cast(w, register(inst[name]), place)
    operands = tuple(replace(operand, reg=vgpr(places[operand.name])) if operand.name in places else operand
                     for operand in inst.operands)
    return Inst(inst.op, inst.fields, inst.literal, inst.raw, operands)


def _cross(w: WaveCode, inst: Inst) -> None:
    """What lanes read of src0 by its data parallel primitive, and which are written."""
    source = register(inst["src0"])
    _cast(w, source, GIVEN_SHADOWS)
    dpp = Dpp.of(w, inst, GIVEN_SHADOWS, source.dwords)
    assert dpp is not None

    def write(chunk: LaneChunk) -> None:
        for dword in range(source.dwords):
            chunk.write_row(ROUTED_SHADOWS + dword, dpp.read(chunk, GIVEN_SHADOWS + dword))
        one, enabled = chunk.ops.constant(U32, 1), dpp.enabled(chunk)
        chunk.write_row(WRITTEN_LANES, one if enabled is None else select(enabled, one, 0))

    w.put_off_ahead(write)


def _cast(w: WaveCode, reg: Reg, place: int) -> None:
    for dword in range(reg.dwords):
        w.emitter.call("void", "luthier_watch_cast", [
            ("ptr", "%wave"), ("i64", str(register_number(row_of(reg) + dword))), ("ptr", w.row(place + dword))])
