"""Which devices a program is to see.

In: the text of LUTHIER_DEVICE or ``--device``; the variables by which users hide devices from HIP programs. Out: a
target for each device; the devices that are left. Invariant: each of them is emulated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from luthier_py.base.errors import Invalid
from luthier_py.host.worker.device.properties import architecture
from luthier_py.isa import Target, parse_target_id

VARIABLE = "LUTHIER_DEVICE"
MAX_DEVICES = 16  # of host/hip/device.h


def parse_targets(text: str) -> list[Target]:
    """The targets of emulator:TARGET[*COUNT][,...]: one device each, in that order."""
    found = [re.fullmatch(r"emulator:([^*]+)(?:\*(\d{1,3}))?", part.strip()) for part in text.split(",")]
    names = [match[1] for match in found if match for _ in range(int(match[2] or 1))]
    if None in found or not 0 < len(names) <= MAX_DEVICES:
        given = f"`{text}` is no such thing" if text else "it is not set"
        raise Invalid(
            f"no device: set {VARIABLE} to emulator:TARGET, for example the --offload-arch of your program, or to at "
            f"most {MAX_DEVICES} of them with commas (emulator:TARGET*2: two of a kind); {given}"
        )
    return [device_target(name) for name in names]


def device_target(name: str) -> Target:
    """Of a device. Features may be given as it has them, as rocminfo writes them."""
    asked = parse_target_id(name)
    found = architecture(asked.target)
    if not found.runs(asked):
        raise Invalid(f"device emulator:{name}: a device's XNACK is on by HSA_XNACK=1 and off without it, and SRAM-ECC "
                      f"is on where there is one; give emulator:{asked.target.name}, which is {found} now")
    return asked.target


def visible_devices(uuids: Sequence[str], environment: Mapping[str, str]) -> list[int]:
    """Which of the devices a HIP program sees, in its order: ROCm's documentation, "GPU isolation techniques".

    ROCR_VISIBLE_DEVICES hides devices from HIP, HIP_VISIBLE_DEVICES (or else CUDA_VISIBLE_DEVICES) some of the rest.
    What the page leaves open is as ROCm does it (tests/unit/host/worker/test_targets.py asks ROCm 5.2.3 the same): a
    list ends at what is no device; ROCr's also at a device that was there before, HIP's continues; an empty list is
    none to ROCr and all to HIP.
    """
    shown = list(range(len(uuids)))
    text = environment.get("ROCR_VISIBLE_DEVICES")
    if text is not None:
        shown = _parse_indices(text, [f"GPU-{uuid}" for uuid in uuids], r"\s*0*(\d+)", shown, ends_at_twice=True)
    text = environment.get("HIP_VISIBLE_DEVICES") or environment.get("CUDA_VISIBLE_DEVICES")
    if text:
        shown = _parse_indices(text, [], r"(0|[1-9]\d*)", shown)
    return shown


def _parse_indices(text: str, names: list[str], number: str, among: list[int],
                   ends_at_twice: bool = False) -> list[int]:
    result: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(number, part)
        index = int(found[1]) if found else names.index(part) if part in names else len(among)
        if index >= len(among) or (ends_at_twice and among[index] in result):
            break
        if among[index] not in result:
            result.append(among[index])
    return result
