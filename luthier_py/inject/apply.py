"""Program + edits + payloads -> Patched: clones of the chosen kernels with the hooks inlined.

Phases, per component of kernels that share functions: homes for wave variables; items for every insertion
(`weave`); clones (`clone`); wait states at seams (`seams`); layout (`relax`); descriptors (`resources`).
Invariant: the input is not changed, and beyond its declared writes a hook leaves the application's state alone
(`check`, which shares no code with these passes, proves it for each patch).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from luthier_py.analysis import Facts, computes_plainly
from luthier_py.errors import EditConflict, Location, OutOfRegisters, Unsupported
from luthier_py.inject import relax, resources
from luthier_py.inject.claimed import SIDES, WovenCall, claimed_function, claimed_payload
from luthier_py.inject.clauses import dissolve
from luthier_py.inject.clone import Cloner
from luthier_py.inject.fragment import Fragment, general_registers, prepare
from luthier_py.inject.model import Clone, ClonedKernel, Declared, Item, Patched, SourceMap
from luthier_py.inject.patch import NewKernel, NewVariable
from luthier_py.inject.resources import Component
from luthier_py.inject.seams import settle
from luthier_py.inject.sites import Site, Sites
from luthier_py.inject.weave import Woven, weave
from luthier_py.ir import Function, Instr, Kernel, Program
from luthier_py.isa import InstructionSet, Reg, RegSet
from luthier_py.jit import Payload, PayloadKey, payload_key
from luthier_py.proof.claim import Claim
from luthier_py.tool import Edits, Insertion, Place, Refusal, WaveVariable

SUFFIX = ".luthier"  # names of instrumented kernels

__all__ = ["SUFFIX", "ClonedKernel", "Patched", "SourceMap", "inject"]

Fragments = Mapping[PayloadKey, Fragment]


def inject(
    program: Program, facts: Facts, edits: Edits, payloads: Mapping[PayloadKey, Payload], keep_going: bool = False
) -> Patched:
    """Raises OutOfRegisters, EditConflict, Unsupported, and then nothing has happened; with ``keep_going`` the
    component of kernels that caused it is refused instead."""
    edited: dict[Function, list[Insertion]] = defaultdict(list)
    for insertion in edits.insertions:
        edited[program.function_of(insertion.instr)].append(insertion)
    fragments = {key: prepare(program.isa, payload) for key, payload in payloads.items()}
    wanted = [k for k in program.kernels if any(f in edited for f in program.reachable(k.function))]
    parts: list[Patched] = []
    refused: list[Refusal] = []
    for component in resources.components(program, wanted):
        try:
            chosen = [insertion for function in component.functions for insertion in edited.get(function, ())]
            chosen.sort(key=lambda insertion: insertion.rank)
            parts.append(_component(program, facts, chosen, fragments, component))
        except (OutOfRegisters, EditConflict, Unsupported) as error:
            if not keep_going:
                raise
            refused += [Refusal(k.name, error.message, error.where or Location(k.name)) for k in component.kernels]
    return Patched(
        chunks=tuple(chunk for part in parts for chunk in part.chunks),
        kernels=tuple(kernel for part in parts for kernel in part.kernels),
        variables=tuple(
            NewVariable(v.name, v.size_bytes, v.type.align_bytes, None) for v in edits.variables
        ) if parts else (),
        maps=tuple(source for part in parts for source in part.maps),
        declared=Declared(
            {i: regs for part in parts for i, regs in part.declared.before.items()},
            {i: regs for part in parts for i, regs in part.declared.after.items()},
        ),
        claim=Claim(
            tuple(function for part in parts for function in part.claim.functions),
            {old: new for part in parts for old, new in part.claim.kernels.items()},
            tuple(claimed_payload(key, payload) for key, payload in payloads.items()),
            {v.name: v.size_bytes for v in edits.variables},
        ),
        report=tuple(row for part in parts for row in part.report),
        refused=tuple(refused),
    )


def _component(
    program: Program, facts: Facts, insertions: list[Insertion], fragments: Fragments, component: Component
) -> Patched:
    for function in component.functions:
        if function.incomplete:
            message = f"{function.name} cannot be instrumented: {function.incomplete}"
            raise Unsupported(message, Location(function.name, function.address))
    used = {v for i in insertions for v in (*i.runtime_args, *i.into) if isinstance(v, WaveVariable)}
    homes = resources.wave_homes(program, facts, component, used)
    plain_floats = computes_plainly((k.record.descriptor for k in component.kernels), component.functions)
    sites = Sites(program, facts, general_registers(program.isa) - RegSet.of(*homes.values()), plain_floats)
    weaver = _ComponentWeaver(program.isa, sites, homes, fragments)
    numbers = {key: number for number, key in enumerate(fragments)}
    for insertion in insertions:
        weaver.add(insertion)
    names = {f.address: f.name + SUFFIX for f in component.functions}
    before, after = weaver.items[Place.BEFORE], weaver.items[Place.AFTER]
    cloner = Cloner(program, names, sites.before_call, homes.values(), before, after)
    clones = [cloner.clone(function) for function in component.functions]
    settle(program.isa, clones)
    dissolve(program.isa, clones)
    placed = [relax.place(program.isa, clone, names) for clone in clones]
    named = resources.used_by(clones)
    kernels = [_new_kernel(program, kernel, named, names) for kernel in component.kernels]
    sizes = sum(f.size_bytes for f in component.functions), sum(len(p.chunk.code) for p in placed)
    return Patched(
        chunks=tuple(p.chunk for p in placed),
        kernels=tuple(kernels),
        variables=(),
        maps=tuple(map(_source_map, clones, placed)),
        declared=Declared(weaver.declared[Place.BEFORE], weaver.declared[Place.AFTER]),
        claim=Claim(
            tuple(claimed_function(clone, part.offsets, weaver.calls, numbers, homes.values())
                  for clone, part in zip(clones, placed, strict=True)),
            {old.name: new.name for old, new in zip(component.kernels, kernels, strict=True)}, (), {},
        ),
        report=tuple(
            ClonedKernel(
                old.name, new.name, len(insertions),
                resources.occupancy(program.obj.target, old.record.descriptor),
                resources.occupancy(program.obj.target, new.descriptor), *sizes,
            )
            for old, new in zip(component.kernels, kernels, strict=True)
        ),
    )


def _source_map(clone: Clone, placed: relax.Placed) -> SourceMap:
    instructions = {item.origin: offset for item, offset in placed.offsets.items() if item.origin is not None}
    labels = {address: placed.offsets[item] for address, item in clone.labels.items()}
    return SourceMap(clone.source, clone.name, instructions, labels)


def _new_kernel(program: Program, kernel: Kernel, used: RegSet, names: Mapping[int, str]) -> NewKernel:
    target, old = program.obj.target, kernel.record
    descriptor = resources.grown(target, old.descriptor, used)
    metadata = {
        key: max(count, new) for key, new in resources.counts(target, descriptor, used).items()
        if isinstance(count := old.metadata.get(key), int)
    }
    return NewKernel(kernel.name + SUFFIX, names[kernel.function.address], descriptor, kernel.name, metadata=metadata)


class _ComponentWeaver:
    """Weaves the insertions of one component (mutable: collects items and declared writes by instruction)."""

    def __init__(
        self, isa: InstructionSet, sites: Sites, homes: Mapping[WaveVariable, Reg], fragments: Fragments
    ) -> None:
        self.isa, self.sites, self.homes, self.fragments = isa, sites, homes, fragments
        self.items: dict[Place, dict[Instr, list[Item]]] = {place: defaultdict(list) for place in Place}
        self.declared: dict[Place, dict[Instr, RegSet]] = {place: defaultdict(RegSet) for place in Place}
        self.calls: list[WovenCall] = []

    def add(self, insertion: Insertion) -> None:
        fragment = self.fragments[payload_key(insertion)]
        site, (items, first) = self.woven(insertion, fragment, self.sites.of(insertion, fragment))
        self.items[site.place][site.instr] += items
        if first is not None:
            self.calls.append(WovenCall(insertion, site.instr, SIDES[site.place], first, self.homes))
        self.declared[site.place][site.instr] |= RegSet.of(*(r for r in insertion.into if isinstance(r, Reg)))

    def woven(self, insertion: Insertion, fragment: Fragment, sites: Iterable[Site]) -> tuple[Site, Woven]:
        """The first site that has registers enough, and what goes there."""
        refusal: OutOfRegisters | None = None
        for site in sites:
            try:
                return site, weave(self.isa, insertion, fragment, site, self.homes)
            except OutOfRegisters as error:
                refusal = refusal or error
        assert refusal is not None
        raise refusal
