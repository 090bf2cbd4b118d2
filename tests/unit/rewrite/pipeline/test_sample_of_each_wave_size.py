"""The whole pipeline, once for each wave size, on code objects that lie here: for `make check`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

SEEDS = Path(__file__).parents[3] / "fuzz" / "seeds"


@pytest.mark.check
@pytest.mark.parametrize("path, wave_size", [(sample("reduce").path, 64), (SEEDS / "gfx1201-reduce.co", 32)],
                         ids=["wave64", "wave32"])  # fmt: skip
def test_counts_are_the_emulators_and_memory_is_the_same(path: Path, wave_size: int) -> None:
    code, launch = path.read_bytes(), launch_of(sample("reduce"))
    obj = load(code)
    assert obj.kernels[0].descriptor.wave_size == wave_size
    device = EmulatorDevice(obj.target)
    bare = run_original(device, code, launch).outputs
    counted = device.profile.total
    tool = load_tool("instr_count")
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    assert ran.report["instructions"] == counted > 0
    assert {number: data.tobytes() for number, data in ran.outputs.items()} == {
        number: np.asarray(data).tobytes() for number, data in bare.items()}  # fmt: skip
