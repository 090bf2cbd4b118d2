"""Integer operations of lanes, a second time: by their names, from the manuals' pseudo-code, in Python integers.

In: a name without V_. Out: a rule from registers' bits to results' bits (masked by whoever compares), and what it is
under clamp. Nothing here comes from isa.semantics. Sources: MI200 ISA, 12.7 to 12.12; CDNA 3 and 4 ISA, 12; RDNA 3
ISA, 16.7 to 16.12; RDNA 4 ISA, 16. Under clamp a sum is what it is exactly, brought into the range of its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

M16, M32 = 0xFFFF, 0xFFFFFFFF
Rule = Callable[..., Any]


@dataclass(frozen=True)
class Defined:
    """``rule`` and ``clamped`` take operands in the order of the instruction, then what it reads beside them."""

    rule: Rule
    clamped: Rule | None = None
    near: bool = False    # within one unit in the last place


def signed(bits: int, width: int) -> int:
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> width - 1 else bits


def clip(number: int, kind: str, width: int) -> int:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind == "I" else (0, (1 << width) - 1)
    return max(low, min(number, high))


def number(bits: int, kind: str, width: int) -> int:
    return signed(bits, width) if kind == "I" else bits & ((1 << width) - 1)


# On numbers of the type that the name ends with.
EXACT: dict[str, Rule] = {
    "ADD": lambda a, b: a + b, "ADD_NC": lambda a, b: a + b, "SUB": lambda a, b: a - b, "SUB_NC": lambda a, b: a - b,
    "SUBREV": lambda a, b: b - a, "ADD3": lambda a, b, c: a + b + c, "MUL": lambda a, b: a * b,
    "MUL_LO": lambda a, b: a * b, "MAD": lambda a, b, c: a * b + c, "MAD_LEGACY": lambda a, b, c: a * b + c,
    "MIN": min, "MAX": max, "MIN3": min, "MAX3": max, "MED3": lambda a, b, c: sorted((a, b, c))[1],
    "MAXMIN": lambda a, b, c: min(max(a, b), c), "MINMAX": lambda a, b, c: max(min(a, b), c),
    "LSHLREV": lambda a, b: b << a, "LSHRREV": lambda a, b: b >> a, "ASHRREV": lambda a, b: b >> a,
    "AND": lambda a, b: a & b, "OR": lambda a, b: a | b, "XOR": lambda a, b: a ^ b, "XNOR": lambda a, b: ~(a ^ b),
    "NOT": lambda a: ~a, "MOV": lambda a: a, "OR3": lambda a, b, c: a | b | c, "XOR3": lambda a, b, c: a ^ b ^ c,
    "AND_OR": lambda a, b, c: a & b | c, "BFI": lambda a, b, c: a & b | ~a & c, "XAD": lambda a, b, c: (a ^ b) + c,
    "CNDMASK": lambda a, b, bit: b if bit else a, "SWAP": lambda a, old: (a, old),
    "BFREV": lambda a: int(f"{a:032b}"[::-1], 2), "ACCVGPR_READ": lambda a: a, "ACCVGPR_WRITE": lambda a: a,
    "ACCVGPR_MOV": lambda a: a,
    "LSHL_ADD": lambda a, b, c: (a << b % 32) + c, "ADD_LSHL": lambda a, b, c: a + b << c % 32,
    "LSHL_OR": lambda a, b, c: a << b % 32 | c,
}  # fmt: skip
_SHIFTS = ("LSHLREV", "LSHRREV", "ASHRREV")
_NAME = re.compile(r"(PK_)?(.+?)_([UIB])(16|32|64)")


def by_type(name: str) -> Defined | None:
    found = _NAME.fullmatch(name)
    if found is None or found[2] not in EXACT or name == "LSHL_ADD_U64":
        return None
    packed, stem, kind, width = bool(found[1]), found[2], found[3], int(found[4])
    mask, exact = (1 << width) - 1, EXACT[stem]

    def one(saturates: bool, *bits: int) -> Any:
        given = [bit if stem == "CNDMASK" and k == 2 else number(bit, kind, width) for k, bit in enumerate(bits)]
        if stem in _SHIFTS:
            given[0] = bits[0] % width
        result = exact(*given)
        if isinstance(result, tuple):
            return result
        return (clip(result, kind, width) if saturates else result) & mask

    def whole(saturates: bool, *bits: int) -> Any:
        if not packed:
            return one(saturates, *bits)
        return sum(one(saturates, *(each >> at for each in bits)) << at for at in (0, 16))

    return Defined(lambda *bits: whole(False, *bits), lambda *bits: whole(True, *bits))


def _sum_then(name: str) -> Defined | None:
    """V_ADD_MAX and its like (gfx1250): the sum is clamped, and then compared."""
    found = re.fullmatch(r"(PK_)?ADD_(MAX|MIN)_([UI])(16|32)", name)
    if found is None:
        return None
    packed, pick, kind, width = found[1], {"MAX": max, "MIN": min}[found[2]], found[3], int(found[4])

    def one(saturates: bool, a: int, b: int, c: int) -> int:
        total = number(a, kind, width) + number(b, kind, width)
        total = clip(total, kind, width) if saturates else number(total, kind, width)
        return pick(total, number(c, kind, width)) & ((1 << width) - 1)

    def whole(saturates: bool, *bits: int) -> int:
        places = (0, 16) if packed else (0,)
        return sum(one(saturates, *(each >> at for each in bits)) << at for at in places)

    return Defined(lambda *bits: whole(False, *bits), lambda *bits: whole(True, *bits))


def _carried(exact: Rule) -> Defined:
    """With the carry, or borrow, out."""
    return Defined(lambda *x: (exact(*x) & M32, not 0 <= exact(*x) <= M32),
                   lambda *x: (clip(exact(*x), "U", 32), not 0 <= exact(*x) <= M32))


def _product(kind: str, bits: int, high: bool = False, addend: str = "") -> Defined:
    def exact(a: int, b: int, c: int = 0) -> int:
        product = number(a, kind, bits) * number(b, kind, bits)
        return product >> 32 if high else product + (number(c, kind, 32) if addend else 0)

    return Defined(exact, lambda *x: clip(exact(*x), kind, 32))


def _parts(word: int, bits: int, kind: str = "U", size: int = 32) -> list[int]:
    return [number(word >> at, kind, bits) for at in range(0, size, bits)]


def _sad(a: int, b: int, bits: int, masked: bool = False) -> int:
    return sum(abs(x - y) for x, y in zip(_parts(a, bits), _parts(b, bits), strict=True) if y or not masked)


def _four(masked: bool, width: int) -> Defined:
    """V_QSAD: of each four bytes in a row of the first source, from the lowest."""
    def rule(a: int, b: int, c: int, most: int = 0) -> int:
        sums = [_sad(a >> 8 * n, b, 8, masked) + (c >> width * n) % (1 << width) for n in range(4)]
        return sum((min(each, most) if most else each) % (1 << width) << width * n for n, each in enumerate(sums))

    return Defined(rule, lambda a, b, c: rule(a, b, c, (1 << width) - 1))


def _permuted(a: int, b: int, c: int) -> int:
    whole, result = a << 32 | b, 0
    for place in range(4):
        selector = c >> 8 * place & 0xFF
        if selector >= 13:
            byte = 0xFF
        elif selector == 12:
            byte = 0
        elif selector >= 8:  # signs of b's halves, then of a's
            byte = 0xFF if whole >> (15, 31, 47, 63)[selector - 8] & 1 else 0
        else:
            byte = whole >> 8 * selector & 0xFF
        result |= byte << 8 * place
    return result


def _same_as_sign(a: int) -> int:
    """How many bits from the top on are as the first; -1 where all are."""
    text = f"{a:032b}"
    return next((at for at in range(32) if text[at] != text[0]), -1)


def _field(a: int, offset: int, width: int) -> int:
    width %= 32
    part = signed(a, 32) >> offset % 32 & ((1 << width) - 1)
    return part - (1 << width) if width and part >> width - 1 else part


def _dot(bits: int, kinds: tuple[str, str], total: str) -> Defined:
    def exact(a: int, b: int, c: int) -> int:
        pairs = zip(_parts(a, bits, kinds[0]), _parts(b, bits, kinds[1]), strict=True)
        return sum(x * y for x, y in pairs) + number(c, total, 32)

    return Defined(exact, lambda *x: clip(exact(*x), total, 32))


def _looked_up(bits: int, upper: int) -> Defined:
    def rule(a: int, b: int, c: int) -> int:
        table = a << upper | b
        return sum((table >> bits * (c >> 4 * n & 15) & ((1 << bits) - 1)) << bits * n for n in range(16))

    return Defined(rule)


def _squeezed(kind: str, source: int, width: int, count: int) -> Defined:
    """Parts of a word, each brought into fewer bits of that kind."""
    return Defined(lambda a: sum((clip(part, kind, width) & ((1 << width) - 1)) << width * n for n, part in enumerate(
        _parts(a, source, "I" if kind == "I" or source == 16 else "U", source * count))))


def _two_of(kind: str, to: int, of: Callable[[int, int], int], signed_source: bool = True) -> Defined:
    def rule(a: int, b: int, c: int = 0) -> int:
        found = [clip(of(number(each, "I" if signed_source else "U", 32), c), kind, to) for each in (a, b)]
        return found[0] & ((1 << to) - 1) | (found[1] & ((1 << to) - 1)) << to

    return Defined(rule)


def _truth(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | c >> k & 1) & 1) << k for k in range(32))


NAMED: dict[str, Defined] = {
    "PK_MOV_B32": Defined(lambda a, b: (b & M32) << 32 | a & M32),
    "LSHL_ADD_U64": Defined(lambda a, b, c: (a << b % 8) + c),
    "BFM_B32": Defined(lambda a, b: (1 << a % 32) - 1 << b % 32),
    "BFE_U32": Defined(lambda a, b, c: a >> b % 32 & (1 << c % 32) - 1),
    "BFE_I32": Defined(_field),
    "MBCNT_LO_U32_B32": Defined(lambda a, b, lane: f"{a & (1 << min(lane, 32)) - 1:b}".count("1") + b),
    "MBCNT_HI_U32_B32": Defined(lambda a, b, lane: f"{a & (1 << max(lane - 32, 0)) - 1:b}".count("1") + b),
    "BCNT_U32_B32": Defined(lambda a, b: f"{a:b}".count("1") + b),
    "FFBH_U32": Defined(lambda a: 32 - a.bit_length() if a else -1),
    "FFBL_B32": Defined(lambda a: next((at for at in range(32) if a >> at & 1), -1)),
    "FFBH_I32": Defined(_same_as_sign),
    "ALIGNBIT_B32": Defined(lambda a, b, c: (a << 32 | b) >> c % 32),
    "ALIGNBYTE_B32": Defined(lambda a, b, c: (a << 32 | b) >> 8 * (c % 4)),
    "PERM_B32": Defined(_permuted),
    "ADD_CO_U32": _carried(lambda a, b: a + b), "ADDC_U32": _carried(lambda a, b, c: a + b + c),
    "SUB_CO_U32": _carried(lambda a, b: a - b), "SUBB_U32": _carried(lambda a, b, c: a - b - c),
    "SUBREV_CO_U32": _carried(lambda a, b: b - a), "SUBBREV_U32": _carried(lambda a, b, c: b - a - c),
    "MUL_HI_U32": _product("U", 32, high=True), "MUL_HI_I32": _product("I", 32, high=True),
    "MUL_I32_I24": _product("I", 24), "MUL_U32_U24": _product("U", 24),
    "MUL_HI_I32_I24": _product("I", 24, high=True), "MUL_HI_U32_U24": _product("U", 24, high=True),
    "MAD_I32_I24": _product("I", 24, addend="c"), "MAD_U32_U24": _product("U", 24, addend="c"),
    "MAD_I32_I16": _product("I", 16, addend="c"), "MAD_U32_U16": _product("U", 16, addend="c"),
    "MAD_U64_U32": Defined(lambda a, b, c: (a * b + c, (a * b + c) >> 64 & 1)),
    "MAD_I64_I32": Defined(lambda a, b, c: ((e := signed(a, 32) * signed(b, 32) + signed(c, 64)), e >> 64 & 1)),
    "MAD_NC_U64_U32": Defined(lambda a, b, c: a * b + c),
    "MAD_NC_I64_I32": Defined(lambda a, b, c: signed(a, 32) * signed(b, 32) + c),
    "SAD_U8": Defined(lambda a, b, c: _sad(a, b, 8) + c, lambda a, b, c: min(_sad(a, b, 8) + c, M32)),
    "SAD_HI_U8": Defined(lambda a, b, c: (_sad(a, b, 8) << 16) + c),
    "MSAD_U8": Defined(lambda a, b, c: _sad(a, b, 8, True) + c),
    "SAD_U16": Defined(lambda a, b, c: _sad(a, b, 16) + c, lambda a, b, c: min(_sad(a, b, 16) + c, M32)),
    "SAD_U32": Defined(lambda a, b, c: abs(a - b) + c, lambda a, b, c: min(abs(a - b) + c, M32)),
    "LERP_U8": Defined(lambda a, b, c: sum(
        ((a >> at & 255) + (b >> at & 255) + (c >> at & 1) >> 1) << at for at in (0, 8, 16, 24))),
    "QSAD_PK_U16_U8": _four(False, 16), "MQSAD_PK_U16_U8": _four(True, 16), "MQSAD_U32_U8": _four(True, 32),
    "CVT_PK_U16_U32": _two_of("U", 16, lambda x, c: x, signed_source=False),
    "CVT_PK_I16_I32": _two_of("I", 16, lambda x, c: x),
    "ASHR_PK_I8_I32": _two_of("I", 8, lambda x, c: x >> c % 32),
    "ASHR_PK_U8_I32": _two_of("U", 8, lambda x, c: x >> c % 32),
    "SAT_PK_U8_I16": _squeezed("U", 16, 8, 2), "SAT_PK4_I4_I8": _squeezed("I", 8, 4, 4),
    "SAT_PK4_U4_U8": _squeezed("U", 8, 4, 4),
    "CVT_I32_I16": Defined(lambda a: signed(a, 16)), "CVT_U32_U16": Defined(lambda a: a % 65536),
    "PRNG_B32": Defined(lambda a: a << 1 ^ (0xC5 if a >> 31 else 0)),
    "DOT2_I32_I16": _dot(16, ("I", "I"), "I"), "DOT2C_I32_I16": _dot(16, ("I", "I"), "I"),
    "DOT2_U32_U16": _dot(16, ("U", "U"), "U"), "DOT4_I32_I8": _dot(8, ("I", "I"), "I"),
    "DOT4C_I32_I8": _dot(8, ("I", "I"), "I"), "DOT4_U32_U8": _dot(8, ("U", "U"), "U"),
    "DOT8_I32_I4": _dot(4, ("I", "I"), "I"), "DOT8C_I32_I4": _dot(4, ("I", "I"), "I"),
    "DOT8_U32_U4": _dot(4, ("U", "U"), "U"),
    "PERM_PK16_B4_U4": _looked_up(4, 32), "PERM_PK16_B6_U4": _looked_up(6, 64), "PERM_PK16_B8_U4": _looked_up(8, 64),
}  # fmt: skip


def _by_fields(name: str, fields: dict[str, int]) -> Defined | None:
    """Whose tables, and signs of sources, are in the instruction."""
    if name == "BITOP2_B32":
        return Defined(lambda a, b: _truth(a, b, 0, fields["bitop3"]))
    if name.startswith("BITOP3"):
        return Defined(lambda a, b, c: _truth(a, b, c, fields["bitop3"]))
    if name not in ("DOT4_I32_IU8", "DOT8_I32_IU4"):
        return None
    first, second = ("I" if fields[f"src{n}_modifiers"] & 1 else "U" for n in (0, 1))  # NEG_LO
    return _dot(int(name[-1]), (first, second), "I")


def integer_rule(name: str, fields: dict[str, int]) -> Defined | None:
    return NAMED.get(name) or _by_fields(name, fields) or _sum_then(name) or by_type(name)
