"""Code for one wave while it is being written: what the instructions so far have left where.

In: what one instruction after the other does. Out: lines of a host function ``i32 name(ptr wave)``. Scalar registers
stay in values of LLVM, vector code is put off into a region; both are written to the wave's memory on request.
Invariant: after :meth:`WaveCode.finish_state` that memory holds the whole state.
"""

from __future__ import annotations

from typing import Any

from luthier_py.base.records import dataclass
from luthier_py.binary.loader.origins import Origins
from luthier_py.emulator.instructions.cycle_code import CycleCode
from luthier_py.emulator.instructions.modes import Mode
from luthier_py.emulator.options.settings import CodeNumbers, Settings, Style
from luthier_py.emulator.records.layout import WAVE, WORKER, row_offset
from luthier_py.emulator.vector_regions.calling_region import CallingRegion
from luthier_py.emulator.vector_regions.emitter import Emitter
from luthier_py.emulator.vector_regions.forms import ItemForm
from luthier_py.emulator.vector_regions.lane_strip import StripWrite
from luthier_py.emulator.vector_regions.region import Afterwards, VectorRegion
from luthier_py.emulator.vector_regions.scalars import Scalars
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.model.registers import EXEC
from luthier_py.isa.semantics.algebra import U64, Kind, Type, Value


@dataclass(frozen=True, slots=True)
class Index:
    """An open region of indexed registers: ``roles`` has a bit for each of src0, src1, src2, vdst that is relative."""

    roles: int
    offset: Value  # of rows


@dataclass(frozen=True, slots=True)
class OperandContext:
    """What reading and writing operands depends on beside the instruction."""

    scalars: Scalars
    wave_size: int
    apertures: dict[int, Value]      # operand encoding -> u64
    mode: Mode
    mixes_by_f32: bool               # see Target

    def flushes_sources(self, type: Type) -> bool:
        """Whether denormals of a float type become zeros when they are read."""
        return type.kind is Kind.FLOAT and self.mode.flushes_sources(type)

    def flushes_results(self, type: Type) -> bool:
        """Whether denormals of a float type become zeros when they are written."""
        return type.kind is Kind.FLOAT and self.mode.flushes_results(type)

    def scales(self, type: Type) -> bool:
        """Whether omod does anything: only without denormals, and without IEEE mode (CDNA 3 ISA, 6.2.2)."""
        return self.flushes_results(type) and not self.mode.ieee


def _region(emitter: Emitter, wave_size: int, style: Style) -> VectorRegion:
    if style is Style.CALLS:
        return CallingRegion(emitter, "%wave", wave_size)
    return VectorRegion(emitter, "%wave", wave_size, style is Style.EVEN_LOOPS)


class WaveCode:
    """Mutable; ``live``: see liveness.live_rows; ``origins``: of the instructions, in a copy."""

    def __init__(self, settings: Settings, numbers: CodeNumbers, live: dict[int, int], style: Style,
                 origins: Origins | None) -> None:
        self.settings, self.origins = settings, origins
        self.numbers = numbers
        self.style = style
        self.wave_size = settings.wave_size
        self.emitter = Emitter(self.wave_size)
        self.scalars = Scalars(self.emitter, "%wave", self.settle)
        self.region = _region(self.emitter, self.wave_size, style)
        self.ops = self.scalars.ops
        self.apertures: dict[int, Value] = {}
        self.index: Index | None = None
        self.items: dict[tuple[Inst, int], Any] = {}
        """What vector_code keeps of an instruction under a MODE."""
        self.cycles = CycleCode(self.emitter, settings.target, settings.wave_size) if settings.cycles else None
        self.pc = 0
        self.left = 0  # instructions of the block behind this one, as this one's clock counts them
        self.coherent = False
        """Whether the current instruction's access sees what others have just written."""
        self._live = live
        self.set_mode(settings.mode)

    def set_mode(self, mode: int) -> None:
        """Instructions from here on run under this MODE."""
        self.mode = mode
        self.context = OperandContext(self.scalars, self.wave_size, self.apertures,
                                      Mode(mode, self.settings.target.clamps_by_mode),
                                      self.settings.target.mixes_by_f32)

    @property
    def is_inserted(self) -> bool:
        """Whether the instruction is a tool's."""
        return self.origins is not None and self.origins.is_inserted(self.pc)

    # Pointers

    def at(self, pointer: str, offset: int) -> str:
        """``pointer`` moved by ``offset`` bytes, as LLVM's name of a ptr."""
        return self.emitter.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def field(self, name: str) -> str:
        """Pointer to a field of the wave."""
        return self.at("%wave", WAVE[name])

    def row(self, row: int) -> str:
        """Pointer to a row of vector registers, or a temporary one."""
        return self.at("%wave", row_offset(row, self.wave_size))

    # State

    def exec(self) -> Value:
        """EXEC as it is here: u64, or u32 in wave32."""
        return self.scalars.read(EXEC, self.wave_size // 32)

    def settle(self) -> None:
        """Write the vector code that was put off."""
        self.region.flush(self.scalars)

    def finish_state(self) -> None:
        """Bring the wave's memory up to date."""
        self.settle()
        self.scalars.flush()

    def put_off(self, write: StripWrite, *masks: int, form: ItemForm | None = None) -> None:
        """Add to the region; ``write`` gives mask results for the scalar registers ``masks``."""
        self.region.add(self.exec(), write, self._live[self.pc], masks, form)
        for index in masks:
            self.scalars.pending |= ((1 << self.wave_size // 32) - 1) << index

    def put_off_call(self, write: StripWrite, call: Afterwards, done: Afterwards) -> None:
        """The same for an access that is part of loops for even lanes only: ``write`` makes it for a strip, where
        the order of strips cannot be observed; ``done`` comes after them all. Elsewhere ``call`` makes it."""
        self.region.add(self.exec(), write, self._live[self.pc], (), None, call, done)

    def put_off_ahead(self, write: StripWrite, *masks: int) -> None:
        """The same for an instruction that reads registers later, out of memory.

        Nothing may need these after the instruction; so what was put off before has to be written first.
        """
        self.settle()
        self.put_off(write, *masks)

    def clock(self) -> Value:
        """What the core's clock shows; reading it counts as a change, so waves that poll it do not stand still."""
        self.note_change()
        if self.cycles is not None:
            return self.ops.value(U64, self.cycles.now())
        name = "executed" if self.is_inserted else "own_executed"
        return self.ops.value(U64, self.emitter.support("i64", name, [("ptr", "%wave")])) - self.left

    def note_change(self) -> None:
        """The world is another from here on: memory, or the time."""
        place = self.at("%worker", WORKER["changes"])
        old = self.emitter.let(f"load i64, ptr {place}")
        self.emitter.emit(f"store i64 {self.emitter.let(f'add i64 {old}, 1')}, ptr {place}")
