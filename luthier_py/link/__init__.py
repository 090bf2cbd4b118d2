"""A code object and a :class:`Patch` to the bytes of a new code object, in which nothing old has moved."""

from luthier_py.inject.patch import Chunk, Fixup, FixupKind, NewKernel, NewVariable, Patch
from luthier_py.link.writer import link

__all__ = ["Chunk", "Fixup", "FixupKind", "NewKernel", "NewVariable", "Patch", "link"]
