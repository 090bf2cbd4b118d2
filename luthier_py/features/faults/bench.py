"""One recorded launch, run again and again with a fault each time, and what became of its memory.

In: a RecordedLaunch, the options of the tool. Out: for each fault an Injection. Invariant: the kernel is instrumented
once for each kind of fault; before each run all memory of the device is as it was before the first, wherever a fault
made the kernel write.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

from luthier_py.base.errors import DeviceError, LuthierError, one_line
from luthier_py.base.records import dataclass, field, replace
from luthier_py.binary.link import apply_bindings
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.devices.module import EmulatorModule
from luthier_py.emulator.devices.recorded_launch import RecordedLaunch
from luthier_py.emulator.interface import Device, Module
from luthier_py.emulator.memory.device_memory import Allocation
from luthier_py.emulator.options.limits import LaunchLimits
from luthier_py.features.faults.drawing import NO_FAULT, OF_OPCODE, STUCK, TOOL, WrittenRegisters, as_words
from luthier_py.features.faults.judging import FaultEffect, FaultSide, Injection, effect_of_failure, instruction_limit
from luthier_py.features.replay.address_map import MappedRange, map_allocations, map_variables, pieces
from luthier_py.features.replay.differing import BufferDifference, ComparedBytes, difference
from luthier_py.features.replay.rerun import OfRecord, compare_memory, with_memory
from luthier_py.features.run.launch import Left, run_instrumented
from luthier_py.features.run.reported_allocations import Ready, ignore_allocations
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.report.plain import Json
from luthier_py.report.remedies import suggest_remedies
from luthier_py.rewrite.pipeline import Instrumented, instrument
from luthier_py.rewrite.tool import Tool, load_tool

ToolWith = Callable[[Mapping[str, str]], Tool]
"""By the options of a fault."""


@dataclass(slots=True)
class FaultyLaunch(OfRecord):
    """The recorded launch (mutable: how the last run ended). ``before``: all memory of the device, by allocation."""

    before: Sequence[tuple[Allocation, bytes]]
    error: DeviceError | None = None
    after: list[bytes] = field(default_factory=list)

    def run(self, device: Device, module: Module, kernel: str, ready: Ready = ignore_allocations) -> Left:
        """Launch the kernel; an error is stored, not raised, so that the tool's variables are read all the same."""
        for each, data in self.before:
            device.write(each.address, data)
        ready([])
        self.error = None
        try:
            device.launch(module.kernel(kernel), self.grid, self.block, self.record.kernarg, self.record.lds_bytes)
            device.synchronize()
        except DeviceError as error:
            self.error = error
        self.after = [device.read(each.address, each.size) for each, _ in self.before]
        return {}, self.record.kernarg


@dataclass(frozen=True, slots=True)
class FaultBench:
    """A launch that is ready for faults. ``copies``: instrumented kernels, by what distinguishes them (grows)."""

    record: RecordedLaunch
    path: Path
    device: EmulatorDevice
    original: EmulatorModule
    launch: FaultyLaunch
    tool: ToolWith
    address_map: Mapping[int, MappedRange]
    tolerance: float
    golden: tuple[bytes, ...]
    written: WrittenRegisters
    copies: dict[tuple[bool, bool, str], Instrumented]

    def inject(self, options: Mapping[str, str], launch: int = 0) -> Injection:
        """Once, into the only launch that there is."""
        report = self._run(options)
        error = self.launch.error
        if error is not None:
            effect = effect_of_failure(None if error.fault is None else error.fault.kind.value)
            return Injection(effect, report and report["hit"], one_line(error), FaultSide.DEVICE)
        if report is None or report["hit"] is None:
            return Injection(FaultEffect.NOT_HIT, None)
        differences = [*self.differences()]
        effect = FaultEffect.SDC if differences else FaultEffect.MASKED
        return Injection(effect, report["hit"], "; ".join(map(str, differences)))

    def kernel(self, launch: int) -> str:
        """The symbol of the recorded kernel, whatever ``launch`` is."""
        return self.record.kernel

    def find_hit(self, options: Mapping[str, str], launch: int = 0) -> Mapping[str, Any] | None:
        """Run the launch with a fault that changes nothing, and give what the tool saw at its place. None where the
        wave did not come there, or the tool reports nothing."""
        report = self._run(options)
        return None if report is None else report["hit"]

    def _run(self, options: Mapping[str, str]) -> Json | None:
        """What the tool reports; one copy serves all faults of its kind."""
        tool, kind = self.tool(options), copy_of(options)
        if kind not in self.copies:
            self.copies[kind] = instrument_record(self.record, self.path, tool, self.original)
        report: Json | None = run_instrumented(self.device, self.copies[kind], tool, self.launch,
                                               original=self.original).report
        return report

    def differences(self) -> Iterator[BufferDifference]:
        """Between the last launch and one without a fault."""
        for (each, _), expected, got in zip(self.launch.before, self.golden, self.launch.after, strict=True):
            if expected != got:
                one = self.address_map.get(each.address)
                name, kind = (each.name, None) if one is None else (one.name, one.type)
                parts = [ComparedBytes(0, expected, got)]
                found = difference(name, each.address, each.size, kind, parts, self.tolerance)
                if found is not None:
                    yield found


@contextmanager
def fault_bench(record: RecordedLaunch, path: Path, options: Mapping[str, str], settings: RunSettings,
                tolerance: float = 0.0) -> Iterator[FaultBench]:
    """``options``: of the tool, without a fault; ``settings``: those of an emulator. LuthierError where the launch is
    not the recorded one without a fault."""
    own = load(record.code, str(path))
    with with_memory(record, own, settings, own.target) as (device, addresses, original):
        assert isinstance(device, EmulatorDevice) and original is not None
        named = map_allocations(record, own.kernel(record.kernel), addresses)
        everything = sorted([*named, *map_variables(record, original)[0]], key=lambda each: each.start)
        recorded = pieces(record, everything)
        for piece in recorded:
            device.write(piece.now, piece.before)
        memory = [(each, device.read(each.address, each.size)) for each in device.memory.between(0, 1 << 64)]
        launch, tool = FaultyLaunch(record, memory), tool_with(options)
        nothing = tool(NO_FAULT.options())
        made = instrument_record(record, path, nothing, original)
        device.limits = LaunchLimits()
        ran = run_instrumented(device, made, nothing, launch, original=original)
        if launch.error is not None:
            raise launch.error
        if wrong := [*compare_memory(device, recorded, tolerance)]:
            raise LuthierError(f"{path}: without a fault memory is not what was recorded, so what a fault does cannot "
                               f"be told: {wrong[0]}")
        assert device.profile is not None
        chosen = settings.launch
        device.limits = LaunchLimits(chosen.time_limit, instruction_limit(chosen, device.profile.total))
        written = tuple(ran.report["executions"] or ()) if ran.report is not None else ()
        yield FaultBench(record, path, device, original, launch, tool, {each.now: each for each in named}, tolerance,
                         tuple(launch.after), (written,), {copy_of(NO_FAULT.options()): made})


def tool_with(options: Mapping[str, str]) -> ToolWith:
    """What makes the tool for a fault."""
    kind = type(load_tool(TOOL, {**options, **NO_FAULT.options()}))
    return lambda fault: kind(**{**options, **fault})


def copy_of(options: Mapping[str, str]) -> tuple[bool, bool, str]:
    """Faults for which this is the same go into the same copy."""
    model = options["MODEL"]
    return model in STUCK, model in OF_OPCODE.values(), options.get("INSTRUMENT", "")


@dataclass(frozen=True, slots=True)
class RecordedSubject:
    """A recorded launch, that a campaign injects faults into."""

    path: Path
    record: RecordedLaunch
    tolerance: float

    @property
    def name(self) -> str:
        """The file's path, by which tables name the launch."""
        return str(self.path)

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    def content(self) -> object:
        """What decides, beside the campaign, what becomes of a fault."""
        return self.tolerance, astuple(self.record)

    def bench(self, options: Mapping[str, str], settings: RunSettings) -> AbstractContextManager[FaultBench]:
        """The launch with its memory, ready for faults; raises as `fault_bench`."""
        return fault_bench(self.record, self.path, options, settings, self.tolerance)

    def again(self, options: Mapping[str, str], settings: RunSettings, launch: int) -> str:
        """The command that does it once more."""
        words = shlex.join(["luthier", "replay", *settings.words, str(self.path), "-t", TOOL])
        return f"{words} {as_words(options)}"


def instrument_record(record: RecordedLaunch, path: Path, tool: Tool, original: EmulatorModule) -> Instrumented:
    """The copy, for all faults."""
    with suggest_remedies(record.code, tool):
        made = instrument(record.code, tool, str(path), [record.kernel], apart=True)
    return replace(made, data=apply_bindings(made.data, made.bindings, original.base))
