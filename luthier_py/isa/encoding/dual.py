"""Dual instructions (VOPD): two vector instructions in one, of which each reads its sources before either writes.

In: a dual instruction. Out: the two as instructions of their own. Invariant: these are never encoded; their operands
are those of the pair, by the names that a single instruction has for them. Source: RDNA 3 ISA, 7.6 (Dual Issue VALU).
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from luthier_py.base.records import replace
from luthier_py.isa.encoding.instruction import Inst, Operand, OperandInfo, OpInfo

_Named = TypeVar("_Named", Operand, OperandInfo)

PREFIX, BETWEEN = "V_DUAL_", "_X_"
_OTHER_NAMES = {  # of operations that LLVM's records call otherwise outside of pairs
    "V_DOT2ACC_F32_F16": "V_DOT2C_F32_F16", "V_DOT2ACC_F32_BF16": "V_DOT2C_F32_BF16", "V_ADD_NC_U32": "V_ADD_U32",
    "V_SUB_NC_U32": "V_SUB_U32", "V_MUL_DX9_ZERO_F32": "V_MUL_LEGACY_F32",
}
_OF_SOME = {"imm": ("V_FMAMK_F32", "V_FMAAK_F32"), "bitop3": ("V_BITOP2_B32",)}  # operands that both could have
_MULTIPLIED = {"V_FMAMK_F32": ("vdst", "src0", "imm", "src1")}
"""Operands where the literal is not shared: in a pair that shares it, it is where Y has it."""


def is_dual(op: OpInfo) -> bool:
    """Whether it is a VOPD instruction: two vector instructions in one."""
    return op.base.startswith(PREFIX)


def operations(base: str) -> tuple[str, str]:
    """The operations of both, as they are called alone."""
    first, _, second = base.removeprefix(PREFIX).partition(BETWEEN)
    found = f"V_{first}", f"V_{second}"
    return _OTHER_NAMES.get(found[0], found[0]), _OTHER_NAMES.get(found[1], found[1])


def halves(inst: Inst) -> tuple[Inst, Inst]:
    """X and Y."""
    return _half(inst, "X"), _half(inst, "Y")


def _half(inst: Inst, letter: str) -> Inst:
    op = _op(inst.op, letter)
    return Inst(op, (), inst.literal, inst.raw, _select_half_operands(inst.operands, letter, op.base))


@cache
def _op(op: OpInfo, letter: str) -> OpInfo:
    base = operations(op.base)[letter == "Y"]
    operands = _select_half_operands(op.operands, letter, base)
    return replace(op, base=base, operands=operands,
                   format="VOP3" if "src0X_modifiers" in {each.name for each in op.operands} else "VOP2")


def _select_half_operands(operands: tuple[_Named, ...], letter: str, base: str) -> tuple[_Named, ...]:
    """Those of one half, by the names and in the order that it has alone."""
    owned = [replace(each, name=name) for each in operands if (name := _own_name(each.name, letter))
             and (name not in _OF_SOME or base in _OF_SOME[name])]
    order = _MULTIPLIED.get(base)
    return tuple(sorted(owned, key=lambda each: order.index(each.name)) if order else owned)


def _own_name(name: str, letter: str) -> str:
    """What an operand is called alone; nothing if it is the other one's."""
    stem, _, modifiers = name.partition("_")
    if stem[-1:] not in ("X", "Y"):
        return name
    if stem[-1] != letter:
        return ""
    alone = stem[:-1].removeprefix("v") if stem.startswith("vsrc") else stem[:-1]
    return f"{alone}_{modifiers}" if modifiers else alone
