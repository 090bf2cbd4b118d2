"""Kernels with preloaded arguments have two entries: what is called where a wave begins is called once, at either."""

from __future__ import annotations

import pytest
from emulated import Bench, Row, code_object, from_first_entry
from shown_kernels import END, LANES, S, instrumented

from luthier_py import Mutator, Variable, WaveVariable, hook, ptr, u64
from luthier_py.base.errors import EditConflict
from luthier_py.intrinsics import atomic_add

NOP: Row = ("s_nop", 0)


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(bytes(64), bytes(4 * LANES))


@hook
def add(count: u64, n: u64) -> u64:
    return count + n


@hook(lanes="one")
def flush(total: ptr[u64], count: u64) -> None:
    atomic_add(total, count)


def begins(tool, m: Mutator) -> None:
    for kernel in m.kernels:
        m.at_entry(kernel, add, tool.count, 1, into=tool.count)
        m.at_exit(kernel, flush, tool.total, tool.count)


def counts(tool, m: Mutator) -> None:
    for function in m.functions():
        counting = m.counting(function)
        weights = counting.following.weights([len(stretch) for stretch in counting.stretches])
        for counted, weight in zip(counting.counters, weights, strict=True):
            m.at_counted(counted, add, tool.count, weight % (1 << 64), into=tool.count)
    for kernel in m.kernels:
        m.at_exit(kernel, flush, tool.total, tool.count)


def kernel(*first: Row) -> bytes:
    """The first entry has ``first``, and goes on behind what the second one has."""
    head = [*first, ("s_branch", "behind")]
    rows = [*head, *[NOP] * (64 - len(head)), "second:", NOP, NOP, ("s_cmp_eq_u32", S(20), S(20)),
            ("s_cbranch_scc1", "behind"), NOP, "behind:", NOP, END]
    return code_object({"k": rows}, preload=2)


def made_by(visit) -> tuple:
    data = kernel(NOP, NOP)
    tool, made = instrumented(data, visit, count=WaveVariable(u64), total=Variable(u64))
    return data, tool, made.data


def test_a_call_at_the_entry_is_at_both(bench: Bench) -> None:
    _, tool, copy = made_by(begins)
    assert bench.run(copy, "k.luthier")[tool.total] == 1
    assert bench.run(from_first_entry(copy, "k.luthier"), "k.luthier")[tool.total] == 1


def test_counts_that_follow_from_entering_are_right_at_both(bench: Bench) -> None:
    data, tool, copy = made_by(counts)
    assert bench.run(copy, "k.luthier")[tool.total] == bench.run(data, "k").profile.total == 6
    first = from_first_entry(copy, "k.luthier"), from_first_entry(data, "k")
    assert bench.run(first[0], "k.luthier")[tool.total] == bench.run(first[1], "k").profile.total == 5


def test_an_entry_that_may_lead_to_the_other_one_is_told() -> None:
    data = kernel(("s_cmp_eq_u32", S(20), 0), ("s_cbranch_scc1", "second"))
    with pytest.raises(EditConflict, match="loops back to its first instruction"):
        instrumented(data, begins, count=WaveVariable(u64), total=Variable(u64))
