"""Source of device code: a Python function as a syntax tree with places, and the names around it.

In: a function. Out: Source, parsed once. Invariant: whatever is refused is a HookError that begins with file:line.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from luthier_py.errors import HookError
from luthier_py.tool.hook import namespace

MISSING = object()
BUILTINS = {"abs": abs, "min": min, "max": max, "range": range}


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One function. Line numbers of ``tree`` count from ``first_line``."""

    function: FunctionType
    file: str
    first_line: int
    tree: ast.FunctionDef
    local_names: frozenset[str]   # parameters and whatever is assigned in the body

    @property
    def name(self) -> str:
        return self.function.__name__

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        line = self.first_line + getattr(node, "lineno", 1) - 1
        raise HookError(f"{self.file}:{line}: {self.name}: {message}")

    def constant(self, node: ast.expr) -> Any:
        """What a name or attribute chain outside of the function stands for now, or MISSING."""
        if isinstance(node, ast.Name) and node.id not in self.local_names:
            return {**BUILTINS, **namespace(self.function)}.get(node.id, MISSING)
        if isinstance(node, ast.Attribute):
            owner = self.constant(node.value)
            if isinstance(owner, (ModuleType, type)):
                return getattr(owner, node.attr, MISSING)
        return MISSING


@cache
def source_of(function: FunctionType) -> Source:
    """The parsed source of a function; HookError when there is none."""
    file, line = function.__code__.co_filename, function.__code__.co_firstlineno
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, SyntaxError, IndexError) as error:
        message = f"{function.__name__}: its source cannot be read; device code must be a def in a .py file"
        raise HookError(f"{file}:{line}: {message}") from error
    if not isinstance(tree, ast.FunctionDef):
        raise HookError(f"{file}:{line}: {function.__name__}: device code must be a plain def")
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    parameters = {argument.arg for argument in tree.args.args}
    return Source(function, file, max(first, 1), tree, frozenset(stored | parameters))
