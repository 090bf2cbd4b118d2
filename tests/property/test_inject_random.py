"""Random kernels, random tools: on the emulator the application notices nothing, and every count is right."""

from __future__ import annotations

import pytest
from each_target import sometimes
from edited_runs import bench_for, check_run
from emulated import Bench, code_object
from every_case import check_all
from random_kernels import kernel
from random_tool import RandomTool


@pytest.fixture(scope="module")
def bench():
    return bench_for()


def check(bench: Bench, seed: int) -> None:
    plain = kernel(seed, inline=False)
    objects = (code_object({"k": rows}) for rows in (plain.rows, kernel(seed, inline=True).rows))
    check_run(bench, *objects, RandomTool(seed, plain.probes))


@pytest.mark.parametrize("seed", sometimes(range(6), range(6, 12)))
def test_random_kernels_with_random_tools(bench, seed):
    check(bench, seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 10))
def test_many_random_kernels_with_random_tools(bench, first):
    check_all(lambda seed: check(bench, seed), range(first, first + 10))
