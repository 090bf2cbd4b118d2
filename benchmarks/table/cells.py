"""What the table has cells for: a sample or program, compiled for a target with a wave size at a level, under tools.

In: names of targets and levels, a seed. Out: Cells, in an order in which any beginning stands for the rest. Invariant:
a Row says what became of one run, and which sources and compiler it was run with.
"""

from __future__ import annotations

import hashlib
import random
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from luthier_py.samples import SAMPLES

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
TOOLS = ROOT / "tools"
COMPILER = "clang++-22"
TARGETS = (
    ("gfx803", 64), ("gfx900", 64), ("gfx906", 64), ("gfx908", 64), ("gfx90a", 64), ("gfx942", 64), ("gfx950", 64),
    ("gfx1010", 32), ("gfx1010", 64), ("gfx1030", 32), ("gfx1030", 64), ("gfx1100", 32), ("gfx1100", 64),
    ("gfx1151", 32), ("gfx1151", 64), ("gfx1201", 32), ("gfx1201", 64), ("gfx1250", 32),
)
LEVELS = (0, 1, 2, 3)
SAMPLE, PROGRAM = "sample", "program"
OTHERWISE = {
    "mistakes",  # does them
    "module_api",  # wants the name of a file; the other programs have modules, too
}
ONE_WAVE = "lds_widths"  # has a work-group of 64, and leaves in LDS what other waves do not expect
BARE = ""
WRONG, REFUSED, LATE, NOT_COMPILED, CRASH = "wrong", "refused", "late", "not compiled", "crash"


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One subject, compiled in one way."""

    kind: str
    name: str
    target: str
    wave_size: int
    level: int

    @property
    def code_object(self) -> int:
        """Its version. Without inlining, clang 22 has functions of gfx8 take where private memory begins from hidden
        arguments, whose address they do not know (it takes 0): in version 4 that is in the queue."""
        return 4 if (self.target, self.level) == ("gfx803", 0) else 6

    @property
    def where(self) -> tuple[str, int]:
        return self.target, self.wave_size

    def __str__(self) -> str:
        return f"{self.kind} {self.name}, {self.target} wave{self.wave_size} -O{self.level}"


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a cell under a tool, or BARE. ``outcome``: nothing where all is well, else a word above, and why.

    ``observed``: the tool had something to count or to change there.
    """

    cell: Cell
    tool: str
    outcome: str
    observed: bool
    source: str
    version: str
    seconds: float

    @property
    def sort(self) -> str:
        return self.outcome.partition(":")[0]


def every_cell(targets: Sequence[str], levels: Sequence[int], seed: int) -> list[Cell]:
    """By lot, those at the first of ``levels`` before those at the next."""
    names = [(SAMPLE, each.name) for each in SAMPLES]
    names += [(PROGRAM, path.stem) for path in sorted(PROGRAMS.glob("*.hip")) if path.stem not in OTHERWISE]
    cells = [Cell(kind, name, target, size, level) for kind, name in names for target, size in TARGETS
             for level in levels if target in targets and (name, size) != (ONE_WAVE, 32)]
    random.Random(seed).shuffle(cells)
    return sorted(cells, key=lambda cell: levels.index(cell.level))


def chosen_tools(cell: Cell, tools: Sequence[str], most: int, seed: int) -> list[str]:
    """``most`` of them, by lot: others for other cells, and more of the same ones if there are to be more."""
    order = list(tools)
    random.Random(f"{cell} {seed}").shuffle(order)
    return [BARE, *order[:most]]


@cache
def source_of(kind: str, name: str) -> str:
    """A hash of all that a compiler is given, and of the compiler's name."""
    folder = PROGRAMS if kind == PROGRAM else SAMPLES[0].source.parent
    files = [folder / f"{name}.hip", *sorted(folder.glob("*.h")), folder / "build.py"]
    compiler = subprocess.run([COMPILER, "--version"], capture_output=True, check=True).stdout
    return digest([compiler, *(file.read_bytes() for file in files)])


def digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
