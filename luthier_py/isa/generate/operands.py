"""From TableGen operands to operand classes and shapes: kind, width, type, printer, bit positions.

In: a real record (and its pseudo). Out: a shape, the list of encoded operands with access, class and bit
segments. Invariant: every operand of a shape has at least one bit in the encoding; what LLVM adds only to
tie or to carry a constant is folded into the access of another operand, or dropped.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import NamedTuple

from luthier_py.isa.encoding.instruction import Access
from luthier_py.isa.encoding.table import OperandClass
from luthier_py.isa.generate.tablegen import Record, TableGen

BitRange = tuple[int, int, int]  # (first bit of the encoding, width, first bit of the field)


class DraftOperand(NamedTuple):
    """One encoded operand of a record. ``segments``: where its field's bits stand in the encoding; never empty."""

    name: str
    access: Access
    operand_class: OperandClass
    segments: tuple[BitRange, ...]


# DecoderMethod prefix -> kind. The first match wins.
DECODERS = (
    ("decodeSrcRegOrImmA9", "srcA"), ("decodeSrcA9", "srcA"), ("decodeSrcRegOrImm9", "src"),
    ("decodeSrcReg9", "src"), ("decodeOperand_VSrc_f64", "src"), ("decodeSrcAV10", "srcAV"),
    ("decodeAV10", "av"), ("decodeAVLdSt", "av"), ("decodeBoolReg", "bool"), ("decodeSplitBarrier", "src"),
    ("decodeOperandVOPDDstY", "dstY"), ("DecodeVGPR_16_Lo128", "v16lo"), ("DecodeVGPR_16", "v16"),
    ("decodeOperand_VGPR_16", "v16"), ("decodeOperand_VSrcT16_Lo128", "src16lo"), ("decodeOperand_VSrcT16", "src16"),
    ("decodeSDWASrc", "sdwa"), ("decodeSDWAVopcDst", "sdwavcc"), ("decodeSMEMOffset", "imm"),
    ("decodeSOPPBrTarget", "branch"), ("decodeOperand_KImm", "kimm"), ("decodeDpp8FI", "dpp8fi"),
)
FIXED_WIDTH = {"decodeOperand_VSrc_f64": 64, "decodeOperandVOPDDstY": 32, "decodeSDWASrc32": 32, "decodeSDWASrc16": 32,
               "decodeSplitBarrier": 32}
# Register class name prefix -> register files that an operand may name ("L": lds_direct).
FILES = (
    ("VRegOrLds", "VL"), ("SRegOrLds", "SL"), ("VS_", "VSL"), ("AV_", "VA"), ("AReg", "A"), ("AGPR", "A"),
    ("VReg", "V"), ("VGPR", "V"), ("", "S"),
)
# Part of a register class name -> letter for the special register that it leaves out.
EXCLUDED = (("XM0", "m"), ("XEXEC_HI", "h"), ("XEXEC(?!_HI)", "e"))
# Register class name prefix -> kind, for operands without a decoder of their own.
CLASSES = (
    ("VGPR_16_Lo128", "v16lo"), ("VGPR_16", "v16"), ("AReg", "agpr"), ("AGPR", "agpr"), ("VGPR", "vgpr"),
    ("VReg", "vgpr"), ("AV", "av"), ("VS_", "av"), ("", "sgpr"),
)


@cache
def operand_class(tablegen: TableGen, name: str, signed: int) -> OperandClass:
    """The class of an operand declared as ``name``; ``signed`` is the width of offsets of its instruction."""
    definition = tablegen.operands.get(name)
    if definition is None:
        return OperandClass("imm", 0, "OPERAND_IMMEDIATE", "printOperand", 0)
    decoder: str = definition["DecoderMethod"]
    printer = "printVersion" if decoder == "decodeVersionImm" else _printer(definition["PrintMethod"])
    type_name, class_name = definition["OperandType"], definition["RegClass"]
    kind = next((kind for prefix, kind in DECODERS if decoder.startswith(prefix)), None)
    superclasses = set(definition["superclasses"])
    if kind is None:
        registers = {"RegisterOperand", "RegisterClass", "RegClassByHwMode"} & superclasses
        if not registers and not decoder.startswith("DecodeVReg"):
            if printer in ENUMERATED:
                return OperandClass(ENUMERATED[printer], 0, type_name, printer, 0)
            width = 16 if "S16ImmOperand" in superclasses else signed if printer in SIGNED_OFFSETS else 0
            return OperandClass("imm", 0, type_name, printer, width)
        kind = next(kind for prefix, kind in CLASSES if class_name.startswith(prefix))
    if kind in ("imm", "branch", "kimm", "dpp8fi"):
        width = signed if decoder == "decodeSMEMOffset" else 16 * (kind == "branch")
        return OperandClass(kind, 0, type_name, printer, width)
    if kind in ("bool", "sdwavcc"):
        return OperandClass(kind, 0, type_name, printer, 0)
    bits = FIXED_WIDTH.get(decoder) or _width(decoder, class_name)
    files = next(files for prefix, files in FILES if class_name.startswith(prefix))
    files += "".join(letter for part, letter in EXCLUDED if re.search(part, class_name))
    aligned = re.search("Align(Target|2)", class_name) is not None
    return OperandClass(kind, max(1, bits // 32), type_name, printer, 0, files, int(aligned))


# Fields of which only some values mean something, by printer.
ENUMERATED = {
    "printDPPCtrl": "dpp", "printSDWADstSel": "select", "printSDWASrc0Sel": "select", "printSDWASrc1Sel": "select",
    "printSDWADstUnused": "unused",
}
SIGNED_OFFSETS = frozenset({"printFlatOffset", "printOffset"})
ACCUMULATOR_BIT = 9  # of a register field: AGPR rather than VGPR


def _width(decoder: str, class_name: str) -> int:
    found = re.search(r"<(\d+)>", decoder) or re.search(r"_(\d+)", class_name)
    if found is None:
        raise ValueError(f"operand class {class_name} ({decoder}) has no width: extend operand_class")
    return int(found.group(1))


def _printer(method: str) -> str:
    """printNamedBit and printNamedInt carry arguments in C++ text: make them "bit:gds", "int:offset:prefix,always"."""
    found = re.search(r'"(\w+)"(, (true|false), (true|false))?\); }', method)
    if "printNamedBit" in method and found:
        return f"bit:{found.group(1)}"
    if "printNamedInt" in method and found:
        return f"int:{found.group(1)}:{'hex' if found.group(3) == 'true' else 'dec'}" + \
            (":always" if found.group(4) == "true" else "")
    return method


def shape_of(tablegen: TableGen, record: Record, pseudo: Record | None, signed: int) -> tuple[DraftOperand, ...]:
    """The encoded operands of ``record``, results before sources, as LLVM's OutOperandList and InOperandList have them.
    ``pseudo``: the pseudo instruction that has the ties where the record has none; ``signed``: see
    `Generation.signed_offset`."""
    positions = {name: tuple(map(tuple, segments)) for name, segments in record["fields"].items()}
    if record.get("image") and "MIMG" in record["flags"]:
        positions.update(_address_bytes(record, positions.keys()))
    declared = [(name, Access.WRITE, kind) for name, kind in record["Out"]]
    declared += [(name, Access.READ, kind) for name, kind in record["In"]]
    access = _access(record, pseudo, positions.keys())
    operands = []
    for name, direction, kind in declared:
        if name not in positions:
            continue
        found = operand_class(tablegen, str(kind), signed)
        if found.signed == -20 and found.printer == "printSMEMOffset":  # gfx8 ignores the highest bit
            positions[name] = ((*positions[name][0][:1], -found.signed, 0),)
        register = found.dwords > 0 or found.kind in ("bool", "sdwavcc")
        used = direction | access.get(name, Access.NONE) if register else Access.NONE
        if found.kind == "kimm":
            used = Access.READ
        operands.append(DraftOperand(name, used, found, positions[name]))
    if any(operand.operand_class.dwords == 2 for operand in operands):
        operands = [_only_newbcast(operand) for operand in operands]
    return _share_accumulator_bit(operands)


def _address_bytes(record: Record, encoded: Collection[str]) -> dict[str, tuple[BitRange, ...]]:
    """Image addresses after the first have a byte each behind the encoding (RDNA ISA, MIMG-NSA)."""
    names = [name for name, _ in record["In"] if re.fullmatch(r"vaddr\d+", name) and name not in encoded]
    return {name: ((8 * (record["Size"] + place), 8, 0),) for place, name in enumerate(names)}


def _only_newbcast(operand: DraftOperand) -> DraftOperand:
    """DPP of 64-bit operands has fewer controls (AMDGPU::isLegalDPALU_DPPControl)."""
    if operand.operand_class.kind != "dpp":
        return operand
    return operand._replace(operand_class=operand.operand_class._replace(kind="dpp64"))


def _access(record: Record, pseudo: Record | None, encoded: object) -> dict[str, Access]:
    """A tie ``$out = $in`` whose one side has no bits makes the other side read and written."""
    constraints = record.get("Constraints") or (pseudo or {}).get("Constraints") or ""
    outputs = {name for name, _ in record["Out"]}
    access: dict[str, Access] = {}
    for left, right in re.findall(r"\$(\w+) = \$(\w+)", constraints):
        out, source = (left, right) if left in outputs else (right, left)
        if source == "old":  # DPP: whether the old value stays depends on the modifiers, see effects_of
            continue
        if source not in encoded:  # type: ignore[operator]
            access[out] = Access.READ
        elif out not in encoded:  # type: ignore[operator]
            access[source] = Access.WRITE
    return access


def _share_accumulator_bit(operands: list[DraftOperand]) -> tuple[DraftOperand, ...]:
    """All data operands of a load or store share the one ACC bit (field bit 9), though LLVM gives it to the first."""
    shared = [segment for operand in operands if operand.operand_class.kind == "av"
              for segment in operand.segments if segment[2] == ACCUMULATOR_BIT]
    if not shared:
        return tuple(operands)
    return tuple(
        operand._replace(segments=(*operand.segments, shared[0]))
        if operand.operand_class.kind == "av" and all(first < ACCUMULATOR_BIT for _, _, first in operand.segments)
        else operand for operand in operands
    )
