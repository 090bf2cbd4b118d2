"""Scalar instructions: values, hardware registers, branches, registers relative to M0.

In: a wave, an instruction and its row. Out: the wave after it. Source: AMD Instinct MI200 ISA, chapters 4, 5 and 12.
"""

from __future__ import annotations

from luthier_py.isa import EXEC, M0, MODE, VCC, Access, Inst, Operand, RegFile
from luthier_py.isa.model.registers import SCC
from luthier_py.isa.semantics import Scalar
from luthier_py.isa.semantics.algebra import U32, Kind, Value
from luthier_py.isa.semantics.control import Action, Branch, Indexing
from reference.algebra import PythonOps, flushed, modified_float
from reference.vector import ABS, NEG, field, raw
from reference.wave import CODE_BASE, M32, Freedom, Wave


def scalar(wave: Wave, inst: Inst, row: Scalar) -> None:
    ops = PythonOps()
    sources = iter([operand for operand in inst.operands if operand.name in ("src0", "src1", "simm16")
                    or operand.name in ("sdst", "imm") and operand.access is Access.READ])
    target = _target(inst)
    slots = (*row.signature.results, *row.signature.sources)
    width = next((slot.type for slot in slots if slot.type.bits > 1), U32)
    taken = []
    for slot in row.signature.sources:
        if slot.name == "old":
            assert target is not None
            taken.append(ops.value(width, raw(wave, target, 0, width.bits)))
        elif slot.special:
            index = {"scc": SCC, "exec": EXEC, "m0": M0}[slot.name]
            type = width if slot.name == "exec" else slot.type
            taken.append(ops.value(type, wave.scalar(index, type.bits // 32 or 1)))
        else:
            operand = next(sources)
            bits = raw(wave, operand, 0, max(slot.type.bits, 32)) & (1 << slot.type.bits) - 1
            modifiers, sign = field(inst, f"{operand.name}_modifiers"), 1 << slot.type.bits - 1
            bits = (bits & sign - 1 if modifiers & ABS else bits) ^ (sign if modifiers & NEG else 0)
            taken.append(ops.value(slot.type, bits))
    outputs = row.compute(*(_flushed(wave, ops, value) for value in taken))
    for slot, value in zip(row.signature.results, outputs if isinstance(outputs, tuple) else (outputs,), strict=True):
        if slot.name == "scc":
            wave.set_scalar(SCC, value.ref)
        elif slot.name == "exec":
            wave.set_scalar(EXEC, value.ref, value.type.bits // 32)
        elif target is not None and target.reg is not None:
            bits = _flushed(wave, ops, _modified(wave, inst, ops, value)).ref
            freedoms = _free(wave, inst, value.type.bits, ops.notes)
            wave.set_scalar(target.reg.index, bits, max(value.type.bits // 32, 1))
            wave.free.update({(RegFile.SGPR, target.reg.index + i, 0): freedom
                              for i, freedom in enumerate(freedoms) if freedom})


def _free(wave: Wave, inst: Inst, width: int, notes: set[str]) -> list[Freedom | None]:
    """What may differ in each dword of the result; a register that is moved takes that along."""
    if inst.op.base in ("S_MOV_B32", "S_MOV_B64"):
        source = next(operand.reg for operand in inst.operands if operand.name == "src0")
        return [wave.free.get((source.file, source.index + i, 0)) for i in range(width // 32)] if source else []
    return [Freedom(frozenset(notes), width, 0)] if notes else []


def _modified(wave: Wave, inst: Inst, ops: PythonOps, value: Value) -> Value:
    """Vector instructions on scalars (RDNA 4 ISA, 7.10) have omod and clamp."""
    if value.type.kind is not Kind.FLOAT:
        return value
    scales = wave.flushes(value.type.bits) and not wave.ieee
    omod, clamp = field(inst, "omod") if scales else 0, bool(field(inst, "clamp"))
    bits = modified_float(ops, value.ref, value.type.bits, omod, clamp)
    return ops.value(value.type, bits)


def _flushed(wave: Wave, ops: PythonOps, value: Value) -> Value:
    """Denormals of floats, as MODE has it."""
    width = value.type.bits
    if value.type.kind is not Kind.FLOAT or not wave.flushes(width):
        return value
    return ops.value(value.type, flushed(value.ref, width))


def _target(inst: Inst) -> Operand | None:
    written = (operand for operand in inst.operands if Access.WRITE in operand.access and operand.reg is not None)
    return next(written, None)


def branch(wave: Wave, inst: Inst, row: Branch) -> None:
    """``wave.pc`` is already after the instruction."""
    if row.register is not None:
        registers = {"scc": (SCC, 1), "exec": (EXEC, wave.size // 32), "vcc": (VCC, wave.size // 32)}
        if (wave.scalar(*registers[row.register]) == 0) != row.if_zero:
            return
    wave.pc = inst.branch_target(wave.pc - inst.size_bytes) or 0


def action(wave: Wave, inst: Inst, row: Action) -> None:
    if row is Action.NOTHING:
        return
    target = _target(inst)
    if row is Action.GETPC:
        assert target is not None and target.reg is not None
        wave.set_scalar(target.reg.index, CODE_BASE + wave.pc, 2)
        return
    control = field(inst, "simm16")
    first, mask = control >> 6 & 31, (1 << (control >> 11 & 31) + 1) - 1
    assert control & 63 == 1, "MODE"
    if row is Action.GETREG:
        assert target is not None and target.reg is not None
        wave.set_scalar(target.reg.index, wave.scalar(MODE) >> first & mask)
        return
    assert row in (Action.SETREG, Action.SETREG_IMM), f"{inst.op.mnemonic} leaves the bench"
    value = inst["imm"].value if row is Action.SETREG_IMM else raw(wave, inst["sdst"], 0, 32)
    if wave.target is not None and wave.target.vgpr_limit > 256:
        assert not (value | (value & mask) << first) >> 12 & 0xFF, "other banks of vector registers leave the bench"
    wave.set_scalar(MODE, wave.scalar(MODE) & ~(mask << first) & M32 | (value & mask) << first)


def relative(wave: Wave, inst: Inst, row: Indexing) -> None:
    """s_movrels and its like: numbers are added to M0, or to parts of it (MI200 ISA, 12.4; RDNA 2 ISA, 12.3)."""
    source, target = inst["src0"], inst["sdst"].reg
    assert target is not None
    if row is Indexing.MOVE_SCALAR:
        assert source.reg is not None
        read, written = source.reg.index + wave.scalar(M0) % 1024, target.index + (wave.scalar(M0) >> 16) % 1024
        wave.set_scalar(written % 128, wave.scalar(read % 128))
    elif row is Indexing.READ_SCALAR:
        assert source.reg is not None
        value = wave.scalar((source.reg.index + wave.scalar(M0)) % 128, target.dwords)
        wave.set_scalar(target.index, value, target.dwords)
    else:
        value = raw(wave, source, 0, 32 * target.dwords)
        wave.set_scalar((target.index + wave.scalar(M0)) % 128, value, target.dwords)
