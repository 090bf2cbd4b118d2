"""Arguments about values of an instruction: its sources and destinations, active lanes, a branch's target, numbers.

In: an instruction. Out: an argument for a hook before it or after it. Invariant: a value is given as registers hold it,
or the part of them that the instruction takes; modifiers (neg, abs, sext, DPP) are not applied.
"""

from __future__ import annotations

from types import NoneType
from typing import TypeAlias

from luthier_py.base.errors import HookError
from luthier_py.base.records import replace
from luthier_py.isa import (
    EXEC,
    SCC,
    VCC,
    Access,
    Inst,
    Operand,
    OperandKind,
    Reg,
    semantics,
    sgpr,
)
from luthier_py.isa.encoding.instruction import SRC_EXECZ, SRC_NULL, SRC_SCC, SRC_VCCZ
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool.arguments.computed import Computed, Held, about
from luthier_py.rewrite.tool.arguments.expected import expect
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.edits import Place
from luthier_py.rewrite.tool.hooks.author_types import Lane, u32, u64
from luthier_py.rewrite.tool.hooks.hook import device

InstructionValue: TypeAlias = "Held | Operand | Computed | int"
_SPECIAL = {"vcc": VCC, "exec": EXEC, "scc": SCC}


@device
def _part(x: Lane[u32], first: u32, mask: u32) -> Lane[u32]:
    return (x >> first) & mask


@device
def _widen_to_u64(x: u32) -> u64:
    return u64(x)


@device
def _is_zero(x: u64) -> u32:
    return u32(x == 0)


@device
def _select_taken_lanes(x: u64, zero: u32, active: u64) -> u64:
    return active if u32(x == 0) == zero else u64(0)


def source(instr: Instr, which: int | str = 0, dword: int | None = None) -> InstructionValue:
    """The value of a source before an instruction: by its number among the sources, or by its name in AMD's manuals
    (src0, vaddr, vdata ...; vcc, exec and scc where the instruction reads them without naming them).

    As wide as the register, or as the part of a dword that the instruction takes, then ``Lane[u32]``. ``dword``: that
    one of a wider source. A scalar fits ``Lane`` parameters, too; a constant takes the parameter's type. It is what the
    register holds: neg, abs and sext are not done to it, nor does it come from the lanes that DPP would choose.

    HookError: there is no such source, or it is none that can be given (apertures, LDS direct).
    """
    from luthier_py.isa import constant_of, part_of  # meanings take long to import

    operand = _find_operand(instr, which, Access.READ, "source")
    if isinstance(operand, Reg):
        return _register(instr, str(operand), operand, dword, None)
    name = f"source {operand.name}"
    if operand.kind is OperandKind.SPECIAL:
        _check_dword(instr, name, dword, 1)
        return _special(instr, operand)
    if operand.kind is OperandKind.CONSTANT:
        _check_dword(instr, name, dword, instr.op.operands[instr.inst.operands.index(operand)].dwords)
        operand = replace(operand, value=constant_of(instr.inst, operand))
        return operand if dword is None else operand.value >> 32 * dword & 0xFFFFFFFF
    part = part_of(instr.inst, operand)
    if part is not None:
        _check_dword(instr, name, dword, 1)
        return about(instr, name, _part, operand, part[0], (1 << part[1]) - 1)
    assert operand.reg is not None
    return _register(instr, name, operand.reg, dword, None)


def destination(instr: Instr, which: int | str = 0, dword: int | None = None) -> InstructionValue:
    """The value of a destination after an instruction (hooks before it are refused); else as ``source``. What loads
    bring is waited for. A destination is given with all of its bits."""
    operand = _find_operand(instr, which, Access.WRITE, "destination")
    if isinstance(operand, Reg):
        return _register(instr, str(operand), operand, dword, Place.AFTER)
    assert operand.reg is not None
    return _register(instr, f"destination {operand.name}", operand.reg, dword, Place.AFTER)


def active_lanes(instr: Instr) -> Reg | Computed:
    """``u64`` with a bit for each lane that is active at the instruction."""
    expect(instr, Instr)
    if instr.code.distinct.isa.wave_size == 64:
        return sgpr(EXEC, 2)
    return about(instr, "the active lanes", _widen_to_u64, sgpr(EXEC))


def taken_lanes(instr: Instr) -> Reg | Computed:
    """``u64``, before a branch: the lanes that go where it leads, which are all active ones or none.

    HookError: the instruction is no direct branch, or what it depends on is not known; or it is taken where no lane is
    active (`s_cbranch_execz`), so that there are none whether it is taken or not.
    """
    from luthier_py.isa.semantics.control import Branch  # meanings take long to import

    expect(instr, Instr)
    row = semantics.find_meaning(instr.op)
    if not isinstance(row, Branch):
        raise HookError(f"{caller()}: {instr.op.mnemonic} is no branch whose condition is known")
    if row.register == "exec" and row.if_zero:
        raise HookError(f"{caller()}: {instr.op.mnemonic} is taken where no lane is active, so no lane is ever taken; "
                        "ask active_lanes(instr), which is 0 where it is, or count the ways that leave it (at_edge; "
                        "`branch` in one-liners)")
    if row.register is None:
        return active_lanes(instr)
    return about(instr, "the lanes taken", _select_taken_lanes, _mask(instr, row.register), int(row.if_zero),
                 _mask(instr, "exec"))


def site_id(instr: Instr) -> int:
    """A number that no other instruction of the program has: its address in the code object."""
    expect(instr, Instr)
    return instr.pc


def opcode_id(instr: Instr) -> int:
    """The number of its opcode, by encoding, in its target's table: ``program.isa.op(number).mnemonic`` is its name."""
    expect(instr, Instr)
    return instr.op.row


def _find_operand(instr: Instr, which: int | str, access: Access, what: str) -> Operand | Reg:
    expect(instr, Instr)
    expect(which, int, str, name="which")
    inst = instr.inst
    operands = [each for each in inst.operands if each.access & access and each.kind not in (
        OperandKind.ABSENT, OperandKind.IMMEDIATE, OperandKind.TARGET)]
    if isinstance(which, str):
        named = [each for each in operands if each.name == which]
        if named:
            return named[0]
        if (reg := _find_implicit_register(inst, which, access)) is not None:
            return reg
    elif 0 <= which < len(operands):
        return operands[which]
    known = ", ".join(each.name for each in operands) or "none"
    raise HookError(f"{caller()}: {instr.op.mnemonic} has no {what} {which}; it has {known}")


def _find_implicit_register(inst: Inst, name: str, access: Access) -> Reg | None:
    """A special register that an instruction touches without an operand for it."""
    regs = inst.reads if access is Access.READ else inst.writes
    if name not in _SPECIAL:
        return None
    for dwords in (2, 1):
        reg = sgpr(_SPECIAL[name], dwords)
        if (name != "scc" or dwords == 1) and reg in regs:
            return reg
    return None


def _special(instr: Instr, operand: Operand) -> InstructionValue:
    """A source that is no general register."""
    if operand.value == SRC_SCC:
        return Held(sgpr(SCC), f"scc of {instr.op.mnemonic}", instr)
    if operand.value in (SRC_VCCZ, SRC_EXECZ):
        return about(instr, f"source {operand.name}", _is_zero,
                     _mask(instr, "vcc" if operand.value == SRC_VCCZ else "exec"))
    if operand.value in SRC_NULL:
        return 0
    raise HookError(f"{caller()}: source {operand.name} of {instr.op.mnemonic} cannot be given to a hook")


def _mask(instr: Instr, name: str) -> Reg | Computed:
    """SCC, VCC or EXEC as a ``u64``."""
    if name != "scc" and instr.code.distinct.isa.wave_size == 64:
        return sgpr(_SPECIAL[name], 2)
    return about(instr, name, _widen_to_u64, sgpr(_SPECIAL[name]))


def _check_dword(instr: Instr, name: str, dword: int | None, dwords: int) -> None:
    expect(dword, int, NoneType, name="dword")
    if dword is not None and not 0 <= dword < dwords:
        raise HookError(f"{caller()}: {name} of {instr.op.mnemonic} has {dwords} dwords; {dword} is none")


def _register(instr: Instr, name: str, reg: Reg, dword: int | None, side: Place | None) -> Held:
    """All of it, or one of its dwords."""
    _check_dword(instr, name, dword, reg.dwords)
    reg = reg if dword is None else Reg(reg.file, reg.index + dword)
    return Held(reg, f"{name} of {instr.op.mnemonic}", instr, side)
