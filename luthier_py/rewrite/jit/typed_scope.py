"""What compiling of expressions rests on: places for errors, types by annotations, and what may differ between lanes.

In: a function's scope. Out: types, and errors with their place. Invariant: what an author wrote is refused with its
line, never by an error of Python's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from luthier_py.base.errors import HookError
from luthier_py.isa import InstructionSet
from luthier_py.rewrite.jit.python import arithmetic
from luthier_py.rewrite.jit.python.builder import Builder
from luthier_py.rewrite.jit.python.scope import Differs, Scope
from luthier_py.rewrite.tool.hooks.hook import Parameter
from luthier_py.rewrite.tool.hooks.intrinsic import Operand, Value
from luthier_py.rewrite.tool.hooks.types import LaneType, Type, device_type


class TypedScope:
    """What is known while the function in ``scope`` is compiled."""

    def __init__(self, ir: Builder, scope: Scope, differs: Differs, isa: InstructionSet, single_lane: bool) -> None:
        self.ir, self.scope, self.differs = ir, scope, differs
        self.isa, self.single_lane = isa, single_lane

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        """HookError, with the place in the source."""
        self.scope.source.refuse(node, message)

    @property
    def wave_size(self) -> int:
        """Lanes of a wave, active or not."""
        return self.isa.wave_size

    @contextmanager
    def at(self, node: ast.AST) -> Iterator[None]:
        """Rules of arithmetic speak ValueError; here they get their place."""
        try:
            yield
        except ValueError as error:
            self.refuse(node, str(error))

    def lane(self, differs: bool) -> bool:
        """A single lane cannot differ from itself."""
        return differs and not self.single_lane

    def convert_for_parameter(self, node: ast.AST, what: str, parameter: Parameter, operand: Operand) -> Value:
        """``operand`` for a parameter or result of a function; what differs between lanes needs Lane[...]."""
        with self.at(node):
            value = arithmetic.implicit(self.ir, operand, parameter.type)
        if value.lane and not parameter.lane:
            self.refuse(node, f"{what} differs between lanes, but is declared one for the wave; "
                              f"declare it Lane[{parameter.type}], or take one lane's value with read_first_lane")
        return value

    def type_of(self, node: ast.expr) -> Type | None:
        """The type that an expression names, if it does: ``u32``, ``ptr[u32]``; of ``Lane[u32]`` that of each lane."""
        found = self.resolve_annotation(node)
        return found.of if isinstance(found, LaneType) else found

    def resolve_annotation(self, node: ast.expr) -> Type | LaneType | None:
        """The same, with ``Lane``."""
        if isinstance(node, ast.Subscript):
            outer, inner = self.scope.source.constant(node.value), self.type_of(node.slice)
            if inner is None or not hasattr(outer, "__class_getitem__"):
                return None
            try:
                found = outer[inner]
            except HookError as error:
                self.refuse(node, error.message.partition(": ")[2])
        else:
            found = self.scope.source.constant(node)
        if isinstance(found, LaneType):
            return found
        with self.at(node):
            return device_type(found)
