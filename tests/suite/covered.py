"""`make coverage TIER=check|test|nightly`: lines and branches of the package that a tier executes, in all processes.

In: a tier. Out: a line of a table with both parts, printed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from suite.kept import ROOT  # noqa: E402  (importable only now)
from suite.reach import combine, environment  # noqa: E402


def main() -> int:
    tier, *rest = sys.argv[1:]
    folder = ROOT / "build" / "coverage" / tier
    shutil.rmtree(folder, ignore_errors=True)
    measured = {**os.environ, **environment(folder)}
    words = ["-m", "pytest", f"--tier={tier}", "-n", "2", "-q", *rest]
    code = subprocess.run([sys.executable, *words], cwd=ROOT, env=measured).returncode
    report = folder / "report.json"
    where = [f"--rcfile={folder / 'coveragerc'}", f"--data-file={combine(folder)}", "-o", str(report)]
    subprocess.run([sys.executable, "-m", "coverage", "json", "--quiet", *where], cwd=ROOT, check=True)
    totals = json.loads(report.read_text())["totals"]
    lines = 100 * totals["covered_lines"] / totals["num_statements"]
    branches = 100 * totals["covered_branches"] / totals["num_branches"]
    print(f"| `make {tier}` | {lines:.1f} % | {branches:.1f} % |")
    return code


if __name__ == "__main__":
    sys.exit(main())
