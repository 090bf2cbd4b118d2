"""What is called through a pointer: clones of functions that the object knows, all others as they are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from luthier_py.errors import CheckFailed
from luthier_py.inject import lookup
from luthier_py.isa import glue
from luthier_py.pipeline import instrument
from luthier_py.samples import sample
from luthier_py.tool import load_tool

WRONG = {
    "no borrow where the distance is taken": ("subtract_with_borrow", glue.subtract),
    "no carry where it is added again": ("add_with_carry", glue.add),
    "no upper half": ("add_with_carry", lambda isa, to, a, b: glue.nothing(isa)),
}


@pytest.mark.parametrize("what", WRONG)
def test_strangers_stay_where_they_are(monkeypatch, what):
    """Also those that lie before all functions whose clones are looked up: the way to them is a negative one."""
    name, other = WRONG[what]
    monkeypatch.setattr(lookup, "glue", SimpleNamespace(**vars(glue) | {name: other}))
    with pytest.raises(CheckFailed, match="a call of 0x[0-9a-f]* goes astray"):
        instrument(sample("function_pointers").path.read_bytes(), load_tool("instr_count"))
