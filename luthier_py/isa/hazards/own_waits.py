"""Instructions that turn off hardware's waits for operands of others.

In: code. Out: where it may do so, and the replacement of such an instruction where hardware is to continue waiting.
Source: RDNA 4 ISA, hardware register WAVE_SCHED_MODE: DEP_MODE [1:0] is 0 for all checks; code for gfx1250 by LLVM and
Triton sets 2, and waits itself (s_wait_alu). Invariant: code that relies on the checks is right wherever none of a
kernel's instructions is one of these.
"""

from __future__ import annotations

from luthier_py.isa.by_target import InstructionSet
from luthier_py.isa.columns import Columns
from luthier_py.isa.encoding.instruction import SETS_HARDWARE, Inst, OpInfo
from luthier_py.isa.model.target import Target
from luthier_py.isa.semantics.control import HardwareRegister

_DEP_MODE = 3


def ends_of_hardware_waits(code: Columns, target: Target) -> list[int]:
    """Places in ``code``."""
    if target.generation < 12:
        return []
    settings = code.find_ops(_sets_hardware)
    return [at for at in settings if _ends_them(code.inst(at))]


def with_hardware_waits(isa: InstructionSet, inst: Inst) -> Inst | None:
    """The same instruction without that; None if a register says whether it does so."""
    value = inst.find("imm")
    if value is None:
        return None
    field = inst["simm16"].value
    return isa.make(inst.op.mnemonic, field, value.value & ~(_DEP_MODE >> (field >> 6 & 31)))


def _sets_hardware(op: OpInfo) -> bool:
    return op.base in SETS_HARDWARE


def _ends_them(inst: Inst) -> bool:
    field = inst["simm16"].value
    first, bits = field >> 6 & 31, (field >> 11 & 31) + 1
    if field & 63 != HardwareRegister.SCHED_MODE.value or not ((1 << bits) - 1) << first & _DEP_MODE:
        return False
    value = inst.find("imm")
    return value is None or bool(value.value << first & _DEP_MODE)
