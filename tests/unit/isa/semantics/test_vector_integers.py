"""Integer vector instructions against Python's integers."""

from __future__ import annotations

import numpy as np
from lanewise import Case, check, signed
from waves import ISA, run

M32 = 0xFFFFFFFF


def u32(name, count, compute, **modifiers):
    return Case(name, (32,) * count, 32, compute, modifiers)


def i32(name, count, compute, **modifiers):
    return Case(name, (32,) * count, 32, lambda *x: compute(*(signed(v, 32) for v in x)), modifiers)


def u16(name, count, compute, **modifiers):
    return Case(name, (16,) * count, 16, lambda *x: compute(*x) & 0xFFFF, modifiers)


def i16(name, count, compute, **modifiers):
    return Case(name, (16,) * count, 16, lambda *x: compute(*(signed(v, 16) for v in x)) & 0xFFFF, modifiers)


def clamp(value, low, high):
    return max(low, min(high, value))


def first_one(value, width=32):
    return next((i for i in range(width) if value >> i & 1), -1)


def leading(value, width=32):
    return next((i for i in range(width) if value >> (width - 1 - i) & 1), -1)


def perm(a, b, c):
    data = a << 32 | b

    def byte(selector):
        if selector < 8:
            return data >> 8 * selector & 0xFF
        if selector < 12:
            return 0xFF if data >> (16 * (selector - 8) + 15) & 1 else 0
        return 0 if selector == 12 else 0xFF

    return sum(byte(c >> 8 * i & 0xFF) << 8 * i for i in range(4))


def bfe_signed(a, b, c):
    offset, width = b & 31, c & 31
    return signed(a >> offset & ((1 << width) - 1), width) if width else 0


def sad_u8(a, b, c, masked=False):
    return c + sum(abs((a >> s & 255) - (b >> s & 255)) for s in (0, 8, 16, 24) if not masked or b >> s & 255)


def test_logic_and_bits():
    check([
        u32("v_mov_b32_e32", 1, lambda a: a), u32("v_not_b32_e32", 1, lambda a: ~a),
        u32("v_and_b32_e32", 2, lambda a, b: a & b), u32("v_or_b32_e32", 2, lambda a, b: a | b),
        u32("v_xor_b32_e32", 2, lambda a, b: a ^ b), u32("v_xnor_b32_e32", 2, lambda a, b: ~(a ^ b)),
        u32("v_and_or_b32", 3, lambda a, b, c: a & b | c), u32("v_or3_b32", 3, lambda a, b, c: a | b | c),
        u32("v_xad_u32", 3, lambda a, b, c: (a ^ b) + c), u32("v_bfi_b32", 3, lambda a, b, c: a & b | ~a & c),
        u32("v_bfm_b32", 2, lambda a, b: ((1 << (a & 31)) - 1) << (b & 31)),
        u32("v_bfrev_b32_e32", 1, lambda a: int(f"{a:032b}"[::-1], 2)),
        u32("v_bcnt_u32_b32", 2, lambda a, b: a.bit_count() + b),
        u32("v_ffbh_u32_e32", 1, leading), u32("v_ffbl_b32_e32", 1, first_one),
        u32("v_ffbh_i32_e32", 1, lambda a: leading(a ^ (M32 if a >> 31 else 0))),
        u32("v_bfe_u32", 3, lambda a, b, c: a >> (b & 31) & ((1 << (c & 31)) - 1)),
        u32("v_bfe_i32", 3, lambda a, b, c: bfe_signed(signed(a, 32), b, c)),
        u32("v_alignbit_b32", 3, lambda a, b, c: (a << 32 | b) >> (c & 31)),
        u32("v_alignbyte_b32", 3, lambda a, b, c: (a << 32 | b) >> 8 * (c & 3)),
        u32("v_perm_b32", 3, perm),
    ])


def test_shifts():
    check(
        [
            u32("v_lshlrev_b32_e32", 2, lambda a, b: b << (a & 31)),
            u32("v_lshrrev_b32_e32", 2, lambda a, b: b >> (a & 31)),
            u32("v_ashrrev_i32_e32", 2, lambda a, b: signed(b, 32) >> (a & 31)),
            Case("v_lshlrev_b64", (32, 64), 64, lambda a, b: b << (a & 63)),
            Case("v_lshrrev_b64", (32, 64), 64, lambda a, b: b >> (a & 63)),
            Case("v_ashrrev_i64", (32, 64), 64, lambda a, b: signed(b, 64) >> (a & 63)),
            u16("v_lshlrev_b16_e32", 2, lambda a, b: b << (a & 15)),
            u16("v_lshrrev_b16_e32", 2, lambda a, b: b >> (a & 15)),
            u16("v_ashrrev_i16_e32", 2, lambda a, b: signed(b, 16) >> (a & 15)),
            u32("v_lshl_add_u32", 3, lambda a, b, c: (a << (b & 31)) + c),
            u32("v_add_lshl_u32", 3, lambda a, b, c: a + b << (c & 31)),
            u32("v_lshl_or_b32", 3, lambda a, b, c: a << (b & 31) & M32 | c),
        ]
    )


def test_sums():
    check(
        [
            u32("v_add_u32_e32", 2, lambda a, b: a + b),
            u32("v_sub_u32_e32", 2, lambda a, b: a - b),
            u32("v_subrev_u32_e32", 2, lambda a, b: b - a),
            u32("v_add3_u32", 3, lambda a, b, c: a + b + c),
            u32("v_add_u32_e64", 2, lambda a, b: min(a + b, M32), clamp=1),
            u32("v_sub_u32_e64", 2, lambda a, b: max(a - b, 0), clamp=1),
            i32("v_add_i32", 2, lambda a, b: a + b),
            i32("v_sub_i32", 2, lambda a, b: a - b),
            i32("v_add_i32", 2, lambda a, b: clamp(a + b, -(1 << 31), (1 << 31) - 1), clamp=1),
            i32("v_sub_i32", 2, lambda a, b: clamp(a - b, -(1 << 31), (1 << 31) - 1), clamp=1),
            u16("v_add_u16_e32", 2, lambda a, b: a + b),
            u16("v_sub_u16_e32", 2, lambda a, b: a - b),
            u16("v_subrev_u16_e32", 2, lambda a, b: b - a),
            u16("v_add_u16_e64", 2, lambda a, b: min(a + b, 0xFFFF), clamp=1),
            i16("v_add_i16", 2, lambda a, b: a + b),
            i16("v_sub_i16", 2, lambda a, b: clamp(a - b, -32768, 32767), clamp=1),
            u32("v_sad_u8", 3, sad_u8),
            u32("v_msad_u8", 3, lambda a, b, c: sad_u8(a, b, c, True)),
            u32("v_sad_hi_u8", 3, lambda a, b, c: (sad_u8(a, b, 0) << 16) + c),
            u32("v_sad_u16", 3, lambda a, b, c: abs((a & 0xFFFF) - (b & 0xFFFF)) + abs((a >> 16) - (b >> 16)) + c),
            u32("v_sad_u32", 3, lambda a, b, c: abs(a - b) + c),
            u32(
                "v_lerp_u8",
                3,
                lambda a, b, c: sum(((a >> s & 255) + (b >> s & 255) + (c >> s & 1)) // 2 << s for s in (0, 8, 16, 24)),
            ),
        ]
    )


def i24(value):
    return signed(value, 24)


def u24(value):
    return value & 0xFFFFFF


def test_products():
    check(
        [
            u32("v_mul_lo_u32", 2, lambda a, b: a * b),
            u32("v_mul_hi_u32", 2, lambda a, b: a * b >> 32),
            i32("v_mul_hi_i32", 2, lambda a, b: a * b >> 32),
            u32("v_mul_i32_i24_e32", 2, lambda a, b: i24(a) * i24(b)),
            u32("v_mul_u32_u24_e32", 2, lambda a, b: u24(a) * u24(b)),
            u32("v_mul_hi_i32_i24_e32", 2, lambda a, b: i24(a) * i24(b) >> 32),
            u32("v_mul_hi_u32_u24_e32", 2, lambda a, b: u24(a) * u24(b) >> 32),
            u32("v_mad_i32_i24", 3, lambda a, b, c: i24(a) * i24(b) + c),
            u32("v_mad_u32_u24", 3, lambda a, b, c: u24(a) * u24(b) + c),
            u32("v_mad_u32_u24", 3, lambda a, b, c: min(u24(a) * u24(b) + c, M32), clamp=1),
            Case("v_mad_u32_u16", (16, 16, 32), 32, lambda a, b, c: a * b + c),
            Case("v_mad_i32_i16", (16, 16, 32), 32, lambda a, b, c: signed(a, 16) * signed(b, 16) + c),
            u16("v_mul_lo_u16_e32", 2, lambda a, b: a * b),
            u16("v_mad_legacy_u16", 3, lambda a, b, c: a * b + c),
            u16("v_mad_u16", 3, lambda a, b, c: a * b + c),
            i16("v_mad_i16", 3, lambda a, b, c: a * b + c),
            u16("v_mad_u16", 3, lambda a, b, c: min(a * b + c, 0xFFFF), clamp=1),
        ]
    )


def median(a, b, c):
    return sorted((a, b, c))[1]


def test_extremes():
    cases = []
    for maker, word in ((u32, "u32"), (i32, "i32")):
        cases += [
            maker(f"v_min_{word}_e32", 2, min),
            maker(f"v_max_{word}_e32", 2, max),
            maker(f"v_min3_{word}", 3, min),
            maker(f"v_max3_{word}", 3, max),
            maker(f"v_med3_{word}", 3, median),
        ]
    for maker, word in ((u16, "u16"), (i16, "i16")):
        cases += [
            maker(f"v_min_{word}_e32", 2, min),
            maker(f"v_max_{word}_e32", 2, max),
            maker(f"v_min3_{word}", 3, min),
            maker(f"v_max3_{word}", 3, max),
            maker(f"v_med3_{word}", 3, median),
        ]
    check(cases)


def test_packing():
    check(
        [
            u32("v_cvt_pk_u16_u32", 2, lambda a, b: min(a, 0xFFFF) | min(b, 0xFFFF) << 16),
            i32(
                "v_cvt_pk_i16_i32",
                2,
                lambda a, b: clamp(a, -32768, 32767) & 0xFFFF | (clamp(b, -32768, 32767) & 0xFFFF) << 16,
            ),
            u32(
                "v_sat_pk_u8_i16_e32",
                1,
                lambda a: clamp(signed(a, 16), 0, 255) | clamp(signed(a >> 16, 16), 0, 255) << 8,
            ),
        ]
    )


def packed(name, count, compute, wrap=True, is_signed=False, **modifiers):
    """A packed instruction from its effect on 16-bit elements."""

    def whole(*words):
        result = 0
        for place in (0, 16):
            parts = [word >> place & 0xFFFF for word in words]
            parts = [signed(part, 16) for part in parts] if is_signed else parts
            result |= (compute(*parts) & 0xFFFF) << place
        return result

    return Case(name, (32,) * count, 32, whole, modifiers)


def test_packed():
    cases = []
    for word, is_signed in (("u16", False), ("i16", True)):
        low, high = (-32768, 32767) if is_signed else (0, 0xFFFF)
        cases += [
            packed(f"v_pk_add_{word}", 2, lambda a, b: a + b, is_signed=is_signed),
            packed(f"v_pk_sub_{word}", 2, lambda a, b: a - b, is_signed=is_signed),
            packed(
                f"v_pk_add_{word}", 2, lambda a, b, lo=low, hi=high: clamp(a + b, lo, hi), is_signed=is_signed, clamp=1
            ),
            packed(
                f"v_pk_sub_{word}", 2, lambda a, b, lo=low, hi=high: clamp(a - b, lo, hi), is_signed=is_signed, clamp=1
            ),
            packed(f"v_pk_min_{word}", 2, min, is_signed=is_signed),
            packed(f"v_pk_max_{word}", 2, max, is_signed=is_signed),
            packed(f"v_pk_mad_{word}", 3, lambda a, b, c: a * b + c, is_signed=is_signed),
        ]
    cases += [
        packed("v_pk_mul_lo_u16", 2, lambda a, b: a * b), packed("v_pk_lshlrev_b16", 2, lambda a, b: b << (a & 15)),
        packed("v_pk_lshrrev_b16", 2, lambda a, b: b >> (a & 15)),
        packed("v_pk_ashrrev_i16", 2, lambda a, b: b >> (a & 15), is_signed=True),
    ]
    check(cases)


def dot(bits, is_signed, limit=False):
    def compute(a, b, c):
        def part(word, place):
            value = word >> place & ((1 << bits) - 1)
            return signed(value, bits) if is_signed else value

        total = sum(part(a, p) * part(b, p) for p in range(0, 32, bits)) + (signed(c, 32) if is_signed else c)
        if limit:
            total = clamp(total, -(1 << 31), (1 << 31) - 1) if is_signed else min(total, M32)
        return total

    return compute


def test_dot_products():
    cases = []
    for count, bits in ((2, 16), (4, 8), (8, 4)):
        for letter in "iu":
            name = f"v_dot{count}_{letter}32_{letter}{bits}"
            cases += [Case(name, (32, 32, 32), 32, dot(bits, letter == "i")),
                      Case(name, (32, 32, 32), 32, dot(bits, letter == "i", True), {"clamp": 1})]
    check(cases)


def test_bits_of_two_registers_by_constant_masks():
    """The sign of one, all else of the other, in some lanes: what LLVM 22 gets wrong for AVX-512."""
    a, b = (np.arange(64, dtype=np.uint32) * factor for factor in (np.uint32(2654435761), np.uint32(40503 * 65537)))
    code = [ISA.parse(text) for text in (
        "v_and_b32 v0, 0x7fffffff, v0", "v_and_b32 v2, 0x80000000, v1", "v_or_b32 v0, v0, v2")]
    state = run(code, vgprs={0: a, 1: b}, exec_mask=0x5555555500FF00FF)
    active = np.array([0x5555555500FF00FF >> lane & 1 for lane in range(64)], bool)
    np.testing.assert_array_equal(state.vgpr(0), np.where(active, a & 0x7FFFFFFF | b & 0x80000000, a))
    np.testing.assert_array_equal(state.vgpr(1), b)
