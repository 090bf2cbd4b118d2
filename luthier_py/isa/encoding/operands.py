"""Operand fields to structured operands.

In: an operand of a table row and the value of its field. Out: Operand, with special registers mapped to
luthier_py.isa.model.registers. Invariant: a value that the hardware reserves, or that LLVM's disassembler
refuses, raises Malformed; every other value has exactly one Operand.

Kinds of operand classes (LLVM's decoder methods): ``src`` nine bits, 256.. are VGPRs, below that scalar
registers and constants; ``srcA`` the same with AGPRs; ``srcAV`` ten bits, bit 9 says AGPR; ``av`` vector
register, bit 9 says AGPR; ``vgpr`` and ``agpr`` eight bits; ``sgpr`` scalar; ``bool`` a lane mask; ``sdwa``
SDWA source, bit 8 says scalar; ``sdwavcc`` VCC, or a lane mask when bit 7 is set; ``v16``, ``v16lo``,
``src16``, ``src16lo`` halves of VGPRs (bit 9, or bit 7 of the field, says high); ``dstY`` second VOPD
destination; ``imm`` a plain field; ``kimm`` a mandatory literal; ``branch``; ``dpp8fi``; ``dpp``, ``dpp64``,
``select`` and ``unused`` are fields with reserved values.
"""

from __future__ import annotations

from luthier_py.base.errors import Malformed
from luthier_py.isa.encoding.constants import LITERAL, constant_bits, is_constant
from luthier_py.isa.encoding.instruction import (
    SRC_EXECZ,
    SRC_LDS_DIRECT,
    SRC_SCC,
    SRC_VCCZ,
    Access,
    Operand,
    OperandInfo,
    OperandKind,
)
from luthier_py.isa.model.registers import EXEC, M0, VCC, Reg, RegFile
from luthier_py.isa.model.target import Target

VECTOR = 256            # first vector register in nine-bit sources
ACCUMULATOR = 512       # bit of ten-bit fields: AGPR
HIGH_HALF = 512         # bit of ten-bit fields of 16-bit operands
LOW_HALVES = frozenset({"v16lo", "src16lo"})  # a bit of the number says which half, so that there are fewer numbers
NAMED_BY_HALVES = 128
APERTURES = range(235, 240)
SCRATCH_BASE = (230, 231)  # low and high half; 230 for both


class OperandReader:
    """Reads operand fields of one target and wave size."""

    def __init__(self, target: Target, wave_size: int) -> None:
        self.target = target
        self.lane_mask_dwords = wave_size // 32
        self.shared_file = target.unified_agprs  # so that loads and stores can name AGPRs
        self.last_sgpr = target.sgpr_limit - 1
        self.m0, self.null = target.m0_encoding, target.null_encoding
        self.first_ttmp = target.first_ttmp
        self.pairs = target.scalar_pairs
        self.methods = {
            "src": self._source, "srcA": self._accumulator_source, "srcAV": self._source, "av": self._vector,
            "vgpr": self._vector, "agpr": self._accumulator, "sgpr": self._scalar, "bool": self._lane_mask,
            "sdwa": self._sdwa, "sdwavcc": self._sdwa_vcc, "imm": self._immediate, "branch": self._branch,
            "dpp8fi": self._immediate, "kimm": self._literal_field, "v16": self._half, "v16lo": self._low_half,
            "src16": self._half_source, "src16lo": self._low_half_source, "dstY": self._vector,
            "dpp": self._read_enumerated, "dpp64": self._read_enumerated, "select": self._read_enumerated,
            "unused": self._read_enumerated,
        }
        controls = _dpp_controls(target)
        self.valid = {"dpp": controls, "dpp64": NEW_BROADCASTS if target.dpp64_broadcasts else controls,
                      "select": range(7), "unused": range(3)}

    def read(self, info: OperandInfo, value: int) -> Operand:
        """The operand that says ``value`` in its field; Malformed where the hardware reserves that, or LLVM refuses
        it."""
        return self.methods[info.kind](info, value)

    def _register(self, info: OperandInfo, file: RegFile, index: int, dwords: int, half: int = 0) -> Operand:
        if file is not RegFile.SGPR and index + dwords > self.target.vgpr_limit:
            raise Malformed(f"{info.name}: {dwords} registers from {index} on exceed the vector register file")
        if info.aligned and dwords > 1 and index & 1 and self.target.aligned_vgprs:
            raise Malformed(f"{info.name}: {dwords} registers from {index} on, but tuples start at even registers")
        return Operand(info.name, OperandKind.REGISTER, info.access, Reg(file, index, dwords), half, info.type)

    def _special(self, info: OperandInfo, kind: OperandKind, value: int) -> Operand:
        return Operand(info.name, kind, info.access, None, value, info.type)

    def _make_reserved_error(self, info: OperandInfo, value: int) -> Malformed:
        return Malformed(f"{info.name}: operand encoding {value} is reserved here")

    def _scalar(self, info: OperandInfo, value: int) -> Operand:
        if shows_sources(info) and self._is_read_only(value, info.dwords):
            return self._special(info, OperandKind.SPECIAL, value)
        return self._scalar_register(info, value, info.dwords)

    def _is_read_only(self, value: int, dwords: int) -> bool:
        """Whether a source of so many dwords shows what is no register: apertures, conditions, the scratch base."""
        if value in SCRATCH_BASE:
            return self.target.scratch_base_sources and dwords <= 2 and not (value & 1 and dwords == 2)
        return (value in APERTURES or value in (SRC_VCCZ, SRC_EXECZ, SRC_SCC)) and dwords <= 2

    def _lane_mask(self, info: OperandInfo, value: int) -> Operand:
        if shows_sources(info) and self._is_read_only(value, self.lane_mask_dwords):
            return self._special(info, OperandKind.SPECIAL, value)
        return self._scalar_register(info, value, self.lane_mask_dwords)

    def _scalar_register(self, info: OperandInfo, value: int, dwords: int) -> Operand:
        """Tuples are aligned down, as LLVM's disassembler has it (createSRegOperand)."""
        aligned = value & ~(min(dwords, 4) - 1 if dwords != 3 else 3)
        if value <= self.last_sgpr:
            if aligned + dwords > 106:
                raise Malformed(f"{info.name}: {dwords} registers from s{aligned} on exceed the scalar register file")
            return self._register(info, RegFile.SGPR, aligned, dwords)
        if self.first_ttmp <= value < M0:
            if aligned + dwords > M0 or dwords == 3:  # LLVM has no class of three trap registers
                raise self._make_reserved_error(info, value)
            return self._register(info, RegFile.SGPR, aligned, dwords)
        absent = Access.WRITE in info.access
        if value == self.null and (absent or dwords <= 2 or info.name == "sdata"):
            return self._special(info, OperandKind.ABSENT if absent else OperandKind.SPECIAL, value)
        if is_excluded(info, M0 if value == self.m0 else value):
            raise self._make_reserved_error(info, value)
        if dwords == 1 and value == self.m0:
            return self._register(info, RegFile.SGPR, M0, 1)
        if (dwords == 1 and value & ~1 in self.pairs) or (dwords == 2 and value in self.pairs):
            return self._register(info, RegFile.SGPR, value, dwords)
        raise self._make_reserved_error(info, value)

    def _source(self, info: OperandInfo, value: int) -> Operand:
        if value & VECTOR:
            return self._vector(info, value)
        value &= 0xFF
        if is_constant(value):
            if info.type == "OPERAND_REGISTER":
                raise self._make_reserved_error(info, value)
            return self._special(info, OperandKind.CONSTANT, constant_bits(value, info.type))
        if self._is_read_only(value, info.dwords) and "S" in info.files:
            return self._special(info, OperandKind.SPECIAL, value)
        if value == SRC_LDS_DIRECT and "L" in info.files and info.dwords == 1 and not self.target.literals64:
            return self._special(info, OperandKind.SPECIAL, value)
        if "S" not in info.files:
            raise self._make_reserved_error(info, value)
        return self._scalar_register(info, value, info.dwords)

    def _accumulator_source(self, info: OperandInfo, value: int) -> Operand:
        return self._source(info, value | ACCUMULATOR)

    def _vector(self, info: OperandInfo, value: int) -> Operand:
        file = RegFile.AGPR if value & ACCUMULATOR else RegFile.VGPR
        if "VA"[file - 1] not in info.files or file is RegFile.AGPR and info.kind == "av" and not self.shared_file:
            raise self._make_reserved_error(info, value)
        return self._register(info, file, value & 0xFF, info.dwords)

    def _accumulator(self, info: OperandInfo, value: int) -> Operand:
        return self._register(info, RegFile.AGPR, value & 0xFF, info.dwords)

    def _half(self, info: OperandInfo, value: int) -> Operand:
        return self._register(info, RegFile.VGPR, value & 0xFF, 1, int(bool(value & HIGH_HALF)))

    def _low_half(self, info: OperandInfo, value: int) -> Operand:
        return self._register(info, RegFile.VGPR, value & 0x7F, 1, value >> 7 & 1)

    def _half_source(self, info: OperandInfo, value: int) -> Operand:
        return self._half(info, value) if value & VECTOR else self._source(info, value & 0xFF)

    def _low_half_source(self, info: OperandInfo, value: int) -> Operand:
        return self._low_half(info, value) if value & VECTOR else self._source(info, value & 0xFF)

    def _sdwa(self, info: OperandInfo, value: int) -> Operand:
        if not value & VECTOR:
            return self._register(info, RegFile.VGPR, value, info.dwords)
        if value & 0xFF == LITERAL:
            raise self._make_reserved_error(info, value)
        return self._source(info, value & 0xFF)

    def _sdwa_vcc(self, info: OperandInfo, value: int) -> Operand:
        return self._scalar_register(info, value & 0x7F if value & 0x80 else VCC, self.lane_mask_dwords)

    def _immediate(self, info: OperandInfo, value: int) -> Operand:
        if info.signed > 0 and value >> (info.signed - 1) & 1:
            value -= 1 << info.signed
        return self._special(info, OperandKind.IMMEDIATE, value)

    def _read_enumerated(self, info: OperandInfo, value: int) -> Operand:
        if value not in self.valid[info.kind]:
            raise self._make_reserved_error(info, value)
        return self._special(info, OperandKind.IMMEDIATE, value)

    def _branch(self, info: OperandInfo, value: int) -> Operand:
        return self._special(info, OperandKind.TARGET, value - (value >> 15 << 16))

    def _literal_field(self, info: OperandInfo, value: int) -> Operand:
        return self._special(info, OperandKind.CONSTANT, value)


def shows_sources(info: OperandInfo) -> bool:
    """Whether a scalar operand can name a source that is no register: lane masks, s_movrels_b32, s_cbranch_join."""
    if info.kind == "bool":
        return info.access is Access.READ
    return info.kind == "sgpr" and info.name == "src0" and info.dwords == 1


def is_excluded(info: OperandInfo, index: int) -> bool:
    """Whether the operand leaves out a special register that scalar operands can name elsewhere."""
    if index == M0:
        return "m" in info.files
    return index & ~1 == EXEC and ("e" in info.files or "h" in info.files and index == EXEC + 1)


NEW_BROADCASTS = range(0x150, 0x160)


def _dpp_controls(target: Target) -> frozenset[int]:
    """dpp_ctrl values of the generation (AMD ISA manuals, DPP_CTRL enumerations)."""
    shifts = [*range(0x101, 0x110), *range(0x111, 0x120), *range(0x121, 0x130)]
    known = {*range(0x100), *shifts, 0x140, 0x141}
    if target.generation >= 10:
        return frozenset(known | {*range(0x150, 0x170)})
    known |= {0x130, 0x134, 0x138, 0x13C, 0x142, 0x143}
    return frozenset(known | set(NEW_BROADCASTS) if target.unified_agprs else known)
