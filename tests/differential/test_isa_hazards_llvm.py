"""Hazards against LLVM's hazard recogniser: random sequences, what LLVM inserts into them, and what we ask for.

Where LLVM may look at a sequence with our waits in it, it must have nothing to add. Where rules are exact, both ask at
the same places. A part runs always; LUTHIER_TEST_ISA=1 (``make test-isa``) takes ten times as much, and every target.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest
from hazard_sequences import as_mir, draw, inserted, through_llc

from luthier_py.isa import Inst, InstructionSet, OpFlag, instruction_set, target, targets
from luthier_py.isa.hazards.mitigated import SA_SDST, VA_SDST, VA_VCC, VA_VDST, VM_VSRC
from luthier_py.isa.hazards.pending import NOTHING, Missing, find_missing_mitigations, possible

ALL = os.environ.get("LUTHIER_TEST_ISA") == "1"
SOME = (("gfx90a", 64), ("gfx1010", 32), ("gfx1100", 32), ("gfx1100", 64), ("gfx1201", 32))
EVERY = tuple((row.name, size) for row in targets() for size in row.wave_sizes)
COUNT = 1000 if ALL else 100


def asked(isa: InstructionSet, instructions: Sequence[Inst]) -> list[Missing]:
    """What must stand before each, if what is asked for stands before those in front of it."""
    pending, found, rows = NOTHING, [], possible(isa, {inst.op for inst in instructions})
    for inst in instructions:
        lacks = find_missing_mitigations(isa, [pending], inst)
        for wait in lacks.instructions(isa, inst):
            pending = pending.behind(isa, wait)
        pending = pending.behind(isa, inst).join(rows.own(isa, inst)).join(pending.extend_patterns(isa, inst))
        found.append(lacks)
    return found


@pytest.mark.parametrize(("name", "wave_size"), EVERY if ALL else SOME)
def test_random_sequences(name: str, wave_size: int, require_tool) -> None:
    isa, chance = instruction_set(target(name), wave_size), random.Random(f"{name} {wave_size}")
    sequences = [[draw(chance, isa.target, wave_size) for _ in range(length)]
                 for length in (2, 3, 7) for _ in range(COUNT)]
    llc = require_tool("llc-22")
    plain, full = (through_llc(llc, isa, sequences, recognise) for recognise in (False, True))
    assert [len(sequence) for sequence in plain] == [len(sequence) for sequence in sequences]
    ours = [asked(isa, sequence) for sequence in plain]
    theirs = [inserted(*pair) for pair in zip(plain, full, strict=True)]
    assert any(any(places) for places in theirs)
    if (isa.target.generation, wave_size) == (11, 64):
        assert_nothing_is_missed(isa, plain, ours, theirs)
    else:
        assert_llvm_adds_nothing(llc, isa, sequences, plain, ours)
    if isa.target.generation >= 10 and (isa.target.generation, wave_size) != (11, 64):
        for instructions, lines, mine, llvms in zip(plain, sequences, ours, theirs, strict=True):
            for place, (lacks, waits) in enumerate(zip(mine, llvms, strict=False)):
                same = bool(lacks) == bool(waits)
                assert same or (lacks and settled_by_salu(isa, instructions[:place])), "\n".join(lines)


def settled_by_salu(isa: InstructionSet, before: Sequence[Inst]) -> bool:
    """On gfx12.0 LLVM takes all that VALU wrote for settled once SALU reads a scalar that VALU has read, too; we do not
    (AMDGPUWaitSGPRHazards: "SALU reading SGPR clears VALU hazards")."""
    newer = (isa.target.generation, isa.target.minor) == (12, 0)
    return newer and any(OpFlag.SALU in inst.op.flags and inst.reads.sgpr for inst in before)


def assert_llvm_adds_nothing(llc: str, isa: InstructionSet, sequences: Sequence[Sequence[str]],
                             plain: Sequence[Sequence[Inst]], ours: Sequence[Sequence[Missing]]) -> None:
    settled = [
        [line for mir, inst, lacks in zip(lines, instructions, waits, strict=True)
         for line in (*map(as_mir, lacks.instructions(isa, inst)), mir)]
        for lines, instructions, waits in zip(sequences, plain, ours, strict=True)
    ]
    before, after = (through_llc(llc, isa, settled, recognise) for recognise in (False, True))
    for lines, a, b in zip(settled, before, after, strict=True):
        assert [inst.raw for inst in a] == [inst.raw for inst in b], "\n".join(lines)


def assert_nothing_is_missed(isa: InstructionSet, plain: Sequence[Sequence[Inst]], ours: Sequence[Sequence[Missing]],
                             theirs: Sequence[Sequence[Sequence[Inst]]]) -> None:
    """LLVM adds to sequences that it settled itself here, so its waits must be among ours, there or before."""
    for instructions, mine, llvms in zip(plain, ours, theirs, strict=True):
        stood: set[int | bytes] = set()
        for inst, lacks, waits in zip(instructions, mine, llvms, strict=False):
            stood |= parts_of(lacks.instructions(isa, inst))
            assert parts_of(waits) <= stood, [isa.text(i) for i in instructions]


def parts_of(waits: Sequence[Inst]) -> set[int | bytes]:
    """What they wait for: LLVM joins waits for several fields to one."""
    fields = SA_SDST, VA_VCC, VM_VSRC, VA_SDST, VA_VDST
    found: set[int | bytes] = set()
    for wait in waits:
        done = {field for field in fields if not wait["simm16"].value & field} if wait.find("simm16") else set()
        found |= done if wait.op.base == "S_WAITCNT_DEPCTR" else {wait.raw}
    return found
