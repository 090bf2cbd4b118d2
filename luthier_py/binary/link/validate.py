"""Whether a patch fits the object that it is for.

In: a code object and a patch. Out: nothing, or Invalid with what contradicts what.
Invariant: a Patch that passed :func:`check_patch` can be linked, unless it is too large for 32-bit distances.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid
from luthier_py.binary.link.layout import PAGE_BYTES
from luthier_py.binary.patch import ENTRY_ALIGN_BYTES, Chunk, NewKernel, Patch

if TYPE_CHECKING:
    from luthier_py.binary.loader import CodeObject


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
        if variable.constant and variable.initial is None:
            raise Invalid(f"{what} is constant, and has no initial value")
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
            raise Invalid(f"{obj.name}: a symbol {name} exists already; instrument the original, or "
                          "give variables of the tool other names")
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
