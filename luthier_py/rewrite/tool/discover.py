"""Finding tools: by entry point, in a Python file, or in a package's folder.

In: a name or path, and options. Out: a Tool. An entry point names a class, or a package each of whose folders is a
tool of the folder's name. Invariant: what cannot be found is Invalid and what fails when it is run is a ToolError, in
one line, whatever the file does.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.abc import Loader
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from luthier_py.base.errors import TOOL_MODULE, Invalid, LuthierError, ToolError, did_you_mean, one_line
from luthier_py.base.records import dataclass
from luthier_py.rewrite.tool.base import Tool
from luthier_py.rewrite.tool.records.amounts import Amounts
from luthier_py.rewrite.tool.several import Several, several

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "luthier_py.tools"


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """``place``: ``module:Class``, or the module that a tool's folder is."""

    name: str
    place: str
    load: Callable[[], type[Tool]]


def registered_tools() -> dict[str, RegisteredTool]:
    """All by name; none is loaded."""
    from importlib.metadata import entry_points  # tools of files need none

    return {tool.name: tool for entry in entry_points(group=GROUP) for tool in _of_entry(entry)}


def tools() -> dict[str, type[Tool]]:
    """All registered tools by name, loaded."""
    return {name: tool.load() for name, tool in registered_tools().items()}


def load_tool(name_or_path: str, options: Mapping[str, Any] | None = None) -> Tool:
    """The tool called so, or the only one of a ``path.py`` or of a package's folder; ``path.py:Class`` chooses among
    several. ``a,b`` is both together, in one copy."""
    kinds = [_find_tool_class(name) for name in names_in(name_or_path)]
    return kinds[0](**(options or {})) if len(kinds) == 1 else several(kinds, options or {})


def amounts_of(names: str) -> Amounts | None:
    """What the registered tool called so declares of its reports, or several tools together; None where one does not.
    """
    registered = registered_tools()
    own = [(name, registered[name].load().amounts if name in registered else None) for name in names.split(",")]
    found = {name: amounts for name, amounts in own if amounts is not None}
    if len(found) < len(own):
        return None
    return found if "," in names else found[names]


def names_in(text: str) -> list[str]:
    """The names or paths of tools that are to run together."""
    names = [text] if Path(text).exists() else text.split(",")
    if len(names) > 1 and not all(names):
        raise Invalid(f"{text}: a comma without a tool's name on each side")
    return names


def _find_tool_class(name_or_path: str) -> type[Tool]:
    place = _place(name_or_path)
    return _find_registered(name_or_path) if place is None else _choose(*place)


def tools_in(name_or_path: str) -> dict[str, type[Tool]]:
    """All tools of a file or folder, or the one called so."""
    place = _place(name_or_path)
    if place is None:
        found = _find_registered(name_or_path)
        return {found.name: found}
    return {tool.__name__: tool for tool in _own(_module(place[0])) if place[1] in ("", tool.__name__)}


def absolute(name_or_path: str) -> str:
    """What finds the same tools from any folder."""
    return ",".join(map(_absolute, names_in(name_or_path)))


def _absolute(name_or_path: str) -> str:
    place = _place(name_or_path)
    if place is None:
        return name_or_path
    path, chosen = place
    return f"{path.absolute()}{os.sep * path.is_dir()}{f':{chosen}' if chosen else ''}"


def _place(text: str) -> tuple[Path, str] | None:
    """A file or folder, and the class that is chosen of it; None for a tool's name."""
    path, _, chosen = text.rpartition(":")
    if text.endswith(".py") or not path or os.sep in chosen:
        path, chosen = text, ""
    return (Path(path), chosen) if path.endswith(".py") or os.sep in path else None


def is_file_tool(module: str) -> bool:
    """Whether a module of that name was made of a file or folder, and belongs to no installed package."""
    return module.startswith(TOOL_MODULE)


def made_tool(given: object) -> Tool:
    """A tool as it is; one that is given by its class, name or path, made with its default options."""
    if isinstance(given, Tool):
        return given
    if isinstance(given, type) and issubclass(given, Tool):
        return given()
    if isinstance(given, (str, os.PathLike)):
        return load_tool(os.fspath(given))
    if isinstance(given, (list, tuple)) and given:
        return Several(*map(made_tool, given))
    raise Invalid(f"{given!r} is no tool; give a Tool, its class, its name, or the path of a .py file with one")


def _find_registered(name: str) -> type[Tool]:
    registered = registered_tools()
    if name in registered:
        return registered[name].load()
    found = [tool for tool in tools().values() if name in tool.aliases]
    if not found:
        file = f", or write {name}.py for the file here" if Path(f"{name}.py").is_file() else ""
        folder = f", or write ./{name} for the folder here" if Path(name).is_dir() else ""
        known = ", ".join(sorted(registered)) or "none is installed"
        paths = f"or give the path of a .py file or folder{file}{folder}"
        near = did_you_mean(name, registered)
        raise Invalid(f"no tool is called {name}{near} {paths.capitalize()}" if near else
                      f"no tool is called {name}; there are: {known}; {paths}")
    return found[0]


def _of_entry(entry: EntryPoint) -> Iterator[RegisteredTool]:
    if ":" in entry.value:
        yield RegisteredTool(entry.name, entry.value, partial(_load_class, entry))
        return
    for module in iter_modules(entry.load().__path__, f"{entry.value}."):
        if module.ispkg:
            yield RegisteredTool(module.name.rpartition(".")[2], module.name, partial(_load_folder, module.name))


def _load_class(entry: EntryPoint) -> type[Tool]:
    loaded = entry.load()
    if isinstance(loaded, type) and issubclass(loaded, Tool):
        return loaded
    raise Invalid(f"{entry.value} is not a Tool")


def _load_folder(name: str) -> type[Tool]:
    """The tool that a package's ``__init__.py`` declares itself."""
    module = import_module(name)
    found = [tool for tool in _own(module) if tool.__module__ == name]
    if len(found) == 1:
        return found[0]
    raise Invalid(f"{module.__file__}: a tool's folder declares one subclass of luthier_py.Tool here, not {len(found)}")


def _choose(path: Path, chosen: str) -> type[Tool]:
    own = _own(_module(path))
    found = [tool for tool in own if not chosen or tool.__name__ == chosen]
    if len(found) == 1:
        return found[0]
    if not own:
        raise Invalid(f"{path}: it declares no tool, which is a subclass of luthier_py.Tool; it has none")
    names = ", ".join(tool.__name__ for tool in own)
    raise Invalid(f"{path}: choose one of its tools with {path}:NAME; it has {names}")


def _own(module: ModuleType) -> list[type[Tool]]:
    """Those that are declared in it, not what it imports of others."""
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Tool)]
    return [tool for tool in dict.fromkeys(classes) if f"{tool.__module__}.".startswith(f"{module.__name__}.")]


def _module(path: Path) -> ModuleType:
    """Run the file, or the package's ``__init__.py``. A file finds its neighbours, behind all that is installed."""
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file():
        raise Invalid(f"{path}: no such tool file" if file == path else f"{path}: a tool's folder has an __init__.py")
    name = f"{TOOL_MODULE}{path.absolute().stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise Invalid(f"{path}: a tool file must end in .py")
    neighbours = str(file.resolve().parent)
    if file == path and neighbours not in sys.path:
        sys.path.append(neighbours)
    for part in [part for part in sys.modules if part.startswith(f"{name}.")]:
        del sys.modules[part]
    sys.modules[name] = importlib.util.module_from_spec(spec)
    _run(spec.loader, sys.modules[name], file)
    return sys.modules[name]


def _run(loader: Loader, module: ModuleType, file: Path) -> None:
    try:
        loader.exec_module(module)
    except LuthierError:
        raise
    except SyntaxError as error:
        raise ToolError(f"{error.filename or file}:{error.lineno or 1}: {error.msg}") from error
    except ImportError as error:
        raise ToolError(f"{_line(error, file)}: {error}") from error
    except SystemExit as stop:
        raise ToolError(f"{file}: it calls sys.exit({stop.code!r}) when it is imported; a tool only declares") from stop
    except Exception as error:
        raise ToolError(f"{file}: {one_line(error)}") from error


def _line(error: ImportError, file: Path) -> str:
    """The line that imports, in the file or in a neighbour; the machinery of imports itself is of no interest."""
    every = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in every if not frame.filename.startswith("<") and frame.filename != __file__]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(file)
