"""What a fuzzer is: how its mutants are made, and what is done with one.

In: a seed and a number. Out: a Case, the same one every time; its trial ends, raises LuthierError, or is a finding.
Invariant: a trial depends on its Case alone, so that a saved Case shows the same again.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Case:
    """One mutant. ``how``: what else the trial must know, one word."""

    data: bytes
    how: str = ""


def _nothing(folder: Path) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Fuzzer:
    """``make``: a mutant. ``trial``: what is done with it, in a process of its own.

    ``prepare`` runs once before, in the process that trials are forked from: what they would all load again. Both are
    given an empty folder, which is the current one.
    """

    name: str
    make: Callable[[random.Random], Case]
    trial: Callable[[Case, Path], None]
    prepare: Callable[[Path], None] = _nothing
    like: Callable[[bytes], bytes] | None = None
    """What a mutant was made from, where that can be told: what does not matter is put back in a finding."""
    divisible: bool = True
    """Whether pieces can be taken out of a mutant: what does not matter is, in a finding."""

    def case(self, seed: int, number: int) -> Case:
        return self.make(random.Random(f"{self.name} {seed} {number}"))

    def ready(self) -> None:
        """Call ``prepare``."""
        before = Path.cwd()
        with tempfile.TemporaryDirectory(prefix="luthier-fuzz-") as folder:
            os.chdir(folder)
            try:
                self.prepare(Path(folder))
            finally:
                os.chdir(before)
