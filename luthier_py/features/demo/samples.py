"""The demonstration: every sample kernel under every counting tool, each number checked.

In: the installed samples. Out: rows with what the tool counted, what the emulator counted itself, whether the outputs
are NumPy's, and what instrumentation cost. Invariant: nothing is compared with a number that is written down here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice, LaunchProfile
from luthier_py.features.run.launch import Launch, Ran, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.rewrite.inject.cloned import ClonedKernel
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

SAMPLES_GROUP = "luthier_py.samples"
LaunchCounter = Callable[[LaunchProfile], Any]

WAVES = {"COUNT_WARP_LEVEL": "1"}
LANES = {"COUNT_WARP_LEVEL": "0", "EXCLUDE_PRED_OFF": "1"}

# Title, tool, options, item of its report; and what the emulator counted, put as the tool reports it.
CHECKS: tuple[tuple[str, str, Mapping[str, str], str, LaunchCounter], ...] = (
    ("instr_count, waves", "instr_count", WAVES, "instructions", lambda p: p.total),
    ("instr_count, active lanes", "instr_count", LANES, "instructions", lambda p: p.total_lanes),
    ("instr_count, waves, at every instruction", "instr_count", {**WAVES, "mode": "instruction"}, "instructions",
     lambda p: p.total),
    ("opcode_histogram, waves", "opcode_histogram", WAVES, "opcodes", lambda p: p.opcodes()),
    ("opcode_histogram, active lanes", "opcode_histogram", LANES, "opcodes", lambda p: p.lane_opcodes()),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trial:
    """One tool on one kernel."""

    tool: str
    counted: int  # by the tool; the sum over opcodes for a histogram
    equal: bool  # to the emulator's count, opcode by opcode
    identical: bool  # application buffers, bit for bit, to those of the original kernel
    executed: int  # wave instructions of the instrumented run
    cloned: ClonedKernel


@dataclass(frozen=True, slots=True)
class DemoRow:
    """One kernel."""

    kernel: str
    instructions: int  # wave instructions of the original run, by the emulator
    correct: bool  # outputs as NumPy computes them
    unchanged: bool  # the empty tool reproduces the file
    trials: tuple[Trial, ...]

    @property
    def passed(self) -> bool:
        """Whether NumPy agrees, the empty tool changes no byte of the file, and every trial counts and computes
        right."""
        return self.correct and self.unchanged and all(t.equal and t.identical for t in self.trials)

    def overhead(self, trial: int) -> float:
        """Executed wave instructions, after / before."""
        return self.trials[trial].executed / self.instructions


@dataclass(frozen=True, slots=True)
class Speed:
    """The emulator on one kernel, one thread, compiled already."""

    kernel: str
    instructions: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demonstration found. ``speeds``: empty where speed was not measured."""

    rows: tuple[DemoRow, ...]
    speeds: tuple[Speed, ...]

    @property
    def passed(self) -> bool:
        """Whether all kernels passed; without any it has failed."""
        return bool(self.rows) and all(row.passed for row in self.rows)

    def overhead(self, trial: int) -> float:
        """Geometric mean over the kernels."""
        return math.exp(sum(math.log(row.overhead(trial)) for row in self.rows) / len(self.rows))

    def facts(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "passed": self.passed,
            "kernels": [
                {
                    "kernel": row.kernel,
                    "instructions": row.instructions,
                    "correct": row.correct,
                    "unchanged": row.unchanged,
                    "tools": [
                        {
                            "tool": t.tool,
                            "counted": t.counted,
                            "equal": t.equal,
                            "identical": t.identical,
                            "sites": t.cloned.sites,
                            "overhead": round(row.overhead(i), 3),
                        }
                        for i, t in enumerate(row.trials)
                    ],
                }
                for row in self.rows
            ],
            "overhead": {
                title: round(self.overhead(i), 3) for i, (title, *_) in enumerate(CHECKS)
            },
            "speed": [
                {"kernel": s.kernel, "instructions": s.instructions, "seconds": round(s.seconds, 4)}
                for s in self.speeds
            ],
        }


def samples() -> tuple[Any, ...]:
    """All installed samples; see tests/data."""
    found = tuple(sample for entry in entry_points(group=SAMPLES_GROUP) for sample in entry.load())
    if not found:
        raise Invalid("no samples are installed; install Luthier-py from its source tree or wheel")
    return found


def demonstrate(say: Callable[[str], object], speed: bool = True) -> Demo:
    """Run everything; ``say`` gets a line of progress for each kernel."""
    rows = []
    for sample in samples():
        say(f"{sample.name}: original, {len(CHECKS)} instrumented copies, NumPy")
        rows.append(try_sample(sample))
    if not speed:
        return Demo(tuple(rows), ())
    say("speed of the emulator: n-body and matrix multiply, larger")
    return Demo(tuple(rows), tuple(measure(sample) for sample in large_samples()))


def large_samples() -> tuple[Any, ...]:
    """Larger launches of the first installed package of samples, which take long enough to be timed."""
    from importlib import import_module

    entry = next(iter(entry_points(group=SAMPLES_GROUP)))
    return tuple(import_module(entry.value.partition(":")[0]).large())


def launch_of(sample: Any) -> Launch:
    """How a sample is launched, its arguments parsed as those of `luthier run`."""
    return Launch(sample.kernel, sample.grid, sample.block, tuple(map(parse_argument, sample.args)))


def try_sample(sample: Any) -> DemoRow:
    """One kernel: original, every tool, NumPy."""
    code = sample.path.read_bytes()
    launch = launch_of(sample)
    device = EmulatorDevice(load(code, sample.name).target)
    original = run_original(device, code, launch)
    profile = profile_of(device)
    trials = []
    for title, name, options, key, count in CHECKS:
        tool = load_tool(name, options)
        made = instrument(code, tool, sample.name)
        ran = run_instrumented(device, made, tool, launch)
        assert ran.cloned is not None
        got = ran.report[key]
        identical = all(
            np.array_equal(a.view(np.uint8), original.outputs[n].view(np.uint8)) for n, a in ran.outputs.items()
        )
        total = sum(got.values()) if isinstance(got, dict) else got
        trials.append(Trial(title, total, got == count(profile), identical, profile_of(device).total, ran.cloned))
    unchanged = instrument(code, load_tool("none"), sample.name).data == code
    return DemoRow(sample.name, profile.total, is_right(sample, launch, original), unchanged, tuple(trials))


def is_right(sample: Any, launch: Launch, ran: Ran) -> bool:
    """Whether the outputs are NumPy's."""
    expected = sample.reference([argument.data for argument in launch.arguments])
    return all(sample.agrees(got, want) for got, want in zip(ran.outputs.values(), expected, strict=True))


def profile_of(device: EmulatorDevice) -> LaunchProfile:
    """The profile of the last launch."""
    assert device.profile is not None
    return device.profile


def measure(sample: Any) -> Speed:
    """Best of three, after a first run that compiles."""
    code, launch = sample.path.read_bytes(), launch_of(sample)
    device = EmulatorDevice(load(code, sample.name).target)
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        run_original(device, code, launch)
        seconds.append(time.perf_counter() - start)
    return Speed(sample.name, profile_of(device).total, min(seconds[1:]))
