"""What is to be added to a code object: code, kernels, variables.

`inject` makes these rows and `link` turns them into bytes. Addresses are open: fixups say which bytes of the code
depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from luthier_py.base.records import dataclass, field
from luthier_py.binary.loader import KernelDescriptor

ENTRY_ALIGN_BYTES = 256  # of kernel entries (AMDGPUUsage, "Kernel Descriptor")


class FixupKind(Enum):
    """What of the 64-bit distance is stored: a half (R_AMDGPU_REL32_LO and _HI) or all of it (R_AMDGPU_REL64); BACK, of
    the way back, which code subtracts."""

    REL32_LO = auto()
    REL32_HI = auto()
    REL64 = auto()
    BACK32_LO = auto()
    BACK32_HI = auto()

    @property
    def size_bytes(self) -> int:
        return 8 if self is FixupKind.REL64 else 4

    def encode_distance(self, distance: int) -> bytes:
        """The bytes that are stored, little-endian, where target + addend - base is ``distance`` bytes."""
        shift = 32 if self in (FixupKind.REL32_HI, FixupKind.BACK32_HI) else 0
        distance = -distance if self in (FixupKind.BACK32_LO, FixupKind.BACK32_HI) else distance
        return (distance >> shift & (1 << 8 * self.size_bytes) - 1).to_bytes(self.size_bytes, "little")


@dataclass(frozen=True, slots=True)
class Fixup:
    """Bytes of a chunk that depend on addresses: a part of target + addend - (address of ``base_offset``)."""

    offset: int
    """Of the first one, from the chunk's start."""
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
    origins: tuple[tuple[int, int, int], ...] = ()
    """(offset from the chunk's start, address in the original, bytes) of what is the original's."""


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
        """Name of the symbol of its kernel descriptor."""
        return f"{self.name}.kd"


@dataclass(frozen=True, slots=True)
class NewVariable:
    """A device global that the host finds by name."""

    name: str
    size: int
    align: int = 16
    initial: bytes | None = None
    """``size`` bytes, or None for zeros, which take no space in the file."""
    constant: bool = False
    """Whether it lies where nothing can be written; then it has an initial value."""


@dataclass(frozen=True, slots=True)
class Patch:
    """All additions, in the order in which they are placed."""

    chunks: tuple[Chunk, ...] = ()
    kernels: tuple[NewKernel, ...] = ()
    variables: tuple[NewVariable, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is to be added, so that the code object stays as it is."""
        return not (self.chunks or self.kernels or self.variables)
