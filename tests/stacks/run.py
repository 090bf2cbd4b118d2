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
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tomllib
from programs import Program, every
from stacks import NEEDS, Stack, stack_called

from luthier_py.releases.fetched import VARIABLE as RELEASES

HERE = Path(__file__).resolve().parent
CLI = [sys.executable, "-c", "from luthier_py.cli import main; main()", "exec"]
SECONDS, OURS = 600, "ours"
INTRODUCTION = """# Releases of ROCm

What `make test-stacks` made: programs of tests/programs, compiled with each release's own headers, on releases
of ROCm that `luthier fetch` brings, above the emulator. *alone*: the results are right. *hip*, *hsa*: so they are
under `instr_count` at that level, every launch is instrumented, and the counts are the emulator's own for the run
without a tool (where waves wait for each other, how often they look is chance: there counts are not compared).
*ours*: the results are right on our HIP runtime with the release's other libraries.
Packages of Debian's suites change, and so may this. What fails is looked at below (tests/stacks/known.toml).
"""
OWN = "__amd_rocclr_", "kernel@"  # ROCclr's copies and fills, and ROCr's, which are in no code object


class Done(NamedTuple):
    trouble: str  # empty where all is as it should be
    launches: list[dict[str, Any]]
    verdict: Any


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
        try:
            done = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=SECONDS, errors="replace"
            )
        except subprocess.TimeoutExpired:
            return Done(f"not done after {SECONDS} s", [], None)
        rows = [json.loads(line) for line in profile.read_text().splitlines()] if profile.exists() else []
        found = json.loads(verdict.read_text()) if verdict.exists() else None
    passed = done.returncode == 0 and re.search(program.passed, done.stdout)
    trouble = "" if passed else f"code {done.returncode}: {last_words(done.stdout + done.stderr)}"
    return Done(trouble, [row for row in rows if not row["kernel"].startswith(OWN)], found)


def last_words(text: str) -> str:
    dropped = re.compile(r"\s*$|.*Resource leak")
    lines = [line for line in text.splitlines() if not dropped.match(line)]
    return " / ".join(lines[-2:]).replace(f"{HERE.parents[1]}/", "")[-300:].replace("|", "\\|") or "nothing was said"


def miscounted(program: Program, alone: Done, under: Done) -> str:
    """What the tool's verdict lacks."""
    verdict = under.verdict
    if verdict is None:
        return "no verdict"
    if verdict["refused"] or verdict["launches"] != verdict["instrumented"] + verdict["failed_launches"]:
        return f"{verdict['instrumented']} of {verdict['launches']} launches instrumented; {verdict['refused']}"
    if program.waits:
        return ""
    counted = Counter((row["kernel"], row["report"]["instructions"]) for row in verdict["reports"])
    executed = Counter((row["kernel"], row["instructions"]) for row in alone.launches)
    if counted == executed:
        return ""
    more, less = (sorted(rows.items())[:3] for rows in (counted - executed, executed - counted))
    return f"counts differ: {more} and not {less}"


def check(program: Program, stack: Stack, folder: Path, device: str) -> Iterator[tuple[str, str]]:
    """Column and trouble, for each column that this program has."""
    target = device.removeprefix("emulator:")
    try:
        command = program.make(stack, folder / program.name, target)
    except RuntimeError as error:
        errors = re.findall(r"error: .*", str(error)) or [str(error)]
        yield "alone", f"not built: {errors[0][:200]}"
        return
    release, device = stack.fetched.name, device + f"*{program.devices}" * (program.devices > 1)
    alone = execute(program, command, release, device)
    yield "alone", alone.trouble
    for level in program.levels if not alone.trouble else ():
        under = execute(program, command, release, device, level)
        yield level, under.trouble or miscounted(program, alone, under)
    if program.ours:
        yield OURS, execute(program, command, release.replace("rocm", "luthier"), device).trouble


def table(
    releases: dict[str, str], found: dict[str, dict[str, dict[str, str]]], reasons: dict[str, dict[str, str]]
) -> str:
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
                why = reasons.get(release, {}).get(program, "?")
                notes.append(f"{len(notes) + 1}. {release}, {program}, {failed[0]}: `{columns[failed[0]]}`. {why}")
                cells.append(f"fails ({', '.join(failed)}) [{len(notes)}]")
            else:
                cells.append(", ".join(columns))
        lines.append(f"| {program} | {' | '.join(cells)} |")
    return "\n".join([INTRODUCTION, *lines, "", *notes]) + "\n"


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
    parser.add_argument("--device", default="emulator:gfx90a")
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
        kept["releases"][name] = stack.versions()
        output = words.folder / name / "programs"
        output.mkdir(exist_ok=True)
        for program in every(name, target):
            if not re.search(words.only, program.name):
                continue
            columns = dict(check(program, stack, output, words.device))
            failed = any(columns.values())
            surprising = failed != (program.name in reasons.get(name, {}))
            surprises += surprising
            print(f"{name} {program.name}: {columns}{' (a surprise)' if surprising else ''}", flush=True)
            kept["found"].setdefault(name, {})[program.name] = columns
            if words.results:
                words.results.write_text(json.dumps(kept, indent=1) + "\n")
    if words.table:
        words.table.write_text(table(kept["releases"], kept["found"], reasons))
    return int(surprises > 0)


if __name__ == "__main__":
    sys.exit(main())
