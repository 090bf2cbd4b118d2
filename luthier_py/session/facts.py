"""One launch as JSON-ready data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from luthier_py.session.run import Done, Launch

Facts = dict[str, Any]
SHOWN = 6  # values of each output buffer


def launch_facts(done: Done, launch: Launch, saved: dict[int, str], files: Sequence[str] = ()) -> Facts:
    """JSON-ready facts of one launch."""
    facts: Facts = {
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
    }
    if done.tool is not None:
        facts["tool"] = {
            "name": done.tool.name,
            "report": done.ran.report,
            "text": done.ran.text,
            "files": list(files),
        }
    if done.verdict is not None:
        facts["verdict"] = {**done.verdict.facts(), "text": done.verdict.text()}
    return facts
