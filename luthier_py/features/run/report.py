"""One launch as text: outputs, the tool's report, the verdict. The facts come from `run/facts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.text import Text

from luthier_py.base.errors import printable
from luthier_py.features.run.cycles import cycles_text

if TYPE_CHECKING:
    from luthier_py.report.plain import Json


def launch_table(facts: Json) -> Group:
    """Lines, not a table; ``facts``: of `session.facts.launch_facts`."""
    lines = []
    run, verdict = facts["run"], facts["verdict"]
    for out in run["outputs"]:
        not_finite = any(isinstance(value, str) for value in out["first"])
        shown = np.array(out["first"], float if not_finite else None)
        values = np.array2string(shown, separator=" ", formatter={"float_kind": lambda v: f"{v:.6g}"})
        where = f" -> {out['file']}" if out["file"] else ""
        lines.append(f"argument {out['argument']} ({out['spec']}): {values[:-1]} ...]{where}")
    executed = run["device_instructions"]
    of_tool = run["tool_instructions"]
    lines += run["text"].splitlines()
    lines += [f"report -> {file}" for file in run["files"]]
    if executed is not None:
        share = "" if of_tool is None else f", {of_tool} of them the tool's"
        lines.append(f"{executed} wave instructions executed{share}")
    if (cycles := run["device_cycles"]) is not None:
        lines.append(cycles_text(cycles["cycles"], cycles["imbalance"], cycles["wave_imbalance"]))
    lines += run["shuffle"]["text"] if run["shuffle"] else []
    lines += (verdict["text"] if verdict else "verdict: 1 launch, not instrumented").splitlines()
    return Group(*(Text(printable(line)) for line in lines))
