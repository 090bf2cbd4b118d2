"""What a component shares: its functions, assigned locations of wave variables, and the registers that descriptors have
to have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from emulated import code_object
from synthetic import Row, build

from luthier_py import Mutator, Tool, Variable, WaveVariable, hook, ptr, u64
from luthier_py.binary.loader import DESCRIPTOR_BYTES, KernelDescriptor, load
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import RegFile, RegSet, agpr, instruction_set, sgpr, target, vgpr
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import Program, lift
from luthier_py.rewrite.inject import apply
from luthier_py.rewrite.inject.items import Cause, Clone, Edit, Single
from luthier_py.rewrite.inject.policies import accumulators
from luthier_py.rewrite.inject.resources import (
    ACCUMULATORS_FIRST,
    VECTORS_FIRST,
    Component,
    at_no_cost,
    collect_used_registers,
    components,
    counts,
    for_fewer_waves,
    grow_register_counts,
    occupancy,
    wave_locations,
)
from luthier_py.rewrite.pipeline import instrument

Allowed = Callable[[Program, Component, Sequence[RegFile]], RegSet]
END: Row = ("s_endpgm",)
RETURN: Row = ("s_setpc_b64", sgpr(30, 2))


def to(name: str) -> list[Row]:
    return [("s_getpc_b64", sgpr(6, 2)), ("s_add_u32", sgpr(6), sgpr(6), name),
            ("s_addc_u32", sgpr(7), sgpr(7), name), ("s_swappc_b64", sgpr(30, 2), sgpr(6, 2))]


def test_a_kernel_that_reaches_what_two_others_do_makes_them_one_component() -> None:
    program = lift(build({"a": [*to("f"), END], "b": [*to("g"), END], "c": [*to("f"), *to("g"), END],
                          "f": [RETURN], "g": [RETURN]}, kernels=("a", "b", "c")))
    (found,) = components(program, program.kernels)
    assert {kernel.name for kernel in found.kernels} == {"a", "b", "c"}
    assert set(found.functions) == set(program.functions)


def test_kernels_that_share_by_others_are_one_component() -> None:
    """The third kernel joins two, and the last one what only the first of these reaches; the fourth is alone."""
    code = {"a": [*to("f"), *to("h"), END], "b": [*to("g"), END], "c": [*to("f"), *to("g"), END], "d": [*to("i"), END],
            "e": [*to("h"), END], **dict.fromkeys("fghi", [RETURN])}
    program = lift(build(code, kernels=tuple("abcde")))
    found = components(program, program.kernels)
    assert sorted("".join(sorted(kernel.name for kernel in each.kernels)) for each in found) == ["abce", "d"]
    assert sorted(sum(([f.name for f in each.functions] for each in found), [])) == list("abcdefghi")


def test_a_wave_variable_does_not_live_where_something_lies_at_the_start() -> None:
    """A trap handler may look at the queue, which no instruction names."""
    for rows, free in (([("s_trap", 2), END], False), ([END], True)):
        program = lift(build({"k": rows}))
        (component,) = components(program, program.kernels)
        (location,) = wave_locations(program, analyse(program), component, [WaveVariable(u64)]).values()
        assert (location == sgpr(0, 2)) is free


def test_metadata_counts_registers_as_llvm_does() -> None:
    used = RegSet.of(sgpr(0, 10), vgpr(0, 4), agpr(0, 9))
    descriptor = build({"k": [END]}).kernels[0].descriptor
    assert counts(target("gfx908"), descriptor, used) == {".sgpr_count": 16, ".vgpr_count": 9}  # VCC, FLAT_SCRATCH, ...
    more = descriptor.with_accum_offset(8)
    assert counts(target("gfx90a"), more, used) == {".sgpr_count": 16, ".vgpr_count": 17}


def test_registers_that_are_only_read_are_used() -> None:
    isa = instruction_set(target("gfx90a"))
    item = Single(isa.parse("v_mov_b32_e32 v3, v40"), edit=Edit(Cause.PROLOGUE))
    assert collect_used_registers([Clone(0, "k", (item,), {})]).vgpr == RegSet.of(vgpr(3), vgpr(40)).vgpr


def test_a_kernel_has_the_room_that_it_needs_itself() -> None:
    """Not that of another which calls the same function."""
    program = lift(build({"a": [*to("f"), END], "b": [*to("f"), END], "f": [RETURN]}, kernels=("a", "b")))
    used = {"a": vgpr(100), "b": vgpr(3), "f": vgpr(20)}
    named = {function: RegSet.of(used[function.name]) for function in program.functions}
    names = {function.address: function.name for function in program.functions}
    a, b = (apply._new_kernel(program, kernel, kernel.record.descriptor, named, names).descriptor
            for kernel in program.kernels)
    assert (a.vgpr_count(program.obj.target), b.vgpr_count(program.obj.target)) == (104, 64)


def test_accumulators_that_are_used_stay_above_what_is_added() -> None:
    """So registers cost waves earlier in such a kernel."""
    program = lift(build({"k": [END]}))
    (component,) = components(program, program.kernels)
    (kernel,) = component.kernels
    descriptor = kernel.record.descriptor.with_accum_offset(4).with_vgpr_count(program.obj.target, 64)
    limits = []
    for count in (0, 60):
        record = replace(kernel.record, descriptor=descriptor, metadata={".agpr_count": count})
        with_agprs = replace(component, kernels=(replace(kernel, record=record),))
        limits.append(at_no_cost(program, with_agprs).vgpr.bit_length())
    assert limits == [64, 4]


def test_accumulators_that_the_application_touches_keep_nothing_else() -> None:
    """Neither those that it only reads, nor those that a function of it writes."""
    program = lift(build({"k": [("v_accvgpr_read_b32", vgpr(2), agpr(1)), *to("f"), END],
                          "f": [("v_accvgpr_write_b32", agpr(3), vgpr(0)), RETURN]}))
    (component,) = components(program, program.kernels)
    found = accumulators(program, analyse(program), component, RegSet.of(agpr(0, 6), vgpr(0, 6)))
    assert found == (agpr(0), agpr(2), agpr(4), agpr(5))


class SmallAndLarge(Tool):
    """Behind the first marker a few vector registers are enough, behind the second they are not."""

    rows = Variable(u64, 64)

    @hook(lanes="all")
    def small(rows: ptr[u64]) -> None:
        atomic_add(rows + lane_id(), u64(1))

    @hook(lanes="all")
    def large(rows: ptr[u64]) -> None:
        taken = rows[0] * rows[1] + rows[2] * rows[3] + rows[4] * rows[5] + rows[6] * rows[7]
        atomic_add(rows + lane_id(), taken)

    def instrument(self, m: Mutator) -> None:
        (function,) = (each for each in m.functions() if each.name == "k")
        first, second = (instr for instr in m.instrs(function) if instr.inst.op.base == "S_NOP")
        m.before(first, self.small, self.rows)
        m.before(second, self.large, self.rows)


def test_calls_that_choose_otherwise_leave_room_together() -> None:
    """One takes vector registers that another's accumulators would need; work-groups of 1,024 leave 128 of both."""
    live = range(123)
    writes = [("v_mov_b32", vgpr(number), number) for number in live]
    marker = ("s_nop", 7)
    reads = [("v_add_u32", vgpr(0), vgpr(0), vgpr(number)) for number in live]
    data = code_object({"k": [*writes, marker, marker, *reads, END]}, vgprs=124)
    assert load(data).kernel("k").max_workitems == 1024
    copy = load(instrument(data, SmallAndLarge()).data)
    wanted, descriptor = copy.target, copy.kernel("k.luthier").descriptor
    assert wanted.waves_for(descriptor.vgpr_count(wanted), descriptor.sgpr_count(wanted)) >= 4


@pytest.mark.parametrize("name", ["gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("order", [VECTORS_FIRST, ACCUMULATORS_FIRST])
@pytest.mark.parametrize("allowed", [at_no_cost, for_fewer_waves])
def test_all_that_is_allowed_may_be_used_at_once(name: str, allowed: Allowed, order: Sequence[RegFile]) -> None:
    """A kernel of every size keeps its waves, or room for its largest work-group, whichever files hooks choose."""
    wanted = target(name)
    program = lift(build({"k": [END]}))
    program = replace(program, obj=replace(program.obj, target=wanted))
    (component,) = components(program, program.kernels)
    (kernel,) = component.kernels
    for vgprs in (4, 60, 100, 104, 128, 200, 252):
        descriptor = kernel.record.descriptor.with_accum_offset(vgprs).with_vgpr_count(wanted, vgprs)
        record = replace(kernel.record, descriptor=descriptor, metadata={".max_flat_workgroup_size": 1024})
        one = replace(component, kernels=(replace(kernel, record=record),))
        had = occupancy(wanted, descriptor).waves
        group = wanted.waves_of_group(1024, descriptor.wave_size, bool(descriptor.wgp_mode))
        after = occupancy(wanted, grow_register_counts(wanted, descriptor, allowed(program, one, order))).waves
        assert after >= (had if allowed is at_no_cost else min(had, group))


@pytest.mark.parametrize(("name", "wave_size"), [("gfx1030", 32), ("gfx1100", 32), ("gfx1100", 64), ("gfx1201", 32)])
def test_descriptors_count_the_registers_that_code_names(name: str, wave_size: int) -> None:
    """More may be allocated, as that is in larger blocks: code must not name it."""
    processor = target(name)
    empty = KernelDescriptor(bytes(DESCRIPTOR_BYTES)).replace(enable_wavefront_size32=wave_size == 32)
    for last in range(64):
        made = grow_register_counts(processor, empty, RegSet.of(vgpr(last)))
        assert last < made.count_addressable_vgprs(processor) <= made.vgpr_count(processor)
