"""What a run depends on, by content: files of a command, sources of a tool, our own.

In: words, names of tools. Out: texts with hashes. Invariant: names of files do not count, nor when they were written.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from luthier_py.rewrite.tool import Tool, load_tool
from luthier_py.rewrite.tool.discover import is_file_tool

PACKAGE = Path(__file__).parents[2]
SOURCES = (".py", ".c", ".h", ".txt")
PACKAGE_FILE = "__init__.py"


def content_of(word: str, folder: Path = Path()) -> str:
    """For the name of a file its content's hash; any other word is itself."""
    path = folder / word
    try:
        return _file_content(path, path.stat().st_mtime_ns) if path.is_file() else word
    except (OSError, ValueError):  # a word that no file could be called
        return word


@cache
def _file_content(path: Path, _changed: int) -> str:
    return f"sha256:{file_hash(path)}"


def file_hash(path: Path) -> str:
    """SHA-256, without holding the whole file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def tool_content(name: str, options: Mapping[str, str] = MappingProxyType({})) -> str:
    """The sources of a tool, or of several together, and what is in the files that its options name."""
    made = load_tool(name, options)
    return " ".join([*(_sources_of_tool(type(part)) for part in made.together), *sorted(made.declared_files.values())])


def _sources_of_tool(tool: type[Tool]) -> str:
    """Its file with the neighbours that it imports, or all of its package."""
    path = Path(inspect.getfile(tool))
    files = sources_of(path)
    if is_file_tool(tool.__module__) and path.name != PACKAGE_FILE:
        files += neighbours(path.resolve().parent)
    return f"{tool.__qualname__} {_hash_files(files)}"


def sources_of(path: Path) -> list[Path]:
    """A module's file, or all of its package."""
    return sorted(path.parent.rglob("*.py")) if path.name == PACKAGE_FILE else [path]


def neighbours(folder: Path) -> list[Path]:
    """The sources of all modules that were imported from a folder by their own names, in order."""
    own = {name: Path(found).resolve() for name, module in sys.modules.items()
           if (found := getattr(module, "__file__", None)) and not is_file_tool(name)}  # fmt: skip
    places = {path for path in own.values() if folder in (path.parent, path.parent.parent)}
    top = {path for path in places if path.parent == folder or path.name == PACKAGE_FILE}
    return [source for path in sorted(top) for source in sources_of(path)]


@cache
def our_content() -> str:
    """The version, and a hash of our own sources."""
    return f"{version('luthier-py')} {_hash_files(sorted(p for p in PACKAGE.rglob('*') if p.suffix in SOURCES))}"


def _hash_files(paths: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(re.sub(rb"\r\n", b"\n", path.read_bytes()) for path in paths)).hexdigest()
