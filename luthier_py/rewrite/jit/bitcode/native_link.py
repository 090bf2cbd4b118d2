"""Hooks that call bitcode, made whole: all that they call is put into them.

In: IR of a hook with calls of Natives. Out: IR of a module that has the hook alone, with no functions but LLVM's own in
it. Invariant: the inlined code has the attributes of hooks, whatever it was compiled with; addresses of tool variables
are parameters of the hook.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from luthier_py.base import llvm
from luthier_py.base.errors import HookError, Unsupported
from luthier_py.base.records import replace
from luthier_py.isa import InstructionSet
from luthier_py.rewrite.jit.bitcode.computing_calls import check_calls
from luthier_py.rewrite.jit.bitcode.device_library import device_library
from luthier_py.rewrite.jit.bitcode.frames import TOO_DEEP
from luthier_py.rewrite.jit.bitcode.private_memory import with_private_pointers, with_tables
from luthier_py.rewrite.jit.bitcode.recursion import DEEPEST, recursive, with_deepest, without_recursion
from luthier_py.rewrite.jit.inserted_text import has_foreign_text
from luthier_py.rewrite.jit.python.builder import GLOBAL
from luthier_py.rewrite.jit.python.frontend import HookIr, module
from luthier_py.rewrite.llvm_text.functions import body_of, find_callees, insert_at_start, without_expressions
from luthier_py.rewrite.llvm_text.modules import (
    add_attribute,
    attributes_for_inlining,
    make_internal,
    numbers,
    read_variable,
    renumber_metadata,
    variables_of,
    without_locations,
    without_nodes,
)
from luthier_py.rewrite.llvm_text.names import llvm_type, quote_name, replace_symbols, symbol_of, symbols_in
from luthier_py.rewrite.tool.cpp.device_ir import Depth, DeviceIr
from luthier_py.rewrite.tool.cpp.native import Native
from luthier_py.rewrite.tool.cpp.native_tables import TABLES, table_text
from luthier_py.rewrite.tool.hooks.hook import Hook

_INLINING = "always_inliner", "global_dead_code_eliminate"
_APART = 1_000_000  # added to numbers of attributes and metadata: each unit has its own
_LIBRARIES = "__ocml_", "__ockl_"
_WHY_NOT = {
    1: "which is no tool variable: give it the type of a number, or of an array of them, and no addresses",
    3: "which is in LDS: hooks have none of their own, use a local array or a __device__ variable",
    4: "a constant that holds addresses: use numbers",
}


def calls_bitcode(ir: HookIr) -> bool:
    """Functions of a source, or of AMD's device library; or functions that call themselves, which go the same way."""
    return bool(ir.natives or ir.depths) or any(_is_of_library(symbol_of(line)) for line in ir.declarations)


def with_natives(hook: Hook, ir: HookIr, isa: InstructionSet) -> HookIr:
    """``ir`` as a separate module; Unsupported and HookError name what it cannot have."""
    units = [code.ir(isa.target.name, isa.wave_size) for code in {native.code: None for native in ir.natives}]
    if len(units) > 1:
        raise Unsupported(f"{hook.place}: hook {hook.name} calls functions of several sources; put them into one")
    for native in ir.natives:
        if not units[0].defines(native.symbol):
            raise HookError(f"{native.place}: {native.name} is not there for {isa.target.name}")
    addresses = dict(_map_captures(hook, hook.function)) if isinstance(hook.function, Native) else {}
    depths = {symbol: depth for unit in units for symbol, depth in unit.depths.items()} | dict(ir.depths)
    text = with_private_pointers(with_tables(_inline_into_hook(hook, _whole(ir, units, isa), depths, isa)))
    if has_foreign_text(text):
        raise Unsupported(f"{hook.place}: hook {hook.name} has inline assembly, which C++ cannot have here; hooks in "
                          "Python can, as asm(...)")
    for called in find_callees(text):
        if not called.startswith("llvm."):
            raise Unsupported(f"{hook.place}: hook {hook.name} calls {called}, which is not in its source")
    check_calls(hook, text, units, [native.symbol for native in ir.natives])
    tables, start = _tables(hook, units[0], addresses.pop(TABLES, "")) if units else ({}, "")
    text = with_addresses(text, addresses | tables)
    _check_globals(hook, text)
    return replace(ir, function=insert_at_start(text, start), declarations=frozenset(), natives=(), alone=True)


def _map_captures(hook: Hook, native: Native) -> Iterator[tuple[str, str]]:
    """Variables of the source, and the parameters that have their addresses: behind those that calls give."""
    for number, symbol in enumerate([*native.captures, *([TABLES] if native.tables else [])], len(native.takes)):
        given = number if hook.made is None else hook.made[number]
        yield symbol, f"%p{given}"


def _check_globals(hook: Hook, text: str) -> None:
    """What is left of memory that has a name cannot be: nothing would give it an address."""
    begin, end = body_of(text)
    used = set(symbols_in(text[begin:end]))
    for variable, _ in variables_of(text):
        if variable.space and variable.name in used and "extern_weak" not in variable.words:
            raise Unsupported(f"{hook.place}: hook {hook.name} uses {variable.name}, {_WHY_NOT[variable.space]}")


def _tables(hook: Hook, unit: DeviceIr, address: str) -> tuple[dict[str, str], str]:
    """Values that stand for the addresses of constants which are not in the code, and the lines that make them."""
    assert not address or isinstance(hook.function, Native)
    names, lines = {}, ""
    for number, each in enumerate(hook.function.tables if address and isinstance(hook.function, Native) else ()):
        if table_text(unit.symbols.get(each.symbol, "")) != each.text:
            raise Unsupported(f"{hook.place}: hook {hook.name} reads {each.symbol}, which has other values for this "
                              "target than for others; give it the same, or several names")
        names[each.symbol] = f"%table.{number}"
        lines += (f"  %table.at.{number} = getelementptr i8, ptr {GLOBAL} {address}, i64 {each.offset}\n"
                  f"  %table.{number} = addrspacecast ptr {GLOBAL} %table.at.{number} to ptr addrspace(4)\n")
    return names, lines


def _inline_into_hook(hook: Hook, text: str, depths: Mapping[str, Depth], isa: InstructionSet) -> str:
    """A module with the hook alone."""

    def passes(module: str, *names: str) -> str:
        return llvm.amdgpu_transformed(module, isa.target.name, isa.wave_size, *names)

    if not recursive(text):
        return with_deepest(passes(text, *_INLINING))
    where = f"{hook.place}: hook {hook.name}"
    whole = passes(without_recursion(text, depths, passes, where), *_INLINING, "sroa")
    if f"@{TOO_DEEP}(" in whole and f"@{DEEPEST}(" not in whole:
        raise Unsupported(f"{where} calls what calls itself, but has no channel to tell what goes too deep: let the "
                          "source itself, not what it includes, say LUTHIER_DEPTH")
    return with_deepest(whole)


def with_addresses(text: str, addresses: Mapping[str, str]) -> str:
    """A module with one function, in which values of it stand for the addresses of symbols."""
    begin, end = body_of(text)
    return text[:begin] + without_expressions(replace_symbols(text[begin:end], addresses)) + text[end:]


def _whole(ir: HookIr, units: list[DeviceIr], isa: InstructionSet) -> str:
    """The hook with all that it may call, as a module."""
    declared = {symbol_of(line): line for line in ir.declarations}
    start = {native.symbol for native in ir.natives} | declared.keys()
    found = _collect_needed_symbols(start, units)
    if any(_is_of_library(name) for name in start.union(*found.values())):
        units = [*units, *device_library(isa)]
        found = _collect_needed_symbols(start, units)
    captured = {symbol for native in ir.natives for symbol in native.captures}
    sending = {sender.symbol for native in ir.natives for sender in native.senders}  # the hook's text has them
    parts = []
    for number, unit in enumerate(units):
        texts = [_own(without_locations(unit.symbols[name]), name in captured)
                 for name in unit.symbols if name in found[number] - sending]
        attributes = (f"attributes #{at} = {{ {attributes_for_inlining(words)} }}"
                      for at, words in unit.attributes.items())
        parts += [renumber_metadata("\n".join([*texts, *attributes, *_nodes(unit, texts)]), _APART * (number + 1))]
    here = set[str]().union(*found.values())
    kept = frozenset(line for name, line in declared.items() if name not in here)
    return "\n".join([*parts, module([replace(ir, declarations=kept)])]) + "\n"


def _collect_needed_symbols(start: set[str], units: list[DeviceIr]) -> dict[int, set[str]]:
    """What is needed of each unit: a symbol is of the first that defines it, or else that names it."""
    found: dict[int, set[str]] = {number: set() for number in range(len(units))}
    todo, seen = list(start), set(start)
    while todo:
        name = todo.pop()
        having = [number for number, unit in enumerate(units) if name in unit.symbols]
        number = next((number for number in having if units[number].defines(name)), having[0] if having else None)
        if number is not None:
            found[number].add(name)
            new = units[number].uses(name) - seen
            seen |= new
            todo += new
    return found


def _is_of_library(symbol: str) -> bool:
    return symbol.startswith(_LIBRARIES)


def _own(text: str, captured: bool) -> str:
    """A symbol as a part of the hook: inlined, or a variable somewhere else that is ``captured``."""
    if text.startswith("define "):
        return add_attribute(make_internal(text), "alwaysinline")
    variable = read_variable(text)
    if captured and variable is not None and variable.external and variable.space == 1:
        return f"@{quote_name(variable.name)} = external addrspace(1) global {llvm_type(variable.data)}\n"
    return make_internal(text) if text.startswith("@") else text


def _nodes(unit: DeviceIr, texts: list[str]) -> list[str]:
    """Metadata that is left without places in the source."""
    todo = {number for text in texts for number in numbers(text, "!")}
    found: dict[int, str] = {}
    while todo:
        number = todo.pop()
        kept = found[number] = without_nodes(unit.nodes[number], lambda each: unit.nodes[each].startswith("!DI"))
        todo |= numbers(kept, "!") - found.keys()
    distinct = {number for number, node in found.items() if number in numbers(node, "!")}
    return [f"!{number} = {'distinct ' if number in distinct else ''}{node}"
            for number, node in sorted(found.items())]
