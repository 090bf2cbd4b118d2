"""Text of what follows the operands: offsets, cache policy, packed and DPP modifiers, wait counts, messages.

In: a line (the instruction and its target) and the place of an operand. Out: its text, with its own leading
space where LLVM has one. Names are LLVM's PrintMethods (AMDGPUInstPrinter.cpp), arguments what the table
carries after a colon.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.isa.encoding.errata import STORES_FROM_LDS
from luthier_py.isa.encoding.instruction import Counter, Inst, OpFlag, OpInfo
from luthier_py.isa.encoding.waitcnt import decode_waitcnt, read_waitcnt
from luthier_py.isa.model.names import DATA_FORMATS, NUMBER_FORMATS, list_unified_formats
from luthier_py.isa.model.target import Target


class Line:
    """An instruction that is being printed."""

    __slots__ = ("inst", "target")

    def __init__(self, inst: Inst, target: Target) -> None:
        self.inst = inst
        self.target = target

    def value(self, name: str, default: int = 0) -> int:
        """The raw field called ``name``."""
        for info, field in zip(self.inst.op.operands, self.inst.fields, strict=True):
            if info.name == name:
                return field
        return default

    def mandatory_literal(self) -> int:
        """The literal that is a separate field (v_fmaak and its like)."""
        return next(field for info, field in zip(self.inst.op.operands, self.inst.fields, strict=True)
                    if info.kind == "kimm")


Handler = Callable[[Line, int, str], str]


def _bit(line: Line, place: int, name: str) -> str:
    if name == "gds" and not line.target.gds_modifier:
        return ""
    return f" {name}" if line.inst.fields[place] else ""


def _int(line: Line, place: int, arguments: str) -> str:
    """``name:hex`` or ``name:dec``, with ``:always`` even when zero."""
    name, base, *always = arguments.split(":")
    value = line.inst.operands[place].value
    text = hex(value) if base == "hex" else str(value)
    return f" {name}:{text}" if value or always else ""


def _offset(line: Line, place: int, _: str) -> str:
    value = line.inst.operands[place].value
    return f" offset:{value}" if value else ""


def _smem_offset(line: Line, place: int, _: str) -> str:
    return hex(line.inst.operands[place].value)


def _cache_policy(line: Line, place: int, _: str) -> str:
    return cache_policy(line, line.inst.fields[place])


IMPLIED_GLC = frozenset({"MUBUF", "FLAT", "SMRD"})  # formats whose returning atomics have glc in the opcode


def cache_policy(line: Line, bits: int) -> str:
    """Bits: 1 glc, 2 slc, 4 dlc, 16 scc; CDNA3 calls them sc0, nt, sc1, but for scalar loads."""
    target, flags = line.target, line.inst.op.flags
    if OpFlag.ATOMIC_RETURN in flags and line.inst.op.format in IMPLIED_GLC:
        bits |= 1
    if target.generation >= 12:
        return _temporal_policy(line, bits)
    renamed = target.sc_cache_bits
    text = ""
    if bits & 1:
        text += " sc0" if renamed and OpFlag.SMEM not in flags else " glc"
    if bits & 2:
        text += " nt" if renamed else " slc"
    if bits & 4 and target.generation >= 10:
        text += " dlc"
    if bits & 16 and target.scc_cache_bit:
        text += " sc1" if renamed else " scc"
    return text


SCOPES = ("", "SCOPE_SE", "SCOPE_DEV", "SCOPE_SYS")


LOAD_HINTS = ("", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT")
STORE_HINTS = ("", "NT", "HT", "WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB")
ATOMIC_HINTS = ("", "RETURN", "NT", "NT_RETURN")


def _temporal_policy(line: Line, bits: int) -> str:
    """gfx12: temporal hint in the low three bits, scope above (RDNA4 ISA, memory scopes and temporal hints)."""
    hint, scope = bits & 7, bits >> 3 & 3
    text = " scale_offset" if bits >> 11 & 1 else ""
    if hint:
        text += f" th:{_hint(line.inst.op, hint, scope)}"
    text += f" scope:{SCOPES[scope]}" if scope else ""
    return text + (" nv" if bits & 32 else "")


def _hint(op: OpInfo, hint: int, scope: int) -> str:
    if OpFlag.ATOMIC in op.flags:
        cascade = ("CASCADE_NT" if hint & 2 else "CASCADE_RT") if scope >= 2 else hex(hint)
        return f"TH_ATOMIC_{cascade if hint & 4 else ATOMIC_HINTS[hint]}"
    stores = OpFlag.MAY_STORE in op.flags and (OpFlag.MAY_LOAD not in op.flags or op.base in STORES_FROM_LDS)
    names = STORE_HINTS if stores else LOAD_HINTS
    if hint >= len(names):
        return hex(hint)
    return f"TH_{'STORE' if stores else 'LOAD'}_{'BYPASS' if hint == 3 and scope == 3 else names[hint]}"


SOURCES = ("src0", "src1", "src2")


def _print_packed_modifier(line: Line, name: str, bit: int, destination: bool = False, tied: bool = False) -> str:
    """op_sel and its like: one bit of each source's modifiers, shown when one differs from the default."""
    op = line.inst.op
    names = {info.name for info in op.operands}
    values = [line.value(f"{source}_modifiers")
              for source in (SOURCES if tied else _select_packed_sources(op, names))]
    bits = [int(bool(value & bit)) for value in values]
    high_by_default = bit == 8 and OpFlag.PACKED in op.flags
    if all(b == high_by_default for b in bits) and not (destination and values[0] & 8):
        return ""
    if destination:
        bits.append(int(bool(values[0] & 8)))
    return f" {name}:[{','.join(map(str, bits))}]"


def _select_packed_sources(op: OpInfo, names: set[str]) -> tuple[str, ...]:
    """Sources in order; all three for WMMA, and where src1 is missing between two others."""
    if "src2" in names and ("src1" not in names or OpFlag.MATRIX in op.flags):
        return SOURCES
    return tuple(source for source in SOURCES if source in names)


def _of_first_sources(line: Line, name: str, *bits: tuple[str, int]) -> str:
    """op_sel with a special meaning, from bits of named modifiers."""
    shown = [int(bool(line.value(modifiers) & bit)) for modifiers, bit in bits]
    return f" {name}:[{','.join(map(str, shown))}]" if any(shown) else ""


# Operands without bits of their own, by name: they show bits of the source modifiers, or of the opcode.
NAMED: dict[str, Callable[[Line], str]] = {
    "op_sel": lambda line: _print_packed_modifier(line, "op_sel", 4),
    "op_sel_with_dst": lambda line: _print_packed_modifier(line, "op_sel", 4, destination=True),
    "op_sel_with_tied_dst": lambda line: _print_packed_modifier(line, "op_sel", 4, destination=True, tied=True),
    "op_sel_byte": lambda line: _of_first_sources(line, "op_sel", ("src0_modifiers", 4), ("src0_modifiers", 8)),
    "op_sel_permlane": lambda line: _of_first_sources(line, "op_sel", ("src0_modifiers", 4), ("src1_modifiers", 4)),
    "op_sel_hi": lambda line: _print_packed_modifier(line, "op_sel_hi", 8),
    "neg_lo": lambda line: _print_packed_modifier(line, "neg_lo", 1),
    "neg_hi": lambda line: _print_packed_modifier(line, "neg_hi", 2),
    "cpol": lambda line: cache_policy(line, 0),
    "immX": lambda line: hex(line.mandatory_literal()),
}


def _output_modifier(line: Line, place: int, _: str) -> str:
    return ("", " mul:2", " mul:4", " div:2")[line.inst.fields[place]]


def _matrix_negation(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    if value and line.target.sc_cache_bits and "F64" in line.inst.op.base:
        return f" neg:[{value & 1},{value >> 1 & 1},{value >> 2 & 1}]"
    return f" blgp:{value}" if value else ""


DPP_SHIFTS = ((0x100, "row_shl"), (0x110, "row_shr"), (0x120, "row_ror"))
DPP_NAMES = {
    0x130: "wave_shl:1", 0x134: "wave_rol:1", 0x138: "wave_shr:1", 0x13C: "wave_ror:1", 0x140: "row_mirror",
    0x141: "row_half_mirror", 0x142: "row_bcast:15", 0x143: "row_bcast:31",
}


def _dpp_control(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    if value <= 0xFF:
        return f"quad_perm:[{value & 3},{value >> 2 & 3},{value >> 4 & 3},{value >> 6 & 3}]"
    for first, name in DPP_SHIFTS:
        if first < value <= first + 15:
            return f"{name}:{value - first}"
    if 0x150 <= value <= 0x15F:
        return f"{'row_newbcast' if line.target.generation == 9 else 'row_share'}:{value - 0x150}"
    if 0x160 <= value <= 0x16F:
        return f"row_xmask:{value - 0x160}"
    return DPP_NAMES.get(value, "/* Invalid dpp_ctrl value */")


def _dpp8(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    return f"dpp8:[{','.join(str(value >> 3 * lane & 7) for lane in range(8))}]"


def _print_bound_ctrl(line: Line, place: int, _: str) -> str:
    return " bound_ctrl:1" if line.inst.fields[place] else ""


def _fetch_inactive(line: Line, place: int, _: str) -> str:
    return " fi:1" if line.inst.fields[place] in (1, 0xEA) else ""


SDWA_SELECTS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
SDWA_UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")


def _sdwa_select(name: str) -> Handler:
    return lambda line, place, _: f"{name}:{SDWA_SELECTS[line.inst.fields[place]]}"


def _sdwa_unused(line: Line, place: int, _: str) -> str:
    return f"dst_unused:{SDWA_UNUSED[line.inst.fields[place]]}"


COUNTERS = {Counter.VM: "vmcnt", Counter.EXP: "expcnt", Counter.LGKM: "lgkmcnt"}


def _wait_counts(line: Line, place: int, _: str) -> str:
    immediate = line.inst.fields[place]
    shown = decode_waitcnt(line.target, immediate) or read_waitcnt(line.target, immediate)
    return " ".join(f"{name}({shown[counter]})" for counter, name in COUNTERS.items() if counter in shown)


def _hexadecimal(line: Line, place: int, _: str) -> str:
    return hex(line.inst.fields[place])


def _end(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    return f" {value}" if value else ""


def _index_mode(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    if value >= 16:
        return hex(value)
    return f"gpr_idx({','.join(name for k, name in enumerate(('SRC0', 'SRC1', 'SRC2', 'DST')) if value >> k & 1)})"


def _lookup_table(line: Line, place: int, _: str) -> str:
    """v_bitop3's truth table."""
    value = line.inst.fields[place]
    return f" bitop3:{value if value <= 10 else hex(value)}" if value else ""


def _index_key(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place] & 7
    return f" index_key:{value}" if value else ""


def _matrix_names(name: str, *names: str) -> Handler:
    """A field of WMMA with a name for each value; the first is the default."""
    def text(line: Line, place: int, _: str) -> str:
        value = line.inst.fields[place]
        shown = f"MATRIX_{names[value]}" if value < len(names) else str(value)
        return f" matrix_{name}:{shown}" if value else ""
    return text


MATRIX_FORMATS = ("FMT_FP8", "FMT_BF8", "FMT_FP6", "FMT_BF6", "FMT_FP4")
SCALE_ROWS = ("SCALE_ROW0", "SCALE_ROW1")
SCALE_FORMATS = ("SCALE_FMT_E8", "SCALE_FMT_E5M3", "SCALE_FMT_E4M3")


def _image_address(line: Line, place: int, _: str) -> str:
    return (" a16" if line.target.generation == 9 else " r128") if line.inst.fields[place] else ""


def _buffer_format(line: Line, place: int, _: str) -> str:
    """Up to gfx9 data format in four bits and number format in three, later one number; defaults are not shown."""
    value = line.inst.fields[place]
    if line.target.generation >= 10:
        names = list_unified_formats(line.target)
        shown = f"[BUF_FMT_{names[value]}]" if value < len(names) else str(value)
        return f" format:{shown}" if value != 1 else ""
    data, number = value & 15, value >> 4
    parts = [f"BUF_DATA_FORMAT_{DATA_FORMATS[data]}"] if data != 1 else []
    parts += [f"BUF_NUM_FORMAT_{NUMBER_FORMATS[number]}"] if number else []
    return f" format:[{','.join(parts)}]" if parts else ""


def _swizzle(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    if value >= 0xC000 and line.target.generation < 9:
        return f" offset:{value}"  # no FFT, no ROTATE
    return f" offset:{_swizzle_text(value)}" if value else ""


def _swizzle_text(value: int) -> str:
    """ds_swizzle_b32's offset (Vega ISA 12.13.1, and LLVM's printSwizzle for the spelling)."""
    if value >= 0xE000:
        return f"swizzle(FFT,{value & 31})"
    if value >= 0xC000:
        return f"swizzle(ROTATE,{value >> 10 & 1},{value >> 5 & 31})"
    if value & 0xFF00 == 0x8000:
        return f"swizzle(QUAD_PERM,{','.join(str(value >> 2 * lane & 3) for lane in range(4))})"
    if value & 0x8000:
        return str(value)
    keep, put, flip = value & 31, value >> 5 & 31, value >> 10 & 31
    if keep == 31 and not put:
        if flip.bit_count() == 1:
            return f"swizzle(SWAP,{flip})"
        if flip and flip & (flip + 1) == 0:
            return f"swizzle(REVERSE,{flip + 1})"
    group = 32 - keep
    if group > 1 and group.bit_count() == 1 and put < group and not flip:
        return f"swizzle(BROADCAST,{group},{put})"
    return f'swizzle(BITMASK_PERM,"{_swizzle_bits(keep, put, flip)}")'


def _swizzle_bits(keep: int, put: int, flip: int) -> str:
    """What becomes of each bit of the lane number: 0, 1, p (preserved) or i (inverted)."""
    of_zero, of_one = put ^ flip, (keep | put) ^ flip
    names = {(0, 0): "0", (1, 1): "1", (0, 1): "p", (1, 0): "i"}
    return "".join(names[of_zero >> bit & 1, of_one >> bit & 1] for bit in reversed(range(5)))


MODIFIERS: dict[str, Handler] = {
    "bit": _bit,
    "int": _int,
    "printOffset": _offset,
    "printFlatOffset": _offset,
    "printSMEMOffset": _smem_offset,
    "printCPol": _cache_policy,
    "printOModSI": _output_modifier,
    "printBLGP": _matrix_negation,
    "printDPPCtrl": _dpp_control,
    "printDPP8": _dpp8,
    "printDppBoundCtrl": _print_bound_ctrl,
    "printDppFI": _fetch_inactive,
    "printSDWADstSel": _sdwa_select("dst_sel"),
    "printSDWASrc0Sel": _sdwa_select("src0_sel"),
    "printSDWASrc1Sel": _sdwa_select("src1_sel"),
    "printSDWADstUnused": _sdwa_unused,
    "printSWaitCnt": _wait_counts,
    "printU16ImmOperand": _hexadecimal,
    "printU32ImmOperand": _hexadecimal,
    "printEndpgm": _end,
    "printGPRIdxMode": _index_mode,
    "printR128A16": _image_address,
    "printFORMAT": _buffer_format,
    "printSwizzle": _swizzle,
    "printBitOp3": _lookup_table,
    "printOpSel": lambda line, place, _: _print_packed_modifier(line, "op_sel", 4, tied=True),
    "printOpSelHi": lambda line, place, _: _print_packed_modifier(line, "op_sel_hi", 8, tied=True),
    **{f"printIndexKey{bits}bit": _index_key for bits in (8, 16, 32)},
    **{f"printMatrix{side.upper()}FMT": _matrix_names(f"{side}_fmt", *MATRIX_FORMATS) for side in "ab"},
    **{f"printMatrix{side.upper()}Scale": _matrix_names(f"{side}_scale", *SCALE_ROWS) for side in "ab"},
    **{f"printMatrix{side.upper()}ScaleFmt": _matrix_names(f"{side}_scale_fmt", *SCALE_FORMATS) for side in "ab"},
}
