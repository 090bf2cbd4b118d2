"""Hooks that do not run where no lane is active, and what the tool keeps from a kernel's first instruction on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import Reg, build, instruction_set, sgpr, target, vgpr
from luthier_py.proof.claim import Payload
from luthier_py.proof.payloads import summary
from luthier_py.rewrite.inject import apply
from luthier_py.rewrite.inject.call import Caller
from luthier_py.rewrite.inject.fragment import prepare
from luthier_py.rewrite.inject.items import Label
from luthier_py.rewrite.pipeline import Instrumented, instrument
from luthier_py.rewrite.tool import Tool, load_tool
from luthier_py.samples import sample

ISA = instruction_set(target("gfx90a"))
POINTER, NUMBER, LANE = (sgpr(0, 2), 1), (sgpr(2), 0), (vgpr(1), 0)

LATE = """
from luthier_py import Mutator, Tool, Variable, WaveVariable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add

class Late(Tool):
    total = Variable(u64)
    count = WaveVariable(u64)

    @hook
    def one(count: u64) -> u64:
        return count + u64(1)

    @hook(lanes="one")
    def keep(total: ptr[u64], count: u64) -> None:
        atomic_add(total, count)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            last = list(function.instrs)[-1]
            m.before(last, self.one, self.count, into=self.count)
            m.before(last, self.keep, self.total, self.count)
"""


def made(name: str, tool: Tool) -> Instrumented:
    return instrument(sample(name).path.read_bytes(), tool)


def idles(texts: Iterable[str], results: tuple[Reg, ...] = ()) -> bool:
    code = b"".join(ISA.parse(text).raw for text in texts)
    params, pointers = zip(POINTER, NUMBER, LANE, strict=True)
    return summary(ISA, Payload("hook", code, params, results, pointers, (4, 0, 0), None)).idles


@pytest.mark.parametrize(("texts", "results", "right"), [
    (["global_store_dword v1, v2, s[0:1]"], (), True),
    (["s_add_u32 s2, s2, 1"], (), True),
    (["s_add_u32 s2, s2, 1"], (sgpr(2),), False),
    (["v_readfirstlane_b32 s2, v1"], (sgpr(2),), True),
    (["v_readlane_b32 s2, v1, 3"], (sgpr(2),), False),
    (["v_add_u32_e32 v1, s2, v1"], (vgpr(1),), True),
    (["s_and_saveexec_b64 s[4:5], vcc", "global_store_dword v1, v2, s[0:1]", "s_mov_b64 exec, s[4:5]"], (), True),
    (["s_mov_b64 s[4:5], exec", "s_mov_b64 exec, 1", "global_store_dword v1, v2, s[0:1]", "s_mov_b64 exec, s[4:5]"],
     (), False),
])
def test_which_hooks_do_nothing_without_a_lane(texts: list[str], results: tuple[Reg, ...], right: bool) -> None:
    assert idles(texts, results) is right


def test_scalar_memory_is_written_without_a_lane() -> None:
    isa = instruction_set(target("gfx900"))
    code = isa.parse("v_mov_b32_e32 v1, v1").raw + isa.parse("s_store_dword s2, s[0:1], 0x0").raw
    assert not summary(isa, Payload("hook", code, (sgpr(0, 2),), (), (1,), (4,), None)).idles


def test_hooks_that_count_waves_are_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is one more even where no lane is active."""
    made("mandelbrot", load_tool("instr_count"))
    monkeypatch.setattr(apply, "prepare", lambda isa, payload: prepare(isa, replace(payload, needs_lane=True)))
    with pytest.raises(CheckFailed, match="hooks that run here are not those"):
        made("mandelbrot", load_tool("instr_count"))


def test_hooks_with_lanes_of_their_own_are_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever EXEC is zero, they have lanes."""
    ends: dict[int, Label] = {}  # by caller
    set_exec, set_results = Caller.set_exec, Caller.set_results

    def skip(self, placement):
        ends[id(self)] = Label()
        self.emit(build.jump_if_no_lane(self.isa), ends[id(self)])
        set_exec(self, placement)

    def land(self, placement):
        set_results(self, placement)
        self.items += [ends.pop(id(self))] if id(self) in ends else []

    monkeypatch.setattr(Caller, "set_exec", skip)
    monkeypatch.setattr(Caller, "set_results", land)
    with pytest.raises(CheckFailed, match="hooks that run here are not those"):
        made("reduce", load_tool("instr_count"))


def test_what_the_tool_keeps_is_cleared_where_nothing_else_is_inserted(tmp_path, monkeypatch) -> None:
    path = tmp_path / "late.py"
    path.write_text(LATE)
    assert made("vector_add", load_tool(str(path))).patched.claim.functions[0].locations
    monkeypatch.setattr(apply, "with_prologue", lambda isa, clone, prologue: clone)
    with pytest.raises(CheckFailed, match="is live and not restored"):
        made("vector_add", load_tool(str(path)))
