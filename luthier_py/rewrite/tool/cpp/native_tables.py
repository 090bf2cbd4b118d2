"""Constants of a source in C++ that no registers can hold: the bytes of each, one behind the other.

In: LLVM's text of symbols. Out: where each constant is, and the bytes of all. Invariant: bytes are those that LLVM
writes for the GPU; a constant that holds addresses is left out, since these are known only where it is loaded.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from luthier_py.base.llvm import amdgpu_object
from luthier_py.isa import targets
from luthier_py.rewrite.llvm_text.modules import read_variable
from luthier_py.rewrite.llvm_text.names import array_of, symbol_of
from luthier_py.rewrite.tool.cpp.native import PlacedTable

TABLES = "#tables"
"""Name of the parameter that takes the address, in hooks that read some."""
MOST_BYTES_IN_REGISTERS = 64
"""Of an array of numbers that LLVM keeps in registers."""
BYTES = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}

_SECTION = struct.Struct("<IIQQQQIIQQ")  # name type flags address offset size link info align entry_size
_SYMBOL = struct.Struct("<IBBHQQ")       # name info other section value size
_SYMTAB, _OBJECT, _ALIGN = 2, 1, 16


def place_tables(symbols: Mapping[str, str]) -> tuple[tuple[PlacedTable, ...], bytes]:
    """Of symbols with their texts those that are such constants, and the bytes of all."""
    texts = {name: found for name, text in symbols.items() if (found := table_text(text)) is not None}
    if not texts:
        return (), b""
    made = constant_bytes(list(texts.values()))
    tables, whole = [], bytearray()
    for (name, text), data in zip(texts.items(), made, strict=True):
        whole += bytes(-len(whole) % _ALIGN)
        tables.append(PlacedTable(name, text, len(whole)))
        whole += data
    return tuple(tables), bytes(whole)


def table_text(text: str) -> str | None:
    """Type and values of a constant that is in the table, without all that is not its data."""
    variable = read_variable(text)
    if variable is None or not variable.constant or variable.space != 4 or 'section "llvm.' in text:
        return None
    length, element = array_of(variable.data) or (MOST_BYTES_IN_REGISTERS, "")
    if length * BYTES.get(element, 99) <= MOST_BYTES_IN_REGISTERS:
        return None
    return None if symbol_of(variable.data) else variable.data


def constant_bytes(texts: list[str]) -> list[bytes]:
    """The bytes of each, given by type and values, out of a relocatable object."""
    module = "".join(f"@table.{number} = addrspace(4) constant {text}\n" for number, text in enumerate(texts))
    module += "define amdgpu_cs void @nothing() { ret void }\n"  # without a function LLVM has no metadata to write
    data = amdgpu_object(module, targets()[0].name, 64)  # data is the same for all
    (offset,), (count,) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<H", data, 0x3C)
    sections = [_SECTION.unpack_from(data, offset + i * _SECTION.size) for i in range(count)]
    found: dict[str, bytes] = {}
    for _, _, _, _, at, size, link, *_ in (section for section in sections if section[1] == _SYMTAB):
        for name, info, _, section, value, length in _SYMBOL.iter_unpack(data[at : at + size]):
            if info & 0xF == _OBJECT:
                start = sections[section][4] + value
                text = data[sections[link][4] + name :].partition(b"\0")[0].decode()
                found[text] = data[start : start + length]
    return [found[f"table.{number}"] for number in range(len(texts))]
