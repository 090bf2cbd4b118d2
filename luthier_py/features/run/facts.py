"""One launch as JSON-ready data: the document of docs/output.md, and what a launch of one's own has beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from luthier_py.report.output import document, row_of
from luthier_py.rewrite.tool import as_data

if TYPE_CHECKING:
    from luthier_py.emulator.watching.findings import Finding
    from luthier_py.features.run.launch import Done, Launch
    from luthier_py.features.run.shuffle import Shuffled
    from luthier_py.report.plain import Json

SHOWN = 6  # values of each output buffer


def launch_facts(done: Done, launch: Launch, saved: dict[int, str], files: Sequence[str] = (),
                 findings: Sequence[Finding] = (), shuffle: Shuffled | None = None) -> Json:
    """JSON-ready facts of one launch."""
    rows = [row_of(done.tool, done.ran.result, done.ran.report)] if done.tool and done.ran.result else []
    own = {
        "kernel": launch.kernel,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "outputs": [
            {
                "argument": n,
                "spec": launch.arguments[n].text,
                "first": data.ravel()[:SHOWN].tolist(),
                "file": saved.get(n),
            }
            for n, data in done.ran.outputs.items()
        ],
        "device_instructions": done.ran.counted,
        "device_cycles": None if done.ran.cycles is None else done.ran.cycles.facts(),
        "tool_instructions": done.ran.inserted,
        "text": done.text,
        "files": list(files),
        "findings": [finding.facts() for finding in findings],
        "shuffle": shuffle.facts() if shuffle is not None else None,
    }
    return {**document(done.tool, rows, done.verdict), "run": as_data(own, "run")}
