"""Floats in scalar registers (RDNA 3.5, RDNA 4): what the vector ALU does, for one number of the wave.

In: operands. Out: the result, or SCC. Source: RDNA 4 ISA, 16.1 to 16.5 (SOP1, SOP2, SOPC), and 7.10 (V_S_*,
whatever EXEC is). How primitives round is MODE's matter, as for vectors. A result of 16 bits has zeros above it.
"""

from __future__ import annotations

from luthier_py.isa.semantics.algebra import F16, F32, I32, U32, ceil, floor, fma, high_half, rint, trunc
from luthier_py.isa.semantics.compare import FLOAT
from luthier_py.isa.semantics.conversions import pack_toward_zero
from luthier_py.isa.semantics.floats import greatest, least, maximum_in, minimum_in
from luthier_py.isa.semantics.meaning import Scalar, by_nan, declare, rows, scalar

for _t in "f32", "f16":
    _name, _one, _two = _t.upper(), f"{_t} -> {_t}", f"{_t} {_t} -> {_t}"
    scalar(f"S_ADD_{_name}", _two, lambda a, b: a + b)
    scalar(f"S_SUB_{_name}", _two, lambda a, b: a - b)
    scalar(f"S_MUL_{_name}", _two, lambda a, b: a * b)
    by_nan(f"S_MIN_{_name}", _two, minimum_in, Scalar)
    by_nan(f"S_MAX_{_name}", _two, maximum_in, Scalar)
    scalar(f"S_MINIMUM_{_name}", _two, least)
    scalar(f"S_MAXIMUM_{_name}", _two, greatest)
    scalar(f"S_FMAC_{_name}", f"{_t} {_t} old -> {_t}", fma)
    scalar(f"S_CEIL_{_name}", _one, ceil)
    scalar(f"S_FLOOR_{_name}", _one, floor)
    scalar(f"S_TRUNC_{_name}", _one, trunc)
    scalar(f"S_RNDNE_{_name}", _one, rint)
    for _relation, _compute in FLOAT.items():
        if _relation not in ("F", "TRU"):
            scalar(f"S_CMP_{_relation}_{_name}", f"{_t} {_t} -> scc", _compute)
scalar("S_FMAAK_F32 S_FMAMK_F32", "f32 f32 f32 -> f32", fma)
scalar("S_CVT_F32_I32", "i32 -> f32", lambda a: a.to(F32))
scalar("S_CVT_F32_U32", "u32 -> f32", lambda a: a.to(F32))
scalar("S_CVT_I32_F32", "f32 -> i32", lambda a: a.to(I32))
scalar("S_CVT_U32_F32", "f32 -> u32", lambda a: a.to(U32))
scalar("S_CVT_F16_F32", "f32 -> f16", lambda a: a.to(F16))
scalar("S_CVT_F32_F16", "f16 -> f32", lambda a: a.to(F32))
scalar("S_CVT_HI_F32_F16", "u32 -> f32", lambda a: high_half(a).as_(F16).to(F32))
scalar("S_CVT_PK_RTZ_F16_F32", "f32 f32 -> u32", pack_toward_zero)
for _name in "EXP", "LOG", "RCP", "RSQ", "SQRT":
    for _t in "F16", "F32":
        _vector = rows()[f"V_{_name}_{_t}"]
        declare(f"V_S_{_name}_{_t}", Scalar(_vector.signature, _vector.compute))
