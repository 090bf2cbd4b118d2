"""Tools run under programs of tests/programs, and on sample kernels: some of these always, the others with -m slow."""

from __future__ import annotations

import pytest
from compiled_programs import program

from luthier_py.samples import SAMPLES, Sample

__all__ = ["program", "sample"]
ALWAYS = ("device_call", "function_pointers", "histogram", "lds_widths", "mandelbrot", "saxpy", "scratch")
"""Calls, calls through pointers, atomics with LDS and barriers, accesses of every width, lanes that part in a loop,
waves that are not full, private memory."""


@pytest.fixture(params=[
    pytest.param(sample, id=sample.name, marks=() if sample.name in ALWAYS else pytest.mark.slow) for sample in SAMPLES
])  # fmt: skip
def sample(request: pytest.FixtureRequest) -> Sample:
    found: Sample = request.param
    return found
