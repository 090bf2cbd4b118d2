"""The runtime library under HIP programs: every ABI, and what programs do wrong. test_preload runs all programs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.host.worker.device.targets import parse_targets

Program = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("major", (5, 6, 7))
def test_every_abi(major: int, program: Program, run: Run) -> None:
    done = run(program("vector_add", major))
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


@pytest.mark.parametrize("version", (1, 2, 3))
def test_compressed_code(version: int, program: Program, run: Run) -> None:
    done = run(program("vector_add", compressed=version))
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


@pytest.mark.parametrize("target", ("gfx900", "gfx906", "gfx908", "gfx942"))
def test_other_targets(target: str, program: Program, run: Run) -> None:
    done = run(program("grid_sync", targets=(target,)), LUTHIER_DEVICE=f"emulator:{target}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


@pytest.mark.parametrize("text", ("gfx90a", "emulator:gfx90a*", "emulator:gfx90a*17", "emulator:x,", "emulator:*2"))
def test_devices_that_are_not_there(text: str) -> None:
    with pytest.raises(Invalid, match="set LUTHIER_DEVICE to emulator:TARGET"):
        parse_targets(text)


def test_kernels_that_print(program: Program, run: Run) -> None:
    done = run(program("printing"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


def test_module_from_a_file(program: Program, run: Run) -> None:
    path = program("module_api")
    done = run(path, path.with_suffix(".gfx90a.co"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


def test_no_device(program: Program, run: Run) -> None:
    done = run(program("vector_add"), LUTHIER_DEVICE="")
    assert done.returncode == 1 and "hipErrorNoDevice" in done.stdout
    assert "set LUTHIER_DEVICE to emulator:TARGET" in done.stderr


def test_code_for_another_target(program: Program, run: Run) -> None:
    done = run(program("vector_add"), LUTHIER_DEVICE="emulator:gfx900")
    assert done.returncode == 1 and "hipErrorNoBinaryForGpu" in done.stdout
    assert "the program has code for gfx90a, but the device is gfx900" in done.stderr


def test_no_python(program: Program, run: Run) -> None:
    done = run(program("vector_add"), LUTHIER_PYTHON="/no/such/python")
    assert done.returncode == 1 and "cannot start /no/such/python" in done.stderr


@pytest.mark.parametrize(("what", "said"), (
    ("kernel", "bad address 0x0"), ("constant", "write to read-only memory"), ("fork", ""), ("early", "")))
def test_what_programs_survive(what: str, said: str, program: Program, run: Run) -> None:
    done = run(program("faults"), what)
    assert (done.returncode, done.stdout) == (0, "PASSED\n")
    assert (said in done.stderr and "store" in done.stderr) if said else not done.stderr


def test_an_assertion_that_fails_in_a_kernel(program: Program, run: Run) -> None:
    done = run(program("printing"), "failing")
    assert (done.returncode, done.stdout) == (0, "PASSED\n")
    *said, last = done.stderr.splitlines()
    assert len(said) == 64 and len(set(said)) == 1  # each lane fails
    assert said[0].endswith("void checked(int): Device-side assertion `number != 42' failed.")
    assert "s_trap" in last and "checked" in last


def test_the_worker_ends_with_its_program(program: Program, run: Run) -> None:
    """Killed while a kernel runs for ever: the pipe that the worker has inherited closes at once."""
    done = run(program("faults"), "loop")
    assert (done.returncode, done.stdout) == (-9, "running\n")
