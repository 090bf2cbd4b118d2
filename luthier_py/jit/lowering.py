"""What an intrinsic sees of the compiler of device code.

In: whoever compiles a function, and the call. Out: an implementation of `tool.Ir`. Invariant: what an intrinsic writes
goes where the call stands, and what it refuses has the call's file and line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

from luthier_py.jit import arithmetic
from luthier_py.jit.builder import Builder, llvm, mangled
from luthier_py.tool.hook import Device
from luthier_py.tool.intrinsic import Operand, Value
from luthier_py.tool.types import Scalar, Type


class Compiler(Protocol):
    """Whoever compiles a function."""

    ir: Builder

    @property
    def wave_size(self) -> int: ...

    def inline(self, node: ast.Call, function: Device, args: Sequence[Operand]) -> tuple[Value, ...]:
        """Compile a call of a device function in place."""

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        """HookError with the node's file and line."""


class Lowering:
    """What an intrinsic sees of the compiler (implements tool.Ir)."""

    def __init__(self, compiler: Compiler, node: Any) -> None:
        self._compiler, self._node, self._ir = compiler, node, compiler.ir
        self.wave_size = compiler.wave_size

    def value(self, operand: Operand, type: Type) -> Value:
        return arithmetic.implicit(self._ir, operand, type)

    def typed(self, operand: Operand) -> Value:
        return arithmetic.typed(operand)

    def integer(self, operand: Operand) -> Value:
        value = arithmetic.typed(operand)
        if not (isinstance(value.type, Scalar) and value.type.is_integer):
            raise ValueError(f"an integer is needed here, not {value.type}")
        return value

    def convert(self, operand: Operand, type: Type) -> Value:
        return arithmetic.explicit(self._ir, operand, type)

    def condition(self, operand: Operand) -> Value:
        return arithmetic.truth(self._ir, operand)

    def emit(self, type: Type, instruction: str) -> Value:
        return self._ir.emit(type, instruction, lane=False)

    def raw(self, instruction: str) -> str:
        return self._ir.raw(instruction)

    def call(self, function: str, result: Type, *args: Value) -> Value:
        return self._ir.call(function, result, args, lane=False)

    def effect(self, function: str, *args: Value) -> None:
        self._ir.effect(function, args)

    def line(self, instruction: str) -> None:
        self._ir.line(instruction)

    def inline(self, function: Device | Callable[..., Any], *args: Operand) -> tuple[Value, ...]:
        assert isinstance(function, Device)  # to type checkers it is the function that was marked
        return self._compiler.inline(self._node, function, args)

    @contextmanager
    def where(self, condition: Value) -> Iterator[None]:
        inside, behind = self._ir.new_block("where"), self._ir.new_block("behind")
        self._ir.branch(condition, inside, behind)
        self._ir.start(inside)
        yield
        self._ir.jump(behind)
        self._ir.start(behind)

    def llvm(self, type: Type) -> str:
        return llvm(type)

    def mangled(self, type: Type) -> str:
        return mangled(type)

    def refuse(self, message: str) -> NoReturn:
        self._compiler.refuse(self._node, message)
