"""Tools of files are tried before a program starts, where the program's own file has kernels: a mistake in
``instrument`` is reported then, and not when all has run.

In: a tool of a file, a program's file, a device. Out: nothing. Invariant: only what a tool does wrong for every
kernel that it is tried on is an error; what is a matter of one kernel, or not the tool's, is reported when that is
launched. What was made is in the cache, where the program's worker finds it.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from io import StringIO
from itertools import islice
from pathlib import Path

from luthier_py.base.errors import TOOL_MODULE, HookError, LuthierError, ToolError
from luthier_py.binary.loader import Member, load, members, open_code
from luthier_py.binary.loader.bundle import closest
from luthier_py.host.worker.device.properties import architecture
from luthier_py.host.worker.device.targets import parse_targets
from luthier_py.host.worker.error_boundary import reason_of, run_guarded
from luthier_py.host.worker.instrument.patching import patch
from luthier_py.rewrite.tool import Tool

MOST_ASKED = 2  # kernels
LARGEST_BYTES = 1 << 20  # of a code object; what takes long is left to its launch


def check_instrument(tool: Tool, program: Path, device: str | None) -> None:
    """ToolError with what is wrong, once."""
    wrong: list[Exception] = []
    with suppress(LuthierError, OSError):  # no file with code, or none that is whole
        for code, kernel in islice(_kernels(tool, program, device), MOST_ASKED):
            error = _mistake(tool, code, kernel)
            if error is None or (wrong and reason_of(error) != reason_of(wrong[0])):
                return
            wrong.append(error)
    if wrong:
        raise ToolError(f"tool {tool.name}: {reason_of(wrong[0])}; nothing was started") from wrong[0]


def _kernels(tool: Tool, program: Path, device: str | None) -> Iterator[tuple[bytes, str]]:
    """Those that the tool selects, in code for the device; without one, for the first that there is code for."""
    with open_code(program) as data:
        found = [part for part in members(data, str(program)) if isinstance(part, Member)]
        if device is not None:
            found = closest(found, architecture(parse_targets(device)[0]))
        codes = [part.data for part in found if part.target_name == found[0].target_name]
    for code in codes:
        if len(code) <= LARGEST_BYTES:
            yield from ((code, kernel.name) for kernel in load(code).kernels if tool.selection.kernel(kernel.name))


def _mistake(tool: Tool, code: bytes, kernel: str) -> Exception | None:
    """What the tool does wrong there; what it prints comes when the program runs."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        error = run_guarded(partial(patch, code, tool, kernel))
    if not isinstance(error, Exception) or isinstance(error, LuthierError):
        return error if isinstance(error, HookError) else None
    through = (str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__))
    return error if any(name.startswith(TOOL_MODULE) for name in through) else None
