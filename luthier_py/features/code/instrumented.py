"""What instrumentation did to a code object, as data and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from luthier_py.report.cloned import change, collect_clone_facts

if TYPE_CHECKING:
    from luthier_py.report.plain import Json
    from luthier_py.rewrite.pipeline import Instrumented


def collect_instrumented_facts(made: Instrumented, path: str) -> Json:
    """JSON-ready facts of one instrumented copy."""
    return {
        "output": path,
        "bytes_before": len(made.obj.data),
        "bytes_after": len(made.data),
        "identical": made.data == made.obj.data,
        "sites": made.edits.sites,
        "kernels": [collect_clone_facts(row) for row in made.patched.report],
        "refused": [{"kernel": r.kernel, "reason": r.reason, "where": str(r.where)} for r in made.refused],
    }


def build_instrumented_table(facts: Json) -> Group:
    """A row for each kernel that was cloned, and a line for each that was refused; ``facts``: of
    `collect_instrumented_facts`."""
    refused = [Text(f"refused: {r['kernel']}: {r['reason']} [{r['where']}]") for r in facts["refused"]]
    if facts["identical"]:
        return Group(*refused, Text(f"{facts['output']}: nothing inserted; identical to the input"))
    table = Table("kernel", "clone", box=None, pad_edge=False)
    for column in ("sites", "code bytes", "SGPRs", "VGPRs", "waves/SIMD"):
        table.add_column(column, justify="right")
    for k in facts["kernels"]:
        pairs = (change(*k[key]) for key in ("code_bytes", "sgprs", "vgprs", "waves_per_simd"))
        table.add_row(k["name"], k["clone"], str(k["sites"]), *pairs)
    return Group(
        Text(f"{facts['output']}: {facts['bytes_before']} -> {facts['bytes_after']} bytes, {facts['sites']} sites"),
        table,
        *refused,
    )
