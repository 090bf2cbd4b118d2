"""Variables that are structures, while somebody else's program runs; the second run recalls what the first one made."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).with_name("structured.py")


@pytest.mark.parametrize("native", [0, 1])
def test_structures_under_a_program(
    native: int, program: Callable[..., Path], tooled: Callable[..., Any], clang: str
) -> None:
    for _ in range(2):
        done = tooled(program("streams_events"), tool=TOOL, LUTHIER_TOOL_OPTIONS=f"native={native}")
        assert (done.code, done.out) == (0, "PASSED\n"), done.err
        assert len(done.verdict["reports"]) > 1 and not done.verdict["failed"]
        for row in done.verdict["reports"]:
            waves = row.get("launches", 1) * prod(row["grid"]) * ceil(prod(row["block"]) / 64)
            own = {"seen": [{"sum": 0, "last": {"kind": 0, "number": 0}},
                            {"sum": (1 << 40) + 70000 * waves, "last": {"kind": 2, "number": 70000}},
                            {"sum": 5, "last": {"kind": 6, "number": 7}}],
                   "one": {"sum": 8 + 10 * waves, "last": {"kind": 1, "number": 10}}}
            of_native = [{"sum": 1, "last": {"kind": 2, "number": 7}},
                         {"sum": 7 * waves, "last": {"kind": 0, "number": 0}}]
            assert row["report"] == ({**own, "native": of_native} if native else own), row
