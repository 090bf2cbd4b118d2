"""Hooks that are syntax trees: compiled as the function that has the same body, and refused with their own place."""

from __future__ import annotations

import ast

import pytest

from luthier_py.base.errors import HookError
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.jit.python.frontend import hook_ir
from luthier_py.rewrite.tool import U32, Hook, Parameter, Pointer, Signature, hook, ptr, u32
from luthier_py.rewrite.tool.hooks.generated import build_function
from luthier_py.rewrite.tool.hooks.hook import make_hook

PARAMETERS = Parameter("total", Pointer(U32), False), Parameter("n", U32, False)


@hook
def add(total: ptr[u32], n: u32) -> None:
    twice = n + n
    if twice > 4:
        atomic_add(total, twice)


def tree(text: str) -> Hook:
    function = build_function("add", ["total", "n"], ast.parse(text).body, {"atomic_add": atomic_add}, "notes:7")
    return make_hook(function, "active", Signature(PARAMETERS, ()), None)


def test_a_tree_is_compiled_as_its_source_would_be() -> None:
    isa = instruction_set(target("gfx90a"))
    own = tree("twice = n + n\nif twice > 4:\n    atomic_add(total, twice)")
    assert hook_ir(own, (None, None), isa).function == hook_ir(add, (None, None), isa).function
    assert (own.name, own.place) == ("add", "notes:7")


def test_what_it_may_not_say_is_refused_with_its_place() -> None:
    with pytest.raises(HookError, match=r"^notes:8: add: atomic_sub cannot be called in device code"):
        hook_ir(tree("n = n + 1\natomic_sub(total, n)"), (None, None), instruction_set(target("gfx90a")))
