"""Arrays as files, whole or not there; and files and kernels in them, as people name them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luthier_py.base.errors import Invalid, Malformed, one_line
from luthier_py.base.names import demangle
from luthier_py.base.storage import write_file
from luthier_py.binary.loader import CodeObject, load_each, open_code
from luthier_py.report.plain import Json
from luthier_py.rewrite.tool.records.sources import spellings


def write_array(path: Path, data: NDArray[Any]) -> None:
    """``data`` as .npy."""
    buffer = io.BytesIO()
    np.save(buffer, data, allow_pickle=False)
    write_file(path, buffer.getvalue())


def write_results(facts: Json, path: Path, files: Mapping[Path, bytes]) -> Json:
    """Write ``files``, and ``facts`` as JSON to ``path``; the facts, with the names of all these files."""
    for each, content in {**files, path: json.dumps(facts, indent=2).encode()}.items():
        write_file(each, content)
    return {**facts, "files": [*map(str, files), str(path)]}


def each_once(files: Sequence[Path]) -> Sequence[Path]:
    """The same; Invalid where one is named twice."""
    if doubled := next((file for at, file in enumerate(files) if file in files[:at]), None):
        raise Invalid(f"{doubled} is named twice")
    return files


def read_reports(path: Path, kernel: str) -> list[Any]:
    """Reports of a kernel in a document of --output (docs/output.md), of several tools those of each."""
    try:
        document = json.loads(path.read_bytes())
        launches = [row["report"] for row in document["launches"] if row["kernel"] in (kernel, demangle(kernel))]
        tools = str(document["tool"]).split(",")
    except (ValueError, KeyError, TypeError) as error:
        raise Malformed(f"{path} is no file that --output FILE.json has written: {one_line(error)}") from None
    if not launches:
        raise Invalid(f"{path} has no launch of {kernel}")
    return [report[tool] for report in launches for tool in tools] if len(tools) > 1 else launches


def symbol_of(path: Path, kernel: str) -> str:
    """The symbol of a kernel in a file, of which ``kernel`` is the symbol or the C++ name, or the name without scopes,
    result and parameters, if one kernel alone is called so; ``kernel`` where none is."""
    with open_code(path) as data:
        parts = (part for part in load_each(data, str(path)) if isinstance(part, CodeObject))
        names = dict[str, None]()
        for part in parts:
            names |= dict.fromkeys(record.name for record in part.kernels)
            if kernel in names:
                return kernel  # the rest of a library need not be read
    called = [name for name in names if kernel in spellings(name)]
    exact = [name for name in called if kernel == demangle(name)]
    return exact[0] if exact else called[0] if len(called) == 1 else kernel
