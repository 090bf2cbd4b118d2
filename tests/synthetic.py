"""Code objects put together from instructions, for tests that want exactly this code and no compiler.

In: functions as lists of rows; a row is a label ("loop:"), raw bytes, or a mnemonic with operands, where a string at
the end is the label that a branch goes to, or the function whose address the adds behind s_getpc make. Out: CodeObject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from luthier_py.binary.loader import (
    CodeObject,
    KernelDescriptor,
    KernelRecord,
    Relocation,
    RelocationKind,
    Segment,
    SegmentFlag,
    SegmentType,
    Setting,
    Symbol,
    SymbolType,
    Visibility,
)
from luthier_py.binary.loader.elf import Elf
from luthier_py.isa import Inst, InstructionSet, Reg, instruction_set, target

Operand = Reg | int | float | str
Row = str | bytes | Sequence[Operand]

TEXT = 0x1000
ALIGN = 256
VGPRS = 64  # of every kernel that is built
WORDS = ("off",)  # operands that are words of the assembler, not labels
LITERAL = 0x7FFFFFFF  # forces a literal where a label will be filled in


def assemble(isa: InstructionSet, rows: Sequence[Row], at: int, labels: dict[str, int]) -> bytes:
    """Bytes of ``rows`` at an address. Labels are collected; code that needs a later one is only of the right size."""
    code, base = bytearray(), at
    for row in rows:
        pc = at + len(code)
        if isinstance(row, bytes):
            code += row
        elif isinstance(row, str):
            labels[row.removesuffix(":")] = pc
        else:
            inst = _make(isa, row, pc, base, labels)
            code += inst.raw
            if inst.op.base == "S_GETPC_B64":
                base = pc + inst.size_bytes
    return bytes(code)


def _make(isa: InstructionSet, row: Sequence[Operand], pc: int, base: int, labels: Mapping[str, int]) -> Inst:
    name, *operands = row
    assert isinstance(name, str)
    label = operands[-1] if operands else None
    if not isinstance(label, str) or label in WORDS:
        return isa.make(name, *operands)
    address = labels.get(label, pc)
    if name.startswith("s_add"):
        inst = isa.make(name, *operands[:-1], LITERAL)
        shift = 32 if name.startswith("s_addc") else 0
        return isa.with_field(inst, "literal", address - base >> shift & 0xFFFFFFFF)
    return isa.make(name, *operands[:-1], (address - pc - 4) // 4)


def build(
    functions: Mapping[str, Sequence[Row]], kernels: Sequence[str] = ("k",), pointers: Sequence[str] = (),
    gpu: str = "gfx90a", wave_size: int | None = None, sizes: bool = True, preload: int = 0,
) -> CodeObject:
    """An object with these functions, some of them kernels; data holds pointers to others."""
    isa = instruction_set(target(gpu), wave_size)
    labels: dict[str, int] = {}
    for _ in range(2):  # the second time with all labels known
        code, symbols = bytearray(), []
        for name, rows in functions.items():
            code += bytes(-len(code) % ALIGN)
            at = labels[name] = TEXT + len(code)
            body = assemble(isa, rows, at, labels)
            symbols.append(Symbol(name, at, len(body) if sizes else 0, SymbolType.FUNC, 1, Visibility.DEFAULT, 1))
            code += body
    text = Segment(SegmentType.LOAD, SegmentFlag.READ | SegmentFlag.EXECUTE, 0, TEXT, TEXT, len(code), len(code), 4096)
    descriptor = KernelDescriptor(bytes(64)).replace(kernarg_preload_length=preload)
    if wave_size == 32:
        descriptor = descriptor.replace(enable_wavefront_size32=1)
    descriptor = descriptor.with_vgpr_count(isa.target, VGPRS)
    if isa.target.unified_agprs:
        descriptor = descriptor.with_accum_offset(VGPRS)
    records = {name: KernelRecord(name, name + ".kd", 0, descriptor, labels[name], {}, ()) for name in kernels}
    relocations = tuple(
        Relocation(0x100000 + 8 * i, RelocationKind.RELATIVE64, None, labels[name]) for i, name in enumerate(pointers)
    )
    elf = Elf("test", bytes(code), 3, 0, 0, 0, 0, (text,), ())
    return CodeObject("test", bytes(code), isa.target, Setting.ANY, Setting.ANY, 5, (text,), (), tuple(symbols),
                      relocations, {}, tuple(records.values()), elf, {s.name: s for s in symbols}, records)
