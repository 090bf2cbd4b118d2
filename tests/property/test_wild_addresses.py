"""Wild addresses and damaged descriptors end in an error of ours or in the right result; no process dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("seed, cases, rounds", [(0, 40, 60), pytest.param(1, 0, 1000, marks=pytest.mark.slow)])
def test_every_kind_of_access(seed: int, cases: int, rounds: int) -> None:
    survive("wild_addresses.py", seed, cases, rounds)


@pytest.mark.parametrize("seed, count", [(0, 100), pytest.param(1, 10000, marks=pytest.mark.slow)])
def test_damaged_descriptors(seed: int, count: int) -> None:
    survive("damaged_descriptors.py", seed, count)


def survive(script: str, *numbers: int) -> None:
    command = [sys.executable, str(HERE / script), *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
