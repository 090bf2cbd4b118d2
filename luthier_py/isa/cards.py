"""PCI device IDs of cards, by target.

Source: drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c (pciidlist) and amd/amdkfd of Linux. Invariant: each emulated target has
one; a generic target has that of a card which runs its code.
"""

from __future__ import annotations

from luthier_py.isa.target import Target

PCI_VENDOR = 0x1002
_DEVICES = {
    "gfx900": 0x6860, "gfx902": 0x15DD, "gfx904": 0x69A0, "gfx906": 0x66A1, "gfx908": 0x738C, "gfx909": 0x15D8,
    "gfx90a": 0x740F, "gfx90c": 0x1636, "gfx942": 0x74A1, "gfx950": 0x75A0, "gfx9-generic": 0x6860,
    "gfx9-4-generic": 0x74A1,
}  # fmt: skip


def pci_device(target: Target) -> int:
    return _DEVICES[target.name]


def gfx_version(target: Target) -> int:
    """KFD's gfx_target_version: major * 10000 + minor * 100 + stepping."""
    digits = target.name.removeprefix("gfx")
    if not digits.isalnum() or digits[-1].isalpha() and not digits[:-1].isdigit():  # a generic target
        digits = "942" if target.minor else "900"
    return int(digits[:-2]) * 10000 + int(digits[-2], 16) * 100 + int(digits[-1], 16)
