"""A command as the library that is built here would carry it out.

In: a program's path and words, an environment. Out: a command line. Invariant: the library itself makes it, so the
first program is started as those that it starts.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence

from luthier_py.host.loader.build import loader_library


def command_by_loader(path: str, words: Sequence[str], environment: Mapping[str, str]) -> list[str] | None:
    """None where the kernel starts PATH without the loader that ``environment`` names."""
    command = ctypes.CDLL(str(loader_library())).luthier_command
    command.restype = ctypes.c_bool
    found: list[str] = []
    add = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda word: found.append(os.fsdecode(word)))
    variables = _array([f"{name}={value}" for name, value in environment.items()])
    return found if command(os.fsencode(path), _array(words), variables, add) else None


def _array(words: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(words) + 1))(*map(os.fsencode, words), None)
