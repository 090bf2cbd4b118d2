"""Host memory of launches: used again, and not kept beyond what is enough."""

from __future__ import annotations

import mmap

import pytest

from luthier_py.emulator.memory.pool import MAX_IDLE_BYTES, PagePool


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> PagePool:
    """Enough is two pages."""
    monkeypatch.setattr("luthier_py.emulator.memory.pool.MAX_IDLE_BYTES", 2 * mmap.PAGESIZE)
    return PagePool()


def test_a_block_is_used_again_however_often(pool: PagePool) -> None:
    first = pool.take(100)
    assert first.size == mmap.PAGESIZE
    for _ in range(10):
        pool.give(first)
        assert pool.take(mmap.PAGESIZE) is first


def test_no_more_is_kept_than_enough(pool: PagePool) -> None:
    blocks = [pool.take(1) for _ in range(3)]
    for block in blocks:
        pool.give(block)
    again = [pool.take(1) for _ in range(3)]
    assert sum(block in blocks for block in again) == 2 and len(set(map(id, again))) == 3
    large = pool.take(3 * mmap.PAGESIZE)
    assert large.size == 4 * mmap.PAGESIZE
    pool.give(large)
    assert pool.take(3 * mmap.PAGESIZE) is not large


def test_blocks_of_other_sizes_do_not_serve(pool: PagePool) -> None:
    small = pool.take(1)
    pool.give(small)
    assert pool.take(2 * mmap.PAGESIZE) is not small and pool.take(1) is small


def test_enough_is_a_quarter_of_a_gibibyte() -> None:
    assert MAX_IDLE_BYTES == 1 << 28
