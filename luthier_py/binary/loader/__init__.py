"""Bytes to :class:`CodeObject`: ELF, metadata, kernel descriptors, symbols, relocations; and offload bundles."""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader
from luthier_py.isa.model.target_id import Setting

if TYPE_CHECKING:
    from luthier_py.binary.loader.bundle import Broken, Member, choose, load_each, members, that_run_on, unbundle
    from luthier_py.binary.loader.codeobject import (
        MEMORY,
        MOST_STACK_BYTES,
        CodeObject,
        KernelArg,
        KernelRecord,
        LeftOut,
    )
    from luthier_py.binary.loader.descriptor import DESCRIPTOR_BYTES, KernelDescriptor
    from luthier_py.binary.loader.elf import (
        Relocation,
        RelocationKind,
        Section,
        SectionFlag,
        SectionType,
        Segment,
        SegmentFlag,
        SegmentType,
        Symbol,
        SymbolBinding,
        SymbolType,
        Visibility,
    )
    from luthier_py.binary.loader.file import Given, LastObject, load, open_code, read_code

__all__ = [
    "DESCRIPTOR_BYTES", "MEMORY", "MOST_STACK_BYTES", "Broken", "CodeObject", "Given", "KernelArg", "KernelDescriptor",
    "KernelRecord", "LastObject", "LeftOut", "Member", "Relocation", "RelocationKind", "Section", "SectionFlag",
    "SectionType", "Segment", "SegmentFlag", "SegmentType", "Setting", "Symbol", "SymbolBinding", "SymbolType",
    "Visibility", "choose", "load", "load_each", "members", "open_code", "read_code", "that_run_on", "unbundle",
]
__getattr__ = make_lazy_loader(__name__, {
    "bundle": "Broken Member choose load_each members that_run_on unbundle",
    "codeobject": "MEMORY MOST_STACK_BYTES CodeObject KernelArg KernelRecord LeftOut",
    "descriptor": "DESCRIPTOR_BYTES KernelDescriptor",
    "elf": (
        "Relocation RelocationKind Section SectionFlag SectionType Segment SegmentFlag SegmentType Symbol "
        "SymbolBinding SymbolType Visibility"
    ),
    "file": "Given LastObject load open_code read_code",
})  # fmt: skip
