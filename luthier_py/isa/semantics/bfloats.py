"""Arithmetic on bfloat16 (gfx1250).

In: one lane's operands. Out: results before clamp. Sources: LLVM, VOP3PInstructions.td and VOP1Instructions.td (which
operations there are, and their modifiers); ROCm's hip-fpsan (tests/amdgcn_bf16_trans_test.cpp). Everything is computed
in f32, which a bf16 is the upper half of, and rounded to the nearest even at the end; products and sums are right so. A
fused multiplication and addition is rounded to f32 first. Denormals are not flushed, whatever MODE says: no source says
which of its fields is theirs; of the MIX instructions, whose sources are f32 or become it, f32's. Clamp is to 0 and 1,
and NaN to 0.
"""

from __future__ import annotations

from luthier_py.base.records import replace
from luthier_py.isa.semantics.algebra import F32, Prim, Value, fma, is_nan, select, sqrt, unary
from luthier_py.isa.semantics.cdna4 import from_bf16, to_bf16
from luthier_py.isa.semantics.floats import maximum_in, minimum_in
from luthier_py.isa.semantics.meaning import PLAIN, Compute, Lanes, declare, lanes, signature

_NUMBERS_WIN = replace(PLAIN, numbers_win=True)  # as everywhere on gfx12


def _round_to_bf16(value: Value) -> Value:
    """A NaN is always the same one: which, no source says."""
    return select(is_nan(value), 0x7FC0, to_bf16(value))


def _clamp_to_bf16(value: Value) -> Value:
    return _round_to_bf16(select(value > 0.0, select(value < 1.0, value, 1.0), 0.0))


def _bfloats(name: str, sources: int, compute: Compute, packed: bool = True) -> None:
    word = "2u16" if packed else "u16"

    def plain(*given: Value) -> Value:
        return _round_to_bf16(compute(*map(from_bf16, given)))

    def compute_clamped(*given: Value) -> Value:
        return _clamp_to_bf16(compute(*map(from_bf16, given)))

    declare(name, Lanes(signature(f"{' '.join([word] * sources)} -> {word}"), plain, compute_clamped, flushes=False))


_bfloats("V_PK_ADD_BF16", 2, lambda a, b: a + b)
_bfloats("V_PK_MUL_BF16", 2, lambda a, b: a * b)
_bfloats("V_PK_FMA_BF16", 3, fma)
_bfloats("V_PK_MIN_NUM_BF16", 2, minimum_in(_NUMBERS_WIN))
_bfloats("V_PK_MAX_NUM_BF16", 2, maximum_in(_NUMBERS_WIN))
_bfloats("V_RCP_BF16", 1, lambda a: 1.0 / a, packed=False)
_bfloats("V_SQRT_BF16", 1, sqrt, packed=False)
_bfloats("V_RSQ_BF16", 1, lambda a: 1.0 / sqrt(a), packed=False)
for _name, _prim in (("EXP", Prim.EXP2), ("LOG", Prim.LOG2), ("SIN", Prim.SIN), ("COS", Prim.COS),
                     ("TANH", Prim.TANH)):
    _bfloats(f"V_{_name}_BF16", 1, lambda a, p=_prim: unary(p, a), packed=False)
lanes("V_FMA_MIX_F32_BF16", "bmix bmix bmix -> f32", fma)
declare(
    "V_FMA_MIXLO_BF16 V_FMA_MIXHI_BF16",
    Lanes(signature("bmix bmix bmix -> u16"), lambda a, b, c: _round_to_bf16(fma(a, b, c)), lambda a, b,
          c: _clamp_to_bf16(fma(a, b, c))),
)
assert F32.mantissa_bits > 2 * 8  # so that a sum of two, rounded to f32 and then to bf16, is rounded but once
