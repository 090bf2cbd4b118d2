"""Operations of the scalar ALU, a second time: from the manuals' pseudo-code, in Python integers.

In: a name without S_. Out: a rule as in `defined_integers`; the last result is SCC where there is one. Sources: MI200
ISA, 12.1 to 12.4; RDNA 3 ISA, 16.1 to 16.4.
"""

from __future__ import annotations

import re
from typing import Any

from reference.defined_integers import M32, Defined, Rule, clip, number, signed

_LOGIC: dict[str, Rule] = {
    "AND": lambda a, b: a & b, "OR": lambda a, b: a | b, "XOR": lambda a, b: a ^ b, "NAND": lambda a, b: ~(a & b),
    "NOR": lambda a, b: ~(a | b), "XNOR": lambda a, b: ~(a ^ b), "ANDN2": lambda a, b: a & ~b,
    "ORN2": lambda a, b: a | ~b, "ANDN1": lambda a, b: ~a & b, "ORN1": lambda a, b: ~a | b,
}  # fmt: skip
_RELATIONS: dict[str, Rule] = {
    "EQ": lambda a, b: a == b, "LG": lambda a, b: a != b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
    "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b,
}  # fmt: skip


def _quads(a: int, width: int) -> list[bool]:
    return [bool(a >> at & 15) for at in range(0, width, 4)]


def _bits(a: int, width: int) -> str:
    """The lowest first."""
    return f"{a:0{width}b}"[::-1]


def _sign_run(a: int, width: int) -> int:
    text = _bits(a, width)[::-1]
    return next((at for at in range(width) if text[at] != text[0]), -1)


def _field(a: int, b: int, kind: str, width: int) -> int:
    """Offset in [4:0] ([5:0] of 64 bits), width in [22:16]."""
    offset, size = b % width, b >> 16 & 127
    part = (number(a, kind, width) >> offset) & ((1 << size) - 1)
    if kind == "I" and size and part >> size - 1:
        part -= 1 << size
    return part & ((1 << width) - 1)


# Of any width: (a, b, width) -> result; the second says whether SCC tells a result that is not 0.
_SIZED: dict[str, tuple[Rule, bool]] = {
    "LSHL": (lambda a, b, w: a << b % w, True), "LSHR": (lambda a, b, w: a >> b % w, True),
    "ASHR": (lambda a, b, w: signed(a, w) >> b % w, True),
    "BFM": (lambda a, b, w: (1 << a % w) - 1 << b % w, False),
    "MOV": (lambda a, w: a, False), "NOT": (lambda a, w: ~a, True),
    "CMOV": (lambda a, old, scc, w: a if scc else old, False), "CSELECT": (lambda a, b, scc, w: a if scc else b, False),
    "BREV": (lambda a, w: int(_bits(a, w), 2), False),
    "BCNT0_I32": (lambda a, w: _bits(a, w).count("0"), True), "BCNT1_I32": (lambda a, w: _bits(a, w).count("1"), True),
    "FF0_I32": (lambda a, w: _bits(a, w).find("0"), False), "FF1_I32": (lambda a, w: _bits(a, w).find("1"), False),
    "FLBIT_I32": (lambda a, w: _bits(a, w)[::-1].find("1"), False),
    "BITSET0": (lambda a, old, w: old & ~(1 << a % w), False), "BITSET1": (lambda a, old, w: old | 1 << a % w, False),
    "WQM": (lambda a, w: sum(15 << 4 * n for n, any_of in enumerate(_quads(a, w)) if any_of), True),
    "QUADMASK": (lambda a, w: sum(1 << n for n, any_of in enumerate(_quads(a, w)) if any_of), True),
}  # fmt: skip
_NARROW = ("BCNT0_I32", "BCNT1_I32", "FF0_I32", "FF1_I32", "FLBIT_I32")


def _told(rule: Rule, width: int) -> Defined:
    """With SCC: not 0."""
    def both(*x: int) -> tuple[int, bool]:
        result = rule(*x) & ((1 << width) - 1)
        return result, result != 0

    return Defined(both)


def _carried(exact: Rule) -> Defined:
    return Defined(lambda *x: (exact(*x), not 0 <= exact(*x) <= M32))


def _overflowing(exact: Rule) -> Defined:
    def rule(*x: int) -> tuple[int, bool]:
        result = exact(*(signed(each, 32) for each in x))
        return result, clip(result, "I", 32) != result

    return Defined(rule)


def _picked(pick: Rule, kind: str, first: Rule) -> Defined:
    def rule(a: int, b: int) -> tuple[int, bool]:
        x, y = number(a, kind, 32), number(b, kind, 32)
        return pick(x, y), first(x, y)

    return Defined(rule)


def _halves(low: int, high: int) -> Defined:
    return Defined(lambda a, b: (a >> low & 0xFFFF) | (b >> high & 0xFFFF) << 16)


NAMED: dict[str, Defined] = {
    "ADD_U32": _carried(lambda a, b: a + b), "SUB_U32": _carried(lambda a, b: a - b),
    "ADDC_U32": _carried(lambda a, b, scc: a + b + scc), "SUBB_U32": _carried(lambda a, b, scc: a - b - scc),
    "ADD_I32": _overflowing(lambda a, b: a + b), "SUB_I32": _overflowing(lambda a, b: a - b),
    "ADD_U64": Defined(lambda a, b: a + b), "SUB_U64": Defined(lambda a, b: a - b),
    "MUL_U64": Defined(lambda a, b: a * b), "MUL_I32": Defined(lambda a, b: a * b),
    "MUL_HI_U32": Defined(lambda a, b: a * b >> 32),
    "MUL_HI_I32": Defined(lambda a, b: signed(a, 32) * signed(b, 32) >> 32),
    **{f"LSHL{n}_ADD_U32": _carried(lambda a, b, n=n: (a << n) + b) for n in (1, 2, 3, 4)},
    "MIN_I32": _picked(min, "I", lambda a, b: a < b), "MIN_U32": _picked(min, "U", lambda a, b: a < b),
    "MAX_I32": _picked(max, "I", lambda a, b: a > b), "MAX_U32": _picked(max, "U", lambda a, b: a > b),
    "ABS_I32": _told(lambda a: abs(signed(a, 32)), 32),
    "ABSDIFF_I32": _told(lambda a, b: abs(signed(signed(a, 32) - signed(b, 32), 32)), 32),
    "BITREPLICATE_B64_B32": Defined(lambda a: int("".join(bit * 2 for bit in f"{a:032b}"), 2)),
    "SEXT_I32_I8": Defined(lambda a: signed(a, 8)), "SEXT_I32_I16": Defined(lambda a: signed(a, 16)),
    "PACK_LL_B32_B16": _halves(0, 0), "PACK_LH_B32_B16": _halves(0, 16), "PACK_HH_B32_B16": _halves(16, 16),
    "PACK_HL_B32_B16": _halves(16, 0),
    "MOVK_I32": Defined(lambda k: signed(k, 16)),
    "CMOVK_I32": Defined(lambda k, old, scc: signed(k, 16) if scc else old),
    "ADDK_I32": _overflowing(lambda old, k: old + signed(k, 16)),
    "MULK_I32": Defined(lambda old, k: old * signed(k, 16)),
    "FLBIT_I32": Defined(lambda a: _sign_run(a, 32)), "FLBIT_I32_I64": Defined(lambda a: _sign_run(a, 64)),
}  # fmt: skip


def _logic(name: str) -> Defined | None:
    found = re.fullmatch(r"([A-Z12]+)(_SAVEEXEC|_WREXEC)?_B(32|64)", name)
    if found is None or found[1] not in _LOGIC:
        return None
    operation, mask = _LOGIC[found[1]], (1 << int(found[3])) - 1

    def rule(a: int, b: int) -> tuple[Any, ...]:
        result = operation(a, b) & mask
        return {None: (result, result != 0), "_SAVEEXEC": (b, result, result != 0),
                "_WREXEC": (result, result, result != 0)}[found[2]]

    return Defined(rule)


def _compared(name: str) -> Defined | None:
    found = re.fullmatch(r"CMP(K?)_(EQ|LG|GT|GE|LT|LE)_([IU])(32|64)", name)
    if found is not None:
        relation, kind, width = _RELATIONS[found[2]], found[3], int(found[4])
        second = 16 if found[1] else width
        return Defined(lambda a, b: relation(number(a, kind, width), number(b, kind, second)))
    found = re.fullmatch(r"BITCMP([01])_B(32|64)", name)
    if found is None:
        return None
    wanted, width = int(found[1]), int(found[2])
    return Defined(lambda a, b: (a >> b % width & 1) == wanted)


def scalar_rule(name: str) -> Defined | None:
    if name in NAMED:
        return NAMED[name]
    found = re.fullmatch(r"(.+?)_[BI](32|64)", name)
    if found is not None and found[1] in _SIZED:
        (rule, tells), width = _SIZED[found[1]], int(found[2])
        result = 32 if found[1] in _NARROW else width
        return _told(lambda *x: rule(*x, width), result) if tells else Defined(lambda *x: rule(*x, width))
    found = re.fullmatch(r"BFE_([IU])(32|64)", name)
    if found is not None:
        kind, width = found[1], int(found[2])
        return _told(lambda a, b: _field(a, b, kind, width), width)
    return _logic(name) or _compared(name)
