"""Counting tools with random options on random kernels: every count is the emulator's, whatever is chosen."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from each_target import sometimes
from emulated import LANES, Bench, code_object
from every_case import check_all
from random_kernels import INPUT_BYTES, PROBES, SLOT_BYTES, kernel

from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import LaunchResult, load_tool

GROUPS = 2


@pytest.fixture(scope="module")
def bench():
    lanes = GROUPS * LANES
    inputs = np.random.default_rng(5).integers(0, 1 << 32, lanes * INPUT_BYTES // 4, dtype=np.uint32).tobytes()
    return Bench(inputs, bytes(4 * PROBES), bytes(lanes * SLOT_BYTES))


def check(bench: Bench, seed: int) -> None:
    data, rng = code_object({"k": kernel(seed, inline=False).rows}), random.Random(seed)
    before = bench.run(data, "k", GROUPS)
    (function,) = instrument(data, load_tool("none"), kernels=["k"]).program.functions
    instrs = list(function.instrs)
    begin = rng.choice((0, rng.randrange(len(instrs))))
    end = rng.choice((len(instrs), rng.randrange(begin, len(instrs)) + 1))
    per_wave, active = rng.random() < 0.5, rng.random() < 0.5
    counts = {
        (True, False): before.profile.counts,
        (True, True): before.profile.active,
        (False, True): before.profile.lanes,
        (False, False): {pc: LANES * n for pc, n in before.profile.counts.items()},
    }[per_wave, active]
    expected: Counter[str] = Counter()
    for instr in instrs[begin:end]:
        expected[instr.inst.op.mnemonic] += counts.get(instr.pc, 0)
    options = {"INSTR_BEGIN": begin, "INSTR_END": end, "COUNT_WARP_LEVEL": per_wave, "EXCLUDE_PRED_OFF": active}
    for name, mode in (("instr_count", {"mode": rng.choice(("block", "instruction"))}), ("opcode_histogram", {})):
        tool = load_tool(name, {**options, **mode})
        made = instrument(data, tool, kernels=["k"])
        after = bench.run(made.data, "k.luthier", GROUPS)
        assert after.buffers == before.buffers
        memory = {v.name: after.device.read(after.module.variable(v.name).address, v.size_bytes)
                  for v in made.edits.variables}  # fmt: skip
        report = tool.report(LaunchResult(0, "k", (GROUPS, 1, 1), (LANES, 1, 1), memory, notes=made.edits.notes))
        counted = report["instructions"] if name == "instr_count" else report["opcodes"]
        assert counted == (expected.total() if name == "instr_count" else +expected), (name, mode, options)


@pytest.mark.parametrize("seed", sometimes(range(2000, 2003), range(2003, 2006)))
def test_random_options_on_random_kernels(bench, seed):
    check(bench, seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(3000, 3100, 10))
def test_many_random_options_on_random_kernels(bench, first):
    check_all(lambda seed: check(bench, seed), range(first, first + 10))
