"""At which level a tool stands under a program: before HIP's functions, or below them, before HSA's.

In: a level's name. Out: the environment that loads the tool's library there, or the library for a tool. Invariant: of a
program that both would see, one of them takes the launches, and the other is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from luthier_py.errors import Invalid
from luthier_py.runtime.hip import tool_library
from luthier_py.runtime.hsa import hsa_tool_library

LEVEL = "LUTHIER_LEVEL"
PRELOADED, HSA_TOOLS = "LD_PRELOAD", "HSA_TOOLS_LIB"
AUTO = "auto"
_LIBRARIES: Mapping[str, tuple[str, Callable[..., Path]]] = {
    "hip": (PRELOADED, tool_library),
    "hsa": (HSA_TOOLS, hsa_tool_library),
}
LEVELS = (AUTO, *_LIBRARIES)


def level_environment(level: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What loads the tool's libraries; lists of ``environment`` are kept behind them."""
    if level not in LEVELS:
        raise Invalid(f"level {level} is unknown; give {', '.join(LEVELS)}")
    chosen = tuple(_LIBRARIES) if level == AUTO else (level,)
    settings = {LEVEL: level}
    for name in chosen:
        variable, library = _level(name)
        others = environment.get(variable)
        settings[variable] = f"{library()} {others}" if others else str(library())
    return settings


def level_library(level: str, tool: str, options: str) -> Path:
    """With this tool in it."""
    return _level(level)[1](tool, options)


def loading(level: str, library: Path) -> str:
    """The setting with which a program loads it."""
    return f"{_level(level)[0]}={library}"


def _level(level: str) -> tuple[str, Callable[..., Path]]:
    if level not in _LIBRARIES:
        raise Invalid(f"level {level} is unknown; give {' or '.join(_LIBRARIES)}")
    return _LIBRARIES[level]
