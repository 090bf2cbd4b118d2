"""Which cases are run: every row of a target's table that has a meaning, or a selection.

In: a target and a seed. Out: what differs, and what was run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from luthier_py.isa import InstructionSet, OpInfo
from luthier_py.isa.semantics import meaning
from luthier_py.isa.semantics.evidence import compares, instructions
from luthier_py.isa.semantics.matrix import Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.wave_matrices import WaveMatrix, WaveMixedMatrix
from reference.batch import KERNEL_MODE, Batch
from reference.cases import Cases
from reference.ways import focuses, variants

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
    scaled: list[tuple[OpInfo, dict[str, int]]] = []  # whose modifier does something in the first of MODES alone
    for op in ops:
        made = 0
        given = list(focuses(op)) if every else []
        scaled += [(op, each) for each in given if "omod" in each]
        for overlap, varied, focus in (*((*each, {}) for each in variants(op, every)),
                                       *((None, False, each) for each in given if "omod" not in each)):
            place = batch.place()
            if place is None or isinstance(meaning(op), MATRICES) and batch.cases:
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
    _scaled(outcome, cases, scaled)
    return outcome


def _scaled(outcome: Outcome, cases: Cases, wanted: list[tuple[OpInfo, dict[str, int]]]) -> None:
    batch = Batch(cases.isa, 0, MODES[0])
    for op, given in wanted:
        place = batch.place()
        if place is None:
            outcome.differences += batch.differences()
            batch = Batch(cases.isa, outcome.cases, MODES[0])
            place = batch.place()
        assert place is not None
        case = cases.make(op, place, None, False, given)
        if case is not None:
            batch.add(case)
            outcome.cases += 1
    outcome.differences += batch.differences()
