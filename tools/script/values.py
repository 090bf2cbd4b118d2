"""What scripts know at a site: names and operands, and how a hook is given each.

In: a name of the language, or an operand. Out: a Value. Invariant: integers reach scripts as numbers of 64 bits, and a
value that lanes have of their own is said to be so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import Any

from luthier_py import (
    WaveVariable,
    access_bytes,
    active_lanes,
    address,
    computed,
    destination,
    device,
    grid_size,
    source,
    u64,
    wave_in_group,
    wave_in_launch,
    workgroup_id,
    workgroup_in_launch,
    workgroup_size,
    workitem_id,
    workitem_in_launch,
)
from luthier_py.base.errors import HookError, how_many
from luthier_py.intrinsics import clock
from luthier_py.isa import Operand, OperandKind
from luthier_py.rewrite.tool import LAUNCH_NUMBER, Computed, Parameter
from luthier_py.rewrite.tool.arguments.computed import Held
from luthier_py.rewrite.tool.hooks.types import U32, U64, Type

from .reading import AT_INSTRUCTIONS, HEADS
from .sites import Site

AXES = ("x", "y", "z")
BEGUN = WaveVariable(u64, name="Script.begun")
"""The clock when a wave began."""
ELAPSED = "elapsed"
_DATA = ("vdata", "data", "data0", "sdata")


@device
def since(begun: u64, mask: u64) -> u64:
    """``mask``: of the clock, which begins again behind it."""
    return (clock() - begun) & mask


class Level(Enum):
    """What a value is separate for."""

    SITE = auto()         # known before anything runs
    WAVE = auto()
    LANE = auto()
    INSTRUCTION = auto()  # a lane, or of scalar instructions the wave


@dataclass(frozen=True, slots=True)
class Value:
    """``name``: of the parameter that takes it. ``type``: of that, where it is always the same. ``give``: the argument
    at a site; None for what device code asks itself. ``text``: it is one, and a key only."""

    name: str
    level: Level
    give: Callable[[Site], Any] | None
    type: Type | None = U32
    heads: tuple[str, ...] = HEADS
    text: bool = False
    behind: bool = False
    """It is there after the instruction only."""

    def of_lanes(self, site: Site) -> bool:
        return self.level is Level.LANE or self.level is Level.INSTRUCTION and site.of_lanes


@dataclass(frozen=True, slots=True)
class Given:
    """A value at a site, as a parameter of a hook and the argument for it."""

    parameter: Parameter
    argument: Any


def given(value: Value, site: Site) -> Given:
    """HookError where the instruction has no such thing."""
    assert value.give is not None
    argument = value.give(site)
    type = value.type or (U64 if _dwords(argument, site) == 2 else U32)
    return Given(Parameter(value.name, type, value.of_lanes(site)), argument)


def key_of(value: Value, site: Site) -> str | int:
    """What is known before anything runs, as a key of a table."""
    if value.name in site.texts or value.give is None:
        return site.texts[value.name]
    return int(value.give(site))


def _text(name: str, *heads: str) -> Value:
    return Value(name, Level.SITE, None, heads=heads or HEADS, text=True)


def _bytes(site: Site) -> int:
    memory, size = site.instr.memory, access_bytes(site.instr)
    return size if site.element is None or memory is None else size // len(memory.offsets)


@cache
def width_up_to(most: int) -> Value:
    """Bytes of an access, which must not be more."""

    def give(site: Site) -> int:
        if (size := _bytes(site)) > most:
            raise HookError(f"the access has {size} bytes, more than a segment")
        return size

    return Value(f"bytes_up_to_{most}", Level.SITE, give, heads=AT_INSTRUCTIONS)


def _axes(name: str, level: Level, of: Callable[[str], Any]) -> dict[str, Value]:
    def on(axis: str) -> Callable[[Site], Any]:
        return lambda site: of(axis)

    return {f"{name}.{axis}": Value(f"{name}_{axis}", level, on(axis)) for axis in AXES}


VALUES: dict[str, Value] = {
    "addr": Value("addr", Level.INSTRUCTION, lambda site: address(site.instr, site.element or 0), U64, AT_INSTRUCTIONS),
    "bytes": Value("bytes", Level.SITE, _bytes, U32, AT_INSTRUCTIONS),
    "pc": Value("pc", Level.SITE, lambda site: site.instr.pc, U64),
    "line": Value("line", Level.SITE, lambda site: site.line),
    "instructions": Value("instructions", Level.SITE, lambda site: site.instructions, heads=("block",)),
    **{name: _text(name) for name in ("file", "function", "kernel")},
    **{name: _text(name, *AT_INSTRUCTIONS) for name in ("opcode", "instruction")},
    "way": _text("way", "branch"),
    **dict.fromkeys(("exec", "active"), Value("exec", Level.WAVE, lambda site: active_lanes(site.instr), U64)),
    "wave": Value("wave", Level.WAVE, lambda site: wave_in_group()),
    "launch_number": Value("launch_number", Level.WAVE, lambda site: LAUNCH_NUMBER),
    "launch_wave": Value("launch_wave", Level.WAVE, lambda site: wave_in_launch()),
    "group": Value("group", Level.WAVE, lambda site: workgroup_in_launch()),
    **_axes("group", Level.WAVE, workgroup_id),
    **_axes("group_size", Level.WAVE, workgroup_size),
    **_axes("grid_size", Level.WAVE, grid_size),
    "lane": Value("lane", Level.LANE, None),
    "item": Value("item", Level.LANE, lambda site: workitem_in_launch()),
    **_axes("item", Level.LANE, workitem_id),
    "clock": Value("clock", Level.WAVE, None),
    ELAPSED: Value(ELAPSED, Level.WAVE, lambda site: computed(since, BEGUN, site.clock.mask), U64, ("exit",)),
}
"""By name. What has the same parameter is the same value, looked at in another way."""


@cache
def operand(which: int | str, result: bool, dword: int | None = None, dwords: int | None = None) -> Value:
    """A source of an instruction, or a destination. ``dwords``: it must have so many."""

    def give(site: Site) -> Any:
        of = destination if result else source
        found = of(site.instr, _data(site) if which == "data" else which, dword)
        have = _dwords(found, site) if dword is None else 1
        if have > 2 or have != (dwords or have):
            wanted = f"{dwords} are" if dwords == 2 else "1 is"
            hint = "; dword(operand, n) is one of them" if have > 1 else ""
            raise HookError(f"the operand has {how_many(have, 'dword')}, and {wanted} wanted{hint}")
        return found

    name = "_".join(str(part) for part in ("dst" if result else "src", which, dword, dwords) if part is not None)
    return Value(name, Level.INSTRUCTION, give, None, AT_INSTRUCTIONS, behind=result)


def _data(site: Site) -> str:
    names = {each.name for each in site.instr.inst.operands}
    return next((name for name in _DATA if name in names), "data")


def _dwords(argument: object, site: Site) -> int:
    if isinstance(argument, Held):
        return argument.reg.dwords
    if isinstance(argument, Computed):
        return argument.result.type.dwords
    if isinstance(argument, Operand) and argument.kind is OperandKind.REGISTER and argument.reg is not None:
        return argument.reg.dwords
    if isinstance(argument, Operand):
        inst = site.instr.inst
        names = [each.name for each in inst.operands]
        return int(inst.op.operands[names.index(argument.name)].dwords)
    return 1
