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
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_array(path: Path, data: NDArray[Any]) -> None:
    """``data`` as .npy."""
    buffer = io.BytesIO()
    np.save(buffer, data, allow_pickle=False)
    write_file(path, buffer.getvalue())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
