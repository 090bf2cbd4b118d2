"""Checks of what a tool passes to a hook: constants, registers, operands and variables against parameters.

In: a hook, or a parameter or result of one, and what the tool gave. Out: the arguments as Edits keep them. Refusals are
plain ValueError texts; the Mutator adds the tool's file and line. Invariant: Edits have constants and plain values of a
run alone; where the tool gave something computed of these, or one value for the wave where each lane has its own, the
hook becomes one that is given them and makes the rest of them itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

from luthier_py.base.errors import how_many
from luthier_py.base.records import replace
from luthier_py.isa import M0, MODE, SCC, VCC, Operand, OperandKind, Reg, RegFile, Space
from luthier_py.isa.model.registers import is_register
from luthier_py.rewrite.tool.arguments.allocations import Allocations
from luthier_py.rewrite.tool.arguments.computed import Computed, Held
from luthier_py.rewrite.tool.arguments.entry import Entry
from luthier_py.rewrite.tool.arguments.launch_parameter import LaunchParameter
from luthier_py.rewrite.tool.arguments.launch_variable import LaunchVariable
from luthier_py.rewrite.tool.edits import Arg, Constant, Destination
from luthier_py.rewrite.tool.hooks.hook import PLAIN, Hook, Lanes, Parameter, Recipe, Signature
from luthier_py.rewrite.tool.hooks.type_names import difference
from luthier_py.rewrite.tool.hooks.types import BOOL, U32, U64, Kind, Pointer, Scalar, Type, pointer_to
from luthier_py.rewrite.tool.records.channel import Channel, ChannelType, channel_type
from luthier_py.rewrite.tool.variables import Element, Variable, WaveVariable

Adapted: TypeAlias = dict[tuple[object, ...], Hook]
"""Hooks that make their function's values of others, by all that they differ in: equal calls have one hook."""
ToolState: TypeAlias = "Variable | Element | WaveVariable | Entry"


def arguments(hook: Hook, given: Sequence[object], known: Adapted) -> tuple[Hook, tuple[Arg, ...]]:
    """The hook that is called, and what it is called with; ``known`` gets those that are made."""
    passing = _Passing(hook)
    values = tuple(passing.value(number, each) for number, each in enumerate(given))
    parameters = hook.signature.parameters
    if tuple(passing.parameters) == parameters and values == tuple(range(len(parameters))):
        return hook, tuple(passing.args)
    folded = None if hook.folded is None else frozenset(passing.folded)
    key = (hook, tuple(passing.parameters), values, folded)
    if key not in known:
        signature = Signature(tuple(passing.parameters), hook.signature.results)
        declared = tuple(passing.declared)
        known[key] = Hook(hook.function, hook.lanes, signature, folded, values, declared, hook.captured, hook.mode)
    return known[key], tuple(passing.args)


class _Passing:
    """What one call gives (mutable: collects it). What several values are made of is given once."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self.parameters: list[Parameter] = []
        self.declared = list(hook.signature.parameters)
        self.args: list[Arg] = []
        self.folded: list[int] = []
        self.shared: dict[tuple[object, ...], int] = {}

    def value(self, number: int, given: object) -> Recipe | int:
        """How the value of a parameter of the hook's function is made."""
        parameter = self.hook.signature.parameters[number]
        folded = self.hook.folded is not None and number in self.hook.folded
        given = _resolve_host_value(given, parameter.type)
        if isinstance(given, Computed):
            return self.recipe(parameter, given, folded)
        if isinstance(given, Channel) and parameter.type == channel_type(given.record):
            parameter = self.declared[number] = replace(parameter, type=given.pointer)
        return self.pass_argument(parameter, given, folded)

    def recipe(self, parameter: Parameter, given: Computed, folded: bool) -> Recipe:
        """An address may be taken as a pointer; then the addresses that it is made of are pointers, too."""
        result, pointer = given.result, parameter.type if isinstance(parameter.type, Pointer) else None
        taken = result.type == parameter.type or pointer is not None and result.type == U64 and (
            given.space is pointer.space)
        if other := difference(result.type, parameter.type):
            raise ValueError(f"{parameter} cannot take {given}: {other}")
        self.check_single(parameter, given, result.lane)
        if not taken or result.lane and not parameter.lane:
            near = pointer is not None and result.type == U64 and pointer_to(pointer.element, given.space)
            declared = replace(result, name=parameter.name, type=near or result.type)
            raise ValueError(f"{parameter} cannot take {given}; declare it {declared}")
        inputs: list[Recipe | int] = []
        for into, each in zip(given.function.signature.parameters, given.inputs, strict=True):
            if pointer is not None and _is_address(pointer, into, each):
                into = replace(into, type=pointer)
            each = _resolve_host_value(each, into.type)
            if isinstance(each, Computed):
                inputs.append(self.recipe(into, each, folded))
                continue
            key = (into.type, each) if isinstance(each, (Reg, Variable, Element, WaveVariable, Entry)) else None
            if key is None or key not in self.shared:
                number = self.pass_argument(into, each, folded)
                if key is not None:
                    self.shared[key] = number
            inputs.append(self.shared[key] if key is not None else number)
        return Recipe(given.function, tuple(inputs))

    def pass_argument(self, parameter: Parameter, given: object, folded: bool) -> int:
        """What is one for the wave is given as that, and is the same in each lane."""
        given = given.reg if isinstance(given, Held) else given
        reg = given.reg if isinstance(given, Operand) else given
        uniform = isinstance(reg, (Variable, Element, WaveVariable, Entry)) or isinstance(
            reg, Reg) and reg.file is RegFile.SGPR
        seat = replace(parameter, lane=False) if uniform else parameter
        self.check_single(parameter, reg, isinstance(reg, Reg) and not uniform)
        number = len(self.args)
        self.args.append(argument(seat, given))
        self.parameters.append(seat)
        self.folded += [number] if folded else []
        return number

    def check_single(self, parameter: Parameter, given: object, differs: bool) -> None:
        """A hook in one lane cannot have what ``differs`` between the lanes."""
        if differs and not parameter.lane and self.hook.lanes is Lanes.ONE:
            raise ValueError(f"{parameter} cannot take {given}, which each lane has its own of, while a hook with "
                             f"lanes='one' has a single lane: {PLAIN}")


def _is_address(pointer: Pointer, into: Parameter, given: object) -> bool:
    """Whether an address that a pointer's is made of may be ``given`` for a parameter."""
    if pointer.space is Space.GLOBAL:
        return into.type == U64 and not isinstance(given, int)
    return into.type == U32 and isinstance(given, (Reg, Operand, Held))


def _resolve_host_value(given: object, wanted: object) -> object:
    """The value that the host sets before a launch, or its address for a parameter that is a pointer to it."""
    if isinstance(given, LaunchParameter) and not isinstance(wanted, Pointer):
        return given.loaded
    if isinstance(given, (LaunchVariable, Allocations)) and wanted != given.pointer:
        return given.start
    return given


def argument(parameter: Parameter, given: object) -> Arg:
    """``given`` as the argument for ``parameter``; ValueError says why not."""
    if isinstance(given, Operand):
        given = _of_operand(parameter, given)
    if isinstance(given, Reg):
        return _register(parameter, given)
    if isinstance(given, Channel) and isinstance(wanted := parameter.type, ChannelType) and (
            wanted.record != given.record and wanted.record.name == given.record.name):
        raise ValueError(f"{parameter} cannot take {given}: they send different records, the hook "
                         f"{wanted.record.described}, the channel {given.record.described}; give both the same fields")
    if isinstance(given, (Variable, Element)):
        return _require_matching_type(parameter, given, given.pointer)
    if isinstance(given, Entry) and given.is_pointer and isinstance(parameter.type, Pointer) and (
            parameter.type.space is Space.GLOBAL):
        return _require_matching_type(parameter, given, parameter.type)
    if isinstance(given, (WaveVariable, Entry)):
        return _require_matching_type(parameter, given, given.type)
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
        raise ValueError(f"{parameter} cannot take {type(given).__name__} {given!r:.60}; give a Python number, "
                         "a register (Reg), an operand, a Variable, a WaveVariable or an Entry") from None
    if kind is Kind.BOOL:
        raise ValueError(f"{parameter} takes True or False, not {number}")
    if isinstance(parameter.type, Pointer) and parameter.type.space is Space.SCRATCH:
        raise ValueError(f"{parameter} cannot take a number: what compilers keep where is known to nobody; give it "
                         "address(instr) of a scratch instruction, or a register")
    width = 32 * parameter.type.dwords
    if number < 0 or number >> width if not isinstance(parameter.type, Scalar) else not parameter.type.holds(number):
        raise ValueError(f"{parameter} cannot hold {number}")
    return number


def result_place(result: Parameter, given: object) -> Destination:
    """The target of a result: a WaveVariable of its type, or a register that the application may see changed."""
    if isinstance(given, WaveVariable) and not result.lane and given.type == result.type:
        return given
    named = f"result {result.name} ({result.type})" if result.name else f"the result ({result.type})"
    if isinstance(given, WaveVariable):
        raise ValueError(f"{named} cannot go into {given}; its type must be {given.type}, one for the wave")
    if not isinstance(given, Reg):
        raise ValueError(f"{named} cannot go into {given!r:.60}; give a WaveVariable or a register (Reg)")
    _fits(named, result, given)
    dwords = {*range(given.index, given.index + given.dwords)}
    if given.file is RegFile.SGPR and max(dwords) >= VCC and not dwords <= {VCC, VCC + 1, M0, SCC}:
        raise ValueError(f"{named} cannot go into {given}; only plain SGPRs, VCC, M0, SCC, VGPRs and AGPRs may be "
                         "written")
    return given


def _of_operand(parameter: Parameter, operand: Operand) -> Reg | int | float:
    if operand.kind is OperandKind.REGISTER and operand.reg is not None:
        return operand.reg
    if operand.kind not in (OperandKind.CONSTANT, OperandKind.IMMEDIATE) or not isinstance(parameter.type, Scalar):
        raise ValueError(f"{parameter} cannot take operand {operand.name}; it is neither a register nor a number")
    if parameter.type.kind is Kind.FLOAT and operand.kind is OperandKind.CONSTANT:
        bits = operand.value & ((1 << parameter.type.bits) - 1)
        number = parameter.type.unpack(bits.to_bytes(parameter.type.size_bytes, "little"))
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
    if not is_register(reg):
        raise ValueError(f"{named}: there is no register {reg!r:.60}")
    if slot.lane != (reg.file is not RegFile.SGPR):
        want = f"a VGPR (or declare it {slot.type})" if slot.lane else f"an SGPR (or declare it Lane[{slot.type}])"
        raise ValueError(f"{named}: {reg} does not fit; give {want}")
    if slot.type.dwords != reg.dwords:
        raise ValueError(f"{named}: {reg} is {how_many(reg.dwords, 'dword')} wide, {slot.type} is {slot.type.dwords}")


def _require_matching_type(parameter: Parameter, given: ToolState, wanted: Type) -> ToolState:
    if other := difference(wanted, parameter.type):
        raise ValueError(f"{parameter} cannot take {given}: {other}")
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
