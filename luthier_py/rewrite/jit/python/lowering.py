"""What an intrinsic sees of the compiler of device code.

In: the compiler of a function, and the call. Out: an implementation of `tool.Ir`. Invariant: what an intrinsic writes
is placed at the call, and what it refuses has the call's file and line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

from luthier_py.rewrite.jit.python import arithmetic
from luthier_py.rewrite.jit.python.builder import Builder, llvm, mangle_type
from luthier_py.rewrite.tool.hooks.hook import Device
from luthier_py.rewrite.tool.hooks.intrinsic import Operand, Value
from luthier_py.rewrite.tool.hooks.types import Scalar, Type


class Compiler(Protocol):
    """The compiler of a function."""

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
        """``operand`` as ``type``; ValueError where that could lose something, of which the compiler makes a
        HookError."""
        return arithmetic.implicit(self._ir, operand, type)

    def typed(self, operand: Operand) -> Value:
        """``operand`` with the type that it has, or that a literal takes where it meets nothing; writes no code."""
        return arithmetic.materialise(operand)

    def integer(self, operand: Operand) -> Value:
        """``operand`` if it is an integer, else ValueError."""
        value = arithmetic.materialise(operand)
        if not (isinstance(value.type, Scalar) and value.type.is_integer):
            raise ValueError(f"an integer is needed here, not {value.type}")
        return value

    def convert(self, operand: Operand, type: Type) -> Value:
        """``operand`` turned into ``type``; ValueError where there is no such conversion."""
        return arithmetic.explicit(self._ir, operand, type)

    def condition(self, operand: Operand) -> Value:
        """``operand`` as bool_; ValueError where it is no number."""
        return arithmetic.truth(self._ir, operand)

    def emit(self, type: Type, instruction: str) -> Value:
        """The result of an LLVM instruction. Its ``lane`` is False: Effects say whether lanes may differ in what the
        intrinsic yields."""
        return self._ir.emit(type, instruction, lane=False)

    def raw(self, instruction: str) -> str:
        """The name that LLVM's text has for an instruction's result: %t and a number."""
        return self._ir.raw(instruction)

    def call(self, function: str, result: Type, *args: Value) -> Value:
        """The result of an LLVM function, which is declared with the types of ``args``; ``lane`` is False, as for
        `emit`."""
        return self._ir.call(function, result, args, lane=False)

    def effect(self, function: str, *args: Value) -> None:
        """Call an LLVM function without a result, which is declared with the types of ``args``."""
        self._ir.effect(function, args)

    def line(self, instruction: str) -> None:
        """Write an LLVM instruction without a result, unchanged."""
        self._ir.line(instruction)

    def inline(self, function: Device | Callable[..., Any], *args: Operand) -> tuple[Value, ...]:
        """Results of a device function, compiled in place; arguments are checked as in a call, with this call's
        line."""
        assert isinstance(function, Device)  # to type checkers it is the function that was marked
        return self._compiler.inline(self._node, function, args)

    @contextmanager
    def where(self, condition: Value) -> Iterator[None]:
        """A branch around what is written inside; no value that is made there may be used behind it."""
        inside, behind = self._ir.new_block("where"), self._ir.new_block("behind")
        self._ir.branch(condition, inside, behind)
        self._ir.start(inside)
        yield
        self._ir.jump(behind)
        self._ir.start(behind)

    def llvm(self, type: Type) -> str:
        """LLVM's name of a type, as the builder writes it."""
        return llvm(type)

    def mangled(self, type: Type) -> str:
        """A type as the names of LLVM's overloaded intrinsics end with it."""
        return mangle_type(type)

    def refuse(self, message: str) -> NoReturn:
        """HookError with the file and line of the intrinsic's call."""
        self._compiler.refuse(self._node, message)
