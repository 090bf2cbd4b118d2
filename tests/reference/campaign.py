"""Which cases are run: every row of a target's table that has a meaning, or a selection.

In: a target and a seed. Out: what differs, and what was run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from luthier_py.isa import InstructionSet, OpInfo, instruction_set, target
from luthier_py.isa.semantics import meaning
from luthier_py.isa.semantics.control import Action, Indexing
from luthier_py.isa.semantics.matrix import Matrix
from reference.batch import KERNEL_MODE, Batch
from reference.cases import Cases, variants

TARGETS = ("gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950")
# Flushing denormals of all floats, of f32, of none (MODE.FP_DENORM), under DX10_CLAMP and IEEE.
MODES = (KERNEL_MODE & ~0xF0, KERNEL_MODE & ~0x30, KERNEL_MODE)
ELSEWHERE = {  # meanings that a straight run of instructions cannot show, and where they are tested
    Action.END: "tests/unit/emulator", Action.BARRIER: "tests/unit/emulator", Action.GRID_BARRIER: "tests/unit/emulator",
    Action.SLEEP: "tests/unit/emulator", Action.SETPC: "tests/unit/emulator", Action.SWAPPC: "tests/unit/emulator",
    Action.CALL: "tests/unit/emulator", Action.TRAP: "tests/unit/emulator", Action.CLOCK: "tests/unit/semantics",
    Action.SETREG: "tests/unit/semantics/test_lanes.py", Action.SETREG_IMM: "tests/unit/semantics/test_lanes.py",
    Indexing.ON: "tests/unit/semantics/test_lanes.py", Indexing.OFF: "tests/unit/semantics/test_lanes.py",
}  # fmt: skip


@dataclass
class Outcome:
    """Mutable: what a campaign has found."""

    cases: int = 0
    differences: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)  # rows of which no case could be made


def rows(isa: InstructionSet) -> list[OpInfo]:
    """Every row that is compared here."""
    return [op for op in isa.ops if meaning(op) is not None and not (
        isinstance(meaning(op), Action | Indexing) and meaning(op) in ELSEWHERE)]


def run_campaign(name: str, seed: int, ops: Iterable[OpInfo], every: bool) -> Outcome:
    isa = instruction_set(target(name), 64)
    outcome, cases = Outcome(), Cases(isa, seed)
    number, batch = 0, Batch(isa, seed)
    for op in ops:
        made = 0
        for overlap, varied in variants(op, every):
            place = batch.place()
            if place is None or isinstance(meaning(op), Matrix) and batch.cases:
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
