"""Calls of functions that are bitcode, from IR that is being written.

In: a Native with its signature, values for its parameters. Out: values of its results. Invariant: memory behind
generic pointers that it gets is global memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from luthier_py.isa import Space
from luthier_py.rewrite.jit.python.builder import GLOBAL, PRIVATE, Builder, llvm
from luthier_py.rewrite.jit.python.source import Source
from luthier_py.rewrite.tool.cpp.native import Native
from luthier_py.rewrite.tool.hooks.hook import Parameter, Signature
from luthier_py.rewrite.tool.hooks.intrinsic import Value
from luthier_py.rewrite.tool.hooks.types import BOOL, Pointer, Type

_GENERIC = "ptr"


def check_callable(native: Native, caller: Source) -> None:
    """Refuse what only hooks of its own source may call."""
    if (native.captures or native.tables) and native is not caller.function:
        what = "names variables or tables of its own source, which is for hooks of that source"
        caller.refuse(caller.tree, f"{native.name} {what}; give it their addresses as arguments")


def native_call(ir: Builder, native: Native, signature: Signature, values: Sequence[Value]) -> tuple[Value, ...]:
    """Results may differ between lanes where they are declared so."""
    ir.natives.add(native)
    ir.loads = True
    given = ", ".join(f"{type} {_lower_argument(ir, value, type)}" for type,
                      value in zip(native.takes, values, strict=True))
    call = f'call {native.gives} @"{native.symbol}"({given})'
    if not signature.results:
        if native.gives == "void":
            ir.line(call)
        else:
            ir.raw(call)
        return ()
    found = ir.raw(call)
    (first, *_) = signature.results
    if not native.offsets and native.gives in (llvm(first.type), _GENERIC):
        return (_lower_result(ir, found, native.gives, first),)
    memory = ir.raw_alloca(native.gives)
    ir.line(f"store {native.gives} {found}, ptr {PRIVATE} {memory}")
    members = zip(native.offsets or (0,), signature.results, strict=True)
    return tuple(_member(ir, memory, offset, result) for offset, result in members)


def _lower_argument(ir: Builder, value: Value, type: str) -> str:
    if isinstance(value.type, Pointer) and type == _GENERIC:
        return ir.raw(f"addrspacecast ptr {GLOBAL} {value.text} to ptr")
    return value.text


def _lower_result(ir: Builder, text: str, given: str, result: Parameter) -> Value:
    if isinstance(result.type, Pointer) and given == _GENERIC:
        text = ir.raw(f"addrspacecast ptr {text} to ptr {GLOBAL}")
    return Value(result.type, text, result.lane)


def _member(ir: Builder, memory: str, offset: int, result: Parameter) -> Value:
    where = ir.raw(f"getelementptr i8, ptr {PRIVATE} {memory}, i32 {offset}")
    type = _in_memory(result.type)
    text = ir.raw(f"load {type}, ptr {PRIVATE} {where}")
    if result.type == BOOL:
        text = ir.raw(f"trunc i8 {text} to i1")
    return _lower_result(ir, text, type, result)


def _in_memory(type: Type) -> str:
    far = isinstance(type, Pointer) and type.space is Space.GLOBAL
    return _GENERIC if far else "i8" if type == BOOL else llvm(type)
