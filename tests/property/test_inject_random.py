"""Random kernels, random tools: on the emulator the application notices nothing, and every count is right."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import LANES, Bench, code_object
from random_kernels import INPUT_BYTES, PROBES, SLOT_BYTES, kernel
from random_tool import RandomTool

from luthier_py.pipeline import instrument

GROUPS = 2


@pytest.fixture(scope="module")
def bench():
    lanes = GROUPS * LANES
    inputs = np.random.default_rng(5).integers(0, 1 << 32, lanes * INPUT_BYTES // 4, dtype=np.uint32).tobytes()
    return Bench(inputs, bytes(4 * PROBES), bytes(lanes * SLOT_BYTES))


def check(bench: Bench, seed: int) -> None:
    plain = kernel(seed, inline=False)
    data = code_object({"k": plain.rows})
    before = bench.run(data, "k", GROUPS)
    shown = bench.run(code_object({"k": kernel(seed, inline=True).rows}), "k", GROUPS)
    tool = RandomTool(seed, plain.probes)
    after = bench.run(instrument(data, tool, kernels=["k"]).data, "k.luthier", GROUPS)
    assert after.buffers == before.buffers
    assert shown.buffers[2] == before.buffers[2]
    counts, lanes = before.profile.counts, before.profile.lanes
    waves = lambda instrs: sum(counts.get(i.pc, 0) for i in instrs)  # noqa: E731
    active = lambda instrs: sum(lanes.get(i.pc, 0) for i in instrs)  # noqa: E731
    assert list(after[tool.totals]) == [
        waves(tool.ticks), active(tool.ticks_lanes), waves(tool.bumps), active(tool.bumps)]
    assert list(after[tool.rows]) == [waves(tool.bumps_all)] * LANES
    assert np.asarray(after[tool.probes], np.uint32).tobytes() == shown.buffers[1]


@pytest.mark.parametrize("seed", range(12))
def test_random_kernels_with_random_tools(bench, seed):
    check(bench, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_many_random_kernels_with_random_tools(bench, seed):
    check(bench, seed)
