"""Memory of a function's own in LLVM's text, brought into the form in which LLVM keeps it in registers.

In: a module with one function, as clang's code is when it has been inlined. Out: the same function: small tables of
constants are its local arrays, and addresses of such arrays are worked out as addresses of private memory. Invariant:
what is too large, or used in other ways, stays as it is, and is refused when there is code.
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.base.records import replace
from luthier_py.rewrite.llvm_text.functions import (
    TextCall,
    TextElement,
    find_pointer_casts,
    insert_at_start,
    rewrite_calls,
    rewrite_elements,
)
from luthier_py.rewrite.llvm_text.modules import variables_of
from luthier_py.rewrite.llvm_text.names import TextArgument, array_of
from luthier_py.rewrite.tool.cpp.native_tables import BYTES, MOST_BYTES_IN_REGISTERS

_COPY = "llvm.memcpy.p0.p0.i64"
_COPY_DECLARED = f"declare void @{_COPY}(ptr, ptr, i64, i1)\n"
_OWN = "ptr addrspace(5)"
_FILL_OWN = f"declare void @llvm.memset.p5.i64({_OWN}, i8, i64, i1)\n"
_COPY_OWN = f"declare void @llvm.memcpy.p5.p5.i64({_OWN}, {_OWN}, i64, i1)\n"


def with_tables(text: str) -> str:
    """A module with one function, in which small tables of constants are the function's own, so in registers."""
    found = [(table, line) for table, line in variables_of(text) if table.constant and table.space in (1, 4)
             and "internal" in table.words.split() and _fits_in_registers(table.data)]
    for number, (table, line) in enumerate(found):
        own, (length, element) = f"%table{number}", array_of(table.data) or (0, "")
        cast = f"addrspacecast (ptr addrspace({table.space}) @{table.name} to ptr)"
        without = _redirect_table_copies(text.replace(f"{line}\n", "").replace(cast, own), table.name, own)
        if f"@{table.name}" in without:  # used in other ways
            continue
        text = insert_at_start(without, f"  %memory{number} = alloca [{length} x {element}], align 16, addrspace(5)\n"
                                        f"  store {table.data}, {_OWN} %memory{number}, align 16\n"
                                        f"  {own} = addrspacecast {_OWN} %memory{number} to ptr\n")
    return text


def _fits_in_registers(data: str) -> bool:
    length, element = array_of(data) or (0, "")
    return element in BYTES and length * BYTES[element] <= MOST_BYTES_IN_REGISTERS


def _redirect_table_copies(text: str, name: str, own: str) -> str:
    """Copies of a table into an array of the function's, from where the table is now."""

    def from_own(call: TextCall) -> TextCall:
        into, source, *_ = call.arguments
        return call.of(_COPY, into, TextArgument("ptr", source.attributes, own)) if source.value == f"@{name}" else call

    found = rewrite_calls(text, "llvm.memcpy.p0.p4.i64", from_own)
    return found if found == text or f"declare void @{_COPY}(" in found else f"{found}{_COPY_DECLARED}"


def with_private_pointers(text: str) -> str:
    """Addresses in the function's own memory are worked out as such: only then LLVM keeps that in registers."""
    while True:
        casts = find_pointer_casts(text, 5)
        changed = rewrite_elements(text, lambda element, casts=casts: _private_element(element, casts))  # type: ignore[misc]
        if changed == text:
            return _with_private_copies(text, casts)
        text = changed


def _with_private_copies(text: str, casts: Mapping[str, str]) -> str:
    """Calls that fill and copy the function's own memory name its address space."""
    used: set[str] = set()

    def own(argument: TextArgument) -> TextArgument:
        return TextArgument(_OWN, argument.attributes, casts[argument.value])

    def rewrite_fill(call: TextCall) -> TextCall:
        into, *_ = call.arguments
        if into.value not in casts:
            return call
        used.add(_FILL_OWN)
        return call.of("llvm.memset.p5.i64", own(into))

    def rewrite_copy(call: TextCall) -> TextCall:
        into, source, *_ = call.arguments
        if into.value not in casts or source.value not in casts:
            return call
        used.add(_COPY_OWN)
        return call.of("llvm.memcpy.p5.p5.i64", own(into), own(source))

    text = rewrite_calls(rewrite_calls(text, "llvm.memset.p0.i64", rewrite_fill), _COPY, rewrite_copy)
    return text + "".join(line for line in sorted(used) if line.partition("(")[0] not in text)


def _private_element(element: TextElement, casts: Mapping[str, str]) -> str:
    if element.pointer not in casts:
        return str(element)
    own = f'%"own.{element.name[2:]}' if element.name.startswith('%"') else f"%own.{element.name[1:]}"
    inside = replace(element, name=own, type=_OWN, pointer=casts[element.pointer])
    return f"{inside}\n  {element.name} = addrspacecast {_OWN} {own} to ptr"
