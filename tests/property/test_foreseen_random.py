"""What is launch-invariant of random kernels is what the emulator counts, by address, whatever memory contains."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from emulated import KERNARG_BYTES, LANES, Bench, Ran, code_object
from every_case import check_all
from random_kernels import DATA, INPUT_BYTES, OWN, PROBES, SLOT_BYTES, kernel

from luthier_py.binary.loader import load
from luthier_py.isa import EXEC, VCC, sgpr, vgpr
from luthier_py.program.analysis import GivenLaunch, LaunchInvariants, StaticCounts, analyse, count_statically
from luthier_py.program.ir import Kernel, lift

GROUPS = 3


def bench(seed: int) -> Bench:
    lanes = GROUPS * LANES
    inputs = np.random.default_rng(seed).integers(0, 1 << 32, lanes * INPUT_BYTES // 4, dtype=np.uint32)
    return Bench(inputs.tobytes(), bytes(4 * PROBES), bytes(lanes * SLOT_BYTES))


@pytest.fixture(scope="module")
def benches():
    """Two images of memory."""
    return bench(1), bench(2)


def as_static_counts(one: Kernel, launch_invariants: LaunchInvariants, told: StaticCounts, ran: Ran) -> int:
    """How many executed instructions were counted statically; each of these ran as often, and with as many lanes."""
    assert told.executions.keys() <= launch_invariants.pcs and told.lanes.keys() <= launch_invariants.masks
    found = 0
    for block in one.function.blocks:
        piece = stretch = None
        for instr in block.instrs:
            piece = instr.pc if instr.pc in launch_invariants.pcs else piece
            stretch = instr.pc if instr.pc in launch_invariants.masks else stretch
            if piece is not None:
                assert ran.profile.counts.get(instr.pc, 0) == told.executions.get(piece, 0), hex(instr.pc)
                found += ran.profile.counts.get(instr.pc, 0)
            if stretch is not None:
                assert ran.profile.lanes.get(instr.pc, 0) == told.lanes.get(stretch, 0), hex(instr.pc)
            stretch = None if instr.inst.writes.sgpr >> EXEC & 3 else stretch
    return found


def check(benches: tuple[Bench, Bench], seed: int, tame: bool) -> float:
    """The share of instructions that was launch-invariant. ``tame``: vector registers begin with what ids decide."""
    rng = random.Random(seed)
    known = [("v_xor_b32_e32", vgpr(index), rng.getrandbits(32), OWN) for index in DATA] if tame else []
    return share(benches, code_object({"k": kernel(seed, inline=False, before=known).rows}))


def share(benches: tuple[Bench, Bench], data: bytes) -> float:
    program = lift(load(data), ["k"])
    (one,) = program.kernels
    launch_invariants = analyse(program).find_launch_invariants(one)
    found = total = 0
    for each in benches:
        segment = struct.pack("<3Q", *(buffer.address for buffer in each.buffers)).ljust(KERNARG_BYTES, b"\0")
        told = count_statically(launch_invariants, GivenLaunch(segment, (GROUPS, 1, 1), (LANES, 1, 1)))
        ran = each.run(data, "k", GROUPS)
        found, total = found + as_static_counts(one, launch_invariants, told, ran), total + ran.profile.total
    return found / total


E, V = sgpr(EXEC, 2), sgpr(VCC, 2)
LOOP = ["loop:", ("s_sub_u32", sgpr(14), sgpr(14), 1), ("s_cmp_lg_u32", sgpr(14), 0), ("s_cbranch_scc1", "loop"),
        ("s_endpgm",)]
CORNERS = {
    "EXEC comes back after half of it was known": [
        ("ds_read_b32", vgpr(2), vgpr(1)), ("s_waitcnt", 0), ("v_cmp_lt_u32_e32", V, vgpr(2), vgpr(0)),
        ("s_and_saveexec_b64", sgpr(8, 2), V), ("s_mov_b64", sgpr(10, 2), E),
        ("s_xor_b64", sgpr(12, 2), E, sgpr(8, 2)), ("s_or_b64", sgpr(12, 2), sgpr(12, 2), sgpr(10, 2)),
        ("s_mov_b32", sgpr(EXEC), 1), ("s_cbranch_execz", "end"), ("v_mov_b32_e32", vgpr(3), 1),
        "end:", ("s_mov_b64", E, sgpr(12, 2)), ("v_cmp_lt_u32_e32", V, 5, vgpr(0)), ("s_bcnt1_i32_b64", sgpr(14), V),
        *LOOP,
    ],
    "a scalar load between dwords": [
        ("s_load_dword", sgpr(14), sgpr(4, 2), 9), ("s_waitcnt", 0), ("s_and_b32", sgpr(14), sgpr(14), 255),
        ("s_add_u32", sgpr(14), sgpr(14), 1), *LOOP,
    ],
}


@pytest.mark.parametrize("rows", CORNERS.values(), ids=CORNERS)
def test_corners_run_as_foreseen(benches, rows):
    assert 0 < share(benches, code_object({"k": rows})) <= 1


@pytest.mark.parametrize("tame", [False, True])
def test_random_kernels_run_as_foreseen(benches, tame):
    shares = [check(benches, seed, tame) for seed in range(4000, 4004)]
    assert (0.5 if tame else 0.3) < sum(shares) / len(shares) < 1, shares


@pytest.mark.slow
@pytest.mark.parametrize("tame", [False, True])
@pytest.mark.parametrize("first", range(5000, 5200, 10))
def test_many_random_kernels_run_as_foreseen(benches, first, tame):
    check_all(lambda seed: check(benches, seed, tame), range(first, first + 10))
