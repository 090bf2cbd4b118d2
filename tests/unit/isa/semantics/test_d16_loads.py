"""What a D16 load does to the half of its register that it does not load, by target and setting of SRAM-ECC.

Source: GCNSubtarget::d16PreservesUnusedBits, and for gfx90a and its successors LLVM's review D112635.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from memories import LANES
from waves import run

from luthier_py.emulator.records.layout import Status
from luthier_py.isa import Inst, InstructionSet, Setting, instruction_set, sgpr, target, vgpr
from luthier_py.isa.model.target_id import TargetId

NONE, ANY, OFF, ON = Setting.UNSUPPORTED, Setting.ANY, Setting.OFF, Setting.ON
KEEPS = [("gfx900", NONE), ("gfx906", OFF), ("gfx908", OFF), ("gfx1030", NONE), ("gfx1100", NONE), ("gfx1201", NONE)]
CLEARS = [("gfx906", ON), ("gfx906", ANY), ("gfx908", ON), ("gfx908", ANY), *(
    (name, setting) for name in ("gfx90a", "gfx942", "gfx950") for setting in (OFF, ON, ANY))]  # fmt: skip
OLD = 0xAAAABBBB
RAW, X_OF_16_UINT = 3 << 28, {False: 4 | 4 << 12 | 2 << 15, True: 4 | 11 << 12}  # by whether formats are one number


def loads(isa: InstructionSet) -> Iterator[tuple[str, Inst]]:
    """A low and a high one of each way to memory, to v4, v5, ...; v0 has the places of dwords, v[2:3] the addresses."""
    new = isa.target.generation >= 11
    for number, high in enumerate((False, True) * 4):
        half = "_hi" if high else ""
        to = vgpr(4 + number)
        if number < 2:
            name = f"ds_load_u16_d16{half}" if new else f"ds_read_u16_d16{half}"
            yield name, isa.make(name, to, vgpr(0))
        elif number < 4:
            name = f"global_load_d16{half}_b16" if new else f"global_load_short_d16{half}"
            yield name, isa.make(name, to, vgpr(2, 2), "off")
        else:
            name = f"buffer_load_d16{half}_b16" if new else f"buffer_load_short_d16{half}"
            if number >= 6:
                name = f"buffer_load_d16{half}_format_x" if new else f"buffer_load_format_d16{half}_x"
            yield name, isa.make(name, to, vgpr(0), sgpr(4, 4), sgpr(8), offen=True)


@pytest.mark.parametrize(("name", "sramecc", "clears"), [
    *((*where, False) for where in KEEPS), *((*where, True) for where in CLEARS)])  # fmt: skip
def test_the_other_half(name: str, sramecc: Setting, clears: bool) -> None:
    isa = instruction_set(target(name), 64)
    assert TargetId(isa.target, sramecc, ANY).d16_clears is clears
    data = np.arange(64, dtype=np.uint32) + 0x1000
    code = dict(loads(isa))
    gfx10 = isa.target.generation >= 10
    base, last = data.ctypes.data, RAW * gfx10 | X_OF_16_UINT[gfx10]
    state = run(list(code.values()), isa=isa, sramecc=sramecc, memory=[data], lds=data.copy().view(np.uint8),
                vgprs={0: (LANES * 4).astype(np.uint32), 2: LANES * 4 + np.uint64(base),
                       **{4 + i: np.full(64, OLD, np.uint32) for i in range(len(code))}},
                sgprs={4: base & 0xFFFFFFFF, 5: base >> 32, 6: data.nbytes, 7: last, 8: 0},
                exec_mask=(1 << 64) - 2)  # fmt: skip
    assert state.status is Status.JUMP, state.fault()
    for number, what in enumerate(code):
        high = number % 2
        wanted = data << 16 if high else data.copy()
        if not clears:
            wanted |= OLD & 0xFFFF if high else OLD & 0xFFFF0000
        wanted[0] = OLD  # the lane that EXEC leaves out
        np.testing.assert_array_equal(state.vgpr(4 + number), wanted, what)


def test_a_half_loaded_over_one_from_private_memory() -> None:
    """The load from private memory makes the old value dead for what was put off before, not for the second load."""
    isa, data = instruction_set(target("gfx1030"), 64), np.full(64, 7, np.uint32)
    code = [isa.make("scratch_store_dword", vgpr(3), vgpr(0), "off"), isa.make("v_mov_b32", vgpr(2), 9),
            isa.make("scratch_load_dword", vgpr(2), vgpr(3), "off"),
            isa.make("global_load_short_d16_hi", vgpr(2), vgpr(4, 2), "off")]
    state = run(code, isa=isa, memory=[data], scratch_bytes=64, vgprs={
        0: LANES.astype(np.uint32), 3: np.zeros(64, np.uint32),
        4: LANES * 4 + np.uint64(data.ctypes.data)})  # fmt: skip
    assert state.status is Status.JUMP, state.fault()
    np.testing.assert_array_equal(state.vgpr(2), 7 << 16 | LANES.astype(np.uint32))
