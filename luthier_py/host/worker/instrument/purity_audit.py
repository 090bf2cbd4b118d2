"""What a tool does beside recording edits while it is asked for them: prints, and what it asks the outside world.

In: the time in which it is asked. Out: whether there was anything of that kind. Invariant: what is written reaches the
streams all the same. Python tells of files that are opened, folders that are listed, modules that are looked for,
programs that are started and connections; of clocks, the environment and whether a file is there it does not. What
compiles hooks that were there before does not count: their sources are keyed with the tool. Nor does what threads of
this package do, as those in which the emulator compiles what runs often; threads of others might be the tool's.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import get_ident
from types import FrameType
from typing import Any, TextIO, cast

from luthier_py.base.storage import cache_folder
from luthier_py.rewrite.tool.cpp.hip import MADE_EVENT
from luthier_py.rewrite.tool.cpp.hip import __name__ as HIP

_ASKING = frozenset(("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect",
                     "sqlite3.connect", MADE_EVENT))  # fmt: skip
_LISTING = frozenset(("os.listdir", "os.scandir"))
_TOLD = _ASKING | _LISTING | {"open", "import"}
_IMPORTERS = ("_frozen_importlib_external", "importlib._bootstrap_external")  # one module, whose modules are keyed
_PACKAGE = __name__.partition(".")[0]
_OURS = str(Path(__file__).parents[3])


@dataclass(slots=True)
class AuditedCalls:
    """Mutable. ``thread``: who asks the tool. ``opened``: files and folders, but for those of this package.
    ``imported``: names of modules."""

    thread: int = field(default_factory=get_ident)
    silent: bool = True
    opened: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)

    def nothing_but(self, files: Collection[str]) -> bool:
        """Whether the tool has asked for these files and for modules that are there alone, and was silent."""
        declared = {os.path.abspath(path) for path in files}
        sources = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        return self.silent and self.imported <= sys.modules.keys() and all(
            path in declared or path in sources or any(path.startswith(f"{folder}{os.sep}") for folder in declared)
            for path in self.opened)


_listeners: list[AuditedCalls] = []


@contextmanager
def audit_side_effects() -> Iterator[AuditedCalls]:
    """Record what the tool prints and asks for while the context lasts; the module's text says which threads count."""
    _hear()
    audited = AuditedCalls()
    out, err = _Stream(sys.stdout, audited), _Stream(sys.stderr, audited)
    _listeners.append(audited)
    try:
        with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
            yield audited
    finally:
        _listeners.remove(audited)


@dataclass(frozen=True, slots=True)
class _Stream:
    """Writes on."""

    stream: TextIO
    audited: AuditedCalls

    def __getattr__(self, name: str) -> Any:
        self.audited.silent = False  # every use of a stream is a way to write
        return getattr(self.stream, name)


@cache
def _hear() -> None:
    """From now on: a hook of the interpreter stays."""
    sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _listeners or event not in _TOLD or event != MADE_EVENT and _compiles_hooks():
        return
    for audited in _listeners:
        if audited.thread != get_ident() and _began_here():
            continue
        if event in _ASKING:
            audited.silent = False
        elif event == "import":
            audited.imported.add(args[0])
        elif (event == "open" or event in _LISTING) and (path := _resolve_opened_path(args[0] or ".")):
            audited.opened.add(path)


def _began_here() -> bool:
    """Whether this thread runs what this package has begun, whatever that has called."""
    frame: FrameType | None = sys._getframe(2)
    begun = ""
    while frame is not None:
        if (name := frame.f_globals.get("__name__")) != threading.__name__:
            begun = str(name)
        frame = frame.f_back
    return begun.startswith(f"{_PACKAGE}.")


def _compiles_hooks() -> bool:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") != HIP:
        frame = frame.f_back
    return frame.f_globals.get("__name__") == HIP


def _resolve_opened_path(path: object) -> str | None:
    """The file or folder that somebody asks for, if that is neither Python, looking for modules, nor this package."""
    if not isinstance(path, (str, bytes)) or sys._getframe(2).f_globals.get("__name__") in _IMPORTERS:
        return None
    found = os.path.abspath(os.fsdecode(path))
    ours = (_OURS, str(cache_folder()))
    return None if found in ours or found.startswith(tuple(f"{folder}{os.sep}" for folder in ours)) else found
