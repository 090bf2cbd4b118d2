"""The sample kernels compiled for every generation, both wave sizes and all levels of optimisation: NumPy's results,
and under tools the same bits and the emulator's own counts.

A part runs always, another one for each target; ``-m slow`` takes all.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from compiled_samples import CompiledSamples

from luthier_py.samples import SAMPLES, Sample
from luthier_py.session.demo import try_sample

TARGETS = (
    ("gfx803", 64), ("gfx900", 64), ("gfx906", 64), ("gfx908", 64), ("gfx90a", 64), ("gfx942", 64), ("gfx950", 64),
    ("gfx1010", 32), ("gfx1010", 64), ("gfx1030", 32), ("gfx1030", 64), ("gfx1100", 32), ("gfx1100", 64),
    ("gfx1151", 32), ("gfx1151", 64), ("gfx1201", 32), ("gfx1201", 64), ("gfx1250", 32),
)
LEVELS = (0, 1, 2, 3)
ONE_WAVE = "lds_widths"
"""Leaves behind in LDS what its other waves do not expect, so that a work-group has to be one wave; and it is assembly
that older and newer assemblers do not know."""


PRIVATE_ADDRESSES = ("gfx1250", 0)
"""Target and level of code that takes where private memory is for an address like others: refused by name."""


def known(sample: Sample, target: str, wave_size: int, level: int) -> bool:
    if (target, level) == PRIVATE_ADDRESSES:
        return False
    return sample.name != ONE_WAVE or wave_size == 64 and target not in ("gfx803", "gfx1250")


CASES = [
    pytest.param(sample, *where, level, marks=() if (at + 3 * number + 5 * level) % 16 == 0 else pytest.mark.slow,
                 id=f"{sample.name}-{'-wave'.join(map(str, where))}-O{level}")
    for number, where in enumerate(TARGETS) for at, sample in enumerate(SAMPLES) for level in LEVELS
    if known(sample, *where, level)
]


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory) -> CompiledSamples:
    return CompiledSamples(require_tool("clang-22"), tmp_path_factory.mktemp("generations"))


@pytest.mark.parametrize(("sample", "target", "wave_size", "level"), CASES)
def test_sample(sample: Sample, target: str, wave_size: int, level: int, compiled: CompiledSamples) -> None:
    there = SimpleNamespace(
        name=sample.name, kernel=sample.kernel, grid=sample.grid, block=sample.block, args=sample.args,
        reference=sample.reference, agrees=sample.agrees, path=compiled.path(sample.name, target, wave_size, level))
    row = try_sample(there)
    assert row.correct and row.unchanged, "bare"
    assert not [trial for trial in row.trials if not (trial.equal and trial.identical)]
