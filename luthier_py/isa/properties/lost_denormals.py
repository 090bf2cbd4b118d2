"""Operands whose denormals an instruction takes as zeros on a target, whatever MODE says, and keeps on others.

In: an instruction and a target. Out: the format of each such operand's elements. Sources: PyTorch, notes on numerical
accuracy (MI200); LLVM, pull request 205101. Invariant: it is what the emulator computes, since both read it here: of
matrices by ``loses_products``, of dot products in their meaning.
"""

from __future__ import annotations

from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.model.target import Target
from luthier_py.isa.properties.float_results import FloatFormat
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.matrix import BroadcastMatrix, Matrix, SparseMatrix
from luthier_py.isa.semantics.meaning import Lanes, Situation, Variants
from luthier_py.isa.semantics.readers.binding import sources

_FORMATS = {"f16": FloatFormat.F16, "bf16": FloatFormat.BF16, "f32": FloatFormat.F32}


def loses_products(target: Target, kind: str) -> bool:
    """Whether matrix instructions with elements of this kind take and give denormals as zeros."""
    return target.half_products_flush and kind in ("f16", "bf16")


def find_flushed_denormals(inst: Inst, target: Target) -> dict[str, FloatFormat]:
    """By operand; of a dword with 16-bit elements both."""
    row = find_meaning(inst.op)
    if isinstance(row, SparseMatrix | BroadcastMatrix):
        row = row.matrix
    if isinstance(row, Matrix):
        kind = _FORMATS[row.kind] if loses_products(target, row.kind) else None
        return {} if kind is None else {"src0": kind, "src1": kind, "src2": FloatFormat.F32}
    if isinstance(row, Variants):
        row = row.of(Situation(lambda name: 0, half_products_flush=target.half_products_flush,
                               dots_keep_denormals=target.dots_keep_denormals))
    if not isinstance(row, Lanes):
        return {}
    return {name: _FORMATS[word] for name, word in zip(sources(inst.op, row), row.loses, strict=False) if word}
