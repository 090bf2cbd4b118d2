"""Checks of what a tool passes to a hook: constants, registers, operands and variables against parameters.

In: a parameter or result, and what the tool gave. Out: the argument as Edits keep it. Refusals are plain
ValueError texts; the Mutator adds the tool's file and line.
"""

from __future__ import annotations

import math
import operator
import struct
from typing import Any, TypeAlias

from luthier_py.isa import MODE, VCC, Operand, OperandKind, Reg, RegFile
from luthier_py.tool.edits import Arg, Constant, Destination
from luthier_py.tool.entry import Entry
from luthier_py.tool.hook import Parameter
from luthier_py.tool.types import BOOL, Kind, Pointer, Scalar
from luthier_py.tool.variables import Element, Variable, WaveVariable

ToolState: TypeAlias = "Variable | Element | WaveVariable | Entry"


def argument(parameter: Parameter, given: object) -> Arg:
    """``given`` as the argument for ``parameter``; ValueError says why not."""
    if isinstance(given, Operand):
        given = _of_operand(parameter, given)
    if isinstance(given, Reg):
        return _register(parameter, given)
    if isinstance(given, (Variable, Element)):
        return _matching(parameter, given, given.pointer)
    if isinstance(given, Entry) and given.is_pointer and isinstance(parameter.type, Pointer):
        return _matching(parameter, given, parameter.type)
    if isinstance(given, (WaveVariable, Entry)):
        return _matching(parameter, given, given.type)
    return constant(parameter, given)


def constant(parameter: Parameter, given: Any) -> Constant:
    """A Python number as a value of the parameter's type."""
    kind = parameter.type.kind if isinstance(parameter.type, Scalar) else None
    if isinstance(parameter.type, Scalar) and isinstance(given, bool) and kind is Kind.BOOL:
        return given
    if isinstance(parameter.type, Scalar) and kind is Kind.FLOAT and isinstance(given, (int, float)):
        return _float(parameter.type, given)
    try:
        number = operator.index(given)
    except TypeError:
        raise ValueError(f"{parameter} cannot take {type(given).__name__} {given!r}; give a Python number, a register "
                         "(Reg), an operand, a Variable, a WaveVariable or an Entry") from None
    if kind is Kind.BOOL:
        raise ValueError(f"{parameter} takes True or False, not {number}")
    if number < 0 or number >> 64 if not isinstance(parameter.type, Scalar) else not parameter.type.holds(number):
        raise ValueError(f"{parameter} cannot hold {number}")
    return number


def destination(result: Parameter, given: object) -> Destination:
    """Where a result goes: a WaveVariable of its type, or a register that the application may see changed."""
    if isinstance(given, WaveVariable) and not result.lane and given.type == result.type:
        return given
    named = f"result {result.name} ({result.type})" if result.name else f"the result ({result.type})"
    if isinstance(given, WaveVariable):
        raise ValueError(f"{named} cannot go into {given}; its type must be {given.type}, one for the wave")
    if not isinstance(given, Reg):
        raise ValueError(f"{named} cannot go into {given!r}; give a WaveVariable or a register (Reg)")
    _fits(named, result, given)
    if given.file is RegFile.SGPR and given.index + given.dwords > VCC and given.index != VCC:
        raise ValueError(f"{named} cannot go into {given}; only plain SGPRs, VCC and VGPRs may be written")
    return given


def _of_operand(parameter: Parameter, operand: Operand) -> Reg | int | float:
    if operand.kind is OperandKind.REGISTER and operand.reg is not None:
        return operand.reg
    if operand.kind not in (OperandKind.CONSTANT, OperandKind.IMMEDIATE) or not isinstance(parameter.type, Scalar):
        raise ValueError(f"{parameter} cannot take operand {operand.name}; it is neither a register nor a number")
    if parameter.type.kind is Kind.FLOAT and operand.kind is OperandKind.CONSTANT:
        bits = operand.value & ((1 << parameter.type.bits) - 1)
        (number,) = struct.unpack(parameter.type.letter, bits.to_bytes(parameter.type.size_bytes, "little"))
        return float(number)
    wrapped: int = parameter.type(operand.value)
    return wrapped


def _register(parameter: Parameter, reg: Reg) -> Reg:
    if parameter.type == BOOL:
        raise ValueError(f"{parameter} takes a compile-time True or False only, not {reg}")
    _fits(str(parameter), parameter, reg)
    if reg.file is RegFile.SGPR and reg.index >= MODE:
        raise ValueError(f"{parameter} cannot take {reg}")
    return reg


def _fits(named: str, slot: Parameter, reg: Reg) -> None:
    if reg.file is RegFile.AGPR:
        raise ValueError(f"{named}: {reg} is an AGPR; only SGPRs and VGPRs can be used")
    if slot.lane != (reg.file is RegFile.VGPR):
        want = f"a VGPR (or declare it {slot.type})" if slot.lane else f"an SGPR (or declare it Lane[{slot.type}])"
        raise ValueError(f"{named}: {reg} does not fit; give {want}")
    if slot.type.dwords != reg.dwords:
        raise ValueError(f"{named}: {reg} is {reg.dwords} dwords wide, {slot.type} is {slot.type.dwords}")


def _matching(parameter: Parameter, given: ToolState, wanted: object) -> ToolState:
    if parameter.lane or parameter.type != wanted:
        raise ValueError(f"{parameter} cannot take {given}; declare it {parameter.name}: {wanted}")
    return given


def _float(type: Scalar, given: float) -> float:
    try:
        rounded: float = type(float(given))
    except OverflowError:
        raise ValueError(f"{given} is too large for {type}") from None
    if math.isnan(rounded):
        raise ValueError("a constant argument cannot be NaN")
    return rounded
