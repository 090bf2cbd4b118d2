"""Cases for the reader and the emulator: one instruction each, with registers of its own.

In: a row of a target's table and a seeded generator. Out: the instruction, and what its registers hold. Sources overlap
results in every way that the encoding allows; EXEC, modifiers and kinds of operands vary.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from luthier_py.base.errors import Invalid, Malformed
from luthier_py.isa import EXEC, M0, VCC, Access, Inst, InstructionSet, OperandInfo, OpFlag, OpInfo, Reg, RegFile
from luthier_py.isa.encoding.dual import is_dual
from luthier_py.isa.encoding.legal import why_illegal
from luthier_py.isa.model.registers import SCC
from luthier_py.isa.semantics import Lanes, Scalar, find_meaning
from luthier_py.isa.semantics.algebra import BOOL, F16, F32, F64, I32, U32, Type
from luthier_py.isa.semantics.cdna4 import TransposedLoad
from luthier_py.isa.semantics.control import Action, Branch, Indexing
from luthier_py.isa.semantics.crossings import GatherInGroup, RelativeMove
from luthier_py.isa.semantics.elements import FormatStore
from luthier_py.isa.semantics.images import ImageAtomic
from luthier_py.isa.semantics.lds import Permute
from luthier_py.isa.semantics.matrix import Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.meaning import Variants
from luthier_py.isa.semantics.memory import Atomic
from luthier_py.isa.semantics.transfers import LdsCopy
from luthier_py.isa.semantics.wave_matrices import WaveMatrix, WaveMixedMatrix
from reference.held import completed, lanes_of, row_of, scalars_of
from reference.pictures import MOVES, coordinates, values, with_fields
from reference.spaces import (
    ADDRESS,
    EXTRA,
    REGION_BYTES,
    Region,
    contents,
    is_memory,
    memory_of,
    scalar_values,
    vector_addresses,
    with_offset,
)
from reference.surfaces import element_data, format_of
from reference.values import word
from reference.wave import LANES, M32
from reference.ways import BELOW, TELLING, UPPER, WHOLE

FULL = (1 << LANES) - 1
EXECS = (FULL, 0, 1 << 17, 0x5555_5555_5555_5555, FULL << 32 & FULL, 0x8F0F_FFFF_1248_FFF1)
INPUTS = 32    # scalar registers below this are read by cases, and written by none
HALF = 128     # of a field that names a half: the upper one
WINDOW = 24    # vector registers of a case
TRIES = 24
VECTOR, ACCUMULATOR, SDWA_SCALAR = 256, 512, 256  # bits of source fields
GROUPS = (1, 2, 4, 8, 16, 32)  # lanes
CONSTANTS = (128, 129, 193, 208, 191, 240, 243, 247, 248)
LITERALS = (0, 1, 0x3FC00000, 0x80000000, 0xFFFFFFFF, 0x12345678, 0x3C00, 0x7C01, 0x7F800001)
NUMBERS = {F16: (0x3E00, 0xC080, 0x4200, 0x3800), F32: (0x3FC00000, 0xC0100000, 0x40400000, 0x3F000000, 0x41234567)}
DPP_CONTROLS = (0x1B, 0xB1, 0x101, 0x108, 0x111, 0x11F, 0x121, 0x12C, 0x140, 0x141, 0x150, 0x15A)
DPP_CROSSING, DPP_MASKS = (0x130, 0x134, 0x138, 0x13C, 0x142, 0x143), (0x161, 0x167, 0x16F)


@dataclass
class Case:
    """One instruction, and what its registers hold."""

    inst: Inst
    exec_mask: int
    vgprs: dict[int, list[int]]
    agprs: dict[int, list[int]]
    scalars: dict[int, int] = field(default_factory=dict)  # written before it
    memory: bytes = b""                                    # of its region
    scc: int | None = None                                 # any

    def hold(self, reg: Reg, lanes: list[int]) -> None:
        rows = self.agprs if reg.file is RegFile.AGPR else self.vgprs
        for dword in range(reg.dwords):
            rows[reg.index + dword] = [value >> 32 * dword & 0xFFFFFFFF for value in lanes]

    def __str__(self) -> str:
        return f"{self.inst.op.mnemonic} {self.inst.raw.hex()} exec=0x{self.exec_mask:x}"


@dataclass(frozen=True)
class Place:
    """Registers that a case may use."""

    vector: int       # first of WINDOW
    scalar: int       # first of 16 for results, and 8 for addresses
    memory: int = 0   # address of a region


def types_of(op: OpInfo) -> dict[str, Type]:
    """The type of each source by its operand's name."""
    row = find_meaning(op)
    row = row.typical if isinstance(row, Variants) else row
    row = row.of(0, 0) if isinstance(row, MixedMatrix | WaveMixedMatrix) else row
    if isinstance(row, Matrix | SparseMatrix):
        matrix = row if isinstance(row, Matrix) else row.matrix
        kind, addend = _MATRIX_KINDS.get(matrix.kind, U32), _MATRIX_KINDS[matrix.addend]
        return {"src0": kind, "src1": kind, "src2": addend} | ({} if row is matrix else {"vdst": addend})
    if isinstance(row, WaveMatrix):
        of_a, of_b, addend = (_MATRIX_KINDS.get(kind, U32) for kind in (*row.kinds, row.addend))
        return {"src0": of_a, "src1": of_b, "vdst" if row.sparse else "src2": addend}
    if not isinstance(row, Lanes | Scalar):
        return {}
    names = [info.name for info in op.operands if info.name in ("src0", "src1", "src2", "imm")
             and (info.name != "imm" or Access.READ in info.access)]
    slots = [F16 if slot.name in ("mix", "zmix") else slot.type for slot in row.signature.sources if not slot.special]
    return dict(zip(names, slots, strict=False)) | {"vdst": row.signature.results[0].type}


_MATRIX_KINDS = {"f32": F32, "xf32": F32, "f64": F64, "f16": F16, "bf16": F32, "i32": I32}
"""A bf16 is the upper half of an f32."""


class Cases:
    """Mutable: makes cases for one target."""

    def __init__(self, isa: InstructionSet, seed: int) -> None:
        self.isa = isa
        self.generator = random.Random(seed)

    def make(self, op: OpInfo, place: Place, overlap: tuple[str, int] | None, varied: bool,
             given: dict[str, int] | None = None) -> Case | None:
        """None where no such instruction can be encoded. ``given``: values of fields, in which lanes take part."""
        given = completed(self.isa.target, op, place.scalar + ADDRESS, given or {})
        for _ in range(TRIES):
            chosen = self._registers(op, place, overlap)
            fields = [given.get(info.name, self._field(op, info, chosen, place, varied)
                                | HALF * given.get(UPPER + info.name, 0)) for info in op.operands]
            constants = [number for number, info in enumerate(op.operands) if info.kind == "kimm"]
            for number in constants[1:]:  # the two of a dual instruction are one
                fields[number] = fields[constants[0]]
            literal = self.generator.choice(LITERALS) if any(fields[k] == 255 for k in op.literals) else None
            try:
                inst = self.isa.decode(self.isa.encode(op, fields, literal))
            except (Malformed, Invalid):
                continue
            if inst.op.base == op.base and not why_illegal(self.isa.target, inst) and not self._is_refused(inst):
                case = self._with_values(inst, place, given.get(WHOLE))
                if given:
                    self._let_it_show(case, given, place)
                return case
        return None

    def _is_refused(self, inst: Inst) -> bool:
        """UE5M3, which clamp says that small floats are."""
        clamps = any(operand.name == "clamp" and operand.value for operand in inst.operands)
        return clamps and self.isa.target.clamp_chooses_fp8 and ("FP8" in inst.op.base or "BF8" in inst.op.base)

    def _let_it_show(self, case: Case, given: dict[str, int], place: Place) -> None:
        """Lanes take part, and buffers are as large as the region."""
        inst = case.inst
        number = given.get(WHOLE, given.get(TELLING, self.generator.randrange(6)))
        if isinstance(row_of(inst.op, self.isa.target), Scalar):
            case.scalars |= scalars_of(self.isa.target, inst, number)
            case.scc = case.scalars.pop(SCC, None)
            return
        if not isinstance(find_meaning(inst.op), TransposedLoad):
            some = number in (2, 5) or "fi" in given or "bound_ctrl" in given
            case.exec_mask = EXECS[3] if some else self.generator.choice((FULL, EXECS[-1])) if number == 3 else FULL
        if not is_memory(inst):
            for operand, lanes in lanes_of(self.isa, inst, number):
                if operand is None or operand.reg is None:
                    mask = sum((bit & 1) << lane for lane, bit in enumerate(lanes))
                    case.scalars |= {VCC: mask & M32, VCC + 1: mask >> 32}
                else:
                    case.hold(operand.reg, lanes)
            self._hold_numbers(case, given)
        elif "BUFFER_" in inst.op.base:
            indexed = case.scalars[place.scalar + ADDRESS + 1] >> 16
            case.scalars[place.scalar + ADDRESS + 2] = LANES if indexed else REGION_BYTES

    def _hold_numbers(self, case: Case, given: dict[str, int]) -> None:
        """Of which no NaN comes, where a part of a float is a result: which bits a new NaN has is free."""
        types = types_of(case.inst.op)
        if "dst_sel" not in given or types.get("vdst") not in (F16, F32):
            return
        for operand in case.inst.operands:
            type = types.get(operand.name)
            if operand.reg is not None and operand.reg.file != 0 and type in NUMBERS:
                case.hold(operand.reg, [self.generator.choice(NUMBERS[type]) * 0x10001 & M32 if type == F16 else
                                        self.generator.choice(NUMBERS[type]) for _ in range(LANES)])

    def _registers(self, op: OpInfo, place: Place, overlap: tuple[str, int] | None) -> dict[str, int]:
        """A register for each operand: one after the other, then the overlap, for which there is room below."""
        below = 0 if overlap is None else max(-overlap[1], 0)
        chosen, nearest = {}, place.vector + below + below % 2
        for info in op.operands:
            if info.dwords and set(info.files) & set("VA"):
                aligned = info.aligned and info.dwords > 1 and self.isa.target.aligned_vgprs
                nearest += nearest % 2 if aligned else 0
                chosen[info.name] = nearest
                nearest += info.dwords + (self.generator.randrange(3) if is_dual(op) else 0)  # of other banks
        if overlap is not None:
            result, source = overlap[0].split()
            if result in chosen and source in chosen:
                chosen[source] = chosen[result] + overlap[1]
        return chosen

    def _field(self, op: OpInfo, info: OperandInfo, chosen: dict[str, int], place: Place, varied: bool) -> int:
        pick = self.generator.choice
        if info.kind == "kimm":
            return pick(LITERALS) if any(width == 32 for _, width, _ in info.segments) else pick(LITERALS) & 0xFFFF
        if not info.dwords:
            return self._modifier(op, info, varied)
        if isinstance(find_meaning(op), GatherInGroup) and info.name in ("src1", "src2"):
            return pick((place.scalar + (info.name == "src2"), 128 + pick(GROUPS)))
        if info.kind in ("sgpr", "bool", "sdwavcc") or not set(info.files) & set("VA"):
            indexed = OpFlag.INDEXES_REGISTERS in op.flags and info.kind == "src" and "V" not in info.files
            return self._scalar_field(replace(info, kind="sgpr") if indexed else info, place, varied)
        index = chosen[info.name]
        half = HALF if info.kind.endswith("16lo") and varied and pick((False, True)) else 0
        if info.kind in ("vgpr", "agpr", "v16", "v16lo"):
            return index | half
        if info.kind == "dstY":  # the lowest bit is the other one than that of vdstX
            return index & ~1
        if info.kind in ("av", "srcAV"):
            file = ACCUMULATOR if "A" in info.files and ("V" not in info.files or pick((True, False))) else 0
            return index | file | (VECTOR if info.kind == "srcAV" else 0)
        if info.kind == "sdwa":
            return pick((index, index, SDWA_SCALAR + pick(range(0, INPUTS, 2)))) if varied else index
        if varied and isinstance(find_meaning(op), Matrix | WaveMatrix) and info.name == "src2" and pick((False, True)):
            return pick((128, 193, 242))
        if varied and info.kind == "src" and "S" in info.files and pick((False, False, True)):
            scalars = [*range(0, INPUTS, 2), VCC, 235, 253, 251, 252]
            return pick((pick(scalars), pick(CONSTANTS), pick(CONSTANTS), 255))
        return VECTOR | index | half

    def _scalar_field(self, info: OperandInfo, place: Place, varied: bool) -> int:
        if info.name in ("sbase", "srsrc", "rsrc", "saddr"):
            return place.scalar + ADDRESS
        if info.name == "soffset":
            return place.scalar + EXTRA
        if info.kind == "sdwavcc":
            return self.generator.choice((0, 128 + place.scalar))
        if Access.WRITE in info.access:
            special = VCC, EXEC, self.isa.target.m0_encoding
            return self.generator.choice((place.scalar, place.scalar, *special)) if varied else place.scalar
        if info.kind in ("sgpr", "bool"):
            return self.generator.choice((*range(0, INPUTS, 4), *((place.scalar, VCC) if varied else ())))
        codes = [*range(0, INPUTS, 2), place.scalar, VCC, 126, self.isa.target.m0_encoding, *CONSTANTS]
        return self.generator.choice([*codes, 255] if info.dwords == 1 else codes)

    def _modifier(self, op: OpInfo, info: OperandInfo, varied: bool) -> int:
        pick, bits = self.generator.choice, 0
        for _, width, at in info.segments:
            bits |= ((1 << width) - 1) << at
        if info.name.endswith("_modifiers"):
            return self.generator.getrandbits(5) & bits if varied else 8 & bits if op.format == "VOP3P" else 0
        if info.kind == "dpp64" and self.isa.target.dpp64_broadcasts:
            return pick(range(0x150, 0x160))
        if info.kind in ("dpp", "dpp64"):
            crossing = DPP_CROSSING if self.isa.target.generation < 10 else DPP_MASKS
            return pick(DPP_CONTROLS + crossing if varied else (0xE4,))
        if info.name == "dpp8":
            return self.generator.getrandbits(24)
        if info.name in ("row_mask", "bank_mask"):
            return pick((15, 15, 6, 9)) if varied else 15
        if info.name == "dst_sel" and varied:  # no part of a float: which bits a new NaN has is free
            result = types_of(op).get("vdst", U32)
            return pick({F32: (6,), F16: (4, 5, 6)}.get(result, range(7)))
        if info.name in ("dst_sel", "src0_sel", "src1_sel"):
            return pick(range(7)) if varied else 6
        if info.name == "dst_unused":
            return pick(range(3)) if varied else 0
        if info.name == "fi" and "dpp8" in {each.name for each in op.operands}:
            return pick((0xE9, 0xEA))
        if info.name == "clamp" and self.isa.target.clamp_chooses_fp8 and ("FP8" in op.base or "BF8" in op.base):
            return 0
        if info.name in ("clamp", "bound_ctrl", "fi"):
            return pick((0, 1)) if varied else 0
        if info.name == "omod":
            return pick(range(4)) if varied else 0
        if info.name in ("cbsz", "abid") and isinstance(find_meaning(op), SparseMatrix):
            return self.generator.getrandbits(4) & bits if varied else 0
        if info.name in ("cbsz", "abid", "blgp") and isinstance(find_meaning(op), Matrix):
            return self._broadcast(find_meaning(op), info.name) if varied else 0
        if info.name.startswith("index_key") and isinstance(find_meaning(op), WaveMatrix):
            return self.generator.getrandbits(2) & bits if find_meaning(op).depth < 64 or "IU4" in op.base else 0
        if info.name in ("cbsz", "blgp") and isinstance(find_meaning(op), MixedMatrix):
            return pick(range(5))
        if isinstance(find_meaning(op), WaveMixedMatrix):
            return self._wave_format(find_meaning(op), info.name)
        if info.name == "scale_sel":  # blocks of 16 are refused
            return self.generator.getrandbits(3) & 6
        if info.name in ("simm16", "bitop3"):
            return self.generator.getrandbits(16) & bits
        return 0

    def _wave_format(self, row: WaveMixedMatrix, name: str) -> int:
        pick = self.generator.randrange
        if name == "matrix_a_scale" and row.rows > 16:
            return 0
        return {"matrix_a_fmt": pick(5), "matrix_b_fmt": pick(5), "matrix_a_scale": pick(2), "matrix_b_scale": pick(2),
                "matrix_a_scale_fmt": pick(3), "matrix_b_scale_fmt": pick(3)}.get(name, 0)

    def _broadcast(self, row: Matrix, name: str) -> int:
        """CBSZ and ABID together: whatever ABID is, there are so many blocks."""
        if row.kind == "f64":
            return self.generator.randrange(8) if name == "blgp" and self.isa.target.negates_doubles else 0
        return {"cbsz": row.blocks.bit_length() - 1, "abid": self.generator.randrange(row.blocks),
                "blgp": self.generator.randrange(8)}[name]

    def _with_values(self, inst: Inst, place: Place, whole: int | None) -> Case | None:
        row = find_meaning(inst.op)
        if isinstance(row, MOVES):
            return self._with_image(inst, place)
        if is_memory(inst):
            return self._with_memory(with_offset(
                self.isa, inst, row, self.generator, whole == BELOW, whole is not None), place)
        types = types_of(inst.op)
        case = Case(inst, self.generator.choice(EXECS), {}, {})
        if isinstance(row, Indexing | RelativeMove):
            case.scalars[M0] = self.generator.randrange(8)
        if row is Indexing.MOVE_SCALAR or isinstance(row, RelativeMove) and row.source != row.target:
            case.scalars[M0] |= self.generator.randrange(8) << 16
        if isinstance(row, Branch):
            case.inst = self.isa.with_field(inst, "simm16", 1)  # over the instruction that the batch puts there
        if isinstance(row, GatherInGroup):
            self._hold_group(case, row, place)
        if row is Action.GETREG:
            case.inst = self.isa.with_field(inst, "simm16", 1 | self.generator.randrange(8) << 6 | 7 << 11)
        few: dict[tuple[Type, int], list[int]] = {}  # of which all operands take theirs, so that some are equal
        meets = self.generator.random() < 0.3
        for operand in inst.operands:
            reg = operand.reg
            if reg is None or reg.file == 0:
                continue
            type = types.get(operand.name, U32)
            type = U32 if type is BOOL or not type.bits else type
            values = [word(self.generator, type, 32 * reg.dwords) for _ in range(LANES)]
            few.setdefault((type, reg.dwords), values[:3])
            case.hold(reg, [self.generator.choice(few[type, reg.dwords]) for _ in values] if meets else values)
        return case

    def _hold_group(self, case: Case, row: GatherInGroup, place: Place) -> None:
        """Of a size that there is, and lanes that are active."""
        pick, size = self.generator.choice, case.inst["src1" if row is GatherInGroup.ADDRESS else "src2"]
        width = size.value if size.reg is None else pick(GROUPS)
        case.scalars |= {} if size.reg is None else {size.reg.index: width}
        if row is not GatherInGroup.ADDRESS and (away := case.inst["src1"].reg) is not None:
            far = row is GatherInGroup.ONE
            case.scalars[away.index] = pick((1, 30, 77, M32) if far else (width, width - 1, 31, 63))
        alone = width == 1 and row is not GatherInGroup.CROSSED  # the lane itself is active
        case.exec_mask = pick(EXECS if alone or row is GatherInGroup.ADDRESS else EXECS[:2])

    def _with_image(self, inst: Inst, place: Place) -> Case | None:
        row, chosen = find_meaning(inst.op), with_fields(self.isa, inst, find_meaning(inst.op), self.generator)
        if chosen is None:
            return None
        inst = chosen
        contained = memory_of(Atomic(row.modify, row.kind) if isinstance(row, ImageAtomic) else row, self.generator)
        case = Case(inst, self.generator.choice(EXECS), {}, {}, memory=contained)
        words, data = values(self.isa, inst, row, place.memory, self.generator)
        target = inst["vdata"].reg
        assert target is not None
        given = Atomic(row.modify, row.kind) if isinstance(row, ImageAtomic) else row
        case.hold(target, data or contents(given, self.generator, 32 * target.dwords))
        for name, lanes in coordinates(inst, self.generator).items():
            reg = inst[name].reg
            assert reg is not None
            case.hold(reg if inst.find("dim") else Reg(reg.file, reg.index, 4), lanes)
            both = range(max(target.index, reg.index), min(target.index + target.dwords, reg.index + reg.dwords))
            for index in both if data and reg.file is target.file else ():  # stored, and a coordinate: fits every field
                case.vgprs[index] = [self.generator.randrange(2) for _ in range(LANES)]
        case.scalars |= {place.scalar + ADDRESS + i: word for i, word in enumerate(words)}
        return case

    def _with_memory(self, inst: Inst, place: Place) -> Case:
        row = find_meaning(inst.op)
        masks = (FULL, 0, EXECS[4]) if isinstance(row, TransposedLoad) else EXECS  # its lanes give to each other
        case = Case(inst, self.generator.choice(masks), {}, {}, memory=memory_of(row, self.generator))
        for operand in inst.operands:
            if operand.reg is not None and operand.reg.file != 0:
                case.hold(operand.reg, contents(row, self.generator, 32 * operand.reg.dwords))
        if isinstance(row, Permute):
            address = inst["addr"].reg
            assert address is not None
            pick, bits = self.generator.choice, self.generator.getrandbits
            case.hold(address, [pick((4 * lane, bits(9))) for lane in range(LANES)])
            return case
        region = Region(place.memory)
        case.scalars |= scalar_values(self.isa, inst, region, place.scalar, self.generator)
        if isinstance(row, LdsCopy):
            local = inst["vdata" if row.stores else "vdst"].reg
            assert local is not None
            case.hold(local, [1024 + 32 * (lane ^ 5) for lane in range(LANES)])
        if isinstance(row, FormatStore) and inst["vdata"].reg is not None:
            words = [case.scalars[place.scalar + ADDRESS + i] for i in range(4)]
            format = format_of(self.isa.target, inst, row, words)
            data = inst["vdata"].reg
            case.hold(data, element_data(row, format, data.dwords, self.generator))
        address = (inst.find("vaddr") or inst.find("addr") or inst.operands[0]).reg
        if inst.find("vaddr") or inst.find("addr"):
            assert address is not None
            case.hold(address, vector_addresses(inst, row, region, self.generator) or [])
        return case
