"""The sample kernels, compiled for other targets and wave sizes: every line of llvm-objdump, read and written by us.

A part runs always; LUTHIER_TEST_ISA=1 (``make test-isa``) compiles every sample for every target and wave size.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from isa_objects import Line, compare, compiled, lines_of

from luthier_py.isa import InstructionSet, instruction_set, target, targets
from luthier_py.samples import SAMPLES

ALL = os.environ.get("LUTHIER_TEST_ISA") == "1"
SOME = (("gfx900", 64), ("gfx950", 64), ("gfx1010", 64), ("gfx1030", 32), ("gfx1100", 64), ("gfx1201", 32),
        ("gfx1250", 32))
SOME_KERNELS = ("nbody", "histogram")
EVERY = tuple((row.name, size) for row in targets() for size in row.wave_sizes)


@pytest.mark.parametrize(("name", "wave_size"), EVERY if ALL else SOME)
def test_recompiled_samples(name: str, wave_size: int, tmp_path: Path, require_tool) -> None:
    isa = instruction_set(target(name), wave_size)
    clang, objdump = require_tool("clang-22"), require_tool("llvm-objdump-22")
    lines: Counter[Line] = Counter()
    for sample in SAMPLES:
        if (ALL or sample.name in SOME_KERNELS) and not (sample.name == "lds_widths" and isa.target.literals64):
            source = sample.path.with_suffix(".hip")
            lines.update(lines_of(objdump, compiled(clang, source, isa, tmp_path), isa))
    assert_equal(isa, lines, require_tool)


def test_compiled_samples(sample, require_tool) -> None:
    isa = instruction_set(target("gfx90a"))
    assert_equal(isa, Counter(lines_of(require_tool("llvm-objdump-22"), sample.path, isa)), require_tool)


def assert_equal(isa: InstructionSet, lines: Counter[Line], require_tool) -> None:
    found = compare(require_tool("llvm-mc-22"), isa, lines)
    assert not found.differences, found.differences[:10]
    assert found.lines > 20 and found.not_read == found.refused == found.other_bits == 0
    assert found.text == found.encoded == found.assembled == found.lines
