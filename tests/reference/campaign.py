"""Which cases are run: every row of a target's table that has a meaning, or a selection.

In: a target and a seed. Out: what differs, and what was run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from luthier_py.isa import InstructionSet, OpInfo
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.evidence import compares, instructions
from luthier_py.isa.semantics.matrix import Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.wave_matrices import WaveMatrix, WaveMixedMatrix
from reference.batch import KERNEL_MODE, Batch
from reference.cases import Cases
from reference.ways import TELLING, focuses, mode_of, variants

# Flushing denormals of all floats without IEEE (so that omod does something), of f32, of none.
MODES = (KERNEL_MODE & ~0x2F0, KERNEL_MODE & ~0x30, KERNEL_MODE)
MATRICES = Matrix | MixedMatrix | SparseMatrix | WaveMatrix | WaveMixedMatrix  # more registers than a window


@dataclass
class Outcome:
    """Mutable: what a campaign has found."""

    cases: int = 0
    differences: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)  # rows of which no case could be made


def rows(isa: InstructionSet) -> list[OpInfo]:
    """Every row that is compared here."""
    return [op for op in isa.ops if compares(isa, op)]


def run_campaign(name: str, seed: int, ops: Iterable[OpInfo], every: bool) -> Outcome:
    isa = instructions(name)
    outcome, cases = Outcome(), Cases(isa, seed)
    number, batch = 0, Batch(isa, seed)
    by_mode: dict[int, list[tuple[OpInfo, dict[str, int]]]] = {}  # those that show in one of MODES
    for op in ops:
        made = 0
        given = list(focuses(op)) if every else []
        told = [each for each in given if "omod" in each or TELLING in each]
        for each in told:
            by_mode.setdefault(mode_of(each, 0), []).append((op, each))
        for overlap, varied, focus in (*((*each, {}) for each in variants(op, every)),
                                       *((None, False, each) for each in given if each not in told)):
            place = batch.place()
            if place is None or isinstance(find_meaning(op), MATRICES) and batch.cases:
                outcome.differences += batch.differences()
                number += 1
                batch = Batch(isa, seed + number, MODES[number % len(MODES)])
                place = batch.place()
            assert place is not None
            case = cases.make(op, place, overlap, varied, focus)
            if case is not None:
                batch.add(case)
                made += 1
        outcome.cases += made
        if not made:
            outcome.untried.append(op.record)
    outcome.differences += batch.differences()
    for mode, wanted in sorted(by_mode.items()):
        _in_mode(outcome, cases, MODES[mode], wanted)
    return outcome


def _in_mode(outcome: Outcome, cases: Cases, mode: int, wanted: list[tuple[OpInfo, dict[str, int]]]) -> None:
    batch = Batch(cases.isa, 0, mode)
    for op, given in wanted:
        place = batch.place()
        if place is None:
            outcome.differences += batch.differences()
            batch = Batch(cases.isa, outcome.cases, mode)
            place = batch.place()
        assert place is not None
        case = cases.make(op, place, None, False, given)
        if case is not None:
            batch.add(case)
            outcome.cases += 1
    outcome.differences += batch.differences()
