"""A lane's offset from a scalar base: it has a sign on gfx1250, and none before; elements are counted in 64 bits."""

from __future__ import annotations

import numpy as np
import pytest
from assembled import BUFFER_BYTES, assembled, left_by

from luthier_py import Lane, LaunchResult, Mutator, Tool, Variable, address, hook, ptr, u64
from luthier_py.base.errors import DeviceError
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import Launch, run_instrumented
from luthier_py.features.run.specs import parse_argument
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import sgpr, target
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

BEHIND = """
 s_load_b64 s[2:3], s[0:1], 0x0
 v_lshlrev_b32 v1, 2, v0
 s_wait_kmcnt 0x0
 s_add_nc_u64 s[4:5], s[2:3], 0x200
 v_sub_nc_u32 v3, v{lane}, 128
 {access} v2, v3, s[4:5] {how}
 s_wait_loadcnt_dscnt 0x0
 global_store_b32 v1, v2, s[2:3]
 s_endpgm
"""


@pytest.mark.parametrize(("access", "lane", "how", "first"), [
    ("global_load_b32", 1, "", 96), ("flat_load_b32", 1, "", 96), ("global_load_b32", 0, "scale_offset", 0),
    ("flat_load_b32", 0, "offset:64 scale_offset", 16), ("global_load_u8", 1, "offset:-384", 0),
])
def test_an_offset_below_the_base(require_tool, tmp_path, access: str, lane: int, how: str, first: int) -> None:
    body = BEHIND.format(access=access, lane=lane, how=how)
    code = assembled(require_tool("clang-22"), tmp_path, "gfx1250", body)
    left = np.frombuffer(left_by(code, "gfx1250"), np.uint32)[:32]
    assert left.tolist() == [first + lane for lane in range(32)]


def test_elements_of_three_dwords(require_tool, tmp_path) -> None:
    body = BEHIND.format(access="global_load_b96", lane=0, how="offset:1024 scale_offset")
    for one, other in ("b96 v2", "b96 v[2:4]"), ("v3, s[4:5]", "v6, s[4:5]"), ("u32 v3", "u32 v6"):
        body = body.replace(one, other)
    left = np.frombuffer(left_by(assembled(require_tool("clang-22"), tmp_path, "gfx1250", body), "gfx1250"), np.uint32)
    left = left[:32]
    assert left.tolist() == [3 * lane for lane in range(32)]


def test_it_has_no_sign_on_gfx1201(require_tool, tmp_path) -> None:
    body = BEHIND.format(access="global_load_b32", lane=1, how="").replace(
        "s_add_nc_u64 s[4:5], s[2:3], 0x200", "s_add_co_u32 s4, s2, 0x200\n s_add_co_ci_u32 s5, s3, 0")
    code = assembled(require_tool("clang-22"), tmp_path, "gfx1201", body)
    with pytest.raises(DeviceError, match="bad address"):
        left_by(code, "gfx1201")


class Places(Tool):
    """Sums of the lanes' addresses, and of what their offsets are counted from."""

    sums = Variable(u64, 2)

    @hook
    def note(sums: ptr[u64], place: Lane[u64], base: u64) -> None:
        atomic_add(sums, place)
        atomic_add(sums + 1, base)

    def instrument(self, m: Mutator) -> None:
        load = next(i for i in m.functions()[0].instrs if i.inst.op.mnemonic.startswith("global_load"))
        m.before(load, self.note, self.sums, address(load), sgpr(4, 2))

    def report(self, launch: LaunchResult) -> int:
        """Of 32 lanes, modulo 2**64."""
        place, base = launch[self.sums]
        return (place - base + (1 << 63)) % (1 << 64) - (1 << 63)


@pytest.mark.parametrize(("access", "lane", "how", "step"), [
    ("global_load_b32", 1, "offset:8", 4), ("global_load_b32", 0, "offset:8 scale_offset", 4),
    ("global_load_b96", 0, "offset:1032 scale_offset", 12),
])
def test_hooks_get_the_address(require_tool, tmp_path, access: str, lane: int, how: str, step: int) -> None:
    body = BEHIND.format(access=access, lane=lane, how=how).replace("v2,", "v[8:10]," if step == 12 else "v2,")
    code = assembled(require_tool("clang-22"), tmp_path, "gfx1250", body.replace("v1, v[8:10]", "v1, v8"))
    tool = Places()
    launch = Launch("k", (1, 1, 1), (32, 1, 1), (parse_argument(f"inout:u32[{BUFFER_BYTES // 4}]=arange"),))
    ran = run_instrumented(EmulatorDevice(target("gfx1250")), instrument(code, tool), tool, launch)
    first = (-128 if lane else -128 * step) + int(how.split()[0].split(":")[1])
    assert ran.report == sum(first + step * lane for lane in range(32))


class ScalarPlaces(Tool):
    """The addresses of scalar loads, from what the first one finds."""

    found = Variable(u64, 8)

    @hook(lanes="one")
    def note(found: ptr[u64], place: u64, base: u64) -> None:
        atomic_add(found, place - base)

    def instrument(self, m: Mutator) -> None:
        loads = [i for i in m.functions()[0].instrs if i.inst.op.base.startswith(("S_LOAD", "S_SCRATCH"))][1:]
        for number, load in enumerate(loads):
            m.before(load, self.note, self.found[number], address(load), sgpr(2, 2))

    def report(self, launch: LaunchResult) -> list[int]:
        return [int(each) for each in launch[self.found]]


@pytest.mark.parametrize(("gpu", "loads", "places"), [
    ("gfx1250", ["s_load_b32 s8, s[2:3], s6 offset:0x8 scale_offset", "s_load_u8 s8, s[2:3], 0x5",
                 "s_load_u16 s8, s[2:3], s6 offset:0x2 scale_offset", "s_load_b32 s8, s[2:3], 0x7"], [20, 5, 8, 4]),
    ("gfx906", ["s_scratch_load_dword s8, s[2:3], s6", "s_load_dword s8, s[2:3], s6"], [192, 0]),
])
def test_hooks_get_scalar_addresses(require_tool, tmp_path, gpu: str, loads: list[str], places: list[int]) -> None:
    new = gpu == "gfx1250"
    wait = "s_wait_kmcnt 0x0" if new else "s_waitcnt lgkmcnt(0)"
    body = "\n ".join(["", f"s_load_{'b64' if new else 'dwordx2'} s[2:3], s[0:1], 0x0", wait, "s_mov_b32 s6, 3", *loads,
                       wait, "s_endpgm"])
    code, tool = assembled(require_tool("clang-22"), tmp_path, gpu, body), ScalarPlaces()
    launch = Launch("k", (1, 1, 1), (32, 1, 1), (parse_argument(f"inout:u32[{BUFFER_BYTES // 4}]=arange"),))
    ran = run_instrumented(EmulatorDevice(target(gpu)), instrument(code, tool), tool, launch)
    assert ran.report[:len(places)] == places


def test_predicted_strides_count_elements(require_tool, tmp_path) -> None:
    code = assembled(require_tool("clang-22"), tmp_path, "gfx1250", BEHIND.format(
        access="global_load_b32", lane=0, how="scale_offset"))
    tool = load_tool("access_patterns")
    launch = Launch("k", (1, 1, 1), (32, 1, 1), (parse_argument(f"inout:u32[{BUFFER_BYTES // 4}]=arange"),))
    ran = run_instrumented(EmulatorDevice(target("gfx1250")), instrument(code, tool), tool, launch)
    assert sum("unit stride, 32 lanes" in line for line in ran.text.splitlines()) == 2
