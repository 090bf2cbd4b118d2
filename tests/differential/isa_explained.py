"""Differences from LLVM that have a reason, and the proof that it is the reason.

In: a word that LLVM's disassembler and we read differently. Out: the reason, or None. A pattern alone excuses nothing:
LLVM's assembler must refuse the text that LLVM's disassembler wrote, or make something else of it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from llvm_assembler import Line

from luthier_py.base.errors import Malformed
from luthier_py.isa import EXEC, Inst, InstructionSet, OpFlag

# Why we refuse what LLVM's disassembler lets through without a word: pattern of our error -> reason.
REFUSALS = {
    "(sdst|vdst|sdata): operand encoding 2[35]\\d ": "a read-only source as destination",
    "operand encoding 23[01] is reserved": "src_flat_scratch_base, before gfx1250",
    "exceed the (vector|scalar) register file": "registers beyond the last one",
    "tuples start at even registers": "image data at an odd register",
    "dst_unused: operand encoding 3 ": "SDWA has no fourth way to treat the rest",
    "operand encoding 12[45] is reserved": "null where the target or the operand has none",
    "operand encoding 255 is reserved": "a literal where the encoding has no room for one",
    "literals of two sizes": "literals of 4 and 8 bytes in one instruction",
    "a second literal": "a literal that is not the mandatory one",
    "src2: operand encoding (2[5-9]\\d|[345]\\d\\d) ": "a vector register as a lane mask",
    "operand encoding (23[5-9]|25[1-4]) ": "a condition or an aperture where only a register makes sense",
    "operand encoding (51[2-9]|5[2-9]\\d|[67]\\d\\d) ": "AGPRs where none can be named",
    "operand encoding 1[12]\\d is reserved": "trap registers beyond the last one",
}
# LLVM's register classes hold sources that nothing can write, so its assembler takes them for destinations too. The
# manuals do not: SDST of VOP3 is an SGPR, a trap register, VCC, M0, null or EXEC (RDNA3 ISA 15.3.3, Vega ISA 13.3.4).
TAKEN_BOTH_WAYS = frozenset({"a read-only source as destination"})


class Doubt(NamedTuple):
    """One word that LLVM and we read differently."""

    word: bytes
    length: int        # LLVM's
    theirs: str        # LLVM's text
    ours: str          # our text, or our error
    inst: Inst | None  # None: we refuse


def refusal(isa: InstructionSet, doubt: Doubt, theirs: Line) -> str | None:
    """Why we refuse what LLVM's disassembler takes; ``theirs`` is its text, assembled by LLVM."""
    reason = next((reason for pattern, reason in REFUSALS.items() if re.search(pattern, doubt.ours)), None)
    made = theirs.code  # if it is shorter or longer, or we accept it, then the text does not say the word
    lost = made is None or len(made) != doubt.length or _decoded(isa, made) is not None
    return reason if lost or reason in TAKEN_BOTH_WAYS else None


def misprint(isa: InstructionSet, doubt: Doubt, theirs: Line, ours: Line) -> str | None:
    """Why LLVM's text is wrong: assembling it does not give the word, assembling ours does or is refused."""
    assert doubt.inst is not None
    reason = llvm_defect(doubt.inst, doubt.theirs)
    sayable = ours.code is not None and reason != MISTAKEN_CONSTANTS
    return None if _says(isa, theirs, doubt.inst) or sayable and not _says(isa, ours, doubt.inst) else reason


def mended(doubt: Doubt) -> bytes:
    """The word with EXEC as the destination of v_cmpx, which is all that LLVM's disassembler has against some."""
    return bytes([EXEC]) + doubt.word[1:] if doubt.inst and doubt.inst.op.base.startswith("V_CMPX_") else doubt.word


def soft_failure(doubt: Doubt, mended_text: str) -> str | None:
    """Why we accept what LLVM's disassembler calls a soft failure: it reads the mended word as we read this one."""
    if doubt.word[0] != EXEC and mended_text == doubt.ours:
        return "v_cmpx whose unused vdst is not EXEC, as LLVM 15 made them"
    return None


def _decoded(isa: InstructionSet, code: bytes) -> Inst | None:
    try:
        return isa.decode(code)
    except Malformed:
        return None


def _says(isa: InstructionSet, line: Line, inst: Inst) -> bool:
    """Whether LLVM made of the line what ``inst`` says, whatever don't-care bits are."""
    made = None if line.code is None else _decoded(isa, line.code)
    return made is not None and (made.op.base, made.fields, made.literal) == (inst.op.base, inst.fields, inst.literal)


PACKED_CONVERSIONS = frozenset({"V_CVT_PK_BF8_F16", "V_CVT_PK_FP8_F16"})
MISTAKEN_CONSTANTS = "constants of v_cvt_pk_bf8_f16 and v_cvt_pk_fp8_f16 taken for f32 or written as literals"


def _looks_inline(value: int) -> bool:
    return 128 <= value <= 208 or 240 <= value <= 248 or value == 255


def llvm_defect(inst: Inst, text: str) -> str | None:
    """What LLVM 22.1.8 gets wrong in its text of ``inst``, though it accepts it.

    Its decoder turns source encodings into constants by the place of an operand, before operands that have no bits
    are inserted, so that numbers in other fields are taken for source encodings (decodeImmOperands).
    """
    for info, value in zip(inst.op.operands, inst.fields, strict=True):
        if info.name in ("dpp8", "dpp_ctrl") and _looks_inline(value):
            return f"{info.name} taken for a source"
        if info.kind == "kimm" and _looks_inline(value):
            return "mandatory literal taken for a source"
    if inst.op.base in PACKED_CONVERSIONS and inst.literal is None:
        return MISTAKEN_CONSTANTS
    if OpFlag.DPP in inst.op.flags and inst.op.base.startswith("V_FMAC"):
        return "constants of v_fmac with DPP not shown as such"
    if "/*" in text:
        return "a comment about operands that are right"
    return "|x, vcc_lo|" if re.search(r", vcc(_lo)?\|", text) else None


# Text that LLVM 22.1.8's assembler reads in a way of its own: pattern -> reason.
ASSEMBLER_DEFECTS = {
    r"\|lit\(": "LLVM forgets lit() inside |...|",
    r"lit64\(": "LLVM makes a literal of 32 bits of lit64() for a narrow operand",
    r"s_\w*barrier\w* .*(null|src_)": "LLVM takes special sources of barriers for numbers",
    r"v_cndmask_b16": "LLVM takes the floats of v_cndmask_b16 for inline constants",
    r"v_pk_fmac_f16 .*\d\.\d": "LLVM takes the floats of v_pk_fmac_f16 for literals",
    r"0x\w+, (-?\|?)lit\(|lit\(\w+\)\|?, 0x": "LLVM gives two literals one place",
}


# Text that it should refuse, and accepts: our error -> pattern of the text -> reason.
OVERLOOKED = (
    ("in the same bank", "v_dual_.*dot2acc", "LLVM overlooks register banks of v_dual_dot2acc"),
    ("more than 1 scalar", "v_(lshr|ashr)rev_[bi]64", "LLVM's list of shifts that read one scalar lacks gfx1250"),
)


def misread(text: str, read_back: str, ours: str) -> str | None:
    """Why LLVM's assembler is wrong: its disassembler reads the bytes that it made of ``text`` as ``read_back``."""
    for error, pattern, reason in OVERLOOKED:
        if error in ours and re.match(pattern, text):
            return reason
    if re.match("v_cvt_pk_[bf][fp]8_f16 ", text):
        return MISTAKEN_CONSTANTS
    if text.startswith("v_dual_dot2acc_f32_bf16") and " " not in ours:
        return "LLVM takes the longer encoding of v_dual_dot2acc_f32_bf16"
    if read_back == text:
        return None
    if "lit(" in text and "lit64(" in read_back:
        return "LLVM 22 makes a literal of 64 bits of lit(), even in VOP3, which has none (LLVM, pull request 197561)"
    return next((reason for pattern, reason in ASSEMBLER_DEFECTS.items() if re.search(pattern, text)), None)
