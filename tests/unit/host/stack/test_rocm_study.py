"""A study on both stacks: the same program, the same counts, at either level."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from stacked_programs import DEVICE, SECONDS, Programs

STUDY = """
devices = ["{device}"]
stacks = [{stacks}]
jobs = 1
[[program]]
name = "reduction"
command = ["{program}"]
[[tool]]
tool = "instr_count"
level = "{level}"
[[figure]]
name = "counts"
parts = {{ instructions = "instr_count:instructions" }}
bars = ["stack", "kernel"]
"""


def bars(folder: Path, program: Path, libraries: Path, level: str, *stacks: str) -> dict[str, list[float]]:
    names = ", ".join(f'"{stack}"' for stack in stacks)
    (folder / "s.toml").write_text(STUDY.format(device=DEVICE, stacks=names, program=program, level=level))
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", "study", "s.toml", "-o", level]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS,
        env={**os.environ, "LD_LIBRARY_PATH": str(libraries)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    facts = json.loads((folder / level / "summary.json").read_text())
    assert [(row["stack"], row["statuses"]) for row in facts["groups"]] == [(stack, {"ok": 1}) for stack in stacks]
    return {row["bar"]: row["values"] for row in facts["figures"][0]["rows"]}


def test_one_study_of_both_stacks(programs: Programs, tmp_path: Path) -> None:
    program, libraries = programs.hip("reduction"), programs.stack.libraries
    found = bars(tmp_path, program, libraries, "hip", "luthier", "rocm")
    kernels = {bar.partition(" ")[2] for bar in found}
    assert kernels and len(found) == 2 * len(kernels)
    assert all(found[f"luthier {kernel}"] == found[f"rocm {kernel}"] != [0] for kernel in kernels)
    below = bars(tmp_path, program, libraries, "hsa", "rocm")
    assert below == {bar: values for bar, values in found.items() if bar.startswith("rocm ")}
