"""Checks of accesses that convert, or copy between memory and LDS: what is wrong is found, and what is right is not."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from emulated import ISA, KERNARG_BYTES, LANES, code_object
from launching import compile_hip, launch

from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import ALL, Checks, FindingKind
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.watching.findings import Finding
from luthier_py.isa import target
from luthier_py.isa.model.registers import sgpr, vgpr

PLACE, RESOURCE = sgpr(8, 2), sgpr(8, 4)
R32_UINT = 4 | 4 << 4
START = [("s_load_dwordx2", PLACE, sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_and_b32", vgpr(1), 0x3FF, vgpr(0)),
         ("v_lshlrev_b32", vgpr(2), 2, vgpr(1)), ("s_movk_i32", sgpr(10), 0x1000),
         ("s_mov_b32", sgpr(11), 0x27000), ("v_mov_b32", vgpr(3), sgpr(6))]
WAIT, END = ("s_waitcnt", 0), ("s_endpgm",)
LOAD, STORE = (ISA.make(f"tbuffer_{what}_format_x", vgpr(data), vgpr(2), RESOURCE, 0, offen=True, format=R32_UINT).raw
               for what, data in (("load", 4), ("store", 3)))
USE = ("v_add_u32", vgpr(4), 1, vgpr(4))
KEEP = ISA.make("global_store_dword", vgpr(2), vgpr(4), PLACE).raw


def ran(rows: Sequence[Any], checks: Checks = ALL, words: int = 64, groups: int = 1, written: bool = True
        ) -> tuple[list[Finding], tuple[int, ...]]:
    """A buffer of ``words``, each 7 more than its number if ``written``; its resource says that it has 4 KiB."""
    device = EmulatorDevice(ISA.target, options=LaunchOptions(checks=checks))
    buffer = device.alloc(4 * words)
    if written:
        device.write(buffer.address, struct.pack(f"<{words}I", *range(7, 7 + words)))
    module = device.load(code_object({"k": [*START, *rows]}))
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    device.launch(module.kernel("k"), (groups, 1, 1), (LANES, 1, 1), kernarg)
    return device.findings, struct.unpack(f"<{words}I", device.read(buffer.address, 4 * words))


def test_elements_past_an_allocation_are_left_out():
    findings, _ = ran([LOAD, WAIT, END], words=48)
    assert [(found.kind, found.who.lane, found.count) for found in findings] == [(FindingKind.BOUNDS, 48, 16)]
    findings, data = ran([STORE, WAIT, END], words=48)
    assert [(found.kind, found.who.lane) for found in findings] == [(FindingKind.BOUNDS, 48)] and data == (0,) * 48


def test_elements_that_nobody_wrote_or_waited_for():
    findings, data = ran([LOAD, WAIT, USE, KEEP, END])
    assert not findings and data == tuple(range(8, 72))
    assert [found.kind for found in ran([LOAD, WAIT, END], written=False)[0]] == [FindingKind.MEMORY]
    assert [found.kind for found in ran([LOAD, USE, WAIT, END])[0]] == [FindingKind.WAIT]


def test_elements_race():
    assert not ran([STORE, WAIT, LOAD, WAIT, END])[0]
    assert {found.kind for found in ran([STORE, WAIT, END], groups=2)[0]} == {FindingKind.RACE}
    assert {found.kind for found in ran([STORE, LOAD, WAIT, END], Checks.RACES, groups=2)[0]} == {FindingKind.RACE}
    assert not ran([LOAD, WAIT, END], groups=2)[0]


COPIES = r"""
#define GROUP asm volatile("s_wait_dscnt 0\n s_barrier_signal -1\n s_barrier_wait -1" ::: "memory")
DEVICE void copy(u32 place, const u32 *from) {
  asm volatile("global_load_async_to_lds_b32 %0, %1, off" :: "v"(place), "v"(from) : "memory");
}
KERNEL void waited(const u32 *in, u32 *out) {
  SHARED u32 there[64];
  copy((u32)(u64)(__attribute__((address_space(3))) u32 *)&there[X], in + X);
  asm volatile("s_wait_asynccnt 0" ::: "memory");
  GROUP;
  out[X] = there[63 - X];
}
KERNEL void hasty(const u32 *in, u32 *out) {
  SHARED u32 there[64];
  copy((u32)(u64)(__attribute__((address_space(3))) u32 *)&there[X], in + X);
  GROUP;
  out[X] = there[63 - X];
}
"""


@pytest.fixture(scope="module")
def copies(require_tool, tmp_path_factory):
    flags = "--no-offload-arch=gfx90a", "--offload-arch=gfx1250"
    return compile_hip(require_tool("clang-22"), tmp_path_factory.mktemp("copies"), COPIES, *flags)


@pytest.mark.parametrize("kernel, found", [("waited", []), ("hasty", [FindingKind.RACE])])
def test_copies_to_lds_are_waited_for(copies, kernel, found):
    """Two waves: each reads what the other has copied."""
    device = EmulatorDevice(target("gfx1250"), options=LaunchOptions(checks=ALL))
    given, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    launch(device, copies, kernel, [given, out])
    assert out.tolist() == given[::-1].tolist()
    assert [each.kind for each in device.findings] == found
    assert all("the write was not waited for before the barrier" in each.what for each in device.findings)
