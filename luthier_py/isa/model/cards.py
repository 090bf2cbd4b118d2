"""What Linux calls cards, by target: PCI device ID, KFD's version number, family of the DRM driver.

Source: drivers/gpu/drm/amd of Linux: amdgpu/amdgpu_drv.c (pciidlist), amdgpu/amdgpu_discovery.c (families; numbers in
include/uapi/drm/amdgpu_drm.h), amdkfd; the PCI ID Repository where the driver lists no cards, from gfx11 on.
Invariant: a generic target has what a card has which runs its code; a target without a published ID is Unsupported,
and so is gfx8, for whose cards ROCr requires tables that are not made here.
"""

from __future__ import annotations

from luthier_py.base.errors import Unsupported
from luthier_py.isa.model.target import Target, targets

PCI_VENDOR = 0x1002
_DEVICES = {
    "gfx900": 0x6860, "gfx902": 0x15DD, "gfx904": 0x69A0, "gfx906": 0x66A1, "gfx908": 0x738C, "gfx909": 0x15D8,
    "gfx90a": 0x740F, "gfx90c": 0x1636, "gfx942": 0x74A1, "gfx950": 0x75A0,
    "gfx1010": 0x731F, "gfx1011": 0x7362, "gfx1012": 0x7340, "gfx1013": 0x13FE,
    "gfx1030": 0x73BF, "gfx1031": 0x73DF, "gfx1032": 0x73FF, "gfx1033": 0x163F, "gfx1034": 0x743F, "gfx1035": 0x1681,
    "gfx1036": 0x164E,
    "gfx1100": 0x744C, "gfx1101": 0x747E, "gfx1102": 0x7480, "gfx1103": 0x15BF, "gfx1150": 0x150E, "gfx1151": 0x1586,
    "gfx1152": 0x1114, "gfx1200": 0x7590, "gfx1201": 0x7550,
}  # fmt: skip
_FAMILIES = (  # the first whose words the card's name begins with
    (142, "gfx902 gfx909 gfx90c"), (141, "gfx9"), (144, "gfx1033"),
    (146, "gfx1035"), (149, "gfx1036"), (143, "gfx10"), (148, "gfx1103"), (150, "gfx115"), (145, "gfx11"),
    (152, "gfx12"),
)  # fmt: skip


def pci_device(target: Target) -> int:
    """AMD's PCI device ID of a card that runs code for ``target``; Unsupported where no card has a published one."""
    card = _card(target).name
    if card not in _DEVICES:
        raise Unsupported(f"ROCm's own stack has no {card} here: no such card is known; take another target, or the "
                          "emulator's HIP runtime")
    return _DEVICES[card]


def gfx_version(target: Target) -> int:
    """KFD's gfx_target_version: major * 10000 + minor * 100 + stepping."""
    card = _card(target)
    return card.generation * 10000 + card.minor * 100 + card.stepping


def drm_family(target: Target) -> int:
    """AMDGPU_FAMILY_* of the DRM driver."""
    card = _card(target).name
    return next(number for number, words in _FAMILIES if card.startswith(tuple(words.split())))


def _card(target: Target) -> Target:
    """Itself, or the first that runs the code of a generic one."""
    return next(row for row in targets() if row.runs(target))
