"""What a command prints: data for people or programs on stdout, a bar on stderr while something takes long."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

FILE_COLUMNS = 180  # of tables that go to a file or a pipe


def show(what: Any, as_json: bool) -> None:
    """Print on stdout: data as JSON, or text and tables by rich. Where stdout is no terminal, lines of text keep their
    length and tables have FILE_COLUMNS columns."""
    if as_json:
        print(json.dumps(what, indent=2))
    else:
        from rich.console import Console, Group
        from rich.text import Text

        console = Console(highlight=False, markup=False, emoji=False)  # names out of files are no markup
        parts = what.renderables if isinstance(what, Group) else [what]
        if console.is_terminal:
            for part in parts:
                console.print(part)
            return
        console.width = FILE_COLUMNS
        with console.capture() as printed:
            for part in parts:
                console.print(part, soft_wrap=isinstance(part, (str, Text)))
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in printed.get().splitlines())  # tables fill up with blanks


@contextmanager
def aside() -> Iterator[None]:
    """What a tool prints is not what the command prints."""
    with redirect_stdout(sys.stderr):
        yield


@contextmanager
def progress(total: int | None) -> Iterator[Callable[[], None]]:
    """A bar on stderr, if that is a terminal; call what it gives when one more is done. None: the number is unknown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), "runs", TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)


def print_all(lines: Iterator[str]) -> None:
    """Lines as they come; a million takes a second."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
