"""Names of kernels as people wrote them.

In: a symbol. Out: its C++ name by the C++ runtime's own ``__cxa_demangle`` (Itanium C++ ABI 3.4, "Demangler API").
Invariant: what is no mangled name stays as it is, as do all names on a computer without that library.
"""

from __future__ import annotations

import ctypes
from functools import cache

LIBRARY = "libstdc++.so.6"
PREFIX = "_Z"


@cache
def demangled(symbol: str) -> str:
    """``_Z3addPfi`` is ``add(float*, int)``."""
    library = _library() if symbol.startswith(PREFIX) else None
    if library is None:
        return symbol
    status = ctypes.c_int()
    text = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    try:
        return ctypes.string_at(text).decode() if status.value == 0 else symbol
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    library.__cxa_demangle.restype = ctypes.c_void_p
    library.__cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return library
