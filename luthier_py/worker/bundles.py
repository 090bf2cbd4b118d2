"""The code object for a device out of what a program hands over: an ELF file, or a bundle with one for each target.

Invariant: of several for one target the first is taken, as their order is the compiler's.
"""

from __future__ import annotations

from luthier_py.loader import unbundle
from luthier_py.runtime.hip import protocol
from luthier_py.worker.edge import Refused, say

_ELF = b"\x7fELF"


def code_for(image: bytes, target_name: str) -> bytes:
    """Refused, with one line on stderr, when there is none."""
    if image[: len(_ELF)] == _ELF:
        return image
    found = []
    for member in unbundle(image, "fat binary"):
        name = member.triple.rpartition("--")[2]
        if name.partition(":")[0] == target_name:
            return member.data
        found.append(name)
    say(
        f"the program has code for {', '.join(found) or 'no GPU'}, but the device is {target_name}: "
        f"compile it with --offload-arch={target_name}, or choose another device"
    )
    raise Refused("no code for this device", protocol.STATUS_NO_BINARY)
