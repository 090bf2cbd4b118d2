"""Masks that are put together of halves: known where both halves are the same number, and otherwise not."""

from __future__ import annotations

import pytest

from luthier_py.isa import EXEC, instruction_set, target
from luthier_py.proof.lanes import ON, next_states
from luthier_py.proof.masks import change

ISA = instruction_set(target("gfx90a"))
ALL = (1 << 1024) - 1
BOTH = ("s_mov_b32 s36, -1", "s_mov_b32 s37, -1")
TAKE = "s_mov_b64 exec, s[36:37]"


def after(*listing: str, start=(ON, 0)):
    """States of a lane behind some instructions, by what EXEC is."""
    states = {start}
    for text in listing:
        each = change(ISA, ISA.parse(text))
        if each is not None:
            states = {new for state in states for new in next_states(each, state, ALL)}
    return {has >> EXEC & 1 for _, has in states}


@pytest.mark.parametrize(("listing", "found"), [
    ((*BOTH, TAKE), {1}), ((*BOTH[::-1], TAKE), {1}),
    (("s_mov_b32 s36, 0", "s_mov_b32 s37, 0", TAKE), {0}),
    (("s_mov_b32 s36, -1", "s_mov_b32 s37, 0", TAKE), {0, 1}),
    (("s_mov_b32 s36, -1", TAKE), {0, 1}),
    (("s_mov_b32 s37, -1", "s_mov_b32 s37, -1", TAKE), {0, 1}),
    ((*BOTH, "s_mov_b32 s36, s5", TAKE), {0, 1}), ((*BOTH, "s_mov_b32 s37, 1", TAKE), {0, 1}),
    ((*BOTH, "s_load_dword s37, s[0:1], 0x0", TAKE), {0, 1}),
    (("s_mov_b32 s36, -1", "s_mov_b64 s[36:37], s[4:5]", "s_mov_b32 s37, -1", TAKE), {0, 1}),
    (("s_mov_b32 s36, -1", "s_mov_b64 s[36:37], 0", "s_mov_b32 s37, -1", TAKE), {0, 1}),
    (("s_mov_b32 s38, -1", "s_mov_b32 s37, -1", TAKE), {0, 1}),
    ((*BOTH, "s_mov_b64 s[36:37], exec", TAKE), {0}),
])
def test_what_is_known_of_halves(listing, found):
    assert after(*listing) == found
