"""How many registers the sources of f8f6f4 matrix operations take, which their number formats say.

In: decoded operands. Out: the same with the widths of src0 and src1. Source: CDNA4 ISA, V_MFMA_*_F8F6F4 (CBSZ, BLGP);
AMDGPUBaseInfo.cpp of LLVM 22, mfmaScaleF8F6F4FormatToNumRegs and its neighbour for WMMA.
"""

from __future__ import annotations

from luthier_py.base.records import replace
from luthier_py.isa.encoding.instruction import Operand, OpInfo

# Of an operand with 8-bit numbers: by format, in eighths of its registers.
_EIGHTHS = {0: 8, 1: 8, 2: 6, 3: 6, 4: 4}
_FORMATS = {"cbsz": "src0", "blgp": "src1", "matrix_a_fmt": "src0", "matrix_b_fmt": "src1"}


def has_formats(op: OpInfo) -> bool:
    """Whether fields of the instruction say the formats of A and B (f8f6f4), and with them how wide src0 and src1
    are."""
    return op.base.endswith("_F8F6F4")


def size_sources(found: list[Operand]) -> None:
    """Set the widths of src0 and src1 in ``found``; as LLVM has it, formats that there are not leave them alone."""
    eighths = {_FORMATS[operand.name]: _EIGHTHS.get(operand.value) for operand in found if operand.name in _FORMATS}
    if None in eighths.values() and any(operand.name == "matrix_a_fmt" for operand in found):
        return  # WMMA: both
    for k, operand in enumerate(found):
        parts = eighths.get(operand.name)
        if parts is not None and operand.reg is not None:
            found[k] = replace(operand, reg=replace(operand.reg, dwords=operand.reg.dwords * parts // 8))
