"""Modules of others that take long to import, imported when a name of theirs is first used.

In: nothing. Out: ``np``, NumPy (0.05 to 0.09 s), and which llvmlite is installed. Invariant: what is used through
``np`` is NumPy itself. For modules that a start imports and whose use of NumPy is rare; all others import it as usual.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["limit_threads", "llvmlite_version", "np"]

_THREADS = "OPENBLAS_NUM_THREADS"

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


class _NumpyFinder:
    """Sets the variable while NumPy is executed, and only then: programs that this process starts do not see it."""

    def __init__(self) -> None:
        self._has_found = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "numpy" or self._has_found:
            return None
        self._has_found = True
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: _execute(execute, module)  # type: ignore[method-assign]
        return spec


def _execute(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    if _THREADS in os.environ:
        return execute(module)
    os.environ[_THREADS] = "1"
    try:
        return execute(module)
    finally:
        os.environ.pop(_THREADS, None)


_FINDER: Any = _NumpyFinder()


def limit_threads() -> None:
    """Let NumPy, when something imports it, start none of the threads, one for each core, of its OpenBLAS (0.04 s):
    this package multiplies no matrices. A variable that the user has set stays."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


@cache
def llvmlite_version() -> str:
    """What distinguishes one installed llvmlite from another, without importing it: the text of its ``_version.py``."""
    spec = find_spec("llvmlite")
    return "" if spec is None or spec.origin is None else Path(spec.origin).with_name("_version.py").read_text()
