"""Memory of a function's own in LLVM's text, brought into the form in which LLVM keeps it in registers.

In: a module with one function, as clang's code is when it has been inlined. Out: the same function: small tables of
constants are arrays of its own, and addresses of such arrays are worked out as addresses of private memory. Invariant:
what is too large, or used in other ways, stays as it is, and is refused when there is code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from luthier_py.rewrite.tool.cpp.native_tables import BYTES, MOST_BYTES_IN_REGISTERS

_TABLE = re.compile(
    r"^@([-\w$.]+) = internal (?:(?:local_)?unnamed_addr )?addrspace\(([14])\) (?:externally_initialized )?constant "
    r"\[(\d+) x (i8|i16|i32|i64|half|float|double)\] (.*?)(?:, align \d+)?\n", re.MULTILINE)
_WORDS = r"((?:\w+(?:\(\d+\))? |align \d+ )*)"  # of arguments
_COPIED = re.compile(rf"@llvm\.memcpy\.p0\.p4\.i64\(([^,]*), ptr addrspace\(4\) {_WORDS}@([-\w$.]+),")
_COPY = "llvm.memcpy.p0.p0.i64"
_COPY_DECLARED = f"declare void @{_COPY}(ptr, ptr, i64, i1)\n"
_FILL_OWN = "declare void @llvm.memset.p5.i64(ptr addrspace(5), i8, i64, i1)\n"
_COPY_OWN = "declare void @llvm.memcpy.p5.p5.i64(ptr addrspace(5), ptr addrspace(5), i64, i1)\n"
_FILL_CALL = re.compile(rf"@llvm\.memset\.p0\.i64\(ptr {_WORDS}(%[^\s,]+),")
_COPY_CALL = re.compile(
    rf"@llvm\.memcpy\.p0\.p0\.i64\(ptr {_WORDS}(%[^\s,]+), ptr {_WORDS}(%[^\s,]+),")
_PRIVATE_CAST = re.compile(r"^ *(%\S+) = addrspacecast ptr addrspace\(5\) (%\S+) to ptr$", re.MULTILINE)
_ELEMENT = re.compile(r"^( *)(%\S+) = getelementptr ([^\n]*?), ptr (%[^\s,]+), ([^\n]*)$", re.MULTILINE)
_LABEL = re.compile(r'("[^"]*"|[-\w$.]+):[^\n]*\n')


def with_tables(text: str) -> str:
    """A module with one function, in which small tables of constants are the function's own, so in registers."""
    found = [each for each in _TABLE.finditer(text) if int(each[3]) * BYTES[each[4]] <= MOST_BYTES_IN_REGISTERS]
    for number, each in enumerate(found):
        own, kind = f"%table{number}", f"[{each[3]} x {each[4]}]"
        cast = f"addrspacecast (ptr addrspace({each[2]}) @{each[1]} to ptr)"
        without = _redirect_table_copies(text.replace(each[0], "").replace(cast, own), each[1], own)
        if f"@{each[1]}" in without:  # used in other ways
            continue
        lines = (f"  %memory{number} = alloca {kind}, align 16, addrspace(5)\n"
                 f"  store {kind} {each[5]}, ptr addrspace(5) %memory{number}, align 16\n"
                 f"  {own} = addrspacecast ptr addrspace(5) %memory{number} to ptr\n")
        begin = start_of_body(without)
        text = without[:begin] + lines + without[begin:]
    return text


def start_of_body(text: str) -> int:
    """Where the first instruction is in a module with one function."""
    begin = text.index("{\n", text.index("\ndefine ")) + 2
    label = _LABEL.match(text, begin)
    return begin if label is None else label.end()


def _redirect_table_copies(text: str, name: str, own: str) -> str:
    """Copies of a table into an array of the function's, from where the table is now."""

    def from_own(call: re.Match[str]) -> str:
        return f"@{_COPY}({call[1]}, ptr {call[2]}{own}," if call[3] == name else call[0]

    found = _COPIED.sub(from_own, text)
    return found if found == text or f"declare void @{_COPY}(" in found else f"{found}{_COPY_DECLARED}"


def with_private_pointers(text: str) -> str:
    """Addresses in the function's own memory are worked out as such: only then LLVM keeps that in registers."""
    while True:
        casts = dict(_PRIVATE_CAST.findall(text))
        changed = _ELEMENT.sub(lambda found, casts=casts: _private_element(found, casts), text)  # type: ignore[misc]
        if changed == text:
            return _with_private_copies(text, casts)
        text = changed


def _with_private_copies(text: str, casts: Mapping[str, str]) -> str:
    """What fills and copies the function's own memory knows that it is that."""
    used: set[str] = set()

    def rewrite_fill(call: re.Match[str]) -> str:
        if call[2] not in casts:
            return call[0]
        used.add(_FILL_OWN)
        return f"@llvm.memset.p5.i64(ptr addrspace(5) {call[1]}{casts[call[2]]},"

    def rewrite_copy(call: re.Match[str]) -> str:
        if call[2] not in casts or call[4] not in casts:
            return call[0]
        used.add(_COPY_OWN)
        into, source = f"{call[1]}{casts[call[2]]}", f"{call[3]}{casts[call[4]]}"
        return f"@llvm.memcpy.p5.p5.i64(ptr addrspace(5) {into}, ptr addrspace(5) {source},"

    text = _COPY_CALL.sub(rewrite_copy, _FILL_CALL.sub(rewrite_fill, text))
    return text + "".join(line for line in sorted(used) if line.partition("(")[0] not in text)


def _private_element(found: re.Match[str], casts: Mapping[str, str]) -> str:
    indent, name, element, pointer, rest = found.groups()
    if pointer not in casts:
        return found[0]
    own = f'%"own.{name[2:]}' if name.startswith('%"') else f"%own.{name[1:]}"
    return (f"{indent}{own} = getelementptr {element}, ptr addrspace(5) {casts[pointer]}, {rest}\n"
            f"{indent}{name} = addrspacecast ptr addrspace(5) {own} to ptr")
