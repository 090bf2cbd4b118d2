"""One replay as JSON-ready data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from luthier_py.emulator.watching.findings import Finding
from luthier_py.features.replay.rerun import Replayed
from luthier_py.report.output import document
from luthier_py.report.plain import Json
from luthier_py.rewrite.tool import as_data


def replay_facts(file: Path, replayed: Replayed, findings: Sequence[Finding] = (), files: Sequence[str] = ()) -> Json:
    """JSON-ready facts of one replay."""
    record, done, comparison = replayed.record, replayed.done, replayed.comparison
    found: Json = as_data({
        "file": str(file), "kernel": record.kernel, "grid": record.grid, "block": record.block,
        "target": record.target, "device": done.device.target.name, "pages": len(record.pages), "same": comparison.same,
        "tolerance": replayed.tolerance, "compared_bytes": comparison.compared_bytes,
        "recorded_instructions": record.instructions, "device_instructions": done.ran.counted,
        "tool_instructions": done.ran.inserted,
        "device_cycles": None if done.ran.cycles is None else done.ran.cycles.facts(),
        "differences": [{**as_data(each), "offset": each.offset, "text": str(each)} for each in comparison.differences],
        "unrecorded_pages": [f"0x{address:x}" for address in comparison.unrecorded],
        "missing_variables": comparison.missing, "text": done.text, "report": done.ran.report,
        "verdict": document(done.tool, [], done.verdict)["verdict"], "files": files,
        "findings": [finding.facts() for finding in findings],
    }, "replay")  # fmt: skip
    return found
