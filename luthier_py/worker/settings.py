"""What an emulated device is told by the environment beside its target: how much memory it has, where its counts go.

In: values of variables. Out: the same, checked. Invariant: what is wrong is Invalid before any launch, and names the
variable.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from luthier_py.errors import Invalid

PROFILE = "LUTHIER_DEVICE_PROFILE"
"""A file that gets one line of JSON for each launch: what the emulator itself counted."""
MEMORY = "LUTHIER_DEVICE_MEMORY"
"""What hipMalloc may give on each device: bytes, or with K, M, G or T."""
MEMORY_BYTES = 16 << 30  # unless MEMORY says otherwise


def chosen_memory(text: str) -> int:
    """Bytes of each device, by LUTHIER_DEVICE_MEMORY."""
    match = re.fullmatch(r"(\d{1,15})([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(match[1]) << (" KMGT".index(match[2].upper() or " ") * 10) if match else 0
    if text and not size:
        raise Invalid(f"{MEMORY}=`{text}`: give the memory of each device in bytes, or as 512M or 64G, for example")
    return size or MEMORY_BYTES


def chosen_profile(text: str) -> str | None:
    """The file in LUTHIER_DEVICE_PROFILE, by which no launch is to fail."""
    path = Path(text)
    if text and (path.is_dir() or not path.parent.is_dir()):
        why = "is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise Invalid(f"{PROFILE}={text}: {why}; give a file that can be written")
    if text and not os.access(path if path.exists() else path.parent, os.W_OK):
        raise Invalid(f"{PROFILE}={text}: it cannot be written")
    return text or None
