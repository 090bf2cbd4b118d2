"""What an instruction computes: operations on floats, and the types of its results.

In: an instruction. Out: numbers and words. Invariant: it is what the meaning says: an addition, subtraction,
multiplication, division, root, power, logarithm, sine or cosine of floats is one operation and a fused
multiplication and addition is two; conversions, comparisons, minima and rounding are none.
"""

from __future__ import annotations

from functools import cache

from luthier_py.isa.instruction import Inst, OpInfo
from luthier_py.isa.semantics import meaning
from luthier_py.isa.semantics.algebra import Kind, Prim, Type, Value
from luthier_py.isa.semantics.lds import LoadTwo
from luthier_py.isa.semantics.matrix import BITS, WAVE, Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.meaning import Lanes, Meaning, Scalar, SignaturePart, Variants
from luthier_py.isa.semantics.memory import Atomic, Load, Modify, ScalarLoad
from luthier_py.isa.semantics.readers.binding import width
from luthier_py.isa.semantics.wave_matrices import WaveMatrix, WaveMixedMatrix

_COSTS = {
    Prim.ADD: 1, Prim.SUB: 1, Prim.MUL: 1, Prim.DIV: 1, Prim.FMA: 2, Prim.SQRT: 1, Prim.EXP2: 1, Prim.LOG2: 1,
    Prim.SIN: 1, Prim.COS: 1, Prim.TANH: 1,
}


class _Counted:
    """Ops that count those of floats (mutable)."""

    def __init__(self) -> None:
        self.operations = 0

    def constant(self, type: Type, value: int | float) -> Value:
        return Value(self, type, None)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        self.operations += _COSTS.get(prim, 0) if type.kind is Kind.FLOAT else 0
        return Value(self, type, None)


def flops(op: OpInfo) -> int:
    """Operations on floats in each lane; of a scalar instruction, in the wave. What matrix instructions do is shared
    out among all lanes."""
    row = _typical(op)
    if isinstance(row, SparseMatrix):
        return _of_matrix(row.matrix) // 2
    if isinstance(row, Matrix):
        return _of_matrix(row)
    if isinstance(row, WaveMatrix):
        return 0 if row.addend == "i32" else 2 * (row.depth >> row.sparse) * _results(op, row)
    if isinstance(row, Atomic):
        return (1 + (row.kind == "p")) * (row.modify is Modify.ADD and row.kind in "fp")
    return _operations(row) if isinstance(row, (Lanes, Scalar)) else 0


def _of_matrix(row: Matrix) -> int:
    return 0 if row.kind == "i8" else 2 * row.rows * row.columns * row.depth * row.blocks // WAVE


def _results(op: OpInfo, row: WaveMatrix) -> int:
    """Elements of D in a lane. Of 16 bits there are two in a register, but where A's rows lie whole in a lane."""
    dwords = {operand.name: operand.dwords for operand in op.operands}
    packed = BITS[row.outcome] == 16 and 32 * dwords["src0"] < BITS[row.kinds[0]] * row.depth
    return dwords["vdst"] << packed


@cache
def _typical(op: OpInfo) -> Meaning:
    row = meaning(op)
    if isinstance(row, MixedMatrix | WaveMixedMatrix):
        return row.of(0, 0)
    return row.typical if isinstance(row, Variants) else row


@cache
def _operations(row: Lanes | Scalar) -> int:
    count, signature = _Counted(), row.signature
    packed = any(slot.count > 1 for slot in signature.results)
    given = [_given(count, slot, width(row), packed) for slot in signature.sources]
    row.compute(*given)
    return count.operations * max((slot.count for slot in signature.results), default=1)


def _given(count: _Counted, slot: SignaturePart, width: Type, packed: bool) -> object:
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
