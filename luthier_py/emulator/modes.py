"""MODE through a function: rounding and denormals are known when code is generated.

In: the blocks of a function and MODE at its entry. Out: MODE at the start of each block. Only
s_setreg_imm32 of denormal bits is followed; a value that is not the same on all ways, and rounding
other than to nearest even, is Unsupported. Source: AMD Instinct MI200 ISA, 3.4 (Mode register).
"""

from __future__ import annotations

from luthier_py.emulator.discover import CodeBlock
from luthier_py.errors import Location, Unsupported
from luthier_py.isa.instruction import Inst, OpFlag
from luthier_py.isa.semantics import meaning
from luthier_py.isa.semantics.control import Action, HardwareRegister

_ROUND = 0xF
_DENORMALS_F32, _DENORMALS_F16_F64 = 1 << 5, 1 << 7  # results; inputs have the bit below
_IEEE = 1 << 9
_FOLLOWED = 0xFF  # bits that change what instructions do here


def hardware_register(inst: Inst) -> tuple[int, int, int]:
    """(number, first bit, bits) of an s_getreg or s_setreg."""
    control = inst["simm16"].value
    return control & 63, control >> 6 & 31, (control >> 11 & 31) + 1


def flushes_f32(mode: int) -> bool:
    return not mode & _DENORMALS_F32


def flushes_f16_f64(mode: int) -> bool:
    return not mode & _DENORMALS_F16_F64


def is_ieee(mode: int) -> bool:
    return bool(mode & _IEEE)


def mode_after(inst: Inst, mode: int) -> int:
    """MODE after one instruction."""
    row = meaning(inst.op)
    if row not in (Action.SETREG, Action.SETREG_IMM):
        return mode
    number, first, size = hardware_register(inst)
    if number != HardwareRegister.MODE.value:
        raise Unsupported(f"s_setreg of hardware register {number}; only MODE (1) is emulated")
    mask = ((1 << size) - 1) << first
    if row is Action.SETREG:
        if mask & _FOLLOWED:
            raise Unsupported("s_setreg of rounding or denormals from a register")
        return mode
    after = mode & ~mask | inst["imm"].value << first & mask
    if after & _ROUND:
        raise Unsupported("rounding other than to nearest even")
    return after


def modes(blocks: list[CodeBlock], entry: int, initial: int) -> dict[int, int]:
    """MODE at the start of each block that can be reached."""
    by_start = {block.start: block for block in blocks}
    if not any(meaning(inst.op) in (Action.SETREG, Action.SETREG_IMM) for block in blocks for _, inst in block.insts):
        return dict.fromkeys(by_start, initial)
    found = {entry: initial}
    work = [entry]
    while work:
        block = by_start[work.pop()]
        mode = found[block.start]
        for pc, inst in block.insts:
            mode = _located(inst, pc, mode)
        for following in _successors(block):
            if following in by_start and following not in found:
                found[following] = mode
                work.append(following)
            elif found.get(following, mode) & _FOLLOWED != mode & _FOLLOWED:
                raise Unsupported("MODE depends on the way taken", Location(None, following))
    return found


def _located(inst: Inst, pc: int, mode: int) -> int:
    try:
        return mode_after(inst, mode)
    except Unsupported as error:
        raise Unsupported(error.message, Location(None, pc, inst.op.mnemonic)) from None


def _successors(block: CodeBlock) -> list[int]:
    pc, last = block.insts[-1]
    flags = last.op.flags
    if OpFlag.CALL in flags:
        return [block.end]
    if flags & (OpFlag.END | OpFlag.INDIRECT):
        return []
    taken = [last.branch_target(pc) or 0] if OpFlag.BRANCH in flags else []
    falls = OpFlag.BRANCH not in flags or OpFlag.CONDITIONAL in flags
    return [*taken, block.end] if falls else taken
