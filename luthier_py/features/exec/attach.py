"""A tool under this very process: attached and detached while the program runs.

In: a tool and its options. Out: a handle with what it has counted so far. The program may have used HIP before; kernels
of modules that it loaded before run as they are, unless the tool's library was preloaded (LD_PRELOAD).
Invariant: one tool at a time; after detach launches are the program's own again.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.host.preload import tool_library
from luthier_py.rewrite.tool import Tool, load_tool, tools
from luthier_py.rewrite.tool.discover import absolute

RUNTIME = "libamdhip64.so"
SHOWN_ROWS = 100  # in a notebook


class _Answer(IntEnum):
    """Of luthier_tool_attach (host/preload/redirect.c)."""

    DONE = 0
    ANOTHER_TOOL = 1
    NO_RUNTIME = 2
    NOT_STARTED = 3


class Attached:
    """A tool under this process (mutable: until it is detached). A context manager."""

    def __init__(self) -> None:
        self._final: Mapping[str, Any] | None = None

    @property
    def verdict(self) -> Mapping[str, Any]:
        """What became of the launches so far: the facts of LUTHIER_VERDICT."""
        return _ask_verdict() if self._final is None else self._final

    @property
    def reports(self) -> list[dict[str, Any]]:
        """Reports of each launch so far: launch, kernel, grid, block, and the tool's report."""
        return list(self.verdict["reports"])

    def _repr_html_(self) -> str:
        """What a notebook shows of it: kernels with the sums of their launches so far, and the last of these."""
        from luthier_py.report.html import notebook_table  # programs do not wait for what they do not show
        from luthier_py.report.output import flat_rows

        facts = self.verdict
        kernels = _by_kernel(facts["reports"])
        numbers = list(dict.fromkeys(name for row in kernels for name in row if name != "kernel"))
        rows = [row for launch in facts["reports"] for row in flat_rows({**launch, "report": [launch["report"]]})]
        left_out = f", the last {SHOWN_ROWS}" if len(rows) > SHOWN_ROWS else ""
        caption = f"{facts['tool']}: {facts['instrumented']} of {facts['launches']} launches counted{left_out}"
        sums = notebook_table(f"{facts['tool']}: by kernel", kernels, numbers)
        return sums + notebook_table(caption, rows[-SHOWN_ROWS:])

    def detach(self) -> None:
        """Launches are the program's own from here on; verdict and reports stay."""
        if self._final is not None:
            return
        try:
            self._final = _ask_verdict()
        finally:
            _library().luthier_tool_detach()

    def __enter__(self) -> Attached:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()


def _by_kernel(launches: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What reports say of kernels as a whole, added up, the most launched one first."""
    from luthier_py.report.tallies import KERNEL, tally

    found: dict[str, list[Mapping[str, Any]]] = {}
    for launch in launches:
        found.setdefault(launch["kernel"], []).append(launch)
    rows = []
    for kernel, those in sorted(found.items(), key=lambda row: -len(row[1])):
        numbers = tally((launch["report"] for launch in those), kernel)
        rows.append({"kernel": kernel, "launches": sum(launch.get("launches", 1) for launch in those),
                     **{name.number: value for name, value in numbers.items() if name.section == KERNEL}})
    return rows


def attach(tool: str | type[Tool] | Tool, **options: Any) -> Attached:
    """Put a tool, by name, file or class, or with the options that it was made with, under all kernels that this
    process loads from now on.

    Raises Invalid for a tool or options that make no sense, DeviceError where there is no HIP runtime.
    """
    if isinstance(tool, Tool):
        options = {**{name: tool.option_values[name] for name in tool.given}, **options}
        name = ",".join(_place_of(type(part)) for part in tool.together)
    elif isinstance(tool, str) or isinstance(tool, type) and issubclass(tool, Tool):
        name = tool if isinstance(tool, str) else _place_of(tool)
    else:
        raise Invalid(f"{tool!r} is no tool; give a Tool, its class, its name, or the path of a .py file with one")
    given = {key: str(int(value) if isinstance(value, bool) else value) for key, value in options.items()}
    load_tool(name, given)
    name = absolute(name)
    text = "\n".join(f"{key}={value}" for key, value in given.items())
    answer = _attach(name, text)
    if answer == _Answer.NO_RUNTIME:
        _load_runtime()
        answer = _attach(name, text)
    if answer == _Answer.ANOTHER_TOOL:
        raise Invalid("a tool is attached already; detach it first")
    if answer != _Answer.DONE:
        raise DeviceError(f"tool {name} did not start; stderr says why")
    return Attached()


def _place_of(tool: type[Tool]) -> str:
    """How the worker, which is another process, finds it: by its name, or in its file."""
    registered = next((name for name, known in tools().items() if known is tool), None)
    if registered is not None:
        return registered
    if tool.__module__ == "__main__":
        raise Invalid(f"tool {tool.__name__}: put it into a file of its own; its worker cannot import this program")
    return f"{inspect.getfile(tool)}:{tool.__name__}"


def _attach(name: str, options: str) -> int:
    return int(_library().luthier_tool_attach(name.encode(), options.encode()))


def _ask_verdict() -> Mapping[str, Any]:
    library = _library()
    address = library.luthier_tool_verdict()
    if not address:
        raise DeviceError("the tool's worker has ended; stderr says why")
    try:
        found: Mapping[str, Any] = json.loads(ctypes.string_at(address))
        return found
    finally:
        library.luthier_tool_free(address)


@cache
def _library() -> ctypes.CDLL:
    """The one that is preloaded, or one of our own."""
    preloaded = ctypes.CDLL(None)
    library = preloaded if hasattr(preloaded, "luthier_tool_attach") else ctypes.CDLL(str(tool_library()))
    library.luthier_tool_attach.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.luthier_tool_verdict.restype = ctypes.c_void_p
    library.luthier_tool_free.argtypes = [ctypes.c_void_p]
    return library


def _load_runtime() -> None:
    """The runtime that the program will find, before it does."""
    root = os.environ.get("ROCM_PATH")
    for path in ([str(Path(root) / "lib" / RUNTIME)] if root else []) + [RUNTIME]:
        try:
            ctypes.CDLL(path)
            return
        except OSError:
            continue
    raise DeviceError(f"there is no {RUNTIME}; set ROCM_PATH or LD_LIBRARY_PATH")
