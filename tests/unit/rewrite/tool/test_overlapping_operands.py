"""Accesses whose data overlap a half of their address, under a tool that puts them into code that may skip them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from assembled import assembled, left_by
from each_target import sometimes

from luthier_py.isa import target
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

NAMES = {1: ("dword", "b32"), 2: ("dwordx2", "b64"), 3: ("dwordx3", "b96"), 4: ("dwordx4", "b128")}
ADDRESS = 9  # v[9:10]


def name(gpu: str, base: str, dwords: int) -> str:
    return f"{base}_{NAMES[dwords][target(gpu).generation >= 11]}"


def regs(first: int, dwords: int) -> str:
    return f"v{first}" if dwords == 1 else f"v[{first}:{first + dwords - 1}]"


def accesses(gpu: str) -> Iterator[tuple[str, int, int]]:
    """Each with the first of the registers that it loads, and their count: the last one is the lower half of its
    address, or the first one the upper half."""
    for base, off in (("global_load", ", off"), ("flat_load", "")):
        for dwords in NAMES:
            for first in (ADDRESS + 1 - dwords, ADDRESS + 1):
                yield f"{name(gpu, base, dwords)} {regs(first, dwords)}, v[{ADDRESS}:{ADDRESS + 1}]{off}", first, dwords
    swap, returns = ("cmpswap_b32", "th:TH_ATOMIC_RETURN") if target(gpu).generation >= 12 else (
        "cmpswap_b32" if target(gpu).generation == 11 else "cmpswap", "glc")
    for first in (ADDRESS - 1, ADDRESS + 1):
        yield f"global_atomic_{swap} v5, v[{ADDRESS}:{ADDRESS + 1}], {regs(first, 2)}, off {returns}", 5, 1


def listing(gpu: str) -> str:
    """The address is made again for each access, and what that loads is stored."""
    newest = target(gpu).generation >= 12
    lines = [f"{name(gpu, 's_load', 2)} s[2:3], s[0:1], 0x0", "s_wait_kmcnt 0x0" if newest else "s_waitcnt lgkmcnt(0)",
             "v_mov_b32 v20, s2", "v_mov_b32 v21, s3"]
    for number, (access, first, dwords) in enumerate(accesses(gpu)):
        lines += [*(f"v_mov_b32 v{reg}, {reg}" for reg in range(4, 16)),
                  f"v_mov_b32 v{ADDRESS}, s2", f"v_mov_b32 v{ADDRESS + 1}, s3", access,
                  *(("s_wait_loadcnt 0x0", "s_wait_dscnt 0x0") if newest else ("s_waitcnt vmcnt(0) lgkmcnt(0)",)),
                  f"{name(gpu, 'global_store', dwords)} v[20:21], {regs(first, dwords)}, off offset:{16 * number + 64}"]
    return "\n".join([*lines, "s_endpgm"])


@pytest.mark.parametrize("gpu", sometimes(["gfx900", "gfx1201"], ["gfx906", "gfx1030", "gfx1100"]))
def test_data_may_overlap_their_address(require_tool: Callable[[str], str], tmp_path: Path, gpu: str) -> None:
    data = assembled(require_tool("clang-22"), tmp_path, gpu, listing(gpu))
    made = instrument(data, load_tool("memcheck"))
    assert left_by(made.data, gpu, "k.luthier") == left_by(data, gpu)
