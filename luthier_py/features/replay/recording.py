"""Launches saved in files: those of a program, or one that a command makes.

In: a command and which of its launches to save, or a device to launch on. Out: files, and what became of each launch.
Invariant: recorded memory lies where a later process has nothing, so that a replay can have it at the same addresses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass, replace
from luthier_py.features.exec.execute import Executed, execute
from luthier_py.features.settings.run_settings import RunSettings


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """``launches``: chosen ones, in order: ``launch``, ``kernel``, and ``file`` and its sizes, or ``reason``."""

    executed: Executed
    launches: tuple[Mapping[str, Any], ...]

    @property
    def files(self) -> list[Mapping[str, Any]]:
        """The rows of launches that were recorded, and not refused."""
        return [row for row in self.launches if "file" in row]


def record_program(command: Sequence[str], settings: RunSettings) -> RecordedProgram:
    """Run ``command``, and keep the launches that ``settings.record`` names."""
    assert settings.record is not None
    if not settings.own_runtime:
        raise Invalid("launches are recorded under our own HIP runtime: give --stack luthier, or luthier-X.Y")
    with TemporaryDirectory(prefix="luthier-") as folder:
        journal = Path(folder) / "recorded"
        done = execute(command, replace(settings, record=replace(settings.record, journal=journal)))
        lines = journal.read_text().splitlines() if journal.exists() else []
    return RecordedProgram(done, tuple(map(json.loads, lines)))
