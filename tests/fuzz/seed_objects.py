"""The corpus: code objects of every kind of target, and where their fields stand.

In: the samples, and seeds beside this file. Out: Seed, bytes with the places that structure-aware mutations edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from luthier_py.binary.loader import DESCRIPTOR_BYTES, SectionType, SegmentType, load
from luthier_py.isa import InstructionSet, Target, instruction_set
from luthier_py.samples import SAMPLES

FOLDER = Path(__file__).resolve().parent / "seeds"
Field = tuple[int, int]  # offset and size in bytes

# Sizes of fields, in order (System V ABI, chapters 4 and 5; AMDGPUUsage, "Kernel Descriptor").
FILE_HEADER = (1,) * 16 + (2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2)
PROGRAM_HEADER = (4, 4, 8, 8, 8, 8, 8, 8)
SECTION_HEADER = (4, 4, 8, 8, 8, 8, 4, 4, 8, 8)
TABLES = {SectionType.SYMTAB: (4, 1, 1, 2, 8, 8), SectionType.DYNSYM: (4, 1, 1, 2, 8, 8), SectionType.RELA: (8, 4, 4,
                                                                                                             8),
          SectionType.DYNAMIC: (8, 8), SectionType.NOTE: (4,), SectionType.HASH: (4,), SectionType.GNU_HASH: (4,)}
DESCRIPTOR = (4, 4, 4, 4, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2, 2, 4)
HEAD_BYTES = 64  # of a table's fields are edited one as often as another; of notes only their heads are fields


@dataclass(frozen=True)
class Seed:
    """A code object that is as it should be."""

    name: str
    data: bytes
    target: Target
    wave_size: int
    groups: tuple[tuple[Field, ...], ...]
    """Fields of the file header, program headers, section headers, each table, kernel descriptors."""
    descriptors: tuple[tuple[Field, ...], ...]
    """The last of these groups."""
    names: range
    """String tables are in here."""
    notes: tuple[int, int, int]
    """Offsets of the NOTE program header and of its segment; the segment's size."""
    code: tuple[int, ...]
    """Offsets of instructions."""

    @property
    def isa(self) -> InstructionSet:
        """Not before it is needed: tables are most of the memory that a trial begins with."""
        return instruction_set(self.target, self.wave_size)


def fields(at: int, size: int, sizes: tuple[int, ...]) -> tuple[Field, ...]:
    """The fields of a table of ``size`` bytes."""
    found, end = [], at + size
    while at < end:
        for width in sizes:
            found.append((at, width))
            at += width
    return tuple(found)


@cache
def seeds() -> tuple[Seed, ...]:
    """All of them, the smallest first."""
    paths = [*(sample.path for sample in SAMPLES), *sorted(FOLDER.glob("*.co"))]
    return tuple(sorted((_seed(path.stem, path.read_bytes()) for path in paths), key=lambda seed: len(seed.data)))


def _seed(name: str, data: bytes) -> Seed:
    obj = load(data, name)
    wave_size = 32 if obj.kernels[0].descriptor.enable_wavefront_size32 else 64
    elf = obj.elf
    groups = [fields(0, 64, FILE_HEADER), fields(elf.program_header_offset, 56 * len(elf.segments), PROGRAM_HEADER),
              fields(elf.section_header_offset, 64 * len(elf.sections), SECTION_HEADER)]
    for section in elf.sections:
        if section.type in TABLES:
            size = min(section.size, HEAD_BYTES) if section.type == SectionType.NOTE else section.size
            groups.append(fields(section.offset, size, TABLES[SectionType(section.type)]))
    code: list[int] = []
    for kernel in obj.kernels:
        (segment,) = (s for s in obj.segments if s.load and s.address <= kernel.descriptor_address < s.end)
        at = segment.offset + kernel.descriptor_address - segment.address
        groups.append(fields(at, DESCRIPTOR_BYTES, DESCRIPTOR))
    for section in elf.sections:
        if section.name == ".text":
            code += range(section.offset, section.offset + section.size, 4)
    strings = [s for s in elf.sections if s.type == SectionType.STRTAB]
    names = range(min(s.offset for s in strings), max(s.offset + s.size for s in strings))
    number, note = next((n, s) for n, s in enumerate(elf.segments) if s.type == SegmentType.NOTE)
    descriptors = tuple(groups[-len(obj.kernels) :])
    return Seed(name, data, obj.target, wave_size, tuple(groups), descriptors, names,
                (elf.program_header_offset + 56 * number, note.offset, note.file_size), tuple(code))
