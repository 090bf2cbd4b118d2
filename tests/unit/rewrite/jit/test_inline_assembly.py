"""Assembly in hooks: as it runs, against Python; as it is compiled, for every target; and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import pytest
from each_target import EACH_TARGET
from hook_files import load_text
from observing import LANES, launch, observe

from luthier_py.base.errors import HookError, Unsupported
from luthier_py.intrinsics import read_lane
from luthier_py.isa import Inst, instruction_set, target, vgpr
from luthier_py.rewrite.jit import PayloadKey, compile_keys
from luthier_py.rewrite.jit.python.frontend import hook_ir
from luthier_py.rewrite.tool import (
    Hook,
    Hooks,
    Lane,
    Mutator,
    Tool,
    Variable,
    array,
    asm,
    device,
    f16,
    f32,
    f64,
    hook,
    i16,
    ptr,
    u32,
    u64,
)

MULTIPLY_HIGH = "v_mul_hi_u32 {0}, {1}, {2}"
SUM = """
v_add_co_u32 {0}, vcc, {2}, {3}   ; the carry of each lane
s_mov_b64 {1}, vcc
"""
NARROW_SUM = "v_add_co_u32 {0}, vcc_lo, {2}, {3}\ns_and_b32 {1}, vcc_lo, exec_lo"


@device
def field(x: Lane[u32], offset: u32) -> Lane[u32]:
    return asm("v_bfe_u32 {0}, {1}, {2}, 8", x, offset, result=Lane[u32])


@hook
def several(out: ptr[u32], x: Lane[u32]) -> None:
    spread = x * 0x01234567
    out[x] = field(spread, 4)
    out[x + 64] = asm(MULTIPLY_HIGH, spread, 1000, result=Lane[u32])
    low, carries = asm(SUM, spread, u32(0xF0000000), result=(Lane[u32], u64))
    out[x + 128] = low
    out[x + 192] = u32(carries >> u64(x)) & 1
    out[x + 256] = asm("s_bcnt1_i32_b64 {0}, {1}", carries, result=u32)


def test_against_python() -> None:
    found = observe([several], LANES, 5 * LANES)
    spread = [x * 0x01234567 & 0xFFFFFFFF for x in range(LANES)]
    assert list(found[:64]) == [n >> 4 & 0xFF for n in spread]
    assert list(found[64:128]) == [n * 1000 >> 32 for n in spread]
    sums = [n + 0xF0000000 for n in spread]
    assert list(found[128:192]) == [n & 0xFFFFFFFF for n in sums]
    assert list(found[192:256]) == [n >> 32 for n in sums]
    assert list(found[256:]) == [sum(n >> 32 for n in sums)] * LANES


@hook
def floats(out: ptr[f32], wide: ptr[f64], short: ptr[i16], x: Lane[u32]) -> None:
    y = f32(x) * 0.75
    out[x] = asm("v_fma_f32 {0}, -{1}, |{2}|, {3}", y, f32(-2.5), y * y, result=Lane[f32])
    wide[x] = asm("v_ldexp_f64 {0}, {1}, 3", f64(y), result=Lane[f64])
    short[x] = asm("v_ashrrev_i32 {0}, 1, {1}", i16(x) - i16(32), result=Lane[i16])


def test_floats_doubles_and_short_numbers() -> None:
    class Floats(Tool):
        out, wide, short = Variable(f32, LANES), Variable(f64, LANES), Variable(i16, LANES)

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], floats, self.out, self.wide, self.short, vgpr(0))

    found = launch(Floats(), LANES)
    y = [x * 0.75 for x in range(LANES)]
    assert found[Floats.out] == tuple(-n * 2.5 + n * n for n in y)
    assert found[Floats.wide] == tuple(n * 8 for n in y)
    assert found[Floats.short] == tuple((x - 32) >> 1 for x in range(LANES))


@hook
def in_branches(out: ptr[u32], x: Lane[u32]) -> None:
    n = u32(0)
    while n < x % 5:
        n = asm("v_add_u32 {0}, {1}, 1", n, result=Lane[u32])
    if x % 2:
        out[x + 64] = asm("s_bcnt1_i32_b64 {0}, exec", result=u32)
    out[x] = n


def test_in_loops_and_branches_it_has_the_lanes_that_are_there() -> None:
    found = observe([in_branches], LANES, 2 * LANES)
    assert list(found[:64]) == [x % 5 for x in range(LANES)]
    assert list(found[64:]) == [x % 2 * 32 for x in range(LANES)]


@hook(lanes="one")
def in_one_lane(out: ptr[u32], n: u32) -> None:
    out[0] = asm("v_mul_hi_u32 {0}, {1}, {2}", out[1], n, result=Lane[u32])
    out[2] = asm("s_mul_hi_u32 {0}, {1}, {2}", out[1], n, result=u32)


def test_in_one_lane_all_is_one_for_the_wave() -> None:
    class One(Tool):
        out = Variable(u32, initial=[0, 0x80000001, 0])

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], in_one_lane, self.out, 0xC0000000)

    assert launch(One(), LANES)[One.out] == (0x60000000, 0x80000001, 0x60000000)


@device(depth=8)
def digits(x: Lane[u32]) -> Lane[u32]:
    if x < 2:
        return asm("v_xor_b32 {0}, {1}, 1", x, result=Lane[u32])
    return digits(x // 2) + 1


@hook
def deep(out: ptr[u32], x: Lane[u32]) -> None:
    out[x] = digits(x)


def test_in_functions_that_call_themselves() -> None:
    assert list(observe([deep], LANES, LANES)) == [
        max(0, x.bit_length() - 1) + (x == 0) for x in range(LANES)]


# -- code ------------------------------------------------------------------------------------------


@hook
def reversed_bits(x: Lane[u32], n: u32) -> Lane[u32]:
    while n > u32(asm("s_brev_b32 {0}, {1}", n, result=u32)):
        n -= 1
    return asm("v_bfrev_b32 {0}, {1}", x + n, result=Lane[u32])


@pytest.mark.parametrize("row", EACH_TARGET)
def test_every_target(row: object) -> None:
    name, waves = row.name, row.wave_sizes  # type: ignore[attr-defined]
    for wave_size in waves:
        isa = instruction_set(target(name), wave_size)
        (found,) = compile_keys({PayloadKey(reversed_bits, (None, None)): None}, isa).values()
        bases = [inst.op.base for inst in found.instrs]
        assert bases.count("S_BREV_B32") >= 1 and bases.count("V_BFREV_B32") == 1


@hook
def sum_in_wave32(x: Lane[u32], y: Lane[u32]) -> Lane[u32]:
    low, carries = asm(NARROW_SUM, x, y, result=(Lane[u32], u32))
    return low + carries


def test_what_is_destroyed_is_known(assembly: Callable[..., list[str]]) -> None:
    narrow = hook_ir(sum_in_wave32, (None, None), instruction_set(target("gfx1100"), 32)).function
    assert '"=&v,=&s,v,v,~{vcc},~{scc}"' in narrow
    assert any(line.endswith("vcc_lo, exec_lo") for line in assembly(sum_in_wave32, "gfx1100", 32))
    wide = hook_ir(reversed_bits, (None, None), instruction_set(target("gfx90a"))).function
    assert '"=s,s"' in wide and '"=v,v"' in wide


@hook
def halves(x: Lane[u32]) -> Lane[u32]:
    return asm("v_mov_b32 {0}, 0\nv_add_f16 {0}.h, {1}.l, {1}.h", x, result=Lane[u32])


def test_halves_of_registers(assembly: Callable[..., list[str]]) -> None:
    assert any(line.startswith("v_add_f16") and ".h, v" in line for line in assembly(halves, "gfx1100", 32))


@hook
def close_together(out: ptr[u32], x: Lane[u32]) -> None:
    i, total = u32(3), u32(0)
    while total < 100:
        total += read_lane(x, i)
        i = asm("v_readfirstlane_b32 {0}, {1}", x + total, result=u32)
    out[x] = total + read_lane(x, asm("v_readfirstlane_b32 {0}, {1}", x + 3, result=u32))


def distances(insts: Sequence[Inst], writer: str, reader: str) -> Iterator[int]:
    """Wait states between each reader and what writes a register of it, along all ways that end there."""
    starts = [*accumulate((inst.size_bytes for inst in insts), initial=0)]
    ends = [inst.branch_target(at) for at, inst in zip(starts, insts, strict=False)]
    goes_to = [None if end is None else starts.index(end) for end in ends]
    for at, inst in enumerate(insts):
        ways = [(at, 0)] if inst.op.base == reader else []
        while ways:
            to, states = ways.pop()
            for before in [to - 1] * (to > 0) + [k for k, end in enumerate(goes_to) if end == to]:
                other = insts[before]
                if other.op.base == writer and other.writes.overlaps(inst.reads):
                    yield states
                elif states < 8:
                    ways.append((before, states + (other["simm16"].value + 1 if other.op.base == "S_NOP" else 1)))


@pytest.mark.parametrize("name", ["gfx906", "gfx90a", "gfx942"])
def test_wait_states_around_it(name: str) -> None:
    """A lane may be chosen by what a vector instruction wrote after four wait states: Vega ISA, "Manually Inserted Wait
    States"."""
    (found,) = compile_keys({PayloadKey(close_together, (None, None)): None}, instruction_set(target(name))).values()
    apart = list(distances(found.instrs, "V_READFIRSTLANE_B32", "V_READLANE_B32"))
    assert len(apart) >= 2 and min(apart) == 4


def test_loops_with_wait_states_in_them() -> None:
    total, lane = 0, 3
    while total < 100:
        total += lane % LANES  # what x is there
        lane = total
    assert list(observe([close_together], LANES, LANES)) == [total + 3] * LANES


@pytest.mark.parametrize("name", ["gfx1030", "gfx1100", "gfx1200"])
def test_generations_that_only_compile(name: str, assembly: Callable[..., list[str]]) -> None:
    lines = assembly(close_together, name, 32)
    assert sum(line.startswith("v_readfirstlane_b32") for line in lines) >= 2


@hook
def scaled(out: ptr[u64], x: Lane[u32], factor: u32, bits: u64) -> None:
    product = asm("v_mad_u64_u32 {0}, vcc, {1}, {2}, 0", x, factor, result=Lane[u64])
    out[x] = product ^ u64(asm("s_not_b64 {0}, {1}", bits, result=u64))


def test_constants_that_are_filled_in() -> None:
    """Many calls share one code, into which each writes its own numbers."""
    class Scaled(Tool):
        outs = [Variable(u64, LANES, name=f"scaled{k}") for k in range(12)]

        def instrument(self, m: Mutator) -> None:
            for k, out in enumerate(self.outs):
                m.at_entry(m.kernels[0], scaled, out, vgpr(0), 1000 + k, 0x123456789 * k)

    found = launch(Scaled(), LANES)
    for k, out in enumerate(Scaled.outs):
        assert found[out] == tuple(x * (1000 + k) ^ ~(0x123456789 * k) & (1 << 64) - 1 for x in range(LANES))


@hook
def with_a_stack(out: ptr[u32], x: Lane[u32]) -> None:
    counts = array(u32, 256)
    for i in range(u32(64)):
        counts[x * 37 + i * 7] += asm("v_mul_u32_u24 {0}, {1}, {2}", x, i, result=Lane[u32])
    out[x] = counts[(x * 5) % 256]


def test_in_hooks_with_a_stack() -> None:
    def counted(x: int) -> int:
        counts = [0] * 256
        for i in range(64):
            counts[min(x * 37 + i * 7, 255)] += x * i
        return counts[x * 5 % 256]

    assert list(observe([with_a_stack], LANES, LANES)) == [counted(x) for x in range(LANES)]


# -- refusals --------------------------------------------------------------------------------------

HEADER = """\
from luthier_py.rewrite.tool import Lane, asm, bool_, hook, ptr, u32, u64

TEXT = "v_mov_b32 {0}, {1}"

@hook
def h(x: u32, q: Lane[u32], w: Lane[u64], p: ptr[u32]) -> Lane[u32]:
    return """
LANE = ", q, result=Lane[u32])"
REFUSED = [
    ('asm("here: v_mov_b32 {0}, {1}"' + LANE, "the text has a label, here: nothing can lead there; use if"),
    ('asm("v_mov_b33 {0}, {1}"' + LANE, "no instruction v_mov_b33|v_mov_b33"),
    ('asm("v_mov_b32 {0}, {1}, {1}"' + LANE, "v_mov_b32"),
    ('asm("v_mov_b32 {0}, {1}", w, result=Lane[u32])', r"\{1\}"),
    ('asm("s_mov_b32 {0}, {1}", q, result=u32)', r"\{1\}"),
    ('asm("v_mov_b32 {0}, {1}", q, result=u32)', r"\{0\}"),
    ('asm("v_mov_b32 {0}, v3"' + LANE, "names a register, v3; registers are chosen"),
    ('asm("v_mov_b32 {0}, {1}\\ns_mov_b64 s[4:5], 0"' + LANE, r"names a register, s\[4:5\]"),
    ('asm("v_mov_b32 {0}, 1"' + LANE, r"\{1\} is not in the text; results come first"),
    ('asm("v_add_u32 {0}, {1}, {2}"' + LANE, r"\{2\} is in the text, but there is no such"),
    ('asm(""' + LANE, r"\{0\} is not in the text"),
    ('asm("; {0} {1}"' + LANE, r"\{0\} is not in the text"),
    ('asm("s_endpgm\\nv_mov_b32 {0}, {1}"' + LANE, "`s_endpgm` decides where control goes; use if"),
    ('asm("s_branch 0\\nv_mov_b32 {0}, {1}"' + LANE, "`s_branch 0` decides where control goes"),
    ('asm("s_cbranch_execz 0\\nv_mov_b32 {0}, {1}"' + LANE, "decides where control goes"),
    ('asm("s_swappc_b64 {0}, {1}", u64(p), result=u64)', "decides where control goes"),
    ('asm("s_mov_b64 exec, -1\\nv_mov_b32 {0}, {1}"' + LANE, "`s_mov_b64 exec, -1` changes EXEC"),
    ('asm("v_cmpx_gt_u32 {0}, 3, {1}", q, result=u64)', "changes EXEC"),
    ('asm("s_and_saveexec_b64 {0}, {1}", u64(x), result=u64)', "changes EXEC"),
    ('asm("s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0\\nv_mov_b32 {0}, {1}"' + LANE, "changes MODE"),
    ('asm("global_load_dword {0}, {1}, off", w, result=Lane[u32])', "touches memory, or is waited for"),
    ('asm("s_load_dword {0}, {1}, 0", u64(p), result=u32)', "touches memory"),
    ('asm("ds_read_b32 {0}, {1}"' + LANE, "touches memory"),
    ('asm("ds_bpermute_b32 {0}, {1}, {1}"' + LANE, "touches memory, or is waited for"),
    ('asm("s_memtime {0}", result=u64)', "touches memory, or is waited for"),
    ('asm("v_readlane_b32 {0}, {1}, 3", q, result=u32)', "values of lanes that may not be active; use read_lane"),
    ('asm("v_writelane_b32 {0}, 1, 3", result=Lane[u32])', "values of lanes"),
    ('asm("v_mov_b32_dpp {0}, {1} row_shr:1 row_mask:0xf bank_mask:0xf"' + LANE, "values of lanes"),
    ('asm("s_barrier\\nv_mov_b32 {0}, {1}"' + LANE, "waits for others"),
    ('asm("s_trap 1\\nv_mov_b32 {0}, {1}"' + LANE, "s_trap 1"),
    ('asm("s_sendmsg sendmsg(MSG_INTERRUPT)\\nv_mov_b32 {0}, {1}"' + LANE, "s_sendmsg"),
    ('asm("s_set_gpr_idx_off\\nv_mov_b32 {0}, {1}"' + LANE, "s_set_gpr_idx_off"),
    ('asm("s_mov_b32 m0, 0\\nv_mov_b32 {0}, {1}"' + LANE, "does more than compute"),
    ('asm("s_setprio 3\\nv_mov_b32 {0}, {1}"' + LANE, "has an effect of its own"),
    ('asm("v_fmac_f32 {0}, {1}, {1}"' + LANE, "reads a result, which nothing in the text has written before"),
    ('asm("v_cndmask_b32 {0}, 0, {1}, vcc"' + LANE, "reads vcc, which nothing"),
    ('asm("s_cselect_b32 {0}, {1}, 0", x, result=u32)', "reads scc, which nothing"),
    ('asm("v_mov_b32 {1}, 0\\nv_mov_b32 {0}, {1}"' + LANE, r"`v_mov_b32_e32 \{1\}, 0` writes an input"),
    ('asm("v_mov_b32 vcc_lo, {0}"' + ", result=Lane[u32])", "vcc_lo"),
    ('asm("s_mov_b32 vcc_lo, {0}\\ns_mov_b32 vcc_lo, {1}", x, result=u32)', "reads a result"),
    ('asm("s_mov_b64 vcc, {1}\\nv_cmp_eq_u32 vcc, {0}, 0", u64(x), result=Lane[u32])', "reads a result"),
    ("asm(TEXT, q)", "asm takes a text, inputs and the type of its result"),
    ("asm(x, q, result=Lane[u32])", "asm takes a text"),
    ("asm(TEXT, q, result=Lane[u32], clobbers=3)", "asm takes a text"),
    ("asm(TEXT, p, result=Lane[u32])", r"this is ptr\[u32\]; convert it"),
    ("asm(TEXT, x < 3, result=Lane[u32])", "this is bool_; convert it"),
    ("asm(TEXT, q, result=bool_)", "a result of asm is a number"),
    ("asm(TEXT, q, result=7)", "a result of asm is a number"),
    ("asm(TEXT, q, result=(Lane[u32], u32))", "nothing in the text writes|is not in the text"),
    ("u32(x, result=3)", "only plain positional arguments"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refusals(tmp_path: Path, text: str, message: str) -> None:
    found = load_text(tmp_path, HEADER + text).h
    assert isinstance(found, Hook)
    with pytest.raises(HookError, match=message) as error:
        hook_ir(found, (None,) * 4, instruction_set(target("gfx90a")))
    assert f":{HEADER.count(chr(10)) + 1}: h: " in error.value.message


@hook
def half(x: Lane[f16]) -> Lane[f16]:
    return asm("v_add_f16 {0}, {1}, {1}", x, result=Lane[f16])


@hook
def upper_half(x: Lane[f16]) -> Lane[f16]:
    return asm("v_add_f16_e64 {0}.h, {1}.l, {1}.l", x, result=Lane[f16])


@hook
def wide_half(x: Lane[f16]) -> Lane[u32]:
    return asm("v_add_f16 {0}, {1}, {1}", x, result=Lane[u32])


@hook
def sum_of_halves(x: Lane[f16]) -> Lane[f16]:
    return asm("v_fmac_f16 {0}, {1}, {1}", x, result=Lane[f16])


@pytest.mark.parametrize("name", ["gfx90a", "gfx1030", "gfx1100", "gfx1201"])
def test_halves_that_results_do_not_have_may_stay_as_they_are(name: str, assembly: Callable[..., list[str]]) -> None:
    wave_size = 64 if name == "gfx90a" else 32
    assert any("v_add_f16" in line for line in assembly(half, name, wave_size))
    for one in (wide_half, sum_of_halves, *([upper_half] if name in ("gfx1100", "gfx1201") else [])):
        if name != "gfx90a":
            with pytest.raises(HookError, match="reads a result, which nothing in the text has written before"):
                assembly(one, name, wave_size)


def test_of_another_target() -> None:
    """The same text, where the instruction is not there."""
    with pytest.raises(HookError, match="gfx1200"):
        hook_ir(in_branches, (None, None), instruction_set(target("gfx1200")))


def test_on_the_host() -> None:
    with pytest.raises(HookError, match="asm is device code"):
        asm("v_mov_b32 {0}, 1", result=u32)


def test_in_cpp(clang: str) -> None:
    """LLVM's emitter of objects has no assembler: it would end the process."""
    hooks = Hooks.from_hip("""
        #include <luthier/hooks.h>
        using namespace luthier;
        LUTHIER_HOOK() lane<u32> twice(lane<u32> x)
        { u32 y; asm volatile("v_add_u32 %0, %1, %1" : "=v"(y) : "v"(u32(x))); return y; }
    """)
    with pytest.raises(Unsupported, match="has inline assembly, which C"):
        compile_keys({PayloadKey(hooks.twice, (None,)): None}, instruction_set(target("gfx90a")))
