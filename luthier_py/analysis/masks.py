"""What an instruction does to lane masks, seen from one lane.

In: an instruction. Out: assignments to mask bits. For one lane EXEC and every SGPR that holds a lane mask is one bit,
and the scalar logic by which code enters and leaves `if`s and loops is Boolean logic on these bits:

    s_and_saveexec_b64 s[4:5], vcc      s4 := exec, exec := exec & vcc
    s_or_b64 exec, exec, s[4:5]         exec := exec | s4
    v_cmp_lt_u32_e32 vcc, v0, v1        vcc := exec & ?          (inactive lanes come out 0)

Invariant: what is not understood becomes unknown, never wrong. A mask is named by its first SGPR, which
is even where a mask takes two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from luthier_py.isa import EXEC, Inst, InstructionSet, Operand, OperandKind, OpFlag

Bit = int | None  # 0, 1, or not known
Source = int      # a mask's name, or one of these:
UNKNOWN, ZERO, ONE = -1, -2, -3


def _not(a: Bit) -> Bit:
    return None if a is None else 1 - a


def _and(a: Bit, b: Bit) -> Bit:
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else 1


def _or(a: Bit, b: Bit) -> Bit:
    return _not(_and(_not(a), _not(b)))


def _xor(a: Bit, b: Bit) -> Bit:
    return None if a is None or b is None else a ^ b


def _either(a: Bit, b: Bit) -> Bit:
    return a if a == b else None


Function = Callable[[Bit, Bit], Bit]
_FUNCTIONS: dict[str, Function] = {  # of src0 and src1 (AMD ISA, SOP2)
    "AND": _and, "OR": _or, "XOR": _xor,
    "ANDN2": lambda a, b: _and(a, _not(b)), "ORN2": lambda a, b: _or(a, _not(b)),
    "ANDN1": lambda a, b: _and(_not(a), b), "ORN1": lambda a, b: _or(_not(a), b),
    "NAND": lambda a, b: _not(_and(a, b)), "NOR": lambda a, b: _not(_or(a, b)), "XNOR": lambda a, b: _not(_xor(a, b)),
    "CSELECT": _either, "MOV": lambda a, b: a, "NOT": lambda a, b: _not(a),
}
_TWO = ("AND", "OR", "XOR", "ANDN2", "ORN2", "NAND", "NOR", "XNOR", "CSELECT")
_SAVES = ("AND", "OR", "XOR", "ANDN1", "ANDN2", "ORN1", "ORN2", "NAND", "NOR", "XNOR")  # src1 is EXEC (AMD ISA, SOP1)
_WRITES_BACK = ("ANDN1", "ANDN2")


class Assign(NamedTuple):
    """``mask`` := ``function(first, second)``; all assignments of an instruction read the bits before it."""

    mask: int
    function: Function
    first: Source
    second: Source


@cache
def _scalar_operations(wave_size: int) -> dict[str, tuple[str, str]]:
    """Operation -> (shape, name of the function)."""
    found = {f"S_{name}_B{wave_size}": ("two", name) for name in _TWO}
    found |= {f"S_{name}_B{wave_size}": ("one", name) for name in ("MOV", "NOT")}
    found |= {f"S_{name}_SAVEEXEC_B{wave_size}": ("save", name) for name in _SAVES}
    found |= {f"S_{name}_WREXEC_B{wave_size}": ("write back", name) for name in _WRITES_BACK}
    return found


def assignments(isa: InstructionSet, inst: Inst) -> tuple[Assign, ...]:
    """What ``inst`` assigns to lane masks; masks that it overwrites otherwise become unknown."""
    written = inst.writes.sgpr & _NAMEABLE
    if not written:
        return ()
    known = _known(isa, inst)
    done = {assign.mask for assign in known}
    rest = _names(isa, written) - done
    return (*known, *(Assign(mask, _FUNCTIONS["MOV"], UNKNOWN, UNKNOWN) for mask in sorted(rest)))


_NAMEABLE = (1 << 128) - 1  # SCC and what lies above are no masks


def _names(isa: InstructionSet, written: int) -> set[int]:
    step = isa.wave_size // 32
    return {index - index % step for index in range(written.bit_length()) if written >> index & 1}


def _known(isa: InstructionSet, inst: Inst) -> tuple[Assign, ...]:
    op = inst.op
    if OpFlag.VALU in op.flags:
        return _compare(isa, inst)
    shape, name = _scalar_operations(isa.wave_size).get(op.base, ("", ""))
    if not shape or inst["sdst"].reg is None:
        return ()
    target = inst["sdst"].reg.index
    function, first = _FUNCTIONS[name], _source(isa, inst["src0"])
    if shape == "two":
        return (Assign(target, function, first, _source(isa, inst["src1"])),)
    if shape == "one":
        return (Assign(target, function, first, UNKNOWN),)
    result = Assign(EXEC, function, first, EXEC)
    if shape == "save":
        return (Assign(target, _FUNCTIONS["MOV"], EXEC, UNKNOWN), result)
    return (result._replace(mask=target), result)


def _compare(isa: InstructionSet, inst: Inst) -> tuple[Assign, ...]:
    """v_cmp and v_cmpx write 0 for inactive lanes; carries and single registers are not relied on."""
    op = inst.op
    if inst.writes.vgpr or inst.writes.agpr or inst.find("vdst") is not None or OpFlag.DPP in op.flags:
        return ()
    return tuple(Assign(mask, _and, EXEC, UNKNOWN) for mask in sorted(_names(isa, inst.writes.sgpr & _NAMEABLE)))


def _source(isa: InstructionSet, operand: Operand) -> Source:
    if operand.kind is OperandKind.REGISTER and operand.reg is not None:
        return operand.reg.index
    if operand.kind is OperandKind.CONSTANT:
        return {0: ZERO, (1 << isa.wave_size) - 1: ONE}.get(operand.value, UNKNOWN)
    return UNKNOWN
