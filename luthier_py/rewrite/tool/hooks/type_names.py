"""Types in messages.

In: types. Out: their texts. Invariant: where two have one name, the text says in which members they differ.
"""

from __future__ import annotations

from luthier_py.rewrite.tool.hooks.types import Pointer, Struct, Type


def describe_type(type: Type) -> str:
    """A structure with its members; anything else by its name."""
    return type.described if isinstance(type, Struct) else str(type)


def difference(given: Type, wanted: Type) -> str:
    """How structures with one name, or pointers to them, differ; of other types nothing."""
    if str(given) != str(wanted) or given == wanted:
        return ""
    if isinstance(given, Pointer) and isinstance(wanted, Pointer):
        return difference(given.element, wanted.element)
    if not isinstance(given, Struct) or not isinstance(wanted, Struct):
        return ""
    if given.described != wanted.described:
        return f"{given.described} is not {wanted.described}"
    pairs = zip(given.members, wanted.members, strict=True)
    return next(filter(None, (difference(a.type, b.type) for a, b in pairs)), "")
