"""Buffer resources as hooks read them, on every generation, against the reference's plain integers."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from each_target import EACH_TARGET
from on_host import on_host
from reference.buffers import Resource

from luthier_py.isa import Target
from luthier_py.rewrite.tool import hook, u32, u64
from luthier_py.rewrite.tool.hooks.buffers import (
    buffer_address,
    buffer_holds,
    scalar_buffer_address,
    scalar_buffer_holds,
)

SIZES = (1, 2, 4, 8, 12, 16)


@hook
def leads(low: u64, high: u64, index: u32, offset: u32, register: u32, constant: u32, lane: u32, generation: u32,
          wide: u32, converts: u32) -> u64:
    return buffer_address(low, high, index, offset, register, constant, lane, generation, wide != 0, converts != 0)


@hook
def holds(low: u64, high: u64, index: u32, offset: u32, register: u32, constant: u32, lane: u32, generation: u32,
          wide: u32, converts: u32, size: u32, indexed: u32) -> u32:
    return u32(buffer_holds(low, high, index, offset, register, constant, lane, generation, wide != 0, converts != 0,
                            size, indexed != 0))


@hook
def leads_all(low: u64, register: u32, offset: u64, unit: u64, wide: u32) -> u64:
    return scalar_buffer_address(low, register, offset, unit, wide != 0)


@hook
def holds_all(low: u64, high: u64, register: u32, offset: u64, unit: u64, generation: u32, wide: u32, size: u32
              ) -> u32:
    return u32(scalar_buffer_holds(low, high, register, offset, unit, generation, wide != 0, size))


@cache
def compiled() -> list[Any]:
    return on_host([leads, holds, leads_all, holds_all])


def resources(row: Target, rng: random.Random) -> Resource:
    """A resource of small records, of which a few accesses are in range and others are not."""
    stride, few = rng.choice((0, 4, 16, 36, 0x3FFF)), rng.choice((0, 3, 40, 400))
    base = rng.randrange(1 << 48)
    if row.wide_resources:
        whole = base | rng.randrange(512) << 48 | few << 57 | stride << 108 | rng.randrange(4) << 122
        whole |= rng.randrange(2) << 125
        return Resource(row, [whole >> 32 * k & 0xFFFFFFFF for k in range(4)], rng.randrange(2) == 1)
    swizzle = rng.choice((0, 0, 1, 3) if row.generation >= 11 else (0, 0, 2, 3))
    last = rng.randrange(1 << 32) & ~(0 if rng.randrange(2) else 127 << 12) & ~(rng.randrange(2) << 23)
    return Resource(row, [base & 0xFFFFFFFF, base >> 32 | stride << 16 | swizzle << 30, few, last],
                    rng.randrange(2) == 1)


@pytest.mark.parametrize("row", EACH_TARGET)
def test_each_generation(row: Target) -> None:
    leads, holds, leads_all, holds_all = compiled()
    rng, seen = random.Random(row.name), set[tuple[bool, int]]()
    for _ in range(3000):
        each = resources(row, rng)
        low, high = (each.words[k] | each.words[k + 1] << 32 for k in (0, 2))
        indexed, lane, size = rng.randrange(2) == 1, rng.randrange(64), rng.choice(SIZES)
        index = rng.choice((rng.randrange(64), rng.randrange(1 << 32))) if indexed else 0
        offset, constant = rng.choice((rng.randrange(64), rng.randrange(1 << 32))), rng.randrange(64)
        scalar = rng.choice((0, 8, 100))
        kind = row.generation, row.wide_resources, each.converts
        given = low, high, index, offset, scalar, constant, lane, *kind
        where = index + lane * each.add_tid & 0xFFFFFFFF, offset + constant & 0xFFFFFFFF, scalar
        assert leads(*given) == each.address(*where) % (1 << 64), (each, where)
        inside = each.inside(*where, size, indexed)
        assert holds(*given, size, indexed) == inside, (each, where, size, indexed)
        seen.add((inside, each.element))
        unit = 4 if size >= 4 else 1
        start = (scalar + constant) // unit * unit
        assert leads_all(low, scalar, constant, unit, row.wide_resources) == (each.base + start) // unit * unit
        plain = Resource(row, each.words, converts=True)
        room = each.records if row.wide_resources or not plain.stride else each.records * plain.stride
        assert holds_all(low, high, scalar, constant, unit, *kind[:2], size) == (start + size <= room)
    assert {inside for inside, _ in seen} == {False, True} and (row.wide_resources or len({e for _, e in seen}) > 1)


@pytest.mark.parametrize("row", [row for row in EACH_TARGET if row.id == "gfx1250"])
def test_swizzled_wide_resources_lead_nowhere(row: Target) -> None:
    leads, holds, *_ = compiled()
    given = 0x1000 | 64 << 57, 1 << 60, 0, 0, 0, 0, 0, row.generation, True, False
    assert leads(*given) == 0 and holds(*given, 4, True) == 0
