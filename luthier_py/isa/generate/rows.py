"""From TableGen records to table rows.

In: the records that a target decodes. Out: rows with everything the decoder, encoder and printer ask:
fixed bits, shape, implicit effects, flags, counters, spaces, base name and assembly template.
Invariant: all reasoning about record names and LLVM's printing code happens here, none at run time.
"""

from __future__ import annotations

import re
from functools import cache, reduce
from operator import or_
from typing import Any, NamedTuple

from luthier_py.isa.encoding import errata
from luthier_py.isa.encoding.instruction import Access, Counter, OpFlag, Space
from luthier_py.isa.generate.bases import base_name, base_of_mnemonic
from luthier_py.isa.generate.operands import DraftOperand, operand_class, shape_of
from luthier_py.isa.generate.tablegen import Record, TableGen, decoder_order


class DraftRow(NamedTuple):
    """One row of a target's table, before what rows share is numbered. ``flags``, ``counters`` and ``spaces`` are the
    bits of OpFlag, Counter and Space; ``mask`` has the bits that are fixed, as ``value`` has them."""

    record: str
    template: str
    base: str
    format: str
    size_bytes: int
    namespace: str                       # LLVM's decoder table: instruction size and namespace
    mask: int
    value: int
    fill: int                            # bits that are don't-care when decoding, but that LLVM's assembler sets
    shape: tuple[DraftOperand, ...]
    reads: tuple[str, ...]               # implicit, LLVM's register names
    writes: tuple[str, ...]
    flags: int
    counters: int
    spaces: int
    partial: bool                        # writes a part of vdst whenever op_sel or a tie says so
    image: tuple[Any, ...] | None        # luthier_py.isa.encoding.table.ImageInfo, hashable


FORMATS = ("VOPD3", "VOP3P", "VINTERP", "VOP3", "SDWA", "DPP", "VOP1", "VOP2", "VOPC", "SOP1", "SOP2", "SOPC", "SOPK",
           "SOPP", "VINTRP", "MUBUF", "MTBUF", "SMRD", "MIMG", "VIMAGE", "VSAMPLE", "EXP", "FLAT", "DS", "LDSDIR")
MEMORY_FORMATS = frozenset({"MUBUF", "MTBUF", "MIMG", "VIMAGE", "VSAMPLE", "FLAT"})
SAMPLING_FORMATS = frozenset({"MIMG", "VIMAGE", "VSAMPLE"})  # gradients are differences between neighbouring lanes
VCC_AFTER_SRC1 = re.compile(
    r"V_CNDMASK_B32_(e32_(gfx1|vi)|dpp8_gfx1|dpp_gfx1|sdwa_gfx10)|V_(ADD|SUB|SUBREV)_CO_CI_U32_(e32|dpp8?|sdwa)_gfx1")
VCC_AFTER_VDST = re.compile(r"V_(ADD|SUB|SUBREV)_CO_CI_U32_(e32|sdwa|dpp8?)_gfx1")


class Generation(NamedTuple):
    """All that a row depends on beyond its record: rows are shared between targets that agree here."""

    smem_offset_bits: int     # signed; negative: unsigned
    buffer_offset_bits: int   # 0: unsigned; negative: the field is signed, but must not be negative
    flat_offset_bits: int     # of the flat segment; negative: unsigned, and the field's highest bit must be 0
    global_offset_bits: int   # of the global and scratch segments
    store_counter: bool
    a16_packs_gradients: bool
    packed_d16: bool
    split_counters: bool      # gfx12: one counter for each kind of memory operation
    replay_counter: bool      # gfx1250: X_CNT
    keeps_high_halves: bool   # gfx10: all results of 16 bits leave the other half alone

    @staticmethod
    def of(features: frozenset[str]) -> Generation:
        """AMD ISA manuals, SMEM, MUBUF and FLAT instruction formats."""
        others = ("G16" not in features, "UnpackedD16VMem" not in features, "GFX12Insts" in features,
                  "GFX1250Insts" in features, "GFX10Insts" in features and "GFX11Insts" not in features)
        if "GFX12Insts" in features:
            return Generation(24, -23, 24, 24, True, *others)
        gfx10 = "GFX10Insts" in features
        bits = 12 if gfx10 and "GFX11Insts" not in features else 13
        smem = 21 if gfx10 or "GFX9Insts" in features else -20
        return Generation(smem, 0, 1 - bits, bits, gfx10, *others)

    def find_signed_offset_bits(self, format_name: str, named: set[str], base: str) -> int:
        """Bits of the offset field of an instruction, as `OperandClass.signed` counts them: negative where the field is
        unsigned, 0 where the format has no such offset. ``named``: LLVM's flags of the record and of its pseudo."""
        if format_name == "FLAT":
            return self.global_offset_bits if named & {"FlatGlobal", "FlatScratch"} else self.flat_offset_bits
        if format_name == "SMRD" and "BUFFER" in base and self.buffer_offset_bits:
            return self.buffer_offset_bits
        return {"SMRD": self.smem_offset_bits, "MUBUF": self.buffer_offset_bits,
                "MTBUF": self.buffer_offset_bits}.get(format_name, 0)


def rows_of(tablegen: TableGen, features: frozenset[str],
            cache: dict[tuple[str, Generation], list[DraftRow]]) -> list[DraftRow]:
    """All rows of one target, twins removed, in record order. ``cache`` is shared between the calls."""
    generation = Generation.of(features)
    rank = {f"{size} {space}": index for index, (size, space) in enumerate(decoder_order(features))}
    best: dict[tuple[int, int], DraftRow] = {}
    for name, record in tablegen.select(features):
        if (name, generation) not in cache:
            cache[name, generation] = _rows(tablegen, generation, name, record)
        for row in cache[name, generation]:
            key = (row.mask, row.value)
            old = best.get(key)
            # gfx9 DS records come twice: the one that reads M0 is gfx8's. Else the earlier decoder table wins.
            if old is None or name == old.record + "_gfx9" or \
                    rank[row.namespace] < rank[old.namespace]:
                best[key] = row
    return sorted(best.values(), key=lambda row: (row.record, row.value))


def _rows(tablegen: TableGen, generation: Generation, name: str, record: Record) -> list[DraftRow]:
    found = tablegen.pseudo_of(record)
    pseudo_name, pseudo = found if found else (name, None)
    named = set(record["flags"]) | set(pseudo["flags"] if pseudo else ())
    named |= {tablegen.flag_bits[bit] for bit in record["TSFlags"] if bit in tablegen.flag_bits}
    format_name = next((f for f in FORMATS if f in named), "OTHER")
    base = base_name(pseudo_name, format_name) if found else base_of_mnemonic(tablegen, name, record, format_name)
    shape = shape_of(tablegen, record, pseudo, generation.find_signed_offset_bits(format_name, named, base))
    if base in errata.READS_OWN_DESTINATION and all(o.name != "src2" for o in shape):
        shape = tuple(o._replace(access=Access.READ | Access.WRITE) if o.name in ("sdst", "vdst") else o for o in shape)
    behaviour = {
        key for key in ("mayLoad", "mayStore", "hasSideEffects", "isTerminator", "IsSingle")
        if record.get(key, (pseudo or {}).get(key))
    }
    flags, counters, spaces = _effects(base, format_name, named, behaviour, shape, generation)
    row = DraftRow(
        record=name, template=_template(record, name, named, behaviour, shape), base=base, format=format_name,
        size_bytes=_size(record, shape), namespace=f"{record['Size']} {record['DecoderNamespace']}",
        mask=record["mask"], value=record["value"], fill=_fill(name, named, record, shape), shape=shape,
        reads=_read(base, record), writes=_find_implicit_results(base, format_name, record, shape), flags=flags.value,
        counters=counters.value, spaces=spaces.value,
        partial=_partial(tablegen, generation, base, named, record, pseudo, shape),
        image=_image(tablegen, record, generation),
    )
    return _expand_dpp8(_with_positive_offset(row))


def _read(base: str, record: Record) -> tuple[str, ...]:
    """Implicit sources."""
    more = ["M0"] * (base in errata.READS_M0) + ["MODE"] * (base in errata.READS_MODE)
    more += ["EXEC"] * (base in errata.READS_EXEC)
    return tuple(dict.fromkeys([*record["Uses"], *more]))


def _find_implicit_results(base: str, format_name: str, record: Record,
                           shape: tuple[DraftOperand, ...]) -> tuple[str, ...]:
    """Implicit results; gfx8's SDWA compares have a result operand without bits, which is always VCC.

    Later ones have it encoded: then VCC is written only if it says so, though V_CMP_CLASS still has gfx8's VCC
    (Vega ISA, microcode format SDWAB: SDST, and SD that says whether it is used).
    """
    encoded = {operand.name for operand in shape}
    compares = format_name == "SDWA" and any(name == "sdst" for name, _ in record["Out"])
    names = dict.fromkeys([*record["Defs"], *["VCC"] * compares])
    left_alone = {"SCC"} if base in errata.LEAVES_SCC_ALONE else set()
    left_alone |= {"VCC"} if compares and "sdst" in encoded else set()
    return tuple(name for name in names if name not in left_alone)


def _size(record: Record, shape: tuple[DraftOperand, ...]) -> int:
    """Addresses of images that do not follow each other have bytes behind the encoding, in whole dwords."""
    end = max((first + width for operand in shape for first, width, _ in operand.segments), default=0)
    size: int = record["Size"]
    return max(size, -(-end // 32) * 4)


def _with_positive_offset(row: DraftRow) -> DraftRow:
    """Offsets of gfx12 buffers have a sign bit that must be 0 (AMDGPUDisassembler: "must not be a negative")."""
    for operand in row.shape:
        if operand.operand_class.signed == -23:
            first, width, _ = operand.segments[-1]
            return row._replace(mask=row.mask | 1 << first + width - 1)
    return row


def _image(tablegen: TableGen, record: Record, generation: Generation) -> tuple[Any, ...] | None:
    """ImageInfo; None where the opcode says all, as for ray intersection."""
    if "image" not in record or tablegen.images[record["image"][0]]["BVH"]:
        return None
    base, encoding, data, address = record["image"]
    info = tablegen.images[base]
    separate = encoding in ("MIMGEncGfx10NSA", "MIMGEncGfx11NSA", "MIMGEncGfx12")
    sizes = tuple(map(tuple, tablegen.image_sizes[f"{base} {encoding}"]))
    return (data, address, info["NumExtraArgs"], info["Coordinates"], info["LodOrClampOrMip"], info["Gradients"],
            info["G16"], int(generation.a16_packs_gradients), info["Gather4"], int(generation.packed_d16),
            int(separate), int(separate and encoding != "MIMGEncGfx10NSA"), sizes)


def _effects(base: str, format_name: str, named: set[str], behaviour: set[str], shape: tuple[DraftOperand, ...],
             generation: Generation) -> tuple[OpFlag, Counter, Space]:
    flags = _flags(base, format_name, named, behaviour, shape)
    counters = errata.COUNTERS.get(base, Counter.NONE)
    if "VM_CNT" in named:
        counters |= _vector_counter(base, named, flags, generation)
    if "LGKM_CNT" in named and base not in errata.COUNTED_ONLY_AS_ASYNC:
        counters |= Counter.LGKM
    if "EXP_CNT" in named and format_name not in MEMORY_FORMATS:  # loads and stores hold EXP_CNT on gfx6 only
        counters |= Counter.EXP
    if "ASYNC_CNT" in named:
        counters |= Counter.ASYNC
    if "TENSOR_CNT" in named:
        counters |= Counter.TENSOR
    if Counter.LGKM in counters and generation.split_counters and not named & {"DS", "FLAT"}:
        counters = counters & ~Counter.LGKM | Counter.KM
    if generation.replay_counter and flags & (OpFlag.VMEM | OpFlag.SMEM):
        counters |= Counter.X
    return flags, counters, _spaces(format_name, base, named, shape)


def _vector_counter(base: str, named: set[str], flags: OpFlag, generation: Generation) -> Counter:
    """SIInsertWaitcnts, getVmemWaitEventType and getVmemType."""
    if base in errata.COUNTED_AS_STORES:
        return Counter.STORE
    store_only = OpFlag.MAY_STORE in flags and OpFlag.MAY_LOAD not in flags or "IsAtomicNoRet" in named
    if store_only and generation.store_counter:
        return Counter.STORE
    if generation.split_counters and "BVH" in base and named & {"VIMAGE", "MIMG"}:
        return Counter.BVH
    if generation.split_counters and "VSAMPLE" in named:
        return Counter.SAMPLE
    return Counter.VM


TSFLAGS = {
    "SALU": OpFlag.SALU, "TRANS": OpFlag.TRANS, "IsDOT": OpFlag.DOT, "IsPacked": OpFlag.PACKED, "DPP": OpFlag.DPP,
    "SDWA": OpFlag.SDWA, "SMRD": OpFlag.SMEM, "EXP": OpFlag.EXPORT, "FLAT": OpFlag.FLAT,
    "IsAtomicRet": OpFlag.ATOMIC | OpFlag.ATOMIC_RETURN, "IsAtomicNoRet": OpFlag.ATOMIC,
    "IsWMMA": OpFlag.MATRIX, "IsSWMMAC": OpFlag.MATRIX,
}
BEHAVIOUR = {
    "mayLoad": OpFlag.MAY_LOAD, "mayStore": OpFlag.MAY_STORE, "hasSideEffects": OpFlag.SIDE_EFFECTS,
    "isTerminator": OpFlag.TERMINATOR,
}


def _flags(base: str, format_name: str, named: set[str], behaviour: set[str],
           shape: tuple[DraftOperand, ...]) -> OpFlag:
    flags = errata.FLAGS.get(base, OpFlag.NONE)
    for name, flag in TSFLAGS.items():
        flags |= flag if name in named else OpFlag.NONE
    for name, flag in BEHAVIOUR.items():
        flags |= flag if name in behaviour else OpFlag.NONE
    if format_name in MEMORY_FORMATS:
        flags |= OpFlag.VMEM
    elif "VALU" in named:  # LLVM sets it on loads to LDS too
        flags |= OpFlag.VALU
    if "DS" in named:
        flags |= OpFlag.GDS if "GWS" in named else OpFlag.LDS
        if OpFlag.MAY_LOAD not in flags:  # LLVM calls plain stores atomic too
            flags &= ~OpFlag.ATOMIC
    if "IsMAI" in named and "ACCVGPR" not in base:  # matrix operations take all lanes (CDNA2 ISA 7.1)
        flags |= OpFlag.MATRIX
    if OpFlag.MATRIX in flags:
        flags |= OpFlag.IGNORES_EXEC
    if OpFlag.DPP in flags or format_name in SAMPLING_FORMATS:
        flags |= OpFlag.READS_OTHER_LANES
    if any(operand.operand_class.kind == "branch" for operand in shape) and OpFlag.CALL not in flags:
        flags |= OpFlag.BRANCH | OpFlag.TERMINATOR
    if OpFlag.BRANCH in flags and base not in errata.UNCONDITIONAL:
        flags |= OpFlag.CONDITIONAL
    return flags


def _spaces(format_name: str, base: str, named: set[str], shape: tuple[DraftOperand, ...]) -> Space:
    if format_name == "DS":
        return Space.NONE if base in errata.NO_MEMORY else Space.GDS if "GWS" in named else Space.LDS
    names = {operand.name for operand in shape}
    if format_name == "SMRD":
        return Space.SCALAR if "sbase" in names else Space.NONE
    space = Space.NONE
    if format_name == "FLAT":
        space = Space.GLOBAL if "FlatGlobal" in named else Space.SCRATCH if "FlatScratch" in named else \
            Space.GLOBAL | Space.LDS | Space.SCRATCH
    elif format_name in MEMORY_FORMATS and names & {"srsrc", "rsrc"}:
        # private memory is reached through swizzled buffer descriptors too
        space = Space.GLOBAL | Space.SCRATCH if format_name in ("MUBUF", "MTBUF") else Space.GLOBAL
    if "_LDS" in base:
        space |= Space.LDS
    return space


def _partial(tablegen: TableGen, generation: Generation, base: str, named: set[str], record: Record,
             pseudo: Record | None, shape: tuple[DraftOperand, ...]) -> bool:
    """Whether a result leaves bits of its register as they were (GCNSubtarget::zeroesHigh16BitsOfDest)."""
    constraints = record.get("Constraints") or (pseudo or {}).get("Constraints") or ""
    if base.endswith("_TFE") and any(Access.WRITE in operand.access for operand in shape):
        return True  # see instruction.FAIL_ENABLES
    if any(name == "vdst_in" for name, _ in record["In"]) or "_D16" in base and "$vdata_in" in constraints:
        return True  # d16 loads, mixlo, mixhi, v_writelane, v_cvt_sr_bf8_f32
    if any(Access.WRITE in operand.access and operand.operand_class.kind in HALVES for operand in shape):
        return True
    if base in errata.KEEPS_LANES | errata.KEEPS_REGISTERS | errata.KEEPS_OTHER_HALF:
        return True
    if base in errata.KEEPS_HIGH_HALF or generation.keeps_high_halves and base in _sixteen_bit_results(tablegen):
        return True
    return "VOP3_OPSEL" in named and base not in errata.FULL_RESULT_WITH_OP_SEL


HALVES = ("v16", "v16lo")


@cache
def _sixteen_bit_results(tablegen: TableGen) -> frozenset[str]:
    """Operations whose result has 16 bits, which records say from gfx11 on."""
    found = {base_name(record["pseudo"], "VOP3") for record in tablegen.instructions.values() if "pseudo" in record
             and any(operand_class(tablegen, str(kind), 0).kind in HALVES for _, kind in record["Out"])}
    return frozenset(found) | errata.SIXTEEN_BIT_RESULTS


def _fill(name: str, named: set[str], record: Record, shape: tuple[DraftOperand, ...]) -> int:
    """Don't-care bits that LLVM's assembler sets: vdst of gfx10 v_cmpx, op_sel_hi of absent packed sources."""
    names = {operand.name for operand in shape}
    if name.startswith("V_CMPX_") and "VOP3" in named and re.search(r"_gfx1\d", name):
        return 0x7E
    if name.startswith(("V_ACCVGPR_READ", "V_ACCVGPR_WRITE")) or name.startswith("V_WMMA_") and "_gfx11" in name:
        return (1 << 59 | 1 << 60 | 1 << 14) & ~_compute_operand_mask(shape)
    if "VOP3P" not in named or "DPP" in named or "matrix_b_reuse" in names or named & {"IsMAI", "IsWMMA", "IsSWMMAC"}:
        return 0
    if all(operand != "op_sel_hi" for operand, _ in record["In"]):
        mask: int = record["mask"]
        return (1 << 59 | 1 << 60 | 1 << 14) & ~mask
    return sum(1 << bit for source, bit in (("src0", 59), ("src1", 60), ("src2", 14)) if source not in names)


def _compute_operand_mask(shape: tuple[DraftOperand, ...]) -> int:
    """The bits that operands have."""
    return reduce(or_, ((1 << width) - 1 << first for operand in shape for first, width, _ in operand.segments), 0)


def _template(record: Record, name: str, named: set[str], behaviour: set[str],
              shape: tuple[DraftOperand, ...]) -> str:
    """AsmString with what LLVM's printer adds in C++: encoding suffix and implicit vcc operands."""
    text = re.sub(r"\{([^|{}]*)(\|[^}]*)?\}", r"\1", record["AsmString"])
    mnemonic, rest = re.match(r"(\w+)(.*)", text, re.S).groups()  # type: ignore[union-attr]
    if rest.startswith("$") and any(operand.operand_class.printer in ("printVOPDst", "printVINTRPDst")
                                    for operand in shape):
        mnemonic += "_e32" if "VINTRP" in named else _suffix(named, behaviour)
        rest = " " + rest
    if "VOPC" in named and {"VCC", "VCC_LO"} & set(record["Defs"]):
        rest = rest.replace(" $", " $vcc, $", 1)
    rest = rest.replace(",$format $soffset", ", $soffset$format")  # printed after soffset
    rest = re.sub(r"\[\$vaddr0, .*\$vaddr\d+\]", "$vaddr", rest)  # as many as are used
    if "image" in record:
        rest = rest.replace("$a16", " a16" if "_a16_" in name else "$a16" if "a16" in record["fields"] else "")
    if "$op_sel" in rest:
        rest = re.sub(r"\$op_sel\b", _op_sel(name, record, named, shape), rest)
    if VCC_AFTER_SRC1.match(name):
        rest = re.sub(r"\$src1(_modifiers)?\b", r"\g<0>, $vcc", rest, count=1)
    if VCC_AFTER_VDST.match(name):
        rest = rest.replace("$vdst", "$vdst, $vcc", 1)
    rest = re.sub(r"(?<![\w$])vcc(_lo)?(?!\w)", "$vcc", rest)
    return mnemonic + rest


def _op_sel(name: str, record: Record, named: set[str], shape: tuple[DraftOperand, ...]) -> str:
    """Which of the meanings of op_sel (AMDGPUInstPrinter::printOpSel, printPackedModifier)."""
    if re.match(r"V_CVT_(PK_)?F32_(BF8|FP8)_(fake16_|t16_)?e64.*_gfx12$", name):
        return "$op_sel_byte"
    if re.match(r"V_PERMLANEX?16_(VAR_)?B32_", name):
        return "$op_sel_permlane"
    encoded = {operand.name for operand in shape}
    if "VOP3_OPSEL" not in named or not {"vdst", "sdst"} & encoded:
        return "$op_sel"
    tied = any(operand == "src2" for operand, _ in record["In"]) and "src2" not in encoded
    return "$op_sel_with_tied_dst" if tied else "$op_sel_with_dst"


def _suffix(named: set[str], behaviour: set[str]) -> str:
    """AMDGPUInstPrinter::printVOPDst."""
    single = "IsSingle" in behaviour
    if "VOP3" in named:
        return "_e64_dpp" if "DPP" in named else "" if single else "_e64"
    if "DPP" in named:
        return "_dpp"
    if "SDWA" in named:
        return "_sdwa"
    return "_e32" if named & {"VOP1", "VOP2"} and not single else ""


def _expand_dpp8(row: DraftRow) -> list[DraftRow]:
    """DPP8's src0 field is 0xE9, or 0xEA with fetch-inactive: LLVM checks that in C++, so make it two rows."""
    operand = next((o for o in row.shape if o.operand_class.kind == "dpp8fi"), None)
    if operand is None:
        return [row]
    rows = []
    for code in (0xE9, 0xEA):
        mask, value = row.mask, row.value
        for first, width, field in operand.segments:
            mask |= ((1 << width) - 1) << first
            value |= ((code >> field) & ((1 << width) - 1)) << first
        rows.append(row._replace(mask=mask, value=value))
    return rows
