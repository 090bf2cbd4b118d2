"""One launch as text: outputs, the tool's report, the verdict. The facts come from `session`."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Group
from rich.text import Text

from luthier_py.errors import printable

Facts = dict[str, Any]


def launch_table(facts: Facts) -> Group:
    lines = []
    for out in facts["outputs"]:
        values = np.array2string(np.array(out["first"]), separator=" ", formatter={"float_kind": lambda v: f"{v:.6g}"})
        where = f" -> {out['file']}" if out["file"] else ""
        lines.append(f"argument {out['argument']} ({out['spec']}): {values[:-1]} ...]{where}")
    executed = facts["device_instructions"]
    work = "" if executed is None else f", {executed} wave instructions executed"
    if tool := facts.get("tool"):
        lines += tool["text"].splitlines()
        lines += [f"report -> {file}" for file in tool["files"]]
    verdict = facts["verdict"]["text"] if "verdict" in facts else "verdict: 1 launch, not instrumented"
    first, *details = verdict.splitlines()
    return Group(*(Text(printable(line)) for line in [*lines, f"{first}{work}", *details]))
