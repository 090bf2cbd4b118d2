"""The instruction set room: what AMD's manuals say, as data, and the code that reads it."""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.isa.by_target import InstructionSet, instruction_set
    from luthier_py.isa.encoding.instruction import (
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
    from luthier_py.isa.model.registers import (
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
    from luthier_py.isa.model.target import MAX_WORKITEMS, Target, target, target_of_mach, targets
    from luthier_py.isa.model.target_id import Setting, TargetId, parse_target_id
    from luthier_py.isa.properties.accesses import memory_access
    from luthier_py.isa.properties.classes import InstructionClass, class_of
    from luthier_py.isa.properties.memory_access import AccessKind, AddressForm, MemoryAccess
    from luthier_py.isa.semantics.operand_parts import constant_of, part_of

__all__ = [
    "EXEC", "FLAT_SCRATCH", "M0", "MAX_WORKITEMS", "MODE", "NO_REGS", "SCC", "TTMP0", "VCC", "XNACK_MASK", "Access",
    "AccessKind", "AddressForm", "Counter", "Effects", "Inst", "InstructionClass", "InstructionSet", "LaneOf",
    "MemoryAccess", "OpFlag", "OpInfo", "Operand", "OperandInfo", "OperandKind", "Reg", "RegFile", "RegSet", "Setting",
    "Space", "Target", "TargetId", "agpr", "class_of", "constant_of", "instruction_set", "memory_access",
    "parse_target_id", "part_of", "sgpr", "target", "target_of_mach", "targets", "vgpr",
]
__getattr__ = make_lazy_loader(__name__, {
    "properties.accesses": "memory_access",
    "properties.memory_access": "AccessKind AddressForm MemoryAccess",
    "properties.classes": "InstructionClass class_of",
    "encoding.instruction": "Access Counter Effects Inst Operand OperandInfo OperandKind OpFlag OpInfo Space",
    "by_target": "InstructionSet instruction_set",
    "semantics.operand_parts": "constant_of part_of",
    "model.registers": (
        "EXEC FLAT_SCRATCH M0 MODE NO_REGS SCC TTMP0 VCC XNACK_MASK LaneOf Reg RegFile RegSet agpr sgpr vgpr"
    ),
    "model.target": "MAX_WORKITEMS Target target target_of_mach targets",
    "model.target_id": "Setting TargetId parse_target_id",
})  # fmt: skip
