"""What the repository's text says of itself: files, modules, what they import, and circles.

In: the text; nothing is imported. Out: names and paths. Invariant: what a file imports is
read once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "luthier_py"
BUILT_INS = {"intrinsics": "intrinsics", "samples": "tests/data", "tools": "tools"}


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def product() -> list[Path]:
    """Everything that is installed."""
    return sources("luthier_py", *BUILT_INS.values())


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def package_of(path: Path) -> tuple[str, ...]:
    """The package that a file belongs to when it is installed."""
    for name, folder in BUILT_INS.items():
        if path.is_relative_to(ROOT / folder):
            return ("luthier_py", name, *path.relative_to(ROOT / folder).parent.parts)
    return path.relative_to(ROOT).parent.parts


def house_of(path: Path) -> str:
    """Folder directly below luthier_py; "" for luthier_py/__init__.py and __main__.py."""
    first = path.relative_to(PACKAGE).parts[0]
    return "" if first in ("__init__.py", "__main__.py") else first


def room_of(path: Path) -> str:
    """Folder or module directly below a house; "" for the house's own __init__.py."""
    second = path.relative_to(PACKAGE).parts[1].removesuffix(".py")
    return "" if second == "__init__" else second


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Dotted names that a file imports, wherever the statement stands; relative ones resolved."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    package = package_of(path)
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def constant(name: str, of: str) -> list[str]:
    """A tuple of words that a module defines."""
    for node in ast.parse((ROOT / name).read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == of:
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"{name} defines no {of}")


def module_of(path: Path) -> str:
    """Dotted name under which a file is imported."""
    return ".".join((*package_of(path), *([] if path.stem == "__init__" else [path.stem])))


def circles(uses: dict[str, set[str]]) -> list[list[str]]:
    """Groups of two or more in which each reaches each other (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(uses[name]):
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            group = stack[stack.index(name):]
            del stack[stack.index(name):]
            found.append(sorted(group))

    for name in sorted(uses):
        if name not in index:
            visit(name)
    return [group for group in found if len(group) > 1]


def reached(starts: list[str], without: set[str]) -> set[str]:
    """Modules that these import, directly or through others, whose own imports are followed but for ``without``."""
    paths = {module_of(path): path for path in product()}
    found, left = set(), list(starts)
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            names = imports(paths[module]) if module not in without else ()
            left += {name if name in paths else name.rpartition(".")[0] for name in names} & paths.keys()
    return found


def modules_below(folder: str) -> list[str]:
    return [module_of(path) for path in sources(folder)]
