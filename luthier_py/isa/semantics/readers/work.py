"""What an instruction computes: operations on floats, and the types of its results.

In: an instruction. Out: numbers and words. Invariant: it is what the meaning says: an addition, subtraction,
multiplication, division, root, power, logarithm, sine or cosine of floats is one operation and a fused
multiplication and addition is two; conversions, comparisons, minima and rounding are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from luthier_py.isa.encoding.instruction import Inst, OpInfo
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import Kind, Prim, Type, Value
from luthier_py.isa.semantics.lds import LoadTwo
from luthier_py.isa.semantics.matrix import BITS, WAVE, Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.meaning import Dual, Lanes, Meaning, Scalar, SignaturePart, Variants
from luthier_py.isa.semantics.memory import Atomic, Load, Modify, ScalarLoad
from luthier_py.isa.semantics.readers.binding import width
from luthier_py.isa.semantics.wave_matrices import WaveMatrix, WaveMixedMatrix

_COSTS = {
    Prim.ADD: 1, Prim.SUB: 1, Prim.MUL: 1, Prim.DIV: 1, Prim.FMA: 2, Prim.SQRT: 1, Prim.EXP2: 1, Prim.LOG2: 1,
    Prim.SIN: 1, Prim.COS: 1, Prim.TANH: 1,
}


_EXACT = ("V_CVT_", "V_FREXP_", "V_LDEXP_", "V_FRACT_", "V_TRIG_PREOP_", "V_DIV_SCALE_", "V_CUBEMA_")
"""Conversions, parts of numbers and scaling by powers of two, whose meanings compute with floats."""
_FUSED = ("V_DIV_FMAS_", "V_FMA_LEGACY_", "V_FMAC_LEGACY_")
"""Fused multiplications and additions whose meanings have other operations beside."""


class _Counted:
    """Ops that count those of floats, by type (mutable)."""

    def __init__(self) -> None:
        self.operations: Counter[str] = Counter()

    def constant(self, type: Type, value: int | float) -> Value:
        return Value(self, type, None)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        if type.kind is Kind.FLOAT and prim in _COSTS:
            self.operations[str(type)] += _COSTS[prim]
        return Value(self, type, None)


def flops(op: OpInfo) -> int:
    """Operations on floats in each lane; of a scalar instruction, in the wave. What matrix instructions do is shared
    out among all lanes."""
    return sum(flops_by_type(op).values())


def flops_by_type(op: OpInfo) -> Mapping[str, int]:
    """The same by the type that is computed in: f16, f32, f64, and of matrix instructions ``matrix`` and the type of
    A's elements. What converts its sources first (v_fma_mix, v_dot2_f32_bf16) computes in the wider type."""
    row, own = _typical(op), find_meaning(op)
    mixed = "f8f6f4" if isinstance(own, MixedMatrix | WaveMixedMatrix) else ""
    if isinstance(row, SparseMatrix):
        return _of_matrix(row.matrix, 2)
    if isinstance(row, Matrix):
        return _of_matrix(row, 1, mixed)
    if isinstance(row, WaveMatrix):
        count = 0 if row.addend == "i32" else 2 * (row.depth >> row.sparse) * _results(op, row)
        return {f"matrix {mixed or row.kinds[0]}": count} if count else {}
    if isinstance(row, Atomic):
        packed = {"p": "f16", "b": "bf16"}.get(row.kind)
        adds = row.modify is Modify.ADD and (packed or row.kind == "f")
        return {packed or f"f{row.bits}": 2 if packed else 1} if adds else {}
    if isinstance(row, Dual):
        return sum((Counter(_operations(_alike(each))) for each in row.rows), Counter())
    if not isinstance(row, (Lanes, Scalar)) or op.base.startswith(_EXACT):
        return {}
    return {type: 2 for type in _operations(row)} if op.base.startswith(_FUSED) else _operations(row)


def once_in_a_wave(op: OpInfo) -> bool:
    """Whether what it computes is one value for the wave, whatever lanes are active."""
    return isinstance(_typical(op), Scalar)


def _of_matrix(row: Matrix, sparse: int, mixed: str = "") -> Mapping[str, int]:
    count = 2 * row.rows * row.columns * row.depth * row.blocks // WAVE // sparse
    return {} if row.kind == "i8" else {f"matrix {mixed or row.kind}": count}


def _results(op: OpInfo, row: WaveMatrix) -> int:
    """Elements of D in a lane. Of 16 bits there are two in a register, but where A's rows lie whole in a lane."""
    dwords = {operand.name: operand.dwords for operand in op.operands}
    packed = BITS[row.outcome] == 16 and 32 * dwords["src0"] < BITS[row.kinds[0]] * row.depth
    return dwords["vdst"] << packed


@cache
def _typical(op: OpInfo) -> Meaning:
    row = find_meaning(op)
    if isinstance(row, MixedMatrix | WaveMixedMatrix):
        return row.of(0, 0)
    return _alike(row)


def _alike(row: Meaning) -> Any:
    return row.typical if isinstance(row, Variants) else row


@cache
def _operations(row: Lanes | Scalar) -> Mapping[str, int]:
    count, signature = _Counted(), row.signature
    packed = any(slot.count > 1 for slot in signature.results)
    given = [_make_source(count, slot, width(row), packed) for slot in signature.sources]
    row.compute(*given)
    times = max((slot.count for slot in signature.results), default=1)
    return {type: times * operations for type, operations in count.operations.items()}


def _make_source(count: _Counted, slot: SignaturePart, width: Type, packed: bool) -> object:
    """An operand; of packed ones a function that gives no packed result gets all elements."""
    type = slot.type if slot.type.bits else width
    if slot.count > 1 and not packed:
        return tuple(Value(count, type, None) for _ in range(slot.count))
    return Value(count, type, None)


def result_types(inst: Inst) -> tuple[str, ...]:
    """The types of its results, in the words of the semantics: u32, i16, f64 ...; 2f16 of packed ones, b of masks with
    a bit for each lane, scc. Of loads the bits that come (u8, u128). Nothing where that is not known."""
    row = _typical(inst.op)
    if isinstance(row, Lanes | Scalar):
        return tuple(slot.name for slot in row.signature.results)
    row = row.matrix if isinstance(row, SparseMatrix) else row
    if isinstance(row, Matrix):
        return (f"{row.results}{row.outcome}",)
    if isinstance(row, WaveMatrix):
        return (f"{_results(inst.op, row)}{row.outcome}",)
    if isinstance(row, Load):
        return (f"{'i' if row.signed else 'u'}{row.bits * row.dwords}",)
    if isinstance(row, ScalarLoad):
        return (f"{'i' if row.signed else 'u'}{row.bits * row.dwords}",)
    return (f"2u{32 * row.dwords}",) if isinstance(row, LoadTwo) else ()
