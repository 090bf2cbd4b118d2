"""A random kernel, a random tool: run as it is, with probes of its own, and instrumented.

In: a Bench, the kernel in both ways, a RandomTool. Out: an AssertionError where memory or a count is not what it has to
be. Invariant: truth is the emulator's own record of the kernel as it is, and what its own probes left.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter

import numpy as np
from emulated import LANES, Bench, Ran
from random_edits import RandomEdits
from random_kernels import INPUT_BYTES, PROBES, SLOT_BYTES
from random_tool import RandomTool

from luthier_py.features.run.receiving import Receiving
from luthier_py.isa import Target
from luthier_py.report.received import Received
from luthier_py.rewrite.pipeline import Instrumented, instrument
from luthier_py.rewrite.tool import Channel, LaunchResult

GROUPS = 2


def bench_for(gpu: Target | None = None) -> Bench:
    lanes = GROUPS * LANES
    inputs = np.random.default_rng(5).integers(0, 1 << 32, lanes * INPUT_BYTES // 4, dtype=np.uint32).tobytes()
    return Bench(inputs, bytes(4 * PROBES), bytes(lanes * SLOT_BYTES), gpu=gpu)


def check_run(bench: Bench, plain: bytes, inline: bytes, tool: RandomTool) -> None:
    """``inline``: the same kernel with probes of its own, whose memory is what the tool's probes have to leave."""
    before = bench.run(plain, "k", GROUPS)
    shown = bench.run(inline, "k", GROUPS)
    after, lines = _run(bench, instrument(plain, tool, kernels=["k"]), tool)
    assert after.buffers == before.buffers, "memory differs"
    assert shown.buffers[2] == before.buffers[2]
    counts, lanes = before.profile.counts, before.profile.lanes
    waves = lambda instrs: sum(counts.get(i.pc, 0) for i in instrs)  # noqa: E731
    active = lambda instrs: sum(lanes.get(i.pc, 0) for i in instrs)  # noqa: E731
    assert list(after[tool.totals]) == [
        waves(tool.ticks), active(tool.ticks_lanes), waves(tool.bumps), active(tool.bumps)], "counts differ"
    assert list(after[tool.rows]) == [waves(tool.bumps_all)] * LANES, "counts of lanes differ"
    assert np.asarray(after[tool.probes], np.uint32).tobytes() == shown.buffers[1], "hooks get other values"
    if isinstance(tool, RandomEdits):
        assert tool.received_of == _of_lanes(tool.recorded, lanes), "other records came"
        assert Counter(lines) == {f"at {number}": n for number, n in _of_lanes(tool.said, lanes).items()}, "other lines"


def _of_lanes(instrs, lanes) -> dict[int, int]:
    return {number: lanes[i.pc] for number, i in enumerate(instrs) if lanes.get(i.pc, 0)}


def _run(bench: Bench, made: Instrumented, tool: RandomTool) -> tuple[Ran, list[str]]:
    """The copy, and the lines that it printed."""
    channels, received = [each for each in made.edits.variables if isinstance(each, Channel)], Received(tool)
    received.begin(LaunchResult(0, "k", (GROUPS, 1, 1), (LANES, 1, 1), {}))
    said = io.StringIO()
    with contextlib.redirect_stdout(said), Receiving(bench.device, channels, received.take) as receiving:
        after = bench.run(made.data, "k.luthier", GROUPS, lambda module: receiving.connect(module, channels, 0))
        receiving.drain_all()
    return after, said.getvalue().splitlines()
