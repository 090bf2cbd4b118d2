"""Actions of instructions: each is written by one table, and one that is in none is refused."""

from __future__ import annotations

import pytest
from emulated import ISA, code_object

from luthier_py.base.errors import Unsupported
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.instructions import control_code
from luthier_py.isa import sgpr
from luthier_py.isa.semantics.control import Action


def test_every_action_has_code():
    assert not control_code._ACTIONS.keys() & control_code._RESULTS.keys()
    assert control_code._ACTIONS.keys() | control_code._RESULTS.keys() == set(Action)


@pytest.mark.parametrize(("table", "action", "row"), [
    ("_ACTIONS", Action.SLEEP, ("s_sleep", 1)), ("_RESULTS", Action.GETPC, ("s_getpc_b64", sgpr(20, 2))),
])  # fmt: skip
def test_an_action_without_code_is_no_instruction_without_effect(monkeypatch, table, action, row):
    known = dict(getattr(control_code, table))
    del known[action]
    monkeypatch.setenv("LUTHIER_CACHE_DIR", "off")
    monkeypatch.setattr(control_code, table, known)
    device = EmulatorDevice(ISA.target)
    module = device.load(code_object({"k": [row, ("s_endpgm",)]}))
    with pytest.raises(Unsupported, match=f"no code for {row[0]}, which is Action.{action.name}"):
        device.launch(module.kernel("k"), (1, 1, 1), (64, 1, 1), b"")
