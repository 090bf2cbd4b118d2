"""Programs on releases of ROCm that `luthier fetch` brings, above the emulator: alone, and under a tool.

    python tests/stacks/run.py FOLDER [--release NAME]... [--only REGEX] [--device emulator:TARGET] [--table FILE]

In: packages, fetched at first use (FOLDER/RELEASE keeps them). Out: a table, and exit code 1 where a program fails that
known.toml does not name, or passes that it does name. Invariant: a count is right if it is the emulator's own for the
run without a tool.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import tomllib
from programs import HIP, Program, every
from stacks import NEEDS, Stack, stack_called

from luthier_py.host.releases.fetched import VARIABLE as RELEASES

HERE = Path(__file__).resolve().parent
CLI = [sys.executable, "-c", "from luthier_py.cli import main; main()", "exec"]
OURS, USUAL = "ours", "gfx90a"
CPU = {"BESIDE": "cpu", "JAX_PLATFORMS": "cpu"}
INTRODUCTION = """# Releases of ROCm

What `make test-stacks` made: programs of tests/programs, compiled with each release's own headers, on releases
of ROCm that `luthier fetch` brings, above the emulator, on gfx90a where no other target is named.
*alone*: the results are right. *hip*, *hsa*: so they are
under `instr_count` at that level, every launch is instrumented, and the counts are the emulator's own for the run
without a tool (where waves wait for each other, how often they look is chance: there counts are not compared).
allocations, managed_memory and managed_ranges run with HSA_USE_SVM=1.
*ours*: the results are right on our HIP runtime with the release's other libraries; *ours hip*: under the tool, too.
Packages of Debian's suites change, and so may this. What fails is looked at below (tests/stacks/known.toml).
"""
COSTS = """
## Time and memory beside the CPU

The frameworks compute the same on the emulated device and on the CPU, in one process, one after the other, each
twice: at first code is compiled, and kernels are translated. Seconds of such small work say little; the columns behind
them say more (less than a millisecond of the CPU's counts as one). MiB are those of the program and of the emulator
at their most, shared pages counted once; on the CPU alone, of the same program where it leaves the device out (whose
libraries it still has); a ? where that ends at once.

| program | release | seconds at first | again | times the CPU's, again | at first | MiB | on the CPU alone |
|---|---|---|---|---|---|---|---|"""
OWN = "__amd_rocclr_", "kernel@"  # ROCclr's copies and fills, and ROCr's, which are in no code object


class Done(NamedTuple):
    trouble: str  # empty where all is as it should be
    launches: list[tuple[str, int]]
    verdict: Any
    said: str = ""
    most_mib: int = 0  # of the program and the emulator together


def execute(program: Program, command: list[str], stack: str, device: str, level: str = "") -> Done:
    """Alone, or under instr_count at ``level``."""
    with tempfile.TemporaryDirectory() as folder:
        profile, verdict = Path(folder) / "profile", Path(folder) / "verdict"
        environment = {
            **os.environ, **program.environment, "LUTHIER_VERDICT": str(verdict),
            "LUTHIER_DEVICE_PROFILE": str(profile),
        }  # fmt: skip
        tool = ["-t", "instr_count", "--level", level] if level else []
        words = [*CLI, "--stack", stack, *tool, "--device", device, "--", *command]
        with Memory(folder) as memory:
            try:
                done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=program.seconds,
                                      errors="replace")
            except subprocess.TimeoutExpired:
                return Done(f"not done after {program.seconds} s", [], None)
        rows = launches_in(profile) if profile.exists() else []
        found = json.loads(verdict.read_text()) if verdict.exists() else None
    passed = done.returncode == 0 and re.search(program.passed, done.stdout)
    trouble = "" if passed else f"code {done.returncode}: {last_words(done.stdout + done.stderr)}"
    return Done(trouble, rows, found, done.stdout, memory.most_mib)


def launches_in(profile: Path) -> list[tuple[str, int]]:
    """Kernels of the program, and what the emulator counted."""
    with profile.open() as lines:
        rows = [(row["kernel"], row["instructions"]) for row in map(json.loads, lines)]
    return [row for row in rows if not row[0].startswith(OWN)]


class Memory:
    """The most that processes have at once in whose environment ``word`` is, shared pages counted once (mutable)."""

    def __init__(self, word: str) -> None:
        self.word, self.most_mib, self.over = word.encode(), 0, threading.Event()

    def __enter__(self) -> Memory:
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()

    def watch(self) -> None:
        while not self.over.wait(0.5):
            sizes = [self.size_kib(folder) for folder in Path("/proc").glob("[0-9]*")]
            self.most_mib = max(self.most_mib, sum(sizes) >> 10)

    def size_kib(self, process: Path) -> int:
        try:
            if self.word not in (process / "environ").read_bytes():
                return 0
            return int(re.findall(r"^Pss: +([0-9]+)", (process / "smaps_rollup").read_text(), re.M)[0])
        except (OSError, IndexError):
            return 0  # it has ended


def last_words(text: str) -> str:
    dropped = re.compile(r"\s*$|.*Resource leak")
    lines = [line for line in text.splitlines() if not dropped.match(line)]
    said = re.sub(r"/\S*/unpacked/", "", " / ".join(lines[-2:]))  # where releases are
    return said.replace(f"{HERE.parents[1]}/", "")[-300:].replace("|", "\\|") or "nothing was said"


def miscounted(program: Program, level: str, alone: Done, under: Done) -> str:
    """What the tool's verdict lacks."""
    verdict = under.verdict
    if verdict is None:
        return "no verdict"
    if verdict["refused"] or verdict["launches"] != verdict["instrumented"] + verdict["failed_launches"]:
        return f"{verdict['instrumented']} of {verdict['launches']} launches instrumented; {verdict['refused']}"
    if program.waits:
        return ""
    summed = program.graphs and level == HIP
    reports = verdict["reports"] * program.processes
    counted = counts([(row["kernel"], row["report"]["instructions"]) for row in reports], summed)
    executed = counts(alone.launches, summed)
    if counted == executed:
        return ""
    more, less = (sorted(rows.items())[:3] for rows in (counted - executed, executed - counted))
    return f"counts differ: {more} and not {less}"


def counts(rows: list[tuple[str, int]], summed: bool) -> Counter[tuple[str, int]]:
    """How often a kernel has executed so many instructions, or once, if ``summed``, how many in all."""
    if not summed:
        return Counter(rows)
    sums: Counter[str] = Counter()
    for kernel, instructions in rows:
        sums[kernel] += instructions
    return Counter(sums.items())


def cost(program: Program, command: list[str], stack: str, device: str, alone: Done) -> list[float]:
    """Seconds on the device, at first and again, those on the CPU, and MiB: with the device, and on the CPU alone."""
    told = re.findall(r"device ([\d.]+), again ([\d.]+); CPU ([\d.]+), again ([\d.]+)", alone.said)
    if not told:
        return []
    cpu = execute(replace(program, environment={**program.environment, **CPU}), command, stack, device)
    return [*(round(sum(map(float, column)), 3) for column in zip(*told, strict=True)), alone.most_mib, cpu.most_mib]


def check(program: Program, stack: Stack, folder: Path, device: str, costs: dict[str, list[float]]
          ) -> Iterator[tuple[str, str]]:
    """Column and trouble, for each column that this program has; what it takes is added to ``costs``."""
    target = device.removeprefix("emulator:")
    try:
        command = program.make(stack, folder / program.name, target)
    except RuntimeError as error:
        errors = re.findall(r"error: .*", str(error)) or [str(error)]
        yield "alone", f"not built: {errors[0][:200]}"
        return
    release, device = stack.fetched.name, device + f"*{program.devices}" * (program.devices > 1)
    alone = execute(program, command, release, device)
    yield with_outcomes("alone", program, alone), alone.trouble
    if taken := cost(program, command, release, device, alone):
        costs[program.name] = taken
    for level in program.levels if not alone.trouble else ():
        under = execute(program, command, release, device, level)
        yield with_outcomes(level, program, under), under.trouble or miscounted(program, level, alone, under)
    if not program.ours:
        return
    release = release.replace("rocm", "luthier")
    alone = execute(program, command, release, device)
    yield with_outcomes(OURS, program, alone), alone.trouble
    if program.ours_counted and not alone.trouble:
        under = execute(program, command, release, device, HIP)
        yield with_outcomes(f"{OURS} {HIP}", program, under), under.trouble or miscounted(program, HIP, alone, under)


def with_outcomes(column: str, program: Program, done: Done) -> str:
    """A column's name with what the program said of its tests: alone (2 OK, 1 not supported)."""
    found = Counter(re.findall(program.outcomes, done.said)) if program.outcomes else {}
    return f"{column} ({', '.join(f'{many:,} {what}' for what, many in sorted(found.items()))})" if found else column


def column(release: str, target: str) -> str:
    """What results are kept under, and the table's column is called."""
    return release if target == USUAL else f"{release} on {target}"


def table(releases: dict[str, str], found: dict[str, dict[str, dict[str, str]]]) -> str:
    """Markdown; what fails is a note below."""
    notes: list[str] = []
    heads = ["program", *(f"{name}: {versions}" for name, versions in releases.items())]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for program in dict.fromkeys(name for programs in found.values() for name in programs):
        cells = []
        for release in releases:
            columns = found[release].get(program)
            if columns is None:
                cells.append("not run")
                continue
            failed = [column for column, trouble in columns.items() if trouble]
            if failed:
                name, _, target = release.partition(" on ")
                why = reasons_on(target or USUAL).get(name, {}).get(program, "?")
                notes.append(f"{len(notes) + 1}. {release}, {program}, {failed[0]}: `{columns[failed[0]]}`. {why}")
                cells.append(f"fails ({', '.join(failed)}) [{len(notes)}]")
            else:
                cells.append(", ".join(columns))
        lines.append(f"| {program} | {' | '.join(cells)} |")
    return "\n".join([INTRODUCTION, *lines, "", *notes]) + "\n"


def cost_table(costs: dict[str, dict[str, list[float]]]) -> str:
    lines = [COSTS]
    for release, programs in costs.items():
        for program, (first, again, cpu, cpu_again, mib, cpu_mib) in programs.items():
            lines.append(f"| {program} | {release} | {first:.2f} | {again:.2f} | {again / max(cpu_again, 1e-3):,.0f} | "
                         f"{first / max(cpu, 1e-3):,.0f} | {mib:.0f} | {cpu_mib or '?'} |")
    return "\n".join(lines) + "\n"


def reasons_on(target: str) -> dict[str, dict[str, str]]:
    """By release and program, why it fails there: known.toml has one reason for all targets, or one for each."""
    known = tomllib.loads((HERE / "known.toml").read_text())
    found = {release: {program: why if isinstance(why, str) else why.get(target, "") for program, why in rows.items()}
             for release, rows in known.items()}
    return {release: {program: why for program, why in rows.items() if why} for release, rows in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--release", action="append", choices=list(NEEDS))
    parser.add_argument("--only", default="")
    parser.add_argument("--device", default=f"emulator:{USUAL}")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--results", type=Path, help="JSON, kept from run to run")
    words = parser.parse_args()
    target = words.device.removeprefix("emulator:")
    reasons = reasons_on(target)
    kept: dict[str, Any] = {"releases": {}, "found": {}}
    if words.results and words.results.exists():
        kept = json.loads(words.results.read_text())
    surprises = 0
    os.environ[RELEASES] = str(words.folder.resolve())
    for name in words.release or NEEDS:
        stack = stack_called(name)
        kept["releases"][column(name, target)] = stack.versions()
        output = words.folder / name / "programs"
        output.mkdir(exist_ok=True)
        for program in every(name, target):
            if not re.search(words.only, program.name):
                continue
            costs = kept.setdefault("costs", {}).setdefault(column(name, target), {})
            columns = dict(check(program, stack, output, words.device, costs))
            failed = any(columns.values())
            surprising = failed != (program.name in reasons.get(name, {}))
            surprises += surprising
            print(f"{name} {program.name}: {columns}{' (a surprise)' if surprising else ''}", flush=True)
            kept["found"].setdefault(column(name, target), {})[program.name] = columns
            if words.results:
                words.results.write_text(json.dumps(kept, indent=1) + "\n")
    if words.table:
        words.table.write_text(table(kept["releases"], kept["found"]) + cost_table(kept.get("costs", {})))
    return int(surprises > 0)


if __name__ == "__main__":
    sys.exit(main())
