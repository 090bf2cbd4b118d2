"""Options that every tool has: spelling, where they come from, what they choose, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from luthier_py.base import names
from luthier_py.base.errors import Invalid, Unsupported
from luthier_py.base.names import demangle, is_region
from luthier_py.report.names import file_name
from luthier_py.rewrite.tool import COUNT_WARP_LEVEL, EVERY_TOOL, EXCLUDE_PRED_OFF, Option, Selection, Tool, load_tool
from luthier_py.rewrite.tool.chosen.selection import COUNTING, NO_END

MANGLED, PLAIN = "_Z10vector_addPKfS0_Pfj", "vector_add(float const*, float const*, float*, unsigned int)"


class Counter(Tool):
    """Counts."""

    per_wave = COUNT_WARP_LEVEL
    active = EXCLUDE_PRED_OFF
    depth = Option(3)


class WavesOnly(Tool):
    per_wave = COUNT_WARP_LEVEL.only(True)
    active = EXCLUDE_PRED_OFF.only(True)


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*EVERY_TOOL, *COUNTING):
        monkeypatch.delenv(name, raising=False)


def test_nothing_given() -> None:
    tool = Counter()
    assert tool.selection == Selection() and tool.given == frozenset()
    assert (tool.per_wave, tool.active, tool.depth) == (True, False, 3)
    assert set(tool.option_values) == {*EVERY_TOOL, "COUNT_WARP_LEVEL", "EXCLUDE_PRED_OFF", "depth"}


def test_one_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    """As keyword or text in any case, or as environment variable; what is given to the tool itself is stronger."""
    for given in ({"COUNT_WARP_LEVEL": "0"}, {"count_warp_level": 0}, {"Count_Warp_Level": False}):
        tool = Counter(**given)
        assert not tool.per_wave and tool.given == {"COUNT_WARP_LEVEL"}
    assert Counter(DEPTH="7").depth == 7
    monkeypatch.setenv("COUNT_WARP_LEVEL", "0")
    monkeypatch.setenv("START_GRID_NUM", "0x10")
    tool = Counter(exclude_pred_off=1)
    assert (tool.per_wave, tool.active, tool.selection.start_grid_num) == (False, True, 16)
    assert tool.given == {"COUNT_WARP_LEVEL", "EXCLUDE_PRED_OFF", "START_GRID_NUM"}
    assert Counter(COUNT_WARP_LEVEL=1, start_grid_num=2).selection.start_grid_num == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"START_GRID_NUM": "one"}, r"option START_GRID_NUM=one: give a number from 0 to 4294967295"),
        ({"INSTR_BEGIN": -1}, r"option INSTR_BEGIN=-1: give a number from 0"),
        ({"INSTR_END": 1 << 32}, "give a number from 0 to 4294967295"),
        ({"INSTR_BEGIN": 5, "INSTR_END": 4}, "option INSTR_END=4: give at least INSTR_BEGIN, which is 5"),
        ({"START_GRID_NUM": 2, "END_GRID_NUM": 1}, "option END_GRID_NUM=1: give at least START_GRID_NUM"),
        ({"COUNT_WARP_LEVEL": "2"}, "option COUNT_WARP_LEVEL=2: give 0 or 1"),
        ({"LUTHIER_KERNELS": "(("}, r"option LUTHIER_KERNELS=\(\(: give a regular expression"),
        ({"LUTHIER_OUTPUT": "a.cvs"}, "option LUTHIER_OUTPUT=a.cvs: give a file that ends in .txt or .csv or .json"),
        ({"LUTHIER_OUTPUT": "no/such/a.csv"}, "option LUTHIER_OUTPUT=no/such/a.csv: there is no folder no/such"),
        ({"LUTHIER_RECORDS": f"{__file__}/a.ndjson"}, f"LUTHIER_RECORDS={__file__}/a.ndjson: there is no folder"),
        ({"LUTHIER_REPORT": f"{__file__}/new"}, rf"LUTHIER_REPORT={__file__}/new: {__file__} is a file; give a folder"),
        ({"TOOL_VERBOSE": "1", "tool_verbose": "1"}, "option TOOL_VERBOSE is given twice"),
        ({"level": "wave"}, "tool Counter has no option level; it has COUNT_WARP_LEVEL, EXCLUDE_PRED_OFF, depth, STA"),
    ],
)
def test_wrong_values(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        Counter(**options)


def test_wrong_values_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("END_GRID_NUM", "last")
    with pytest.raises(Invalid, match="option END_GRID_NUM=last: give a number from 0 to 4294967295"):
        Counter()


def test_a_tool_refuses_how_it_cannot_count(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(Tool):
        pass

    with pytest.raises(Invalid, match="tool Plain does not count by COUNT_WARP_LEVEL: leave it out"):
        Plain(count_warp_level=1)
    assert WavesOnly(COUNT_WARP_LEVEL=1, EXCLUDE_PRED_OFF=1).per_wave and WavesOnly().active
    with pytest.raises(Invalid, match="option EXCLUDE_PRED_OFF=0: choose only 1"):
        WavesOnly(exclude_pred_off="0")
    monkeypatch.setenv("EXCLUDE_PRED_OFF", "0")
    for tool, message in ((Plain, "tool Plain does not count by EXCLUDE_PRED_OFF"), (WavesOnly, "choose only 1")):
        with pytest.raises(Invalid, match=message):
            tool()


def test_a_tool_cannot_take_a_name_that_every_tool_has() -> None:
    with pytest.raises(Invalid, match="tool Greedy cannot have an option INSTR_END: every tool has it already"):
        type("Greedy", (Tool,), {"instr_end": Option(3)})


def test_what_is_chosen() -> None:
    some = Selection(start_grid_num=2, end_grid_num=4, instr_begin=1, instr_end=3)
    assert [index for index in range(6) if some.launch(index)] == [2, 3]
    assert list(some.instructions(6)) == [1, 2]
    everything = Selection()
    assert everything.launch(NO_END - 1) and everything.instructions(2) == range(2) and everything.kernel("any")
    for pattern in ("^_Z10vector", r"vector_add\(float", "add"):
        assert Selection(kernels=pattern).kernel(MANGLED)
    assert not Selection(kernels="^add").kernel(MANGLED)


def test_names_of_kernels() -> None:
    assert Selection().shown(MANGLED) == PLAIN and Selection(mangled_names=True).shown(MANGLED) == MANGLED
    for plain in ("saxpy", "_Zwrong", "", "_Z"):
        assert demangle(plain) == plain


def test_long_names_are_short_in_texts() -> None:
    long = "Cijk_Ailk_Bljk_SB_" + "_".join(f"PARAMETER{number}" for number in range(90))
    other, chosen = long + "_WGM8", Tool().selection
    assert (chosen.short(MANGLED), chosen.whole(MANGLED)) == (PLAIN, "")
    short = chosen.short(long)
    assert short.startswith("Cijk_Ailk_Bljk_SB_PARAMETER0_PARAMETER1") and len(short) <= names.LONGEST
    assert short != chosen.short(other) and chosen.whole(long) == long
    assert file_name(long).endswith(f"-{short.rpartition('...')[2]}")  # the kernel's folder
    assert Tool(MANGLED_NAMES=1).selection.short(long) == long
    assert names.shorten_name("x" * 100, most=20) == "x" * 9 + "..." + names.short_digest("x" * 100)


def test_names_with_halves() -> None:
    assert demangle("_Z11half_kernelPKDF16_PDF16_i") == "half_kernel(_Float16 const*, _Float16*, int)"
    assert demangle("_Z1fDF16bPDF16bS_") == "f(std::bfloat16_t, std::bfloat16_t*, std::bfloat16_t*)"


@pytest.mark.parametrize("symbol, shown", (
    ("__omp_offloading_fe00_20e285_main_l14", "main at line 14"),
    ("__omp_offloading_fe00_20e71f__ZN1n1fEPi_l4", "n::f(int*) at line 4"),
    ("__omp_offloading_fe00_20e71f__ZN1n1fEPi_l4_1", "n::f(int*) at line 4, region 2"),
    ("__omp_offloading_0_1_all_l2_l30", "all_l2 at line 30"),
    ("__omp_offloading_entries", "__omp_offloading_entries"),
    ("__omp_offloading_fe00_20e285_main_l14_kernel_environment",) * 2,
))  # fmt: skip
def test_names_of_openmp_regions(symbol: str, shown: str) -> None:
    """Symbols of clang 19."""
    assert Selection().shown(symbol) == shown and Selection(mangled_names=True).shown(symbol) == symbol
    assert is_region(symbol) == (shown != symbol)
    assert Selection(kernels="^main at line 14$").kernel(symbol) == (shown == "main at line 14")


def test_without_the_c_library_names_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "LIBRARY", "libnowhere.so")
    names._library.cache_clear(), names.demangle.cache_clear()
    try:
        assert demangle(MANGLED) == MANGLED
    finally:
        names._library.cache_clear(), names.demangle.cache_clear()


def test_the_echo_says_what_was_given_and_what_it_means(tmp_path: Path) -> None:
    assert Counter().echo() == ""
    given = {"count_warp_level": 0, "luthier_output": tmp_path / "o.csv"}
    assert len(Counter(**given).echo().splitlines()) == 1 + 2
    lines = Counter(**given, tool_verbose=1).echo().splitlines()
    assert lines[0] == "luthier: tool Counter, options (* given):" and len(lines) == 1 + 3 + len(EVERY_TOOL)
    marked = [line for line in lines if line.startswith("  *")]
    assert [line.split()[1:4] for line in marked] == [
        ["COUNT_WARP_LEVEL", "=", "0"], ["TOOL_VERBOSE", "=", "1"],
        ["LUTHIER_OUTPUT", "=", str(tmp_path / "o.csv")]]  # fmt: skip
    for option in EVERY_TOOL.values():
        assert any(f" {option.name} = " in line and line.endswith(option.help) for line in lines)


def test_parquet_without_pyarrow_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unsupported, match="Parquet needs pyarrow: pip install"):
        load_tool("mem_trace", {"LUTHIER_RECORDS": str(tmp_path / "trace.parquet")})
    load_tool("mem_trace", {"LUTHIER_RECORDS": str(tmp_path / "trace.ndjson")})
