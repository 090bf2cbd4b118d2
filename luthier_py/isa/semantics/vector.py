"""Vector ALU on integers: moves, arithmetic, shifts, bit fields, bytes, carries.

In: one lane's operands. Out: that lane's results. Source: AMD Instinct MI200 ISA, 12.7 to 12.12.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.isa.semantics.algebra import (
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Type,
    Value,
    add_sat,
    clz,
    concat,
    ctz,
    high_half,
    lane_of,
    low_half,
    maximum,
    minimum,
    popcount,
    reverse_bits,
    select,
    sub_sat,
)
from luthier_py.isa.semantics.meaning import Lanes, Results, declare, lanes, signature

# Moves. V_CNDMASK takes float modifiers but no float rules.
lanes("V_MOV_B32 V_ACCVGPR_READ_B32 V_ACCVGPR_WRITE_B32 V_ACCVGPR_MOV_B32", "u32 -> u32", lambda a: a)
lanes("V_CNDMASK_B32", "u32 u32 b -> u32", lambda a, b, c: select(c, b, a))
lanes("V_SWAP_B32", "u32 old -> u32 u32", lambda a, old: (a, old))
lanes("V_PK_MOV_B32", "2u32 2u32 -> u64", lambda a, b: concat(b[0], a[0]))
lanes("V_MOV_B64", "u64 -> u64", lambda a: a)

# Logic and bits.
lanes("V_AND_B32", "u32 u32 -> u32", lambda a, b: a & b)
lanes("V_OR_B32", "u32 u32 -> u32", lambda a, b: a | b)
lanes("V_XOR_B32", "u32 u32 -> u32", lambda a, b: a ^ b)
lanes("V_XNOR_B32", "u32 u32 -> u32", lambda a, b: ~(a ^ b))
lanes("V_NOT_B32", "u32 -> u32", lambda a: ~a)
lanes("V_AND_OR_B32", "u32 u32 u32 -> u32", lambda a, b, c: (a & b) | c)
lanes("V_OR3_B32", "u32 u32 u32 -> u32", lambda a, b, c: a | b | c)
lanes("V_XAD_U32", "u32 u32 u32 -> u32", lambda a, b, c: (a ^ b) + c)
lanes("V_BFI_B32", "u32 u32 u32 -> u32", lambda a, b, c: (a & b) | (~a & c))
lanes("V_BFM_B32", "u32 u32 -> u32", lambda a, b: ((1 << (a & 31)) - 1) << (b & 31))
lanes("V_BFREV_B32", "u32 -> u32", reverse_bits)
lanes("V_BCNT_U32_B32", "u32 u32 -> u32", lambda a, b: popcount(a) + b)
lanes("V_FFBH_U32", "u32 -> u32", lambda a: _first(clz(a)))
lanes("V_FFBL_B32", "u32 -> u32", lambda a: _first(ctz(a)))
lanes("V_FFBH_I32", "i32 -> u32", lambda a: _first(clz((a ^ (a >> 31)).as_(U32))))
lanes("V_BFE_U32", "u32 u32 u32 -> u32", lambda a, b, c: (a >> (b & 31)) & ((1 << (c & 31)) - 1))
lanes("V_BFE_I32", "i32 i32 i32 -> i32", lambda a, b, c: _sign_extend_field(a >> (b & 31), c & 31))
lanes("V_ALIGNBIT_B32", "u32 u32 u32 -> u32", lambda a, b, c: low_half(concat(a, b) >> (c & 31).to(U64)))
lanes("V_ALIGNBYTE_B32", "u32 u32 u32 -> u32", lambda a, b, c: low_half(concat(a, b) >> ((c & 3) * 8).to(U64)))
lanes("V_PERM_B32", "u32 u32 u32 -> u32", lambda a, b, c: _permute_bytes(concat(a, b), c))
lanes("V_MBCNT_LO_U32_B32", "u32 u32 -> u32",
      lambda a, b: popcount(a & _lanes_below(minimum(lane_of(a), 32))) + b)
lanes("V_MBCNT_HI_U32_B32", "u32 u32 -> u32",
      lambda a, b: popcount(a & _lanes_below(maximum(lane_of(a), 32) - 32)) + b)


def _first(count: Value) -> Value:
    return select(count.eq(32), -1, count)


def _sign_extend_field(moved: Value, width: Value) -> Value:
    unused = (32 - width) & 31
    return select(width.eq(0), 0, (moved << unused) >> unused)


def _lanes_below(lane: Value) -> Value:
    """The lowest ``lane`` bits, 0 to 32 of them."""
    return low_half((lane.to(U64).lift(1) << lane.to(U64)) - 1)


def _permute_bytes(data: Value, selectors: Value) -> Value:
    """Selectors: 0..7 a byte of data, 8..11 the sign of a half-word of it, 12 zeros, above ones."""
    result = selectors.lift(0)
    for byte in range(4):
        selector = (selectors >> 8 * byte) & 0xFF
        picked = low_half(data >> ((selector & 7) * 8).to(U64)) & 0xFF
        sign = low_half(data >> ((selector & 3) * 16 + 15).to(U64)) & 1
        special = select(selector < 12, sign * 0xFF, select(selector.eq(12), sign.lift(0), 0xFF))
        result = result | (select(selector < 8, picked, special) << 8 * byte)
    return result


# Shifts: the amount comes first, modulo the width.
lanes("V_LSHLREV_B32", "u32 u32 -> u32", lambda a, b: b << (a & 31))
lanes("V_LSHRREV_B32", "u32 u32 -> u32", lambda a, b: b >> (a & 31))
lanes("V_ASHRREV_I32", "i32 i32 -> i32", lambda a, b: b >> (a & 31))
lanes("V_LSHLREV_B64", "u32 u64 -> u64", lambda a, b: b << (a & 63).to(U64))
lanes("V_LSHRREV_B64", "u32 u64 -> u64", lambda a, b: b >> (a & 63).to(U64))
lanes("V_ASHRREV_I64", "u32 i64 -> i64", lambda a, b: b >> (a & 63).to(I64))
lanes("V_LSHLREV_B16", "u16 u16 -> u16", lambda a, b: b << (a & 15))
lanes("V_LSHRREV_B16", "u16 u16 -> u16", lambda a, b: b >> (a & 15))
lanes("V_ASHRREV_I16", "i16 i16 -> i16", lambda a, b: b >> (a & 15))
lanes("V_LSHL_ADD_U32", "u32 u32 u32 -> u32", lambda a, b, c: (a << (b & 31)) + c)
lanes("V_ADD_LSHL_U32", "u32 u32 u32 -> u32", lambda a, b, c: (a + b) << (c & 31))
lanes("V_LSHL_OR_B32", "u32 u32 u32 -> u32", lambda a, b, c: (a << (b & 31)) | c)
lanes("V_LSHL_ADD_U64", "u64 u32 u64 -> u64", lambda a, b, c: (a << (b & 7).to(U64)) + c)


def _swap_operands(compute: Callable[[Value, Value], object]) -> Callable[[Value, Value], object]:
    return lambda a, b: compute(b, a)


def _add(a: Value, b: Value) -> Value:
    return a + b


def _sub(a: Value, b: Value) -> Value:
    return a - b


# Addition and subtraction.
for _width, _kinds in (("32", "ui"), ("16", "ui")):
    for _kind in _kinds:
        _type = f"{_kind}{_width}"
        lanes(f"V_ADD_{_type.upper()}", f"{_type} {_type} -> {_type}", _add, add_sat)
        lanes(f"V_SUB_{_type.upper()}", f"{_type} {_type} -> {_type}", _sub, sub_sat)
    _type = f"u{_width}"
    lanes(f"V_SUBREV_U{_width}", f"{_type} {_type} -> {_type}", _swap_operands(_sub), _swap_operands(sub_sat))
lanes("V_ADD3_U32", "u32 u32 u32 -> u32", lambda a, b, c: a + b + c)


def _add_carry_out(a: Value, b: Value) -> Results:
    total = a + b
    return total, total < a


def _add_carry(a: Value, b: Value, carry: Value) -> Results:
    partial = a + b
    total = partial + carry.to(U32)
    return total, (partial < a) | (total < partial)


def _sub_borrow_out(a: Value, b: Value) -> Results:
    return a - b, a < b


def _sub_borrow(a: Value, b: Value, borrow: Value) -> Results:
    return a - b - borrow.to(U32), (a < b) | (a.eq(b) & borrow)


def _saturate_on_carry(compute: Callable[..., Results], limit: int) -> Callable[..., Results]:
    """With clamp, a carry gives the limit."""

    def compute_saturated(*operands: Value) -> Results:
        result, carry = compute(*operands)
        return select(carry, limit, result), carry

    return compute_saturated


lanes("V_ADD_CO_U32", "u32 u32 -> u32 b", _add_carry_out, _saturate_on_carry(_add_carry_out, -1))
lanes("V_ADDC_U32", "u32 u32 b -> u32 b", _add_carry, _saturate_on_carry(_add_carry, -1))
lanes("V_SUB_CO_U32", "u32 u32 -> u32 b", _sub_borrow_out, _saturate_on_carry(_sub_borrow_out, 0))
lanes("V_SUBB_U32", "u32 u32 b -> u32 b", _sub_borrow, _saturate_on_carry(_sub_borrow, 0))
lanes("V_SUBREV_CO_U32", "u32 u32 -> u32 b", lambda a, b: _sub_borrow_out(b, a),
      _saturate_on_carry(lambda a, b: _sub_borrow_out(b, a), 0))
lanes("V_SUBBREV_U32", "u32 u32 b -> u32 b", lambda a, b, c: _sub_borrow(b, a, c),
      _saturate_on_carry(lambda a, b, c: _sub_borrow(b, a, c), 0))


# Multiplication.
def _i24(a: Value) -> Value:
    return (a << 8) >> 8


def _u24(a: Value) -> Value:
    return a & 0xFFFFFF


def _high_product(a: Value, b: Value, wide: Type) -> Value:
    return high_half(a.to(wide) * b.to(wide))


lanes("V_MUL_LO_U32 V_MUL_LO_I32", "u32 u32 -> u32", lambda a, b: a * b)
lanes("V_MUL_HI_U32", "u32 u32 -> u32", lambda a, b: _high_product(a, b, U64))
lanes("V_MUL_HI_I32", "i32 i32 -> u32", lambda a, b: _high_product(a, b, I64))
lanes("V_MUL_I32_I24", "i32 i32 -> i32", lambda a, b: _i24(a) * _i24(b))
lanes("V_MUL_U32_U24", "u32 u32 -> u32", lambda a, b: _u24(a) * _u24(b))
lanes("V_MUL_HI_I32_I24", "i32 i32 -> u32", lambda a, b: _high_product(_i24(a), _i24(b), I64))
lanes("V_MUL_HI_U32_U24", "u32 u32 -> u32", lambda a, b: _high_product(_u24(a), _u24(b), U64))
lanes("V_MAD_I32_I24", "i32 i32 i32 -> i32", lambda a, b, c: _i24(a) * _i24(b) + c,
      lambda a, b, c: _clamp_to_type(_i24(a).to(I64) * _i24(b).to(I64) + c.to(I64), I32))
lanes("V_MAD_U32_U24", "u32 u32 u32 -> u32", lambda a, b, c: _u24(a) * _u24(b) + c,
      lambda a, b, c: _clamp_to_type(_u24(a).to(U64) * _u24(b).to(U64) + c.to(U64), U32))
lanes("V_MAD_U32_U16", "u16 u16 u32 -> u32", lambda a, b, c: a.to(U32) * b.to(U32) + c,
      lambda a, b, c: add_sat(a.to(U32) * b.to(U32), c))
lanes("V_MAD_I32_I16", "i16 i16 i32 -> i32", lambda a, b, c: a.to(I32) * b.to(I32) + c,
      lambda a, b, c: add_sat(a.to(I32) * b.to(I32), c))
lanes("V_MUL_LO_U16", "u16 u16 -> u16", lambda a, b: a * b)
lanes("V_MAD_U16 V_MAD_LEGACY_U16", "u16 u16 u16 -> u16", lambda a, b, c: a * b + c,
      lambda a, b, c: _clamp_to_type(a.to(U32) * b.to(U32) + c.to(U32), U16))
lanes("V_MAD_I16 V_MAD_LEGACY_I16", "i16 i16 i16 -> i16", lambda a, b, c: a * b + c,
      lambda a, b, c: _clamp_to_type(a.to(I32) * b.to(I32) + c.to(I32), I16))
lanes("V_MAD_U64_U32", "u32 u32 u64 -> u64 b", lambda a, b, c: _wide_mad(a.to(U64) * b.to(U64), c))
lanes("V_MAD_I64_I32", "i32 i32 i64 -> i64 b", lambda a, b, c: _wide_mad_signed(a.to(I64) * b.to(I64), c))


def _clamp_to_type(a: Value, type: Type) -> Value:
    """``a`` clamped to a narrower type of its kind."""
    top = (1 << type.bits - (a.type == a.type.signed)) - 1
    low = a if a.type == a.type.unsigned else maximum(a, -top - 1)
    return minimum(low, top).to(type)


def _wide_mad(product: Value, c: Value) -> Results:
    total = product + c
    return total, total < c


def _wide_mad_signed(product: Value, c: Value) -> Results:
    """The mask gets bit 64 of the sum of 65 bits: its sign, which the overflow of 64 bits turns round."""
    total = product + c
    overflow = ((product ^ total) & (c ^ total)) < 0
    return total, overflow ^ (total < 0)


# Minimum, maximum, median.
def _median(a: Value, b: Value, c: Value) -> Value:
    return maximum(minimum(a, b), minimum(maximum(a, b), c))


for _type in "u32", "i32", "u16", "i16":
    _name = _type.upper()
    lanes(f"V_MIN_{_name}", f"{_type} {_type} -> {_type}", minimum)
    lanes(f"V_MAX_{_name}", f"{_type} {_type} -> {_type}", maximum)
    lanes(f"V_MIN3_{_name}", f"{_type} {_type} {_type} -> {_type}", lambda a, b, c: minimum(minimum(a, b), c))
    lanes(f"V_MAX3_{_name}", f"{_type} {_type} {_type} -> {_type}", lambda a, b, c: maximum(maximum(a, b), c))
    lanes(f"V_MED3_{_name}", f"{_type} {_type} {_type} -> {_type}", _median)


# Bytes, sums of absolute differences, packing.
def _byte(a: Value, number: int) -> Value:
    return (a >> 8 * number) & 0xFF


def _difference(a: Value, b: Value) -> Value:
    return maximum(a, b) - minimum(a, b)


def _sad_u8(a: Value, b: Value, masked: bool = False) -> Value:
    """Sum over the bytes of |a - b|; masked: bytes of ``b`` that are zero do not count."""
    total = a.lift(0)
    for number in range(4):
        x, y = _byte(a, number), _byte(b, number)
        total = total + (select(y.eq(0), 0, _difference(x, y)) if masked else _difference(x, y))
    return total


def _sad_u16(a: Value, b: Value) -> Value:
    return _difference(a & 0xFFFF, b & 0xFFFF) + _difference(a >> 16, b >> 16)


def _lerp(a: Value, b: Value, c: Value) -> Value:
    """Averages of bytes, rounded up where the low bit of ``c``'s byte is set."""
    result = a.lift(0)
    for number in range(4):
        result = result | (((_byte(a, number) + _byte(b, number) + (_byte(c, number) & 1)) >> 1) << 8 * number)
    return result


lanes("V_SAD_U8", "u32 u32 u32 -> u32", lambda a, b, c: _sad_u8(a, b) + c, lambda a, b, c: add_sat(_sad_u8(a, b), c))
lanes("V_SAD_HI_U8", "u32 u32 u32 -> u32", lambda a, b, c: (_sad_u8(a, b) << 16) + c)
lanes("V_MSAD_U8", "u32 u32 u32 -> u32", lambda a, b, c: _sad_u8(a, b, masked=True) + c)
lanes("V_SAD_U16", "u32 u32 u32 -> u32", lambda a, b, c: _sad_u16(a, b) + c, lambda a, b, c: add_sat(_sad_u16(a, b), c))
lanes("V_SAD_U32", "u32 u32 u32 -> u32", lambda a, b, c: _difference(a, b) + c,
      lambda a, b, c: add_sat(_difference(a, b), c))
lanes("V_LERP_U8", "u32 u32 u32 -> u32", _lerp)


def _four_sums(masked: bool, clamped: bool, bits: int) -> Callable[..., tuple[Value, ...]]:
    """V_SAD_U8 (V_MSAD_U8) of four windows of ``a``, a byte apart, and ``b``, each added to one of ``c``."""
    def compute(a: Value, b: Value, c: Value | tuple[Value, ...]) -> tuple[Value, ...]:
        addends = c if isinstance(c, tuple) else [low_half(c >> 16 * n) & 0xFFFF for n in range(4)]
        sums = [_sad_u8(low_half(a >> 8 * n), b, masked) for n in range(4)]
        if clamped:
            return tuple(minimum(add_sat(x, y), (1 << bits) - 1) for x, y in zip(sums, addends, strict=True))
        return tuple(x + y for x, y in zip(sums, addends, strict=True))

    return compute


def _make_packed_sums(masked: bool, clamped: bool) -> Callable[[Value, Value, Value], Value]:
    compute = _four_sums(masked, clamped, 16)

    def compute_packed(a: Value, b: Value, c: Value) -> Value:
        sums = [x.to(U16) for x in compute(a, b, c)]
        return concat(concat(sums[3], sums[2]), concat(sums[1], sums[0]))

    return compute_packed


for _name, _masked in ("V_QSAD_PK_U16_U8", False), ("V_MQSAD_PK_U16_U8", True):
    lanes(_name, "u64 u32 u64 -> u64", _make_packed_sums(_masked, False), _make_packed_sums(_masked, True))
declare("V_MQSAD_U32_U8", Lanes(signature("u64 u32 4u32 -> 4u32"), _four_sums(True, False, 32),
                                _four_sums(True, True, 32), whole=True))
lanes("V_CVT_PK_U16_U32", "u32 u32 -> u32", lambda a, b: concat(_clamp_to_type(b, U16), _clamp_to_type(a, U16)))
lanes("V_CVT_PK_I16_I32", "i32 i32 -> u32", lambda a, b: concat(_clamp_to_type(b, I16), _clamp_to_type(a, I16)))
lanes("V_SAT_PK_U8_I16", "2i16 -> u16", lambda a: concat(_to_u8(a[1]), _to_u8(a[0])))


def _to_u8(a: Value) -> Value:
    return minimum(maximum(a, 0), 255).as_(U16).to(U8)


# Packed 16-bit integers.
for _type in "u16", "i16":
    _name, _two = _type.upper(), f"2{_type}"
    _binary, _ternary = f"{_two} {_two} -> {_two}", f"{_two} {_two} {_two} -> {_two}"
    _wide, _narrow = (U32, U16) if _type == "u16" else (I32, I16)
    lanes(f"V_PK_ADD_{_name}", _binary, _add, add_sat)
    lanes(f"V_PK_SUB_{_name}", _binary, _sub, sub_sat)
    lanes(f"V_PK_MIN_{_name}", _binary, minimum)
    lanes(f"V_PK_MAX_{_name}", _binary, maximum)
    lanes(f"V_PK_MAD_{_name}", _ternary, lambda a, b, c: a * b + c,
          lambda a, b, c, w=_wide, n=_narrow: _clamp_to_type(a.to(w) * b.to(w) + c.to(w), n))
lanes("V_PK_MUL_LO_U16", "2u16 2u16 -> 2u16", lambda a, b: a * b)
lanes("V_PK_LSHLREV_B16", "2u16 2u16 -> 2u16", lambda a, b: b << (a & 15))
lanes("V_PK_LSHRREV_B16", "2u16 2u16 -> 2u16", lambda a, b: b >> (a & 15))
lanes("V_PK_ASHRREV_I16", "2i16 2i16 -> 2i16", lambda a, b: b >> (a & 15))
