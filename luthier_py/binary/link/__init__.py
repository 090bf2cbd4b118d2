"""A code object and a :class:`Patch` to the bytes of a new code object: the old one, in which nothing has moved, with
the patch behind it; or the patch alone, to be bound to the old one where that is loaded."""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader
from luthier_py.binary.patch import Chunk, Fixup, FixupKind, NewKernel, NewVariable, Patch

if TYPE_CHECKING:
    from luthier_py.binary.link.bindings import Binding, apply_bindings, find_bindings
    from luthier_py.binary.link.writer import link, link_apart

__all__ = [
    "Binding",
    "Chunk",
    "Fixup",
    "FixupKind",
    "NewKernel",
    "NewVariable",
    "Patch",
    "apply_bindings",
    "find_bindings",
    "link",
    "link_apart",
]
__getattr__ = make_lazy_loader(__name__, {
    "bindings": "Binding apply_bindings find_bindings",
    "writer": "link link_apart",
})  # fmt: skip
