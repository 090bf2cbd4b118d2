"""Bytes to :class:`CodeObject`: ELF, metadata, kernel descriptors, symbols, relocations; and offload bundles."""

from luthier_py.loader.bundle import Member, load_all, unbundle
from luthier_py.loader.codeobject import CodeObject, KernelArg, KernelRecord, Setting, load
from luthier_py.loader.descriptor import DESCRIPTOR_BYTES, KernelDescriptor
from luthier_py.loader.elf import (
    Binding,
    Relocation,
    RelocationKind,
    Section,
    SectionFlag,
    SectionType,
    Segment,
    SegmentFlag,
    SegmentType,
    Symbol,
    SymbolType,
    Visibility,
)
from luthier_py.loader.given import Given

__all__ = [
    "DESCRIPTOR_BYTES", "Binding", "CodeObject", "Given", "KernelArg", "KernelDescriptor", "KernelRecord", "Member",
    "Relocation", "RelocationKind", "Section", "SectionFlag", "SectionType", "Segment", "SegmentFlag", "SegmentType",
    "Setting", "Symbol", "SymbolType", "Visibility", "load", "load_all", "unbundle",
]
