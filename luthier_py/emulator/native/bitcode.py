"""Where the compiled C beside this lies: LLVM bitcode that generate.py has made, and that is committed.

In: the name of a source, the size of waves. Out: a module in which functions are called ``luthier_<name>_w<size>``.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "bitcode"


def read_bitcode(source: str, wave_size: int) -> bytes:
    """Of ``source``.c, for waves of ``wave_size`` lanes."""
    return (FOLDER / f"{source}.{wave_size}.bc").read_bytes()
