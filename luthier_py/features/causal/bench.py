"""One recorded launch, run again and again with other costs, and how long it takes.

In: a RecordedLaunch, a device. Out: cycles of runs in which chosen code costs ``own`` times what it does, and all other
code ``others`` times. Invariant: each run leaves the memory that was recorded; where it does not, that is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from statistics import median

from luthier_py.base.errors import Invalid, LuthierError, Unsupported
from luthier_py.base.records import dataclass, replace
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.devices.module import EmulatorModule
from luthier_py.emulator.devices.recorded_launch import RecordedLaunch
from luthier_py.emulator.interface import Device
from luthier_py.emulator.options.clock_kind import ClockKind
from luthier_py.emulator.options.settings import Weights
from luthier_py.features.causal.candidates import Candidate
from luthier_py.features.replay.address_map import map_allocations
from luthier_py.features.replay.rerun import ReplayLaunch, with_memory
from luthier_py.features.run.launched import launch_on
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.program.ir import Program, lift
from luthier_py.rewrite.tool import Tool, load_tool

TOOL = "causal_profile"


@dataclass(frozen=True, slots=True)
class CausalBench:
    """A launch that is ready. ``delays``: by the tool's delays, not by the model's costs."""

    path: Path
    device: Device
    original: EmulatorModule | None
    launch: ReplayLaunch
    program: Program
    delays: bool
    repeats: int

    @property
    def counts(self) -> Mapping[int, int] | None:
        """Executions in the last run without delays, where the device counts them."""
        return self.device.profile.counts if isinstance(self.device, EmulatorDevice) and self.device.profile else None

    def cycles(self, candidate: Candidate, speedup: int) -> float:
        """What the launch takes if ``candidate`` is faster by so many percent; at 0, as it is."""
        cost = Fraction(100 - speedup, 100)
        if self.delays:
            options = {"test": candidate.filter(self.program), "speedup": str(speedup),
                       "look": str(int(self.original is None))}
            return median(self._ran(load_tool(TOOL, options)) for _ in range(self.repeats)) / cost.denominator
        assert isinstance(self.device, EmulatorDevice)
        self.device.weights = Weights(candidate.pcs, cost.numerator, cost.denominator) if speedup else None
        return self._ran(None) / cost.denominator

    def _ran(self, tool: Tool | None) -> int:
        done = launch_on(self.device, self.path, self.launch.record.code, self.launch, tool, loaded=self.original)
        comparison = self.launch.comparison
        assert comparison is not None
        if not comparison.same:
            raise LuthierError(f"{self.path}: memory is not what was recorded, so its time is that of another launch: "
                               f"{comparison.differences[0]}")
        if done.verdict is not None and not done.verdict.selected:
            raise Invalid(f"{self.path}: the environment says that the kernel is not to be instrumented: unset "
                          "LUTHIER_KERNELS, START_GRID_NUM and ACTIVE_FROM_START")
        if done.verdict is not None and done.verdict.refused:
            raise Unsupported(f"{self.path}: kernel {self.launch.kernel} cannot be instrumented: "
                              f"{done.verdict.refused[self.launch.kernel]}")
        if done.ran.cycles is not None:
            return done.ran.cycles.total
        if done.ran.report is None or done.ran.report["cycles"] is None:
            raise Unsupported(f"{self.path}: the clock of this device does not compare waves")
        found: int = done.ran.report["cycles"]
        return found


@contextmanager
def causal_bench(record: RecordedLaunch, path: Path, settings: RunSettings, delays: bool,
                 repeats: int) -> Iterator[CausalBench]:
    """A device with the recorded memory and code, for as long as the context lasts. ``delays``: whether the tool delays
    all other code, or the emulator's model scales costs. ``repeats``: runs with delays, of which the median counts."""
    own = load(record.code, str(path))
    modelled = replace(settings, launch=replace(settings.launch, clock=ClockKind.MODEL))
    with with_memory(record, own, modelled, own.target) as (device, addresses, original):
        allocations = map_allocations(record, own.kernel(record.kernel), addresses)
        launch = ReplayLaunch(record, own.kernel(record.kernel), allocations, original, False, 0.0)
        yield CausalBench(path, device, original, launch, lift(own, [record.kernel]), delays, repeats)
