"""Loads that see what others have just written: the policies of AMDGPUUsage, "Memory Model", for each kind of load."""

from __future__ import annotations

import pytest

from luthier_py.isa import instruction_set, target, vgpr
from luthier_py.isa.properties.coherence import is_coherent

# plain, volatile, nontemporal, and an atomic load for the whole device
KINDS = {
    "gfx906": ({}, {"glc": 1}, {"glc": 1, "slc": 1}, {"glc": 1}),
    "gfx90a": ({}, {"glc": 1}, {"glc": 1, "slc": 1}, {"glc": 1}),
    "gfx942": ({}, {"sc0": 1, "sc1": 1}, {"nt": 1}, {"sc1": 1}),
    "gfx1030": ({}, {"glc": 1, "dlc": 1}, {"slc": 1}, {"glc": 1, "dlc": 1}),
    "gfx1100": ({}, {"glc": 1, "dlc": 1}, {"slc": 1, "dlc": 1}, {"glc": 1}),
    "gfx1201": ({}, {"scope": 3}, {"th": 1}, {"scope": 2}),
}
BITS = {"glc": 1, "sc0": 1, "slc": 2, "nt": 2, "dlc": 4, "sc1": 16, "scope": 8, "th": 1}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_loads(name: str) -> None:
    isa = instruction_set(target(name))
    load = "global_load_b32" if isa.target.generation >= 11 else "global_load_dword"
    coherent = []
    for kind in KINDS[name]:
        policy = sum(value * BITS[bit] for bit, value in kind.items())
        coherent.append(is_coherent(isa.make(load, vgpr(2), vgpr(4, 2), "off", cpol=policy), isa.target))
    assert coherent == [False, True, False, True]
