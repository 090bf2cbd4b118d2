"""Device functions in Python that call themselves: functions of their own in LLVM's text, which `recursion` changes.

In: a Device with a depth, and calls of it. Out: calls in the text of the caller, and its own text. Invariant:
lanes may be at different levels, so whatever a level is given differs between lanes, or is the same at each level.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from luthier_py.base.records import replace
from luthier_py.rewrite.jit.python.builder import Builder, llvm
from luthier_py.rewrite.jit.python.scope import Context, Scope
from luthier_py.rewrite.jit.python.source import Source, source_of
from luthier_py.rewrite.tool.cpp.device_ir import Depth
from luthier_py.rewrite.tool.hooks.hook import Device
from luthier_py.rewrite.tool.hooks.intrinsic import Value
from luthier_py.rewrite.tool.hooks.types import Struct

PRINTED = "%printed"


def level_call(ir: Builder, shared: Context, function: Device, values: Sequence[Value]) -> tuple[Value, ...]:
    """The results of a call, each lane's own."""
    results = function.signature.results
    given = [f"{llvm(value.type)} {value.text}" for value in values]
    given += [] if shared.printing is None else [f"{llvm(shared.printing.type)} {shared.printing.text}"]
    text = f"call {gives(function)} @{shared.levelled.names[function]}({', '.join(given)})"
    if not results:
        ir.line(text)
        return ()
    found = ir.raw(text)
    if len(results) == 1:
        return (Value(results[0].type, found, lane=True),)
    return tuple(ir.emit(result.type, f"extractvalue {gives(function)} {found}, {at}", lane=True)
                 for at, result in enumerate(results))


def compile_once(shared: Context, function: Device, run: Callable[[Context, Scope, Sequence[Value]], None]) -> None:
    """The function's text, if it is not there; ``run`` writes the body of a scope."""
    levelled, source = shared.levelled, source_of(function.function)
    if function in levelled.names:
        return
    assert function.depth is not None
    name = levelled.names[function] = f"level.{len(levelled.names)}.{function.name}"
    check(function, source)
    ir, parameters = Builder(), function.signature.parameters
    ir.declarations, ir.natives = shared.ir.declarations, shared.ir.natives
    done = ir.new_block("end")
    slots = tuple(ir.alloca(result.type) for result in function.signature.results)
    printing = None if shared.printing is None else replace(shared.printing, text=PRINTED)
    own = replace(shared, ir=ir, printing=printing)
    scope = Scope(source, function.signature, next(shared.numbers), 0, done, slots)
    run(own, scope, [Value(each.type, f"%argument.{at}", each.lane) for at, each in enumerate(parameters)])
    ir.start(done)
    _finish(ir, function, slots)
    given = [f"{llvm(each.type)} %argument.{at}" for at, each in enumerate(parameters)]
    given += [] if printing is None else [f"{llvm(printing.type)} {PRINTED}"]
    levelled.texts[name] = f"define internal {gives(function)} @{name}({', '.join(given)}) alwaysinline #0 " \
        f"{{\n{ir.body()}\n}}"
    levelled.depths[name] = Depth(function.depth, source.first_line)
    shared.ir.loads = shared.ir.loads or ir.loads


def gives(function: Device) -> str:
    """LLVM's type of what it returns."""
    types = [llvm(result.type) for result in function.signature.results]
    return "void" if not types else types[0] if len(types) == 1 else "{ " + ", ".join(types) + " }"


def _finish(ir: Builder, function: Device, slots: Sequence[str]) -> None:
    values = [ir.get(slot, result.type, lane=True)
              for slot, result in zip(slots, function.signature.results, strict=True)]
    if not values:
        ir.finish("ret void")
    elif len(values) == 1:
        ir.finish(f"ret {llvm(values[0].type)} {values[0].text}")
    else:
        text = "poison"
        for at, value in enumerate(values):
            text = ir.raw(f"insertvalue {gives(function)} {text}, {llvm(value.type)} {value.text}, {at}")
        ir.finish(f"ret {gives(function)} {text}")


def check(function: Device, source: Source) -> None:
    """What is one for the wave must be the same at each level."""
    stored = {node.id for node in ast.walk(source.tree)
              if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)
             and source.constant(node.func) is function]
    for at, parameter in enumerate(function.signature.parameters):
        same = parameter.name not in stored and all(
            at < len(node.args) and isinstance(given := node.args[at], ast.Name) and given.id == parameter.name
            for node in calls)
        if not parameter.lane and not same:
            source.refuse(source.tree, f"{parameter} may be another one at each level, and lanes differ in theirs; "
                                       f"declare it Lane[{parameter.type}]")
    for each in (*function.signature.parameters, *function.signature.results):
        if isinstance(each.type, Struct):
            source.refuse(source.tree, f"{each}: a function that calls itself takes and gives numbers and pointers; "
                                       "pass members, or a pointer")
    for result in function.signature.results:
        if not result.lane:
            source.refuse(source.tree, f"its result may differ between lanes, which differ in their levels; declare it "
                                       f"Lane[{result.type}]")
