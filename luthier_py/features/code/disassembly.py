"""Disassembly: llvm-objdump's line format, basic blocks with live registers, and the emulator's host code.

In: a code object. Out: lines; the plain form equals those of `llvm-objdump -d` for every function that is requested.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from luthier_py.base.errors import Malformed, Unsupported, printable
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import Broken, CodeObject, KernelRecord, SymbolType
from luthier_py.isa import InstructionSet, instruction_set
from luthier_py.isa.columns import NOWHERE, Columns, Kinds, read_columns
from luthier_py.isa.encoding.scan import UNKNOWN
from luthier_py.program import ir

TEXT_COLUMNS = 59
KEPT = 1 << 18  # texts
HOSTS = {"x86_64": ("CS_ARCH_X86", "CS_MODE_64"), "aarch64": ("CS_ARCH_AARCH64", "CS_MODE_LITTLE_ENDIAN")}


_Text = tuple[str, str, int | None]
"""Of one instruction, at any address: the text before its address, the text behind, and a branch's distance."""

_NONE: _Text = ("", "", None)


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
    columns = {isa: iter(read_columns(isa, [(f.address, f.code) for f in functions if f.isa is isa])) for isa in sets}
    texts: dict[Kinds, list[_Text]] = {}
    for function in functions:
        code = next(columns[function.isa])
        if code.distinct not in texts:
            texts[code.distinct] = _texts(code.distinct)
        yield ""
        yield f"{function.address:016x} <{printable(function.name)}>:"
        yield from _lines(function, code, texts[code.distinct])


def _functions(obj: CodeObject) -> Iterator[_Function]:
    """By address: symbols with a size as they say, and what starts elsewhere as far as it may go."""
    extents = ir.find_extents(obj)
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
    from luthier_py.program.analysis import analyse, live_notes

    program = ir.lift(obj, None if kernel is None else [kernel])
    yield from ir.format_program(program, live_notes(analyse(program))).splitlines()


def disassemble_host(obj: CodeObject, kernel: str | None = None) -> Iterator[str]:
    """What the emulator runs for each kernel (or one), as this computer's assembly; addresses count from 0."""
    import capstone

    from luthier_py.emulator.devices.host_code import host_code

    machine = platform.machine()
    if machine not in HOSTS:
        raise Unsupported(f"host code for {machine} cannot be shown; capstone is used for {' and '.join(HOSTS)}")
    reader = capstone.Cs(*(getattr(capstone, name) for name in HOSTS[machine]))
    for name in [kernel] if kernel is not None else [k.name for k in obj.kernels]:
        yield ""
        yield f"<{name}> on {machine}:"
        for inst in reader.disasm(host_code(obj, name), 0):
            yield f"\t{f'{inst.mnemonic} {inst.op_str}'.strip().ljust(TEXT_COLUMNS)}// {inst.address:06X}"


@cache
def _make_text_cache(isa: InstructionSet) -> dict[bytes, _Text]:
    """Texts of instructions by their bytes: the objects of a library have many in common."""
    return {}


def _texts(distinct: Kinds) -> list[_Text]:
    """By kind; of what is no instruction there is none."""
    met, raws = _make_text_cache(distinct.isa), [distinct.raw(kind) for kind in range(len(distinct))]
    distances = [None if distance == NOWHERE else distance for distance in distinct.distances.tolist()]
    if len(met) > KEPT:
        met.clear()
    for kind, words in distinct.texts({kind for kind, raw in enumerate(raws) if raw not in met}).items():
        met[raws[kind]] = _text(words, raws[kind], distances[kind])
    rows = distinct.rows.tolist()
    return [_NONE if row == UNKNOWN else met[raw] for raw, row in zip(raws, rows, strict=True)]


def _lines(function: _Function, code: Columns, texts: list[_Text]) -> Iterator[str]:
    start, end = function.address, function.address + len(function.code)
    places = list(zip(code.pcs.tolist(), code.kinds.tolist(), strict=True))
    cut_off = places.pop()[0] if places and places[-1][0] + code.size(-1) > end else end
    for pc, kind in places:
        head, tail, distance = texts[kind]
        if not head:
            yield _none(function, pc)
        elif distance is None:
            yield f"{head}{pc:012X}{tail}"
        else:
            yield f"{head}{pc:012X}{tail} <{_place(pc + distance - start, function)}>"
    yield from _rest(function, cut_off)


def _none(function: _Function, pc: int) -> str:
    raw = function.code[pc - function.address :][:4]
    head, tail, _ = _text(f".long 0x{int.from_bytes(raw, 'little'):08x}", raw, None)
    return f"{head}{pc:012X}{tail}"


def _rest(function: _Function, pc: int) -> Iterator[str]:
    """The end of a function, which an instruction reaches beyond: without a look behind it."""
    while pc < function.address + len(function.code):
        try:
            inst = function.isa.decode(function.code, pc - function.address)
        except Malformed:
            yield _none(function, pc)
            pc += 4
        else:
            head, tail, distance = _text(function.isa.text(inst), inst.raw, inst.branch_target(0))
            place = "" if distance is None else f" <{_place(pc + distance - function.address, function)}>"
            yield f"{head}{pc:012X}{tail}{place}"
            pc += inst.size_bytes


def _text(words: str, raw: bytes, distance: int | None) -> _Text:
    if len(raw) == 4:
        dwords = f"{int.from_bytes(raw, 'little'):08X}"
    elif len(raw) == 8:
        dwords = f"{int.from_bytes(raw[:4], 'little'):08X} {int.from_bytes(raw[4:], 'little'):08X}"
    else:
        dwords = " ".join([raw[i : i + 4][::-1].hex().upper().rjust(8, "0") for i in range(0, len(raw), 4)])
    return f"\t{words.ljust(TEXT_COLUMNS)}// ", f": {dwords}", distance


def _place(offset: int, function: _Function) -> str:
    name = printable(function.name)
    return f"{name}+0x{offset:x}" if offset else name
