"""Names of kernels as people wrote them.

In: a symbol. Out: its C++ name by the C++ runtime's own ``__cxa_demangle`` (Itanium C++ ABI 3.4, "Demangler API"); of
a target region of OpenMP, its function and line (LLVM, OMPIRBuilder.cpp, getTargetRegionEntryFnName: the file's device
and number in hexadecimal digits, the function's symbol, the line, and a count from the line's second region on).
Invariant: what is no mangled name stays as it is, as do all names on a computer without that library.
A shortened name ends with eight digits that distinguish it; those of a kernel's folder in a report are the same.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from functools import cache

LIBRARY = "libstdc++.so.6"
PREFIX = "_Z"
LONGEST = 80  # characters of a name that lines, tables and titles show whole
_BREAKS = re.compile(r"[^A-Za-z0-9]")
NEWER = {"DF16_": ("Dd", "decimal64", "_Float16"), "DF16b": ("Df", "decimal32", "std::bfloat16_t")}
"""Types that older libraries do not know: others of no code's that take no part in substitutions either, and names."""
REGION = re.compile(r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_(.+)_l(\d+)(?:_(\d+))?")


@cache
def demangle(symbol: str) -> str:
    """``_Z3addPfi`` is ``add(float*, int)``, ``__omp_offloading_fe00_2b_main_l14`` is ``main at line 14``."""
    if region := REGION.fullmatch(symbol):
        function, line, count = region.groups()
        return f"{demangle(function)} at line {line}{f', region {int(count) + 1}' if count else ''}"
    return _by_library(symbol) or _with_newer_types(symbol) or symbol if symbol.startswith(PREFIX) else symbol


def shorten_name(name: str, symbol: str = "", most: int = LONGEST) -> str:
    """A name that is no longer than ``most``: its begin, as whole words, and the digest of ``symbol``. Generators of
    matrix kernels write each parameter into a name."""
    if len(name) <= most:
        return name
    tail = f"...{short_digest(symbol or name)}"
    head = name[: most - len(tail)]
    words = [found.start() for found in _BREAKS.finditer(head) if found.start() > len(head) // 2]
    return (head[: words[-1]] if words else head) + tail


def short_digest(text: str) -> str:
    """Eight hexadecimal digits of a text's digest."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _by_library(symbol: str) -> str | None:
    library = _library()
    if library is None:
        return None
    status = ctypes.c_int()
    text = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    try:
        return ctypes.string_at(text).decode() if status.value == 0 else None
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


def _with_newer_types(symbol: str) -> str | None:
    for code, (other, _, _) in NEWER.items():
        symbol = symbol.replace(code, other)
    found = _by_library(symbol)
    for _, name, real in NEWER.values():
        found = found and found.replace(name, real)
    return found


def is_region(symbol: str) -> bool:
    """Whether a kernel is a target region of OpenMP."""
    return REGION.fullmatch(symbol) is not None


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    library.__cxa_demangle.restype = ctypes.c_void_p
    library.__cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return library
