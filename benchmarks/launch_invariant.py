"""What of a kernel's counts is computed before its launch, and what does counting the rest cost?

In: nothing, or names of samples and of programs that compute. Out: a table on stdout, and all kernels' in
launch_invariant.md. What is counted are wave instructions, by the emulator itself; figures of the tool that are not the
emulator's end the run. Programs need clang-22 and HIP's headers, as the tests do."""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from unittest.mock import patch

from programs import BUILT, HERE, TARGET, builder

from luthier_py.base.errors import Unsupported
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.program.analysis import (
    GivenLaunch,
    LaunchInvariants,
    StaticCounts,
    analyse,
    count_statically,
    static_counts,
    symbolic_execution,
)
from luthier_py.program.ir import lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import SAMPLES, Sample

PAGE = HERE / "launch_invariant.md"
TOOLS = {
    "instr_count": ("instr_count", {}),
    "foreseen": ("wave_metrics", {"METRICS": "instructions"}),
    "all metrics counted": ("wave_metrics", {"FORESEE": "0"}),
    "all metrics foreseen": ("wave_metrics", {}),
}
SECONDS = 300
GROUPS, TURNS = 65_536, 10_000  # of the launches with long loops
MOST_STOPS = 1 << 15  # of a walk turn by turn
PROGRAMS = ("bitonic_sort", "histogram", "jacobi", "lud_diagonal", "nbody", "nearest_neighbour", "reduction", "scan",
            "softmax", "transpose", "vector_add", "walsh_transform")  # that compute; the others try the runtime
TEXT = """# Counts before the launch

`python benchmarks/launch_invariant.py` wrote this page: the emulator as {target}, the sample kernels and those of the
test programs. *instructions*: those that all launches execute by themselves. *computed*: the share of these that the
host computed. The other columns: how many per cent more are executed with a tool in the kernel: `instr_count`;
`wave_metrics` for the same number; and for all of its metrics, counted and launch-invariant. Each count was the
emulator's own.

{table}

{summary}

## Long loops and large grids

Straight-line pieces that the host walks before a launch of {groups:,} work-groups, *n* = {turns:,}, of the kernels of
`loops.hip`. *turn by turn*: each turn of a loop by itself; not more than {most:,} were tried. *at once*: as it is done.
Where both came to an end they found the same.

{loops}

"Lynx for AMD" (2014) reports 5 to 38 % less overhead where uniform code is not instrumented, and 7 kernels that are
uniform from their start to their end. It measures time on a GPU; here executed instructions are counted, so the
figures stand beside each other, and are not the same measurement.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel; ``more`` by column, as a factor of ``instructions``."""

    kernel: str
    instructions: int
    computed: float
    more: dict[str, float]

    def cells(self) -> list[str]:
        overheads = [f"{100 * (self.more[name] - 1):.1f}" for name in TOOLS]
        return [self.kernel, f"{self.instructions:,}", f"{100 * self.computed:.1f}", *overheads]


def row_of(kernel: str, bare: int, counted: int, computed: int, more: dict[str, int]) -> Row:
    if counted != bare:
        sys.exit(f"{kernel}: the tool says {counted} instructions, the emulator {bare}")
    return Row(kernel, bare, computed / bare, {name: total / bare for name, total in more.items()})


def sample_row(sample: Sample) -> Row:
    code, launch = sample.path.read_bytes(), launch_of(sample)
    device = EmulatorDevice(load(code, sample.name).target)
    run_original(device, code, launch)
    assert device.profile is not None
    bare, more, report = device.profile.total, {}, {}
    for column, (name, options) in TOOLS.items():
        tool = load_tool(name, options)
        ran = run_instrumented(device, instrument(code, tool), tool, launch)
        more[column], report = device.profile.total, ran.report
    return row_of(sample.name, bare, report["instructions"], report["computed"], more)


def run(program: Path, *options: str) -> tuple[dict[str, list[int]], dict[str, list[dict[str, int]]], str]:
    """Instructions of each kernel's launches, what the tool reports of them, and what was said."""
    with tempfile.TemporaryDirectory() as folder:
        profile, counts = Path(folder) / "profile", Path(folder) / "counts.json"
        command = [sys.executable, "-m", "luthier_py", "exec", "--device", f"emulator:{TARGET}", *options]
        command += ["--output", str(counts)] if options else []
        done = subprocess.run([*command, "--", str(program)], capture_output=True, text=True, timeout=SECONDS,
                              env={**os.environ, "LUTHIER_DEVICE_PROFILE": str(profile)}, check=False)
        executed: dict[str, list[int]] = defaultdict(list)
        for line in map(json.loads, profile.read_text().splitlines() if profile.exists() else ()):
            executed[line["kernel"].removesuffix(".luthier")].append(line["instructions"])
        reports: dict[str, list[dict[str, int]]] = defaultdict(list)
        for launch in json.loads(counts.read_text())["launches"] if counts.exists() else ():
            reports[launch["kernel"]].append(launch["report"])
        return executed, reports, done.stderr


def program_rows(program: Path) -> Iterator[Row]:
    """Of the kernels all of whose launches were counted; of the others stderr has the tool's reasons."""
    bare, _, _ = run(program)
    totals: dict[str, dict[str, list[int]]] = {}
    for column, (name, options) in TOOLS.items():
        words = [word for option, value in options.items() for word in ("-O", f"{option}={value}")]
        totals[column], reports, said = run(program, "-t", name, "-O", "MANGLED_NAMES=1", *words)
    for kernel, instructions in bare.items():
        found = reports[kernel]
        if len(found) < len(instructions) or any("left_out" in report for report in found):
            print(f"{program.name}: {kernel} is left out: {said.splitlines()[-1] if said else ''}", file=sys.stderr)
            continue
        counted, computed = (sum(report[name] for report in found) for name in ("instructions", "computed"))
        yield row_of(f"{program.name}: {kernel}", sum(instructions), counted, computed,
                     {column: sum(totals[column][kernel]) for column in TOOLS})


def measured(names: list[str]) -> Iterator[Row]:
    for sample in SAMPLES:
        if not names or sample.name in names:
            yield sample_row(sample)
    make = builder()
    if which(make.COMPILER) is None or not make.header_folders():
        print("programs are left out: they need clang-22 and HIP's headers", file=sys.stderr)
        return
    for name in PROGRAMS:
        if not names or name in names:
            [program] = make.build_programs([name], BUILT, (TARGET,))
            yield from program_rows(program)


def turn_by_turn(launch_invariants: LaunchInvariants, given: GivenLaunch) -> StaticCounts | None:
    """None: that takes too long."""
    with patch.object(symbolic_execution, "FEW_TURNS", 1 << 62), patch.object(static_counts, "MOST_STOPS", MOST_STOPS):
        try:
            return count_statically(launch_invariants, given)
        except Unsupported:
            return None


def loop_rows(folder: Path) -> Iterator[list[str]]:
    """Pieces that are walked for each kernel of the file of loops."""
    made = folder / "loops.co"
    options = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fno-unroll-loops".split()
    subprocess.run([builder().COMPILER, *options, f"--offload-arch={TARGET}", HERE / "loops.hip", "-o", made],
                   check=True)
    data = made.read_bytes()
    for record in load(data).kernels:
        program = lift(load(data), [record.name])
        launch_invariants = analyse(program).find_launch_invariants(program.kernel(record.name))
        segment = struct.pack("<3Q", 1 << 20, TURNS, 64 * GROUPS).ljust(record.descriptor.kernarg_size, b"\0")
        given = GivenLaunch(segment, (GROUPS, 1, 1), (64, 1, 1))
        one, many = turn_by_turn(launch_invariants, given), count_statically(launch_invariants, given)
        if one is not None and (one.executions, one.lanes) != (many.executions, many.lanes):
            sys.exit(f"{record.name}: {one} turn by turn, {many} at once")
        alone = f"> {MOST_STOPS:,}" if one is None else f"{one.stops:,}"
        yield [record.name, alone, f"{many.stops:,}", f"{many.walks:,}", f"{sum(many.executions.values()):,}"]


def table(*lines: Sequence[str]) -> str:
    """The first line is the heading, the first column a name."""
    shown = [lines[0], ("---", *("---:" for _ in lines[0][1:])), *lines[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in shown)


def mean(rows: list[Row], column: str) -> float:
    """Of what is executed more, in per cent: geometric, as for all factors."""
    return 100 * (math.exp(sum(math.log(row.more[column]) for row in rows) / len(rows)) - 1)


def summary(rows: list[Row]) -> str:
    whole = sum(row.computed == 1 for row in rows)
    parts = [f"{whole} of {len(rows)} kernels need no code at all."]
    for before, after in (("instr_count", "foreseen"), ("all metrics counted", "all metrics foreseen")):
        parts.append(f"Geometric means: {mean(rows, before):.1f} % more instructions with *{before}*, "
                     f"{mean(rows, after):.1f} % with *{after}*.")
    return " ".join(parts)


def main() -> None:
    names = sys.argv[1:]
    rows = list(measured(names))
    shown = table(("kernel", "instructions", "computed, %", *(f"{name}, %" for name in TOOLS)),
                  *(row.cells() for row in rows))
    print(shown, summary(rows), sep="\n\n")
    if not names:
        with tempfile.TemporaryDirectory() as folder:
            loops = table(("kernel", "turn by turn", "at once", "classes of waves", "pieces that the launch executes"),
                          *loop_rows(Path(folder)))
        PAGE.write_text(TEXT.format(target=TARGET, table=shown, summary=summary(rows), groups=GROUPS, turns=TURNS,
                                    most=MOST_STOPS, loops=loops))


if __name__ == "__main__":
    main()
