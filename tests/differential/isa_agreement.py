"""Our instruction set against LLVM's, word by word, and line by line of assembly.

In: an instruction set and words. Out: an Agreement or Assembled. Invariant: every word is counted once; what is not
equal is explained with a proof (isa_explained) and then not compared, or kept as a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from isa_explained import Doubt, mended, misprint, misread, refusal, soft_failure
from isa_registers import registers_of, registers_of_text
from llvm_assembler import assemble
from llvm_disassembler import CRASHED, disassemble

from luthier_py.base.errors import Invalid, Malformed
from luthier_py.isa import Inst, InstructionSet


@dataclass
class Agreement:
    """How often what happened, over all words of a target."""

    words: int = 0
    both_refuse: int = 0
    compared: int = 0             # both accept; less what is explained
    length: int = 0               # of those, equal
    mnemonic: int = 0
    operands: int = 0             # registers: file, index, width
    text: int = 0
    encoded: int = 0              # our encoding of the fields decodes to the same again
    validity: int = 0             # of all words that are not explained: differ in whether this is an instruction
    explained: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        return not self.differences

    def differs(self, what: str, word: bytes, theirs: str, ours: str) -> None:
        self.differences.append(f"{what}: {word.hex()} LLVM {theirs!r} ours {ours!r}")


def features_of(isa: InstructionSet) -> str:
    """What LLVM must be told: the wave size, and true 16-bit registers on gfx12, as compilers use them."""
    features = [f"+wavefrontsize{isa.wave_size}"] if len(isa.target.wave_sizes) > 1 else []
    return ",".join([*features, *(["+real-true16"] if isa.target.generation >= 12 else [])])


def agreement(tool: str, isa: InstructionSet, words: Sequence[bytes]) -> Agreement:
    """``words`` read by us and by the LLVM of ``tool``."""
    found = Agreement(words=len(words))
    doubts = []
    answers = disassemble(tool, isa.target.name, words, features_of(isa))
    for word, (length, text) in zip(words, answers, strict=True):
        if (length, text) == CRASHED:
            found.explained["LLVM's disassembler crashes"] += 1
        elif (doubt := _read(found, isa, word, length, normal(text))) is not None:
            doubts.append(doubt)
    _settle(tool, isa, found, doubts)
    return found


def normal(text: str) -> str:
    return " ".join(text.split(" ; Warning")[0].split())


def _read(found: Agreement, isa: InstructionSet, word: bytes, length: int, text: str) -> Doubt | None:
    """Count a word that is read alike; else what there is to say about it."""
    try:
        inst = isa.decode(word)
    except Malformed as error:
        if length == 0 or "/*" in text:  # a comment that something is invalid refuses too
            found.both_refuse += 1
            return None
        return Doubt(word, length, text, str(error), None)
    ours = normal(isa.text(inst))
    if (length, text) != (len(inst.raw), ours):
        return Doubt(word, length, text, ours, inst)
    _count(found, isa, Doubt(word, length, text, ours, inst), inst)
    return None


def _count(found: Agreement, isa: InstructionSet, read: Doubt, inst: Inst) -> None:
    """Count a word that both accept, by what is equal."""
    word, length, text, ours, _ = read
    registers = registers_of_text(isa, text) == registers_of(isa, inst)
    again = isa.decode(isa.encode(inst.op, inst.fields, inst.literal))
    encoded = again.fields == inst.fields if again.op is inst.op else \
        again.op.base == inst.op.base and registers_of(isa, again) == registers_of(isa, inst)  # 16 bits: twins
    found.compared += 1
    found.length += length == len(inst.raw)
    found.mnemonic += text.split()[0] == ours.split()[0]
    found.operands += registers
    found.text += text == ours
    found.encoded += encoded
    if (length, text) != (len(inst.raw), ours):
        found.differs("text", word, text, ours)
    if not registers:
        found.differs("registers", word, text, " ".join(map(str, registers_of(isa, inst))))
    if not encoded:
        found.differs("encoding", word, text, isa.text(again))


def _settle(tool: str, isa: InstructionSet, found: Agreement, doubts: Sequence[Doubt]) -> None:
    """Ask LLVM's assembler what each of the texts says."""
    texts = [text for doubt in doubts for text in (doubt.theirs or "?", doubt.ours if doubt.inst else "?")]
    made = assemble(tool, isa.target.name, features_of(isa), texts)
    read = disassemble(tool, isa.target.name, [mended(doubt) for doubt in doubts], features_of(isa))
    for doubt, theirs, ours, (_, text) in zip(doubts, made[::2], made[1::2], read, strict=True):
        if doubt.inst is None:
            reason, what = refusal(isa, doubt, theirs), "we refuse"
        elif doubt.length == 0:
            reason, what = soft_failure(doubt, normal(text)), "LLVM refuses"
        else:
            reason, what = misprint(isa, doubt, theirs, ours), ""
        if reason is not None:
            found.explained[reason] += 1
        elif what:
            found.validity += 1
            found.differs(what, doubt.word, doubt.theirs, doubt.ours)
        elif doubt.inst is not None:
            _count(found, isa, doubt, doubt.inst)


@dataclass
class Assembled:
    """Lines of text, assembled by LLVM and by us."""

    lines: int = 0
    refused: int = 0          # by LLVM: what can be decoded need not be legal to write
    lenient: Counter[str] = field(default_factory=Counter)  # LLVM's reasons where we accept all the same
    compared: int = 0         # the others; less what is explained
    equal: int = 0            # the same bytes
    explained: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def texts_of(isa: InstructionSet, words: Sequence[bytes]) -> list[str]:
    """Our text of each word that is an instruction."""
    texts = []
    for word in words:
        try:
            texts.append(isa.text(isa.decode(word)))
        except Malformed:
            continue
    return texts


def assembled(tool: str, isa: InstructionSet, texts: Sequence[str]) -> Assembled:
    """Each line as LLVM and as we assemble it."""
    found = Assembled(len(texts))
    doubts = []
    for text, line in zip(texts, assemble(tool, isa.target.name, features_of(isa), texts), strict=True):
        if line.code is None:
            found.refused += 1
            if " " not in _parsed(isa, text):
                found.lenient[line.error] += 1
            continue
        found.compared += 1
        ours = _parsed(isa, text)
        found.equal += ours == line.code.hex()
        if ours != line.code.hex():
            doubts.append((text, line.code, ours))
    read_back = disassemble(tool, isa.target.name, [code for _, code, _ in doubts], features_of(isa))
    for (text, theirs, ours), (_, back) in zip(doubts, read_back, strict=True):
        reason = misread(normal(text), normal(back), ours)
        if reason is None:
            found.differences.append(f"{text}: LLVM {theirs.hex()} ours {ours}")
        else:
            found.compared -= 1
            found.explained[reason] += 1
    return found


def _parsed(isa: InstructionSet, text: str) -> str:
    try:
        return isa.parse(text).raw.hex()
    except Invalid as error:
        return str(error)
