"""Wrong wishes, on which code and claim agree: the proof lets them pass, and the comparison with the edits does not."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import msgpack
import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import sgpr
from luthier_py.proof.claim import Side
from luthier_py.rewrite import pipeline
from luthier_py.rewrite.claim_check import _stack_bytes, check_claim_of_tool
from luthier_py.rewrite.inject import call, claimed
from luthier_py.rewrite.inject.placing import Calls
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Lanes, Place, Tool, Variable, WaveVariable, hook, load_tool, ptr, u32, u64
from luthier_py.samples import sample


class Wishes(Tool):
    sums = Variable(u64, 4)
    first = WaveVariable(u32)
    second = WaveVariable(u32)

    @hook(lanes="one", fold=False)
    def add(to: ptr[u64], x: u32, y: u32, by: u32) -> None:
        to[0] += u64(x) + u64(y) * u64(by)

    @hook(fold=False)
    def twice(x: u32, y: u32, by: u32) -> u32:
        return x + 2 * y + by

    @hook(fold=False)
    def thrice(x: u32, y: u32, by: u32) -> u32:
        return x + 3 * y + by

    def instrument(self, m):
        for block in m.functions()[0].blocks:
            if len(block.instrs) == 1:
                continue
            place = block.instrs[0]
            m.before(place, self.twice, self.first, sgpr(6), 1000, into=self.first)
            m.before(place, self.thrice, self.second, sgpr(6), 2000, into=self.second)
        for block in m.functions()[0].blocks:
            if block.ending.name == "END":
                m.before(block.instrs[-1], self.add, self.sums[2], self.first, self.second, 70)


def made():
    return instrument(sample("reduce").path.read_bytes(), Wishes(), "reduce")


def arguments(insertion, change):
    return [replace(insertion, args=tuple(map(change, insertion.args)))]


def behind(insertion):
    """One instruction later."""
    (instr, _), = insertion.places
    return [replace(insertion, places=((instr, Place.AFTER),))] if insertion.hook is not Wishes.add else [insertion]


def swapped(insertion):
    other = {Wishes.first: Wishes.second, Wishes.second: Wishes.first}
    return [replace(insertion, into=tuple(map(other.get, insertion.into)))]


def other_hook(insertion):
    other = {Wishes.twice: Wishes.thrice, Wishes.thrice: Wishes.twice}
    return [replace(insertion, hook=other.get(insertion.hook, insertion.hook))]


DECISIONS = {
    "does not run": lambda insertion: [insertion] if insertion.order % 2 else [],
    "that it did not ask for, or twice": lambda insertion: [insertion, insertion],
    "not as it was compiled": other_hook,
    "does not run at its place": behind,
    "gets other arguments": lambda insertion: arguments(
        insertion, lambda arg: sgpr(7) if arg == sgpr(6) else arg),
    "add gets other arguments": lambda insertion: arguments(
        insertion, lambda arg: Wishes.sums[3] if arg == Wishes.sums[2] else arg),
    "twice gets other arguments": lambda insertion: [replace(
        insertion, args=(*insertion.args[-2::-1], insertion.args[-1]))] if insertion.into else [insertion],
    "results go elsewhere": swapped,
    "gets other constants": lambda insertion: arguments(
        insertion, lambda arg: arg + 1 if isinstance(arg, int) else arg),
}


def refused(monkeypatch, why):
    """It is, and for no other reason."""
    with monkeypatch.context() as context:
        context.setattr(pipeline, "check_claim_of_tool", lambda *args: None)
        made()
    with pytest.raises(CheckFailed, match=why):
        made()


@pytest.mark.parametrize("why", DECISIONS)
def test_calls_are_those_that_the_tool_asked_for(monkeypatch, why):
    made()
    add = Calls.add
    monkeypatch.setattr(Calls, "add", lambda self, insertion: [add(self, each) for each in DECISIONS[why](insertion)])
    refused(monkeypatch, why)


def test_hooks_run_in_the_lanes_that_they_declare(monkeypatch):
    monkeypatch.setattr(call, "Lanes", SimpleNamespace(ACTIVE=Lanes.ACTIVE, ONE=Lanes.ALL, ALL=Lanes.ONE))
    monkeypatch.setattr(claimed, "_EXEC", {Lanes.ACTIVE: None, Lanes.ONE: -1, Lanes.ALL: 1})
    refused(monkeypatch, "said to be something else")


def test_variables_have_the_sizes_that_the_tool_gives_them(monkeypatch):
    own = Variable.size_bytes.fget
    monkeypatch.setattr(Variable, "size_bytes", property(lambda variable: own(variable) - 8))
    refused(monkeypatch, "of other sizes")


def test_calls_at_one_point_run_in_their_order(monkeypatch):
    """Those that begin come first, whatever the order of recording; one kind runs as it was recorded."""
    add, held = Calls.add, []

    def late(self, insertion):
        if insertion.hook is Wishes.twice:
            held.append(insertion)
            return
        for each in (insertion, *held):
            add(self, each)
        held.clear()

    monkeypatch.setattr(Calls, "add", late)
    refused(monkeypatch, "runs behind others")


def test_registers_that_the_tool_names_are_not_those_where_it_keeps_its_own():
    """A tool may keep things in registers that the application has not."""
    taken = {location.index for location in made().patched.claim.functions[0].locations.values()}
    named = sgpr(min(taken))

    class Names(Wishes):
        def instrument(self, m):
            super().instrument(m)
            m.before(m.functions()[0].blocks[1].instrs[0], self.twice, named, self.first, 5, into=named)

    function, = instrument(sample("reduce").path.read_bytes(), Names(), "reduce").patched.claim.functions
    assert len(function.locations) == 2 and named.index not in {
        location.index for location in function.locations.values()
    }


def wanted(right, claim, edits=None, clones=None, refused=()):
    payloads = pipeline.compile_hooks(right.edits, right.program.isa)
    clones = {row.name: row.clone for row in right.patched.report} if clones is None else clones
    check_claim_of_tool(claim, edits or right.edits, payloads, right.program, clones, refused)


def test_only_wanted_kernels_and_functions_have_clones():
    right = instrument(sample("device_call").path.read_bytes(), load_tool("instr_count"), "device_call")
    claim = right.patched.claim
    wanted(right, claim)
    for functions in (claim.functions[1:], (*claim.functions, claim.functions[0])):
        with pytest.raises(CheckFailed, match="other functions"):
            wanted(right, replace(claim, functions=functions))
    name, = claim.kernels
    for clones, refused in (({}, ()), ({name: name}, ()), (None, (name,))):
        with pytest.raises(CheckFailed, match="kernels have clones"):
            wanted(right, claim, clones=clones, refused=refused)


def test_calls_stand_in_the_function_and_on_the_side_that_was_named():
    right = instrument(sample("device_call").path.read_bytes(), load_tool("instr_count"), "device_call")
    claim = right.patched.claim
    first, *others = claim.functions
    after = replace(first, calls=tuple(replace(each, side=Side.AFTER) for each in first.calls))
    elsewhere = replace(first, calls=(), locations={}), replace(others[0], calls=(*others[0].calls, *first.calls))
    for functions, why in (((after, *others), "at its place"), ((*elsewhere, *others[1:]), "did not ask for")):
        with pytest.raises(CheckFailed, match=why):
            wanted(right, replace(claim, functions=functions))
    wide = replace(first, locations={0: sgpr(40, 4)})
    with pytest.raises(CheckFailed, match="other values for a wave"):
        wanted(right, replace(claim, functions=(wide, *others)))


def test_what_llvm_says_of_stacks_is_read_once_for_an_object(monkeypatch):
    sizes = {"first": 64, "second": 0}
    said = msgpack.packb({"amdpal.pipelines": [{".shader_functions": {
        name: {".backend_stack_size": size} for name, size in sizes.items()}}]})
    read, unpackb = [], msgpack.unpackb
    monkeypatch.setattr(msgpack, "unpackb", lambda data, **how: (read.append(data), unpackb(data, **how))[1])
    _stack_bytes.cache_clear()
    assert {name: _stack_bytes(bytes(bytearray(said)))[name] for name in sizes} == sizes
    assert read == [said]
