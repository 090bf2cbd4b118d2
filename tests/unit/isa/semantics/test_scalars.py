"""Scalar instructions against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from lanewise import EDGES, signed
from waves import FULL, ISA, run

from luthier_py.isa import EXEC, M0, VCC, instruction_set, sgpr, target

M32, M64 = (1 << 32) - 1, FULL


def logic(width):
    mask = (1 << width) - 1
    return {
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "nand": lambda a, b: ~(a & b) & mask,
        "nor": lambda a, b: ~(a | b) & mask,
        "xnor": lambda a, b: ~(a ^ b) & mask,
        "andn2": lambda a, b: a & ~b,
        "orn2": lambda a, b: a | ~b & mask,
    }


def two(name, a, b, width, result, scc=None, second=None, carry=0):
    """One SOP2 instruction; checks its result and SCC."""
    second = second or width
    words = result_words = {4 + i: a >> 32 * i & M32 for i in range(width // 32)}
    words |= {8 + i: b >> 32 * i & M32 for i in range(second // 32)}
    out_width = 64 if name.endswith("64") else 32
    state = run([ISA.make(name, sgpr(12, out_width // 32), sgpr(4, width // 32), sgpr(8, second // 32))],
                sgprs=result_words, scc=carry)
    assert state.sgpr(12, out_width // 32) == result, (name, hex(a), hex(b))
    if scc is not None:
        assert state.scc == scc, (name, hex(a), hex(b))


def pairs(width, count=24):
    rng = np.random.default_rng(width)
    values = EDGES[width] + [int.from_bytes(rng.bytes(width // 8), "little") for _ in range(12)]
    return [(values[int(rng.integers(len(values)))], values[int(rng.integers(len(values)))]) for _ in range(count)]


@pytest.mark.parametrize("width", [32, 64])
def test_logic(width):
    for name, compute in logic(width).items():
        for a, b in pairs(width, 4):
            two(f"s_{name}_b{width}", a, b, width, compute(a, b), int(compute(a, b) != 0))


def many(cases):
    """(name, a, b, dwords of a, dwords of b, result, scc): as many as fit in one run, results kept in pairs."""
    for start in range(0, len(cases), 12):
        code, expected = [], []
        for i, (name, a, b, wide_a, wide_b, result, scc) in enumerate(cases[start : start + 12]):
            code += [ISA.make("s_mov_b32", sgpr(4 + w), a >> 32 * w & M32) for w in range(2)]
            code += [ISA.make("s_mov_b32", sgpr(6 + w), b >> 32 * w & M32) for w in range(2)]
            out = 1 + name.endswith("64") if "bcnt" not in name and "flbit" not in name and "ff" not in name else 1
            operands = [sgpr(4, wide_a)] + ([sgpr(6, wide_b)] if wide_b else [])
            code += [
                ISA.make(name, sgpr(20 + 4 * i, out), *operands),
                ISA.make("s_cselect_b32", sgpr(22 + 4 * i), 1, 0),
            ]
            expected.append((name, a, b, out, result, scc))
        state = run(code)
        for i, (name, a, b, out, result, scc) in enumerate(expected):
            assert state.sgpr(20 + 4 * i, out) == result & ((1 << 32 * out) - 1), (name, hex(a), hex(b))
            if scc is not None:
                assert state.sgpr(22 + 4 * i) == scc, (name, "scc", hex(a), hex(b))


def overflow(value):
    return int(not -(1 << 31) <= value < 1 << 31)


def test_arithmetic():
    cases = []
    for a, b in pairs(32):
        x, y = signed(a, 32), signed(b, 32)
        cases += [
            ("s_add_u32", a, b, 1, 1, a + b, int(a + b > M32)),
            ("s_sub_u32", a, b, 1, 1, a - b, int(a < b)),
            ("s_add_i32", a, b, 1, 1, a + b, overflow(x + y)),
            ("s_sub_i32", a, b, 1, 1, a - b, overflow(x - y)),
            ("s_mul_i32", a, b, 1, 1, a * b, None),
            ("s_mul_hi_u32", a, b, 1, 1, a * b >> 32, None),
            ("s_mul_hi_i32", a, b, 1, 1, x * y >> 32, None),
            ("s_min_i32", a, b, 1, 1, min(x, y), int(x < y)),
            ("s_max_u32", a, b, 1, 1, max(a, b), int(a > b)),
            ("s_min_u32", a, b, 1, 1, min(a, b), int(a < b)),
            ("s_max_i32", a, b, 1, 1, max(x, y), int(x > y)),
            ("s_absdiff_i32", a, b, 1, 1, abs(signed(x - y, 32)), int(a != b)),
            ("s_lshl2_add_u32", a, b, 1, 1, (a << 2) + b, int((a << 2) + b > M32)),
            ("s_pack_ll_b32_b16", a, b, 1, 1, a & 0xFFFF | (b & 0xFFFF) << 16, None),
            ("s_pack_lh_b32_b16", a, b, 1, 1, a & 0xFFFF | b >> 16 << 16, None),
            ("s_pack_hh_b32_b16", a, b, 1, 1, a >> 16 | b >> 16 << 16, None),
        ]
    many(cases)


def test_carries():
    for a, b in pairs(32, 6):
        for carry in 0, 1:
            two("s_addc_u32", a, b, 32, a + b + carry & M32, int(a + b + carry > M32), carry=carry)
            two("s_subb_u32", a, b, 32, a - b - carry & M32, int(a < b + carry), carry=carry)


def field(a, control, width, is_signed):
    offset, size = control & (width - 1), min(control >> 16 & 127, width)
    value = signed(a, width) if is_signed else a
    value = value >> offset & ((1 << size) - 1)
    return signed(value, size) if is_signed and size else value


def test_shifts_and_fields():
    cases = []
    for width in 32, 64:
        w = width // 32
        for a, _ in pairs(width):
            for b in (0, 1, 31, 32, 33, 63, 100):
                n = b & (width - 1)
                mask = (1 << width) - 1
                for name, value in ((f"s_lshl_b{width}", a << n & mask), (f"s_lshr_b{width}", a >> n),
                                    (f"s_ashr_i{width}", signed(a, width) >> n & mask)):
                    cases.append((name, a, b, w, 1, value, int(value != 0)))
                control = b | (b * 3 % 70) << 16
                for name, is_signed in ((f"s_bfe_u{width}", False), (f"s_bfe_i{width}", True)):
                    value = field(a, control, width, is_signed) & mask
                    cases.append((name, a, control, w, 1, value, int(value != 0)))
    many(cases[:: 5])
    many([(f"s_bfm_b{width}", a, b, 1, 1, ((1 << (a & width - 1)) - 1) << (b & width - 1), None)
          for width in (32, 64) for a in (0, 5, 31, 40) for b in (0, 3, 33)])


def first(bits, width, wanted):
    return next((i for i in range(width) if bits >> i & 1 == wanted), -1)


def quads(a, width):
    return sum((a >> i & 15 != 0) << i for i in range(0, width, 4))


def test_unary():
    cases = []
    for width in 32, 64:
        w, mask = width // 32, (1 << width) - 1
        for a, _ in pairs(width, 10):
            different = a ^ (mask if a >> width - 1 else 0)
            leading = width - different.bit_length() if different else -1
            packed = sum((a >> 4 * i & 15 != 0) << i for i in range(width // 4))
            cases += [
                (f"s_mov_b{width}", a, 0, w, 0, a, None), (f"s_not_b{width}", a, 0, w, 0, ~a, int(a != mask)),
                (f"s_brev_b{width}", a, 0, w, 0, int(f"{a:0{width}b}"[::-1], 2), None),
                (f"s_bcnt0_i32_b{width}", a, 0, w, 0, width - a.bit_count(), int(a != mask)),
                (f"s_bcnt1_i32_b{width}", a, 0, w, 0, a.bit_count(), int(a != 0)),
                (f"s_ff0_i32_b{width}", a, 0, w, 0, first(a, width, 0), None),
                (f"s_ff1_i32_b{width}", a, 0, w, 0, first(a, width, 1), None),
                (f"s_flbit_i32_b{width}", a, 0, w, 0, width - a.bit_length() if a else -1, None),
                ("s_flbit_i32" if width == 32 else "s_flbit_i32_i64", a, 0, w, 0, leading, None),
                (f"s_wqm_b{width}", a, 0, w, 0, quads(a, width) * 15, int(a != 0)),
                (f"s_quadmask_b{width}", a, 0, w, 0, packed, int(a != 0)),
            ]
            if width == 32:
                cases += [
                    ("s_sext_i32_i8", a, 0, 1, 0, signed(a, 8), None),
                    ("s_sext_i32_i16", a, 0, 1, 0, signed(a, 16), None),
                    ("s_abs_i32", a, 0, 1, 0, abs(signed(a, 32)), int(a != 0)),
                    ("s_bitreplicate_b64_b32", a, 0, 1, 0, sum((a >> i & 1) * 3 << 2 * i for i in range(32)), None),
                ]
    fixed = [(n, a, b, x, y, r & (M64 if n.endswith("b64_b32") else M64), s) for n, a, b, x, y, r, s in cases
             if not n.endswith("b64_b32")]
    many(fixed)
    for name, a, _, _, _, result, _ in cases:
        if name.endswith("b64_b32"):
            state = run([ISA.make(name, sgpr(8, 2), sgpr(4))], sgprs={4: a})
            assert state.sgpr(8, 2) == result


COMPARE = {"eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
           "lt": lambda a, b: a < b, "le": lambda a, b: a <= b}


def test_comparisons():
    for a, b in pairs(32, 4):
        code, expected = [], []
        for name, compare in COMPARE.items():
            for kind, read in (("u32", lambda x: x), ("i32", lambda x: signed(x, 32))):
                code += [
                    ISA.make(f"s_cmp_{name}_{kind}", sgpr(4), sgpr(5)),
                    ISA.make("s_cselect_b32", sgpr(20 + len(expected)), 1, 0),
                ]
                expected.append(int(compare(read(a), read(b))))
                k = signed(b, 16) if kind == "i32" else b & 0xFFFF
                code += [
                    ISA.make(f"s_cmpk_{name}_{kind}", sgpr(4), k),
                    ISA.make("s_cselect_b32", sgpr(20 + len(expected)), 1, 0),
                ]
                expected.append(int(compare(read(a), k)))
        state = run(code, sgprs={4: a, 5: b})
        assert [state.sgpr(20 + i) for i in range(len(expected))] == expected
    state = run([ISA.make("s_cmp_eq_u64", sgpr(4, 2), sgpr(6, 2)), ISA.make("s_cselect_b32", sgpr(8), 1, 0),
                 ISA.make("s_cmp_lg_u64", sgpr(4, 2), sgpr(6, 2)), ISA.make("s_bitcmp1_b32", sgpr(4), 33)],
                sgprs={4: 2, 5: 3, 6: 2, 7: 4})
    assert (state.sgpr(8), state.scc) == (0, 1)


def test_saveexec():
    a = 0xF0F0_F0F0_0F0F_3333
    e = 0x00FF_00FF_FFFF_0000
    new = {
        "and": a & e, "or": a | e, "xor": a ^ e, "andn2": a & ~e, "orn2": a | ~e & M64, "nand": ~(a & e) & M64,
        "nor": ~(a | e) & M64, "xnor": ~(a ^ e) & M64, "andn1": ~a & e, "orn1": ~a & M64 | e,
    }  # fmt: skip
    for name, value in new.items():
        state = run(
            [ISA.make(f"s_{name}_saveexec_b64", sgpr(8, 2), sgpr(4, 2))], exec_mask=e, sgprs={4: a & M32, 5: a >> 32}
        )
        assert (state.sgpr(8, 2), state.exec_mask, state.scc) == (e, value, int(value != 0)), name
    state = run([ISA.make("s_andn2_wrexec_b64", sgpr(8, 2), sgpr(4, 2))], exec_mask=e, sgprs={4: a & M32, 5: a >> 32})
    assert state.sgpr(8, 2) == state.exec_mask == a & ~e


def test_conditional_moves_and_bits():
    for scc in 0, 1:
        state = run([ISA.make("s_cmov_b32", sgpr(8), 7), ISA.make("s_cmovk_i32", sgpr(9), -3),
                     ISA.make("s_cselect_b64", sgpr(10, 2), sgpr(4, 2), sgpr(6, 2)),
                     ISA.make("s_bitset1_b32", sgpr(12), 35), ISA.make("s_bitset0_b64", sgpr(14, 2), 40),
                     ISA.make("s_movk_i32", sgpr(16), -5), ISA.make("s_mulk_i32", sgpr(17), -2)],
                    scc=scc, sgprs={4: 1, 5: 2, 6: 3, 7: 4, 8: 11, 9: 12, 12: 0, 14: M32, 15: M32, 17: 21})
        assert state.sgpr(8) == (7 if scc else 11)
        assert state.sgpr(9) == (-3 & M32 if scc else 12)
        assert state.sgpr(10, 2) == (0x2_00000001 if scc else 0x4_00000003)
        assert (state.sgpr(12), state.sgpr(14, 2), state.sgpr(16)) == (8, M64 & ~(1 << 40), -5 & M32)
        assert state.sgpr(17) == -42 & M32


def test_addk_and_special_sources():
    state = run([ISA.make("s_addk_i32", sgpr(8), 0x7FFF), ISA.make("s_mov_b32", sgpr(9), "src_scc"),
                 ISA.make("s_mov_b32", sgpr(10), "src_execz"), ISA.make("s_mov_b32", sgpr(11), "src_vccz"),
                 ISA.make("s_mov_b64", sgpr(12, 2), "src_shared_base")],
                sgprs={8: 0x7FFFFFFF}, vcc=0)
    assert (state.sgpr(8), state.sgpr(9), state.sgpr(10), state.sgpr(11)) == (0x80007FFE, 1, 0, 1)
    assert state.sgpr(12, 2) == 1 << 48


def test_halves_and_pairs_stay_consistent():
    """Writes of halves after pairs, and pairs over halves, in every order."""
    state = run(
        [
            ISA.make("s_mov_b64", sgpr(4, 2), -1),
            ISA.make("s_mov_b32", sgpr(5), 1),
            ISA.make("s_mov_b64", sgpr(8, 2), sgpr(4, 2)),
            ISA.make("s_mov_b32", sgpr(4), 2),
            ISA.make("s_mov_b64", sgpr(10, 2), sgpr(4, 2)),
            ISA.make("s_mov_b64", sgpr(12, 2), 3),
            ISA.make("s_mov_b32", sgpr(13), 9),
            ISA.make("s_mov_b32", sgpr(14), sgpr(12)),
            ISA.make("s_mov_b32", sgpr(VCC), 5),
            ISA.make("s_mov_b32", sgpr(VCC + 1), 6),
            ISA.make("s_mov_b64", sgpr(EXEC, 2), sgpr(VCC, 2)),
            ISA.make("s_mov_b32", sgpr(M0), 77),
        ]
    )
    assert state.sgpr(8, 2) == 0x1_FFFFFFFF
    assert state.sgpr(10, 2) == state.sgpr(4, 2) == 0x1_00000002
    assert (state.sgpr(12), state.sgpr(13), state.sgpr(14)) == (3, 9, 3)
    assert state.exec_mask == 0x6_00000005
    assert state.sgpr(M0) == 77


@pytest.mark.parametrize("name,function", [
    ("v_s_exp", np.exp2), ("v_s_log", np.log2), ("v_s_rcp", lambda x: 1 / x), ("v_s_rsq", lambda x: 1 / np.sqrt(x)),
    ("v_s_sqrt", np.sqrt),
])  # fmt: skip
@pytest.mark.parametrize("width", ["f16", "f32"])
def test_transcendentals_of_scalars(name, function, width):
    """One number for the wave, even without active lanes, with the modifiers of vector instructions."""
    isa = instruction_set(target("gfx1201"), 32)
    kind, bits = (np.float16, np.uint16) if width == "f16" else (np.float32, np.uint32)
    for value in 0.5, 3.0, 0.0078125, 7.75:
        source = kind(value)
        for text, taken, limit in ("s0", value, np.inf), ("|s1|", value, np.inf), ("-s1", value, 1.0):
            given = {0: int(source.view(bits)) | (0xABC << 16 if width == "f16" else 0), 1: int((-source).view(bits))}
            suffix = " clamp" if np.isfinite(limit) else ""
            state = run([isa.parse(f"{name}_{width} s9, {text}{suffix}")], isa=isa, sgprs=given, exec_mask=0)
            exact = function(np.float64(taken))
            wanted = kind(exact if np.isinf(limit) else min(max(exact, 0), limit))
            result = state.sgpr(9)
            assert abs(result - int(wanted.view(bits))) <= 1, (text, value, hex(result))
