"""A bar on a terminal while instrumenting or a launch takes long; nothing where stderr is no terminal.

In: the stages of the pipeline, the device of a launch. Out: a bar on stderr, which is gone at the end. Invariant: what
takes less than AFTER shows nothing, nor does anything where stderr is no terminal.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from luthier_py.emulator import EmulatorDevice

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from luthier_py.emulator.interface import Device

AFTER, EVERY = 1.0, 0.2  # seconds


class Bar:
    """Mutable: what is shown. Updated by the thread that works, drawn by another."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, visible=False)
        self._started = time.monotonic()
        self._device: Device | None = None
        self.over = threading.Event()

    def stage(self, name: str, done: int, total: int) -> None:
        """Show a stage of instrumenting, with ``done`` of ``total`` steps; the pipeline calls it."""
        self._progress.update(self._task, description=f"instrumenting: {name}", completed=done, total=total)

    def launch(self, device: Device) -> None:
        """Show from now on how many work-groups of a launch on ``device`` have begun; only the emulator says so."""
        self._device = device

    def draw(self, after: float) -> None:
        """Until it is over."""
        while not self.over.wait(EVERY):
            begun = self._device.begun if isinstance(self._device, EmulatorDevice) else None
            if begun is not None:
                self._progress.update(self._task, description="work-groups", completed=begun[0], total=begun[1])
            if time.monotonic() - self._started >= after:
                self._progress.update(self._task, visible=True)


@contextmanager
def show_progress(wanted: bool = True, console: Console | None = None, after: float = AFTER) -> Iterator[Bar | None]:
    """A bar, or None where it is not ``wanted`` or the console is no terminal."""
    if not wanted or (console is None and not sys.stderr.isatty() and "FORCE_COLOR" not in os.environ):
        yield None
        return
    from rich.console import Console as TerminalConsole  # many runs have no terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = console or TerminalConsole(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as progress:
        bar = Bar(progress)
        thread = threading.Thread(target=bar.draw, args=(after,), daemon=True)
        thread.start()
        try:
            yield bar
        finally:
            bar.over.set()
            thread.join()
