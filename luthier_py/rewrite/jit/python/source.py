"""Source of device code: a Python function as a syntax tree with places, and the names around it.

In: a function. Out: Source, parsed once. Invariant: whatever is refused is a HookError that begins with file:line.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from luthier_py.base.errors import HookError
from luthier_py.base.records import dataclass
from luthier_py.rewrite.jit.python.mathematics import member
from luthier_py.rewrite.tool.cpp.hip import Hooks
from luthier_py.rewrite.tool.cpp.native import Native
from luthier_py.rewrite.tool.hooks.generated import Written
from luthier_py.rewrite.tool.hooks.hook import name_of, namespace

MISSING = object()
_NOTHING = ast.parse("def nothing(): pass").body[0]
BUILTINS = {"abs": abs, "len": len, "min": min, "max": max, "print": print, "range": range}


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One function. Line numbers of ``tree`` count from ``first_line``."""

    function: FunctionType | Native | Written
    file: str
    first_line: int
    tree: ast.FunctionDef
    local_names: frozenset[str]   # parameters and whatever is assigned in the body

    @property
    def name(self) -> str:
        """The function's own name, for messages."""
        return name_of(self.function)

    def around(self) -> dict[str, Any]:
        """Names that the function sees around it."""
        if isinstance(self.function, Written):
            return dict(self.function.around)
        return namespace(self.function) if isinstance(self.function, FunctionType) else {}

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        """HookError at the node: ``file:line: function: message``."""
        line = self.first_line + getattr(node, "lineno", 1) - 1
        raise HookError(f"{self.file}:{line}: {self.name}: {message}")

    def constant(self, node: ast.expr) -> Any:
        """The present value of a name or attribute chain outside of the function, or MISSING."""
        if isinstance(node, ast.Name) and node.id not in self.local_names:
            return {**BUILTINS, **self.around()}.get(node.id, MISSING)
        if isinstance(node, ast.Attribute):
            owner = self.constant(node.value)
            if isinstance(owner, ModuleType):
                return member(owner, node.attr, MISSING)
            if isinstance(owner, (type, Hooks)):
                return getattr(owner, node.attr, MISSING)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner, name = self.constant(node.value), node.slice.value
            if isinstance(owner, Hooks) and isinstance(name, str):
                return owner[name]
        return MISSING


@cache
def source_of(function: FunctionType | Native | Written) -> Source:
    """The parsed source of a function; HookError when there is none. Nothing of one that is bitcode."""
    if isinstance(function, Written):
        place, _, number = function.place.rpartition(":")
        return Source(function, place, int(number), function.tree, _locals(function.tree))
    if isinstance(function, Native):
        place, _, number = function.place.rpartition(":")
        assert isinstance(_NOTHING, ast.FunctionDef)
        return Source(function, place, int(number), _NOTHING, frozenset())
    file, line = function.__code__.co_filename, function.__code__.co_firstlineno
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, SyntaxError, IndexError) as error:
        message = f"{function.__name__}: its source cannot be read; device code must be a def in a .py file"
        raise HookError(f"{file}:{line}: {message}") from error
    if not isinstance(tree, ast.FunctionDef):
        raise HookError(f"{file}:{line}: {function.__name__}: device code must be a plain def")
    return Source(function, file, max(first, 1), tree, _locals(tree))


def _locals(tree: ast.FunctionDef) -> frozenset[str]:
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return frozenset(stored | {argument.arg for argument in tree.args.args})
