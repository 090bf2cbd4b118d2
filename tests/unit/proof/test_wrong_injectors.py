"""Injectors that are wrong in one way: their claim agrees with their code, and the proof refuses what they make."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_samples import OPTIONS
from each_target import sometimes

from luthier_py import Lane, Mutator, Tool, Variable, hook, ptr, u32, u64
from luthier_py.errors import CheckFailed
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import InstructionSet, glue
from luthier_py.pipeline import instrument

LIVE = {"gfx803": 60, "gfx900": 60, "gfx942": 116, "gfx1030": 124, "gfx1100": 186, "gfx1201": 190}
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

    def instrument(self, m: Mutator) -> None:
        (function,) = m.functions()
        instrs = m.instrs(function)
        (at,) = (k for k, i in enumerate(instrs) if i.inst.op.base == "S_NOP" and i.inst["simm16"].value == 7)
        m.before(instrs[at], self.note, self.total, instrs[at + 1].inst["vdst"].reg)


def rewritten(*words: tuple[str, str]) -> Callable[..., object]:
    """Moves to and from private memory, with words of their text exchanged."""
    made = glue._private.__wrapped__

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


@pytest.mark.parametrize("wrong", MOVES.values(), ids=MOVES)
def test_what_moves_registers_is_no_yardstick(crowded, wrong, monkeypatch) -> None:
    (row,) = instrument(crowded, Sums()).patched.report
    assert row.private_bytes and all("private memory" in scheme for scheme in row.schemes)
    monkeypatch.setattr(glue, "_private", wrong)
    with pytest.raises(CheckFailed, match="private memory that is not the tool's"):
        instrument(crowded, Sums())
