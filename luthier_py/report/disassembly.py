"""Disassembly: llvm-objdump's line format, basic blocks with live registers, and the emulator's host code.

In: a code object. Out: lines; the plain form equals those of `llvm-objdump -d` for every function that is asked for.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from luthier_py.errors import Malformed, Unsupported, printable
from luthier_py.ir import find_extents, format_program, lift
from luthier_py.isa import InstructionSet, instruction_set
from luthier_py.loader import Broken, CodeObject, KernelRecord, SymbolType

TEXT_COLUMNS = 59
KEPT = 1 << 18  # texts
HOSTS = {"x86_64": ("CS_ARCH_X86", "CS_MODE_64"), "aarch64": ("CS_ARCH_AARCH64", "CS_MODE_LITTLE_ENDIAN")}
_APART = bytes(32)  # between functions: as long as the longest instruction, and each dword of it is one


_Text = tuple[str, str, int | None]
"""Of one instruction, wherever it stands: what is before its address, what is behind, and how far a branch goes."""


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    address: int
    code: bytes
    isa: InstructionSet


def disassemble_parts(
    parts: Iterable[CodeObject | Broken], kernel: str | None, lines: Callable[[CodeObject, str | None], Iterator[str]]
) -> Iterator[str]:
    """The objects of a file, one after the other; those that have ``kernel``, if one is named."""
    missing = None
    found = False
    for part in parts:
        if isinstance(part, Broken):
            yield printable(f"{part.name}: broken: {part.error}")
        elif kernel is None or any(record.name == kernel for record in part.kernels):
            found = True
            yield from lines(part, kernel)
        else:
            missing = missing or part
    if kernel is not None and missing is not None and not found:
        missing.kernel(kernel)  # raises, with those that are there


def disassemble(obj: CodeObject, kernel: str | None = None) -> Iterator[str]:
    """Every function of ``obj`` by address, or only the body of ``kernel``."""
    entry = None if kernel is None else obj.kernel(kernel).entry
    functions = [f for f in _functions(obj) if entry in (None, f.address)]
    yield ""
    yield f"{printable(obj.name)}:\tfile format elf64-amdgpu"
    sets = dict.fromkeys(f.isa for f in functions)
    pieces = {isa: _pieces(isa, [f.code for f in functions if f.isa is isa]) for isa in sets}
    for function in functions:
        yield ""
        yield f"{function.address:016x} <{printable(function.name)}>:"
        yield from _lines(function, next(pieces[function.isa]), _texts(function.isa))


def _functions(obj: CodeObject) -> Iterator[_Function]:
    """By address: symbols with a size as they say, and what starts elsewhere as far as it may go."""
    extents = find_extents(obj)
    known = [(s.address, min(s.address + s.size, extents.text_at(s.address).stop), s.name) for s in obj.symbols
             if s.type is SymbolType.FUNC and s.size and s.defined and extents.text_at(s.address)]
    inside = set()
    for start, end, _ in known:
        at = bisect_left(extents.starts, start)
        inside |= set(extents.starts[at:bisect_left(extents.starts, end, at)])
    unsized = [(start, extents.end(start), name) for start, name in zip(extents.starts, extents.names, strict=True)
               if start not in inside]
    sets = {kernel.entry: _isa(obj, kernel) for kernel in reversed(obj.kernels)}
    usual = next(reversed(sets.values()), instruction_set(obj.target))
    for start, end, name in sorted(known + unsized, key=lambda row: row[0]):
        yield _Function(name, start, obj.read(start, end - start), sets.get(start, usual))


def _isa(obj: CodeObject, kernel: KernelRecord) -> InstructionSet:
    size = kernel.descriptor.wave_size
    return instruction_set(obj.target, size if size in obj.target.wave_sizes else None)


def disassemble_blocks(obj: CodeObject, kernel: str | None = None) -> Iterator[str]:
    """Functions as basic blocks, with what is live at the head of each."""
    from luthier_py.analysis import analyse, live_notes

    program = lift(obj, None if kernel is None else [kernel])
    yield from format_program(program, live_notes(analyse(program))).splitlines()


def disassemble_host(obj: CodeObject, kernel: str | None = None) -> Iterator[str]:
    """What the emulator runs for each kernel (or one), as this computer's assembly; addresses count from 0."""
    import capstone

    from luthier_py.emulator.host import host_code

    machine = platform.machine()
    if machine not in HOSTS:
        raise Unsupported(f"host code for {machine} cannot be shown; capstone is used for {' and '.join(HOSTS)}")
    reader = capstone.Cs(*(getattr(capstone, name) for name in HOSTS[machine]))
    for name in [kernel] if kernel is not None else [k.name for k in obj.kernels]:
        yield ""
        yield f"<{name}> on {machine}:"
        for inst in reader.disasm(host_code(obj, name), 0):
            yield f"\t{f'{inst.mnemonic} {inst.op_str}'.strip().ljust(TEXT_COLUMNS)}// {inst.address:06X}"


def _pieces(isa: InstructionSet, codes: list[bytes]) -> Iterator[list[tuple[int, int]]]:
    """For each piece of code: (offset, size) of each instruction, and of each dword that is none, with size 0."""
    parts = [code + bytes(-len(code) % 4) + _APART for code in codes]
    scan = isa.scan(b"".join(parts))
    sizes = scan.sizes * (scan.rows >= 0)
    start = 0
    for code, part in zip(codes, parts, strict=True):
        first, last = (int(scan.offsets.searchsorted(at)) for at in (start, start + len(code)))
        found = list(zip((scan.offsets[first:last] - start).tolist(), sizes[first:last].tolist(), strict=True))
        cut = [found.pop()[0]] if found and found[-1][0] + found[-1][1] > len(code) else []
        yield found + [piece for at in cut for piece in _rest(isa, code, at)]
        start += len(part)


def _rest(isa: InstructionSet, code: bytes, at: int) -> Iterator[tuple[int, int]]:
    """The same for the end of a piece, without a look behind it."""
    while at < len(code):
        try:
            size = isa.decode(code, at).size_bytes
        except Malformed:
            size = 0
        yield at, size
        at += size or 4


@cache
def _texts(isa: InstructionSet) -> dict[bytes, _Text]:
    """Of instructions that were met, by their bytes: the objects of a library have many in common."""
    return {}


def _lines(function: _Function, pieces: list[tuple[int, int]], texts: dict[bytes, _Text]) -> Iterator[str]:
    code, address, isa = function.code, function.address, function.isa
    for offset, size in pieces:
        raw = code[offset : offset + (size or 4)]
        text = texts.get(raw) if size else _text(f".long 0x{int.from_bytes(raw, 'little'):08x}", raw, None)
        if text is None:
            if len(texts) > KEPT:
                texts.clear()
            words, distance = isa.text_of(raw)
            text = texts[raw] = _text(words, raw, distance)
        head, tail, distance = text
        if distance is None:
            yield f"{head}{address + offset:012X}{tail}"
        else:
            yield f"{head}{address + offset:012X}{tail} <{_place(offset + distance, function)}>"


def _text(words: str, raw: bytes, distance: int | None) -> _Text:
    if len(raw) == 4:
        dwords = raw[::-1].hex().upper()
    else:
        dwords = " ".join([raw[i : i + 4][::-1].hex().upper().rjust(8, "0") for i in range(0, len(raw), 4)])
    return f"\t{words.ljust(TEXT_COLUMNS)}// ", f": {dwords}", distance


def _place(offset: int, function: _Function) -> str:
    name = printable(function.name)
    return f"{name}+0x{offset:x}" if offset else name
