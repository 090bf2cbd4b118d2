"""Instructions that read or write lane masks: comparisons, carries, selects, division scaling, EXEC."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from lanewise import LANES, bits_of, float_of, samples, signed
from waves import FULL, ISA, run

from luthier_py.isa import EXEC, VCC, instruction_set, sgpr, target, vgpr

PARTIAL = 0xF0F0_1234_8001_FFFF
INTEGER = {
    "f": lambda a, b: False, "lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ne": lambda a, b: a != b, "ge": lambda a, b: a >= b, "t": lambda a, b: True,
}  # fmt: skip
FLOAT = {
    "f": lambda a, b: False, "lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "lg": lambda a, b: a < b or a > b, "ge": lambda a, b: a >= b,
    "o": lambda a, b: a == a and b == b, "u": lambda a, b: a != a or b != b, "nge": lambda a, b: not a >= b,
    "nlg": lambda a, b: not (a < b or a > b), "ngt": lambda a, b: not a > b, "nle": lambda a, b: not a <= b,
    "neq": lambda a, b: a != b, "nlt": lambda a, b: not a < b, "tru": lambda a, b: True,
}  # fmt: skip


def row(values, width):
    return np.array(values, np.uint64 if width == 64 else np.uint32)


def mask_of(flags):
    return sum(int(flag) << lane for lane, flag in enumerate(flags))


def operands(width, floats):
    a = samples(width, 1, floats)
    b = samples(width, 2, floats)
    return a, a[:16] + b[16:]  # some equal


@pytest.mark.parametrize("kind", ["u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64"])
def test_comparisons(kind):
    """e64 to an SGPR pair, under a partial EXEC: other lanes give 0."""
    width, floats = int(kind[1:]), kind[0] == "f"
    a, b = operands(width, floats)
    table = FLOAT if floats else INTEGER
    dwords = max(width // 32, 1)
    code = [ISA.make(f"v_cmp_{name}_{kind}_e64", sgpr(2 * i, 2), vgpr(0, dwords), vgpr(2, dwords))
            for i, name in enumerate(table)]
    state = run(code, vgprs={0: row(a, width), 2: row(b, width)}, exec_mask=PARTIAL)
    for i, (name, compare) in enumerate(table.items()):
        read = {"f": lambda x: float_of(x, width), "i": lambda x: signed(x, width), "u": lambda x: x}[kind[0]]
        expected = mask_of(compare(read(x), read(y)) for x, y in zip(a, b, strict=True)) & PARTIAL
        assert state.sgpr(2 * i, 2) == expected, name


def test_compare_writes_vcc_and_exec():
    a, b = operands(32, False)
    state = run([ISA.make("v_cmpx_lt_u32_e32", sgpr(VCC, 2), vgpr(0), vgpr(2)), ISA.make("v_mov_b32_e32", vgpr(4), 7)],
                vgprs={0: row(a, 32), 2: row(b, 32)}, exec_mask=PARTIAL)
    expected = mask_of(x < y for x, y in zip(a, b, strict=True)) & PARTIAL
    assert state.vcc == state.exec_mask == expected
    assert list(state.vgpr(4)) == [7 * (expected >> lane & 1) for lane in range(LANES)]


def classes(bits, width):
    mantissa = {16: 10, 32: 23, 64: 52}[width]
    value, negative = float_of(bits, width), bits >> width - 1
    if math.isnan(value):
        return 1 << (bits >> mantissa - 1 & 1)
    if math.isinf(value):
        place = 2
    elif value == 0:
        place = 5
    else:
        place = 3 if bits & ((1 << width - 1) - 1) >> mantissa << mantissa else 4
    return 1 << (place if negative else 11 - place)


def test_class():
    for width in 16, 32, 64:
        values = samples(width, 3, True)
        wanted = [1 << i % 10 | 1 << i // 10 for i in range(LANES)]
        dwords = max(width // 32, 1)
        state = run([ISA.make(f"v_cmp_class_f{width}_e64", sgpr(0, 2), vgpr(0, dwords), vgpr(2))],
                    vgprs={0: row(values, width), 2: row(wanted, 32)})
        expected = mask_of(classes(value, width) & want != 0 for value, want in zip(values, wanted, strict=True))
        assert state.sgpr(0, 2) == expected, width


CARRY_IN = 0x0123_4567_89AB_CDEF
CARRIES = {
    "v_add_co_u32": lambda a, b, c: a + b, "v_sub_co_u32": lambda a, b, c: a - b,
    "v_subrev_co_u32": lambda a, b, c: b - a,
    "v_addc_co_u32": lambda a, b, c: a + b + c, "v_subb_co_u32": lambda a, b, c: a - b - c,
    "v_subbrev_co_u32": lambda a, b, c: b - a - c,
}  # fmt: skip


@pytest.mark.parametrize("name", CARRIES)
def test_carries(name):
    """Both encodings, with carries in and out, under a partial EXEC."""
    a, b = operands(32, False)
    takes = "addc" in name or "subb" in name
    long = [sgpr(12, 2)] if takes else []
    short = [sgpr(VCC, 2)] if takes else []
    code = [ISA.make(f"{name}_e64", vgpr(4), sgpr(10, 2), vgpr(0), vgpr(2), *long),
            ISA.make(f"{name}_e32", vgpr(5), sgpr(VCC, 2), vgpr(0), vgpr(2), *short)]
    state = run(code, vgprs={0: row(a, 32), 2: row(b, 32)}, exec_mask=PARTIAL, vcc=CARRY_IN,
                sgprs={12: CARRY_IN & 0xFFFFFFFF, 13: CARRY_IN >> 32})
    full = [CARRIES[name](x, y, CARRY_IN >> lane & 1) for lane, (x, y) in enumerate(zip(a, b, strict=True))]
    expected = [value & 0xFFFFFFFF if PARTIAL >> lane & 1 else 0 for lane, value in enumerate(full)]
    carry = mask_of(not 0 <= value < 1 << 32 for value in full) & PARTIAL
    assert list(state.vgpr(4)) == list(state.vgpr(5)) == expected
    assert state.sgpr(10, 2) == state.vcc == carry


def test_a_carry_chain_inside_one_strip():
    """A 64-bit sum: the carry goes from one instruction to the next without leaving the strip."""
    a, b = operands(64, False)
    state = run([ISA.make("v_add_co_u32_e32", vgpr(4), sgpr(VCC, 2), vgpr(0), vgpr(2)),
                 ISA.make("v_addc_co_u32_e32", vgpr(5), sgpr(VCC, 2), vgpr(1), vgpr(3), sgpr(VCC, 2))],
                vgprs={0: row(a, 64), 2: row(b, 64)})
    assert [int(x) for x in state.vgpr(4, np.uint64)] == [x + y & FULL for x, y in zip(a, b, strict=True)]


def test_wide_multiply_add():
    a, b = operands(32, False)
    c = samples(64, 5, False)
    for name, read in (("v_mad_u64_u32", lambda x, w: x), ("v_mad_i64_i32", signed)):
        state = run([ISA.make(name, vgpr(6, 2), sgpr(0, 2), vgpr(0), vgpr(2), vgpr(4, 2))],
                    vgprs={0: row(a, 32), 2: row(b, 32), 4: row(c, 64)})
        full = [read(x, 32) * read(y, 32) + read(z, 64) for x, y, z in zip(a, b, c, strict=True)]
        assert [int(x) for x in state.vgpr(6, np.uint64)] == [value & FULL for value in full]
        assert state.sgpr(0, 2) == mask_of(value >> 64 & 1 for value in full), "bit 64 of the 65-bit sum"


def test_select():
    a, b = operands(32, False)
    state = run([ISA.make("v_cndmask_b32_e32", vgpr(4), vgpr(0), vgpr(2), sgpr(VCC, 2)),
                 ISA.make("v_cndmask_b32_e64", vgpr(5), vgpr(0), vgpr(2), sgpr(8, 2), src0_modifiers=1)],
                vgprs={0: row(a, 32), 2: row(b, 32)}, vcc=PARTIAL, sgprs={8: 0xFFFF, 9: 0})
    assert list(state.vgpr(4)) == [y if PARTIAL >> i & 1 else x for i, (x, y) in enumerate(zip(a, b, strict=True))]
    assert list(state.vgpr(5)) == [y if i < 16 else x ^ 1 << 31 for i, (x, y) in enumerate(zip(a, b, strict=True))]


@pytest.mark.parametrize("width", [32, 64])
def test_division(width):
    """The steps that a compiler emits give the correctly rounded quotient, for every pair of special values."""
    special = [
        0.0,
        -0.0,
        1.0,
        -3.0,
        7.0,
        1e-40,
        1e38,
        3e38,
        5e-324,
        1e-310,
        1e300,
        1e-300,
        math.inf,
        -math.inf,
        math.nan,
        0.1,
    ]
    pairs = list(itertools.product(special, special))
    kind = {32: np.float32, 64: np.float64}[width]
    for start in range(0, len(pairs), LANES):
        chosen = (pairs + pairs)[start : start + LANES]
        n, d = (
            np.array([bits_of(pair[i], width) for pair in chosen], np.uint32 if width == 32 else np.uint64)
            for i in (0, 1)
        )
        state = run(division(width), vgprs={0: n, 2: d})
        with np.errstate(all="ignore"):
            expected = n.view(kind) / d.view(kind)
        np.testing.assert_array_equal(state.vgpr(20, kind), expected)


def division(width):
    """LLVM's expansion of fdiv: v0 / v2 to v20 (pairs for 64 bits)."""
    w = width // 32
    n, d, ds, ns, r, e, q, out = (vgpr(i, w) for i in (0, 2, 4, 6, 8, 10, 12, 20))
    f = f"f{width}"
    neg = {"src0_modifiers": 1}
    steps = 1 if width == 32 else 2
    code = [ISA.make(f"v_div_scale_{f}", ds, sgpr(0, 2), d, d, n), ISA.make(f"v_rcp_{f}_e32", r, ds)]
    for _ in range(steps):
        code += [ISA.make(f"v_fma_{f}", e, ds, r, 1.0, **neg), ISA.make(f"v_fma_{f}", r, r, e, r)]
    return [
        *code, ISA.make(f"v_div_scale_{f}", ns, sgpr(VCC, 2), n, d, n),
        ISA.make(f"v_mul_{f}" + ("_e64" if width == 32 else ""), q, ns, r), ISA.make(f"v_fma_{f}", e, ds, q, ns, **neg),
        *([ISA.make(f"v_fma_{f}", q, e, r, q), ISA.make(f"v_fma_{f}", e, ds, q, ns, **neg)] if width == 32 else []),
        ISA.make(f"v_div_fmas_{f}", q, e, r, q), ISA.make(f"v_div_fixup_{f}", out, q, d, n),
    ]


def test_exec_changes_inside_a_strip():
    """Values computed under different masks merge lane by lane, whatever the order of reads."""
    a = np.arange(64, dtype=np.uint32)
    code = [
        ISA.make("v_mov_b32_e32", vgpr(1), vgpr(0)),
        ISA.make("s_mov_b64", sgpr(EXEC, 2), 0xFF),
        ISA.make("v_add_u32_e32", vgpr(1), 100, vgpr(1)),
        ISA.make("s_mov_b64", sgpr(EXEC, 2), -1),
        ISA.make("v_add_u32_e32", vgpr(2), 1, vgpr(1)),
        ISA.make("s_mov_b32", sgpr(EXEC), 0),
        ISA.make("v_add_u32_e32", vgpr(1), vgpr(2), vgpr(1)),
        ISA.make("v_mov_b32_e32", vgpr(3), vgpr(1)),
    ]
    state = run(code, vgprs={0: a})
    first = np.where(a < 8, a + 100, a)
    second = first + 1
    third = np.where(a >= 32, second + first, first)
    np.testing.assert_array_equal(state.vgpr(1), third)
    np.testing.assert_array_equal(state.vgpr(2), second)
    np.testing.assert_array_equal(state.vgpr(3), np.where(a >= 32, third, 0))


def test_swap_and_moves():
    a, b = operands(32, False)
    state = run([ISA.make("v_swap_b32", vgpr(0), vgpr(2))], vgprs={0: row(a, 32), 2: row(b, 32)}, exec_mask=PARTIAL)
    for lane in range(LANES):
        active = PARTIAL >> lane & 1
        assert (int(state.vgpr(0)[lane]), int(state.vgpr(2)[lane])) == (
            (b[lane], a[lane]) if active else (a[lane], b[lane])
        )


GFX10 = instruction_set(target("gfx1030"), 64)


@pytest.mark.parametrize(("text", "v1", "changed"), [
    ("v_add_co_u32 v1, null, v2, v3", lambda a, b: a + b, {}),
    ("v_add_co_ci_u32_e64 v1, null, v2, v3, null", lambda a, b: a + b, {}),
    ("v_add_co_ci_u32_e64 v1, null, v2, v3, vcc", lambda a, b: a + b + 1, {}),
    ("v_cndmask_b32_e64 v1, v2, v3, null", lambda a, b: a, {}),
    ("v_cmp_lt_u32_e64 null, v2, v3", None, {}),
    ("v_cmpx_lt_u32 v2, v3", None, {"exec_mask"}),
    ("v_cmp_lt_u32_e32 vcc, v2, v3", None, {"vcc"}),
    ("s_getpc_b64 null", None, {}),
    ("s_getreg_b32 null, hwreg(HW_REG_MODE)", None, {}),
])
def test_null_is_not_vcc(text: str, v1, changed) -> None:
    """A mask that an encoding leaves out is VCC; one that says null reads 0 and goes nowhere (RDNA ISA, 5.1)."""
    a, b = np.arange(64, dtype=np.uint32), np.full(64, 20, np.uint32)
    before = {"exec_mask": FULL, "vcc": FULL}
    state = run([GFX10.parse(text)], vgprs={1: a * 0, 2: a, 3: b}, sgprs={0: 77, 1: 78}, isa=GFX10, **before)
    expected = {name: (1 << 20) - 1 if name in changed else value for name, value in before.items()}
    assert {name: getattr(state, name) for name in before} == expected
    assert [state.sgpr(0), state.sgpr(1)] == [77, 78]
    assert (state.vgpr(1) == (v1(a, b) if v1 else 0)).all()
