"""What a tool has counted so far, shown while a program runs: a table that is drawn anew, or lines now and then.

In: what has been counted so far, a stream. Out: on a terminal one table in its place, below whatever else this process
prints there; elsewhere the same as lines. Both at most once in ``seconds``, when there is something new; at the end the
last one as a whole. Invariant: who holds ``lock`` is alone with the tool.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, TextIO

from luthier_py.base.errors import printable_lines

if TYPE_CHECKING:
    from rich.live import Live as Drawn

    from luthier_py.report.so_far import SoFar
    from luthier_py.rewrite.tool import LaunchResult


class LiveTable:
    """Mutable: from the first launch on a thread shows what there is, until `close`."""

    def __init__(self, so_far: SoFar, stream: TextIO, seconds: float) -> None:
        self._so_far, self._stream, self._seconds = so_far, stream, seconds
        self.lock, self._news, self._over = threading.RLock(), False, threading.Event()
        self._thread: threading.Thread | None = None
        self._drawn: Drawn | None = None
        self._begun = time.monotonic()
        self._failure: Exception | None = None

    def launch(self, result: LaunchResult, report: Any) -> None:
        """Take up a launch with its report. The first one starts the thread that shows the table; `close` raises what
        that thread has raised."""
        with self.lock:
            self._so_far.add(result, report)
            self._news = True
        if self._thread is None:
            self._drawn = _start_display(self._stream)
            self._thread = threading.Thread(target=self._run, name="luthier live", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """The last table, whole; raises what making one has raised."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._drawn is not None:
            self._drawn.stop()
        if self._failure is not None:
            raise self._failure
        with self.lock:
            print(self._text(), file=self._stream, flush=True)

    def _run(self) -> None:
        over = False
        while not over and self._failure is None:
            try:
                self._look()
            except Exception as error:  # the tool's, or the stream's; the run continues, and `close` raises it
                self._failure = error
            over = self._over.wait(self._seconds)

    def _look(self) -> None:
        with self.lock:
            text, self._news = self._text() if self._news else "", False
        if text:
            self._show(text)

    def _show(self, text: str) -> None:
        if self._drawn is None:
            print(text, file=self._stream, flush=True)
            return
        from rich.text import Text

        self._drawn.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def _text(self) -> str:
        launches = self._so_far.launches
        head = f"luthier: {launches} launch{'es' * (launches != 1)} in {time.monotonic() - self._begun:.1f} s"
        return printable_lines("\n".join([head, *self._so_far.texts()]))


def _start_display(stream: TextIO) -> Drawn | None:
    """A place on a terminal; None where there is none."""
    if not stream.isatty():
        return None
    from rich.console import Console
    from rich.live import Live as Drawn

    drawn = Drawn(console=Console(file=stream, markup=False, emoji=False, highlight=False), auto_refresh=False,
                  transient=True)
    drawn.start()
    return drawn
