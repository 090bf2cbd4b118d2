"""LLVM IR to callable code, through a cache on disk.

In: IR text. Out: machine code in this process. Support functions (native, atomics, scheduler) are
compiled when generated code first mentions them. Invariant: the cache key is everything that the
machine code depends on, so a stale entry cannot be met; a damaged one is compiled again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from luthier_py import llvm
from luthier_py.emulator.beginning import beginning
from luthier_py.emulator.clocks import executed, host_functions, nanoseconds
from luthier_py.emulator.crosslane import permutation
from luthier_py.emulator.cycle_functions import time_function
from luthier_py.emulator.elements import element_function
from luthier_py.emulator.matrix_function import matrix_function
from luthier_py.emulator.native import definition
from luthier_py.emulator.rounding import support_function
from luthier_py.emulator.scheduler import scheduler
from luthier_py.emulator.transcendental import transcendental
from luthier_py.emulator.watching_library import watching_functions
from luthier_py.isa.semantics.algebra import Prim
from luthier_py.llvm import Effort
from luthier_py.storage import Shelf, cache_key

_SHELF = Shelf("host", 1 << 30)
_SUPPORT = re.compile(r"@(luthier_\w+)")
WALL_CLOCK, CLOCK = "luthier_nanoseconds", "luthier_executed"
WATCHING = "luthier_watch_"
_ready: dict[tuple[str, object], llvm.HostCode] = {}


def link_function(name: str, code: bytes, imports: Iterable[str], wave_size: int, first: Mapping[str, int]
                  ) -> llvm.HostCode:
    """Machine code that defines ``name``, linked with support functions and ``first``, numbers by symbol."""
    return llvm.HostCode(code, [name], {symbol: _support(symbol, wave_size) for symbol in imports} | dict(first))


def imports_of(ir: str) -> set[str]:
    """Support functions that generated code calls."""
    return set(_SUPPORT.findall(ir))


def scheduler_address(wave_size: int, watched: bool = False, by_lot: bool = False) -> int:
    name = "luthier_run_by_lot" if by_lot else "luthier_run"
    return native_function(name, partial(scheduler, wave_size, watched, by_lot), {}, (wave_size, watched))


def begin_address() -> int:
    return native_function("luthier_begin", beginning, host_functions())


def native_function(name: str, text: Callable[[], str], imports: Mapping[str, int], variant: object = None) -> int:
    """Address of a hand-written function; ``imports``: of what it calls. Compiled if this is the first time."""
    with llvm.LOCK:
        if (name, variant) not in _ready:
            _ready[name, variant] = llvm.HostCode(object_code(text(), Effort.OPTIMISE), [name], imports)
    return _ready[name, variant].address(name)


def _imports(ir: str, wave_size: int, defined: str) -> dict[str, int]:
    """Addresses of the support functions that ``ir`` calls; compiled if this is the first call of them."""
    return {symbol: _support(symbol, wave_size) for symbol in imports_of(ir) - {defined}}


def _support(symbol: str, wave_size: int) -> int:
    if symbol.startswith(WATCHING):
        return watching_functions()[symbol]
    name = symbol.removesuffix(f"_w{wave_size}")
    with llvm.LOCK:
        if (name, wave_size) not in _ready:
            text = _definition(name, wave_size)
            imports = _imports(text, wave_size, symbol) | (host_functions() if name == WALL_CLOCK else {})
            _ready[name, wave_size] = llvm.HostCode(object_code(text, Effort.OPTIMISE), [symbol], imports)
    return _ready[name, wave_size].address(symbol)


def _definition(name: str, wave_size: int) -> str:
    family = name.split("_")[1]
    if family.upper() in Prim.__members__:
        text = transcendental(name)
    elif family in ("permute", "bpermute"):
        text = permutation(name, wave_size)
    elif name in (WALL_CLOCK, CLOCK):
        text = (executed if name == CLOCK else nanoseconds)(name)
    elif family == "time":
        text = time_function(name, wave_size)
    elif family == "rounded":
        text = support_function(name)
    elif family == "matrix":
        text = matrix_function(name)
    elif family == "element":
        text = element_function(name, wave_size)
    else:
        text = definition(name, wave_size)
    return _SUPPORT.sub(rf"@\1_w{wave_size}", text)


def object_code(ir: str, effort: Effort) -> bytes:
    """Machine code of a module."""
    digest = cache_key(ir)
    code = kept_code(digest, effort)
    if code is None:
        code = llvm.host_object(ir, effort)
        keep_code(digest, effort, code)
    return code


def kept_code(digest: str, effort: Effort) -> bytes | None:
    """That of a module whose text has this :func:`~luthier_py.storage.cache_key`, if it was made before."""
    return _SHELF.read(_code_key(digest, effort))


def keep_code(digest: str, effort: Effort, code: bytes) -> None:
    """For :func:`kept_code`."""
    _SHELF.write(_code_key(digest, effort), code)


def _code_key(digest: str, effort: Effort) -> str:
    return cache_key(llvm.host_identity(), effort.name, digest)
