"""Which devices a program is to see.

In: the text of LUTHIER_DEVICE or ``--device``. Out: a target for each device. Invariant: each of them is emulated.
"""

from __future__ import annotations

import re

from luthier_py.errors import Invalid
from luthier_py.isa import Target, emulated_target

VARIABLE = "LUTHIER_DEVICE"
MAX_DEVICES = 16  # of runtime/hip/luthier.h


def chosen_targets(text: str) -> list[Target]:
    """The targets of emulator:TARGET[*COUNT][,...]: one device each, in that order."""
    found = [re.fullmatch(r"emulator:([^*]+)(?:\*(\d{1,3}))?", part.strip()) for part in text.split(",")]
    names = [match[1] for match in found if match for _ in range(int(match[2] or 1))]
    if None in found or not 0 < len(names) <= MAX_DEVICES:
        given = f"`{text}` is no such thing" if text else "it is not set"
        raise Invalid(
            f"no device: set {VARIABLE} to emulator:TARGET, for example the --offload-arch of your program, or to at "
            f"most {MAX_DEVICES} of them with commas (emulator:TARGET*2: two of a kind); {given}"
        )
    return [emulated_target(name) for name in names]
