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
EVERY = tuple((row.name, size) for row in targets() for size in row.wave_sizes)


@pytest.mark.parametrize(("name", "wave_size"), EVERY if ALL else SOME)
def test_random_operands_of_rows(name: str, wave_size: int, require_tool) -> None:
    isa = instruction_set(target(name), wave_size)
    words = words_of_rows(isa, 1, 2, 1) if ALL else words_of_rows(isa, 1, 1, 12)
    found = agreement(require_tool("llvm-mc-22"), isa, words)
    assert_exact(found)
    assert found.compared > 0.4 * found.words


@pytest.mark.parametrize(("name", "wave_size"), EVERY if ALL else SOME)
def test_random_words_of_every_opcode(name: str, wave_size: int, require_tool) -> None:
    words = list(words_of_opcodes(2, 1, 1 if ALL else 128))
    found = agreement(require_tool("llvm-mc-22"), instruction_set(target(name), wave_size), words)
    assert_exact(found)
    assert found.both_refuse > 0.2 * found.words


def assert_exact(found: Agreement) -> None:
    assert found.exact, "\n".join(found.differences[:20])
    assert sum(found.explained.values()) < 0.15 * found.words, found.explained


@pytest.mark.parametrize(("name", "wave_size"), EVERY if ALL else SOME)
def test_assembly(name: str, wave_size: int, require_tool) -> None:
    """LLVM's assembler and ours make the same bytes of our text."""
    isa = instruction_set(target(name), wave_size)
    words = words_of_rows(isa, 3, 2, 1) if ALL else words_of_rows(isa, 3, 2, 12)
    found = assembled(require_tool("llvm-mc-22"), isa, texts_of(isa, words))
    assert not found.differences, "\n".join(found.differences[:20])
    assert found.equal > 0.5 * found.lines and sum(found.explained.values()) <= 0.03 * found.lines
