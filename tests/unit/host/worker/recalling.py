"""Tools that are written for a test, and what of them is taken from the cache.

In: a folder. Out: Author, who writes a tool there; copies with it. Invariant: a tool is loaded as another process would
load it, which began after its files were written.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from luthier_py.binary.loader import load
from luthier_py.host.worker.instrument.patching import Copy, patch
from luthier_py.rewrite.tool import Tool, edit_key, load_tool
from luthier_py.samples import sample

TOOL = """
import helping
from luthier_py import Mutator, Option, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add

class Counting(Tool):
    cacheable = True
    sources = helping,
    total = Variable(u64)
    every = Option(1, env="COUNTING_EVERY")
    {body}

    @hook(lanes="one")
    def bump(total: ptr[u64]) -> None:
        atomic_add(total, 1)

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
        self.write("helping.py", "STEP = 1\n")
        self.write("sites.txt", "1")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            written_s = 1_700_000_000 + len(text)  # what Python has compiled goes by size and time
            os.utime(path, (written_s, written_s))
        return path

    def tool(self, body: str = "", instrument: str = "pass", notes: str = "None", **options: object) -> Tool:
        path = self.write("counting.py", TOOL.format(body=body, instrument=instrument, notes=notes))
        return self.load(path, **options)

    def load(self, path: Path, **options: object) -> Tool:
        self.monkeypatch.delitem(sys.modules, "helping", raising=False)
        self.monkeypatch.setattr(edit_key, "_STARTED_NS", time.time_ns())
        return load_tool(str(path), options)


@contextmanager
def authoring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Author]:
    """With a cache of its own."""
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield Author(folder, monkeypatch)
    sys.modules.pop("helping", None)


def made_by(tool: Tool, name: str = "reduce") -> Copy:
    code = sample(name).path.read_bytes()
    return patch(code, tool, load(code).kernels[0].name)


def cached_edits(copy: Copy) -> bool:
    return "lift" not in copy.seconds
