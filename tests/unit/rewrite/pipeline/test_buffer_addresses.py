"""Addresses and range checks of buffers beyond gfx9, where memory holds its own number in each dword: what is loaded
says where from, and 0 that nothing was."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from assembled import BUFFER_BYTES, assembled

from luthier_py.emulator import EmulatorDevice
from luthier_py.intrinsics import lane_id
from luthier_py.isa import sgpr, target, vgpr
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Lane, Mutator, Tool, Variable, address, bool_, bounds, hook, ptr, u32, u64

LANES = 32
BODY = """
 s_load_{b64} s[4:5], s[0:1], {null}
 {wait}
 s_mov_b32 s8, s4
 s_or_b32 s9, s5, {second:#x}
 s_mov_b32 s10, {third:#x}
 s_mov_b32 s11, {fourth:#x}
 s_movk_i32 s20, 64
 v_and_b32 v10, 7, v0
 v_lshlrev_b32 v11, 2, v0
 v_mov_b32 v2, 0
 {load}
 {waited}
 s_endpgm
"""
BY_LANE = [
    "v11, s[8:11], s20 offen offset:4", "v10, s[8:11], {null} idxen offset:8",
    "v[10:11], s[8:11], s20 idxen offen offset:4",
]


@hook
def keep_access(out: ptr[u64], where: Lane[u64], inside: Lane[bool_]) -> None:
    out[lane_id()] = where
    out[LANES + lane_id()] = u64(inside)


@hook
def keep_loaded(out: ptr[u64], base: u64, loaded: Lane[u32]) -> None:
    out[2 * LANES + lane_id()] = base
    out[3 * LANES + lane_id()] = u64(loaded)


class Keeps(Tool):
    out = Variable(u64, 4 * LANES)

    def instrument(self, m: Mutator) -> None:
        instrs = list(m.instrs(m.program.kernel("k").function))
        load = next(each for each in instrs if "buffer_load" in each.op.mnemonic)
        loaded = sgpr(30) if load.op.mnemonic.startswith("s_") else vgpr(2)
        m.before(load, keep_access, self.out, address(load), bounds(load))
        m.before(instrs[-1], keep_loaded, self.out, sgpr(4, 2), loaded)


def accessed(clang: str, folder: Path, gpu: str, load: str, words: tuple[int, int, int]) -> list[tuple[int, ...]]:
    """Where each lane's load leads, whether it is in range, where the buffer lies, and what was loaded."""
    row = target(gpu)
    null = "0" if row.generation < 12 else "null"
    b64, b32 = ("b64", "b32") if row.generation >= 11 else ("dwordx2", "dword")
    wait, waited = ("s_wait_kmcnt 0x0", "s_wait_loadcnt 0x0") if row.generation >= 12 else ("s_waitcnt 0",) * 2
    name = f"s_buffer_load_{b32} s30," if load.startswith("s") else f"buffer_load_{b32} v2,"
    data = assembled(clang, folder, gpu, BODY.format(
        b64=b64, null="0x0" if row.generation >= 12 else "0", wait=wait, waited=f"{waited}\n {wait}",
        load=f"{name} {load.format(null=null)}", **dict(zip(("second", "third", "fourth"), words, strict=True))))
    tool, device = Keeps(), EmulatorDevice(row)
    buffer = device.alloc(BUFFER_BYTES)
    device.write(buffer.address, struct.pack(f"<{BUFFER_BYTES // 4}I", *range(BUFFER_BYTES // 4)))
    module = device.load(instrument(data, tool).data, "k.luthier")
    device.launch(module.kernel("k.luthier"), (1, 1, 1), (LANES, 1, 1), struct.pack("<Q", buffer.address))
    left = device.read(module.variable(tool.out.name).address, tool.out.size_bytes)
    values = struct.unpack(f"<{4 * LANES}Q", left)
    return [values[k * LANES:(k + 1) * LANES] for k in range(4)]


def words_of(gpu: str, stride: int, swizzle: int, records: int, select: int) -> tuple[int, int, int]:
    """Of a resource with the buffer's address, a format, and groups of 8 records."""
    if target(gpu).wide_resources:
        return records << 25 & 0xFFFFFFFF, records >> 7, stride << 12 | (select == 1) << 29
    return stride << 16 | swizzle << 30, records, select << 28 | 4 << 12


@pytest.mark.parametrize("gpu", ["gfx1030", "gfx1100", "gfx1201", "gfx1250"])
@pytest.mark.parametrize("load", BY_LANE)
def test_lanes_load_from_where_they_are_said_to(
        gpu: str, load: str, require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Raw and structured, swizzled where it is known how, with each way of checking."""
    swizzle = 0 if target(gpu).wide_resources else 3 if target(gpu).generation >= 11 else 2
    seen = set[int]()
    for stride, swizzled, records, select in ((0, 0, 4096, 2), (48, 0, 100, 3), (48, 1, 7, 1), (0, 0, 100, 0)):
        words = words_of(gpu, stride, swizzle * swizzled, records, select)
        where, inside, base, loaded = accessed(require_tool("clang-22"), tmp_path, gpu, load, words)
        expected = [(at - start) // 4 if fits else 0 for at, fits, start in zip(where, inside, base, strict=True)]
        assert list(loaded) == expected, words
        seen.update(inside)
    assert seen == {0, 1}


@pytest.mark.parametrize("gpu", ["gfx1030", "gfx1100", "gfx1201", "gfx1250"])
@pytest.mark.parametrize("records, inside", [(100, 1), (84, 1), (83, 0)])
def test_scalars(gpu: str, records: int, inside: int, require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Of 80 on."""
    load = "s[8:11], s20 offset:16" if gpu != "gfx1030" else "s[8:11], 0x50"
    where, fits, base, loaded = accessed(require_tool("clang-22"), tmp_path, gpu, load, words_of(gpu, 0, 0, records, 3))
    assert where == (base[0] + 80,) * LANES and fits == (inside,) * LANES and loaded == (20 * inside,) * LANES
