"""The runs that a study asks for, each with a name that says all it depends on.

In: a Study. Out: Cells, repeat by repeat, so that what is compared runs close together. Invariant: two cells have one
identity exactly if they run the same: contents of files count, not their names, nor labels.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.features.settings.contents import content_of, our_content, tool_content
from luthier_py.features.settings.levels import choose_level
from luthier_py.features.settings.program import search_folders
from luthier_py.features.settings.stack import ROCM, has_our_runtime, release_of
from luthier_py.features.study.spec import GPU, StudiedProgram, Study, ToolUse
from luthier_py.host.worker.device.launch_settings import LAUNCH_VARIABLES
from luthier_py.host.worker.device.settings import FINE_ATOMICS, GRANULARITY, MEMORY
from luthier_py.rewrite.tool import load_tool
from luthier_py.rewrite.tool.chosen.selection import COUNTING, EVERY_TOOL

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
    """Of a campaign, the part."""
    run: Mapping[str, Any]
    """What child.run is given."""
    timeout: float

    @property
    def group(self) -> tuple[str, str, str, str, str]:
        """What all repeats have in common."""
        return self.program, self.arguments, self.tool, self.device, self.stack


def cells_of(study: Study) -> list[Cell]:
    """All runs; Invalid where a program or a file of a tool is not there."""
    return [
        _cell(study, program, name, tool, device, stack, repeat)
        for repeat in range(max([study.repeat, *(len(tool.parts) for tool in study.tools)]))
        for program in study.programs
        for name in program.arguments
        for device in study.devices
        for stack in ((NO_STACK,) if device == GPU else study.stacks)
        for tool in study.tools
        if repeat < (len(tool.parts) or study.repeat)
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
        "faults": tool.parts[repeat] if tool.parts else None,
    }
    contents = {
        **run,
        "command": [content_of(executable), *(content_of(word, study.folder) for word in words)],
        "folder": None,
        "tool": None if tool.tool is None else tool_content(tool.tool, tool.options),
        "set": {name: os.environ[name] for name in (*COUNTING, *EVERY_TOOL, *_SET) if name in os.environ},
        "libraries": _libraries(stack, Path(executable)),
        "repeat": repeat,
        "version": our_content(),
    }
    identity = hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()
    return Cell(identity, program.name, arguments, tool.name, device, stack, repeat, run, study.timeout)


def _libraries(stack: str, program: Path) -> Mapping[str, str | None] | None:
    """What of ROCm is below a program: where libraries are, and versions of packages that were fetched."""
    release = release_of(stack, search_folders(program))
    if release is None and stack != ROCM:
        return None
    return {name: os.environ.get(name) for name in _LIBRARIES} | (release.versions if release is not None else {})


def _level(tool: ToolUse, stack: str) -> str | None:
    """The level at which the tool intercepts; Invalid where it cannot."""
    if tool.tool is None or tool.parts:
        return None
    try:
        return choose_level(tool.level, has_our_runtime(stack), load_tool(tool.tool, tool.options))
    except Invalid as error:
        raise Invalid(f"tool {tool.name}: {error.message}") from None


def search_path() -> str:
    """Where programs are found: beside this Python first, so that `luthier` is ours."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def find_program(program: StudiedProgram, folder: Path) -> str:
    """Its path: below ``folder``, the study's, where the command has a slash, otherwise by `search_path`. Invalid where
    there is none."""
    name = program.command[0]
    found = shutil.which(str(folder / name) if os.sep in name else name, path=search_path())
    if found is None:
        raise Invalid(f"program {program.name}: there is no program {name}")
    return found
