"""Registers that a line of LLVM's text names, and those of a decoded instruction: the same, file, index and width."""

from __future__ import annotations

import re

from luthier_py.isa import Inst, InstructionSet, Reg, RegFile

TOKEN = re.compile(r"(?<![\w.])(?:([sva]|ttmp)(?:(\d+)|\[(\d+):(\d+)\])|(vcc|exec|flat_scratch|xnack_mask|tba|tma)"
                   r"(_lo|_hi)?|(m0))(?![\w(:])")
FILES = {"s": RegFile.SGPR, "ttmp": RegFile.SGPR, "v": RegFile.VGPR, "a": RegFile.AGPR}
SCALAR_PAIRS = {"flat_scratch": 102, "xnack_mask": 104, "vcc": 106, "tba": 108, "tma": 110, "exec": 126}
M0 = 124
EXPORTED = ("src0", "src1", "src2", "src3")


def registers_of_text(isa: InstructionSet, text: str) -> set[Reg]:
    found = set()
    if text.startswith("image_"):
        text = re.sub(r"(?<!,) a16\b", "", text)  # a modifier
    for file, single, first, last, pair, half, _ in TOKEN.findall(text):
        if pair:
            found.add(Reg(RegFile.SGPR, SCALAR_PAIRS[pair] + (half == "_hi"), 1 if half else 2))
        elif not file:
            found.add(Reg(RegFile.SGPR, M0))
        else:
            dwords = int(last) - int(first) + 1 if last else 1
            index = int(single or first) + (isa.target.first_ttmp if file == "ttmp" else 0)
            found.add(Reg(FILES[file], index, dwords))
    return found


def registers_of(isa: InstructionSet, inst: Inst) -> set[Reg]:
    """Of the operands that text shows, and VCC or M0 where the opcode's text has it."""
    shown = {operand.reg for operand in inst.operands if operand.reg is not None and _is_shown(inst, operand.name)}
    vcc = {Reg(RegFile.SGPR, SCALAR_PAIRS["vcc"], isa.wave_size // 32)} if "$vcc" in inst.op.template else set()
    m0 = {Reg(RegFile.SGPR, M0)} if re.search(r"(?<!\$)\bm0\b", inst.op.template) else set()
    return shown | vcc | m0


def _is_shown(inst: Inst, name: str) -> bool:
    """Exports leave out channels that are off; compressed ones have two in each source."""
    if inst.op.format != "EXP" or name not in EXPORTED:
        return True
    place, enabled = EXPORTED.index(name), inst["en"].value
    compressed = inst.find("compr")
    return bool(enabled >> 2 * place & 3 if compressed is not None and compressed.value else enabled >> place & 1)
