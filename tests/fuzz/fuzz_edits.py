"""Random kernels with random edits, where few registers are free or many: memory and all counts are as they have to be.

A mutant is a seed, a target, which registers are free, and whether places are squeezed; it is well-formed, so what the
proof refuses is a finding, too. Refusals for want of registers are told.
"""

from __future__ import annotations

import random
import sys
from functools import cache
from pathlib import Path

from fuzzer import Case, Fuzzer
from pytest import MonkeyPatch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "property"))

from crowded_kernels import FREE, VGPRS, crowded_program, kernel_object  # noqa: E402  (importable only now)
from edited_runs import bench_for, check_run  # noqa: E402
from emulated import Bench  # noqa: E402
from random_edits import RandomEdits  # noqa: E402
from random_kernels import Program, kernel  # noqa: E402
from test_squeezed_random import squeeze  # noqa: E402

from luthier_py.base.errors import CheckFailed, OutOfRegisters  # noqa: E402
from luthier_py.isa import instruction_set, target  # noqa: E402

TARGETS = ("gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950")
EASY, SQUEEZED = "easy", "squeezed"
WARM = 1
SGPRS, FEW_VGPRS = 56, 32  # of kernels that are not crowded


def _make(rng: random.Random) -> Case:
    gpu, seed = rng.choice(TARGETS), rng.getrandbits(31)
    accumulators = target(gpu).has_agprs and rng.random() < 0.5
    crowd = f"{rng.randrange(len(FREE))}{'+' * accumulators}"
    return Case(f"{seed} {gpu} {rng.choice((EASY, SQUEEZED, crowd, crowd))}".encode())


@cache
def _bench(gpu: str) -> Bench:
    return bench_for(target(gpu))


def _programs(gpu: str, seed: int, how: str) -> tuple[Program, Program]:
    """As it is, and with probes of its own."""
    isa = instruction_set(target(gpu))
    if how in (EASY, SQUEEZED):
        return kernel(seed, False, isa=isa), kernel(seed, True, isa=isa)
    free, accumulators = FREE[int(how.rstrip("+"))], how.endswith("+")
    return crowded_program(isa, seed, free, accumulators), crowded_program(isa, seed, free, accumulators, inline=True)


def _object(gpu: str, how: str, program: Program) -> bytes:
    if how in (EASY, SQUEEZED):
        return kernel_object(target(gpu), program.rows, SGPRS, FEW_VGPRS)
    return kernel_object(target(gpu), program.rows, target(gpu).sgpr_limit, VGPRS, VGPRS if how.endswith("+") else 0)


def _trial(case: Case, folder: Path) -> None:
    number, gpu, how = case.data.decode().split()
    seed = int(number)
    plain, inline = (_object(gpu, how, program) for program in _programs(gpu, seed, how))
    if how == SQUEEZED:  # the process is thrown away
        squeeze(MonkeyPatch(), seed)
    tool = RandomEdits(seed, _programs(gpu, seed, how)[0].probes)
    try:
        check_run(_bench(gpu), plain, inline, tool)
    except OutOfRegisters:
        raise
    except CheckFailed as error:
        raise AssertionError(f"the proof refuses: {error}") from error


def _prepare(folder: Path) -> None:
    """What hooks and the emulator always need is compiled before trials are forked."""
    for gpu in TARGETS:
        for seed in range(WARM):
            plain, inline = _programs(gpu, seed, EASY)
            tool = RandomEdits(seed, plain.probes)
            check_run(_bench(gpu), _object(gpu, EASY, plain), _object(gpu, EASY, inline), tool)


FUZZER = Fuzzer("edits", _make, _trial, _prepare, divisible=False)
