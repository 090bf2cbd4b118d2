"""Arrays as files, whole or not there; and names of kernels in files, as people write them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luthier_py.loader import CodeObject, load_each, open_code
from luthier_py.storage import write_file
from luthier_py.tool.names import demangled


def write_array(path: Path, data: NDArray[Any]) -> None:
    """``data`` as .npy."""
    buffer = io.BytesIO()
    np.save(buffer, data, allow_pickle=False)
    write_file(path, buffer.getvalue())


def symbol_of(path: Path, kernel: str) -> str:
    """The symbol of a kernel in a file, of which ``kernel`` is the symbol or the C++ name; ``kernel`` where none is."""
    if kernel.isidentifier():
        return kernel
    with open_code(path) as data:
        parts = (part for part in load_each(data, str(path)) if isinstance(part, CodeObject))
        found = (record.name for part in parts for record in part.kernels)
        return next((name for name in found if demangled(name) == kernel), kernel)
