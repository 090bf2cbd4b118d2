"""Where judged faults are kept while a campaign runs.

In: rows, one for each fault. Out: a file of them for each launch or program, a line of JSON each. Invariant: a row is
on disk before the next fault is injected; a line that was not finished is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from luthier_py.features.faults.drawing import TOOL
from luthier_py.features.settings.contents import our_content, tool_content
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.report.plain import Json


def campaign_identity(subject: object, drawing: object, settings: RunSettings) -> str:
    """Of all that decides what becomes of fault N; how many there are does not."""
    given = repr((subject, drawing, settings.device, settings.stack, settings.launch, our_content(),
                  tool_content(TOOL)))
    return sha256(given.encode()).hexdigest()


class FaultStore:
    """The file of one subject's faults; another campaign has another one."""

    def __init__(self, folder: Path, launch: str, identity: str) -> None:
        self.path = folder / f"{launch}-{identity[:16]}.ndjson"

    def rows(self) -> dict[int, Json]:
        """By number."""
        lines = self._whole().splitlines()
        found: dict[int, Json] = {row["number"]: row for row in map(json.loads, lines)}
        return found

    def _whole(self) -> bytes:
        data = self.path.read_bytes() if self.path.exists() else b""
        return data[: data.rfind(b"\n") + 1]

    @contextmanager
    def open_for_appending(self) -> Iterator[Callable[[Json], None]]:
        """What adds a row, behind those that are whole."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        size = len(self._whole())
        with self.path.open("ab") as file:
            file.truncate(size)

            def add(row: Json) -> None:
                file.write(f"{json.dumps(row)}\n".encode())
                file.flush()

            yield add
