"""Lifted samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from luthier_py.binary.loader import load
from luthier_py.program.ir import Program, lift


@pytest.fixture(scope="session")
def sample_programs() -> list[Program]:
    """Each kernel of each sample, lifted on its own."""
    objects = [load(path.read_bytes(), path.name) for path in sorted((Path(__file__).parents[3] / "data").glob("*.co"))]
    return [lift(obj, [kernel.name]) for obj in objects for kernel in obj.kernels]
