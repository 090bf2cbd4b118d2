"""Programs with few file descriptors: the workers get theirs all the same, or one line says what is missing. And how
deep a program may say that stacks are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luthier_py.binary.loader import MOST_STACK_BYTES
from luthier_py.samples import FOLDER

HostProgram = Callable[..., Path]


@pytest.mark.parametrize("limit", (201, 200, 64, 20))
def test_few_descriptors(limit: int, host_program: HostProgram, tooled: Callable[..., Any]) -> None:
    library = host_program("deep_library", "-shared", "-fPIC")
    program = host_program("deep_program", linked=False)
    words = "sh", "-c", f'ulimit -n {limit}; "$@"', "sh", program, library, FOLDER / "vector_add.co"
    done = tooled(*words)
    assert (done.code, done.out) == (0, "0\n"), done.err
    assert done.verdict["instrumented"] == 2


@pytest.mark.parametrize("limit, said", ((5, "Too many open files"), (6, "too few file descriptors for a worker")))
def test_too_few_descriptors(limit: int, said: str, host_program: HostProgram, tooled: Callable[..., Any]) -> None:
    words = "sh", "-c", f'ulimit -n {limit}; "$@"', "sh", host_program("memory_program"), "limits"
    done = tooled(*words)
    assert done.code == 1 and said in done.err
    assert len(done.err.splitlines()) == 1


def test_stacks_are_not_as_deep_as_the_tools_memory(run: Callable[..., Any], tooled: Callable[..., Any]) -> None:
    """On our HIP runtime a bare program may say what it likes."""
    words = sys.executable, "-c", f"""if True:
        import ctypes
        limits = (0, {MOST_STACK_BYTES}), (0, {MOST_STACK_BYTES + 1}), (2, {1 << 24})
        print([ctypes.CDLL("libamdhip64.so").hipDeviceSetLimit(kind, ctypes.c_size_t(size)) for kind, size in limits])
    """
    assert (run(*words).stdout, tooled(*words).out) == ("[0, 0, 0]\n", "[0, 1, 0]\n")
