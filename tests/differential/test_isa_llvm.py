"""Our instruction set against LLVM 22: compiled kernels, random operands for every row, random words, assembly.

Where LLVM accepts what we refuse, the reason must be one of REFUSALS: encodings that the hardware reserves
but that LLVM's disassembler lets through. Words on which LLVM crashes are counted, not compared.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter

import pytest
from llvm_disassembler import CRASHED, disassemble

from luthier_py.errors import Malformed
from luthier_py.isa import instruction_set, target

CPU = "gfx90a"
ISA = instruction_set(target(CPU))
LINE = re.compile(r"\s+(\S.*?)\s*// [0-9A-F]+: ((?:[0-9A-F]{8} ?)+)")
REFUSALS = re.compile("|".join((
    "exceed the vector register file",                   # tuples beyond v255
    "encoding 125 is reserved",                          # null, from gfx10 on
    "encoding 23[01] is reserved",                       # src_flat_scratch_base, from gfx1250 on
    "(sdst|vdst): operand encoding 2[35].",              # read-only sources as destinations
    "src2: operand encoding (2[5-9].|[345]..) ",         # VGPRs as a lane mask
    "src[01]: operand encoding (23[5-9]|25[1-5]) is",    # scalar conditions where none are wanted; literals
    "(637|76[0-9]) is reserved",                         # scalars as an AGPR
    "dst_unused: operand encoding 3",
    "tuples start at even registers",                    # wide image data at an odd register
)))
LITERALS = (1, 0x3F800000, 0x11223344, 0x3C00, 0xFFFFFFFF, 0x3FF00000, 0x3E22F983)
INTERESTING = (0, 1, 2, 4, 8, 102, 104, 106, 124, 126, 127, 128, 129, 193, 240, 242, 248, 251, 253, 256, 258, 260, 500)


def normal(text: str) -> str:
    return " ".join(text.split(" ; Warning")[0].split())


@pytest.fixture(scope="module")
def llvm(require_tool):
    return lambda words: disassemble(require_tool("llvm-mc-22"), CPU, words)


def compare(words: list[bytes], answers: list[tuple[int, str]]) -> Counter[str]:
    """Fails on the first real difference; returns how often what happened."""
    seen: Counter[str] = Counter()
    for word, (length, text) in zip(words, answers, strict=True):
        seen[_compare_one(word, length, text)] += 1
    return seen


def _compare_one(word: bytes, length: int, text: str) -> str:
    if (length, text) == CRASHED:
        return "LLVM crashed"
    try:
        inst = ISA.decode(word)
    except Malformed as error:
        if length == 0:
            return "both refuse"
        if "/*" in text:
            return "LLVM complains"
        assert REFUSALS.search(str(error)), (word.hex(), text, str(error))
        return "LLVM accepts what is reserved"
    if "/*" in text or "image_atomic" in text or inst.op.base.startswith(("V_MADAK", "V_MADMK")):
        return "not compared"  # LLVM prints the literal of v_madak as if it were a source encoding
    assert length == len(inst.raw), (word.hex(), text, ISA.text(inst))
    assert normal(text) == normal(ISA.text(inst)), word.hex()
    assert ISA.decode(ISA.encode(inst.op, inst.fields, inst.literal)).fields == inst.fields
    return "equal"


def test_compiled_kernels(sample, require_tool) -> None:
    printed = subprocess.run([require_tool("llvm-objdump-22"), "-d", sample.path], capture_output=True, text=True)
    lines = [found for found in map(LINE.match, printed.stdout.splitlines()) if found]
    assert len(lines) > 20
    for text, words in (found.groups() for found in lines):
        code = b"".join(int(word, 16).to_bytes(4, "little") for word in words.split())
        inst = ISA.decode(code)
        assert (ISA.text(inst).rstrip(), inst.raw) == (text.rstrip(), code)
        if inst.op.format not in ("VOP1", "VOP2"):  # compilers set no don't-care bits but those of `fill`
            assert ISA.encode(inst.op, inst.fields, inst.literal) == code


def random_word(generator: random.Random, op) -> bytes:
    """One instruction of ``op``: random bits, half of the operands from INTERESTING, then a literal."""
    word = generator.getrandbits(8 * op.size_bytes)
    for info in op.operands:
        if generator.random() < 0.5:
            value = generator.choice(INTERESTING)
            for first, width, at in info.segments:
                mask = (1 << width) - 1
                word = word & ~(mask << first) | (value >> at & mask) << first
    word = word & ~op.mask | op.value
    return word.to_bytes(op.size_bytes, "little") + generator.choice(LITERALS).to_bytes(4, "little") + bytes(8)


def test_random_operands_of_every_row(llvm) -> None:
    generator = random.Random(1)
    words = [random_word(generator, op) for op in ISA.ops]
    seen = compare(words, llvm(words))
    assert seen["equal"] > 1500 and seen["LLVM accepts what is reserved"] < 200


def test_random_words(llvm) -> None:
    """Every fourth half-word as the opcode half, the rest random: validity both ways."""
    generator = random.Random(2)
    words = [(generator.randrange(8) | high << 3).to_bytes(2, "little") for high in range(8192)]
    words = [generator.randbytes(2) + word + generator.randbytes(8) + bytes(8) for word in words]
    seen = compare(words, llvm(words))
    assert seen["equal"] > 4000 and seen["both refuse"] > 2000


def test_assembly(require_tool) -> None:
    """LLVM's assembler makes the same bytes of our text as our encoder makes of the fields, fixed fields and all."""
    generator = random.Random(3)
    texts, codes = [], []
    for op in ISA.ops:
        try:
            inst = ISA.decode(random_word(generator, op))
        except Malformed:
            continue
        if inst.op is op:
            texts.append(ISA.text(inst))
            codes.append(ISA.encode(op, inst.fields, inst.literal))
    done = subprocess.run([require_tool("llvm-mc-22"), "-triple=amdgcn", f"-mcpu={CPU}", "-show-encoding"],
                          input="\n".join(texts), capture_output=True, text=True)
    refused = {int(line) for line in re.findall(r"<stdin>:(\d+):\d+: error", done.stderr)}
    made = iter(re.findall(r"encoding: \[(.*?)\]", done.stdout))
    equal = 0
    for line, (text, code) in enumerate(zip(texts, codes, strict=True), 1):
        if line not in refused:  # constant bus, dmask, offsets of s_buffer: legal to decode, not to write
            assembled = bytes(int(byte, 16) for byte in next(made).split(","))
            # not printed, so not assembled: the low bit of scalar pairs, and modifiers of sources that have none
            assert assembled == code or ISA.text(ISA.decode(assembled)) == text
            equal += assembled == code
    assert equal > 1000
