"""The relocatable objects that LLVM emits: code of each function by name, and where constants are to be written.

In: an ELF64 little-endian relocatable. Out: Code. Invariant: code that needs another relocation than halves of fields'
numbers is refused, since nothing would apply it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgpack

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import dataclass, replace

FIELD = "field"  # names of symbols that stand for constants, before the number of the parameter

_SECTION = struct.Struct("<IIQQQQIIQQ")  # name type flags address offset size link info align entry_size
_SYMBOL = struct.Struct("<IBBHQQ")       # name info other section value size
_RELOCATION = struct.Struct("<QII")      # offset type symbol; the addend is in the code
_SYMTAB, _RELA, _REL = 2, 4, 9
_FUNCTION = 2
_LOW, _HIGH = 1, 2  # R_AMDGPU_ABS32_LO, R_AMDGPU_ABS32_HI
_COUNT = struct.Struct("<4I")
_NOTE_HEADER = struct.Struct("<III")     # name_bytes bytes type
_METADATA, _NOTE = 32, 7                 # NT_AMDGPU_METADATA, SHT_NOTE
_ROW = struct.Struct("<IIqI")


@dataclass(frozen=True, slots=True)
class ConstantField:
    """A dword of code: a half of the constant for the parameter at ``position``, plus ``added``; ``kind`` is the
    relocation's, which says which half."""

    offset: int
    position: int
    added: int
    kind: int

    @property
    def high(self) -> bool:
        """Whether the dword is the upper half of the constant (R_AMDGPU_ABS32_HI), or else the lower one."""
        return self.kind == _HIGH


@dataclass(frozen=True, slots=True)
class Code:
    """One function."""

    code: bytes
    fields: tuple[ConstantField, ...] = ()
    frame_bytes: int = 0
    """Of stack, where it is a function that is called; those that are not say nothing of it."""
    name: str = ""
    said: bytes = b""
    """What LLVM's object says of its functions, byte for byte, and the name that this one has in it: the claim check
    reads it instead of `frame_bytes`."""

    def pack(self) -> bytes:
        """The code as bytes, for the cache."""
        rows = (_ROW.pack(p.offset, p.position, p.added, p.kind) for p in self.fields)
        name = self.name.encode()
        sizes = _COUNT.pack(len(self.fields), self.frame_bytes, len(name), len(self.said))
        return b"".join((sizes, *rows, name, self.said, self.code))

    @classmethod
    def unpack(cls, data: bytes) -> Code:
        """The inverse of `pack`; ``data`` is not checked."""
        count, frame_bytes, name_bytes, said_bytes = _COUNT.unpack_from(data)
        end = _COUNT.size + count * _ROW.size
        said = end + name_bytes
        return cls(data[said + said_bytes:],
                   tuple(ConstantField(*row) for row in _ROW.iter_unpack(data[_COUNT.size : end])),
                   frame_bytes, data[end:said].decode(), data[said : said + said_bytes])


def functions(data: bytes) -> dict[str, Code]:
    """Code of every function symbol."""
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    (count,) = struct.unpack_from("<H", data, 0x3C)
    sections = [_SECTION.unpack_from(data, offset + i * _SECTION.size) for i in range(count)]
    notes = [data[at : at + size] for _, kind, _, _, at, size, *_ in sections if kind == _NOTE]
    said = next(filter(None, map(_metadata, notes)), b"")
    frames = _frames(said) if said else {}
    code = {}
    for _, kind, _, _, at, size, link, _, _, _ in sections:
        if kind != _SYMTAB:
            continue
        names = sections[link][4]
        symbols = [_SYMBOL.unpack_from(data, entry) for entry in range(at, at + size, _SYMBOL.size)]
        texts = [_string(data, names + symbol[0]) for symbol in symbols]
        wanted = {section for _, info, _, section, _, _ in symbols if info & 0xF == _FUNCTION}
        found = {section: list(_fields(data, sections, section, texts)) for section in wanted}
        for text, (_, info, _, section, value, length) in zip(texts, symbols, strict=True):
            if info & 0xF != _FUNCTION:
                continue
            start = sections[section][4] + value
            own = (p for p in found[section] if value <= p.offset < value + length)
            moved = tuple(replace(p, offset=p.offset - value) for p in own)
            frame = frames.get(text)
            what_is_said = ("", b"") if frame is None else (text, said)
            code[text] = Code(data[start : start + length], moved, frame or 0, *what_is_said)
    return code


def _metadata(note: bytes) -> bytes:
    """What LLVM says of an object in a section of notes, or nothing."""
    at = 0
    while at + _NOTE_HEADER.size <= len(note):
        name_bytes, size, kind = _NOTE_HEADER.unpack_from(note, at)
        start = at + _NOTE_HEADER.size + -(-name_bytes // 4) * 4
        if kind == _METADATA:
            return note[start : start + size]
        at = start + -(-size // 4) * 4
    return b""


def _frames(said: bytes) -> dict[str, int]:
    """Of functions, by name (AMDGPUUsage, "Code Object Metadata" of AMDPAL: .shader_functions)."""
    (pipeline,) = msgpack.unpackb(said, strict_map_key=False)["amdpal.pipelines"]
    functions = pipeline.get(".shader_functions", {})
    return {name: each[".stack_frame_size_in_bytes"] for name, each in functions.items()}


def _fields(data: bytes, sections: list[tuple[int, ...]], section: int, symbols: list[str]) -> Iterator[ConstantField]:
    for _, kind, _, _, at, size, _, info, _, _ in sections:
        if kind not in (_RELA, _REL) or info != section:
            continue
        for offset, what, symbol in _RELOCATION.iter_unpack(data[at : at + size]) if kind == _REL else [(0, 0, 0)]:
            name = symbols[symbol]
            if not name.startswith(FIELD) or what not in (_LOW, _HIGH):
                raise Unsupported("a hook needs constant data or code outside of itself; simplify it")
            (added,) = struct.unpack_from("<i", data, sections[section][4] + offset)
            yield ConstantField(offset, int(name.removeprefix(FIELD)), added, what)


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(0, at)].decode()
