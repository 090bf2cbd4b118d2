"""Programs under tools: their own output stays, and reports are what the emulator counts of the program alone.

Each program is under one of the tools here; all of them with ``-m slow``. test_preload has all under instr_count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SOURCES = Path(__file__).resolve().parents[3] / "programs"
OTHERWISE = {
    # waves wait for each other, or the host: how often they look is chance; test_preload
    "cooperative", "printing", "kernel_heap",
    "graphs", "graph_nodes", "graph_changes", "graph_exchanges", "graph_sizes",  # launches of a graph; test_preload
}  # fmt: skip
PROGRAMS = sorted({path.stem for path in SOURCES.glob("*.hip")} - OTHERWISE)
Opcodes = dict[str, int]


class Known(NamedTuple):
    """What a tool's report comes to, and where the emulator has the same of the bare program's launch."""

    reported: Callable[[Any], Hashable]
    executed: Callable[[dict[str, Opcodes]], Hashable]
    options: str = ""


def total(opcodes: Opcodes, *starts: str) -> int:
    return sum(count for name, count in opcodes.items() for start in starts if name.startswith(start))


def addresses(opcodes: Opcodes) -> int:
    """Of memory by vector instructions: two of those that name two places in LDS."""
    found = total(opcodes, "global_", "flat_", "buffer_", "scratch_", "ds_", "ds_read2", "ds_write2")
    return found - total(opcodes, "buffer_wb", "buffer_inv", "ds_gws_", "ds_swizzle", "ds_permute", "ds_bpermute")


KNOWN = {
    "branch_edges": Known(lambda report: sum(row["count"] for row in report["edges"]),
                          lambda row: total(row["opcodes"], "s_cbranch_")),
    "mem_trace": Known(lambda report: sum(row["accesses"] for row in report["sites"]),
                       lambda row: addresses(row["active_opcodes"]), "print_records=0"),
    "memory_divergence": Known(lambda report: sum(row["executions"] for row in report["instructions"]),
                               lambda row: total(row["active_opcodes"], "global_", "flat_")),
    "compressibility": Known(lambda report: sum(row["executions"] for row in report["stores"]),
                             lambda row: total(row["active_opcodes"], "global_store_dword", "flat_store_dword")),
    "fma_in_double": Known(lambda report: sum(row["results"] for row in report["instructions"]),
                           lambda row: total(row["lane_opcodes"], "v_fma_f32", "v_fmac_f32")
                           + 2 * total(row["lane_opcodes"], "v_pk_fma_f32")),
    "none": Known(lambda report: report and "reports something", lambda row: None),
    "opcode_histogram": Known(lambda report: frozenset(report["opcodes"].items()),
                              lambda row: frozenset(row["opcodes"].items())),
    # test_lds_bank_conflicts compares cycles with hand calculations.
    "lds_bank_conflicts": Known(lambda report: report["total"]["accesses"] or "reports nothing",
                                lambda row: total(row["active_opcodes"], "ds_")),
}
UNKNOWN = ("loop_counts", "mov_replace")  # tests/tools count what they do; here nothing is to change
TOOLS = (*KNOWN, *UNKNOWN)
WITH_LDS = [name for name in PROGRAMS if "__shared__" in (SOURCES / f"{name}.hip").read_text()]


def programs_of(tool: str) -> list[str]:
    return WITH_LDS if tool == "lds_bank_conflicts" else PROGRAMS


PAIRS = [
    pytest.param(name, tool, marks=[pytest.mark.xdist_group(f"program-{name}"),
                                    *[pytest.mark.slow] * ((place + turn) % len(TOOLS) > 0)])
    for turn, tool in enumerate(TOOLS) for place, name in enumerate(programs_of(tool))]


@pytest.mark.parametrize(("name", "tool"), PAIRS)
def test_output_stays_and_reports_are_right(
    name: str, tool: str, program: Callable[..., Path], tooled: Callable[..., Any], alone: Callable[..., Any]
) -> None:
    known, bare = KNOWN.get(tool), alone(program(name))
    done = tooled(program(name), tool=tool, LUTHIER_TOOL_OPTIONS=known.options if known else "")
    assert (done.code, done.out) == (0, bare.out), done.err
    assert not done.verdict["refused"]
    if known:
        found = [(row["kernel"], known.reported(row["report"])) for row in done.verdict["reports"]]
        executed = [(row["kernel"], known.executed(row)) for row in bare.rows]
        assert Counter(row for row in found if row[1]) == Counter(row for row in executed if row[1])
