"""What of a kernel's control flow a launch decides before it runs.

In: a kernel, its supergraph, and the liveness of lanes. Out: :class:`LaunchInvariants`: which nodes run as often as
arguments, ids and constants say, at which places EXEC is known, and the instructions that decide that. Invariant: a
count that is called launch-invariant is what the wave would execute whatever memory contains.

It is one dataflow over numbers that the launch decides (`readers/sums`): what is made of these alone is decided, too,
and everything else, loads above all, is not known. Three things follow from a branch that is not decided. What is
between it and where its ways meet again is hidden: whether it runs is unknown. What is written there is not known
behind it. And lanes that were switched off by what is not known come back where their masks meet again: every mask is
followed beside the last EXEC that was known, one lane at a time (`readers/lane_bits`), so that EXEC is known again
where for each lane it is what that was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from luthier_py.base.records import dataclass, field, replace
from luthier_py.isa import EXEC, VCC, Inst, Operand, OperandKind, OpFlag, Reg, RegFile
from luthier_py.isa.model.registers import SCC
from luthier_py.isa.model.target import Target
from luthier_py.isa.properties.accesses import memory_access
from luthier_py.isa.properties.memory_access import AddressForm
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Branch
from luthier_py.isa.semantics.memory import ScalarLoad
from luthier_py.isa.semantics.readers.evaluate import Dword
from luthier_py.isa.semantics.readers.lane_bits import MASKS, assignments
from luthier_py.isa.semantics.readers.launch_values import DomainEvaluator, ReadDomainValue, one_of
from luthier_py.isa.semantics.readers.sums import ADDRESSES, DomainValue, Sum, Sums, axes_of
from luthier_py.program.analysis.call_contexts import ContextClones, clone_by_context
from luthier_py.program.analysis.cfg import Graph, solve
from luthier_py.program.analysis.changes import EXEC_BITS
from luthier_py.program.analysis.initial_values import InitialState
from luthier_py.program.analysis.lanes import EXEC_BIT, MOST_STATES, LaneState, only, transfer_lane_state
from luthier_py.program.analysis.post_dominance import EXIT, PostDominators

if TYPE_CHECKING:
    from luthier_py.binary.loader import KernelRecord
    from luthier_py.program.analysis.execution import ExecState
    from luthier_py.program.analysis.liveness import Liveness
    from luthier_py.program.ir import Instr, Kernel, Program

_GHOST_BIT = 1 << 256  # a mask beside all that have names: the last EXEC that was known
_START = frozenset({LaneState(EXEC_BIT | _GHOST_BIT, 0), LaneState(EXEC_BIT | _GHOST_BIT, EXEC_BIT | _GHOST_BIT)})
_ANYHOW = frozenset(LaneState(EXEC_BIT | _GHOST_BIT, bits)
                    for bits in (0, EXEC_BIT, _GHOST_BIT, EXEC_BIT | _GHOST_BIT))


class Knowing(NamedTuple):
    """``values``: what is known. ``ghost``: EXEC where it was known last, and how lanes are in masks since then."""

    values: dict[Dword, DomainValue]
    ghost: tuple[DomainValue, ...]
    ways: frozenset[LaneState]


@dataclass(frozen=True, slots=True)
class Deciding:
    """An instruction that decides something, and the dwords that it gives; ``whole``: those of which no inactive lane
    is read before it is written."""

    inst: Inst
    results: frozenset[Dword]
    whole: frozenset[Dword]


@dataclass(frozen=True, slots=True)
class Part:
    """Instructions of a node that run with one EXEC, the last of which may change it, from ``pc`` on. ``known``: EXEC
    is, and it is what it was last known to be."""

    pc: int
    known: bool
    steps: tuple[Deciding, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """A node that runs as often as the launch says. Control continues at the first of ``ways`` if ``branch`` is
    taken, else at the last: past all that is hidden. What that has changed is not known there, and so decides
    nothing. ``wanted``: registers, as bits, that a branch or EXEC depends on from here on."""

    pc: int
    parts: tuple[Part, ...]
    branch: Branch | None
    ways: tuple[int, ...]
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class LaunchInvariants:
    """Of one kernel. ``first``: where its waves start; EXIT where nothing is launch-invariant."""

    record: KernelRecord
    target: Target
    lanes: int  # of a wave
    first: int
    stops: Mapping[int, Stop] = field(default_factory=dict)  # of copies of nodes, one for each call that leads there
    heads: frozenset[int] = frozenset()  # stops that control comes back to
    pcs: frozenset[int] = frozenset()
    """Where straight-line pieces begin that run as often as the launch says."""
    masks: frozenset[int] = frozenset()
    """Where ranges with one EXEC begin whose active lanes the launch says, too."""
    entered: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """By addresses of functions: the pieces, all of ``pcs``, that end with their calls."""


def evaluate_results(inst: Inst, read: ReadDomainValue, evaluator: DomainEvaluator,
                     initial_state: InitialState) -> Mapping[Dword, DomainValue]:
    """What is known of what an instruction writes."""
    row = find_meaning(inst.op)
    if not isinstance(row, ScalarLoad):
        return {} if OpFlag.IGNORES_EXEC in inst.op.flags and inst.writes.vectors else evaluator.results(inst, read)
    access, target = memory_access(inst), inst["sdst"].reg
    if access is None or access.form is not AddressForm.SCALAR or row.bits < 32 or access.unit != 1 or target is None:
        return {}
    base, more = (access.base.reg if access.base is not None else None,
                  _offset(access.scalar, initial_state.target, read))
    if base is None or base.dwords != 2 or more is None:
        return {}
    offset = access.offsets[0] + more
    loaded = initial_state.load(read(base.file, base.index), offset, row.dwords)
    return {(target.file, target.index + each): known for each, known in enumerate(loaded)}


def _offset(operand: Operand | None, target: Target, read: ReadDomainValue) -> int | None:
    """A number that is in the code, or that a register always has here."""
    if operand is None or operand.kind is OperandKind.SPECIAL and operand.value == target.null_encoding:
        return 0
    known = read(operand.reg.file, operand.reg.index) if operand.reg is not None else None
    if operand.kind in (OperandKind.CONSTANT, OperandKind.IMMEDIATE):
        return operand.value
    return known.base if isinstance(known, Sum) and not known.terms and isinstance(known.base, int) else None


def find_launch_invariants(
    program: Program, graph: Graph, states: Sequence[ExecState], liveness: Liveness, kernel: Kernel
) -> LaunchInvariants:
    """``states``: of EXEC and modes, before each node. Of a kernel of more than MOST_NODES nothing is
    launch-invariant."""
    copies = clone_by_context(program, graph, states, kernel)
    post_dominators = PostDominators(copies.after)
    if not copies.nodes or not post_dominators.all_end:
        return LaunchInvariants(kernel.record, program.obj.target, program.isa.wave_size, EXIT)
    return _Solution(program, liveness, kernel, copies, post_dominators).find_launch_invariants()


class _Solution:
    """Mutable: what is hidden so far."""

    def __init__(self, program: Program, liveness: Liveness, kernel: Kernel, copies: ContextClones,
                 post_dominators: PostDominators) -> None:
        self._liveness, self._kernel, self._copies, self._post_dominators = liveness, kernel, copies, post_dominators
        self._nodes, self._after, self._first = copies.nodes, copies.after, copies.first
        self._lanes, self._target = program.isa.wave_size, program.obj.target
        self._exec: tuple[Dword, ...] = tuple((RegFile.SGPR, EXEC + half) for half in range(self._lanes // 32))
        self._evaluator = DomainEvaluator(Sums({}, self._lanes))
        self._initial_state = InitialState(self._target, kernel.record, self._lanes)
        self._hidden: set[int] = set()
        self._heads: Mapping[int, Knowing] = {}
        self._ends: Mapping[int, Knowing] = {}

    def find_launch_invariants(self) -> LaunchInvariants:
        found = {EXIT}
        while not found <= self._hidden | {EXIT} or not self._heads:
            self._hidden |= found - {EXIT}
            self._heads, self._ends = self._solve_nodes()
            found = {
                each for index in self._heads if self._forks(index) for each in self._post_dominators.between(index)
            }
        stops = prune_steps({index: self._stop(index) for index in self._heads if index not in self._hidden})
        first = self._resolve_target(self._first)
        return LaunchInvariants(self._kernel.record, self._target, self._lanes, first, stops, heads(stops, first),
                        *self._places(stops))

    def _places(self, stops: Mapping[int, Stop]) -> tuple[frozenset[int], frozenset[int], dict[int, frozenset[int]]]:
        """Where code is launch-invariant in all of its copies, and where its lanes are; and where functions are
        called."""
        nodes = self._nodes
        apart = {index for index, node in nodes.items() if node.function in self._copies.apart}
        bad = {nodes[index].instrs[0].pc for index in (self._heads.keys() - stops.keys()) | apart}
        pcs = {stop.pc for stop in stops.values()} - bad
        parts = [(part.pc, part.known and stop.pc in pcs) for stop in stops.values() for part in stop.parts]
        masks = {pc for pc, known in parts if known} - {pc for pc, known in parts if not known}
        entered: dict[int, set[int]] = {}
        for index in self._heads.keys() - self._copies.calls:
            for callee in (call.targets if (call := nodes[index].call) is not None else ()):
                entered.setdefault(callee.address, set()).add(nodes[index].instrs[0].pc)
        callees = {callee.address for callee in self._copies.apart}
        return frozenset(pcs), frozenset(masks), {
            address: frozenset(places) for address, places in entered.items()
            if places <= pcs and address not in callees}

    def _solve_nodes(self) -> tuple[Mapping[int, Knowing], Mapping[int, Knowing]]:
        """What is known at the head and at the end of each node that control comes to."""
        numbers = list(self._nodes)
        place = {index: number for number, index in enumerate(numbers)}
        edges = [[place[each] for each in self._after[index] if each != EXIT] for index in numbers]
        registers = self._initial_state.registers()
        active = tuple([registers[place] for place in self._exec])
        start = Knowing(registers, active, _START)
        boundary = [start if index == self._first else None for index in numbers]
        solved = solve(edges, boundary, _join, lambda number, state: self._through(numbers[number], state))
        heads, ends = ({index: state for index, state in zip(numbers, states, strict=True) if state is not None}
                       for states in solved)
        return heads, ends

    def _through(self, index: int, state: Knowing) -> Knowing:
        node = self._nodes[index]
        if index in self._copies.calls:
            return Knowing({}, (None,) * (self._lanes // 32), _ANYHOW)
        state = _copy_state(state)
        for place, instr in enumerate(node.instrs):
            state, _ = self._over(index, place, instr, state)
        return state

    def _over(self, index: int, place: int, instr: Instr, state: Knowing) -> tuple[Knowing, Deciding | None]:
        """What is known changes in place: see `_copy_state`."""
        inst = instr.inst
        if not inst.writes:
            return state, None
        read = _reader(state.values)
        found = {} if index in self._hidden else evaluate_results(inst, read, self._evaluator, self._initial_state)
        results, whole = dict[Dword, DomainValue](), set[Dword]()
        for reg in inst.writes:
            what, known = (reg.file, reg.index), found.get((reg.file, reg.index))
            if known is not None and reg.file is not RegFile.SGPR:
                if self._liveness.inside(self._nodes[index].index)[place + 1].inactive & reg.bits:
                    known = self._evaluator.merge_lanes(known, state.values.get(what), read)
                else:
                    whole.add(what)
            if not (known is None or axes_of(known) & ADDRESSES
                    and (not isinstance(known, Sum) or EXEC_BITS & reg.bits)):
                results[what] = known
        for reg in inst.writes:
            state.values.pop((reg.file, reg.index), None)
        state.values.update(results)
        if inst.writes.sgpr & EXEC_BITS and any(state.values.get(half) is None for half in self._exec):
            for half in self._exec:  # one is not enough: what EXEC was last known to be stays for those who walk
                results.pop(half, None)
        step_made = Deciding(inst, frozenset(results), frozenset(whole & results.keys())) if results else None
        return self._with_masks(state, inst, index in self._hidden), step_made

    def _with_masks(self, state: Knowing, inst: Inst, hidden: bool) -> Knowing:
        if not inst.writes.sgpr & MASKS:
            return state
        assigns = assignments(inst, self._lanes)
        ways = frozenset(each for way in state.ways for each in transfer_lane_state(assigns, -1, way))
        if len(ways) > MOST_STATES:
            ways = frozenset(only(each, EXEC_BIT | _GHOST_BIT) for each in ways)
        if not inst.writes.sgpr & EXEC_BITS:
            return state._replace(ways=ways)
        active = tuple([state.values.get(place) for place in self._exec])
        if None not in active and not hidden:
            return Knowing(state.values, active, frozenset(map(_as_ghost, ways)))
        same = all(each.known & _GHOST_BIT and bool(each.value & _GHOST_BIT) == each.active for each in ways)
        values = {place: known for place, known in state.values.items() if place not in self._exec}
        if same:
            values.update(zip(self._exec, state.ghost, strict=True))
        return Knowing(values, state.ghost, ways)

    def _forks(self, index: int) -> bool:
        """Whether the launch does not decide a node's successor."""
        return len(self._after[index]) > 1 and self._branch(index) is None

    def _branch(self, index: int) -> Branch | None:
        """That at the end of a node, if the launch decides it."""
        node = self._nodes[index]
        row = find_meaning(node.instrs[-1].inst.op)
        if node.call is not None or not isinstance(row, Branch) or len(self._after[index]) != 2:
            return None
        known = self._evaluator.decision(row, _reader(self._ends[index].values))
        return row if known is not None and not axes_of(known) & ADDRESSES else None

    def _resolve_target(self, target: int) -> int:
        """Where control is known to be next, on its way to a node."""
        return self._post_dominators.next(target, self._hidden) if target in self._hidden else target

    def _stop(self, index: int) -> Stop:
        node, state = self._nodes[index], _copy_state(self._heads[index])
        parts: list[Part] = []
        steps: list[Deciding] = []
        pc, known = node.instrs[0].pc, self._exec_known(state)
        for place, instr in enumerate(node.instrs):
            state, step_made = self._over(index, place, instr, state)
            steps += [step_made] if step_made is not None else []
            if instr.inst.writes.sgpr & EXEC_BITS or place + 1 == len(node):
                parts.append(Part(pc, known, tuple(steps)))
                pc, known, steps = instr.end, self._exec_known(state), []
        branch = self._branch(index)
        ways = tuple(map(self._resolve_target, self._after[index]))
        if branch is None and len(ways) > 1:
            ways = (self._post_dominators.next(index, self._hidden),)
        return Stop(node.instrs[0].pc, tuple(parts), branch, ways)

    def _exec_known(self, state: Knowing) -> bool:
        return all(state.values.get(place) is not None for place in self._exec)


def heads(stops: Mapping[int, Stop], first: int) -> frozenset[int]:
    """Those that one may come back to: each round leads through one of them."""
    found, on_the_way, seen = set[int](), {EXIT: False}, [(first, False)]
    while seen:
        at, left = seen.pop()
        if left:
            on_the_way[at] = False
        elif at not in on_the_way:
            on_the_way[at] = True
            seen += [(at, True), *((way, False) for way in stops[at].ways)]
        elif on_the_way[at]:
            found.add(at)
    return frozenset(found)


def prune_steps(stops: Mapping[int, Stop]) -> dict[int, Stop]:
    """The stops with those steps alone that a branch or EXEC depends on."""
    live = dict.fromkeys(stops, 0)
    found = dict(stops)
    changed = True
    while changed:
        changed = False
        for index in reversed(list(stops)):
            stop = stops[index]
            wanted = reduce(or_, (live[way] for way in stop.ways if way != EXIT), 0)
            if stop.branch is not None:
                wanted |= EXEC_BITS | 3 << VCC | 1 << SCC
            parts = []
            for part in reversed(stop.parts):
                wanted, steps = _slice_steps(part.steps, wanted | EXEC_BITS)
                parts.append(replace(part, steps=steps))
            found[index] = replace(stop, parts=tuple(reversed(parts)), wanted=wanted)
            if wanted != live[index]:
                live[index], changed = wanted, True
    return found


def _slice_steps(steps: Sequence[Deciding], wanted: int) -> tuple[int, tuple[Deciding, ...]]:
    kept = []
    for each in reversed(steps):
        gives = reduce(or_, (Reg(file, index).bits for file, index in each.results), 0)
        if gives & wanted:
            kept.append(each)
            killed = reduce(or_, (Reg(file, index).bits for file, index in each.results
                                  if file is RegFile.SGPR or (file, index) in each.whole), 0)
            wanted = wanted & ~killed | each.inst.reads.bits | EXEC_BITS
    return wanted, tuple(reversed(kept))


def _copy_state(state: Knowing) -> Knowing:
    """For going through a node, which is done more than once from one head."""
    return state._replace(values=dict(state.values))


def _reader(values: Mapping[Dword, DomainValue]) -> ReadDomainValue:
    return lambda file, index: values.get((file, index))


def _as_ghost(way: LaneState) -> LaneState:
    """EXEC is known: from here on it is what others are compared with."""
    return LaneState(way.known | _GHOST_BIT, way.value & ~_GHOST_BIT | (_GHOST_BIT if way.active else 0))


def _join(a: Knowing, b: Knowing) -> Knowing:
    values: dict[Dword, DomainValue] = {}
    for place in a.values.keys() & b.values.keys():
        known = one_of(a.values[place], b.values[place])
        if known is not None and (isinstance(known, Sum) or not axes_of(known) & ADDRESSES):
            values[place] = known
    ways = a.ways | b.ways
    if len(ways) > MOST_STATES:
        ways = frozenset(only(each, EXEC_BIT | _GHOST_BIT) for each in ways)
    return Knowing(values, tuple(map(one_of, a.ghost, b.ghost)), ways)
