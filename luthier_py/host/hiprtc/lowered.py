"""What name expressions come to in the object: lines that are put behind a program, and names out of what it became.

In: expressions, an ELF file of the compiler. Out: a symbol's name for each. Each expression's address is stored in a
variable in a section that is no part of the loaded program (LLVM gives .llvmcmd no address:
TargetLoweringObjectFileImpl.cpp), so the code object is what it would be without.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

_SECTION, _PREFIX = ".llvmcmd", "luthier_name_"
_KINDS = "STT_FUNC", "STT_OBJECT"


def with_names(source: str, expressions: Sequence[str]) -> str:
    """The source, and a variable for each expression that holds its address."""
    lines = [_line(number, expression) for number, expression in enumerate(expressions)]
    return "\n".join([source, *lines, ""]) if lines else source


def _line(number: int, expression: str) -> str:
    """A cast to a pointer is taken as it is; everything else is something with an address."""
    text = expression.strip().removeprefix("&").strip()
    value = text if text.startswith("(") else f"&{text}"
    attributes = f'device, used, section("{_SECTION}")'
    variable = f"static __attribute__(({attributes})) const void *{_PREFIX}{number} = (const void *)({value});"
    return f'#line 1 "name expression {number}"\nextern "C" {{ {variable} }}'


def find_lowered_names(image: bytes, count: int) -> list[str]:
    """Names of symbols; "" for one that is not there."""
    try:
        file = ELFFile(io.BytesIO(image))
        section = file.get_section_by_name(_SECTION)
        table = file.get_section_by_name(".symtab")
        if section is None or table is None:
            return [""] * count
        symbols = list(table.iter_symbols())  # type: ignore[attr-defined]
        places = _places(symbols, file, section)
        relocations = file.get_section_by_name(f".rela{_SECTION}")
        if relocations is not None:
            entries = relocations.iter_relocations()  # type: ignore[attr-defined]
            by_place = {entry["r_offset"]: symbols[entry["r_info_sym"]].name for entry in entries}
            return [by_place.get(places.get(number, -1), "") for number in range(count)]
        by_address = _by_address(symbols)
        data = section.data()
        values = {number: int.from_bytes(data[place : place + 8], "little") for number, place in places.items()}
        return [by_address.get(values.get(number, 0), "") for number in range(count)]
    except (ELFError, KeyError, IndexError):
        return [""] * count


def _places(symbols: Sequence[Any], file: ELFFile, section: Any) -> dict[int, int]:
    """Where in the section each expression's variable is."""
    index = file.get_section_index(_SECTION)
    found = {}
    for symbol in symbols:
        _, own, number = symbol.name.rpartition(_PREFIX)
        if own and number.isdigit() and symbol["st_shndx"] == index:
            found[int(number)] = symbol["st_value"] - section["sh_addr"]
    return found


def _by_address(symbols: Sequence[Any]) -> dict[int, str]:
    """Functions and variables that have an address, which a symbol that others see names rather than a local one."""
    found: dict[int, str] = {}
    for symbol in sorted(symbols, key=lambda symbol: symbol["st_info"]["bind"] != "STB_LOCAL"):
        if symbol["st_info"]["type"] in _KINDS and symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_value"]:
            found[symbol["st_value"]] = symbol.name
    return found
