"""What a tool's edits of a program depend on beside that program, as far as it can be told without asking the tool.

In: a tool. Out: an Origin. Invariant: two tools whose origins agree record the same edits for the same program, unless
they ask the outside world (files that they do not declare, the environment, time), which they must say: ``cacheable``.

Sources are the tool's file, all that it has imported beside the standard library, installed packages and this one, and
what it declares by ``reads``. They are digested when they have been imported, since what is on disk may change later;
one that has changed after that began, or lies in an archive, leaves the tool without an origin.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from weakref import WeakKeyDictionary

from luthier_py.base.storage import cache_key, digest
from luthier_py.rewrite.tool.arguments.launch_parameter import VALUES
from luthier_py.rewrite.tool.base import Tool
from luthier_py.rewrite.tool.state import Untold, state_of

_OUTPUT = (  # where results go: elsewhere in each run
    "LUTHIER_OUTPUT", "LUTHIER_REPORT", "LUTHIER_SOURCES", "LUTHIER_RECORDS",
)  # fmt: skip
_OPTIONS = ("_options", "selection", "given", "_reads", "_gathered", VALUES)  # attributes that are keyed otherwise
_MACHINERY = frozenset(  # of modules, which Python sets
    "__annotations__ __builtins__ __cached__ __conditional_annotations__ __doc__ __file__ __loader__ __name__ "
    "__package__ __path__ __spec__ __warningregistry__".split())
_OURS = __name__.partition(".")[0]  # this package, which is keyed as a whole
_STANDARD = {re.escape(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
_LIBRARIES = re.compile(f".*/(site|dist)-packages/|({'|'.join(sorted(_STANDARD))})/")
_STARTED = time.time_ns()
_TICK_NS = 20_000_000  # by which times of files may be late
_INSTALLED = tuple(sorted({sysconfig.get_path(name) for name in ("purelib", "platlib")}))
_digests: WeakKeyDictionary[ModuleType, tuple[str, str | None]] = WeakKeyDictionary()  # path and digest, by module


@dataclass(frozen=True, slots=True)
class Origin:
    """``key``: the tool's class, options and state, that of ``modules`` included. ``files``: digests of what it was
    made of, by path."""

    key: str
    files: Mapping[str, str]
    modules: frozenset[str]

    def agrees(self, files: Mapping[str, str]) -> bool:
        """Whether a tool that depends on ``files`` would find them as they were, and has nothing else by now."""
        return self.files.keys() <= files.keys() and all(
            (self.files.get(path) or digest(path)) == known for path, known in files.items())


def origin_of(tool: Tool, before: Origin | None = None) -> Origin | None:
    """None where a tool says that it is not cacheable, has no file, or holds what has no key. With what was said
    ``before``: the state of the same modules, and the files of all."""
    found = [_origin_of(part, before) for part in tool.together]
    known = [origin for origin in found if origin is not None]
    if len(known) < len(found):
        return None
    files = {path: said for origin in known for path, said in origin.files.items()}
    modules = frozenset[str]().union(*(origin.modules for origin in known))
    return Origin(cache_key(*(origin.key for origin in known)), files, modules)


def _origin_of(tool: Tool, before: Origin | None) -> Origin | None:
    kind, home = type(tool), type(tool).__module__
    package = home.partition(".")[0]
    found = {name: module for name, module in list(sys.modules.items()) if _is_own(name, module, package)}
    if not tool.cacheable or not (home in found or package == _OURS):
        return None
    options = {name: bool(value) if name in _OUTPUT else value for name, value in tool.option_values.items()}
    given = tool.given.difference(_OUTPUT)
    state = {name: value for name, value in vars(tool).items() if name not in _OPTIONS}
    seen = found.keys() if before is None else found.keys() & before.modules
    held = [_globals(found[name]) for name in sorted(seen)]
    try:
        key = state_of((kind, options, given, state, *held), found.__contains__)
    except (Untold, RecursionError):
        return None
    sources = [_digest_module(module) for module in found.values()]
    if any(known is None for _, known in sources):  # changed since it was imported, or in an archive
        return None
    files = {path: str(known) for path, known in sources} | dict(tool.declared_files)
    return Origin(cache_key(home, kind.__qualname__, key, *_collect_installation_state()), files, frozenset(found))


def _collect_installation_state() -> Iterator[str]:
    """What changes when packages are installed, removed or replaced, or modules are looked for elsewhere."""
    yield from map(os.path.abspath, sys.path)
    for folder in _INSTALLED:
        with suppress(OSError):
            yield f"{folder} {os.stat(folder).st_mtime_ns}"


@contextmanager
def digest_imports() -> Iterator[None]:
    """Modules that are imported meanwhile are digested at its end."""
    start, before = time.time_ns(), dict(sys.modules)
    yield
    for name, module in list(sys.modules.items()):
        if module is not before.get(name) and _is_own(name, module, ""):
            _digest_module(module, start)


def _globals(module: ModuleType) -> dict[str, object]:
    return {name: value for name, value in vars(module).items() if name not in _MACHINERY}


def _digest_module(module: ModuleType, since: int = _STARTED) -> tuple[str, str | None]:
    """A module that was imported ``since`` (ns), and the digest of its source if that is still what was imported."""
    if module not in _digests:
        path = str(module.__file__)
        is_same = os.path.isfile(path) and os.stat(path).st_mtime_ns < since - _TICK_NS
        _digests[module] = path, digest(path) if is_same else None
    return _digests[module]


def _is_own(name: str, module: ModuleType, package: str) -> bool:
    """Whether the tool may have imported it, beside what is installed."""
    path = getattr(module, "__file__", None)
    top = name.partition(".")[0]
    if not isinstance(path, str) or top in ("__main__", _OURS):
        return False
    return top == package or not _is_installed(path)


@cache
def _is_installed(path: str) -> bool:
    """Whether it is of the standard library or of an installed package."""
    return _LIBRARIES.match(path) is not None or _LIBRARIES.match(os.path.realpath(path)) is not None
