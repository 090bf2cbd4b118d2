"""What a caller gives as a code object: its bytes, or a path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from luthier_py.errors import Invalid

MEMORY = "<memory>"  # the name of bytes that have none
Given: TypeAlias = "bytes | bytearray | memoryview | str | os.PathLike[str]"


def content(given: Given, name: str) -> tuple[bytes, str]:
    """The bytes, and what to call them in messages; Invalid where there are none."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given), name
    if not isinstance(given, (str, os.PathLike)):
        raise Invalid(f"a code object is given as bytes or as the path of a file, not as {type(given).__name__}")
    path = Path(given)
    try:
        return path.read_bytes(), str(path) if name == MEMORY else name
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Invalid(f"{path}: {reason}; give the path of a code object, or its bytes") from error

