"""Names of a package that are loaded at first use, so that a program does not pay for those it does not use.

In: a package, and which of its modules has which names. Out: the package's ``__getattr__``. Invariant: no module has
the name of something that its package exports so, or Python would take the one for the other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def make_lazy_loader(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """``modules``: names, with blanks between them, by the module below ``package`` that has them."""
    places = {name: module for module, names in modules.items() for name in names.split()}
    loaded = vars(sys.modules[package])
    loaded["__dir__"] = lambda: sorted({*loaded, *places})  # what completion and ``help`` list

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package} has no attribute {name}")
        value = getattr(import_module(f"{package}.{places[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
