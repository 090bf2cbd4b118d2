"""Decisions about what hooks get and give that the claim agrees with: the proof refuses them by the claim alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import LaneOf, sgpr, vgpr
from luthier_py.proof import prove
from luthier_py.proof.claim import Address, Kept
from luthier_py.rewrite.inject import apply, resources
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Variable, load_tool
from luthier_py.rewrite.tool.variables import Element
from luthier_py.samples import sample


def made(name="reduce", tool="instr_count", **options):
    return instrument(sample(name).path.read_bytes(), load_tool(tool, options), name)


def locations(monkeypatch, place):
    monkeypatch.setattr(resources, "wave_locations", lambda program, facts, component, variables, named, slots, order: {
        variable: place(number, variable.type.dwords)
        for number, variable in enumerate(sorted(variables, key=lambda each: (-each.type.dwords, each.name)))})


def claimed(monkeypatch, change):
    """Functions are claimed as ``change`` says."""
    own = apply.build_function_claim
    monkeypatch.setattr(apply, "build_function_claim", lambda *args: change(own(*args)))


def without_prologue(monkeypatch):
    monkeypatch.setattr(apply, "with_prologue", lambda isa, clone, prologue: clone)


@pytest.mark.parametrize("first", [0, 2, 40])
def test_what_the_tool_keeps_is_not_kept_nowhere(monkeypatch, first):
    """Where no register is said to be the tool's, those of the application could be meant."""
    locations(monkeypatch, lambda number, dwords: sgpr(first + 2 * number, dwords))
    claimed(monkeypatch, lambda function: replace(function, locations={}))
    without_prologue(monkeypatch)
    with pytest.raises(CheckFailed, match="keeps as 0, and that is nowhere"):
        made("mandelbrot")


def test_what_the_tool_keeps_is_not_all_in_one_place(monkeypatch):
    locations(monkeypatch, lambda number, dwords: sgpr(40, dwords))
    with pytest.raises(CheckFailed, match=r"keeps two things in s\[40:41\]"):
        made("bitonic_sort", "opcode_histogram")


@pytest.mark.parametrize(("place", "why"), [
    (lambda number: sgpr(40 + number, 2), "keeps two things in s42"),
    (lambda number: LaneOf(vgpr(60), number, 2), "keeps two things in v60 lane 2"),
    (lambda number: LaneOf(vgpr(60), 63, 2), "cannot keep anything in v60 lane 63"),
    (lambda number: sgpr(101, 2), "cannot keep anything in s101"),
    (lambda number: vgpr(60, 2), "cannot keep anything in v"),
])
def test_what_the_tool_keeps_has_places_of_its_own(place, why):
    right = made("bitonic_sort", "opcode_histogram")
    function, = right.patched.claim.functions
    assert function.locations.keys() == {1, 2, 3, 4}
    moved = replace(function, locations={number: place(number) for number in sorted(function.locations)})
    with pytest.raises(CheckFailed, match=why):
        prove(right.obj.data, right.data, replace(right.patched.claim, functions=(moved,)))


def test_registers_of_which_the_tool_keeps_lanes_are_no_arguments():
    right = made()
    function, = right.patched.claim.functions
    calls = tuple(replace(call, arguments=(call.arguments[0], vgpr(60, 2))) if len(call.arguments) == 2 else call
                  for call in function.calls)
    other = replace(function, locations={0: LaneOf(vgpr(61), 4, 2)}, calls=calls)
    with pytest.raises(CheckFailed, match="where the tool keeps its own"):
        prove(right.obj.data, right.data, replace(right.patched.claim, functions=(other,)))


@pytest.mark.parametrize(("away", "why"), [
    (-8, "outside of"), (-64, "outside of"), (4096, "outside of"), (1 << 20, "outside of"), (4, "not a multiple of 8"),
])
def test_addresses_are_those_of_elements_of_the_variable(monkeypatch, away, why):
    """Who makes the code and who makes the claim agree on where an element is."""
    monkeypatch.setattr(Element, "offset_bytes", property(lambda e: e.index * e.variable.type.size_bytes + away))
    with pytest.raises(CheckFailed, match=why):
        made("reduce", "opcode_histogram")


@pytest.mark.parametrize("size", [lambda size: size // 2, lambda size: 1])
def test_variables_hold_what_is_pointed_to(monkeypatch, size):
    own = Variable.size_bytes.fget
    monkeypatch.setattr(Variable, "size_bytes", property(lambda variable: size(own(variable))))
    with pytest.raises(CheckFailed, match="outside of"):
        made("reduce", "instr_count")


WRONG = {
    "another number of values": lambda call: replace(call, arguments=call.arguments[1:]),
    "is of another size": lambda call: replace(call, arguments=(sgpr(4, 4), *call.arguments[1:])),
    "a number that the tool keeps for a pointer": lambda call: replace(call, arguments=(Kept(0), Kept(0))),
    "of other, which is nowhere": lambda call: replace(call, arguments=(Address("other"), Kept(0))),
    "where the tool keeps its own": lambda call: replace(call, arguments=(call.arguments[0], sgpr(9, 2))),
    "for a number": lambda call: replace(call, arguments=2 * call.arguments[:1]),
}


@pytest.mark.parametrize("why", WRONG)
def test_values_are_what_parameters_take(why):
    right = made()
    claim = right.patched.claim
    function, = claim.functions
    assert function.locations == {0: sgpr(8, 2)}
    calls = tuple(WRONG[why](call) if len(call.arguments) == 2 else call for call in function.calls)
    assert calls != function.calls
    with pytest.raises(CheckFailed, match=why):
        prove(right.obj.data, right.data, replace(claim, functions=(replace(function, calls=calls),)))
