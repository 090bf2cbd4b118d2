"""Which cases are run: every row of a target's table that has a meaning, or a selection.

In: a target and a seed. Out: what differs, and what was run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from luthier_py.isa import InstructionSet, OpInfo, instruction_set, target
from luthier_py.isa.semantics import meaning
from luthier_py.isa.semantics.control import Action, Indexing, Switch
from luthier_py.isa.semantics.matrix import Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.wave_matrices import WaveMatrix, WaveMixedMatrix
from reference.batch import KERNEL_MODE, Batch
from reference.cases import Cases, variants

TARGETS = ("gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1010/32", "gfx1030/32",
           "gfx1030", "gfx1100/32", "gfx1100", "gfx1151/32", "gfx1201/32", "gfx1201", "gfx1250/32")
"""With the size of a wave where that is not 64."""
# Flushing denormals of all floats without IEEE (so that omod does something), of f32, of none.
MODES = (KERNEL_MODE & ~0x2F0, KERNEL_MODE & ~0x30, KERNEL_MODE)
ELSEWHERE = {  # meanings that a straight run of instructions in one wave cannot show
    # The wave gives way: unit/emulator.
    Action.END, Action.BARRIER, Action.BARRIER_SIGNAL, Action.BARRIER_WAIT, Action.GRID_BARRIER, Action.SLEEP,
    Action.TRAP, Action.MESSAGE,
    Action.GRID_SETUP,                            # shows in what waits only
    Action.SETPC, Action.SWAPPC, Action.CALL,     # leave the function: unit/emulator
    Action.CLOCK, Action.WALL_CLOCK,              # no two readings are equal
    Action.SETREG, Action.SETREG_IMM,             # change what code means that follows: unit/semantics/test_lanes
    Action.ROUND_MODE, Action.DENORMAL_MODE,      # the same
    Indexing.ON, Indexing.OFF,                    # the same
}  # fmt: skip

MATRICES = Matrix | MixedMatrix | SparseMatrix | WaveMatrix | WaveMixedMatrix  # more registers than a window
BUFFERS = "BUFFER_", "S_BUFFER_"  # with wide resources they are refused


@dataclass
class Outcome:
    """Mutable: what a campaign has found."""

    cases: int = 0
    differences: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)  # rows of which no case could be made


def instructions(name: str) -> InstructionSet:
    """Of one of TARGETS."""
    gpu, _, size = name.partition("/")
    return instruction_set(target(gpu), int(size or 64))


def rows(isa: InstructionSet) -> list[OpInfo]:
    """Every row that is compared here."""
    return [op for op in isa.ops if meaning(op) is not None and not _elsewhere(op) and not (
        isa.target.wide_resources and op.base.startswith(BUFFERS))]


def _elsewhere(op: OpInfo) -> bool:
    if op.base == "S_CODE_END":  # waves do not go on behind it
        return True
    if op.base.startswith("GLOBAL_") and not {"vaddr", "saddr"} & {operand.name for operand in op.operands}:
        return True  # addresses below those that programs have
    return isinstance(meaning(op), Switch) or isinstance(meaning(op), Action | Indexing) and meaning(op) in ELSEWHERE


def run_campaign(name: str, seed: int, ops: Iterable[OpInfo], every: bool) -> Outcome:
    isa = instructions(name)
    outcome, cases = Outcome(), Cases(isa, seed)
    number, batch = 0, Batch(isa, seed)
    for op in ops:
        made = 0
        for overlap, varied in variants(op, every):
            place = batch.place()
            if place is None or isinstance(meaning(op), MATRICES) and batch.cases:
                outcome.differences += batch.differences()
                number += 1
                batch = Batch(isa, seed + number, MODES[number % len(MODES)])
                place = batch.place()
            assert place is not None
            case = cases.make(op, place, overlap, varied)
            if case is not None:
                batch.add(case)
                made += 1
        outcome.cases += made
        if not made:
            outcome.untried.append(op.record)
    outcome.differences += batch.differences()
    return outcome
