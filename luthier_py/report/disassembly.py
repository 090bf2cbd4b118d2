"""Disassembly: llvm-objdump's line format, basic blocks with live registers, and the emulator's host code.

In: a code object. Out: lines; the plain form equals those of `llvm-objdump -d` for every function that is asked for.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator

from luthier_py.analysis import analyse, live_notes
from luthier_py.emulator.host import host_code
from luthier_py.errors import Invalid, Malformed, Unsupported
from luthier_py.ir import format_program, lift
from luthier_py.isa import InstructionSet, instruction_set
from luthier_py.loader import CodeObject, Symbol, SymbolType

TEXT_COLUMNS = 59
HOSTS = {"x86_64": ("CS_ARCH_X86", "CS_MODE_64"), "aarch64": ("CS_ARCH_AARCH64", "CS_MODE_LITTLE_ENDIAN")}


def disassemble(obj: CodeObject, kernel: str | None = None) -> Iterator[str]:
    """Every function of ``obj`` by address, or only the body of ``kernel``."""
    functions = sorted((s for s in obj.symbols if s.type is SymbolType.FUNC and s.size), key=lambda s: s.address)
    if kernel is not None:
        entry = obj.kernel(kernel).entry
        functions = [s for s in functions if s.address == entry]
        if not functions:
            raise Invalid(f"kernel {kernel} has no symbol with a size; disassemble the whole object instead")
    yield ""
    yield f"{obj.name}:\tfile format elf64-amdgpu"
    for function in functions:
        yield ""
        yield f"{function.address:016x} <{function.name}>:"
        isa = instruction_set(obj.target, wave_size(obj, function))
        yield from _lines(obj, isa, function)


def disassemble_blocks(obj: CodeObject, kernel: str | None = None) -> Iterator[str]:
    """Functions as basic blocks, with what is live at the head of each."""
    program = lift(obj, None if kernel is None else [kernel])
    yield from format_program(program, live_notes(analyse(program))).splitlines()


def disassemble_host(obj: CodeObject, kernel: str | None = None) -> Iterator[str]:
    """What the emulator runs for each kernel (or one), as this computer's assembly; addresses count from 0."""
    import capstone

    machine = platform.machine()
    if machine not in HOSTS:
        raise Unsupported(f"host code for {machine} cannot be shown; capstone is used for {' and '.join(HOSTS)}")
    reader = capstone.Cs(*(getattr(capstone, name) for name in HOSTS[machine]))
    for name in [kernel] if kernel is not None else [k.name for k in obj.kernels]:
        yield ""
        yield f"<{name}> on {machine}:"
        for inst in reader.disasm(host_code(obj, name), 0):
            yield f"\t{f'{inst.mnemonic} {inst.op_str}'.strip().ljust(TEXT_COLUMNS)}// {inst.address:06X}"


def wave_size(obj: CodeObject, function: Symbol) -> int:
    """Of the kernel that ``function`` is, or of the object's first kernel."""
    own = [k for k in obj.kernels if k.entry == function.address] or list(obj.kernels)
    return own[0].descriptor.wave_size if own else obj.target.wave_sizes[0]


def _lines(obj: CodeObject, isa: InstructionSet, function: Symbol) -> Iterator[str]:
    code = obj.read(function.address, function.size)
    at = 0
    while at < len(code):
        pc = function.address + at
        try:
            inst = isa.decode(code, at)
        except Malformed:
            word = code[at : at + 4]
            yield _line(f".long 0x{int.from_bytes(word, 'little'):08x}", pc, word)
            at += 4
            continue
        target = inst.branch_target(pc)
        suffix = f" <{_place(target, function)}>" if target is not None else ""
        yield _line(isa.text(inst), pc, inst.raw) + suffix
        at += inst.size_bytes


def _line(text: str, pc: int, raw: bytes) -> str:
    return f"\t{text.ljust(TEXT_COLUMNS)}// {pc:012X}: {_words(raw)}"


def _place(target: int, function: Symbol) -> str:
    offset = target - function.address
    return f"{function.name}+0x{offset:x}" if offset else function.name


def _words(raw: bytes) -> str:
    return " ".join(f"{int.from_bytes(raw[i : i + 4], 'little'):08X}" for i in range(0, len(raw), 4))
