"""LLVM IR to callable code, through a cache on disk.

In: IR text, and bitcode of support functions (code/support). Out: machine code in this process. Support functions are
compiled when generated code first mentions them; those that were compiled before are found by name and by the
translator's sources, without their text. Invariant: the cache key is everything that the machine code depends on, so a
stale entry cannot be met; a damaged one is compiled again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from luthier_py.base import llvm
from luthier_py.base.llvm import Effort
from luthier_py.base.storage import Shelf, cache_key
from luthier_py.emulator.native.clocks import host_functions
from luthier_py.emulator.options.translator import translator

_SHELF = Shelf("host", 1 << 30)
_NAMED = Shelf("named", 1 << 24)
_SUPPORT = re.compile(r"@(luthier_\w+)")
_SYMBOL = re.compile(rb"\0(luthier_\w+)(?=\0)")
WATCHING = "luthier_watch_"
_ready: dict[str, llvm.HostCode] = {}


def link_function(name: str, code: bytes, wave_size: int, first: Mapping[str, int]) -> llvm.HostCode:
    """Machine code that defines ``name``, linked with support functions and ``first``, numbers by symbol."""
    imports = {symbol: _support(symbol, wave_size) for symbol in _imports_of(code)}
    return llvm.HostCode(code, [name], imports | dict(first))


def _imports_of(code: bytes) -> list[str]:
    """Support functions that machine code calls: of all symbols theirs alone begin so."""
    return sorted({name.decode() for name in _SYMBOL.findall(code)})


def scheduler_address(wave_size: int, watched: bool = False, at_random: bool = False) -> int:
    """Host address of the native scheduler for waves of ``wave_size`` lanes (native/scheduler.c); the first call
    compiles it. ``watched``: for launches with the cycle model; ``at_random``: for those whose turns are drawn."""
    return _support(f"luthier_run{'_watched' * watched}{'_at_random' * at_random}_w{wave_size}", wave_size)


def begin_address() -> int:
    """Host address of the function that begins a launch (native/beginning.c), whatever its waves' size; the first call
    compiles it."""
    return _support("luthier_begin_w64", 64)


def _support(symbol: str, wave_size: int) -> int:
    """Address of a support function; compiled if this is the first call of it."""
    if symbol.startswith(WATCHING):
        from luthier_py.emulator.watching.watching_library import (
            resolve_watching_functions,  # builds a C library, for checks alone
        )

        return resolve_watching_functions()[symbol]

    def parts() -> tuple[bytes, str]:
        from luthier_py.emulator.code.support import definition  # imports all meanings; cached code needs no text

        bitcode, ir = definition(symbol.removesuffix(f"_w{wave_size}"), wave_size)
        return bitcode, _SUPPORT.sub(rf"@\1_w{wave_size}", ir)

    with llvm.LOCK:
        if symbol not in _ready:
            code = _compile_named(symbol, parts)
            imports = {one: _support(one, wave_size) for one in _imports_of(code) if one != symbol}
            _ready[symbol] = llvm.HostCode(code, [symbol], imports | host_functions())
    return _ready[symbol].address(symbol)


def _compile_named(name: str, parts: Callable[[], tuple[bytes, str]]) -> bytes:
    """Machine code of what these sources define under a name: a function of bitcode that calls what a text defines, or
    of the text alone."""
    key = cache_key(translator(), llvm.host_identity(), name)
    kept = _NAMED.read(key)
    code = None if kept is None else read_cached_code(kept.decode(), Effort.OPTIMISE)
    if code is not None:
        return code
    bitcode, ir = parts()
    digest = cache_key(bitcode, name, ir) if bitcode else cache_key(ir)
    if (code := read_cached_code(digest, Effort.OPTIMISE)) is None:
        code = llvm.host_function(bitcode, name, ir) if bitcode else llvm.host_object(ir, Effort.OPTIMISE)
        keep_code(digest, Effort.OPTIMISE, code)
    _NAMED.write(key, digest.encode())
    return code


def object_code(ir: str, effort: Effort) -> bytes:
    """Machine code of a module."""
    digest = cache_key(ir)
    code = read_cached_code(digest, effort)
    if code is None:
        code = llvm.host_object(ir, effort)
        keep_code(digest, effort, code)
    return code


def read_cached_code(digest: str, effort: Effort) -> bytes | None:
    """That of a module whose text has this :func:`~luthier_py.base.storage.cache_key`, if it was made before."""
    return _SHELF.read(_code_key(digest, effort))


def keep_code(digest: str, effort: Effort, code: bytes) -> None:
    """For :func:`read_cached_code`."""
    _SHELF.write(_code_key(digest, effort), code)


def _code_key(digest: str, effort: Effort) -> str:
    return cache_key(llvm.host_identity(), effort.name, digest)
