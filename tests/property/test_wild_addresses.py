"""Wild addresses end in a DeviceError that names kernel, pc and lane, or in the right result; no process dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("wild_addresses.py")


@pytest.mark.parametrize("seed, cases, rounds", [(0, 40, 60), pytest.param(1, 0, 1000, marks=pytest.mark.slow)])
def test_every_kind_of_access(seed: int, cases: int, rounds: int) -> None:
    command = [sys.executable, str(SCRIPT), str(seed), str(cases), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
