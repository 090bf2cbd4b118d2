"""How many more instructions do kernels execute under a tool? Every sample kernel, and those of the test programs.

In: nothing, or names of samples and programs; `--beside FOLDER`, another checkout to compare with. Out: a table on
stdout, and all kernels' in overhead.md. What is counted are wave instructions, by the emulator itself; a mean is
over the kernels of which a wave executes a thousand or more. Programs need clang-22 and HIP's headers, as the tests do.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from programs import BANKS, BUILT, HERE, NOT_TIMED, SOURCES, TARGET, builder, seconds

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.features.study.spec import BARE
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import SAMPLES, Sample

PAGE = HERE / "overhead.md"
TOOLS = ("instr_count", "opcode_histogram", BANKS)
LONG = 1000  # instructions of a wave
UNSTEADY = {"printing"}  # waves wait for the host, as long as it takes
WAVES = "waves"
TEXT = """# What tools add to kernels

`python benchmarks/overhead.py` wrote this page: the emulator as {target}. *instructions*: those that a wave executes
by itself, on average. The other columns: how many times as many it executes with a tool in it{both}.
`lds_bank_conflicts` is shown where there is LDS.

{table}
"""

Counts = dict[str, dict[str, list[int]]]
"""Instructions and waves of each kernel, by tool."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel; ``times`` by tool, one for each checkout."""

    kernel: str
    per_wave: float
    times: dict[str, list[float]]

    def cells(self) -> list[str]:
        shown = (" → ".join(f"{t:.2f}" for t in self.times.get(tool, ())) for tool in TOOLS)
        return [self.kernel, f"{self.per_wave:,.0f}", *shown]


def sample_counts(sample: Sample) -> Counts:
    code, launch = sample.path.read_bytes(), launch_of(sample)
    device = EmulatorDevice(load(code, sample.name).target)
    run_original(device, code, launch)
    assert device.profile is not None
    counts = {BARE: [device.profile.total, device.profile.waves]}
    for name in TOOLS:
        tool = load_tool(name)
        made = instrument(code, tool)
        if made.patched.report:
            run_instrumented(device, made, tool, launch)
            counts[name] = [device.profile.total, device.profile.waves]
    return {sample.name: counts}


def program_counts(program: Path) -> Counts:
    """Of all launches of a run."""
    has_lds = "__shared__" in (SOURCES / f"{program.name}.hip").read_text()
    found: Counts = defaultdict(dict)
    for tool in (BARE, *(t for t in TOOLS if has_lds or t != BANKS)):
        with tempfile.TemporaryDirectory() as folder:
            profile = Path(folder) / "profile"
            if not seconds(program, [tool], LUTHIER_DEVICE_PROFILE=str(profile)):
                continue
            sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
            for row in map(json.loads, profile.read_text().splitlines()):
                kernel = sums[row["kernel"].removesuffix(".luthier")]
                kernel[0] += row["instructions"]
                kernel[1] += row.get(WAVES, 0)
        for kernel, counts in sums.items():
            found[f"{program.name}: {kernel}"][tool] = counts
    return found


def measured(names: list[str]) -> Counts:
    found: Counts = {}
    for sample in SAMPLES:
        if not names or sample.name in names:
            found |= sample_counts(sample)
    make = builder()
    if which(make.COMPILER) is None or not make.header_folders():
        print("programs are left out: they need clang-22 and HIP's headers", file=sys.stderr)
        return found
    for name in sorted(path.stem for path in SOURCES.glob("*.hip")):
        if name not in NOT_TIMED | UNSTEADY and (not names or name in names):
            [program] = make.build_programs([name], BUILT, (TARGET,))
            found |= program_counts(program)
            print(name, file=sys.stderr)
    return found


def measured_beside(folder: Path, names: list[str]) -> Counts:
    """The same by another checkout, which knows best how to run its own code."""
    script = folder / "benchmarks" / Path(__file__).name
    if not script.is_file():
        sys.exit(f"{script} is missing: the checkout is older than this benchmark")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "counts"
        environment = {**os.environ, "PYTHONPATH": str(folder.resolve())}
        subprocess.run([sys.executable, script, *names, "--counts", str(out)], env=environment, check=True)
        counts: Counts = json.loads(out.read_text())
        return counts


def rows_of(all_counts: list[Counts]) -> list[Row]:
    """Of kernels that every checkout ran; the last one knows how many waves there were."""
    rows = []
    for kernel, counts in all_counts[-1].items():
        before, waves = counts[BARE]
        times = {
            tool: [c[kernel][tool][0] / c[kernel][BARE][0] for c in all_counts if tool in c.get(kernel, {})]
            for tool in TOOLS if tool in counts
        }
        rows.append(Row(kernel, before / max(waves, 1), times))
    return sorted(rows, key=lambda row: -row.per_wave)


def mean_of(rows: list[Row], checkouts: int) -> Row:
    """The geometric mean over long kernels."""
    times: dict[str, list[float]] = {}
    for tool in TOOLS:
        columns = [row.times[tool] for row in rows if len(row.times.get(tool, ())) == checkouts]
        if columns:
            times[tool] = [math.exp(sum(map(math.log, c)) / len(c)) for c in zip(*columns, strict=True)]
    return Row("**geometric mean**", sum(row.per_wave for row in rows) / max(len(rows), 1), times)


def table(rows: list[Row], checkouts: int) -> str:
    long = [row for row in rows if row.per_wave >= LONG]
    short = [row for row in rows if row.per_wave < LONG]
    lines = [("kernel", "instructions", *(f"{tool}, x" for tool in TOOLS)), ("---", "---:", *("---:" for _ in TOOLS))]
    shown = [*long, mean_of(long, checkouts), *short]
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *(row.cells() for row in shown)])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--beside", type=Path, help="another checkout, shown to the left of this one")
    parser.add_argument("--counts", type=Path, help="write counts there instead of a table")
    given = parser.parse_args()
    if given.counts:
        given.counts.write_text(json.dumps(measured(given.names)))
        return
    counts = [measured_beside(given.beside, given.names)] if given.beside else []
    counts.append(measured(given.names))
    shown = table(rows_of(counts), len(counts))
    print(shown)
    if not given.names:
        both = ": before → now" if given.beside else ""
        PAGE.write_text(TEXT.format(target=TARGET, both=both, table=shown))


if __name__ == "__main__":
    main()
