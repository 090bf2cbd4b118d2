"""Built-in intrinsics of device code, one file each: atomics, masks, lanes, bits, clocks.

A file that has an intrinsic of its own name is one; ``__init__.pyi`` says the same to type checkers.
"""

from importlib import import_module
from pathlib import Path

from luthier_py.rewrite.tool import Intrinsic


def _find_intrinsics() -> dict[str, Intrinsic]:
    names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    found = {name: getattr(import_module(f"{__name__}.{name}"), name, None) for name in names}
    return {name: value for name, value in found.items() if isinstance(value, Intrinsic)}


globals().update(_found := _find_intrinsics())
__all__ = list(_found)
del _found
