"""Output files: written beside their place under a temporary name, then renamed; never half a file."""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def write_file(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` in one step; raises OSError and leaves what was there."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)  # there only if something failed


def write_array(path: Path, data: NDArray[Any]) -> None:
    """``data`` as .npy."""
    buffer = io.BytesIO()
    np.save(buffer, data, allow_pickle=False)
    write_file(path, buffer.getvalue())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
