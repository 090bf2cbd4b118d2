"""What a tool does beside recording edits while it is asked for them: prints, and what it asks the outside world.

In: the time in which it is asked. Out: whether there was anything of that kind. Invariant: what is written reaches the
streams all the same. Python tells of files that are opened, programs that are started and connections; of clocks and
the environment it does not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TextIO, cast

from luthier_py.storage import cache_folder

_ASKING = frozenset(("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect"))
_CODE = (".py", ".pyc", ".so")  # modules, whose sources are keyed
_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep


@dataclass(slots=True)
class Heard:
    """Mutable. ``opened``: files, but for modules and those of this package."""

    silent: bool = True
    opened: set[str] = field(default_factory=set)

    def nothing_but(self, files: Collection[str]) -> bool:
        """Whether the tool has asked for these files alone, and was silent."""
        return self.silent and self.opened <= {os.path.abspath(path) for path in files}


_listeners: list[Heard] = []


@contextmanager
def listening() -> Iterator[Heard]:
    _hear()
    heard = Heard()
    out, err = _Stream(sys.stdout, heard), _Stream(sys.stderr, heard)
    _listeners.append(heard)
    try:
        with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
            yield heard
    finally:
        _listeners.remove(heard)


@dataclass(frozen=True, slots=True)
class _Stream:
    """Writes on."""

    stream: TextIO
    heard: Heard

    def __getattr__(self, name: str) -> Any:
        self.heard.silent = False  # every use of a stream is a way to write
        return getattr(self.stream, name)


@cache
def _hear() -> None:
    """From now on: a hook of the interpreter stays."""
    sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _listeners or not (event == "open" or event in _ASKING):
        return
    for heard in _listeners:
        if event != "open":
            heard.silent = False
        elif isinstance(args[0], (str, bytes)) and not _is_known(path := os.path.abspath(os.fsdecode(args[0]))):
            heard.opened.add(path)


def _is_known(path: str) -> bool:
    folder = cache_folder()
    return path.endswith(_CODE) or path.startswith((_OURS, f"{folder}{os.sep}"))
