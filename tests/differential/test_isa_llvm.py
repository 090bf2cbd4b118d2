"""Our instruction set against LLVM 22: random operands for every row, random words, assembly.

A part runs always; LUTHIER_TEST_ISA=1 (``make test-isa``) takes every row and every opcode of every target.
"""

from __future__ import annotations

import os

import pytest
from isa_agreement import Agreement, agreement, assembled, texts_of
from isa_words import words_of_opcodes, words_of_rows

from luthier_py.isa import instruction_set, target, targets

ALL = os.environ.get("LUTHIER_TEST_ISA") == "1"
# One target of each kind, and the wave size that is not the default where tables differ.
SOME = (("gfx803", 64), ("gfx900", 64), ("gfx908", 64), ("gfx90a", 64), ("gfx942", 64), ("gfx950", 64), ("gfx1010", 32),
        ("gfx1030", 64), ("gfx1100", 32), ("gfx1150", 64), ("gfx1201", 32), ("gfx1250", 32))
EXPLAINED = {"LLVM's disassembler crashes": 0.025, "null where the target or the operand has none": 0.02,
             "v_cmpx whose unused vdst is not EXEC, as LLVM 15 made them": 0.085}
"""Of random words, the most of them that a difference explains; any other explains one in seventy."""
EVERY = tuple((row.name, size) for row in targets() for size in row.wave_sizes)


@pytest.mark.parametrize(("name", "wave_size"), EVERY if ALL else SOME)
def test_random_operands_of_rows(name: str, wave_size: int, require_tool) -> None:
    isa = instruction_set(target(name), wave_size)
    words = words_of_rows(isa, 1, 2, 1) if ALL else words_of_rows(isa, 1, 1, 12)
    found = agreement(require_tool("llvm-mc-22"), isa, words)
    assert_exact(found)
    assert found.compared > 0.78 * found.words


@pytest.mark.parametrize(("name", "wave_size"), EVERY if ALL else SOME)
def test_random_words_of_every_opcode(name: str, wave_size: int, require_tool) -> None:
    words = list(words_of_opcodes(2, 1, 1 if ALL else 128))
    found = agreement(require_tool("llvm-mc-22"), instruction_set(target(name), wave_size), words)
    assert_exact(found)
    assert 0.3 * found.words < found.both_refuse < 0.5 * found.words


def assert_exact(found: Agreement) -> None:
    assert found.exact, "\n".join(found.differences[:20])
    assert found.compared + found.both_refuse + found.explained.total() == found.words
    many = {why: count for why, count in found.explained.items() if count > EXPLAINED.get(why, 1 / 70) * found.words}
    assert not many, many


@pytest.mark.parametrize(("name", "wave_size"), EVERY if ALL else SOME)
def test_assembly(name: str, wave_size: int, require_tool) -> None:
    """LLVM's assembler and ours make the same bytes of our text."""
    isa = instruction_set(target(name), wave_size)
    words = words_of_rows(isa, 3, 2, 1) if ALL else words_of_rows(isa, 3, 2, 12)
    found = assembled(require_tool("llvm-mc-22"), isa, texts_of(isa, words))
    assert not found.differences, "\n".join(found.differences[:20])
    assert found.equal > 0.72 * found.lines and found.explained.total() <= 0.006 * found.lines
