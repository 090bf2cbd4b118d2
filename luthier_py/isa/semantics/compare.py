"""Vector comparisons, V_CMP and V_CMPX, and V_CMP_CLASS.

In: one lane's operands. Out: the lane's bit; V_CMPX writes it to EXEC too.
Source: AMD Instinct MI200 ISA, 12.10.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.isa.semantics.algebra import Value, is_nan, is_unordered
from luthier_py.isa.semantics.meaning import lanes

Compare = Callable[[Value, Value], Value]


def _never(a: Value, b: Value) -> Value:
    return a.lift(0).ne(a.lift(0))


def _always(a: Value, b: Value) -> Value:
    return a.lift(0).eq(a.lift(0))


_INTEGER: dict[str, Compare] = {
    "F": _never, "LT": lambda a, b: a < b, "EQ": lambda a, b: a.eq(b), "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b, "NE": lambda a, b: a.ne(b), "GE": lambda a, b: a >= b, "T": _always,
}  # fmt: skip
FLOAT: dict[str, Compare] = {
    "F": _never, "LT": lambda a, b: a < b, "EQ": lambda a, b: a.eq(b), "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b, "LG": lambda a, b: (a < b) | (a > b), "GE": lambda a, b: a >= b,
    "O": lambda a, b: ~is_unordered(a, b), "U": is_unordered, "NGE": lambda a, b: ~(a >= b),
    "NLG": lambda a, b: ~((a < b) | (a > b)), "NGT": lambda a, b: ~(a > b), "NLE": lambda a, b: ~(a <= b),
    "NEQ": lambda a, b: a.ne(b), "NLT": lambda a, b: ~(a < b), "TRU": _always,
}  # fmt: skip


def _declare(name: str, sources: str, compute: Compare, flushes: bool = True) -> None:
    lanes(f"V_CMP_{name}", f"{sources} -> b", compute, flushes=flushes)
    lanes(f"V_CMPX_{name}", f"{sources} -> b exec", lambda a, b: (bit := compute(a, b), bit), flushes=flushes)


def _class(a: Value, wanted: Value) -> Value:
    """Whether ``a`` is of a class of the mask: sNaN, qNaN, -inf, -normal, -denormal, -0, +0, ... +inf."""
    mantissa = a.type.mantissa_bits
    bits = a.as_(a.type.unsigned)
    negative = (bits >> a.type.bits - 1).ne(0)
    magnitude = abs(a)
    infinite, zero = magnitude.eq(float("inf")), a.eq(0.0)
    normal = magnitude.as_(a.type.unsigned) >= (1 << mantissa)
    quiet = ((bits >> mantissa - 1) & 1).ne(0)
    number = ~is_nan(a)
    classes = (
        is_nan(a) & ~quiet, is_nan(a) & quiet, negative & infinite,
        negative & normal & ~infinite & number, negative & ~normal & ~zero, negative & zero,
        ~negative & zero, ~negative & ~normal & ~zero, ~negative & normal & ~infinite & number, ~negative & infinite,
    )
    result = _never(wanted, wanted)
    for position, is_class in enumerate(classes):
        result = result | (is_class & ((wanted >> position) & 1).ne(0))
    return result


for _type in "u16", "i16", "u32", "i32", "u64", "i64":
    for _name, _compute in _INTEGER.items():
        _declare(f"{_name}_{_type.upper()}", f"{_type} {_type}", _compute)
for _type in "f16", "f32", "f64":
    for _name, _compute in FLOAT.items():
        _declare(f"{_name}_{_type.upper()}", f"{_type} {_type}", _compute)
    _declare(f"CLASS_{_type.upper()}", f"{_type} {'u16' if _type == 'f16' else 'u32'}", _class,
             flushes=False)  # it distinguishes denormals whatever MODE says: it does not read MODE
