"""Scalar instructions, emitted at once.

In: an instruction and its Scalar row, or an access of a hardware register. Out: IR on Scalars.
"""

from __future__ import annotations

from collections.abc import Iterator

from luthier_py.base.errors import Unsupported
from luthier_py.emulator.instructions.modes import Mode, hardware_register, mode_after
from luthier_py.emulator.instructions.operands import (
    ABS,
    NEG,
    apply_output_modifiers,
    destinations,
    field,
    read_scalar,
    scalar_operands,
    with_sign,
)
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.vector_regions.rounding import Arithmetic
from luthier_py.isa.encoding.instruction import FLAT_SCR_LO, Inst, Operand
from luthier_py.isa.model.registers import EXEC, M0, MODE, SCRATCH_BASE
from luthier_py.isa.properties.vector_modes import BANKS
from luthier_py.isa.semantics.algebra import U32, U64, Kind, Type, Value
from luthier_py.isa.semantics.control import Action, HardwareRegister
from luthier_py.isa.semantics.floats import flush_denormals
from luthier_py.isa.semantics.meaning import Scalar, SignaturePart


def scalar(w: WaveCode, inst: Inst, row: Scalar) -> None:
    """Emit one scalar instruction, or vector instruction on scalars (V_S_*). Unsupported for floats under a MODE with
    FP16_OVFL or another rounding than to nearest even."""
    operands = iter(scalar_operands(inst))
    target = next((operand for operand in destinations(inst) if operand.reg is not None), None)
    slots = (*row.signature.results, *row.signature.sources)
    width = next((slot.type for slot in slots if slot.type.bits > 1), U32)
    floats = any(slot.type.kind is Kind.FLOAT for slot in slots)
    if floats and Mode(w.mode).arithmetic(inst, row) != Arithmetic():
        raise Unsupported("a scalar float instruction with rounding other than to nearest even, or FP16_OVFL")
    taken = [_source(w, slot, operands, target, width) for slot in row.signature.sources]
    taken = [_apply_sign_modifiers(inst, number, value) for number, value in enumerate(taken)]
    taken = [flush_denormals(value) if w.context.flushes_sources(value.type) else value for value in taken]
    output = row.compute(*taken)
    outputs = output if isinstance(output, tuple) else (output,)
    for slot, value in zip(row.signature.results, outputs, strict=True):
        if slot.name == "scc":
            w.scalars.write_scc(value)
        elif slot.name == "exec":
            w.scalars.write(EXEC, value)
        elif target is not None and target.reg is not None:
            value = _apply_result_modifiers(w, inst, value)
            value = flush_denormals(value) if w.context.flushes_results(value.type) else value
            w.scalars.write(target.reg.index, _dword(value))


def _apply_sign_modifiers(inst: Inst, number: int, value: Value) -> Value:
    """Vector instructions on scalars have modifiers."""
    modifiers = field(inst, f"src{number}_modifiers")
    if not modifiers:
        return value
    bits = value.as_(value.type.unsigned)
    return with_sign(bits, bool(modifiers & NEG), bool(modifiers & ABS)).as_(value.type)


def _apply_result_modifiers(w: WaveCode, inst: Inst, value: Value) -> Value:
    omod = field(inst, "omod") if w.context.scales(value.type) else 0
    return apply_output_modifiers(value, omod, bool(field(inst, "clamp")), not w.context.mode.clamps_nan)


def _dword(value: Value) -> Value:
    """A short result has zeros above it."""
    return value.as_(value.type.unsigned).to(U32) if value.type.bits == 16 else value


def _source(w: WaveCode, slot: SignaturePart, operands: Iterator[Operand], target: Operand | None, width: Type
            ) -> Value:
    if slot.name == "scc":
        return w.scalars.scc()
    if slot.name == "exec":
        return w.scalars.read(EXEC, width.bits // 32)
    if slot.name == "m0":
        return w.scalars.read(M0)
    if slot.name == "old":
        assert target is not None
        return read_scalar(target, width.bits, w.context).as_(width)
    value = read_scalar(next(operands), max(slot.type.bits, 32), w.context)
    return value.to(slot.type.unsigned).as_(slot.type)


_KEPT = {HardwareRegister.MODE.value: MODE, FLAT_SCR_LO: SCRATCH_BASE, FLAT_SCR_LO + 1: SCRATCH_BASE + 1}
"""Hardware registers that waves have, by their number."""


_MEMORY_VIOLATION = 8  # bit of TRAPSTS (LLVM, SIDefines.h)
_CYCLES = HardwareRegister.SHADER_CYCLES.value, HardwareRegister.SHADER_CYCLES_HI.value


def hardware(w: WaveCode, inst: Inst, row: Action) -> None:
    """s_getreg and s_setreg. Of MODE's bits those that matter are followed by modes."""
    number, first, size = hardware_register(inst)
    if row is Action.GETREG and (shown := _read_readonly_register(w, number)) is not None:
        if inst["sdst"].reg is not None:
            w.scalars.write(inst["sdst"].reg.index, (shown >> first) & ((1 << size) - 1))
        return
    if number in _CYCLES and row is Action.GETREG:
        if inst["sdst"].reg is not None:
            w.scalars.write(inst["sdst"].reg.index, (_cycles(w, number) >> first) & ((1 << size) - 1))
        return
    if _asks_for_violations(w, inst, row):
        if row is Action.GETREG and inst["sdst"].reg is not None:
            w.scalars.write(inst["sdst"].reg.index, w.ops.constant(U32, 0))
        return
    if number == HardwareRegister.SCHED_MODE.value and row is not Action.GETREG and w.settings.target.generation >= 12:
        return  # here instructions run in order in every scheduling mode
    if number not in _KEPT:
        raise Unsupported(f"hardware register {number}; MODE (1) and FLAT_SCR (20, 21) are emulated, and of those that "
                          "can only be read LDS_ALLOC (6), HW_ID (4, 23, 24) and XCC_ID (20): leave the others out")
    kept = _KEPT[number]
    mode = w.scalars.read(kept)
    mask = (1 << size) - 1
    if row is Action.GETREG:
        target = inst["sdst"].reg
        if target is not None:
            w.scalars.write(target.index, (mode >> first) & mask)
        return
    if row is Action.SETREG_IMM:
        value = w.ops.constant(U32, inst["imm"].value)
    else:
        value = read_scalar(inst["sdst"], 32, w.context)
    written = (mode & ~(mask << first)) | ((value & mask) << first)
    if kept == MODE and w.settings.target.vector_banks:
        written = written | (value & BANKS)  # as chosen_banks says; of a MODE that has some there is no code
    w.scalars.write(kept, written)
    if row is Action.SETREG_IMM and kept == MODE:
        w.set_mode(mode_after(inst, w.mode, w.settings.target))


def _asks_for_violations(w: WaveCode, inst: Inst, row: Action) -> bool:
    """TRAPSTS.MEM_VIOL, which compilers clear before global wave sync and test behind it (LLVM, SITargetLowering,
    emitGWSMemViolTestLoop). Here a violation ends the launch, so a wave that comes here has met none."""
    known = w.settings.target.generation < 12 and hardware_register(inst) == (
        HardwareRegister.TRAPSTS.value, _MEMORY_VIOLATION, 1)
    return known and (row is Action.GETREG or row is Action.SETREG_IMM and not inst["imm"].value & 1)


def _read_readonly_register(w: WaveCode, number: int) -> Value | None:
    """A register that waves can only read; None if it is none of those that are known on this target.

    Every wave is in slot 0 of SIMD 0 of compute unit 0, of the first die; it is in no cluster of work-groups.
    """
    target = w.settings.target
    if number in target.place_registers:
        return w.ops.constant(U32, 0)
    if number != HardwareRegister.LDS_ALLOC.value:
        return None
    lds = w.ops.value(U64, w.emitter.let(f"load i64, ptr {w.field('lds_bytes')}")).to(U32)
    units = (lds + (target.lds_unit_bytes - 1)) >> target.lds_unit_bytes.bit_length() - 1
    return (units & 0x1FF) << 12
def _cycles(w: WaveCode, number: int) -> Value:
    """RDNA 2 ISA, 5.1: SHADER_CYCLES counts 20 bits; RDNA 4 ISA, 3.4: two halves."""
    target, cycles = w.settings.target, w.clock()
    if number == HardwareRegister.SHADER_CYCLES_HI.value:
        return (cycles >> 32).to(U32)
    return cycles.to(U32) if target.generation >= 12 else cycles.to(U32) & 0xFFFFF


def set_mode(w: WaveCode, inst: Inst) -> None:
    """An opcode of its own that writes some bits of MODE."""
    after = mode_after(inst, w.mode, w.settings.target)
    changed = after ^ w.mode
    w.scalars.write(MODE, w.scalars.read(MODE) ^ changed)
    w.set_mode(after)
