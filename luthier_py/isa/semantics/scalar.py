"""Scalar ALU: SOP1, SOP2, SOPC, SOPK.

In: values of the scalar operands. Out: the results, SCC among them where the manual says so.
Source: AMD Instinct MI200 ISA, chapter "Scalar ALU Instructions" and 12.1 to 12.4.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.isa.semantics.algebra import (
    I8,
    I16,
    I32,
    I64,
    U16,
    U32,
    U64,
    Type,
    Value,
    clz,
    concat,
    ctz,
    high_half,
    maximum,
    minimum,
    popcount,
    reverse_bits,
    select,
)
from luthier_py.isa.semantics.meaning import Results, scalar


def _nonzero(result: Value) -> Results:
    return result, result.ne(0)


def _logic(name: str, compute: Callable[[Value, Value], Value]) -> None:
    """A logic operation in both widths, and its EXEC-saving form."""
    for width in "32", "64":
        scalar(f"S_{name}_B{width}", f"u{width} u{width} -> u{width} scc", lambda a, b: _nonzero(compute(a, b)))
        scalar(f"S_{name}_SAVEEXEC_B{width}", f"u{width} exec -> u{width} exec scc",
               lambda a, e: (e, *_nonzero(compute(a, e))))


_logic("AND", lambda a, b: a & b)
_logic("OR", lambda a, b: a | b)
_logic("XOR", lambda a, b: a ^ b)
_logic("NAND", lambda a, b: ~(a & b))
_logic("NOR", lambda a, b: ~(a | b))
_logic("XNOR", lambda a, b: ~(a ^ b))
_logic("ANDN2", lambda a, b: a & ~b)
_logic("ORN2", lambda a, b: a | ~b)
_logic("ANDN1", lambda a, b: ~a & b)
_logic("ORN1", lambda a, b: ~a | b)
for _width in "32", "64":
    _saved = f"u{_width} exec -> u{_width} exec scc"
    scalar(f"S_ANDN1_WREXEC_B{_width}", _saved, lambda a, e: ((r := ~a & e), r, r.ne(0)))
    scalar(f"S_ANDN2_WREXEC_B{_width}", _saved, lambda a, e: ((r := a & ~e), r, r.ne(0)))


def _add_u32(a: Value, b: Value) -> Results:
    total = a + b
    return total, total < a


def _addc_u32(a: Value, b: Value, carry: Value) -> Results:
    total = a.to(U64) + b.to(U64) + carry.to(U64)
    return total.to(U32), (total >> 32).ne(0)


def _subb_u32(a: Value, b: Value, borrow: Value) -> Results:
    subtrahend = b.to(U64) + borrow.to(U64)
    return (a.to(U64) - subtrahend).to(U32), a.to(U64) < subtrahend


def _add_i32(a: Value, b: Value) -> Results:
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def _sub_i32(a: Value, b: Value) -> Results:
    difference = a - b
    return difference, ((a ^ b) & (a ^ difference)) < 0


def _make_shift_add(amount: int) -> Callable[[Value, Value], Results]:
    def compute(a: Value, b: Value) -> Results:
        total = (a.to(U64) << amount) + b.to(U64)
        return total.to(U32), (total >> 32).ne(0)

    return compute


scalar("S_ADD_U32", "u32 u32 -> u32 scc", _add_u32)
scalar("S_SUB_U32", "u32 u32 -> u32 scc", lambda a, b: (a - b, a < b))
scalar("S_ADD_U64", "u64 u64 -> u64", lambda a, b: a + b)  # s_add_nc_u64
scalar("S_ADD_I32", "i32 i32 -> i32 scc", _add_i32)
scalar("S_SUB_I32", "i32 i32 -> i32 scc", _sub_i32)
scalar("S_ADDC_U32", "u32 u32 scc -> u32 scc", _addc_u32)
scalar("S_SUBB_U32", "u32 u32 scc -> u32 scc", _subb_u32)
scalar("S_MUL_I32", "u32 u32 -> u32", lambda a, b: a * b)
scalar("S_MUL_HI_U32", "u32 u32 -> u32", lambda a, b: high_half(a.to(U64) * b.to(U64)))
scalar("S_MUL_HI_I32", "i32 i32 -> u32", lambda a, b: high_half(a.to(I64) * b.to(I64)))
for _amount in 1, 2, 3, 4:
    scalar(f"S_LSHL{_amount}_ADD_U32", "u32 u32 -> u32 scc", _make_shift_add(_amount))
scalar("S_MIN_I32", "i32 i32 -> i32 scc", lambda a, b: (minimum(a, b), a < b))
scalar("S_MIN_U32", "u32 u32 -> u32 scc", lambda a, b: (minimum(a, b), a < b))
scalar("S_MAX_I32", "i32 i32 -> i32 scc", lambda a, b: (maximum(a, b), a > b))
scalar("S_MAX_U32", "u32 u32 -> u32 scc", lambda a, b: (maximum(a, b), a > b))
scalar("S_ABS_I32", "i32 -> i32 scc", lambda a: _nonzero(abs(a)))
scalar("S_ABSDIFF_I32", "i32 i32 -> i32 scc", lambda a, b: _nonzero(abs(a - b)))
scalar("S_CSELECT_B32", "u32 u32 scc -> u32", lambda a, b, c: select(c, a, b))
scalar("S_CSELECT_B64", "u64 u64 scc -> u64", lambda a, b, c: select(c, a, b))

for _bits, _type in ("32", U32), ("64", U64):
    _mask = _type.bits - 1
    _u, _i, _b = f"u{_bits}", f"i{_bits}", f"B{_bits}"

    def _amount_of(b: Value, type: Type = _type) -> Value:
        return b.to(type) & (type.bits - 1)

    def _mask_signed_amount(b: Value, type: Type = _type) -> Value:
        return b.to(type.signed) & (type.bits - 1)

    scalar(f"S_LSHL_{_b}", f"{_u} u32 -> {_u} scc", lambda a, b, n=_amount_of: _nonzero(a << n(b)))
    scalar(f"S_LSHR_{_b}", f"{_u} u32 -> {_u} scc", lambda a, b, n=_amount_of: _nonzero(a >> n(b)))
    scalar(f"S_ASHR_I{_bits}", f"{_i} u32 -> {_i} scc", lambda a, b, n=_mask_signed_amount: _nonzero(a >> n(b)))
    scalar(f"S_BFM_{_b}", f"u32 u32 -> {_u}",
           lambda a, b, n=_amount_of: ((n(a).lift(1) << n(a)) - 1) << n(b))
    scalar(f"S_MOV_{_b}", f"{_u} -> {_u}", lambda a: a)
    scalar(f"S_CMOV_{_b}", f"{_u} old scc -> {_u}", lambda a, old, c: select(c, a, old))
    scalar(f"S_NOT_{_b}", f"{_u} -> {_u} scc", lambda a: _nonzero(~a))
    scalar(f"S_BREV_{_b}", f"{_u} -> {_u}", reverse_bits)
    scalar(f"S_BCNT0_I32_{_b}", f"{_u} -> u32 scc", lambda a: _nonzero(popcount(~a).to(U32)))
    scalar(f"S_BCNT1_I32_{_b}", f"{_u} -> u32 scc", lambda a: _nonzero(popcount(a).to(U32)))
    scalar(f"S_FF0_I32_{_b}", f"{_u} -> u32", lambda a: _first(ctz(~a)))
    scalar(f"S_FF1_I32_{_b}", f"{_u} -> u32", lambda a: _first(ctz(a)))
    scalar(f"S_FLBIT_I32_{_b}", f"{_u} -> u32", lambda a: _first(clz(a)))
    scalar("S_FLBIT_I32" if _bits == "32" else "S_FLBIT_I32_I64", f"{_i} -> u32", lambda a: _first_of_sign(a))
    scalar(f"S_BITSET0_{_b}", f"u32 old -> {_u}", lambda a, old, n=_amount_of: old & ~(old.lift(1) << n(a)))
    scalar(f"S_BITSET1_{_b}", f"u32 old -> {_u}", lambda a, old, n=_amount_of: old | (old.lift(1) << n(a)))
    scalar(f"S_BITCMP0_{_b}", f"{_u} u32 -> scc", lambda a, b, n=_amount_of: ((a >> n(b)) & 1).eq(0))
    scalar(f"S_BITCMP1_{_b}", f"{_u} u32 -> scc", lambda a, b, n=_amount_of: ((a >> n(b)) & 1).ne(0))
    scalar(f"S_WQM_{_b}", f"{_u} -> {_u} scc", lambda a: _nonzero(_whole_quads(a)))
    scalar(f"S_BFE_U{_bits}", f"{_u} u32 -> {_u} scc", lambda a, b: _nonzero(_bit_field(a, b)))
    scalar(f"S_BFE_I{_bits}", f"{_i} u32 -> {_i} scc", lambda a, b: _nonzero(_bit_field(a, b)))


def _first(count: Value) -> Value:
    """A count of zeros, -1 where nothing was found."""
    return select(count.eq(count.type.bits), -1, count).to(U32)


def _first_of_sign(a: Value) -> Value:
    """Position, from the top, of the first bit that differs from the sign."""
    return _first(clz((a ^ (a >> a.type.bits - 1)).as_(a.type.unsigned)))


def _whole_quads(a: Value) -> Value:
    ones = int("1" * (a.type.bits // 4), 16)
    any_of_quad = (a | (a >> 1) | (a >> 2) | (a >> 3)) & ones
    return any_of_quad * 15


def _bit_field(a: Value, control: Value) -> Value:
    """``control``: offset in the low bits, width in [22:16]; extended by the kind of ``a``."""
    bits = a.type.bits
    offset = (control & (bits - 1)).to(a.type)
    width = (control >> 16) & 127
    moved = a >> offset
    clipped = minimum(width, bits).to(a.type)
    unused = (moved.lift(bits) - clipped) & (bits - 1)
    return select(width.eq(0), moved.lift(0), (moved << unused) >> unused)


scalar("S_QUADMASK_B32", "u32 -> u32 scc", lambda a: _nonzero(_quad_mask(a)))
scalar("S_QUADMASK_B64", "u64 -> u64 scc", lambda a: _nonzero(_quad_mask(a)))
scalar("S_BITREPLICATE_B64_B32", "u32 -> u64", lambda a: _spread(a.to(U64)) * 3)
scalar("S_SEXT_I32_I8", "u32 -> i32", lambda a: a.to(I8).to(I32))
scalar("S_SEXT_I32_I16", "u32 -> i32", lambda a: a.to(I16).to(I32))
scalar("S_PACK_LL_B32_B16", "u32 u32 -> u32", lambda a, b: concat(b.to(U16), a.to(U16)))
scalar("S_PACK_LH_B32_B16", "u32 u32 -> u32", lambda a, b: concat(high_half(b), a.to(U16)))
scalar("S_PACK_HH_B32_B16", "u32 u32 -> u32", lambda a, b: concat(high_half(b), high_half(a)))


def _quad_mask(a: Value) -> Value:
    """One bit for each quad of lanes that has any, packed to the low bits."""
    x = (a | (a >> 1) | (a >> 2) | (a >> 3)) & int("1" * (a.type.bits // 4), 16)
    for shift, keep in (3, 0x0303030303030303), (6, 0x000F000F000F000F), (12, 0x000000FF000000FF), (24, 0xFFFF):
        if shift * 2 < a.type.bits:
            x = (x | (x >> shift)) & (keep & ((1 << a.type.bits) - 1))
    return x


def _spread(a: Value) -> Value:
    """Bit i to bit 2 i."""
    for shift, keep in ((16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F),
                        (2, 0x3333333333333333), (1, 0x5555555555555555)):
        a = (a | (a << shift)) & keep
    return a


_COMPARE: dict[str, Callable[[Value, Value], Value]] = {
    "EQ": lambda a, b: a.eq(b), "LG": lambda a, b: a.ne(b), "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
}  # fmt: skip
for _name, _compare in _COMPARE.items():
    scalar(f"S_CMP_{_name}_I32", "i32 i32 -> scc", _compare)
    scalar(f"S_CMP_{_name}_U32", "u32 u32 -> scc", _compare)
    scalar(f"S_CMPK_{_name}_I32", "i32 i16 -> scc", lambda a, k, f=_compare: f(a, k.to(I32)))
    scalar(f"S_CMPK_{_name}_U32", "u32 u16 -> scc", lambda a, k, f=_compare: f(a, k.to(U32)))
scalar("S_CMP_EQ_U64", "u64 u64 -> scc", _COMPARE["EQ"])
scalar("S_CMP_LG_U64", "u64 u64 -> scc", _COMPARE["LG"])

scalar("S_MOVK_I32", "i16 -> i32", lambda k: k.to(I32))
scalar("S_CMOVK_I32", "i16 old scc -> i32", lambda k, old, c: select(c, k.to(I32), old))
scalar("S_ADDK_I32", "old i16 -> i32 scc", lambda old, k: _add_i32(old, k.to(I32)))
scalar("S_MULK_I32", "old i16 -> i32", lambda old, k: old * k.to(I32))
