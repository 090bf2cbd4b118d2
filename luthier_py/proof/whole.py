"""All clones of one wave size, proved together: they may call each other.

In: the loaded original and copy, and functions of a claim. Out: for each what it touches and calls, or CheckFailed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import CodeObject, KernelRecord, RelocationKind, SymbolType
from luthier_py.isa import InstructionSet, OpFlag, Reg, RegSet
from luthier_py.proof.addresses import AddressFlow, follow
from luthier_py.proof.application import (
    Clone,
    check_fields,
    check_groups,
    check_hardware_waits,
    check_targets,
    find_lookup_calls,
    sweep,
)
from luthier_py.proof.callees import solve_targets
from luthier_py.proof.claim import Claim, ClonedFunction
from luthier_py.proof.code import Body, Code, decode_functions
from luthier_py.proof.dispatch import check_dispatch
from luthier_py.proof.distances import check_distances
from luthier_py.proof.effects import compute_allocated_registers, everything
from luthier_py.proof.float_modes import float_modes
from luthier_py.proof.given import check_given
from luthier_py.proof.graph import Graph, body, build_graph
from luthier_py.proof.initial_state import Start, compute_initial_state
from luthier_py.proof.insertions import Insertions
from luthier_py.proof.instead import check_changes_of_lds, with_instead
from luthier_py.proof.legality import check_legal
from luthier_py.proof.linked import Linked, link_clone
from luthier_py.proof.payloads import summary
from luthier_py.proof.preloads import loads_arguments
from luthier_py.proof.runs import Runner, Tool
from luthier_py.proof.wave_registers import check_registers

_POINTERS = (RelocationKind.RELATIVE64, RelocationKind.ABS64)


@dataclass(frozen=True, slots=True)
class Proved:
    """Of one function: registers that its clone touches, and the functions that it may call, by address."""

    used: RegSet
    callees: frozenset[int]


def prove_functions(
    isa: InstructionSet, old: CodeObject, new: CodeObject, claim: Claim, functions: Sequence[ClonedFunction],
    apart: bool,
) -> dict[int, Proved]:
    """Prove all functions; what is proved, by address of the original."""
    return _Whole(isa, old, new, claim, functions, apart).prove()


class _Whole:
    def __init__(
        self, isa: InstructionSet, old: CodeObject, new: CodeObject, claim: Claim, functions: Sequence[ClonedFunction],
        apart: bool,
    ) -> None:
        self.isa, self.old, self.new, self.claim, self.apart = isa, old, new, claim, apart
        codes = decode_functions(isa, [(each.name, _find_ranges(each)) for each in functions], old.read)
        self.bodies = [self.body(function, code) for function, code in zip(functions, codes, strict=True)]
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
        variables = {name: symbol.address for name in claim.sizes if (symbol := new.symbol(name)) is not None}
        self.tool = Tool(claim.payloads, summaries, starts, variables)
        for function in functions:
            check_given(isa, claim, function, variables)
            check_changes_of_lds(function, claim.payloads, summaries, old.read)

    def body(self, function: ClonedFunction, code: Code) -> Body:
        code = with_instead(code, function.instead, function.name)
        records = self.kernels.get(function.original, [])
        entries = [function.original]
        second = self.isa.target.preload_entry
        if second and any(record.descriptor.kernarg_preload_length for record in records):
            entries.append(function.original + second)
        if any(map(self.loads_arguments, records)):  # what is before the last entry is not in the clone
            entries = entries[-1:]
        return body(function.name, function.original, code, entries, bool(records), self.end_of(function.original))

    def loads_arguments(self, record: KernelRecord) -> bool:
        made = self.claim.kernels.get(record.name)
        return made is not None and loads_arguments(record.descriptor, self.new.kernel(made).descriptor)

    def end_of(self, address: int) -> int:
        """Where a function must be over: its symbol's end, or else the next function's start."""
        starts, ends = self.known
        at = bisect_right(starts, address)
        text = next((part.stop for part in self.old.text_ranges if address in part), address)
        return min(ends.get(address, starts[at] if at < len(starts) else text), text)

    @cached_property
    def known(self) -> tuple[list[int], dict[int, int]]:
        """Where functions start that the original names, ascending, and where they end if their symbols have sizes."""
        symbols = [each for each in self.old.symbols if each.type == SymbolType.FUNC and each.defined]
        ends: dict[int, int] = {}
        for each in symbols:
            if each.size:
                ends[each.address] = max(ends.get(each.address, 0), each.address + each.size)
        return sorted({each.address for each in symbols} | {kernel.entry for kernel in self.old.kernels}), ends

    def clone(self, function: ClonedFunction, each: Body) -> Clone:
        symbol = self.new.symbol(function.symbol)
        if symbol is None:
            raise CheckFailed(f"the copy has no symbol {function.symbol}", Location(function.name))
        return Clone(function, each.code, symbol.address, self.new.read(symbol.address, symbol.size))

    def prove(self) -> dict[int, Proved]:
        sweep(self.clones)
        goes = solve_targets(self.bodies, [collect_changed_registers(clone.function) for clone in self.clones],
                             self.follow)
        pointed = self.find_address_taken(goes)
        graph = build_graph(self.bodies, goes, pointed)
        unknown = [find_lookup_calls(each, clone, own, pointed)
                   for each, clone, own in zip(self.bodies, self.clones, goes, strict=True)]
        for each, clone, own, calls in zip(self.bodies, self.clones, goes, unknown, strict=True):
            check_fields(each, clone, own)
            check_groups(each, clone)
            check_registers(each, clone)
            check_hardware_waits(each, clone)
            check_targets(each, clone, own, self.bases, calls)
        proofs = Insertions(
            graph,
            self.clones,
            goes,
            self.tool,
            self.first_call,
            self.compute_owned_registers(graph),
            [self.start(clone) for clone in self.clones],
            float_modes(self.isa.target, self.bodies, group_connected_functions(graph), {
                entry: [each.descriptor for each in kernels] for entry, kernels in self.kernels.items()}),
        )
        called = self.find_called_functions(graph)
        for first, each in zip(graph.first, self.bodies, strict=True):
            begin = first + each.entries[0]
            if each.code.pcs[each.blocks[each.entries[0]].start] != each.address and any(
                    graph.nodes[node].function != graph.nodes[begin].function for node in graph.predecessors[begin]):
                raise CheckFailed("code calls a kernel whose clone loads its arguments", Location(each.name))
        codes = [link_clone(clone, inserted, k in called)
                 for k, (clone, inserted) in enumerate(zip(self.clones, proofs.prove(), strict=True))]
        for code in codes:
            check_legal(self.isa, code)
        for k, calls in enumerate(unknown):
            for at in calls:
                goal = goes[k].targets[at][0]
                self.dispatch(k, at, [goal[1]] if goal[0] == "to" else pointed, proofs.runners[k])
        entered = {first + entry for first, each in zip(graph.first, self.bodies, strict=True)
                   for entry in each.entries}
        found: dict[int, Proved] = {}
        for k, (each, code) in enumerate(zip(self.bodies, codes, strict=True)):
            callees = {graph.bodies[graph.nodes[to].function].address
                       for at in graph.nodes_of(k) for to in graph.successors[at] if to in entered}
            found[each.address] = Proved(collect_touched_registers(each, code), frozenset(callees))
        for group in group_connected_functions(graph):
            check_distances(self.isa, [codes[k] for k in group])
        return found

    def find_called_functions(self, graph: Graph) -> set[int]:
        """Numbers of functions into which control comes from code: all but kernels that no function calls."""
        def calls(node: int, to: int) -> bool:
            own, last = graph.nodes[node].function, graph.nodes[node].span[-1]
            return graph.nodes[to].function != own or OpFlag.CALL in self.bodies[own].code.inst(last).op.flags

        coming = {graph.nodes[to].function for node in range(len(graph.nodes)) for to in graph.successors[node]
                  if calls(node, to)}
        return coming | {k for k, each in enumerate(self.bodies) if not each.kernel}

    def compute_owned_registers(self, graph: Graph) -> list[int]:
        """For each function what its waves have: an index can reach no more."""
        found = [0] * len(graph.bodies)
        calling = [{graph.nodes[to].function for at in graph.nodes_of(k) for to in graph.successors[at]}
                   for k in range(len(graph.bodies))]
        numbers = {each.address: k for k, each in enumerate(graph.bodies)}
        for kernel in self.old.kernels:
            work = [numbers[kernel.entry]] if kernel.entry in numbers else []
            seen = set(work)
            while work:
                function = work.pop()
                found[function] |= compute_allocated_registers(self.isa.target, kernel.descriptor)
                work += calling[function] - seen
                seen |= calling[function]
        return [regs or everything(self.isa.target) for regs in found]

    @cached_property
    def kernels(self) -> dict[int, list[KernelRecord]]:
        """The original's kernels, by where they start."""
        found: dict[int, list[KernelRecord]] = {}
        for kernel in self.old.kernels:
            found.setdefault(kernel.entry, []).append(kernel)
        return found

    def start(self, clone: Clone) -> Start:
        """What its waves find; all kernels that are this code have to say the same."""
        function, found = clone.function, set[Start]()
        for kernel in self.kernels.get(function.original, ()):
            if kernel.name in self.claim.kernels:
                made = self.new.kernel(self.claim.kernels[kernel.name])
                found.add(compute_initial_state(self.isa.target, kernel.descriptor, made.descriptor))
        if len(found) > 1:
            raise CheckFailed("its waves start in several ways", Location(function.name))
        return found.pop() if found else Start()

    def dispatch(self, k: int, at: int, pointed: Sequence[int], runner: Runner) -> None:
        """``pointed``: what the call may reach."""
        clone = self.clones[k]
        if pointed:
            bases = {address: self.bases[address] for address in pointed}
            check_dispatch(self.bodies[k], clone, at, clone.end(at - 1), bases, runner, self.apart)
        elif at in clone.changed:
            raise runner.fail("it should be the original's call", clone.places[at])

    def follow(self, k: int, touched: Callable[[int], int]) -> AddressFlow:
        return follow(self.bodies[k], self.clones[k].instruction, self.apart, touched)

    def find_address_taken(self, goes: Sequence[AddressFlow]) -> list[int]:
        """Cloned functions whose address the application may have: made by code, or in its data."""
        values = {relocation.addend + (relocation.symbol.address if relocation.symbol is not None else 0)
                  for relocation in self.old.relocations if relocation.kind in _POINTERS}
        values.update(address for each in goes for address in each.made)
        kernels = {kernel.entry for kernel in self.old.kernels}
        return sorted(values & self.bases.keys() - kernels)


def _find_ranges(function: ClonedFunction) -> list[tuple[int, int]]:
    """Of the original, address and size: what stretches of the clone stand for."""
    ranges: list[tuple[int, int]] = []
    for stretch in function.stretches:
        if ranges and sum(ranges[-1]) == stretch.original:
            ranges[-1] = ranges[-1][0], ranges[-1][1] + stretch.size
        else:
            ranges.append((stretch.original, stretch.size))
    if any(sum(one) > other[0] for one, other in pairwise(ranges)) or any(
            stretch.size <= 0 for stretch in function.stretches) or not ranges:
        raise CheckFailed("the claim is not in order", Location(function.name))
    return ranges


def collect_changed_registers(function: ClonedFunction) -> int:
    """Registers of the application that hooks in a function are to change."""
    return RegSet.of(*(into for call in function.calls for into in call.into if isinstance(into, Reg))).bits


def group_connected_functions(graph: Graph) -> list[list[int]]:
    """Numbers of functions, those together between which there is a way, by calls and returns in either direction."""
    near: list[set[int]] = [set() for _ in graph.bodies]
    for node, ways in zip(graph.nodes, graph.successors, strict=True):
        for to in ways:
            near[node.function].add(graph.nodes[to].function)
            near[graph.nodes[to].function].add(node.function)
    groups: list[list[int]] = []
    seen: set[int] = set()
    for first in range(len(near)):
        group, work = [], [first]
        while work:
            function = work.pop()
            if function not in seen:
                seen.add(function)
                group.append(function)
                work += near[function]
        groups += [sorted(group)] * bool(group)
    return groups


def collect_touched_registers(each: Body, code: Linked) -> RegSet:
    """Registers that a clone touches; what the application's own indexes reach is there already."""
    found = each.code.named
    for inst in code.added:
        found |= inst.reads.bits | inst.writes.bits
    return RegSet(found)
