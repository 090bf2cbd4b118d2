"""Values that were never written, by each way from register to register: they are told in the lanes where they arrive.

A register gets one number in lanes that are known and another, made of a register that nobody wrote, in the others.
Where the launch left the other number, and nowhere else, checks have to say so.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assembled import assembled

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.isa import target

GARBAGE, OLD = 0xDEAD, 0x77
KNOWN, ACTIVE = 0x5A3C_F00F_A5C3_6F0E, 0x7FF3_FFFF_0FFE_F7FF
CASES: dict[str, list[str]] = {
    "AGPRs": ["v_accvgpr_write_b32 a1, v9", "v_accvgpr_read_b32 v8, a1"],
    "a scalar in a lane": ["v_writelane_b32 v8, s20, 5", "v_writelane_b32 v8, s21, 6"],
    "two scalars in lanes and back": [
        "v_writelane_b32 v9, s20, 2", "v_writelane_b32 v9, s21, 4", "v_readlane_b32 s22, v9, 2", "v_mov_b32 v8, s22"],
    "a known scalar beside others": ["v_writelane_b32 v9, s21, 4", "v_readlane_b32 s22, v9, 4", "v_mov_b32 v8, s22"],
    "a lane by a scalar": ["s_mov_b32 s23, 6", "s_nop 4", "v_readlane_b32 s22, v9, s23", "v_mov_b32 v8, s22"],
    "the first lane": ["v_readfirstlane_b32 s22, v9", "v_mov_b32 v8, s22"],
    "a chosen scalar": ["s_mov_b32 m0, 2", "s_nop 0", "s_movrels_b32 s22, s18", "v_mov_b32 v8, s22"],
    "a chosen known scalar": ["s_mov_b32 m0, 3", "s_nop 0", "s_movrels_b32 s22, s18", "v_mov_b32 v8, s22"],
    "to a chosen scalar": ["s_mov_b32 m0, 2", "s_nop 0", "s_movreld_b32 s24, s20", "v_mov_b32 v8, s26"],
    "a region": ["s_mov_b32 s23, 5", "s_set_gpr_idx_on s23, gpr_idx(SRC0)", "v_mov_b32 v8, v4", "s_set_gpr_idx_off"],
    "a region of results": [
        "s_mov_b32 s23, 5", "s_set_gpr_idx_on s23, gpr_idx(DST)", "v_mov_b32 v3, v9", "s_set_gpr_idx_off"],
    "a chosen register": ["s_mov_b32 m0, 5", "s_nop 0", "v_movrels_b32 v8, v4"],
    "to a chosen register": ["s_mov_b32 m0, 5", "s_nop 0", "v_movreld_b32 v3, v9"],
    "a swap with a chosen register": ["s_mov_b32 m0, 5", "s_nop 0", "v_swaprel_b32 v8, v4"],
    "a row": ["v_mov_b32_dpp v8, v9 row_shr:3 row_mask:0xf bank_mask:0x7"],
    "a row with zeros": ["v_mov_b32_dpp v8, v9 row_shl:3 row_mask:0xa bank_mask:0xf bound_ctrl:0"],
    "a row beside a known source": ["v_xor_b32_dpp v8, v9, v6 row_ror:5 row_mask:0xf bank_mask:0xf"],
    "a row to choose from": [
        "s_mov_b32 vcc_lo, 0xf0f1", "v_cndmask_b32_dpp v8, v9, v6, {vcc} row_mirror row_mask:0xf bank_mask:0xf"],
    "a wave": ["v_mov_b32_dpp v8, v9 wave_shr:1 row_mask:0xf bank_mask:0xf"],
    "a broadcast": ["v_mov_b32_dpp v8, v9 row_bcast:15 row_mask:0xa bank_mask:0xf"],
    "eight lanes": ["v_mov_b32_dpp v8, v9 dpp8:[7,6,5,4,3,2,1,0]"],
    "eight lanes, inactive ones too": ["v_mov_b32_dpp v8, v9 dpp8:[1,0,3,2,5,4,7,6] fi:1"],
    "asked lanes": ["ds_bpermute_b32 v8, v7, v9"],
    "told lanes": ["ds_permute_b32 v8, v7, v9"],
    "swizzled lanes": ["ds_swizzle_b32 v8, v9 offset:swizzle(REVERSE,16)"],
    "a row's lanes": ["v_permlane16_b32 v8, v9, s28, s29"],
    "the other row's lanes": ["v_permlanex16_b32 v8, v9, s28, s29 op_sel:[0,1]"],
    "a row's lanes, inactive ones too": ["v_permlane16_b32 v8, v9, s28, s29 op_sel:[1,0]"],
    "the other half": ["v_permlane64_b32 v8, v9"],
    "lanes of a row that lanes choose": ["v_permlane16_var_b32 v8, v9, v0"],
    "swapped rows": ["v_permlane16_swap_b32 v8, v9"],
    "swapped halves, the other register": ["v_permlane32_swap_b32 v9, v8"],
    "LDS": ["ds_write_b32 v1, v9", "{wait}", "ds_read_b32 v8, v1"],
    "a pair in LDS": [
        "ds_write2_b32 v1, v9, v8 offset0:64 offset1:1", "{wait}", "ds_read2_b32 v[4:5], v1 offset0:1 offset1:64",
        "{wait}", "v_mov_b32 v8, v5"],
    "private memory": ["scratch_store_dword v1, v9, off offset:8", "{wait}", "scratch_load_dword v8, v1, off offset:8"],
    "a part of a register": ["v_mov_b32_sdwa v8, v9 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0"],
}  # fmt: skip
NEW = (
    "a chosen register", "to a chosen register", "a swap", "swapped", "eight", "lanes of a row", "a row's", "the other")
OLD_ONLY = ("AGPRs", "a region", "a region of results", "a wave", "a broadcast", "a part of a register")
MACHINES = [
    ("gfx90a", 64, {name for name in CASES if not name.startswith(NEW)}),
    ("gfx950", 64, {"swapped rows", "swapped halves, the other register", "AGPRs", "asked lanes", "a pair in LDS"}),
    ("gfx1030", 32, CASES.keys() - {*OLD_ONLY, "the other half", "lanes of a row that lanes choose"}),
    ("gfx1201", 32, CASES.keys() - {*OLD_ONLY, "the other half"}), ("gfx1201", 64, CASES.keys() - {*OLD_ONLY}),
]  # fmt: skip
MOST_CASES = 9


def shares() -> list[Any]:
    """Some cases each, on a machine that has them."""
    found = []
    for gpu, wave, names in MACHINES:
        has = sorted(name for name in names if not name.startswith("swapped") or gpu == "gfx950")
        found += [(gpu, wave, has[first : first + MOST_CASES]) for first in range(0, len(has), MOST_CASES)]
    return found


def kernel(gpu: str, names: list[str], lanes: int) -> str:
    """Each case's result goes to the buffer lane by lane, so that a finding counts lanes."""
    wait = "s_wait_idle" if target(gpu).generation >= 12 else "s_waitcnt vmcnt(0) lgkmcnt(0)"
    one_lane = "s_lshl_b64 exec, 1, s10" if lanes == 64 else "s_lshl_b32 exec_lo, 1, s10"

    def active(wanted: int) -> list[str]:
        halves = [f"s_mov_b32 exec_lo, {wanted & 0xFFFFFFFF:#x}", f"s_mov_b32 exec_hi, {wanted >> 32:#x}"]
        return halves[: lanes // 32]

    every = active((1 << 64) - 1)
    lines = ["s_load_dwordx2 s[2:3], s[0:1], 0x0", "{wait}", "v_and_b32 v0, 0x3ff, v0", "v_lshlrev_b32 v1, 2, v0",
             "v_xor_b32 v7, 0x5c, v1", "v_mov_b32 v6, 0", "s_mov_b32 vcc_hi, 0x1234",
             f"s_xor_b32 s20, s37, {GARBAGE:#x}", "s_movk_i32 s21, 0x121",
             "s_mov_b32 s28, 0x89abcdef", "s_mov_b32 s29, 0x3210"]
    for number, name in enumerate(names):
        lines += [
            f"v_xor_b32 v9, {GARBAGE:#x}, v31", *active(KNOWN), "v_or_b32 v9, 0x100, v0", *every,
            f"v_mov_b32 v8, {OLD:#x}", *active(ACTIVE), *CASES[name], "{wait}", *every, "s_mov_b32 s10, 0",
            f"again{number}:", one_lane, f"store{number}:", "global_store_dword v1, v8, s[2:3]",
            "s_add_u32 s10, s10, 1", f"s_cmp_lt_u32 s10, {lanes}", f"s_cbranch_scc1 again{number}", *every,
            f"s_add_u32 s2, s2, {4 * lanes}", "s_addc_u32 s3, s3, 0"]
    return "\n".join([*lines, "s_endpgm"]).replace("{wait}", wait).replace("{vcc}", "vcc" if lanes == 64 else "vcc_lo")


@pytest.mark.parametrize("gpu, lanes, names", shares())
def test_values_that_nobody_wrote_are_followed(
        gpu: str, lanes: int, names: list[str], require_tool: Any, tmp_path: Path) -> None:
    data = assembled(require_tool("clang-22"), tmp_path, gpu, kernel(gpu, names, lanes), private=512, wave=lanes)
    device = EmulatorDevice(target(gpu), options=LaunchOptions(checks=Checks.INIT))
    buffer = device.alloc(4 * lanes * len(names))
    device.launch(device.load(data, "k").kernel("k"), (1, 1, 1), (lanes, 1, 1), struct.pack("<Q", buffer.address), 1024)
    assert all("is stored" in each.what for each in device.findings), [each.text() for each in device.findings]
    stores = {symbol.name: symbol.address for symbol in load(data).symbols}
    told = {each.where.pc: (each.count, each.who.lane) for each in device.findings}
    left = np.frombuffer(device.read(buffer.address, buffer.size), np.uint32).reshape(len(names), lanes)
    for number, name in enumerate(names):
        wrong = np.flatnonzero(left[number] == GARBAGE).tolist()
        assert told.get(stores[f"store{number}"]) == ((len(wrong), wrong[0]) if wrong else None), (name, wrong)
        assert "known" in name or wrong, name
