"""Passes of injection, each alone: a clone as text, and what becomes of it. What is before and behind clones has other
text: code of functions, in which `>> TEXT` is inserted before the next instruction (`>> count`: a call that counts in a
wave variable), and what `stages` prints of registers, descriptors and bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from goldens import check, goldens, read_golden
from stages import cloned, laid_out, placed, resourced

from luthier_py.base.errors import Location
from luthier_py.isa import InstructionSet, RegSet, build, instruction_set, sgpr, target
from luthier_py.rewrite.inject.allocate import Pool
from luthier_py.rewrite.inject.clauses import dissolve
from luthier_py.rewrite.inject.inline_calls import inline_calls
from luthier_py.rewrite.inject.items import Clone, Item, Label, Run, Single
from luthier_py.rewrite.inject.lookup import look_up
from luthier_py.rewrite.inject.prologue import Prologue, with_prologue
from luthier_py.rewrite.inject.relax import relax
from luthier_py.rewrite.inject.text import format_clone, parse_clone
from luthier_py.rewrite.inject.verify import verify
from luthier_py.rewrite.inject.wait_states import insert_wait_states
from luthier_py.rewrite.tool import Place

FILES = goldens("passes")


def woven(isa: InstructionSet, clone: Clone, calls: Clone) -> Clone:
    """The items of ``calls`` go where their edits say; a label goes with what follows it."""
    inserted: dict[Place, dict[int, list[Item]]] = {place: defaultdict(list) for place in Place}
    waiting: list[Item] = []
    for item in calls.items:
        if isinstance(item, Label):
            waiting.append(item)
            continue
        assert isinstance(item, (Run, Single)) and item.edit is not None
        inserted[item.edit.place][item.edit.point] += [*waiting, item]
        waiting.clear()
    return inline_calls(isa, clone, *inserted.values())


def looked_up(isa: InstructionSet, clone: Clone) -> Clone:
    calls = {item.origin.pc for item in clone.items if isinstance(item, Single) and item.origin is not None}
    free = RegSet.of(sgpr(40, 8))
    return look_up(isa, clone, calls, [0x4000, 0x5000], lambda instr: Pool(free, lambda: Location("f")))


PASSES: dict[str, Callable[..., Clone]] = {
    "inline_calls": woven,
    "look_up": looked_up,
    "prologue": lambda isa, clone: with_prologue(isa, clone, Prologue((0x1000, 0x1010), [
        build.copy(isa, sgpr(4, 2), 0), build.copy(isa, sgpr(7), 0)])),
    "wait_states": lambda isa, clone: insert_wait_states(isa, [clone])[0],
    "relax": relax,
    "clauses": lambda isa, clone: dissolve(isa, clone, private=False),
}
AROUND: dict[str, Callable[[InstructionSet, str], str]] = {
    "resources": resourced, "clone": cloned, "placing": placed, "layout": laid_out}


def passed(name: str, isa: InstructionSet, text: str) -> str:
    first, *others = (parse_clone(isa, part) for part in text.split("---\n"))
    verify(first, "parse")
    made = PASSES[name](isa, first, *others)
    verify(made, name)
    written = format_clone(isa, made)
    assert format_clone(isa, parse_clone(isa, written)) == written
    return written


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_pass(path: Path) -> None:
    (name, processor), text = read_golden(path)
    isa = instruction_set(target(processor))
    check(path, AROUND[name](isa, text) if name in AROUND else passed(name, isa, text))


def test_every_pass_has_a_file() -> None:
    assert {read_golden(path)[0][0] for path in FILES} == PASSES.keys() | AROUND.keys()
