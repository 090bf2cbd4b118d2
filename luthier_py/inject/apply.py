"""Program + edits + payloads -> Patched: clones of the chosen kernels with the hooks inlined.

Phases, per component of kernels that share functions: homes for wave variables; items for every insertion
(`weave`); clones (`clone`); wait states at seams (`seams`); layout (`relax`); descriptors (`resources`).
Invariant: the input is not changed, and beyond its declared writes a hook leaves the application's state alone
(`check`, which shares no code with these passes, proves it for each patch).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from luthier_py.analysis import Facts
from luthier_py.errors import EditConflict, Location, OutOfRegisters, Unsupported
from luthier_py.inject import relax, resources
from luthier_py.inject.allocate import Pool
from luthier_py.inject.clone import Cloner
from luthier_py.inject.model import Clone, ClonedKernel, Declared, Item, Patched, SourceMap
from luthier_py.inject.patch import NewKernel, NewVariable
from luthier_py.inject.resources import Component
from luthier_py.inject.seams import settle
from luthier_py.inject.weave import Site, general_registers, scalar_move, weave
from luthier_py.ir import Function, Instr, Kernel, Program
from luthier_py.isa import OpFlag, Reg, RegSet
from luthier_py.jit import Payload, PayloadKey, payload_key
from luthier_py.tool import Edits, Insertion, Lanes, Place, Refusal, WaveVariable

SUFFIX = ".luthier"  # names of instrumented kernels

__all__ = ["SUFFIX", "ClonedKernel", "Patched", "SourceMap", "inject"]


def inject(
    program: Program, facts: Facts, edits: Edits, payloads: Mapping[PayloadKey, Payload], keep_going: bool = False
) -> Patched:
    """Raises OutOfRegisters, EditConflict, Unsupported, and then nothing has happened; with ``keep_going`` the
    component of kernels that caused it is refused instead."""
    edited = {program.function_of(insertion.instr).address for insertion in edits.insertions}
    wanted = [k for k in program.kernels if any(f.address in edited for f in program.reachable(k.function))]
    parts: list[Patched] = []
    refused: list[Refusal] = []
    for component in resources.components(program, wanted):
        try:
            parts.append(_component(program, facts, edits, payloads, component))
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
        report=tuple(row for part in parts for row in part.report),
        refused=tuple(refused),
    )


def _component(
    program: Program, facts: Facts, edits: Edits, payloads: Mapping[PayloadKey, Payload], component: Component
) -> Patched:
    for function in component.functions:
        if function.incomplete:
            raise Unsupported(
                f"{function.name} cannot be instrumented: {function.incomplete}", Location(function.name, function.address)
            )
    weaver = _ComponentWeaver(program, facts, edits, payloads, component)
    names = {f.address: f.name + SUFFIX for f in component.functions}
    clones = [weaver.clone(function, names) for function in component.functions]
    settle(program.isa, clones)
    placed = [relax.place(program.isa, clone, names) for clone in clones]
    used = resources.used_by(item for clone in clones for item in clone.items)
    kernels = tuple(_new_kernel(program, kernel, used, names) for kernel in component.kernels)
    sizes = sum(f.size_bytes for f in component.functions), sum(len(p.chunk.code) for p in placed)
    return Patched(
        chunks=tuple(p.chunk for p in placed),
        kernels=kernels,
        variables=(),
        maps=tuple(_source_map(clone, p) for clone, p in zip(clones, placed)),
        declared=Declared(weaver.declared[Place.BEFORE], weaver.declared[Place.AFTER]),
        report=tuple(
            ClonedKernel(
                old.name, new.name, weaver.sites,
                resources.occupancy(program.obj.target, old.record.descriptor),
                resources.occupancy(program.obj.target, new.descriptor), *sizes,
            )
            for old, new in zip(component.kernels, kernels)
        ),
    )


def _source_map(clone: Clone, placed: relax.Placed) -> SourceMap:
    instructions = {item.origin: offset for item, offset in placed.offsets.items() if item.origin is not None}
    labels = {address: placed.offsets[item] for address, item in clone.labels.items()}
    return SourceMap(clone.source, clone.name, instructions, labels)


def _new_kernel(program: Program, kernel: Kernel, used: RegSet, names: Mapping[int, str]) -> NewKernel:
    target = program.obj.target
    descriptor = resources.grown(target, kernel.record.descriptor, used)
    metadata: dict[str, object] = {}
    for key, mask in ((".sgpr_count", used.sgpr), (".vgpr_count", used.vgpr)):
        old = kernel.record.metadata.get(key)
        if isinstance(old, int):
            limit = (1 << target.sgpr_limit) - 1 if key == ".sgpr_count" else -1
            extra = target.extra_sgprs if key == ".sgpr_count" else 0
            metadata[key] = max(old, (mask & limit).bit_length() + extra)
    entry = names[kernel.function.address]
    return NewKernel(kernel.name + SUFFIX, entry, descriptor, kernel.name, metadata=metadata)


class _ComponentWeaver:
    """Weaves all insertions of one component (mutable: fills the maps once, when made)."""

    def __init__(
        self, program: Program, facts: Facts, edits: Edits, payloads: Mapping[PayloadKey, Payload], component: Component
    ) -> None:
        self.program, self.facts, self.payloads = program, facts, payloads
        inside = {f.address for f in component.functions}
        chosen = [i for i in edits.insertions if program.function_of(i.instr).address in inside]
        self.sites = len(chosen)
        used = {v for i in chosen for v in (*i.runtime_args, *i.into) if isinstance(v, WaveVariable)}
        self.homes: dict[WaveVariable, Reg] = resources.wave_homes(program, facts, component, sorted(used, key=_name))
        self.general = general_registers(program.isa) - RegSet.of(*self.homes.values())
        self.before: dict[Instr, list[Item]] = defaultdict(list)
        self.after: dict[Instr, list[Item]] = defaultdict(list)
        self.declared: dict[Place, dict[Instr, RegSet]] = {Place.BEFORE: {}, Place.AFTER: {}}
        for kernel in component.kernels:
            self.before[kernel.function.blocks[0].instrs[0]] += self.zeroes()
        for insertion in chosen:
            at, place = self.choose(insertion)
            side = self.before if place is Place.BEFORE else self.after
            written = RegSet.of(*(r for r in insertion.into if isinstance(r, Reg)))
            self.declared[place][at] = self.declared[place].get(at, RegSet()) | written
            site = self.site(at, place, insertion)
            side[at] += weave(program.isa, insertion, payloads[payload_key(insertion)], site, self.homes)

    def zeroes(self) -> list[Item]:
        return [Item(self.program.isa.make(scalar_move(home.dwords), home, 0)) for home in self.homes.values()]

    def choose(self, insertion: Insertion) -> tuple[Instr, Place]:
        """Where an insertion goes: its point, or the cheapest place of its range."""
        writes = self.payloads[payload_key(insertion)].writes
        return min(
            insertion.places,
            key=lambda p: _specials(writes & self.live(p[0], p[1], insertion.hook.lanes)),
        )

    def live(self, instr: Instr, place: Place, lanes: Lanes) -> RegSet:
        facts = self.facts
        if lanes is Lanes.ACTIVE:
            return facts.live_before(instr) if place is Place.BEFORE else facts.live_after(instr)
        return facts.live_before_all_lanes(instr) if place is Place.BEFORE else facts.live_after_all_lanes(instr)

    def site(self, instr: Instr, place: Place, insertion: Insertion) -> Site:
        facts = self.facts
        live = self.live(instr, place, insertion.hook.lanes)
        pending = facts.pending_before(instr) if place is Place.BEFORE else facts.pending_after(instr)
        read = RegSet.of(*(a for a in (*insertion.runtime_args, *insertion.into) if isinstance(a, Reg)))
        where = Location(self.program.function_of(instr).name, instr.pc, self.program.isa.text(instr.inst))
        wait = facts.wait_for(instr, read, after=place is Place.AFTER)
        at_end = place is Place.BEFORE and bool(instr.inst.op.flags & OpFlag.END)
        return Site(where, live, self.general - live - pending.registers, wait, at_end)

    def clone(self, function: Function, names: Mapping[int, str]) -> Clone:
        cloner = Cloner(self.program, function, names, self.pool_at)
        return cloner.run(names[function.address], self.before, self.after)

    def pool_at(self, instr: Instr) -> Pool:
        facts = self.facts
        free = self.general - facts.live_before(instr) - facts.pending_before(instr).registers - instr.inst.writes
        return Pool(free, Location(self.program.function_of(instr).name, instr.pc))


def _name(variable: WaveVariable) -> str:
    return variable.name


def _specials(clobbered: RegSet) -> int:
    """Saves that a place costs: special scalar registers that are live and written."""
    return bin(clobbered.sgpr >> 102).count("1")

