"""Injectors that are wrong in one way: their claim agrees with their code, and the proof refuses what they make."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_samples import OPTIONS
from each_target import sometimes

from luthier_py import Lane, Mutator, Tool, Variable, hook, ptr, u32, u64
from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import load
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import EXEC, Inst, InstructionSet, OpFlag, build, sgpr
from luthier_py.isa.text.parse import BadText
from luthier_py.rewrite.inject import slots, spills
from luthier_py.rewrite.pipeline import instrument

LIVE = {"gfx803": 60, "gfx900": 60, "gfx906": 60, "gfx1030": 124, "gfx1100": 186, "gfx1201": 190}
"""Vector registers that are live at the marker, so that none is left of those that a work-group leaves a wave."""
KERNEL = """
extern "C" __attribute__((global, amdgpu_flat_work_group_size(1024, 1024))) void k(unsigned *out, unsigned n) {
    unsigned x = __builtin_amdgcn_workitem_id_x(), t = x, kept[LIVE];
    for (int i = 0; i < LIVE; ++i) kept[i] = *(volatile unsigned *)(out + (x * 7 + i * n) % 1024);
    for (int i = 0; i < LIVE; ++i) asm volatile("" : "+v"(kept[i]));
    asm volatile("s_nop 7\\n\\tv_mov_b32 %0, %0" : "+v"(t));
    for (int i = 0; i < LIVE; ++i) t = t * 31 + kept[i];
    out[x] = t;
}
"""


@pytest.fixture(scope="module", params=sometimes(["gfx900", "gfx1100"], LIVE.keys() - {"gfx900", "gfx1100"}))
def crowded(request, require_tool, tmp_path_factory) -> bytes:
    """A kernel in which a hook's vector registers are put aside into private memory."""
    folder: Path = tmp_path_factory.mktemp("crowded")
    (folder / "k.hip").write_text(KERNEL)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O2", f"-DLIVE={LIVE[request.param]}",
                    f"--offload-arch={request.param}", folder / "k.hip", "-o", folder / "k.co"], check=True)
    return (folder / "k.co").read_bytes()


class Sums(Tool):
    """A hook at the marker."""

    total = Variable(u64)

    @hook
    def note(total: ptr[u64], x: Lane[u32]) -> None:
        atomic_add(total, u64(x) * 7)

    @hook(lanes="all")
    def note_all(total: ptr[u64], x: Lane[u32]) -> None:
        atomic_add(total, u64(x) * 7)

    def __init__(self, in_all_lanes: bool = False) -> None:
        super().__init__()
        self.hook = self.note_all if in_all_lanes else self.note

    def instrument(self, m: Mutator) -> None:
        (function,) = m.functions()
        instrs = m.instrs(function)
        (at,) = (k for k, i in enumerate(instrs) if i.inst.op.base == "S_NOP" and i.inst["simm16"].value == 7)
        m.before(instrs[at], self.hook, self.total, instrs[at + 1].inst["vdst"].reg)


def refuse(code: bytes, tool: Tool, why: str) -> None:
    try:
        with pytest.raises(CheckFailed, match=why):
            instrument(code, tool)
    except BadText:
        pytest.skip("the target has no such instruction")


def rewritten(*words: tuple[str, str]) -> Callable[..., object]:
    """Moves to and from private memory, with words of their text exchanged."""
    made = build._private.__wrapped__

    def private(isa: InstructionSet, text: str, offset_bytes: int) -> object:
        for old, new in words:
            text = text.replace(old, new)
        return made(isa, text, offset_bytes)

    return private


MOVES = {
    "halves are loaded": rewritten(("load_dword", "load_ushort"), ("load_b32", "load_u16")),
    "upper halves are loaded": rewritten(("load_dword", "load_short_d16_hi"), ("load_b32", "load_d16_hi_b16")),
    "halves are stored": rewritten(("store_dword", "store_short"), ("store_b32", "store_b16")),
    "upper halves are stored": rewritten(("store_dword", "store_short_d16_hi"), ("store_b32", "store_d16_hi_b16")),
    "bytes are stored": rewritten(("store_dword", "store_byte"), ("store_b32", "store_b8")),
}


def elsewhere(name: str, by: int) -> tuple[object, str, Callable[..., object]]:
    made = getattr(build, name)
    return build, name, lambda isa, reg, base, offset, *more: made(isa, reg, base, offset + by, *more)


def without_waits(isa, regs, slots, base) -> tuple[list[Inst], list[Inst]]:
    saves, loads = MADE(isa, regs, slots, base)
    return saves, [inst for inst in loads if OpFlag.WAIT not in inst.op.flags]


def exchanged(isa, regs, slots, base) -> tuple[list[Inst], list[Inst]]:
    saves, loads = MADE(isa, regs, slots, base)
    return [*loads, *saves], []


MADE = slots.moves
SPILLS = {
    "loads come from another dword": elsewhere("from_private", 4),
    "stores go to another dword": elsewhere("to_private", 4),
    "stores go to the application's": elsewhere("to_private", -4),
    "nobody waits for loads": (spills, "moves", without_waits),
    "loads come before stores": (spills, "moves", exchanged),
    "registers are never put back": (spills, "moves", lambda *given: (MADE(*given)[0], [])),
    "registers are never put aside": (spills, "moves", lambda *given: ([], MADE(*given)[1])),
    "the offset is another one": (slots, "offset_for_wave", lambda isa, offset: offset + 4 * isa.wave_size),
}
IN_LANES = {
    "only active lanes are put aside": (spills, "in_all_lanes", lambda isa, keep, insts: list(insts)),
    "EXEC is kept too late": (spills, "in_all_lanes", lambda isa, keep, insts: [
        build.copy(isa, sgpr(EXEC, 2), -1), build.copy(isa, keep, sgpr(EXEC, 2)), *insts,
        build.copy(isa, sgpr(EXEC, 2), keep)]),
}


@pytest.mark.parametrize("wrong", SPILLS.values(), ids=SPILLS)
def test_registers_that_do_not_come_back_are_missed(crowded, wrong, monkeypatch) -> None:
    monkeypatch.setattr(*wrong)
    if wrong[1] == "offset_for_wave" and not load(crowded).target.scratch_needs_base:
        pytest.skip("nothing has such an offset here")
    refuse(crowded, Sums(), "live and not restored|not the tool's|may still write|still needed")


@pytest.mark.parametrize("wrong", IN_LANES.values(), ids=IN_LANES)
def test_lanes_that_do_not_come_back_are_missed(crowded, wrong, monkeypatch) -> None:
    instrument(crowded, Sums(in_all_lanes=True))
    monkeypatch.setattr(*wrong)
    refuse(crowded, Sums(in_all_lanes=True), "live and not restored|still needed|EXEC is not restored")


@pytest.mark.parametrize("wrong", MOVES.values(), ids=MOVES)
def test_what_moves_registers_is_no_yardstick(crowded, wrong, monkeypatch) -> None:
    (row,) = instrument(crowded, Sums()).patched.report
    assert row.private_bytes and all("private memory" in scheme for scheme in row.schemes)
    monkeypatch.setattr(build, "_private", wrong)
    refuse(crowded, Sums(), "private memory that is not the tool's")
