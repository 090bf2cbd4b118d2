"""The runs that a study asks for, each with a name that says all it depends on.

In: a Study. Out: Cells, repeat by repeat, so that what is compared runs close together. Invariant: two cells have one
identity exactly if they run the same: contents of files count, not their names, nor labels.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from luthier_py.errors import Invalid
from luthier_py.session.levels import chosen_level
from luthier_py.session.stack import LUTHIER, ROCM
from luthier_py.session.study.spec import GPU, StudiedProgram, Study, ToolUse
from luthier_py.tool import Tool, load_tool
from luthier_py.tool.discover import is_file_tool
from luthier_py.tool.selection import COUNTING, EVERY_TOOL
from luthier_py.worker.launch_settings import LAUNCH_VARIABLES
from luthier_py.worker.settings import FINE_ATOMICS, GRANULARITY, MEMORY

PACKAGE = Path(__file__).parents[2]
SOURCES = (".py", ".c", ".h", ".txt")
PACKAGE_FILE = "__init__.py"
NO_STACK = ""
# Of the shell, that change what a run comes to.
_SET = *LAUNCH_VARIABLES, MEMORY, GRANULARITY, FINE_ATOMICS, "HSA_XNACK"
_LIBRARIES = "LD_LIBRARY_PATH", "ROCM_PATH"  # where programs find ROCm


@dataclass(frozen=True, slots=True)
class Cell:
    """One run. Plain data: it travels to other processes and machines as JSON."""

    identity: str
    program: str
    arguments: str
    tool: str
    device: str
    stack: str
    """Between the program and the emulator; nothing where the device is no emulator's."""
    repeat: int
    run: Mapping[str, Any]
    """What child.run is given."""
    timeout: float

    @property
    def group(self) -> tuple[str, str, str, str, str]:
        """Of all repeats of the same."""
        return self.program, self.arguments, self.tool, self.device, self.stack


def cells_of(study: Study) -> list[Cell]:
    """All runs; Invalid where a program or a file of a tool is not there."""
    return [
        _cell(study, program, name, tool, device, stack, repeat)
        for repeat in range(study.repeat)
        for program in study.programs
        for name in program.arguments
        for device in study.devices
        for stack in ((NO_STACK,) if device == GPU else study.stacks)
        for tool in study.tools
    ]


def _cell(
    study: Study, program: StudiedProgram, arguments: str, tool: ToolUse, device: str, stack: str, repeat: int
) -> Cell:
    executable = find_program(program, study.folder)
    words = [*program.command[1:], *program.arguments[arguments]]
    run = {
        "command": [executable, *words],
        "folder": str(study.folder),
        "environment": dict(program.environment),
        "tool": tool.tool,
        "options": dict(tool.options),
        "device": None if device == GPU else device,
        "stack": stack or None,
        "level": _level(tool, stack),
    }
    contents = {
        **run,
        "command": [content_of(executable), *(content_of(word, study.folder) for word in words)],
        "folder": None,
        "tool": None if tool.tool is None else tool_content(tool.tool, tool.options),
        "set": {name: os.environ[name] for name in (*COUNTING, *EVERY_TOOL, *_SET) if name in os.environ},
        "libraries": {name: os.environ.get(name) for name in _LIBRARIES} if stack == ROCM else None,
        "repeat": repeat,
        "version": our_content(),
    }
    identity = hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()
    return Cell(identity, program.name, arguments, tool.name, device, stack, repeat, run, study.timeout)


def _level(tool: ToolUse, stack: str) -> str | None:
    """At which the tool stands; Invalid where it cannot."""
    if tool.tool is None:
        return None
    try:
        return chosen_level(tool.level, stack == LUTHIER, load_tool(tool.tool, tool.options))
    except Invalid as error:
        raise Invalid(f"tool {tool.name}: {error.message}") from None


def search_path() -> str:
    """Where programs are found: beside this Python first, so that `luthier` is ours."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def find_program(program: StudiedProgram, folder: Path) -> str:
    name = program.command[0]
    found = shutil.which(str(folder / name) if os.sep in name else name, path=search_path())
    if found is None:
        raise Invalid(f"program {program.name}: there is no program {name}")
    return found


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
    return f"{tool.__qualname__} {_joined(files)}"


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
    return f"{version('luthier-py')} {_joined(sorted(p for p in PACKAGE.rglob('*') if p.suffix in SOURCES))}"


def _joined(paths: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(re.sub(rb"\r\n", b"\n", path.read_bytes()) for path in paths)).hexdigest()
