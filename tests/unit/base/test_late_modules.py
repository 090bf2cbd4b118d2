"""NumPy's import (base/late_modules.py): what its OpenBLAS reads, and what programs see that are started after it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

VARIABLE = "OPENBLAS_NUM_THREADS"
SHOWN = f"""
import os, subprocess, sys
from luthier_py.base import late_modules
late_modules.{{call}}
late_modules.limit_threads()
seen = []
class Spy:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy.linalg":
            seen.append(os.environ.get("{VARIABLE}"))
sys.meta_path.insert(0, Spy())
import numpy
child = [sys.executable, "-c", "import os; print(os.environ.get('{VARIABLE}'))"]
print(seen, os.environ.get("{VARIABLE}"), subprocess.run(child, capture_output=True, text=True).stdout.strip())
print(numpy.__spec__.name, late_modules.np.arange(3).sum(), len(os.listdir("/proc/self/task")))
"""


@pytest.mark.parametrize("given", [None, "", "3"])
def test_a_program_does_not_see_the_variable(given: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {} if given is None else {VARIABLE: given}
    shown = _run(SHOWN.format(call="limit_threads()"), environment)
    seen = "1" if given is None else given
    assert shown[0] == f"{[seen]} {given} {given}".rstrip()
    assert shown[1].startswith("numpy 3") and (given is not None or shown[1].endswith(" 1"))


def test_numpy_is_imported_as_usual() -> None:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    text = "import os, sys; from luthier_py.base.late_modules import limit_threads; limit_threads(); import numpy; "
    assert _run(f"{text}print('numpy' in sys.modules, '{VARIABLE}' in os.environ)", environment) == ["True False"]


def _run(text: str, environment: dict[str, str]) -> list[str]:
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.rstrip() for line in done.stdout.splitlines()]
