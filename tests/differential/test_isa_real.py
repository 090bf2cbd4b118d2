"""Code that people install, by lines of llvm-objdump: decoded, printed as LLVM does, encoded and assembled back.

Set LUTHIER_ROCM_LIBRARIES as test_elf_real.py says; LUTHIER_ROCM_MEGABYTES of code are taken from each library.
"""

from __future__ import annotations

import os

import pytest
from isa_libraries import corpus
from isa_objects import compare

LIBRARIES = [path for path in os.environ.get("LUTHIER_ROCM_LIBRARIES", "").split(":") if path]
MEGABYTES = float(os.environ.get("LUTHIER_ROCM_MEGABYTES", "20"))

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(not LIBRARIES, reason="LUTHIER_ROCM_LIBRARIES names no library"),
]


@pytest.mark.parametrize("path", LIBRARIES, ids=os.path.basename)
def test_every_instruction(path: str, require_tool) -> None:
    taken = corpus(require_tool("llvm-objdump-22"), path, MEGABYTES)
    assert taken.objects and not taken.not_loaded and not taken.not_scanned
    for isa, lines in taken.lines.items():
        found = compare(require_tool("llvm-mc-22"), isa, lines)
        assert not found.differences, found.differences[:10]
        assert found.text == found.lines - found.not_read
        assert found.encoded == found.assembled == found.text - found.refused
        assert found.not_read + found.refused < 0.001 * found.lines
        assert found.other_bits < 0.1 * found.lines  # newer compilers: 0 where gfx10.1 has no third operand
