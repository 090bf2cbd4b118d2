"""Vector instructions as calls of routines leave what loops leave, whatever registers and constants they share."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from waves import Setup, run

from luthier_py.emulator.options import sizes
from luthier_py.emulator.vector_regions import calling_region
from luthier_py.emulator.vector_regions.calling_region import CallingRegion
from luthier_py.emulator.vector_regions.emitter import Emitter, LlvmOps
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.emulator.vector_regions.scalars import Scalars
from luthier_py.isa import Inst, InstructionSet, instruction_set, target
from luthier_py.isa.semantics.algebra import U32, Value

ISAS = instruction_set(target("gfx90a"), 64), instruction_set(target("gfx1100"), 32)
ROWS, SCALARS, COUNT = 6, 6, 120
TEXTS = {
    "gfx90a": (
        "v_add_f32_e32 v{a}, v{b}, v{c}", "v_add_f32_e32 v{a}, {k}, v{b}", "v_add_f32_e32 v{a}, s{s}, v{b}",
        "v_fma_f32 v{a}, v{b}, -v{c}, |v{d}|", "v_fma_f32 v{a}, s{s}, v{c}, v{d}", "v_mul_lo_u32 v{a}, v{b}, s{s}",
        "v_lshlrev_b64 v[{p}:{q}], {k}, v[{b}:{b1}]", "v_mad_u64_u32 v[{p}:{q}], vcc, v{b}, {k}, v[{c}:{c1}]",
        "v_add_co_u32_e32 v{a}, vcc, v{b}, v{c}", "v_addc_co_u32_e32 v{a}, vcc, v{b}, v{c}, vcc",
        "v_cmp_lt_u32_e32 vcc, v{b}, v{c}", "v_cmp_lt_u32_e64 s[{m}:{m1}], v{b}, {k}",
        "v_cndmask_b32_e64 v{a}, v{b}, v{c}, s[{m}:{m1}]", "v_cndmask_b32_e32 v{a}, {k}, v{c}, vcc",
        "v_mov_b32_dpp v{a}, v{b} row_shl:{r} row_mask:0xf bank_mask:0xf",
        "v_pk_mul_f32 v[{p}:{q}], v[{b}:{b1}], v[{c}:{c1}]",
        "v_add_u32_sdwa v{a}, v{b}, v{c} dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:BYTE_0",
        "s_and_b64 exec, exec, vcc", "s_mov_b64 exec, -1", "s_add_u32 s{s}, s{t}, {k}", "v_and_b32_e32 v{a}, {w}, v{b}",
        "v_mov_b32_dpp v{a}, v{b} wave_shr:1 row_mask:0xf bank_mask:0xf",
    ),
    "gfx1100": (
        "v_add_f32_e32 v{a}, v{b}, v{c}", "v_dual_add_f32 v{a}, v{b}, v{c} :: v_dual_mul_f32 v{o}, s{s}, v{d}",
        "v_cmp_lt_u32_e64 s{m}, v{b}, v{c}", "v_cndmask_b32_e64 v{a}, v{b}, {k}, s{m}", "v_xor_b32_e32 v{a}, {w}, v{b}",
        "v_add_nc_u16 v{a}.h, v{b}.l, v{c}.h", "s_and_b32 exec_lo, exec_lo, s{m}", "s_mov_b32 exec_lo, -1",
        "v_fma_f32 v{a}, s{s}, v{c}, v{d}", "v_lshlrev_b64 v[{p}:{q}], {k}, v[{b}:{b1}]",
    ),
}  # fmt: skip


def texts(isa: InstructionSet, chosen: random.Random) -> list[Inst]:
    """Instructions on few registers and constants, so that many of them are the same."""
    found = list[Inst]()
    for _ in range(COUNT):
        a, b, c, d = (chosen.randrange(ROWS) for _ in range(4))
        m, p = 20 + 2 * chosen.randrange(2), 2 * chosen.randrange(ROWS // 2)
        k, w = chosen.choice((0, 1, 1, 13, 64)), chosen.choice((0x12345678, 1, 0xFFFF0001))
        b, c = (b & ~1, c & ~1) if chosen.random() < 0.5 else (b, c)  # pairs are aligned
        odd = a ^ 1 if (d ^ b) & 1 == 0 else a ^ 1
        values = {"a": a, "b": b, "c": c, "d": d, "b1": b + 1, "c1": c + 1, "p": p, "q": p + 1, "k": k, "w": w, "m": m,
                  "m1": m + 1, "r": chosen.randrange(1, 16), "s": 2 + chosen.randrange(SCALARS), "o": odd,
                  "t": 2 + chosen.randrange(SCALARS)}
        text = chosen.choice(TEXTS[isa.target.name]).format_map(values)
        try:
            found.append(isa.parse(text))
        except Exception:  # registers that such an instruction cannot have together
            continue
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("isa", ISAS, ids=lambda isa: isa.target.name)
def test_the_same_state(isa: InstructionSet, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(seed)
    vgprs = {row: numbers.integers(0, 1 << 32, 64, np.uint32) for row in range(ROWS + 1)}
    sgprs = {2 + number: int(numbers.integers(0, 1 << 32)) for number in range(SCALARS)} | {20: 0xF0F1, 22: 0xFFFF0000}
    code = texts(isa, random.Random(seed))
    assert len(code) > COUNT // 2
    setup = Setup(isa=isa, vgprs=vgprs, sgprs=sgprs)
    loops = run(code, setup)
    monkeypatch.setattr(sizes, "LARGE", 0)
    known = calling_region.CallingRegion._emit_call
    calls = list[str]()

    def noted(region: CallingRegion, name: str, masks: tuple[int, ...], passed: str) -> dict[int, str]:
        calls.append(name)
        return known(region, name, masks, passed)

    monkeypatch.setattr(CallingRegion, "_emit_call", noted)
    called = run(code, setup)
    assert len(set(calls)) < 3 * len(calls) // 4 and len(calls) > COUNT // 2, "routines are shared"
    for row in range(ROWS + 1):
        assert np.array_equal(loops.vgpr(row), called.vgpr(row)), row
    assert [loops.sgpr(index) for index in range(110)] == [called.sgpr(index) for index in range(110)]
    assert loops.exec_mask == called.exec_mask


def test_what_names_its_caller_stays_a_loop() -> None:
    emitter = Emitter(64)
    region = CallingRegion(emitter, "%wave", 64)
    scalars = Scalars(emitter, "%wave", lambda: None)
    exec_mask = scalars.read(126, 2)
    outside = emitter.let("load i32, ptr %wave")

    def give(strip: LaneStrip) -> None:
        strip.write_row(3, strip.splat(Value(LlvmOps(emitter), U32, outside)))

    def name(strip: LaneStrip) -> None:
        strip.write_row(4, strip.splat(Value(LlvmOps(emitter), U32, strip.before(f"add i32 {outside}, 1"))))

    region.add(exec_mask, give, -1)
    region.add(exec_mask, name, -1)
    region.flush(scalars)
    text = "\n".join(emitter.lines)
    assert len(emitter.functions) == 1 and outside not in emitter.functions[0]
    assert re.search(rf"call void @routine\.0\(ptr %wave, i64 {exec_mask.ref}.*, i32 {outside}\b", text)
    assert f"add i32 {outside}, 1" in text
