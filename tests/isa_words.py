"""Words to compare with LLVM: random operands for every row, random words for every opcode.

In: an instruction set and a seed. Out: words of ROOM bytes, an instruction at the start of each.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import partial

from luthier_py.base.errors import Malformed
from luthier_py.isa import InstructionSet, OpInfo

LITERALS = (1, 0x3F800000, 0x11223344, 0x3C00, 0xFFFFFFFF, 0x3FF00000, 0x3E22F983)
INTERESTING = (0, 1, 2, 4, 8, 102, 104, 106, 108, 124, 125, 126, 127, 128, 129, 193, 230, 235, 240, 242, 248, 251, 253,
               255, 256, 258, 260, 500)
TRIES = 100
ROOM = 28  # bytes: the longest encoding with the longest literal


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


def is_instruction(isa: InstructionSet, word: bytes) -> bool:
    try:
        isa.decode(word)
    except Malformed:
        return False
    return True


def words_of_rows(isa: InstructionSet, seed: int, each: int = 1, every: int = 1) -> list[bytes]:
    """``each`` words with random operands of every row, or of each ``every``-th, and one that is an instruction."""
    generator = random.Random(seed)
    words = []
    for op in isa.ops[seed % every::every]:
        words += [random_word(generator, op) for _ in range(each)]
        tries = (random_word(generator, op) for _ in range(TRIES))
        words += itertools.islice(filter(partial(is_instruction, isa), tries), 1)
    return words


def words_of_opcodes(seed: int, each: int, step: int = 1) -> Iterator[bytes]:
    """``each`` random words for every value of the high half-word, where opcodes are, in steps."""
    generator = random.Random(seed)
    for high in range(0, 1 << 16, step):
        for _ in range(each):
            word = generator.randbytes(2) + (high + generator.randrange(step)).to_bytes(2, "little")
            yield (word + generator.randbytes(12)).ljust(ROOM, b"\0")
