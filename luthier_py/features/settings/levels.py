"""At which level a tool intercepts a program's calls: before HIP's functions, or below them, before HSA's.

In: a level's name. Out: the environment that loads the tool's library there, or the library for a tool. Invariant: of a
program that both would see, one of them takes the launches, and the other is silent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid

if TYPE_CHECKING:
    from luthier_py.rewrite.tool import Tool

LEVEL = "LUTHIER_LEVEL"
PRELOADED, HSA_TOOLS = "LD_PRELOAD", "HSA_TOOLS_LIB"
AUTO, HIP, HSA = "auto", "hip", "hsa"
_VARIABLES = {HIP: PRELOADED, HSA: HSA_TOOLS}
LEVELS = (AUTO, *_VARIABLES)


def choose_level(level: str | None, ours: bool, tool: Tool | None) -> str:
    """``level``, or what LUTHIER_LEVEL says, or auto: that is HSA where the tool is to see kernels that only HSA has.
    ``ours``: the program has the emulator's HIP runtime below it, which has no HSA."""
    chosen = level or os.environ.get(LEVEL) or AUTO
    if chosen not in LEVELS:
        raise Invalid(f"level {chosen} is unknown; give {', '.join(LEVELS)}, by --level or {LEVEL}")
    if tool is None:
        if level is not None:
            raise Invalid(f"level {level}: there is no tool that could stand there; give one with -t")
        return chosen
    if tool.selection.within:
        if chosen == HSA:
            raise Invalid(f"level {HSA}: roctx ranges are only seen at level {HIP}")
        return HIP
    if ours and chosen == HSA:
        raise Invalid(f"level {HSA}: the emulator's HIP runtime has no HSA below it; --stack rocm has")
    if tool.selection.own_kernels and not ours:
        if chosen == HIP:
            raise Invalid(f"level {HIP}: the HIP runtime's own kernels are only seen at level {HSA}")
        return HSA
    return chosen


def level_environment(level: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that load the tool's libraries, in front of lists that ``environment`` has."""
    if level not in LEVELS:
        raise Invalid(f"level {level} is unknown; give {', '.join(LEVELS)}")
    settings = {LEVEL: level}
    for name in _VARIABLES if level == AUTO else (level,):
        variable, library = _VARIABLES[name], level_library(name)
        others = environment.get(variable)
        settings[variable] = f"{library} {others}" if others else str(library)
    return settings


def level_library(level: str, tool: str | None = None, options: str = "") -> Path:
    """The library with this tool in it, or for the one that the environment names."""
    check_level(level)
    if level == HSA:
        from luthier_py.host.hsa import hsa_tool_library

        return hsa_tool_library(tool, options)
    from luthier_py.host.preload import tool_library

    return tool_library(tool, options)


def make_load_setting(level: str, library: Path) -> str:
    """The setting with which a program loads it."""
    check_level(level)
    return f"{_VARIABLES[level]}={library}"


def check_level(level: str) -> None:
    """Invalid if no library intercepts there."""
    if level not in _VARIABLES:
        raise Invalid(f"level {level} is unknown; give {' or '.join(_VARIABLES)}")
