"""What can be encoded, but must not be written: too many scalar sources, the upper dword of a scalar where only the
lower one is read, and dual instructions that share a bank.

In: a decoded instruction. Out: why it is not legal, or None. Sources: AMD ISA manuals (VALU, "constant bus"; RDNA3 ISA
7.6, dual issue), and what LLVM 22's assembler refuses (AMDGPUAsmParser: validateConstantBusLimitations, validateOpSel,
validateVOPD).
Decoding takes such instructions all the same: it shows what is there.
"""

from __future__ import annotations

from luthier_py.isa.encoding.constants import LITERAL
from luthier_py.isa.encoding.errata import M0_IS_NOT_ON_CONSTANT_BUS, ONE_DWORD_OF_SCALARS, ONE_SCALAR_SOURCE
from luthier_py.isa.encoding.instruction import SRC_LDS_DIRECT, Access, Inst, OperandKind, OpFlag
from luthier_py.isa.model.registers import M0, VCC, Reg, RegFile, RegSet, sgpr
from luthier_py.isa.model.target import Target

SOURCES = frozenset({"src", "srcA", "srcAV", "src16", "src16lo", "sdwa", "bool"})  # kinds that can be scalar
ACCUMULATING = ("FMAC", "DOT2C")
UPPER_DWORD = 0b1100  # op_sel and op_sel_hi, of a source's modifiers
BANKS = {"vdst": 1, "src0": 3, "src1": 3, "src2": 1}  # bits of a register's number that say its bank
BANKS3 = {**BANKS, "src2": 3}


def why_illegal(target: Target, inst: Inst) -> str | None:
    """Why ``inst`` must not be written for ``target``, in words; None if it may be, or is no VALU instruction."""
    if OpFlag.VALU not in inst.op.flags:
        return None
    most = 1 if inst.op.base in ONE_SCALAR_SOURCE else target.constant_bus_limit
    if len(_scalar_sources(target, inst)) > most:
        return f"reads more than {most} scalar registers or literals"
    if target.generation >= 12 and inst.op.base in ONE_DWORD_OF_SCALARS and (name := _upper_dword(inst)):
        return f"{name} is a scalar, of which only the lower dword is read: its op_sel and op_sel_hi must be 0"
    return _find_bank_conflict(target, inst) if inst.op.mnemonic.startswith("v_dual_") else None


def _upper_dword(inst: Inst) -> str | None:
    """The first scalar source whose modifiers name its upper dword."""
    for name in ("src0", "src1", "src2"):
        source, modifiers = inst.find(name), inst.find(f"{name}_modifiers")
        if source is not None and source.reg is not None and source.reg.file is RegFile.SGPR and (
                modifiers is not None and modifiers.value & UPPER_DWORD):
            return name
    return None


def _scalar_sources(target: Target, inst: Inst) -> set[Reg | int]:
    """Scalar registers, special sources and the literal that it reads, each once."""
    op = inst.op
    found: set[Reg | int] = set()
    for info, operand in zip(op.operands, inst.operands, strict=True):
        if info.kind in SOURCES and Access.READ in info.access:
            if operand.reg is not None and operand.reg.file is RegFile.SGPR:
                found.add(operand.reg)
            elif operand.kind is OperandKind.SPECIAL and operand.value not in (target.null_encoding, SRC_LDS_DIRECT):
                found.add(operand.value)
    if inst.literal is not None or any(info.kind == "kimm" for info in op.operands):
        found.add(LITERAL)
    implied = [reg for reg in (sgpr(VCC, 2), sgpr(VCC), sgpr(M0)) if reg in op.implicit_reads]
    found |= set(implied[:1])  # VCC, or its low half in wave32
    if op.base in M0_IS_NOT_ON_CONSTANT_BUS:
        found.discard(sgpr(M0))
    return found


def _find_bank_conflict(target: Target, inst: Inst) -> str | None:
    """Both halves of a dual instruction read at once: their operands must come from different banks."""
    first, second = (_vectors(inst, half) for half in "XY")
    moves = target.generation >= 12 and inst.op.base == "V_DUAL_MOV_B32_X_MOV_B32"  # their sources are cached
    for name, mask in (BANKS3 if inst.op.format == "VOPD3" else BANKS).items():
        x, y = first.get(name), second.get(name)
        if x is None or y is None:
            continue
        if name == "vdst":
            if RegSet.of(x).overlaps(RegSet.of(y)):
                return "both halves write the same register"
        elif not (moves or target.shared_dual_sources and x == y) and _banks(x, mask) & _banks(y, mask):
            return f"{name} of both halves, {x} and {y}, are in the same bank"
    return None


def _banks(reg: Reg, mask: int) -> set[int]:
    return {index & mask for index in range(reg.index, reg.index + reg.dwords)}


def _vectors(inst: Inst, half: str) -> dict[str, Reg]:
    """Vector registers of one half by their place: what is accumulated to, and the addend of fmamk, are src2."""
    names = {f"vdst{half}": "vdst", f"src0{half}": "src0", f"vsrc1{half}": "src1", f"vsrc2{half}": "src2"}
    found = {names[operand.name]: operand.reg for operand in inst.operands
             if operand.name in names and operand.reg is not None and operand.reg.file is RegFile.VGPR}
    operation = inst.op.base.removeprefix("V_DUAL_").split("_X_")[half == "Y"]
    if operation.startswith(ACCUMULATING):
        found["src2"] = found["vdst"]
    if operation.startswith("FMAMK"):
        found["src2"] = found.pop("src1")
    return found
