"""Program + edits + payloads -> Patched: clones of the chosen kernels with the hooks inlined.

Per component of kernels that share functions: assigned locations for wave variables, then one pass after the other,
each from clone to clone. `clone` copies a function; `inline_calls` puts in the calls that `placing` has made; `look_up`
and `prologue` add what indirect calls and kernels need; `wait_states` waits between inserted and other code; `relax`
lets branches reach; `clauses` dissolves groups. Then `layout` makes bytes, and `resources` descriptors. Invariant: the
input is not changed, and beyond its declared writes a hook leaves the application's state alone (`proof`, which sees
bytes alone, proves it for each patch)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import TypeAlias

from luthier_py.base.errors import Location, LuthierError, OutOfRegisters, Unsupported
from luthier_py.base.records import replace
from luthier_py.binary.loader import KernelDescriptor
from luthier_py.binary.loader.origins import CLONE_SUFFIX
from luthier_py.binary.patch import NewKernel, NewVariable
from luthier_py.isa import Inst, Reg, RegSet
from luthier_py.isa.properties.wave_registers import may_see_inserted_code, sees_inserted_code
from luthier_py.program.analysis import Facts, fields_unlike_plain
from luthier_py.program.ir import Function, Kernel, Program, is_verifying
from luthier_py.program.ir.model import instr_at
from luthier_py.proof.claim import Claim
from luthier_py.rewrite.inject import resources
from luthier_py.rewrite.inject.claimed import build_function_claim, build_payload_claim
from luthier_py.rewrite.inject.clauses import dissolve
from luthier_py.rewrite.inject.clone import clone_function
from luthier_py.rewrite.inject.cloned import ClonedKernel
from luthier_py.rewrite.inject.fragment import general_registers, prepare
from luthier_py.rewrite.inject.initial_state import enable_initial_state, initially
from luthier_py.rewrite.inject.inline_calls import inline_calls
from luthier_py.rewrite.inject.items import Clone, Own, PersistentValue
from luthier_py.rewrite.inject.layout import lay_out, source_map
from luthier_py.rewrite.inject.lookup import look_up
from luthier_py.rewrite.inject.model import Patched, SourceMap
from luthier_py.rewrite.inject.placing import Calls, Fragments
from luthier_py.rewrite.inject.policies import Private, cheap_policies, every_policy, location_slots, private_memory
from luthier_py.rewrite.inject.prologue import Prologue, prologues, with_prologue
from luthier_py.rewrite.inject.relax import relax
from luthier_py.rewrite.inject.resources import Component, Orders
from luthier_py.rewrite.inject.sites import Sites, last_of_all
from luthier_py.rewrite.inject.verify import verify
from luthier_py.rewrite.inject.wait_states import insert_wait_states
from luthier_py.rewrite.jit import Payload, PayloadKey, payload_key
from luthier_py.rewrite.tool import Edits, Entry, Hook, Insertion, Place, Refusal, Turn, WaveVariable
from luthier_py.rewrite.tool.hooks.types import is_of_lanes

__all__ = ["ClonedKernel", "Patched", "SourceMap", "inject"]

Changed: TypeAlias = Mapping[Function, Mapping[int, Inst]]  # by address
Seen: TypeAlias = Callable[[str, Clone], Clone]  # is called after each pass
Begins: TypeAlias = Callable[[str], object]  # is called with the name of each step as it begins


def inject(
    program: Program, facts: Facts, edits: Edits, payloads: Mapping[PayloadKey, Payload], keep_going: bool = False,
    seen: Seen = lambda name, clone: clone, part: Begins = lambda name: None,
) -> Patched:
    """Raises LuthierError, and then nothing has happened; with ``keep_going`` the component of kernels that caused it
    is refused instead. ``seen`` gets every clone after each pass, and gives it back: to print it. ``part`` is called
    with place, inline_calls, wait_states, relax and layout as they begin, of each component."""
    if is_verifying():
        seen = _verify_before(seen)
    edited: dict[Function, list[Insertion]] = defaultdict(list)
    for insertion in edits.insertions:
        edited[program.function_of(insertion.instr)].append(insertion)
    changed: dict[Function, dict[int, Inst]] = defaultdict(dict)
    for each in edits.instead:
        changed[program.function_of(each.instr)][each.instr.pc] = each.inst
    kept: dict[PersistentValue, int | str] = {variable: number for number, variable in enumerate(edits.wave_variables)}
    kept |= {entry: entry.value for entry in (*Entry, *Own)}
    fragments = Fragments({key: prepare(program.isa, payload) for key, payload in payloads.items()})
    wanted = [k for k in program.kernels if any(f in edited or f in changed for f in program.reachable(k.function))]
    parts: list[Patched] = []
    refused: list[Refusal] = []
    for component in resources.components(program, wanted):
        try:
            chosen = [insertion for function in component.functions for insertion in edited.get(function, ())]
            chosen.sort(key=lambda insertion: insertion.rank)
            parts.append(_component(facts, chosen, changed, fragments, component, kept, seen, part))
        except LuthierError as failure:
            error = failure
            if isinstance(error, OutOfRegisters):
                alone = partial(_component, facts, changed=changed, fragments=fragments, component=component,
                                kept=kept, seen=lambda _, clone: clone, part=lambda name: None)
                error = OutOfRegisters(error.message + _one_by_one(edits.by_tool(chosen), alone), error.where)
            if not keep_going:
                raise error from failure
            refused += [Refusal(k.name, error.message, error.where or Location(k.name)) for k in component.kernels]
    return Patched(
        chunks=tuple(chunk for part in parts for chunk in part.chunks),
        kernels=tuple(kernel for part in parts for kernel in part.kernels),
        variables=(
            *(NewVariable(v.name, v.size_bytes, v.align_bytes, v.initial) for v in edits.variables),
            *(NewVariable(v.name, v.size_bytes, initial=v.data, constant=True) for v in edits.tables),
        ) if parts else (),
        maps=tuple(source for part in parts for source in part.maps),
        claim=Claim(
            tuple(function for part in parts for function in part.claim.functions),
            {old: new for part in parts for old, new in part.claim.kernels.items()},
            tuple(build_payload_claim(key, payload) for key, payload in payloads.items()),
            {v.name: v.size_bytes for v in edits.variables},
            {v.name: v.data for v in edits.tables},
            {v.name: v.initial for v in edits.variables if v.initial is not None},
        ),
        report=tuple(row for part in parts for row in part.report),
        refused=tuple(refused),
        calls={name: calls for part in parts for name, calls in part.calls.items()},
    )


def _verify_before(seen: Seen) -> Seen:
    def verify_and_hand_on(name: str, clone: Clone) -> Clone:
        verify(clone, name)
        return seen(name, clone)

    return verify_and_hand_on


def _one_by_one(calls: Mapping[str, list[Insertion]], made: Callable[[list[Insertion]], object]) -> str:
    """Of several tools that are too much together: which of them can be ``made`` alone."""
    if len(calls) < 2:
        return ""
    fits: dict[bool, list[str]] = {True: [], False: []}
    for name, own in calls.items():
        try:
            made(own)
            fits[True].append(name)
        except LuthierError:
            fits[False].append(name)
    yes, no = (" and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) for names in fits.values())
    if not no:
        return f"; alone each of {yes} fits: run these tools one after the other"
    if not yes:
        return f"; alone none of {no} fits"
    verb, others = "fits" if len(fits[True]) == 1 else "fit", "does" if len(fits[False]) == 1 else "do"
    return f"; alone {yes} {verb}, and {no} {others} not"


def _check_own_registers(program: Program, function: Function) -> None:
    """A copy has more registers, and other code."""
    code, target = function.code, program.isa.target
    for at in code.find_ops(may_see_inserted_code):
        if why := sees_inserted_code((instr := instr_at(code, at)).inst, target):
            raise Unsupported(f"{why}; leave the kernel out",
                              Location(function.name, instr.pc, program.isa.text(instr.inst)))


def _check_component(program: Program, component: Component) -> None:
    """Unsupported where its code or its kernels cannot have a copy."""
    for function in component.functions:
        if function.incomplete:
            message = f"{function.name} cannot be instrumented: {function.incomplete}"
            raise Unsupported(message, Location(function.name, function.address))
        _check_own_registers(program, function)
    for kernel in component.kernels:
        if shared := kernel.record.descriptor.count_shared_vgprs(program.isa.target):
            raise Unsupported(f"both halves of its waves share {shared} vector registers (.amdhsa_shared_vgpr_count), "
                              "whose numbers a copy with more registers would change; leave the kernel out",
                              Location(kernel.name, kernel.record.entry))


def _component(
    facts: Facts, insertions: list[Insertion], changed: Changed, fragments: Fragments, component: Component,
    kept: Mapping[PersistentValue, int | str], seen: Seen, part: Begins,
) -> Patched:
    program = facts.program
    _check_component(program, component)
    named = RegSet.of(*(v for i in insertions for v in (*i.args, *i.into) if isinstance(v, Reg)))
    _check_there_are(program, facts, insertions, component)
    for inst in (inst for f in component.functions for inst in changed.get(f, {}).values()):
        named |= inst.reads | inst.writes
    names = {f.address: f.name + CLONE_SUFFIX for f in component.functions}

    def build_clones(orders: Orders) -> tuple[Calls, list[Clone], list[NewKernel]]:
        part("place")
        calls, starts = _place_with_private_fallback(program, facts, insertions, fragments, component, named, orders)
        first = prologues(program.isa, facts, starts, calls.locations, len(calls.private) > 0)
        clones = _run_passes(program, component.functions, names, first, calls, changed, seen, part)
        touched = {f: resources.collect_used_registers([clone]) for f,
                   clone in zip(component.functions, clones, strict=True)}
        return calls, clones, [_new_kernel(program, kernel, start, touched, names) for kernel, start in starts.items()]

    calls, clones, kernels = _with_room(program, component, build_clones)
    part("layout")
    placed = [lay_out(program.isa, clone, names) for clone in clones]
    sizes = {f: (f.size_bytes, len(p.chunk.code)) for f, p in zip(component.functions, placed, strict=True)}
    hooked = Counter(program.function_of(each.instr) for each in insertions if each.turn is not Turn.INSTEAD)
    policies: dict[Function, Counter[str]] = defaultdict(Counter)
    for insertion, allotted in calls.told:
        policies[program.function_of(insertion.instr)][allotted.policy] += 1

    def row_of(old: Kernel, new: NewKernel) -> ClonedKernel:
        """Of functions that kernels share each has all."""
        reached = program.reachable(old.function)
        edits = sum(len(changed.get(f, {})) + hooked[f] for f in reached)
        return ClonedKernel(
            old.name, new.name, edits,
            resources.occupancy(program.obj.target, old.record.descriptor, old.record.max_workitems),
            resources.occupancy(program.obj.target, new.descriptor, old.record.max_workitems),
            sum(sizes[f][0] for f in reached), sum(sizes[f][1] for f in reached),
            dict(sum((policies[f] for f in reached), Counter[str]())),
            len(calls.private), old.function.isa.wave_size,
        )

    return Patched(
        chunks=tuple(p.chunk for p in placed),
        kernels=tuple(kernels),
        variables=(),
        maps=tuple(map(source_map, component.functions, placed)),
        claim=Claim(
            tuple(build_function_claim(function, part, calls, kept)
                  for function, part in zip(component.functions, placed, strict=True)),
            {old.name: new.name for old, new in zip(component.kernels, kernels, strict=True)}, (), {},
        ),
        report=tuple(row_of(old, new) for old, new in zip(component.kernels, kernels, strict=True)),
        calls=dict.fromkeys((clone.name for clone in clones), calls.told),
    )


def _with_room(
    program: Program, component: Component, made: Callable[[Orders], tuple[Calls, list[Clone], list[NewKernel]]]
) -> tuple[Calls, list[Clone], list[NewKernel]]:
    """What is ``made`` by the first orders of registers that leave kernels room for their largest work-groups."""
    for orders in resources.ORDERS:
        try:
            found = made(orders)
        except OutOfRegisters:
            if orders == resources.ORDERS[0]:  # which has all ways that the others have
                raise
            continue
        if all(resources.has_room(program.obj.target, old, new.descriptor)
               for old, new in zip(component.kernels, found[2], strict=True)):
            return found
    kernel = component.kernels[0]
    raise OutOfRegisters(f"hooks need vector registers and accumulators of which work-groups of "
                         f"{kernel.record.max_workitems} leave too few", Location(kernel.name))


def _place_with_private_fallback(
    program: Program, facts: Facts, insertions: list[Insertion], fragments: Fragments, component: Component,
    named: RegSet, orders: Orders,
) -> tuple[Calls, dict[Kernel, KernelDescriptor]]:
    """As `_place_calls`, with private memory where that is needed."""
    needing = _find_private_memory_users(insertions, fragments)
    memory = private_memory(program, component, max(needing.values(), default=0))
    for hook, frame_bytes in needing.items():
        if why := _without(hook, frame_bytes, memory):
            raise Unsupported(f"hook {hook.name} {why}", Location(component.kernels[0].name))
    if needing:
        memory = replace(memory, least_cells=1)
    else:
        try:
            return _place_calls(program, facts, insertions, fragments, component, named, None, orders)
        except OutOfRegisters:
            pass
    try:
        return _place_calls(program, facts, insertions, fragments, component, named, memory, orders)
    except OutOfRegisters as error:
        if not memory.obstacle:
            raise
        message = f"{error.message}; in private memory there is no room for more: {memory.obstacle}"
        raise OutOfRegisters(message, error.where) from None


def _check_there_are(program: Program, facts: Facts, insertions: list[Insertion], component: Component) -> None:
    """OutOfRegisters for a vector register that a tool names and that a kernel of the component cannot have."""
    touched = facts.touched(component.functions)
    named = [(insertion, value) for insertion in insertions for value in (*insertion.args, *insertion.into)
             if isinstance(value, Reg) and (RegSet.of(value) - touched).vectors.bits]
    if not named:
        return
    there = resources.for_fewer_waves(program, component) | resources.for_fewer_waves(
        program, component, resources.ACCUMULATORS_FIRST)
    for insertion, reg in named:
        if (RegSet.of(reg) - touched - there).vectors.bits:
            kernel = component.kernels[0]
            message = (f"hook {insertion.hook.name} names {reg}, and kernel {kernel.name} has no such register: it "
                       f"would have no room for a work-group of {kernel.record.max_workitems}")
            raise OutOfRegisters(message, Location(kernel.name, insertion.instr.pc))


def _find_private_memory_users(insertions: list[Insertion], fragments: Fragments) -> dict[Hook, int]:
    """Hooks that touch private memory, and how many bytes of it are their stack."""
    found: dict[Hook, int] = {}
    for insertion in insertions:
        payload = fragments[payload_key(insertion)].payload
        if payload.needs_private_memory:
            found[insertion.hook] = max(payload.frame_bytes, found.get(insertion.hook, 0))
    return found


def _without(hook: Hook, frame_bytes: int, memory: Private) -> str:
    """What is missing where a hook that touches private memory cannot run, or nothing."""
    reads = any(is_of_lanes(each.type) for each in hook.signature.parameters)
    wants = "reads private memory" if reads else f"needs {frame_bytes} bytes of stack"
    if memory.obstacle:
        return f"{wants}, and the kernel can have none: {memory.obstacle}"
    return f"{wants}, and the kernel has none of its own" if reads and not memory.start else ""


def _place_calls(
    program: Program, facts: Facts, insertions: list[Insertion], fragments: Fragments, component: Component,
    named: RegSet, private: Private | None, orders: Orders,
) -> tuple[Calls, dict[Kernel, KernelDescriptor]]:
    """Calls in registers, and the descriptors that start their kernels. ``named``: registers that edits name;
    ``private`` memory is used if it is given."""
    target, available = program.isa.target, private is not None and not private.obstacle
    used: set[PersistentValue] = {
        v for i in insertions for v in (*i.runtime_args, *i.into) if isinstance(v, (Entry, WaveVariable))}
    used |= set(Own) if available and target.scratch_in_buffers else set()
    starts = {k: enable_initial_state(target, k, used, available) for k in component.kernels}
    if available or any(isinstance(value, Entry) for value in used):
        initial = (each for kernel, start in starts.items() for each in (kernel.record.descriptor, start))
        named |= reduce(or_, (initially(target, each) for each in initial))
    slots = location_slots(program, facts, component, named, private, orders)
    locations = resources.wave_locations(program, facts, component, used, named, slots, orders[0])
    private = private.with_locations(locations) if private is not None else None
    float_fields = fields_unlike_plain(
        target, (k.record.descriptor for k in component.kernels), component.functions)
    general = general_registers(program.isa) - resources.collect_reserved_registers(locations.values())
    policies = cheap_policies(program, facts, component, general - named, orders) if private is None else every_policy(
        program, facts, component, general - named, private, orders)
    frame = 0 if private is None else private.frame
    sites = Sites(program, facts, general, float_fields, policies, last_of_all(insertions))
    calls = Calls(program.isa, sites, locations, fragments, frame)
    for insertion in insertions:
        calls.add(insertion)
    calls.private = range(0) if private is None else private.compute_used_range(calls.cells)
    if not calls.private:
        return calls, {k: enable_initial_state(target, k, used) for k in component.kernels}
    return calls, {k: start.replace(private_segment_fixed_size=calls.private.stop, enable_private_segment=1,
                                    uses_dynamic_stack=0) for k, start in starts.items()}


def _run_passes(
    program: Program, functions: Sequence[Function], names: Mapping[int, str],
    first: Mapping[Function, Prologue], calls: Calls, changed: Changed, seen: Seen, part: Begins,
) -> list[Clone]:
    """The clones of ``functions``, ready for being laid out: one pass after the other."""
    isa, pointed = program.isa, sorted(program.address_taken & names.keys())
    clones = []
    part("inline_calls")
    for function in functions:
        indirect = {site.instr.pc for site in program.calls(function) if site.indirect}
        entries = first[function].entries if function.kernel else function.entries
        clone = seen("clone", clone_function(program, function, names[function.address], entries, names,
                                     changed.get(function, {})))
        clone = seen("inline_calls", inline_calls(isa, clone, *(calls.items[place] for place in Place)))
        clone = seen("look_up", look_up(isa, clone, indirect, pointed, calls.sites.before_call))
        if function.kernel:
            clone = seen("prologue", with_prologue(isa, clone, first[function]))
        clones.append(clone)
    part("wait_states")
    clones = [seen("wait_states", clone) for clone in insert_wait_states(isa, clones)]
    part("relax")
    clones = [seen("relax", relax(isa, clone)) for clone in clones]
    return [seen("clauses", dissolve(isa, clone, len(calls.private) > 0)) for clone in clones]


def _new_kernel(
    program: Program, kernel: Kernel, start: KernelDescriptor, touched: Mapping[Function, RegSet],
    names: Mapping[int, str],
) -> NewKernel:
    """``start``: its descriptor, with what its waves start with; ``touched``: registers of each clone."""
    target, old = program.obj.target, kernel.record
    used = reduce(or_, (touched[function] for function in program.reachable(kernel.function)))
    descriptor = resources.grow_register_counts(target, start, used)
    metadata = {
        key: max(count, new) for key, new in resources.counts(target, descriptor, used).items()
        if isinstance(count := old.metadata.get(key), int)
    }
    grown = descriptor.private_segment_fixed_size > old.descriptor.private_segment_fixed_size
    if grown and ".uses_dynamic_stack" in old.metadata:
        metadata[".uses_dynamic_stack"] = False  # the runtime would give it more behind the tool's
    return NewKernel(kernel.name + CLONE_SUFFIX, names[kernel.function.address], descriptor, kernel.name,
                     metadata=metadata)
