"""The code object for a device out of what a program hands over: an ELF file, or a bundle with one for each target.

Invariant: of several that the device runs, the one is taken that was made most for it; what is broken in a bundle costs
itself only.
"""

from __future__ import annotations

from luthier_py.binary.loader import Broken, choose, members
from luthier_py.binary.loader.elf import MAGIC
from luthier_py.host.native import protocol
from luthier_py.host.worker.error_boundary import Refused, say
from luthier_py.isa import TargetId


def code_for(image: bytes, device: TargetId) -> bytes:
    """Refused, with one line on stderr, when there is none."""
    if image[: len(MAGIC)] == MAGIC:
        return image
    parts = list(members(image, "fat binary"))
    chosen = choose(parts, device)
    if chosen is not None:
        return chosen.data
    there = ", ".join(f"{part.error}" if isinstance(part, Broken) else part.target_name for part in parts)
    why = (f"the program has code for {there or 'no GPU'}, but the device is {device}: "
           f"compile it with --offload-arch={device.target.name}, or choose another device")  # fmt: skip
    say(why)
    raise Refused(why, protocol.STATUS_NO_BINARY)
