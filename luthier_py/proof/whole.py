"""All clones of one wave size, proved together: they may call each other.

In: the loaded original and copy, and functions of a claim. Out: for each what it touches and calls, or CheckFailed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from luthier_py.errors import CheckFailed, Location
from luthier_py.isa import Inst, InstructionSet, OpFlag, Reg, RegSet
from luthier_py.loader import CodeObject, RelocationKind
from luthier_py.proof.addresses import Goes, follow
from luthier_py.proof.application import (
    CallsAt,
    Clone,
    check_fields,
    check_groups,
    check_targets,
    departures,
)
from luthier_py.proof.claim import Claim, ClonedFunction, Side
from luthier_py.proof.code import bits_of, decoded, within
from luthier_py.proof.dispatch import check_dispatch
from luthier_py.proof.distances import check_distances, code_of
from luthier_py.proof.effects import allocated, everything
from luthier_py.proof.graph import Body, Graph, body, joined
from luthier_py.proof.liveness import Liveness
from luthier_py.proof.modes import Modes, matters, solved_modes, stepped
from luthier_py.proof.payloads import summary
from luthier_py.proof.pending import Pending, issued, solved_pending
from luthier_py.proof.runs import Duty, Run, Runner, Tool

PRELOAD_ENTRY = 256  # bytes; hardware with kernarg preload starts here (AMDGPUUsage, "Preloaded Kernel Arguments")
FAR = 1 << 44   # from an original to a copy that is apart from it, in numbers to try
_POINTERS = (RelocationKind.RELATIVE64, RelocationKind.ABS64)


@dataclass(frozen=True, slots=True)
class Proved:
    """Of one function: registers that its clone touches, and the functions that it may go to, by address."""

    used: RegSet
    callees: frozenset[int]


def prove_functions(
    isa: InstructionSet, old: CodeObject, new: CodeObject, claim: Claim, functions: Sequence[ClonedFunction],
    apart: bool,
) -> dict[int, Proved]:
    """By address of the original."""
    return _Whole(isa, old, new, claim, functions, apart).prove()


class _Whole:
    def __init__(
        self, isa: InstructionSet, old: CodeObject, new: CodeObject, claim: Claim, functions: Sequence[ClonedFunction],
        apart: bool,
    ) -> None:
        self.isa, self.old, self.new, self.claim, self.apart = isa, old, new, claim, apart
        self.bodies = [self.body(function) for function in functions]
        self.clones = [self.clone(function, each) for function, each in zip(functions, self.bodies, strict=True)]
        self.bases = {each.address: clone.base for each, clone in zip(self.bodies, self.clones, strict=True)}
        calls = [call for function in functions for call in function.calls]
        self.first_call, at = [], 0
        for function in functions:
            self.first_call.append(at)
            at += len(function.calls)
        summaries = {k: summary(isa, claim.payloads[k]) for k in {call.payload for call in calls}}
        starts = {clone.base + call.start: (first + k, call)
                  for clone, first in zip(self.clones, self.first_call, strict=True)
                  for k, call in enumerate(clone.function.calls)}
        variables = {name: symbol.address for name in claim.variables if (symbol := new.symbol(name)) is not None}
        self.tool = Tool(claim.payloads, summaries, starts, variables)

    def body(self, function: ClonedFunction) -> Body:
        ranges: list[tuple[int, int]] = []
        for stretch in function.stretches:
            if ranges and sum(ranges[-1]) == stretch.original:
                ranges[-1] = ranges[-1][0], ranges[-1][1] + stretch.size
            else:
                ranges.append((stretch.original, stretch.size))
        if any(sum(one) > other[0] for one, other in pairwise(ranges)) or any(
                stretch.size <= 0 for stretch in function.stretches) or not ranges:
            raise CheckFailed("the claim is not in order", Location(function.name))
        code = decoded(self.isa, ranges, self.old.read, function.name)
        records = [kernel for kernel in self.old.kernels if kernel.entry == function.original]
        entries = [function.original]
        if any(record.descriptor.kernarg_preload_length for record in records):
            entries.append(function.original + PRELOAD_ENTRY)
        return body(function.name, function.original, code, entries, bool(records))

    def clone(self, function: ClonedFunction, each: Body) -> Clone:
        symbol = self.new.symbol(function.symbol)
        if symbol is None:
            raise CheckFailed(f"the copy has no symbol {function.symbol}", Location(function.name))
        return Clone(function, each.code, symbol.address, self.new.read(symbol.address, symbol.size))

    def prove(self) -> dict[int, Proved]:
        goes = [self.follow(each, clone) for each, clone in zip(self.bodies, self.clones, strict=True)]
        pointed = self.pointed(goes)
        graph = joined(self.bodies, goes, pointed)
        proofs = _Duties(self, graph)
        found: dict[int, Proved] = {}
        for k, (each, clone) in enumerate(zip(self.bodies, self.clones, strict=True)):
            check_fields(each, clone, goes[k])
            check_groups(each, clone)
            check_targets(each, clone, goes[k], self.bases)
            used = proofs.function(k, goes[k], pointed)
            callees = {graph.bodies[graph.nodes[to].function].address
                       for at, node in enumerate(graph.nodes) if node.function == k for to in graph.successors[at]}
            found[each.address] = Proved(used, frozenset(callees))
        check_distances(self.isa, [code_of(clone, inserted) for clone, inserted in
                                   zip(self.clones, proofs.inserted, strict=True)])
        return found

    def follow(self, each: Body, clone: Clone) -> Goes:
        return follow(each.code, each.blocks, each.following, each.entries, not each.kernel, clone.instruction,
                      each.name, self.apart)

    def pointed(self, goes: Sequence[Goes]) -> list[int]:
        """Cloned functions whose address the application may have: made by code, or in its data."""
        values = {relocation.addend + (relocation.symbol.address if relocation.symbol is not None else 0)
                  for relocation in self.old.relocations if relocation.kind in _POINTERS}
        values.update(address for each in goes for address in each.made)
        kernels = {kernel.entry for kernel in self.old.kernels}
        return sorted(values & self.bases.keys() - kernels)


class _Duties:
    """What is owed where inserted code ends, and its runs."""

    def __init__(self, whole: _Whole, graph: Graph) -> None:
        self.whole, self.graph = whole, graph
        isa = whole.isa
        self.modes = solved_modes(graph)
        self.pending = solved_pending(graph)
        self.calls = [CallsAt(each, clone, first) for each, clone, first in
                      zip(whole.bodies, whole.clones, whole.first_call, strict=True)]
        self.live = Liveness(graph, self.modes, [self.reads(k) for k in range(len(whole.bodies))], self.owned())
        self.inserted: list[dict[int, Inst]] = [{} for _ in whole.bodies]  # what ran, by address
        self.isa = isa

    def owned(self) -> list[int]:
        """For each function what its waves have: an index can reach no more."""
        target, graph = self.whole.isa.target, self.graph
        found = [0] * len(graph.bodies)
        for kernel in self.whole.old.kernels:
            if kernel.entry not in self.whole.bases:
                continue
            regs = allocated(target, kernel.descriptor)
            start = next(k for k, each in enumerate(graph.bodies) if each.address == kernel.entry)
            seen, work = {start}, [start]
            while work:
                function = work.pop()
                found[function] |= regs
                for at, node in enumerate(graph.nodes):
                    if node.function == function:
                        new = {graph.nodes[to].function for to in graph.successors[at]} - seen
                        seen |= new
                        work += new
        return [regs or everything(target) for regs in found]

    def reads(self, k: int) -> dict[int, int]:
        """What calls read of the application, before which instructions."""
        found: dict[int, int] = {}
        each, clone = self.graph.bodies[k], self.whole.clones[k]
        for call in clone.function.calls:
            regs = bits_of(RegSet.of(*(value for value in call.arguments if isinstance(value, Reg))))
            at = each.code.find(call.point)
            if not regs or at is None:
                continue
            for place in self.standing(each, at, call.side):
                found[place] = found.get(place, 0) | regs
        return found

    def standing(self, each: Body, at: int, side: Side) -> list[int]:
        """Numbers of the instructions before which code on a side of an instruction stands."""
        if side is Side.BEFORE:
            return [at]
        block = each.block_of(at)
        if at != each.blocks[block][-1]:
            return [at + 1]
        following = each.following[block]
        return [each.blocks[to].start for to in (following[:1] if side is Side.TAKEN else following)]

    def function(self, k: int, goes: Goes, pointed: Sequence[int]) -> RegSet:
        each, clone = self.graph.bodies[k], self.whole.clones[k]
        number_at = clone.number_at
        homes = homes_of(clone.function)
        runner = Runner(self.isa, self.whole.tool, homes, clone.decode, number_at.__contains__, each.name)
        todo = [d for d in departures(each, clone, goes) if d.start != clone.places[d.to] or self.calls[k].wanted(d)]
        duties = self.duties(k, {d.to for d in todo})
        runs: dict[tuple[int, bool], Run] = {}
        for departure in todo:
            enters = departure.source is None and each.kernel
            key = departure.start, enters
            if key not in runs:
                runs[key] = runner.run(departure.start, duties[departure.to], homes if enters else 0)
            run = runs[key]
            if number_at[run.to] != departure.to:
                raise runner.fail("it goes elsewhere than the original", departure.start)
            if sorted(run.calls) != sorted(self.calls[k].wanted(departure)):
                raise runner.fail("the hooks that run here are not those that the claim says", departure.start)
        self.dispatches(k, goes, pointed, runner)
        self.inserted[k] = runner.insts
        self.check_apart(clone, runner)
        used = bits_used(each, runner)
        return used

    def check_apart(self, clone: Clone, runner: Runner) -> None:
        """No two instructions share bytes."""
        last, places = 0, clone.places
        for pc, inst in sorted(runner.insts.items()):
            at = bisect_right(places, pc) - 1
            inside = at >= 0 and clone.end(at) > pc
            if pc < last or inside or (at + 1 < len(places) and places[at + 1] < pc + inst.size_bytes):
                raise runner.fail("control comes into the middle of an instruction", pc)
            last = pc + inst.size_bytes

    def dispatches(self, k: int, goes: Goes, pointed: Sequence[int], runner: Runner) -> None:
        each, clone = self.graph.bodies[k], self.whole.clones[k]
        calls = {clone.end(at - 1): at for at, (old, _) in goes.targets.items()
                 if OpFlag.CALL in each.code.inst(at).op.flags and old[0] != "to" and at}
        for start, at in calls.items():
            if pointed:
                check_dispatch(each, clone, at, start, {a: self.whole.bases[a] for a in pointed}, runner,
                               FAR if self.whole.apart else 0)
            elif at in clone.changed:
                raise runner.fail("it should be the original's call", clone.places[at])

    def duties(self, k: int, wanted: set[int]) -> dict[int, Duty]:
        """Before some instructions of a function."""
        code, first = self.graph.bodies[k].code, self.graph.first[k]
        found: dict[int, Duty] = {}
        ordered = sorted(wanted)
        for block, span in enumerate(self.graph.bodies[k].blocks):
            here = within(ordered, span)
            if not here:
                continue
            live = self.live.before(first + block, here)
            for at, pending, modes in self.forward(first + block, here):
                found[at] = Duty(live[at], pending, not (modes.relative or modes.skips),
                                 OpFlag.END in code.inst(at).op.flags)
        return found

    def forward(self, node: int, wanted: Sequence[int]) -> list[tuple[int, Pending, Modes]]:
        """What is known before some instructions of a node."""
        span = self.graph.nodes[node].span
        code = self.graph.bodies[self.graph.nodes[node].function].code
        pending, modes, found, at = self.pending[node], self.modes[node], [], span.start
        for stop in wanted:
            for place in range(at, stop):
                inst = code.inst(place)
                pending = issued(self.isa, inst, pending)
                if modes.ending or matters(inst):
                    modes = stepped(self.isa, inst, modes)
            at = stop
            found.append((stop, pending, modes))
        return found


def homes_of(function: ClonedFunction) -> int:
    return bits_of(RegSet.of(*function.homes))


def bits_used(each: Body, runner: Runner) -> RegSet:
    """Registers that a clone touches; what the application's own indexes reach is there already."""
    found = RegSet()
    for inst in each.code.insts:
        found |= inst.named
    for inst in set(runner.insts.values()):
        found |= inst.reads | inst.writes
    return found

