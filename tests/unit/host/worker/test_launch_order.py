"""Launches, copies, fills and events in any order, on several streams: memory is what the order of the calls says.

In: a program that does the same on the host; kernels whose result depends on the order in which they run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from emulated import ISA, code_object

from luthier_py.isa import sgpr, vgpr
from luthier_py.samples import FOLDER

BUMP = [
    ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_load_dword", sgpr(2), sgpr(4, 2), 8), ("s_waitcnt", 0),
    ("s_load_dword", sgpr(3), sgpr(0, 2), 0), ("s_waitcnt", 0), ("s_mul_i32", sgpr(3), sgpr(3), 3),
    ("s_add_u32", sgpr(3), sgpr(3), sgpr(2)), ("v_mov_b32", vgpr(2), 0), ("v_mov_b32", vgpr(1), sgpr(3)),
    ISA.make("global_store_dword", vgpr(2), vgpr(1), sgpr(0, 2)).raw, ("s_endpgm",),
]
HOLD = [
    ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), "again:",
    ("s_load_dword", sgpr(3), sgpr(0, 2), 0), ("s_waitcnt", 0), ("s_cmp_eq_u32", sgpr(3), 0),
    ("s_cbranch_scc1", "again"), ("s_endpgm",),
]


@pytest.fixture
def ordered(tmp_path: Path, host_program: Callable[..., Path]) -> tuple[Path, Path]:
    """The program, and its code."""
    code = tmp_path / "kernels.co"
    code.write_bytes(code_object({"bump": BUMP, "hold": HOLD}, ("bump", "hold"), lds_bytes=0))
    return host_program("ordered_program"), code


@pytest.mark.parametrize("per_launch", "10")
def test_no_launch_waits_for_one_on_another_stream(
    per_launch: str, host_program: Callable[..., Path], tooled: Callable[..., Any]
) -> None:
    """Under a tool, too, whose variables the first still has, behind a host function that waits for the others."""
    words = host_program("held_program"), FOLDER / "vector_add.co", "3"
    done = tooled(*words, LUTHIER_TOOL_OPTIONS=f"per_launch={per_launch}")
    assert (done.code, done.out) == (0, "0\n"), done.err
    found = [(row["launches"], row["report"]["instructions"]) for row in done.verdict["reports"]]
    one = sum(count for _, count in found) // 6
    assert found == [(1, one), (1, 2 * one), (1, 3 * one)] if per_launch == "1" else found == [(3, 6 * one)]


@pytest.mark.parametrize("seed", range(3))
def test_memory_is_as_the_calls_say(seed: int, ordered: tuple[Path, Path], run: Callable[..., Any]) -> None:
    done = run(*ordered, "random", str(seed))
    assert (done.returncode, done.stderr) == (0, "")


def test_more_launches_than_are_kept_behind_one_that_waits(
    ordered: tuple[Path, Path], run: Callable[..., Any]
) -> None:
    """None of them is to wait for the program, which has yet to let the first one go."""
    done = run(*ordered, "held", "5")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_fault_is_told_once_and_final(ordered: tuple[Path, Path], run: Callable[..., Any]) -> None:
    done = run(*ordered, "fault", "6")
    assert done.returncode == 3
    assert re.fullmatch(r"luthier: .*lane 0 of wave 0 of work-group 0: bad address 0x40; .*kernel bump, pc 0x\w+, .*\n",
                        done.stderr)


@pytest.mark.parametrize("each, how", (("0", "random"), ("1", "random"), ("1", "mixed")))
def test_under_a_tool(
    each: str, how: str, ordered: tuple[Path, Path], tooled: Callable[..., Any], counted: Callable[..., Any]
) -> None:
    """Whether it tells each launch or none, it counts what the emulator counts; each in the order of the launches, of
    which some are waited for and others not."""
    own = [launch["instructions"] for launch in counted(*ordered, how, "7")]
    done = tooled(*ordered, how, "7", LUTHIER_TOOL_OPTIONS=f"per_launch={each}")
    assert done.code == 0, done.err
    reports = [row["report"]["instructions"] for row in done.verdict["reports"]]
    assert sum(reports) == sum(own) and done.verdict["launches"] == len(own) > 1000
    assert reports == own if each == "1" else len(reports) < len(own)


def test_a_fault_under_a_tool(
    ordered: tuple[Path, Path], tooled: Callable[..., Any], counted: Callable[..., Any]
) -> None:
    """What was done before it is told; of the launch itself, and of those that come too late, nothing is."""
    own = [launch["instructions"] for launch in counted(*ordered, "random", "6")]
    done = tooled(*ordered, "fault", "6")
    assert done.code == 3 and "bad address 0x40" in done.err
    assert [row["report"]["instructions"] for row in done.verdict["reports"]] == own
    assert done.verdict["ended"] and done.verdict["launches"] > len(own)
