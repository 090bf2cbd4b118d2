"""Kernels that use every scalar register: what a hook and a tool need of them is kept in lanes of a vector register."""

from __future__ import annotations

from functools import reduce
from operator import xor

import pytest
from emulated import LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, S, V, instrumented, stores, words

from luthier_py import Mutator, Variable, WaveVariable, hook, ptr, u32, u64
from luthier_py.base.errors import CheckFailed, OutOfRegisters
from luthier_py.binary.loader import load
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import EXEC, LaneOf, OpFlag
from luthier_py.proof import prove
from luthier_py.rewrite.inject import resources
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

EVERY = [0, 1, *range(4, 102)]  # s[2:3] have the address of what is shown
TURNS = 3


@pytest.fixture(scope="module")
def bench():
    return Bench(bytes(range(64)), bytes(4 * WORDS * LANES))


@hook(lanes="all")
def everywhere(rows: ptr[u64]) -> None:
    atomic_add(rows + lane_id(), u64(1))


@hook
def add(count: u64, by: u32) -> u64:
    return count + u64(by)


@hook
def swap(a: u32, b: u32) -> tuple[u32, u32]:
    return b, a


@hook(lanes="one")
def flush(total: ptr[u64], count: u64) -> None:
    atomic_add(total, count)


def full(*inner):
    """Fills all scalar registers, runs ``inner``, and shows what they hold then: some, and the sum of all."""
    first, *others = EVERY
    return code_object({"k": [
        *POINTERS, *(("s_mov_b32", S(i), 3 * i + 1) for i in EVERY), *inner,
        *(("s_xor_b32", S(first), S(first), S(i)) for i in others), *stores(S(first), S(1), S(101)), END]}, sgprs=102)


def shown(ran):
    found = reduce(xor, (3 * i + 1 for i in EVERY))
    return [words(ran, n)[0] for n in range(3)] == [found, 4, 304]


def markers(m: Mutator):
    return [i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP"]


def visit_markers(tool, m: Mutator) -> None:
    for instr in markers(m):
        m.before(instr, everywhere, tool.rows)


def count_markers(tool, m: Mutator) -> None:
    for number, instr in enumerate(markers(m)):
        m.before(instr, add, tool.count, u32(number + 1), into=tool.count)
    for kernel in m.kernels:
        m.at_exit(kernel, flush, tool.total, tool.count)


def counting():
    return {"total": Variable(u64, name="total"), "count": WaveVariable(u64)}


def insert(data, visit, **hooks):
    tool, made = instrumented(data, visit, **hooks)
    (report,) = made.patched.report
    assert report.before.waves == report.after.waves
    return tool, made


@pytest.mark.parametrize("mask", [-1, 1, 0])
def test_scalars_that_a_hook_needs_come_back(bench, mask):
    """In whichever lanes the place is executed."""
    inner = [("s_nop", 7), ("s_mov_b64", S(EXEC, 2), mask), ("s_nop", 6), ("s_mov_b64", S(EXEC, 2), -1)]
    tool, made = insert(full(*inner), visit_markers, rows=Variable(u64, LANES, name="rows"))
    ran = bench.run(made.data, "k.luthier")
    assert shown(ran) and ran[tool.rows] == (2,) * LANES


def test_a_wave_variable_lives_in_lanes(bench):
    """Through a loop, and where no lane is active."""
    loop = [("s_mov_b32", S(0), TURNS), ("s_nop", 7), ("s_sub_u32", S(0), S(0), 1),
            ("s_cmp_lg_u32", S(0), 0), ("s_cbranch_scc1", -4), ("s_mov_b32", S(0), 1)]
    off = [("s_mov_b64", S(EXEC, 2), 0), ("s_nop", 6), ("s_mov_b64", S(EXEC, 2), -1)]
    tool, made = insert(full(*loop, *off), count_markers, **counting())
    (function,) = made.patched.claim.functions
    assert [type(location) for location in function.locations.values()] == [LaneOf]
    ran = bench.run(made.data, "k.luthier")
    assert shown(ran) and ran[tool.total] == TURNS * 1 + 2


def test_scalars_are_not_kept_where_vector_code_means_something_else(bench):
    """Where registers are indexed; beside it they are."""
    modes = [("s_mov_b32", S(0), 0), ("s_nop", 6), ("s_set_gpr_idx_on", S(0), 1), ("s_nop", 7),
             ("s_set_gpr_idx_off",), ("s_mov_b32", S(0), 1)]

    def exchange(number):
        def visit(tool, m):
            place = next(i for i in markers(m) if i.inst["simm16"].value == number)
            m.before(place, swap, S(10), S(11), into=(S(11), S(10)))
            m.before(place, swap, S(10), S(11), into=(S(10), S(11)))

        return visit

    data = full(*modes)
    ran = bench.run(insert(data, exchange(6))[1].data, "k.luthier")
    assert shown(ran)
    with pytest.raises(OutOfRegisters, match="`s_nop 7`"):
        insert(data, exchange(7))


def test_vector_code_is_not_needed_where_registers_are_free():
    """Lanes are the second choice."""
    data = code_object({"k": [*POINTERS, ("s_nop", 7), *stores(V(0)), END]})
    _, made = insert(data, count_markers, **counting())
    assert not any(
        isinstance(location, LaneOf) for f in made.patched.claim.functions for location in f.locations.values()
    )


@pytest.mark.parametrize("visit", [visit_markers, count_markers])
def test_a_copy_that_takes_other_lanes_is_refused(visit):
    """Each inserted instruction that moves a scalar to or from a lane, with another lane, and left out."""
    hooks = {"rows": Variable(u64, LANES, name="rows"), **counting()}
    _, made = instrumented(full(("s_nop", 7), ("s_nop", 6)), visit, **hooks)
    isa, (source,), tried = made.program.isa, made.patched.maps, 0
    linked, own = load(made.data), set(source.instructions.values())
    symbol = linked.symbol(source.chunk)
    start = linked.elf.load_at(symbol.address).offset + symbol.address - linked.elf.load_at(symbol.address).address
    prove(made.obj.data, made.data, made.patched.claim)
    at = 0
    while at < symbol.size:
        inst = isa.decode(made.data, start + at)
        lane = inst.find("src1")
        if at not in own and OpFlag.IGNORES_EXEC in inst.op.flags and lane is not None:
            for other in (isa.with_field(inst, "src1", 128 + (lane.value + 9) % 64).raw, 2 * isa.make("s_nop", 0).raw):
                data = made.data[: start + at] + other + made.data[start + at + inst.size_bytes :]
                with pytest.raises(CheckFailed):
                    prove(made.obj.data, data, made.patched.claim)
                tried += 1
        at += inst.size_bytes
    assert tried > 4


@pytest.mark.parametrize("vector", [V(0), V(3)])
def test_a_lane_of_a_register_that_the_application_has_is_refused(monkeypatch, vector):
    monkeypatch.setattr(resources, "wave_locations", lambda program, facts, component, variables, named, slots, order: {
        variable: LaneOf(vector, 2, variable.type.dwords) for variable in variables})
    with pytest.raises(CheckFailed, match="the tool keeps its own in"):
        instrument(sample("reduce").path.read_bytes(), load_tool("instr_count"))
