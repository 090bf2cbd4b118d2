"""Random kernels and tools where hardly a register is free: what is dead is said to be live, which is never wrong, so
that hooks have to spill; on the emulator the application notices nothing, and every count is right."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from each_target import sometimes
from every_case import check_all
from test_inject_random import bench, check  # noqa: F401  (a fixture)

from luthier_py.isa import Reg, RegFile, RegSet
from luthier_py.isa.model.registers import SCALARS
from luthier_py.rewrite.inject import policies, resources
from luthier_py.rewrite.inject.sites import Sites

MOST = 3  # registers of a file that are left at a place
EVERY = RegSet.by_file(SCALARS, (1 << 256) - 1)  # but accumulators
FOR_ADDRESSES = 3  # scalars where private memory needs one: hooks may name the others


def squeeze(monkeypatch, seed):
    """At every place a few registers are left, or none; in some kernels no accumulator is, or none for good."""
    in_memory = seed % 2
    if in_memory:
        monkeypatch.setattr(policies, "accumulators", lambda *args: ())
    if seed % 3 == 0:
        locations = resources.wave_locations
        monkeypatch.setattr(
            resources,
            "wave_locations",
            lambda program, facts, component, values, named, *more: locations(
                program, facts, component, values, named | EVERY, *more
            ),
        )
    site_of = Sites.site

    def squeezed(sites, point, live, needs):
        site = site_of(sites, point, live, needs)
        chance = random.Random(f"{seed} {point[0].pc} {point[1]}")
        scalars = chosen(chance, site.free, RegFile.SGPR, FOR_ADDRESSES * in_memory)
        left = RegSet.of(*scalars, *chosen(chance, site.free, RegFile.VGPR, 0))

        def dead_in_all_lanes():
            found = site.dead_in_all_lanes()
            return None if found is None else found & left

        gone = site.free - left
        return replace(site, free=left, busy=site.busy | gone, dead_in_all_lanes=dead_in_all_lanes)

    monkeypatch.setattr(Sites, "site", squeezed)


def chosen(chance: random.Random, free: RegSet, file: RegFile, least: int) -> list[Reg]:
    """A scalar at least where private memory needs one for an address."""
    regs = [reg for reg in free if reg.file is file]
    return chance.sample(regs, min(len(regs), chance.randint(least, MOST)))


def check_squeezed(bench, seed):  # noqa: F811
    with pytest.MonkeyPatch.context() as patch:
        squeeze(patch, seed)
        check(bench, seed)


@pytest.mark.parametrize("seed", sometimes(range(6), range(6, 8)))  # of 6 each squeezes otherwise
def test_random_kernels_with_hardly_a_register(bench, seed):  # noqa: F811
    check_squeezed(bench, seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(3000, 3300, 10))
def test_many_random_kernels_with_hardly_a_register(bench, first):  # noqa: F811
    check_all(lambda seed: check_squeezed(bench, seed), range(first, first + 10))
