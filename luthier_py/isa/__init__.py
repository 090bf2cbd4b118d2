"""The instruction set room: what AMD's manuals say, as data, and the code that reads it."""

from typing import TYPE_CHECKING

from luthier_py.exports import make_lazy_loader
from luthier_py.isa.target import MAX_WORKITEMS, Target, target, target_of_mach, targets

if TYPE_CHECKING:
    from luthier_py.isa.accesses import AccessKind, AddressForm, MemoryAccess, memory_access
    from luthier_py.isa.by_target import InstructionSet, instruction_set
    from luthier_py.isa.classes import InstructionClass, class_of
    from luthier_py.isa.instruction import (
        Access,
        Counter,
        Effects,
        Inst,
        Operand,
        OperandInfo,
        OperandKind,
        OpFlag,
        OpInfo,
        Space,
    )
    from luthier_py.isa.operand_parts import constant_of, part_of
    from luthier_py.isa.registers import (
        EXEC,
        FLAT_SCRATCH,
        M0,
        MODE,
        NO_REGS,
        SCC,
        TTMP0,
        VCC,
        XNACK_MASK,
        LaneOf,
        Reg,
        RegFile,
        RegSet,
        agpr,
        sgpr,
        vgpr,
    )
    from luthier_py.isa.target_id import Setting, TargetId, parse_target_id

__all__ = [
    "EXEC", "FLAT_SCRATCH", "M0", "MAX_WORKITEMS", "MODE", "NO_REGS", "SCC", "TTMP0", "VCC", "XNACK_MASK", "Access",
    "AccessKind", "AddressForm", "Counter", "Effects", "Inst", "InstructionClass", "InstructionSet", "LaneOf",
    "MemoryAccess", "OpFlag", "OpInfo", "Operand", "OperandInfo", "OperandKind", "Reg", "RegFile", "RegSet", "Setting",
    "Space", "Target", "TargetId", "agpr", "class_of", "constant_of", "instruction_set", "memory_access",
    "parse_target_id", "part_of", "sgpr", "target", "target_of_mach", "targets", "vgpr",
]
__getattr__ = make_lazy_loader(__name__, {
    "accesses": "AccessKind AddressForm MemoryAccess memory_access",
    "classes": "InstructionClass class_of",
    "instruction": "Access Counter Effects Inst Operand OperandInfo OperandKind OpFlag OpInfo Space",
    "by_target": "InstructionSet instruction_set",
    "operand_parts": "constant_of part_of",
    "registers": "EXEC FLAT_SCRATCH M0 MODE NO_REGS SCC TTMP0 VCC XNACK_MASK LaneOf Reg RegFile RegSet agpr sgpr vgpr",
    "target_id": "Setting TargetId parse_target_id",
})  # fmt: skip
