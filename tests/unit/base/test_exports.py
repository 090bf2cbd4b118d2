"""Names that a package loads at first use (base/exports.py), as completion, ``help`` and imports of all see them."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize("package", [
    "luthier_py", "luthier_py.binary.link", "luthier_py.binary.loader", "luthier_py.isa", "luthier_py.isa.semantics",
    "luthier_py.program.analysis", "luthier_py.program.ir", "luthier_py.proof", "luthier_py.rewrite.jit",
    "luthier_py.rewrite.tool",
])  # fmt: skip
def test_each_public_name_is_listed_and_there(package: str) -> None:
    module = import_module(package)
    assert {*module.__all__} <= {*dir(module)}
    assert all(hasattr(module, name) for name in module.__all__)
    assert not hasattr(module, "nothing_of_this_name")
