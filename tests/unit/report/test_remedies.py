"""A refusal for want of registers names what serves that kernel, and only that."""

from __future__ import annotations

import pytest
from crowded import EASY, FULL, EveryWave, full_and_easy
from emulated import code_object

from luthier_py.base.errors import OutOfRegisters
from luthier_py.isa import sgpr, vgpr
from luthier_py.report.remedies import find_alternatives, suggest_remedies
from luthier_py.rewrite.inject import apply, policies
from luthier_py.rewrite.inject.policies import Private
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Every register is written, none is read: free at places, and nowhere for as long as a wave runs; and nothing else
    is there to keep anything in."""
    monkeypatch.setattr(policies, "accumulators", lambda *args: ())
    monkeypatch.setattr(apply, "private_memory", lambda program, component, frame_bytes: Private(0, "it has no room"))
    writes = [*(("s_mov_b32", sgpr(i), 1) for i in range(102)), *(("v_mov_b32", vgpr(i), 1) for i in range(256))]
    return code_object({FULL: [*writes, ("s_nop", 7), ("s_endpgm",)]}, (FULL,), sgprs=102, vgprs=256)


def test_another_tool_serves(busy: bytes) -> None:
    tool = load_tool("instr_count")
    with pytest.raises(OutOfRegisters, match="this kernel is served by .*`-t branch_divergence` .*.kernel full"):
        with suggest_remedies(busy, tool):
            instrument(busy, tool)


def test_what_is_named_serves(busy: bytes) -> None:
    for code, kernel in ((busy, FULL), (full_and_easy(), FULL), (full_and_easy(), EASY)):
        found = find_alternatives(code, load_tool("instr_count"), kernel)
        assert found
        for words in found:
            flag, value = words.strip("`").split()
            other = load_tool(value) if flag == "-t" else load_tool("instr_count", dict([value.split("=")]))
            done = instrument(code, other, kernels=[kernel])
            assert kernel in [row.name for row in done.patched.report]


def test_a_tool_of_ones_own_is_not_another_one(busy: bytes) -> None:
    assert find_alternatives(busy, load_tool("instr_count"), FULL) and not find_alternatives(busy, EveryWave(), FULL)


def test_nothing_serves() -> None:
    assert find_alternatives(full_and_easy(), load_tool("instr_count"), "no_such_kernel") == []


def test_of_several_tools_one_alone_may_serve(busy: bytes) -> None:
    assert "`-t branch_divergence`" in find_alternatives(busy, load_tool("instr_count,branch_divergence"), FULL)
