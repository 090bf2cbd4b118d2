"""Modules of others that take long to import, imported when a name of theirs is first used.

In: nothing. Out: ``np``, NumPy (0.05 to 0.09 s). Invariant: what is used through it is NumPy itself. For modules that a
start imports and whose use of NumPy is rare; all others import it as usual.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["THREADS", "import_numpy", "np"]

THREADS = "OPENBLAS_NUM_THREADS"

if TYPE_CHECKING:
    import numpy as np
else:

    class _LateModule:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self._name), name)
            setattr(self, name, value)
            return value

    np = _LateModule("numpy")


def import_numpy() -> None:
    """Import NumPy without the threads, one for each core, that its OpenBLAS starts then (0.04 s): this package
    multiplies no matrices. The process's environment stays as it is, for programs that it starts."""
    before = os.environ.get(THREADS)
    os.environ[THREADS] = before or "1"
    try:
        import_module("numpy")
    finally:
        if before is None:
            del os.environ[THREADS]
