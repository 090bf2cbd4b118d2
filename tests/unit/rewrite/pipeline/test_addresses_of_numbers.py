"""Hooks that make pointers of numbers: what the proof does not believe is told as theirs, with what to write."""

from __future__ import annotations

import re

import pytest

from luthier_py.base.errors import CheckFailed, HookError
from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.inject.addresses import check_addresses
from luthier_py.rewrite.jit import PayloadKey, compile_keys
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import (
    Hook,
    Hooks,
    Lane,
    Mutator,
    Tool,
    Variable,
    address,
    hook,
    lds,
    ptr,
    u32,
    u64,
    workitem_id,
)
from luthier_py.samples import sample

IN_CPP = """
#include <luthier/hooks.h>
using namespace luthier;
LUTHIER_HOOK() void numbered(u32 *o, lane<u64> p, lane<u32> x) { o[x] = lds<u32>(16)[0]; }
LUTHIER_HOOK() void cast(u32 *o, lane<u64> p, lane<u32> x) { o[x] = *(u32 *)u64(p); }
"""


@hook
def far(o: ptr[u32], p: Lane[u64], x: Lane[u32]) -> None:
    o[x] = ptr[u32](p)[0]


@hook
def known(o: ptr[u32], p: Lane[u64], x: Lane[u32]) -> None:
    o[x] = lds[u32](16)[0]


@hook
def worked_out(o: ptr[u32], p: Lane[u64], x: Lane[u32]) -> None:
    o[x] = lds[u32](x * 4)[0]


@hook
def changed(o: ptr[u32], p: Lane[lds[u32]], x: Lane[u32]) -> None:
    o[x] = lds[u32](u32(p) ^ 4)[0]


@hook
def least(o: ptr[u32], p: Lane[lds[u32]], x: Lane[u32]) -> None:
    o[x] = lds[u32](min(u32(p), 64))[0]


@hook
def joined(o: ptr[u32], p: Lane[lds[u32]], x: Lane[u32]) -> None:
    o[x] = lds[u32](u32(p) | 4)[0] + lds[u32]((u32(p) & 0xFFF0) + 8)[0]


def carried_out(one: Hook) -> None:
    class Reads(Tool):
        out = Variable(u32, 256)

        def instrument(self, m: Mutator) -> None:
            place = next(iter(m.instrs(m.functions()[0], where="lds & load")))
            m.before(place, one, self.out, address(place), workitem_id("x"))

    instrument(sample("reduce").path, Reads())


def check_refused(one: Hook, file: str) -> None:
    with pytest.raises(HookError) as refused:
        carried_out(one)
    assert re.match(rf"\S*{file}.*:\d+: hook {one.name} touches (local )?memory at an address that is not made of a "
                    r"pointer.* \[`.*`\]: it makes a pointer of a number; declare the parameter", refused.value.message)


@pytest.mark.parametrize("one", [far, known, worked_out, changed, least], ids=lambda one: one.name)
def test_numbers_are_no_addresses(one: Hook) -> None:
    check_refused(one, "test_addresses_of_numbers.py")


def test_what_is_added_to_a_pointer_or_masked_is_one() -> None:
    carried_out(joined)


def test_numbers_are_no_addresses_in_cpp(clang: str) -> None:
    hooks = Hooks.from_hip(IN_CPP)
    for name in ("numbered", "cast"):
        check_refused(hooks[name], "test_addresses_of_numbers.py")


def test_what_the_hook_did_not_write_is_the_proofs_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hook that makes no pointers, or whose addresses are right, nothing is said."""
    isa = instruction_set(target("gfx90a"))
    check_addresses(isa, compile_keys({PayloadKey(joined, (None,) * 3): None}, isa))

    def fails(*_: object) -> None:
        raise CheckFailed("something else")

    monkeypatch.setattr("luthier_py.rewrite.pipeline.prove", fails)
    with pytest.raises(CheckFailed, match="something else"):
        carried_out(joined)
