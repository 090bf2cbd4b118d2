"""A command as the library that is built here would carry it out.

In: a program's path and words, an environment. Out: a command line. Invariant: the library itself is asked, so the
first program is started as those that it starts.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence

from luthier_py.runtime.loader.build import loader_library

_BEFORE, _MOST_INTERPRETERS, _LINE, _PATH = 6, 4, 256, 4096  # loaded.h


class _Loaded(ctypes.Structure):
    """struct loaded."""

    _fields_ = (("path", ctypes.c_char_p), ("words", ctypes.POINTER(ctypes.c_char_p)),
                ("lines", ctypes.c_char * (_MOST_INTERPRETERS * _LINE)), ("libraries", ctypes.c_char * (2 * _PATH)),
                ("place", ctypes.c_char * _PATH))


def command_by_loader(path: str, words: Sequence[str], environment: Mapping[str, str]) -> list[str] | None:
    """None where the kernel starts PATH without the loader that ``environment`` names."""
    load_by_name = ctypes.CDLL(str(loader_library())).luthier_load_by_name
    load_by_name.restype = ctypes.c_bool
    found = _Loaded()
    room = (ctypes.c_char_p * (_BEFORE + 2 * _MOST_INTERPRETERS + 1 + len(words)))()
    found.words = ctypes.cast(room, ctypes.POINTER(ctypes.c_char_p))
    program, given = os.fsencode(path), _array(words)
    variables = _array([f"{name}={value}" for name, value in environment.items()])
    if not load_by_name(ctypes.byref(found), program, given, variables):
        return None
    return [os.fsdecode(word) for word in iter(iter(room).__next__, None)]


def _array(words: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(words) + 1))(*map(os.fsencode, words), None)
