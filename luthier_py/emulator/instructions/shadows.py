"""What native code that watches a wave has to know of registers before an instruction.

In: an instruction before its own code. Out: IR that reports it, and where it crosses lanes runs it on shadows, rows
that have 1 in lanes where a register was never written: what it moves between lanes, they move. Invariant: how
lanes cross is said once, by the code of the instruction itself; nothing of the wave but temporary rows is another
afterwards.
"""

from __future__ import annotations

from luthier_py.base.records import replace
from luthier_py.emulator.instructions.access import AccessCode
from luthier_py.emulator.instructions.crosslane import select_lane
from luthier_py.emulator.instructions.dpp import Dpp
from luthier_py.emulator.instructions.operands import register, row_of
from luthier_py.emulator.instructions.routes import collect_moved_operands, map_routed_rows, relative_operands
from luthier_py.emulator.instructions.steps import CONSTANT, ROLE, numbers_of, register_number
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.instructions.writers import WRITERS
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.records.layout import GIVEN_SHADOWS, ROUTED_SHADOWS, WRITTEN_LANES
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.isa.encoding.instruction import Inst, OperandKind, OpFlag
from luthier_py.isa.model.registers import Reg, vgpr
from luthier_py.isa.properties.float_results import FloatFormat
from luthier_py.isa.properties.lost_denormals import find_flushed_denormals
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import F16, F32, U32, select
from luthier_py.isa.semantics.control import CrossLane
from luthier_py.isa.semantics.operand_parts import constant_of

_TYPES = {FloatFormat.F16: F16, FloatFormat.F32: F32}


def watch(access: AccessCode, inst: Inst) -> None:
    """Write code that reports the coming instruction, and how it crosses lanes, to the checks."""
    if access.w.settings.checks & Checks.INIT:
        _follow(access, inst)
    access.watch(inst)
    if access.w.settings.checks & Checks.HARDWARE:
        _look_for_denormals(access.w, inst)


def _look_for_denormals(w: WaveCode, inst: Inst) -> None:
    """In dwords of operands where they are lost, though MODE keeps them."""
    lost = {name: kind for name, kind in find_flushed_denormals(inst, w.settings.target).items()
            if kind not in _TYPES or not w.context.flushes_sources(_TYPES[kind])}
    given = [(kind, number, 0) for name, kind in lost.items() for number in numbers_of(inst[name])]
    given += [(kind, CONSTANT, constant_of(inst, inst[name])) for name, kind in lost.items()
              if inst[name].kind is OperandKind.CONSTANT]
    if given:
        words = [word for kind, number, value in given
                 for word in (number | list(FloatFormat).index(kind) + 1 << ROLE, value & 0xFFFFFFFF)]
        numbers = w.emitter.numbers([w.pc, int(OpFlag.MATRIX in inst.op.flags), len(given), *words])
        w.emitter.call("void", "luthier_watch_denormals", [("ptr", "%wave"), ("ptr", numbers)])


def _follow(access: AccessCode, inst: Inst) -> None:
    w, row = access.w, find_meaning(inst.op)
    if isinstance(row, CrossLane) and row is not CrossLane.OTHER_HALF:
        lane = select_lane(w, inst, row)
        w.emitter.call("void", "luthier_watch_lane", [("ptr", "%wave"), ("i64", str(lane.ref))])
    elif moved := collect_moved_operands(inst):
        w.finish_state()
        shadowed = _on_shadows(w, inst, moved)
        WRITERS[type(row)](access, shadowed, row)
    elif map_routed_rows(inst) and not relative_operands(inst, w.index.roles if w.index else 0):
        w.finish_state()
        _cross(w, inst)


def _on_shadows(w: WaveCode, inst: Inst, moved: tuple[str, ...]) -> Inst:
    """The instruction with rows of shadows in the place of what it moves. Results begin as what their registers are,
    which lanes that are left out keep."""
    places = {name: ROUTED_SHADOWS + map_routed_rows(inst)[name] for name in moved}
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

    def write(strip: LaneStrip) -> None:
        for dword in range(source.dwords):
            strip.write_row(ROUTED_SHADOWS + dword, dpp.read(strip, GIVEN_SHADOWS + dword))
        one, enabled = strip.ops.constant(U32, 1), dpp.compute_enabled_lanes(strip)
        strip.write_row(WRITTEN_LANES, one if enabled is None else select(enabled, one, 0))

    w.put_off_ahead(write)


def _cast(w: WaveCode, reg: Reg, place: int) -> None:
    for dword in range(reg.dwords):
        w.emitter.call("void", "luthier_watch_cast", [
            ("ptr", "%wave"), ("i64", str(register_number(row_of(reg) + dword))), ("ptr", w.row(place + dword))])
