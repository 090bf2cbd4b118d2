"""What is to be added to a code object: code, kernels, variables.

In: rows that ``inject`` makes. Out: the same rows, checked against the object they are for. Invariant: a
:class:`Patch` that passed :func:`check_patch` can be linked, unless it is too large for 32-bit distances.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from luthier_py.errors import Invalid
from luthier_py.loader import CodeObject, KernelDescriptor

PAGE_BYTES = 0x1000
ENTRY_ALIGN_BYTES = 256


class FixupKind(Enum):
    """Which dword of the 64-bit distance is stored (R_AMDGPU_REL32_LO and _HI)."""

    REL32_LO = auto()
    REL32_HI = auto()


@dataclass(frozen=True, slots=True)
class Fixup:
    """A dword of a chunk that depends on addresses: a part of target + addend - (address of ``base_offset``)."""

    offset: int
    """Of the dword, in bytes from the chunk's start."""
    kind: FixupKind
    target: str | int
    """A chunk, variable or descriptor (``kernel.kd``) of the patch by name, or an address in the original object."""
    addend: int = 0
    base_offset: int = 0
    """From where the distance counts, in bytes from the chunk's start: what s_getpc_b64 returns."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Code: an instrumented function or a kernel's body. Becomes a FUNC symbol."""

    name: str
    code: bytes
    fixups: tuple[Fixup, ...] = ()
    align: int = ENTRY_ALIGN_BYTES


@dataclass(frozen=True, slots=True)
class NewKernel:
    """A kernel: symbols ``name`` (FUNC) and ``name.kd``, and an entry in the metadata."""

    name: str
    entry: str
    """Name of the chunk in which it starts; when that is ``name`` too, the two share one symbol."""
    descriptor: KernelDescriptor
    """Its entry offset is filled in."""
    like: str
    """The original kernel whose metadata is copied."""
    entry_offset: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Keys to replace in the copy (``.vgpr_count``). Sizes that differ in the descriptor are replaced anyway."""

    @property
    def symbol(self) -> str:
        return f"{self.name}.kd"


@dataclass(frozen=True, slots=True)
class NewVariable:
    """A device global that the host finds by name."""

    name: str
    size: int
    align: int = 16
    initial: bytes | None = None
    """``size`` bytes, or None for zeros, which take no space in the file."""


@dataclass(frozen=True, slots=True)
class Patch:
    """All additions, in the order in which they are placed."""

    chunks: tuple[Chunk, ...] = ()
    kernels: tuple[NewKernel, ...] = ()
    variables: tuple[NewVariable, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.chunks or self.kernels or self.variables)


def check_patch(obj: CodeObject, patch: Patch) -> None:
    """Raise Invalid where a patch contradicts itself or the object."""
    _check_names(obj, patch)
    for chunk in patch.chunks:
        _check_chunk(chunk)
    chunks = {chunk.name: chunk for chunk in patch.chunks}
    for kernel in patch.kernels:
        _check_kernel(obj, kernel, chunks)
    for variable in patch.variables:
        what = f"variable {variable.name}"
        _check_align(variable.align, what)
        if variable.size <= 0 or variable.initial is not None and len(variable.initial) != variable.size:
            given = "none" if variable.initial is None else len(variable.initial)
            raise Invalid(f"{what}: {variable.size} bytes, initial value has {given}")


def _check_names(obj: CodeObject, patch: Patch) -> None:
    names = [chunk.name for chunk in patch.chunks]
    names += [kernel.name for kernel in patch.kernels if kernel.name != kernel.entry]
    names += [kernel.symbol for kernel in patch.kernels]
    names += [variable.name for variable in patch.variables]
    seen: set[str] = set()
    for name in names:
        if not name or not name.isprintable():
            raise Invalid(f"{name!r} cannot name a symbol")
        if name in seen or obj.symbol(name) is not None:
            raise Invalid(f"{obj.name}: a symbol {name} exists already; give the new one another name")
        seen.add(name)


def _check_chunk(chunk: Chunk) -> None:
    what = f"chunk {chunk.name}"
    _check_align(chunk.align, what)
    if not chunk.code or len(chunk.code) % 4:
        raise Invalid(f"{what}: {len(chunk.code)} bytes of code; instructions are dwords")
    for fixup in chunk.fixups:
        if fixup.offset % 4 or not 0 <= fixup.offset < len(chunk.code):
            raise Invalid(f"{what}: fixup at offset {fixup.offset} is not on a dword of its {len(chunk.code)} bytes")


def _check_kernel(obj: CodeObject, kernel: NewKernel, chunks: Mapping[str, Chunk]) -> None:
    what = f"kernel {kernel.name}"
    obj.kernel(kernel.like)
    chunk = chunks.get(kernel.entry)
    if chunk is None:
        raise Invalid(f"{what}: no chunk {kernel.entry} for it to start in")
    if not 0 <= kernel.entry_offset < len(chunk.code):
        raise Invalid(f"{what}: entry at offset {kernel.entry_offset} of the {len(chunk.code)} bytes of {chunk.name}")
    if kernel.entry_offset % ENTRY_ALIGN_BYTES or chunk.align % ENTRY_ALIGN_BYTES:
        raise Invalid(f"{what}: entry at offset {kernel.entry_offset} of {chunk.name}, which is aligned to "
                      f"{chunk.align} bytes; kernels start at multiples of {ENTRY_ALIGN_BYTES}")


def _check_align(align: int, what: str) -> None:
    if not 0 < align <= PAGE_BYTES or align & (align - 1):
        raise Invalid(f"{what}: alignment {align} is not a power of two up to {PAGE_BYTES}")
