"""The relocatable objects that LLVM emits: code of each function by name.

In: an ELF64 little-endian relocatable. Out: bytes. Invariant: code that needs a relocation is refused, since
nothing would apply it.
"""

from __future__ import annotations

import struct

from luthier_py.errors import Unsupported

_SECTION = struct.Struct("<IIQQQQIIQQ")  # name type flags address offset size link info align entry_size
_SYMBOL = struct.Struct("<IBBHQQ")       # name info other section value size
_SYMTAB, _RELA, _REL = 2, 4, 9
_FUNCTION = 2


def functions(data: bytes) -> dict[str, bytes]:
    """Code of every function symbol."""
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    (count,) = struct.unpack_from("<H", data, 0x3C)
    sections = [_SECTION.unpack_from(data, offset + i * _SECTION.size) for i in range(count)]
    code = {}
    for _, kind, _, _, at, size, link, _, _, _ in sections:
        if kind != _SYMTAB:
            continue
        names = sections[link][4]
        for entry in range(at, at + size, _SYMBOL.size):
            name, info, _, section, value, length = _SYMBOL.unpack_from(data, entry)
            if info & 0xF != _FUNCTION:
                continue
            if any(s[1] in (_RELA, _REL) and s[7] == section for s in sections):
                raise Unsupported("a hook needs constant data or code outside of itself; simplify it")
            start = sections[section][4] + value
            code[_string(data, names + name)] = data[start : start + length]
    return code


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(0, at)].decode()
