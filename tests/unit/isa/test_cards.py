"""What Linux calls cards: numbers as its sources have them."""

from __future__ import annotations

import pytest

from luthier_py.base.errors import Unsupported
from luthier_py.isa import target, targets
from luthier_py.isa.model.cards import drm_family, gfx_version, pci_device

UNKNOWN = {"gfx801", "gfx802", "gfx803", "gfx805", "gfx810", "gfx1153", "gfx1250", "gfx1251"}


def test_each_card_has_its_own_id() -> None:
    found = {}
    for row in targets():
        if row.name in UNKNOWN:
            with pytest.raises(Unsupported, match=f"has no {row.name} here"):
                pci_device(row)
        else:
            found[row.name] = pci_device(row)
    cards = {name: number for name, number in found.items() if "generic" not in name}
    assert len(set(cards.values())) == len(cards) and set(found.values()) == set(cards.values())


@pytest.mark.parametrize(("name", "version", "family"), [
    ("gfx900", 90000, 141), ("gfx90a", 90010, 141), ("gfx90c", 90012, 142), ("gfx9-4-generic", 90402, 141),
    ("gfx1010", 100100, 143), ("gfx1030", 100300, 143), ("gfx1033", 100303, 144), ("gfx1035", 100305, 146),
    ("gfx1036", 100306, 149), ("gfx1100", 110000, 145), ("gfx1103", 110003, 148), ("gfx1151", 110501, 150),
    ("gfx11-generic", 110000, 145), ("gfx1201", 120001, 152), ("gfx10-3-generic", 100300, 143),
])  # fmt: skip
def test_versions_and_families(name: str, version: int, family: int) -> None:
    """Linux, amdgpu_discovery.c and amdgpu_drm.h."""
    assert (gfx_version(target(name)), drm_family(target(name))) == (version, family)
