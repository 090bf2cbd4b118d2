"""What a tool's edits of a program depend on beside that program, as a key that is known without asking the tool.

In: a tool. Out: a digest of its class, options and sources. Invariant: a tool that says `cacheable` records the same
edits of the same program while its key is the same. One that does not say it has no key, nor has one of whose sources a
part is no file, or may have changed since this process imported it. This package is not in the key: the edit cache
adds a key of all of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from luthier_py.base.errors import ToolError
from luthier_py.base.storage import cache_key, digest
from luthier_py.rewrite.tool.base import Tool

_OUTPUT = ("LUTHIER_OUTPUT", "LUTHIER_REPORT", "LUTHIER_SOURCES", "LUTHIER_RECORDS")  # options: elsewhere in each run
_KEYED_OTHERWISE = (__name__.partition(".")[0], "builtins")
_STARTED_NS = time.time_ns() - 20_000_000  # times of files may be late


def edit_key(tool: Tool) -> str | None:
    """None where it has none. Raises ToolError where a declared source is not there."""
    words = list[str]()
    for part in tool.together:
        if not part.cacheable:
            return None
        options = {name: bool(value) if name in _OUTPUT else value for name, value in part.option_values.items()}
        words += type(part).__module__, type(part).__qualname__, repr(options), *sorted(part.given.difference(_OUTPUT))
        for file in source_files(type(part)):
            if not file.is_file() or file.stat().st_ctime_ns >= _STARTED_NS:
                return None
            words.append(digest(str(file)))
    return cache_key(*words)


def source_files(kind: type[Tool]) -> Iterator[Path]:
    """The files of the modules of a tool's class and of the classes that it is derived from, and of what these declare
    by ``sources``; none of this package. A module without a file gives a path that does not exist."""
    for each in kind.__mro__:
        if each.__module__.partition(".")[0] not in _KEYED_OTHERWISE:
            module = sys.modules[each.__module__]
            yield from _files_of_module(module)
            declared = vars(each).get("sources", ())
            for source in (declared,) if isinstance(declared, (ModuleType, Path, str)) else declared:
                yield from (_files_of_module(source) if isinstance(source, ModuleType)
                            else _files_at(_file_of(module).parent / source))


def _file_of(module: ModuleType) -> Path:
    return Path(getattr(module, "__file__", None) or f"/dev/null/{module.__name__}")


def _files_of_module(module: ModuleType) -> Iterable[Path]:
    """Its own, with all modules of the outermost package that it is in."""
    own = _file_of(module)
    package = module.__spec__.parent if module.__spec__ else None
    return sorted({own, *own.parents[package.count(".")].rglob("*.py")}) if package else [own]


def _files_at(path: Path) -> Iterable[Path]:
    """The file, or all that are in the folder but for what Python keeps there."""
    if not path.exists():
        raise ToolError(f"{path}: it is one of a tool's `sources`, and is not there")
    return sorted(file for file in path.rglob("*") if file.is_file() and file.parent.name != "__pycache__"
                  ) if path.is_dir() else [path]
