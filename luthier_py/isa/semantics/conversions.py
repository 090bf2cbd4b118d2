"""Conversions between floats and integers of all sizes.

In: one lane's operands, with abs and neg applied. Out: the result before clamp and omod.
Source: AMD Instinct MI200 ISA, 12.8 and 12.9.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.isa.semantics.algebra import (
    F16,
    F32,
    F64,
    I16,
    I32,
    U8,
    U16,
    U32,
    Type,
    Value,
    concat,
    floor,
    is_nan,
    rint,
    select,
)
from luthier_py.isa.semantics.meaning import lanes


def toward_zero_f16(a: Value) -> Value:
    """f32 to f16, rounded toward zero."""
    nearest = a.to(F16)
    away = abs(nearest.to(F32)) > abs(a)
    return select(away, nearest.as_(U16) - 1, nearest.as_(U16)).as_(F16)


def _convert_to_norm(a: Value, type: Type) -> Value:
    """-1..1 (0..1) to the integers of ``type``."""
    signed = type == type.signed
    top = float((1 << type.bits - signed) - 1)
    low = -1.0 if signed else 0.0
    wide = a.to(F32)
    clamped = select(wide > low, select(wide < 1.0, wide, 1.0), select(is_nan(wide), wide.lift(0.0), low))
    return rint(clamped * top).to(type)


def _pack(a: Value, b: Value) -> Value:
    return concat(b.as_(U16), a.as_(U16))


def pack_toward_zero(a: Value, b: Value) -> Value:
    """Two f32 as f16, the first in the low half."""
    return _pack(toward_zero_f16(a), toward_zero_f16(b))


def _to_nearest(a: Value) -> Value:
    """Halves upwards, whatever MODE says, and exactly: a + 0.5 would be rounded (measured on gfx1201: rocm-systems,
    rocjitsu, conversion.h)."""
    below = floor(a)
    return below.to(I32) + select(a - below >= 0.5, a.ops.constant(I32, 1), 0)


def _byte_to_float(number: int) -> Callable[[Value], Value]:
    return lambda a: ((a >> 8 * number) & 0xFF).to(F32)


def _insert_byte(a: Value, position: Value, word: Value) -> Value:
    """Rounded by MODE's rounding of f32, unlike other conversions to integers (Mesa, ACO: instr_default_needs)."""
    place = (position & 3) * 8
    return (word & ~(0xFF << place)) | (rint(a).to(U8).to(U32) << place)


for _name, _type in (("I32", I32), ("U32", U32)):
    lanes(f"V_CVT_{_name}_F32", f"f32 -> {_name.lower()}", lambda a, t=_type: a.to(t))
    lanes(f"V_CVT_{_name}_F64", f"f64 -> {_name.lower()}", lambda a, t=_type: a.to(t))
    lanes(f"V_CVT_F32_{_name}", f"{_name.lower()} -> f32", lambda a: a.to(F32))
    lanes(f"V_CVT_F64_{_name}", f"{_name.lower()} -> f64", lambda a: a.to(F64))
for _name, _type in (("I16", I16), ("U16", U16)):
    lanes(f"V_CVT_{_name}_F16", f"f16 -> {_name.lower()}", lambda a, t=_type: a.to(t))
    lanes(f"V_CVT_F16_{_name}", f"{_name.lower()} -> f16", lambda a: a.to(F32).to(F16))
    lanes(f"V_CVT_NORM_{_name}_F16", f"f16 -> {_name.lower()}", lambda a, t=_type: _convert_to_norm(a, t))
    for _source in "f32", "f16":
        lanes(f"V_CVT_PKNORM_{_name}_{_source.upper()}", f"{_source} {_source} -> u32",
              lambda a, b, t=_type: _pack(_convert_to_norm(a, t), _convert_to_norm(b, t)))
for _number in range(4):
    lanes(f"V_CVT_F32_UBYTE{_number}", "u32 -> f32", _byte_to_float(_number))
lanes("V_CVT_F32_F16", "f16 -> f32", lambda a: a.to(F32))
lanes("V_CVT_F16_F32", "f32 -> f16", lambda a: a.to(F16))
lanes("V_CVT_F32_F64", "f64 -> f32", lambda a: a.to(F32))
lanes("V_CVT_F64_F32", "f32 -> f64", lambda a: a.to(F64))
lanes("V_CVT_RPI_I32_F32", "f32 -> i32", _to_nearest)
lanes("V_CVT_FLR_I32_F32", "f32 -> i32", lambda a: floor(a).to(I32))
lanes("V_CVT_OFF_F32_I4", "u32 -> f32", lambda a: ((a << 28).as_(I32) >> 28).to(F32) * 0.0625)
lanes("V_CVT_PKRTZ_F16_F32", "f32 f32 -> u32", pack_toward_zero)
lanes("V_CVT_PK_U8_F32", "f32 u32 u32 -> u32", _insert_byte)
lanes("V_CVT_PKACCUM_U8_F32", "f32 u32 old -> u32", _insert_byte)
lanes("V_PACK_B32_F16", "f16 f16 -> u32", _pack)
