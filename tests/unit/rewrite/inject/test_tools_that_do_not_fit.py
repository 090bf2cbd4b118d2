"""Several tools that are too much for a kernel together: the error says which of them fit alone."""

from __future__ import annotations

import pytest
from crowded import FULL, EveryWave, full_and_easy

from luthier_py import Mutator, Several, Tool
from luthier_py.base.errors import OutOfRegisters
from luthier_py.rewrite.inject import apply
from luthier_py.rewrite.pipeline import instrument


class Marks(Tool):
    """Takes no register."""

    name = "marks"

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                if instr.inst.op.base == "S_NOP":
                    m.insert("s_nop 1", before=instr)


def test_the_error_says_which_tool_fits_alone() -> None:
    data, said = full_and_easy(), "alone marks fits, and EveryWave does not"
    with pytest.raises(OutOfRegisters, match=said):
        instrument(data, Several(Marks(), EveryWave()))
    left = instrument(data, Several(EveryWave(), Marks()), keep_going=True)
    assert [(each.kernel, said in each.reason) for each in left.refused] == [(FULL, True)]
    with pytest.raises(OutOfRegisters) as caught:
        instrument(data, EveryWave())
    assert "alone" not in str(caught.value)


@pytest.mark.parametrize("names, fitting, said", [
    ("a b c", "a c", "; alone a and c fit, and b does not"), ("a b c", "b", "; alone b fits, and a and c do not"),
    ("a b c", "a b c", "; alone each of a, b and c fits: run these tools one after the other"),
    ("a b", "", "; alone none of a and b fits"), ("a", "", ""), ("", "", ""),
])
def test_which_fit(names: str, fitting: str, said: str) -> None:
    def made(own: list[str]) -> None:
        if own[0] not in fitting.split():
            raise OutOfRegisters("too many")

    assert apply._one_by_one({name: [name] for name in names.split()}, made) == said
