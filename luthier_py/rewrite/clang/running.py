"""Runs of clang as a child process, without a shell, in a temporary folder that is removed when it has ended.

In: a compiler, its arguments. Out: its words, and whatever it wrote into the folder. Invariant: what fails is
LuthierError with the compiler's words, our own folders left out of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from luthier_py.base.errors import LuthierError
from luthier_py.base.storage import cache_key

_TRACING = "-sys-header-deps", "-MT", "output", "-dependency-file"


@contextmanager
def create_working_folder(who: str) -> Iterator[Path]:
    """LuthierError, which begins with ``who``, for what the system refuses there: a full disk, a compiler that went,
    too long arguments."""
    try:
        with tempfile.TemporaryDirectory(prefix=f"luthier-{who}-") as name:
            yield Path(name)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise LuthierError(f"{who}: {error.strerror or error}{where}") from None


def run_clang(compiler: Path, arguments: Sequence[str], working: str, folder: Path) -> str:
    """Its words; LuthierError has them where it fails. Temporary files go to ``folder``."""
    environment = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C"}
    done = subprocess.run(
        [str(compiler), *arguments], cwd=working if Path(working).is_dir() else folder, env=environment,
        stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    log = (done.stdout + done.stderr).decode(errors="replace")
    for own in ("source", "headers", ""):
        log = log.replace(f"{folder / own}/", "")
    if done.returncode:
        raise LuthierError(log.rstrip("\n") or f"{compiler} ended with {done.returncode} and said nothing")
    return log


def inputs_key(run: Callable[[list[str]], str], command: Sequence[str], folder: Path, working: str) -> str:
    """Names what comes of a command, by the preprocessed text, the compiler's words and all files that were read, whose
    comments and columns are in logs and line tables. Empty where it fails, which the compiler says better."""
    output, reads = folder / "preprocessed", folder / "reads"
    traced = [word for option in (*_TRACING, str(reads)) for word in ("-Xclang", option)]
    try:
        log = run([*command, *traced, "-Wno-unused-command-line-argument", "-E", "-o", str(output)])
        text = output.read_bytes()
    except (LuthierError, FileNotFoundError):
        return ""
    return cache_key(log, text.replace(os.fsencode(folder), b""), repr(_digests(reads, folder, working)))


def _digests(reads: Path, folder: Path, working: str) -> dict[str, str]:
    """``reads`` is a rule for make: names with spaces have backslashes before them, and lines that go on one at their
    end."""
    _, _, rule = reads.read_text(errors="surrogateescape").replace("\\\n", " ").partition(":")
    names = (name.replace("\\ ", " ") for name in re.findall(r"(?:\\ |\S)+", rule))
    paths = {str(Path(working, name)) for name in names}
    return {path: _digest(path) for path in sorted(paths) if not Path(path).is_relative_to(folder)}


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
