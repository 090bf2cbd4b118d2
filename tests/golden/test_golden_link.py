"""Linking: a sample with a tool in it, with the original or alone, and code that gets its addresses."""

from __future__ import annotations

from pathlib import Path

import pytest
from goldens import HERE, check, goldens, read_golden
from stages import linked, resolved

from luthier_py.binary.loader import load
from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.pipeline import instrument


def test_every_way_has_a_file() -> None:
    assert {read_golden(path)[0][0] for path in goldens("link")} == {"link", "link_apart", "resolve"}


@pytest.mark.parametrize("path", goldens("link"), ids=lambda path: path.stem)
def test_link(path: Path) -> None:
    (way, *words), text = read_golden(path)
    if way == "resolve":
        check(path, resolved(instruction_set(target(words[0])), text, words[1:]))
        return
    sample, tool = words
    original = (HERE.parent / "data" / f"{sample}.co").read_bytes()
    made = instrument(original, tool, apart=way == "link_apart")
    bindings = [f"  binding of 0x{each.address:x}\n" for each in made.bindings]
    check(path, "".join([linked(load(made.data), load(original)), *bindings]))
