"""Our instruction set against LLVM's, word by word: what is compared, and the differences that have a reason.

In: a target, a wave size, how many words. Out: an Agreement. Invariant: every word is counted once, and what is not
equal is either explained by one of REFUSALS or LLVM_DEFECTS, or kept as a difference.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from llvm_disassembler import CRASHED, disassemble

from luthier_py.errors import Invalid, Malformed
from luthier_py.isa import EXEC, Inst, InstructionSet, OpFlag, OpInfo, instruction_set, target

# Why we refuse what LLVM's disassembler lets through without a word: pattern of our error -> reason.
REFUSALS = {
    "exceed the vector register file": "registers beyond the last one",
    "exceed the scalar register file": "registers beyond the last one",
    "tuples start at even registers": "image data at an odd register",
    "dst_unused: operand encoding 3 ": "SDWA has no fourth way to treat the rest",
    "operand encoding 12[45] is reserved": "null where the target or the operand has none",
    "operand encoding 23[01] is reserved": "src_flat_scratch_base, before gfx1250",
    "operand encoding 255 is reserved": "a literal where the encoding has no room for one",
    "literals of two sizes": "literals of 4 and 8 bytes in one instruction",
    "a second literal": "a literal that is not the mandatory one",
    "(sdst|vdst|sdata): operand encoding 2[35]\\d ": "a read-only source as destination",
    "src2: operand encoding (2[5-9]\\d|[345]\\d\\d) ": "a vector register as a lane mask",
    "operand encoding (23[5-9]|25[1-4]) ": "a condition or an aperture where only a register makes sense",
    "operand encoding (5[2-9]\\d|[67]\\d\\d) ": "AGPRs where none can be named",
    "rsrc: operand encoding 1[12]\\d ": "registers beyond the last one",
}
def accepted(inst: Inst) -> str | None:
    """Why we accept what LLVM's disassembler calls a soft failure."""
    if inst.op.base.startswith("V_CMPX_") and inst.op.format == "VOP3" and inst.raw[0] != EXEC:
        return "v_cmpx whose unused vdst is not EXEC, as LLVM 15 made them"
    return None


LITERALS = (1, 0x3F800000, 0x11223344, 0x3C00, 0xFFFFFFFF, 0x3FF00000, 0x3E22F983)
INTERESTING = (0, 1, 2, 4, 8, 102, 104, 106, 108, 124, 125, 126, 127, 128, 129, 193, 240, 242, 248, 251, 253, 255, 256,
               258, 260, 500)
ROOM = 28  # bytes: the longest encoding with the longest literal


def looks_inline(value: int) -> bool:
    return 128 <= value <= 208 or 240 <= value <= 248 or value == 255


def llvm_defect(inst: Inst, text: str) -> str | None:
    """Why LLVM 22.1.8's text of ``inst`` is wrong, though it accepts it.

    Its decoder turns source encodings into constants by the place of an operand, before operands that have no bits
    are inserted, so that numbers in other fields are taken for source encodings (decodeImmOperands).
    """
    for info, value in zip(inst.op.operands, inst.fields, strict=True):
        if info.name in ("dpp8", "dpp_ctrl") and looks_inline(value):
            return f"{info.name} taken for a source"
        if info.kind == "kimm" and looks_inline(value):
            return "mandatory literal taken for a source"
    if OpFlag.DPP in inst.op.flags and inst.op.base.startswith("V_FMAC"):
        return "constants of v_fmac with DPP not shown as such"
    if "/*" in text:
        return "a comment about operands that are right"
    return "|x, vcc_lo|" if re.search(r", vcc(_lo)?\|", text) else None


@dataclass
class Agreement:
    """How often what happened, over all words of a target."""

    words: int = 0
    crashes: int = 0              # of LLVM
    both_refuse: int = 0
    both_accept: int = 0
    length: int = 0               # of both_accept, equal
    mnemonic: int = 0
    text: int = 0
    encoded: int = 0              # of both_accept: our encoding of the fields decodes to the same again
    defects: Counter[str] = field(default_factory=Counter)   # of LLVM's text, not compared
    refusals: Counter[str] = field(default_factory=Counter)  # LLVM accepts without a word, we refuse
    soft: Counter[str] = field(default_factory=Counter)      # LLVM calls it a soft failure, we accept
    complaints: int = 0           # LLVM accepts with a comment that something is invalid, we refuse
    differences: list[str] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        return not self.differences

    def add(self, isa: InstructionSet, word: bytes, length: int, text: str) -> None:
        self.words += 1
        if (length, text) == CRASHED:
            self.crashes += 1
            return
        try:
            inst = isa.decode(word)
        except Malformed as error:
            self._refused(word, length, text, str(error))
            return
        if length == 0 and (reason := accepted(inst)) is not None:
            self.soft[reason] += 1
        elif length == 0:
            self._differs("LLVM refuses", word, text, isa.text(inst))
        else:
            self.both_accept += 1
            self._compare(isa, inst, word, length, normal(text))

    def _refused(self, word: bytes, length: int, text: str, error: str) -> None:
        if length == 0:
            self.both_refuse += 1
        elif "/*" in text:
            self.complaints += 1
        else:
            reason = next((reason for pattern, reason in REFUSALS.items() if re.search(pattern, error)), None)
            if reason is None:
                self._differs("we refuse", word, text, error)
            else:
                self.refusals[reason] += 1

    def _compare(self, isa: InstructionSet, inst: Inst, word: bytes, length: int, text: str) -> None:
        ours = normal(isa.text(inst))
        defect = None if (length, text) == (len(inst.raw), ours) else llvm_defect(inst, text)
        if defect is not None:
            self.defects[defect] += 1
        elif (length, text) != (len(inst.raw), ours):
            self._differs("text", word, text, ours)
        right = defect is not None
        self.length += right or length == len(inst.raw)
        self.mnemonic += right or text.split()[0] == ours.split()[0]
        self.text += right or text == ours
        again = isa.decode(isa.encode(inst.op, inst.fields, inst.literal))
        if again.fields != inst.fields and again.op.base != inst.op.base:  # true 16-bit forms have a fake twin
            self._differs("encoding", word, text, isa.text(again))
        else:
            self.encoded += 1

    def _differs(self, what: str, word: bytes, theirs: str, ours: str) -> None:
        self.differences.append(f"{what}: {word.hex()} LLVM {theirs!r} ours {ours!r}")


def normal(text: str) -> str:
    return " ".join(text.split(" ; Warning")[0].split())


def features_of(isa: InstructionSet) -> str:
    """What LLVM must be told: the wave size, and true 16-bit registers on gfx12, as compilers use them."""
    features = [f"+wavefrontsize{isa.wave_size}"] if len(isa.target.wave_sizes) > 1 else []
    return ",".join([*features, *(["+real-true16"] if isa.target.generation >= 12 else [])])


def random_word(generator: random.Random, op: OpInfo) -> bytes:
    """One instruction of ``op``: random bits, half of the operands from INTERESTING, then a literal."""
    word = generator.getrandbits(8 * op.size_bytes)
    for info in op.operands:
        if generator.random() < 0.5:
            value = generator.choice(INTERESTING)
            for first, width, at in info.segments:
                mask = (1 << width) - 1
                word = word & ~(mask << first) | (value >> at & mask) << first
    word = word & ~op.mask | op.value
    literal = generator.choice(LITERALS).to_bytes(4, "little")
    return (word.to_bytes(op.size_bytes, "little") + literal).ljust(ROOM, b"\0")


def words_of_rows(isa: InstructionSet, seed: int, each: int = 1, every: int = 1) -> list[bytes]:
    """``each`` words with random operands of every row, or of each ``every``-th."""
    generator = random.Random(seed)
    return [random_word(generator, op) for op in isa.ops[seed % every::every] for _ in range(each)]


def words_of_opcodes(seed: int, each: int, step: int = 1) -> Iterator[bytes]:
    """``each`` random words for every value of the high half-word, where opcodes are, in steps."""
    generator = random.Random(seed)
    for high in range(0, 1 << 16, step):
        for _ in range(each):
            word = generator.randbytes(2) + (high + generator.randrange(step)).to_bytes(2, "little")
            yield (word + generator.randbytes(12)).ljust(ROOM, b"\0")


def agreement(tool: str, name: str, wave_size: int, words: list[bytes]) -> Agreement:
    """``words`` read by us and by the LLVM of ``tool``."""
    isa = instruction_set(target(name), wave_size)
    found = Agreement()
    answers = disassemble(tool, name, words, features_of(isa))
    for word, (length, text) in zip(words, answers, strict=True):
        found.add(isa, word, length, text)
    return found


# Text that LLVM 22.1.8's assembler reads in a way of its own: pattern -> reason.
ASSEMBLER_DEFECTS = {
    r"\|lit\(": "LLVM forgets lit() inside |...|",
    r"lit64\(": "LLVM makes a literal of 32 bits of lit64() for a narrow operand",
    r"s_barrier_\w+ (null|src_)": "LLVM takes special sources of barriers for numbers",
    r"v_cndmask_b16": "LLVM takes the floats of v_cndmask_b16 for inline constants",
    r"v_dual_.*::": "LLVM takes VOPD3 for pairs that VOPD can say, by register banks",
}


@dataclass
class Assembled:
    """Our text of random instructions, assembled by LLVM and by us."""

    texts: int = 0
    refused: int = 0          # by LLVM: what can be decoded need not be legal to write
    equal: int = 0            # of the others: the same bytes
    defects: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def assembled(tool: str, name: str, wave_size: int, words: list[bytes]) -> Assembled:
    """The text of each word that is an instruction, as LLVM and as we assemble it."""
    isa = instruction_set(target(name), wave_size)
    texts = []
    for word in words:
        try:
            texts.append(isa.text(isa.decode(word)))
        except Malformed:
            continue
    found = Assembled(len(texts))
    for text, theirs in zip(texts, llvm_bytes(tool, isa, texts), strict=True):
        if theirs is None:
            found.refused += 1
            continue
        try:
            ours = isa.parse(text).raw.hex()
        except Invalid as error:
            ours = str(error)
        reason = next((reason for pattern, reason in ASSEMBLER_DEFECTS.items() if re.search(pattern, text)), None)
        if ours == theirs.hex():
            found.equal += 1
        elif reason is not None:
            found.defects[reason] += 1
        else:
            found.differences.append(f"{text}: LLVM {theirs.hex()} ours {ours}")
    return found


def llvm_bytes(tool: str, isa: InstructionSet, texts: list[str]) -> list[bytes | None]:
    """What LLVM's assembler makes of each line; None where it refuses."""
    listing = "\n".join(f"L{number}:\n{text}" for number, text in enumerate(texts))
    command = [tool, "-triple=amdgcn", f"-mcpu={isa.target.name}", f"-mattr={features_of(isa)}", "-show-encoding"]
    done = subprocess.run(command, input=listing, capture_output=True, text=True)
    refused = {int(line) // 2 - 1 for line in re.findall(r"<stdin>:(\d+):\d+: error", done.stderr)}
    made: list[bytes | None] = [None] * len(texts)
    for part in re.split(r"(?m)^L(?=\d+:$)", done.stdout)[1:]:
        number, encoding = int(part.split(":")[0]), re.search(r"encoding: \[(.*?)\]", part)
        if number not in refused and encoding is not None:
            made[number] = bytes(int(byte, 16) for byte in encoding.group(1).split(","))
    return made
