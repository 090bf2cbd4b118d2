"""Hooks that a tool writes itself: a syntax tree in the place of a Python function.

In: a tree of device Python, and what its names stand for. Out: a Hook, compiled as any other (rewrite/jit). Invariant:
nothing is executed to make one; what the tree may not say is refused as in a function, with the place given for it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from luthier_py.base.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A function without Python's; compared by identity. ``place``: ``file:line``, for messages."""

    name: str
    tree: ast.FunctionDef
    around: Mapping[str, Any]
    place: str


def build_function(
    name: str, parameters: Sequence[str], body: Sequence[ast.stmt], around: Mapping[str, Any], place: str
) -> Written:
    """The function of these statements; ``around``: what the names in them stand for that it does not assign."""
    arguments = ast.arguments([], [ast.arg(each) for each in parameters], None, [], [], None, [])
    tree = ast.FunctionDef(name, arguments, list(body), [])
    return Written(name, ast.fix_missing_locations(tree), around, place)
