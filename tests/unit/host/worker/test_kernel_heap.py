"""Blocks that kernels allocate (malloc, new) under the check of bounds: those that are not in use are told."""

from __future__ import annotations

import re

import pytest
from test_execute import DEVICE, Program, luthier

CHECKED = "exec", "--device", DEVICE, "--check", "bounds", "--error-exitcode", "9", "--"


@pytest.mark.parametrize(("mistake", "words", "what"), [
    pytest.param("beyond", 16, r"a write of 4 bytes at \S+, 0 bytes into a block .* not in use \(\S+, 64 bytes\)"),
    pytest.param("freed", 12, r"a read of 4 bytes at \S+, 4 bytes into a block .* not in use \(\S+, 48 bytes\): it was "
                              "freed"),
    pytest.param("across", 256, r"a read of 8 bytes at \S+, past the end of its block .* \(\S+, 1024 bytes\)"),
    pytest.param("before", 4, r"a read of 4 bytes at \S+, 4 bytes before the first block of 16 bytes on the heap"),
    pytest.param("beyond", 1250, r"a write of 4 bytes at \S+, out of bounds"),
    pytest.param("freed", 1250, r"a read of 4 bytes at \S+, out of bounds"),
])
def test_blocks_that_are_not_in_use_are_told(mistake: str, words: int, what: str, program: Program) -> None:
    heap = program("kernel_heap", extra=("-gline-tables-only",))
    done = luthier(*CHECKED, heap, mistake, str(words))
    assert (done.returncode, done.stdout) == (9, "PASSED\n"), done.stderr
    told, place, summary = done.stderr.splitlines()
    assert re.match("luthier: check bounds: kernel used.*: " + what, told), told
    assert re.search(r"pc 0x\w+ `\w+ .*` \(\S*kernel_heap.hip:\d+\), lane 0 of wave 0 of work-group 0", place), place
    assert summary == "luthier: checks (bounds): 1 finding in 1 launch"


@pytest.mark.parametrize(("words", "items"), [
    (16, 1), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 1024), (5, 300), (24, 256), (768, 200)))])
def test_nothing_is_told_of_blocks_in_use(words: int, items: int, program: Program) -> None:
    done = luthier(*CHECKED, program("kernel_heap"), "", str(words), str(items))
    assert (done.returncode, done.stdout) == (0, "PASSED\n"), done.stderr
