"""Finding tools: by entry point name, or in a Python file.

In: a name or path, and options. Out: a Tool. Invariant: what cannot be found or made is Invalid, in one line.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from luthier_py.errors import Invalid
from luthier_py.tool.base import Tool

GROUP = "luthier_py.tools"


def tools() -> dict[str, type[Tool]]:
    """All registered tools by name."""
    return {entry.name: _checked(entry.load(), entry.value) for entry in entry_points(group=GROUP)}


def load_tool(name_or_path: str, options: Mapping[str, Any] | None = None) -> Tool:
    """The tool called so, or the only Tool in ``path.py``; ``path.py:Class`` chooses among several."""
    path, _, chosen = name_or_path.partition(".py:")
    if chosen or name_or_path.endswith(".py") or os.sep in name_or_path:
        found = _in_file(Path(path + ".py" if chosen else name_or_path), chosen)
    else:
        found = _registered(name_or_path)
    return found(**(options or {}))


def made_tool(given: object) -> Tool:
    """A tool as it is; one that is given by its class, name or path, made with its default options."""
    if isinstance(given, Tool):
        return given
    if isinstance(given, type) and issubclass(given, Tool):
        return given()
    if isinstance(given, (str, os.PathLike)):
        return load_tool(os.fspath(given))
    raise Invalid(f"{given!r} is no tool; give a Tool, its class, its name, or the path of a .py file with one")


def _registered(name: str) -> type[Tool]:
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name in entries:
        return _checked(entries[name].load(), entries[name].value)
    found = [tool for tool in tools().values() if name in tool.aliases]
    if not found:
        known = ", ".join(sorted(entries)) or "none is installed"
        raise Invalid(f"no tool is called {name}; there are: {known}; or give the path of a .py file")
    return found[0]


def _checked(loaded: object, source: str) -> type[Tool]:
    if isinstance(loaded, type) and issubclass(loaded, Tool):
        return loaded
    raise Invalid(f"{source} is not a Tool")


def _in_file(path: Path, chosen: str) -> type[Tool]:
    module = _module(path)
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Tool)]
    own = [tool for tool in classes if tool.__module__ == module.__name__]
    found = [tool for tool in own if not chosen or tool.__name__ == chosen]
    if len(found) == 1:
        return found[0]
    names = ", ".join(tool.__name__ for tool in own) or "none"
    raise Invalid(f"{path}: choose one of its tools with {path}:NAME; it has {names}")


def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise Invalid(f"{path}: no such tool file")
    name = f"luthier_tool_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Invalid(f"{path}: a tool file must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise Invalid(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except ImportError as error:
        raise Invalid(f"{path}: {error}") from error
    return module
