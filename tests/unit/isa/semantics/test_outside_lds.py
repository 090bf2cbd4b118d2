"""Lanes outside of their work-group's LDS read 0 and write nothing, whatever the instruction; others do what they do.

The judge is the same instruction: without those lanes, and on an LDS of zeros for what they read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from memories import LANES, PARTIAL, RNG
from waves import FULL, Row, State, run

from luthier_py.emulator.records.layout import Fault, Status
from luthier_py.isa import InstructionSet, instruction_set, target

BYTES, DATA, RESULT = 1024, 8, 16  # of LDS; first registers
READS = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16, "u8_d16": 1, "i8_d16_hi": 1,
         "u16_d16": 2, "u16_d16_hi": 2}
WRITES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16, "b8_d16_hi": 1, "b16_d16_hi": 2}
PLAIN = [(f"ds_read_{name} $r{max(size // 4, 1)}, v0", size) for name, size in READS.items()] + [
    (f"ds_write_{name} v0, $d{max(size // 4, 1)}", size) for name, size in WRITES.items()]
ATOMICS = [("ds_add_u32 v0, $d1", 4), ("ds_add_rtn_u32 $r1, v0, $d1", 4), ("ds_add_rtn_u64 $r2, v0, $d2", 8),
           ("ds_add_f32 v0, $d1", 4), ("ds_min_rtn_f32 $r1, v0, $d1", 4), ("ds_wrxchg_rtn_b32 $r1, v0, $d1", 4),
           ("ds_wrxchg_rtn_b64 $r2, v0, $d2", 8), ("ds_cmpst_rtn_b32 $r1, v0, $d1, v12", 4), ("ds_inc_u32 v0, $d1", 4),
           ("ds_cmpst_b64 v0, $d2, v[12:13]", 8), ("ds_mskor_rtn_b32 $r1, v0, $d1, v12", 4), ("ds_or_b64 v0, $d2", 8)]
FAR = (0xF00000, 0xFFFF0000, 0x80000000)
SETS = {"gfx90a": instruction_set(target("gfx90a"), 64), "gfx942": instruction_set(target("gfx942"), 64),
        "gfx900": instruction_set(target("gfx900"), 64), "gfx1030": instruction_set(target("gfx1030"), 32)}


def ran(isa: InstructionSet, texts: Sequence[str], offsets: Row, lds: Row, exec_mask: int) -> State:
    rng = np.random.default_rng(5)
    values = {row: rng.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32) for row in range(DATA, RESULT + 8)}
    code = [isa.parse(text) for text in texts]
    found = run(code, vgprs={0: offsets, **values}, lds=lds, exec_mask=exec_mask, isa=isa)
    assert found.status is Status.JUMP, found.fault()
    return found


def check(isa: InstructionSet, text: str, size: int, offsets: Row, exec_mask: int) -> None:
    for count in range(1, 5):
        for sign, first in (("$r", RESULT), ("$d", DATA)):
            named = f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"
            text = text.replace(f"{sign}{count}", named)
    lanes = LANES[: isa.wave_size]
    exec_mask &= (1 << isa.wave_size) - 1
    active = (np.uint64(exec_mask) >> lanes) & np.uint64(1) == 1
    inside = offsets[: isa.wave_size].astype(np.uint64) + np.uint64(size) <= BYTES
    before = RNG.integers(0, 256, BYTES).astype(np.uint8)
    lds, expected = before.copy(), before.copy()
    found = ran(isa, [text], offsets, lds, exec_mask)
    judge = ran(isa, [text], offsets, expected, sum(1 << int(lane) for lane in lanes[active & inside]))
    apart = (LANES * 16).astype(np.uint32)
    nothing = ran(isa, [text], apart, np.zeros(BYTES, np.uint8), exec_mask)
    np.testing.assert_array_equal(lds, expected, text)
    for row in range(RESULT, RESULT + 5):
        wanted = np.where(active & ~inside, nothing.vgpr(row), judge.vgpr(row))
        np.testing.assert_array_equal(found.vgpr(row), wanted, text)


def spread(pattern: str, size: int, grain: int) -> Row:
    """One offset for each lane, some of them outside."""
    offsets = (LANES * max(size, grain)).astype(np.uint32)
    if pattern == "one far":
        offsets = (LANES % 16 * 16).astype(np.uint32)
        offsets[int(RNG.integers(0, 16))] = FAR[0]
    elif pattern == "a half idle":
        offsets = np.where(LANES % 32 < 16, LANES * size % (BYTES // 2), FAR[0]).astype(np.uint32)
    elif pattern == "all idle":
        offsets[:] = FAR[0]
    elif pattern == "anywhere":
        offsets = (RNG.permutation(64) * 16).astype(np.uint32)
        places = RNG.permutation(64)[:24]
        near = BYTES - size + grain * RNG.integers(1, 8, 24)
        offsets[places] = np.where(RNG.integers(0, 2, 24) == 1, near, RNG.choice(FAR, 24))
    elif pattern == "over the end":
        offsets = (LANES * size + BYTES - 8 * size).astype(np.uint32)
    return offsets


@pytest.mark.parametrize("exec_mask", [FULL, PARTIAL])
@pytest.mark.parametrize("pattern", ["one far", "a half idle", "all idle", "anywhere", "over the end"])
@pytest.mark.parametrize("name", SETS)
def test_loads_stores_and_atomics(name: str, pattern: str, exec_mask: int) -> None:
    for text, size in PLAIN:
        check(SETS[name], text, size, spread(pattern, size, min(size, 4)), exec_mask)
    for text, size in ATOMICS:
        check(SETS[name], text, size, spread(pattern, size, size), exec_mask)


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("name", SETS)
def test_each_of_two_by_itself(name: str, width: int) -> None:
    """One address outside leaves the other as it is."""
    isa, words = SETS[name], width // 4
    first, second, both = (f"v[{at}:{at + count - 1}]" if count > 1 else f"v{at}" for at, count in (
        (DATA, words), (DATA + words, words), (RESULT, 2 * words)))
    offsets = (BYTES - (isa.wave_size - 3) * width + LANES * width).astype(np.uint32)
    places = [[int(offsets[lane]) + part * 5 * width for part in range(2)] for lane in range(isa.wave_size)]
    lds = RNG.integers(0, 256, BYTES).astype(np.uint8)
    found = ran(isa, [f"ds_read2_b{8 * width} {both}, v0 offset1:5"], offsets, lds, FULL)
    for part in range(2):
        for word in range(words):
            at = [place[part] + 4 * word for place in places]
            wanted = [int.from_bytes(lds[place:][:4].tobytes(), "little") for place in at]  # none: 0
            assert found.vgpr(RESULT + part * words + word).tolist() == wanted
    wrote = lds.copy()
    state = ran(isa, [f"ds_write2_b{8 * width} v0, {first}, {second} offset1:5"], offsets, wrote, FULL)
    for lane, place in enumerate(places):
        for part, at in enumerate(place):
            values = [int(state.vgpr(DATA + part * words + word)[lane]) for word in range(words)]
            if at < BYTES:
                lds[at : at + width] = np.array(values, np.uint32).view(np.uint8)
    np.testing.assert_array_equal(wrote, lds)


def test_a_flat_access_is_a_fault() -> None:
    isa = SETS["gfx90a"]
    address = np.full(64, (1 << 48) + 4 * BYTES, np.uint64)
    state = run([isa.parse("flat_load_dword v4, v[0:1]")], vgprs={0: address}, lds=np.zeros(BYTES, np.uint8))
    assert state.status is Status.FAULT and state.fault()[0] == Fault.LDS
