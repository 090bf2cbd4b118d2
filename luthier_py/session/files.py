"""Arrays as files: whole, or not there."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luthier_py.storage import write_file


def write_array(path: Path, data: NDArray[Any]) -> None:
    """``data`` as .npy."""
    buffer = io.BytesIO()
    np.save(buffer, data, allow_pickle=False)
    write_file(path, buffer.getvalue())
