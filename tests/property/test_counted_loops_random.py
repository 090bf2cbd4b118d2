"""Random nests of counted loops, walked with many turns at once, run as the emulator counts them, by address."""

from __future__ import annotations

import random
import struct

import pytest
from emulated import KERNARG_BYTES, code_object
from every_case import check_all
from random_loops import functions

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.isa import EXEC
from luthier_py.program.analysis import GivenLaunch, analyse, count_statically
from luthier_py.program.ir import lift


def share(seed: int, groups: int = 6, items: int = 150) -> tuple[int, int, int]:
    """Executed instructions, those of which were counted statically, and the pieces that were walked for that."""
    rng = random.Random(seed)
    data = code_object(functions(rng))
    program = lift(load(data), ["k"])
    (one,) = program.kernels
    launch_invariants = analyse(program).find_launch_invariants(one)
    segment = struct.pack("<3Q2I", 0, 0, 0, rng.randrange(12), 0).ljust(KERNARG_BYTES, b"\0")
    told = count_statically(launch_invariants, GivenLaunch(segment, (groups, 1, 1), (items, 1, 1)))
    device = EmulatorDevice(load(data).target)
    device.launch(device.load(data, "k").kernel("k"), (groups, 1, 1), (items, 1, 1), segment)
    profile, found = device.profile, 0
    for block in (block for function in program.functions for block in function.blocks):
        piece = stretch = None
        for instr in block.instrs:
            piece = instr.pc if instr.pc in launch_invariants.pcs else piece
            stretch = instr.pc if instr.pc in launch_invariants.masks else stretch
            if piece is not None:
                assert profile.counts.get(instr.pc, 0) == told.executions.get(piece, 0), (seed, hex(instr.pc))
                found += profile.counts.get(instr.pc, 0)
            if stretch is not None:
                assert profile.lanes.get(instr.pc, 0) == told.lanes.get(stretch, 0), (seed, hex(instr.pc))
            stretch = None if instr.inst.writes.sgpr >> EXEC & 3 else stretch
    return profile.total, found, told.stops


@pytest.mark.parametrize("seed", [1, 4, 9, 14, 17, 18, 28, 31])
def test_counted_loops_run_as_foreseen(seed):
    total, found, stops = share(seed)
    assert 0.3 * total < found <= total and stops


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 300, 10))
def test_many_counted_loops_run_as_foreseen(first):
    check_all(share, range(first, first + 10))


if __name__ == "__main__":
    import sys
    for seed in range(*map(int, sys.argv[1:])):
        print(seed, *share(seed), flush=True)
