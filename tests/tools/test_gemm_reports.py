"""What tools say of a kernel as libraries of matrices have them: without source lines, with matrix instructions, LDS, a
loop in which all happens, buffers, and code that does not run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from assembled import assembled

from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.features.run.launch import Launch, Ran, run_instrumented
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import target
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

TURNS = 4
BODY = f"""
 s_load_dwordx2 s[4:5], s[0:1], 0x0
 s_mov_b32 s6, 256
 s_mov_b32 s7, 0x27000
 s_mov_b32 s8, {TURNS}
 v_lshlrev_b32 v1, 2, v0
 v_lshlrev_b32 v2, 7, v0
 s_waitcnt lgkmcnt(0)
again:
 buffer_load_dword v3, v1, s[4:7], 0 offen
 s_waitcnt vmcnt(0)
 ds_write_b32 v1, v3
 s_waitcnt lgkmcnt(0)
 ds_read_b32 v4, v2
 s_waitcnt lgkmcnt(0)
 v_mfma_f32_16x16x4f32 a[0:3], v3, v4, a[0:3]
 s_sub_u32 s8, s8, 1
 s_cmp_lg_u32 s8, 0
 s_cbranch_scc1 again
 s_cmp_eq_u32 s8, 7
 s_cbranch_scc1 never
 buffer_store_dword v1, v1, s[4:7], 0 offen
 s_endpgm
never:
 ds_read_b32 v5, v2 offset:4
 buffer_load_dword v6, v1, s[4:7], 0 offen
 s_endpgm
"""  # in each turn the wave's 64 lanes read words that are 128 bytes apart: 32 of one bank in each half
IN_LOOP = 10


@pytest.fixture(scope="module")
def clang(require_tool: Callable[[str], str]) -> str:
    return require_tool("clang-22")


def ran(clang: str, folder: Path, tool: str, private: int = 0, floats: int = 64, body: str = ""
        ) -> tuple[Ran, dict[str, str]]:
    """What the tool told of a launch, and its files."""
    code = assembled(clang, folder, "gfx90a", body or BODY, private=private, lds=8192)
    launch = Launch("k", (1, 1, 1), (64, 1, 1), (parse_argument(f"inout:f32[{floats}]=ones"),))
    made = load_tool(tool, {})
    device = EmulatorDevice(target("gfx90a"), options=LaunchOptions(checks=Checks.BOUNDS))
    done = run_instrumented(device, instrument(code, made), made, launch)
    assert done.result is not None
    return done, {name: data.decode("latin") for name, data in made.files(done.result, done.report).items()}


def test_bank_conflicts_are_told_by_loop(clang: str, tmp_path: Path) -> None:
    done, files = ran(clang, tmp_path, "lds_bank_conflicts")
    worst, write, idle = done.report["instructions"]
    assert (worst["cycles"], worst["worst_way"], write["cycles"], idle["cycles"]) == (TURNS * 64, 32, TURNS * 2, 0)
    assert worst["loop"] == write["loop"] != "" and idle["loop"] == ""
    head, columns, first, _, rest = done.text.splitlines()
    assert columns.split() == "accesses cycles conflict-free conflicts worst pc loop instruction".split()
    assert first.split()[5:8] == [f"{worst['pc']:#x}", worst["loop"], "ds_read_b32"]
    assert rest.strip() == "1 more instruction did not run"
    page = files["lds_bank_conflicts.html"]
    assert f"loop {worst['loop']}, {IN_LOOP} instructions" in page and f"behind loop {worst['loop']}" in page
    assert f'data-start="loop{int(worst["loop"], 16):x}"' in page and page.count("offset:4</td>") == 1


def test_a_page_without_conflicts_begins_at_the_most_cycles(clang: str, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "BODY", BODY.replace("v_lshlrev_b32 v2, 7", "v_lshlrev_b32 v2, 2"))
    done, files = ran(clang, tmp_path, "lds_bank_conflicts")
    assert done.report["total"]["conflict_cycles"] == 0
    assert f'data-start="loop{int(done.report["instructions"][0]["loop"], 16):x}"' in files["lds_bank_conflicts.html"]


def test_worst_memory_accesses_are_first(clang: str, tmp_path: Path) -> None:
    done, _ = ran(clang, tmp_path, "memory_divergence")
    _, columns, first, second, rest = done.text.splitlines()[:5]
    assert "source" not in columns and columns.split()[-2:] == ["loop", "instruction"]
    assert "buffer_load_dword v3" in first and "buffer_store_dword" in second
    assert rest.strip() == "1 more instruction did not run"


def test_a_roofline_says_what_limits(clang: str, tmp_path: Path) -> None:
    done, files = ran(clang, tmp_path, "roofline")
    total = done.report["total"]
    assert total["flops_by_type"] == {"matrix f32": TURNS * 2 * 16 * 16 * 4}
    assert total["global_bytes"] == (TURNS + 1) * 256 and total["lds_cycles"] == TURNS * 4
    told = ("cycles that one compute unit needs at least: matrix units 32, vector cache 20, LDS 16; "
            "at most 100.0% of peak flops, limited by matrix units")
    assert done.text.splitlines()[1].strip() == told
    assert [line.split()[-2:] for line in done.text.splitlines()[3:]] == [
        ["function", "k"], ["loop", f"{done.report['loops'][0]['header']:#x}"]]
    assert told[1:] in files["roofline.html"] and "(no line)" not in files["roofline.html"]


def test_a_histogram_has_kinds_and_loops(clang: str, tmp_path: Path) -> None:
    done, files = ran(clang, tmp_path, "opcode_histogram")
    report = done.report
    assert report["kinds"]["matrix"] == TURNS and report["kinds"]["lds"] == 2 * TURNS
    assert sum(report["kinds"].values()) == sum(report["opcodes"].values()) == report["instructions"]
    [loop] = report["loops"]
    assert loop["instructions"] == IN_LOOP * TURNS and loop["kinds"]["wait"] == 3 * TURNS
    assert f"loop {loop['header']:#x}, {IN_LOOP * TURNS / report['instructions']:.1%} of all: wait 30.0%" in done.text
    assert "Kinds of instructions" in files["opcode_histogram.html"]


@pytest.mark.parametrize(("private", "bad"), [(0, ["buffer_load_dword", "buffer_store_dword"]), (64, [])])
def test_buffers_are_checked_where_none_is_private(clang: str, tmp_path: Path, private: int, bad: list[str]) -> None:
    """The buffer says 64 floats, of which there are 60."""
    done, _ = ran(clang, tmp_path, "memcheck", private, floats=60)
    assert [row["instruction"].split()[0] for row in done.report["bad"]] == bad
    assert all(row["count"] % 4 == 0 for row in done.report["bad"])
    assert len(done.report["left_out"]) == (3 if private else 0)


def test_a_buffer_s_scalar_offset_costs_that_access_alone(clang: str, tmp_path: Path) -> None:
    """The resource and the offset together are more than hooks take."""
    body = BODY.replace("v3, v1, s[4:7], 0 offen", "v3, v1, s[4:7], s8 offen")
    done, _ = ran(clang, tmp_path, "memcheck", floats=60, body=body)
    assert [row["instruction"].split()[0] for row in done.report["bad"]] == ["buffer_store_dword"]
    assert [row["instruction"].split()[1] for row in done.report["left_out"]] == ["v3,"]


def test_initcheck_leaves_buffers_out(clang: str, tmp_path: Path) -> None:
    done, _ = ran(clang, tmp_path, "initcheck")
    assert sorted(row["instruction"].split()[0] for row in done.report["left_out"]) == ["buffer_load_dword"] * 2
