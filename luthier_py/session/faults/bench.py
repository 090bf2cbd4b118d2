"""One recorded launch, run again and again with a fault each time, and what became of its memory.

In: a RecordedLaunch, the options of the tool. Out: for each fault a JudgedFault. Invariant: the kernel is instrumented
once; before each run all memory of the device is as it was before the first, wherever a fault made the kernel write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.devices.module import EmulatorModule
from luthier_py.emulator.devices.recorded import RecordedLaunch
from luthier_py.emulator.memory.device_memory import Allocation
from luthier_py.emulator.options.patience import Patience
from luthier_py.errors import DeviceError, FaultKind, LuthierError, one_line
from luthier_py.link import bound
from luthier_py.loader import load
from luthier_py.pipeline import Instrumented, instrument
from luthier_py.report.remedies import advising
from luthier_py.runtime import Device, Module
from luthier_py.session.counterparts import Counterpart, allocation_counterparts, module_counterparts, pieces
from luthier_py.session.differing import BufferDifference, ComparedBytes, difference
from luthier_py.session.faults.drawing import NO_FAULT, TOOL, InjectedFault
from luthier_py.session.replay import OfRecord, compared, with_memory
from luthier_py.session.run import Left, run_instrumented
from luthier_py.session.run_settings import RunSettings
from luthier_py.session.told_allocations import Ready, nobody
from luthier_py.tool import Tool, load_tool

LIMITS = FaultKind.MODE, FaultKind.SURFACE
"""What only the emulator does not let pass."""
LEAST_SECONDS, TIMES_AS_LONG = 1.0, 20.0  # of a launch with a fault, and beside one without


class FaultEffect(Enum):
    """What becomes of a launch with a fault."""

    MASKED = "masked"          # memory is what it is without
    SDC = "sdc"                # silent data corruption: it is not, and nobody noticed
    CRASH = "crash"            # a wave did what no device lets pass
    HANG = "hang"              # no end within the time limit, or no wave can go on
    NOT_HIT = "not hit"        # the kernel does not do the same each time
    NOT_JUDGED = "not judged"  # it came to what the emulator does not run


@dataclass(frozen=True, slots=True)
class JudgedFault:
    """``hit``: as the tool reports it. ``why``: what differs, or went wrong."""

    fault: InjectedFault
    effect: FaultEffect
    hit: Mapping[str, Any] | None
    why: str = ""


@dataclass(slots=True)
class FaultyLaunch(OfRecord):
    """The recorded launch (mutable: how the last run ended). ``before``: all memory of the device, by allocation."""

    before: Sequence[tuple[Allocation, bytes]]
    error: DeviceError | None = None
    after: list[bytes] = field(default_factory=list)
    seconds: float = 0.0

    def run(self, device: Device, module: Module, kernel: str, ready: Ready = nobody) -> Left:
        """An error is kept, so that the tool's variables are read all the same."""
        for each, data in self.before:
            device.write(each.address, data)
        ready([])
        self.error, started = None, time.perf_counter()
        try:
            device.launch(module.kernel(kernel), self.grid, self.block, self.record.kernarg, self.record.lds_bytes)
            device.synchronize()
        except DeviceError as error:
            self.error = error
        self.seconds = time.perf_counter() - started
        self.after = [device.read(each.address, each.size) for each, _ in self.before]
        return {}, self.record.kernarg


@dataclass(frozen=True, slots=True)
class FaultBench:
    """A launch that is ready for faults. ``written``: registers that each of its waves writes without one."""

    device: EmulatorDevice
    original: EmulatorModule
    made: Instrumented
    launch: FaultyLaunch
    tool: Callable[[InjectedFault], Tool]
    counterparts: Mapping[int, Counterpart]
    tolerance: float
    golden: tuple[bytes, ...]
    written: tuple[int, ...]

    def judged(self, fault: InjectedFault) -> JudgedFault:
        """Inject it, once."""
        report = run_instrumented(self.device, self.made, self.tool(fault), self.launch,
                                  original=self.original).report
        error = self.launch.error
        if error is not None:
            return JudgedFault(fault, effect_of(error), report["hit"], one_line(error))
        if report["hit"] is None:
            return JudgedFault(fault, FaultEffect.NOT_HIT, None)
        differences = [*self.differences()]
        effect = FaultEffect.SDC if differences else FaultEffect.MASKED
        return JudgedFault(fault, effect, report["hit"], "; ".join(map(str, differences)))

    def differences(self) -> Iterator[BufferDifference]:
        """Between the last launch and one without a fault."""
        for (each, _), expected, got in zip(self.launch.before, self.golden, self.launch.after, strict=True):
            if expected != got:
                one = self.counterparts.get(each.address)
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
    with with_memory(record, own, settings) as (device, addresses, original):
        assert isinstance(device, EmulatorDevice) and original is not None
        named = allocation_counterparts(record, own.kernel(record.kernel), addresses)
        everything = sorted([*named, *module_counterparts(record, original)[0]], key=lambda each: each.start)
        recorded = pieces(record, everything)
        for piece in recorded:
            device.write(piece.now, piece.before)
        memory = [(each, device.read(each.address, each.size)) for each in device.memory.between(0, 1 << 64)]
        launch, tool = FaultyLaunch(record, memory), tool_with(options)
        made = instrumented(record, path, tool(NO_FAULT), original)
        device.patience = Patience()
        for _ in range(2):  # the first compiles for the host
            ran = run_instrumented(device, made, tool(NO_FAULT), launch, original=original)
            if launch.error is not None:
                raise launch.error
        if wrong := [*compared(device, recorded, tolerance)]:
            raise LuthierError(f"{path}: without a fault memory is not what was recorded, so what a fault does cannot "
                               f"be told: {wrong[0]}")
        limit = settings.launch.time_limit or max(LEAST_SECONDS, TIMES_AS_LONG * launch.seconds)
        device.patience = Patience(limit)
        written = tuple(ran.report["executions"] or ()) if ran.report is not None else ()
        yield FaultBench(device, original, made, launch, tool, {each.now: each for each in named}, tolerance,
                         tuple(launch.after), written)


def tool_with(options: Mapping[str, str]) -> Callable[[InjectedFault], Tool]:
    """What makes the tool for a fault."""
    kind = type(load_tool(TOOL, {**options, **NO_FAULT.options()}))
    return lambda fault: kind(**{**options, **fault.options()})


def instrumented(record: RecordedLaunch, path: Path, tool: Tool, original: EmulatorModule) -> Instrumented:
    """The copy, for all faults."""
    with advising(record.code, tool):
        made = instrument(record.code, tool, str(path), [record.kernel], apart=True)
    return replace(made, data=bound(made.data, made.bindings, original.base))


def effect_of(error: DeviceError) -> FaultEffect:
    if error.fault is None:
        return FaultEffect.HANG
    return FaultEffect.NOT_JUDGED if error.fault.kind in LIMITS else FaultEffect.CRASH
