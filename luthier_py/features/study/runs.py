"""Cells are run: here by processes side by side, or by a Dask cluster on many machines.

In: cells. Out: (cell, outcome) as each ends; an outcome is plain data. Invariant: whatever a program does, its
outcome says so; when the caller stops asking, all that still runs is killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from luthier_py.base.errors import LuthierError
from luthier_py.features.settings.contents import file_hash
from luthier_py.features.study.cells import Cell, search_path
from luthier_py.features.study.child import COMMAND, RESULT, RUN, STARTED

POLL_SECONDS = 0.01
LAST_LINES = 5  # of a failed run's stderr, that are kept
LAST_BYTES = 4096

RunRecord = dict[str, Any]


class RunStatus(str, Enum):
    """How a run ended. NOTHING: well, but the tool observed no launch; FAILED: with an exit code other than 0, or
    without what was asked of the tool; ERROR: a run of which the end is not known, so that it is made again."""

    OK = "ok"
    NOTHING = "nothing observed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    ERROR = "error"  # ours


class Running:
    """A run that has started (mutable: owns a process and a folder)."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.started: float | None = None
        self.place = tempfile.TemporaryDirectory(prefix="luthier-study-")
        self.folder = Path(self.place.name)
        (self.folder / RUN).write_text(json.dumps(dict(cell.run)))
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, str(self.folder)],
                stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True,
                cwd=cell.run["folder"], env={**os.environ, "PATH": search_path()},
            )  # fmt: skip

    def outcome(self) -> RunRecord | None:
        """What became of it; None while it runs in its time."""
        if self.started is None and (self.folder / STARTED).exists():
            self.started = time.monotonic()
        late = self.started is not None and time.monotonic() - self.started > self.cell.timeout
        if self.process.poll() is None and not late:
            return None
        result = self.folder / RESULT
        if self.process.poll() == 0 and result.exists():
            found = json.loads(result.read_text())
        else:
            found = {"timeout": True} if late else {"ended": f"its process ended with {self.process.returncode}"}
        self.stop()
        return self._make_record(found)

    def stop(self) -> None:
        """Kill what still runs, and all that it started in its group."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def _make_record(self, found: RunRecord) -> RunRecord:
        status = _status(found, self.cell.run["tool"] is not None)
        printed = file_hash(self.folder / "stdout")
        said = found.get("error") or "\n".join(found.get("undelivered", ())) or self._last_words(found)
        self.place.cleanup()
        return {
            **_make_lost_record("" if status in (RunStatus.OK, RunStatus.NOTHING) else said),
            **{name: found.get(name) for name in ("exit_code", "seconds", "verdicts")},
            "status": status.value,
            "output_sha256": printed,
            "machine": socket.gethostname(),
        }


    def _last_words(self, found: RunRecord) -> str:
        """Of the program, or of our own process, which ended before it could say what happened."""
        return "\n".join(filter(None, (found.get("ended"), _last_lines(self.folder / "stderr"))))


def run_cell(cell: Cell) -> RunRecord:
    """Run one cell to its end."""
    running = Running(cell)
    try:
        while (outcome := running.outcome()) is None:
            time.sleep(POLL_SECONDS)
        return outcome
    finally:
        running.stop()


def run_here(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, RunRecord]]:
    """Run cells, ``jobs`` at a time, each by a process."""
    waiting = list(reversed(cells))
    running: list[Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(Running(waiting.pop()))
            for one in list(running):
                if (outcome := one.outcome()) is not None:
                    running.remove(one)
                    yield one.cell, outcome
            time.sleep(POLL_SECONDS)
    finally:
        for one in running:
            one.stop()


def run_on_cluster(cells: Sequence[Cell], scheduler: str) -> Iterator[tuple[Cell, RunRecord]]:
    """Run cells on the workers of a Dask scheduler, which see the same files under the same names."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise LuthierError("--scheduler needs Dask: pip install luthier-py[study,distributed]") from None
    try:
        client = Client(scheduler)
    except (OSError, ValueError) as error:
        raise LuthierError(f"--scheduler {scheduler}: {str(error) or 'no answer'}") from None
    with client:
        futures = {client.submit(run_cell, cell, pure=False): cell for cell in cells}
        for future in as_completed(futures):
            lost = future.exception()
            yield futures[future], _make_lost_record(str(lost)) if lost is not None else future.result()


def _make_lost_record(said: str) -> RunRecord:
    """Of a run that nobody has seen end."""
    nothing = dict.fromkeys(("exit_code", "seconds", "verdicts", "output_sha256", "machine"))
    return {**nothing, "status": RunStatus.ERROR.value, "said": said}


def _status(found: RunRecord, with_tool: bool) -> RunStatus:
    if "timeout" in found:
        return RunStatus.TIMEOUT
    if "error" in found or "ended" in found:
        return RunStatus.ERROR
    if found["exit_code"] != 0 or found["undelivered"]:
        return RunStatus.FAILED
    return RunStatus.NOTHING if with_tool and not found["observed"] else RunStatus.OK


def _last_lines(path: Path) -> str:
    """The end of a file, as text, without the tool's verdict: that is kept apart, and its times are never the same."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - LAST_BYTES, 0))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return "\n".join([line for line in lines if not line.startswith("luthier: verdict: ")][-LAST_LINES:])
