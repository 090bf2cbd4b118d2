"""A program in a cell: bare, by its own checks, and under tools, beside its output and the emulator's counts.

In: a cell, tools with their options. Out: for each tool what is not so (or nothing), and whether there was something
for it to do. Invariant: nothing is compared with a number of the tool's or of the engine's. A program's profile has
counts by opcode, and of these flags and spaces are known; a tool that says that it leaves instructions out may count
less.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from cells import BARE, PROGRAMS, ROOT, TOOLS, Cell, source_of
from narrowed import LANES, MOST, QUIET, affordable, filter_of
from program_builder import builder
from ways import parsed

from luthier_py.host.hip import runtime_folder
from luthier_py.host.preload import tool_library
from luthier_py.isa import OpFlag, OpInfo, Space, instruction_set, target

EXECUTABLES = ROOT / "build" / "table" / "programs"
SECONDS = 600
BY_CHANCE = {"cooperative", "grid_sync", "printing"}
"""Waves wait for each other, or for the host: how often they look is chance."""
ANY = Space.GLOBAL | Space.LDS | Space.SCRATCH
TWO_PLACES = ("_read2", "_write2", "_2addr_")
PRINTED = " - at 0x"  # in a line of mem_printf
Profile = list[dict[str, Any]]
Ops = Mapping[str, OpInfo]


@dataclass(frozen=True, slots=True)
class Output:
    """``said``: on stderr. ``facts``: of each launch; the verdict's under a tool, the emulator's otherwise."""

    code: int
    printed: str
    said: str
    facts: Any


def compiled(cell: Cell) -> Path:
    """The executable; RuntimeError has the compiler's words."""
    name = f"{cell.name}-{cell.target}-{cell.wave_size}-O{cell.level}"
    folder = EXECUTABLES / source_of(cell.kind, cell.name) / name
    if not (folder / "made").exists():
        folder.mkdir(parents=True, exist_ok=True)
        headers = max(builder.header_folders(), key=builder.hip_major)
        size = ["-mwavefrontsize64"] * (cell.wave_size == 64 and cell.target.startswith("gfx1"))
        builder.build(PROGRAMS / f"{cell.name}.hip", folder / name, headers, runtime_folder(), (cell.target,),
                      (f"-O{cell.level}", *size), code_object=cell.code_object)
        (folder / "made").touch()
    return folder / name


def run(cell: Cell, **environment: str) -> Output:
    """On the emulator; TimeoutExpired after SECONDS."""
    with tempfile.TemporaryDirectory() as folder:
        verdict, profile = Path(folder) / "verdict", Path(folder) / "profile"
        settings = {"LUTHIER_DEVICE": f"emulator:{cell.target}", "LD_LIBRARY_PATH": str(runtime_folder()),
                    "LUTHIER_VERDICT": str(verdict), "LUTHIER_DEVICE_PROFILE": str(profile)}
        done = subprocess.run([str(compiled(cell))], env={**os.environ, **settings, **environment}, cwd=folder,
                              capture_output=True, text=True, errors="replace", timeout=SECONDS)
        facts: Any = [json.loads(line) for line in profile.read_text().splitlines()] if profile.exists() else []
        if "LUTHIER_TOOL" in environment:
            facts = json.loads(verdict.read_text()) if verdict.exists() else None
        return Output(done.returncode, done.stdout, done.stderr, facts)


@lru_cache(maxsize=1)
def bare(cell: Cell) -> Output:
    return run(cell)


def tried(cell: Cell, tool: str) -> tuple[str, bool]:
    """What is wrong; and whether the tool had anything to do."""
    known = bare(cell)
    if known.code or not known.printed.endswith("PASSED\n"):
        return f"wrong: exit code {known.code}, {last(known.printed)} {last(known.said)}", True
    if tool == BARE:
        return "", True
    name, words = parsed(tool)
    options = words | ({"print_records": "0"} if name in QUIET else {})
    profile = narrowed(known.facts, name, str(cell), options, opcodes(cell.target))
    ran = run(cell, LD_PRELOAD=str(tool_library()), LUTHIER_TOOL=f"{TOOLS / name}/",
              LUTHIER_TOOL_OPTIONS="\n".join(f"{key}={value}" for key, value in options.items()))
    if ran.code or ran.printed != known.printed:
        return f"wrong: exit code {ran.code}, {last(ran.printed)} {last(ran.said)}", True
    if ran.facts is None:
        return "wrong: no verdict", True
    if ran.facts["refused"]:
        return f"refused: {ran.facts['refused'][0]['reason']}", True
    if cell.name in BY_CHANCE:
        return "", bool(ran.facts["reports"])
    what = wrong(tool, ran, profile, opcodes(cell.target))
    return f"wrong: {what}" if what else "", bool(ran.facts["reports"])


def last(text: str) -> str:
    return (text.strip().splitlines() or ["nothing"])[-1]


@cache
def opcodes(name: str) -> Ops:
    """By mnemonic: loads to registers, where those to LDS have the same one and a modifier."""
    ops = instruction_set(target(name)).ops
    return {op.mnemonic: op for op in sorted(ops, key=lambda op: bool(op.spaces & Space.LDS), reverse=True)}


def narrowed(profile: Profile, tool: str, lot: str, options: dict[str, str], ops: Ops) -> Profile:
    """Rows with those opcodes that the tool is to see; ``options`` say so to it."""
    if tool not in MOST:
        return profile
    figure = "lane_opcodes" if tool == LANES else "active_opcodes"
    counts = sum((Counter({name: count for name, count in row[figure].items() if vector(ops[name])})
                  for row in profile), Counter[str]())
    chosen = affordable(counts, MOST[tool], f"{lot} {tool}")
    if chosen is None:
        return profile
    options["INSTRUMENT"] = filter_of("opcode", chosen)
    kinds = ("opcodes", "active_opcodes", "lane_opcodes")
    return [{**row, **{kind: {name: row[kind][name] for name in chosen if name in row[kind]} for kind in kinds}}
            for row in profile]


def vector(op: OpInfo) -> bool:
    return bool(op.spaces & ANY)


def total(counts: Mapping[str, int], ops: Ops, wanted: Callable[[OpInfo], bool], twice: Sequence[str] = ()) -> int:
    """Executions of opcodes that are wanted, of those with such a part in their names by two."""
    return sum(count * (1 + any(part in name for part in twice)) for name, count in counts.items() if wanted(ops[name]))


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that a tool reports of a launch, and where the emulator has it. ``partial``: the report
    says what is left out; such a tool has no report of a kernel of which it can count nothing."""

    reported: Callable[[Any], int]
    executed: Callable[[dict[str, Any], Ops], int]
    partial: bool = False


def touching(space: Space, part: str = "") -> Callable[[OpInfo], bool]:
    return lambda op: bool(op.spaces & space) and part in op.base


FIGURES: dict[str, Figure] = {
    "instr_count": Figure(lambda report: report["instructions"], lambda row, ops: row["instructions"]),
    "instr_count mode=instruction": Figure(lambda report: report["instructions"], lambda row, ops: row["instructions"]),
    "instr_count COUNT_WARP_LEVEL=0 EXCLUDE_PRED_OFF=1": Figure(
        lambda report: report["instructions"], lambda row, ops: row["lanes"]),
    "wave_metrics": Figure(lambda report: report["instructions"], lambda row, ops: row["instructions"]),
    "hot_blocks": Figure(lambda report: report["instructions"], lambda row, ops: row["instructions"]),
    "roofline": Figure(lambda report: report["total"]["instructions"], lambda row, ops: row["instructions"]),
    "exactness": Figure(lambda report: report["exact"] + report["exact_but_nan"] + report["free"],
                        lambda row, ops: row["instructions"]),
    "branch_edges": Figure(lambda report: sum(row["count"] for row in report["edges"]),
                           lambda row, ops: total(row["opcodes"], ops, lambda op: OpFlag.CONDITIONAL in op.flags)),
    "lds_bank_conflicts": Figure(
        lambda report: sum(row["accesses"] for row in report["instructions"]),
        lambda row, ops: total(row["active_opcodes"], ops, touching(Space.LDS)), True),
    "memory_divergence": Figure(
        lambda report: sum(row["executions"] for row in report["instructions"]),
        lambda row, ops: total(row["active_opcodes"], ops, touching(Space.GLOBAL)), True),
    "mem_trace": Figure(
        lambda report: report["accesses"],
        lambda row, ops: total(row["active_opcodes"], ops, touching(ANY), TWO_PLACES), True),
    "compressibility": Figure(
        lambda report: sum(row["executions"] for row in report["stores"]),
        lambda row, ops: total(row["active_opcodes"], ops, touching(Space.GLOBAL, "_STORE_")), True),
    "fma_in_double": Figure(
        lambda report: sum(row["results"] for row in report["instructions"]),
        lambda row, ops: total(row["lane_opcodes"], ops, lambda op: op.base in FUSED, ("v_pk_",)), True),
}
FUSED = ("V_FMA_F32", "V_FMAC_F32", "V_PK_FMA_F32")


def wrong(tool: str, ran: Output, profile: Profile, ops: Ops) -> str:
    """Of all launches of each kernel."""
    reports = ran.facts["reports"]
    if tool.startswith("opcode_histogram"):
        kind = "lane_opcodes" if "EXCLUDE_PRED_OFF=1" in tool else "opcodes"
        rows = [(row["kernel"], row["report"]["opcodes"]) for row in reports]
        same = histograms(rows) == histograms([(row["kernel"], row[kind]) for row in profile])
        return "" if same else "its counts are not the emulator's"
    if tool.startswith(LANES):
        lines = sum(PRINTED in line for line in ran.said.splitlines())
        lanes = sum(total(row["lane_opcodes"], ops, touching(Space.GLOBAL)) for row in profile)
        left = any(row["report"]["left_out"] for row in reports)
        return "" if lines == lanes or left and lines < lanes else f"it printed {lines} lines, not {lanes}"
    if tool not in FIGURES:
        return ""
    figure = FIGURES[tool]
    silent = {row["kernel"] for row in profile} - {row["kernel"] for row in reports}
    left = figure.partial and (bool(silent) or any(row["report"]["left_out"] for row in reports))
    reported = sums([(row["kernel"], figure.reported(row["report"])) for row in reports])
    executed = sums([(row["kernel"], figure.executed(row, ops)) for row in profile])
    if reported == executed or left and not reported - executed:
        return ""
    return f"its counts are not the emulator's: {dict(reported - executed)} more, {dict(executed - reported)} less"


def histograms(rows: Sequence[tuple[str, Mapping[str, int]]]) -> dict[str, Counter[str]]:
    return {name: sum(map(Counter, counts), Counter[str]()) for name, counts in by_kernel(rows).items()}


def by_kernel(rows: Sequence[tuple[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for kernel, value in rows:
        found.setdefault(kernel, []).append(value)
    return found


def sums(rows: Sequence[tuple[str, int]]) -> Counter[str]:
    return Counter({kernel: count for kernel, counts in by_kernel(rows).items() if (count := sum(counts))})
