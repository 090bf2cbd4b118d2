"""Kinds of work that instructions do, as tools ask for them: one word for each instruction.

In: a table row. Out: its InstructionClass, which its flags decide, and of what has no operands in registers (SOPP) its
format. Invariant: every row has exactly one; scalar_alu are those that SQ_INSTS_SALU counts on hardware: hints, s_nop,
messages and their like occupy no scalar unit.
"""

from __future__ import annotations

from enum import Enum

from luthier_py.isa.encoding.instruction import OpFlag, OpInfo


class InstructionClass(Enum):
    """What part of the hardware carries an instruction out, or what it does to the wave."""

    MATRIX = "matrix"
    TRANSCENDENTAL = "transcendental"
    VECTOR_ALU = "vector_alu"
    SCALAR_ALU = "scalar_alu"
    SCALAR_MEMORY = "scalar_memory"
    VECTOR_MEMORY = "vector_memory"
    LDS = "lds"
    GDS = "gds"
    EXPORT = "export"
    BRANCH = "branch"
    CALL = "call"
    END = "end"
    BARRIER = "barrier"
    WAIT = "wait"
    OTHER = "other"


_FIRST_THAT_HOLDS = (
    (OpFlag.MATRIX, InstructionClass.MATRIX), (OpFlag.TRANS, InstructionClass.TRANSCENDENTAL),
    (OpFlag.GDS, InstructionClass.GDS), (OpFlag.LDS, InstructionClass.LDS),
    (OpFlag.VMEM, InstructionClass.VECTOR_MEMORY), (OpFlag.SMEM, InstructionClass.SCALAR_MEMORY),
    (OpFlag.EXPORT, InstructionClass.EXPORT), (OpFlag.CALL, InstructionClass.CALL), (OpFlag.END, InstructionClass.END),
    (OpFlag.BARRIER, InstructionClass.BARRIER), (OpFlag.WAIT, InstructionClass.WAIT),
    (OpFlag.BRANCH | OpFlag.INDIRECT, InstructionClass.BRANCH), (OpFlag.VALU, InstructionClass.VECTOR_ALU),
    (OpFlag.SALU, InstructionClass.SCALAR_ALU),
)


def class_of(op: OpInfo) -> InstructionClass:
    """The class of an opcode."""
    found = next((found for flags, found in _FIRST_THAT_HOLDS if op.flags & flags), InstructionClass.OTHER)
    return InstructionClass.OTHER if found is InstructionClass.SCALAR_ALU and op.format == "SOPP" else found
