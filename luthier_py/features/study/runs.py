"""Cells are run, each by a process that can be killed with all that it starts.

In: a cell. Out: its outcome, plain data. Invariant: whatever a program does, its outcome says so; when the outcome is
not needed any more, all that still runs is killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from luthier_py.features.settings.contents import file_hash
from luthier_py.features.study.cells import Cell, search_path
from luthier_py.features.study.child import COMMAND, RESULT, RUN, STARTED

POLL_SECONDS = 0.01
LAST_LINES = 5  # of a failed run's stderr, that are saved
LAST_BYTES = 4096

RunRecord = dict[str, Any]


class RunStatus(str, Enum):
    """How a run ended. NOTHING: well, but the tool observed no launch; FAILED: with an exit code other than 0, or
    without what was requested of the tool; ERROR: a run of which the end is not known, so that it is made again."""

    OK = "ok"
    NOTHING = "nothing observed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    ERROR = "error"  # ours


def run_cell(cell: Cell, over: Event | None = None) -> RunRecord:
    """Run a cell to its end by a process, in a temporary folder. ``over``: once it is set, the process is killed."""
    with TemporaryDirectory(prefix="luthier-study-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        (folder / RUN).write_text(json.dumps(dict(cell.run)))
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, place],
                stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True,
                cwd=cell.run["folder"], env={**os.environ, "PATH": search_path()},
            )  # fmt: skip
        try:
            found = _wait(process, folder, cell.timeout, over or Event())
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        return _make_record(cell, folder, found)


def _wait(process: subprocess.Popen[bytes], folder: Path, timeout: float, over: Event) -> RunRecord:
    """What its process says of a run, or what there is to say of the process."""
    end: float | None = None
    while process.poll() is None:
        if end is None and (folder / STARTED).exists():
            end = time.monotonic() + timeout
        if end is not None and time.monotonic() > end:
            return {"timeout": True}
        if over.wait(POLL_SECONDS):
            break
    if process.returncode == 0 and (folder / RESULT).exists():
        found: RunRecord = json.loads((folder / RESULT).read_text())
        return found
    return {"ended": f"its process ended with {process.returncode}"}


def _make_record(cell: Cell, folder: Path, found: RunRecord) -> RunRecord:
    status = _status(found, cell.run["tool"] is not None)
    said = found.get("error") or "\n".join(found.get("undelivered", ())) or _last_words(folder, found)
    return {
        **make_lost_record("" if status in (RunStatus.OK, RunStatus.NOTHING) else said),
        **{name: found.get(name) for name in ("exit_code", "seconds", "verdicts")},
        "status": status.value,
        "output_sha256": file_hash(folder / "stdout"),
        "machine": socket.gethostname(),
    }


def _last_words(folder: Path, found: RunRecord) -> str:
    """Of the program, or of our own process, which ended before it could say what happened."""
    return "\n".join(filter(None, (found.get("ended"), _last_lines(folder / "stderr"))))


def make_lost_record(said: object) -> RunRecord:
    """The record of a run whose end was not seen."""
    nothing = dict.fromkeys(("exit_code", "seconds", "verdicts", "output_sha256", "machine"))
    return {**nothing, "status": RunStatus.ERROR.value, "said": str(said)}


def needs_no_run(outcome: RunRecord, retry: bool) -> bool:
    """Whether an outcome is one; with ``retry`` failures and timeouts are none."""
    again = (RunStatus.ERROR, RunStatus.FAILED, RunStatus.TIMEOUT) if retry else (RunStatus.ERROR,)
    return outcome["status"] not in {status.value for status in again}


def _status(found: RunRecord, with_tool: bool) -> RunStatus:
    if "timeout" in found:
        return RunStatus.TIMEOUT
    if "error" in found or "ended" in found:
        return RunStatus.ERROR
    if found["exit_code"] != 0 or found["undelivered"]:
        return RunStatus.FAILED
    return RunStatus.NOTHING if with_tool and not found["observed"] else RunStatus.OK


def _last_lines(path: Path) -> str:
    """The end of a file, as text, without the tool's verdict: that is stored separately, and its times always
    differ."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - LAST_BYTES, 0))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return "\n".join([line for line in lines if not line.startswith("luthier: verdict: ")][-LAST_LINES:])
