"""Tools that are written for a test, and what of them is recalled.

In: a folder. Out: Author, who writes a tool there; copies with it. Invariant: a tool is loaded as another process would
load it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from suite.kept import COMPILING

from luthier_py.binary.loader import load
from luthier_py.host.worker.instrument.patching import Copy, patch
from luthier_py.rewrite.tool import Tool, load_tool, origin
from luthier_py.samples import sample

LONG_AGO = 1_700_000_000  # s
TOOL = """
import helping
from luthier_py import Mutator, Option, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add

FACTOR = 1
SEEN = []
__limit = int(open(__file__.replace("counting.py", "limit.txt")).read())

def marked() -> None:
    pass

marked.limit = __limit

def limiting(limit):
    class Limiting:
        @staticmethod
        def first():
            return limit
        def second(self, limit=limit):
            return limit
        @property
        def third(self):
            return limit
    return Limiting

def outer(amount):
    @hook(lanes="one")
    def bump(total: ptr[u64]) -> None:
        atomic_add(total, u64(amount))
    return bump

class Counting(Tool):
    total = Variable(u64)
    every = Option(1, env="COUNTING_EVERY")
    {body}

    def __init__(self, **options):
        super().__init__(**options)
        self.reported = 0

    @hook(lanes="one")
    def bump(total: ptr[u64]) -> None:
        atomic_add(total, u64(FACTOR))

    def instrument(self, m: Mutator):
        {instrument}
        for function in m.functions():
            for instr in m.instrs(function)[:: self.every * helping.STEP]:
                m.before(instr, self.bump, self.total)
        return {notes}
"""


class Author:
    """Writes a tool beside its helper, and loads both afresh, as another process would."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.helper(1)
        for name in ("sites.txt", "limit.txt", "data.py"):
            (folder / name).write_text("1")

    def helper(self, step: int) -> None:
        self.write("helping.py", f"STEP = {step}\n")

    def write(self, name: str, text: str) -> Path:
        """A file that has been there for a while, and stays as it is where it has that text."""
        path = self.folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            os.utime(path, (LONG_AGO, LONG_AGO))
        return path

    def tool(self, body: str = "", instrument: str = "pass", notes: str = "None", **options: object) -> Tool:
        path = self.write("counting.py", TOOL.format(body=body, instrument=instrument, notes=notes))
        for name in ("helping", "late"):
            self.monkeypatch.delitem(sys.modules, name, raising=False)
        sys.dont_write_bytecode = True
        return load_tool(str(path), options)


@contextmanager
def authoring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Author]:
    """With a cache of its own; no test's module counts as the tool's, nor does a thread that compiles programs for
    other tests: what a thread of somebody else's starts is heard."""
    for thread in threading.enumerate():
        if thread.name == COMPILING:
            thread.join()
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setattr(origin, "_is_installed", lambda path: not path.startswith(str(folder)))
    monkeypatch.chdir(folder)
    yield Author(folder, monkeypatch)
    sys.modules.pop("helping", None)


def made_by(tool: Tool, name: str = "reduce") -> Copy:
    code = sample(name).path.read_bytes()
    return patch(code, tool, load(code).kernels[0].name)


def cached_edits(copy: Copy) -> bool:
    return "lift" not in copy.seconds
