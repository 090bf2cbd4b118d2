"""What vector registers hold, as a sum of multiples of the lane's number and of work-item IDs: strides of addresses.

In: the supergraph. Out: :class:`Affine`. Invariant: what it says of a register holds in each lane that is active there,
on every path. A sum may end in something unknown that is the same in all of these lanes.

A write reaches the active lanes only; the others keep what they had. So a value is known for a *scope*: a set of lanes
that EXEC had at some time. Scopes are a chain, each within the one before it, the first being all lanes:

    all, at the start, in the `if`      ("in the `if`": EXEC as the last s_and_saveexec left it)

EXEC is one of them. A mask register is known to lie between two of them, which is how the end of an `if` finds back to
the scope that it began with. What the scopes of joining paths share stays; EXEC there becomes a separate scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from luthier_py.isa import EXEC, MODE, Inst, OpFlag, Reg, RegFile, RegSet
from luthier_py.isa.encoding.dual import halves, is_dual
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.meaning import Lanes, Scalar
from luthier_py.isa.semantics.readers.evaluate import Dword, evaluate, is_modified
from luthier_py.isa.semantics.readers.lane_bits import ONE, ZERO, Bit, BitTable, assignments, outcome
from luthier_py.isa.semantics.readers.numbers import UNIFORM, Known, Number, Varying, either, sum_of
from luthier_py.program.analysis.cfg import Graph, solve
from luthier_py.program.analysis.execution import ExecState, Skipping, step

if TYPE_CHECKING:
    from luthier_py.program.ir import Instr, Kernel, Program

_ALL, _START, _ELSEWHERE = -1, -2, -3  # names of scopes; others are an address, or _JOINS less the number of a node
_JOINS = -4
_MOST_SCOPES = 24
_VECTOR = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS
_PACKED = {Varying.X: 1, Varying.Y: 1 << 10, Varying.Z: 1 << 20}  # AMDGPUUsage, "Packed Work-Item IDs"


class Between(NamedTuple):
    """A mask has all lanes of the scope ``least`` (None: perhaps no lane), and none outside of ``most``."""

    least: int | None
    most: int


_ANY = Between(None, 0)


class State(NamedTuple):
    """``active`` is the scope that EXEC is. ``values``: what is known, and in which scope."""

    values: Mapping[Dword, tuple[Known, int]]
    scopes: tuple[int, ...]
    active: int
    masks: Mapping[int, Between]
    node: int


class Affine:
    """The solution: ask with :meth:`before`."""

    def __init__(self, program: Program, graph: Graph, states: list[ExecState]) -> None:
        self._program, self._graph, self._modes = program, graph, states
        self._evaluated: dict[tuple[object, ...], dict[Dword, Known]] = {}
        starts = {entry: kernel for kernel in program.kernels for entry in kernel.function.entries}
        boundary: list[State | None] = []
        for node in graph.nodes:
            state = None
            if node.index in graph.arrives:
                state = State({}, (_ALL, _ELSEWHERE), 1, {}, node.index)
            elif node.index in graph.kernels:
                state = State(_ids(program, starts[node.block.address]), (_ALL, _START), 1, {}, node.index)
            boundary.append(state)
        self._heads, _ = solve(graph.successors, boundary, _join, self._flow, _along)
        self._cursor: tuple[int, int, State, ExecState] | None = None

    def before(self, instr: Instr, reg: Reg) -> Number | None:
        """What is known of one dword; None where nothing is. Quick where called in the order of the program."""
        state, mode = self._at(instr)
        known = self._read(state, reg.file, reg.index) if state is not None else None
        return known if isinstance(known, Number) and not mode.indexed else None

    def all_that_started(self, instr: Instr) -> bool:
        """Whether the lanes are active with which the wave started, and no others."""
        state, _ = self._at(instr)
        return state is not None and state.scopes[state.active] == _START

    def _at(self, instr: Instr) -> tuple[State | None, ExecState]:
        """Before an instruction; no state where control never comes."""
        node, place = self._graph.places[instr]
        at, state, mode = 0, self._heads[node], self._modes[node]
        if state is None:
            return None, mode
        if self._cursor is not None and self._cursor[0] == node and self._cursor[1] <= place:
            _, at, state, mode = self._cursor
        state, mode = self._through(node, range(at, place), state, mode)
        self._cursor = node, place, state, mode
        return state, mode

    def _flow(self, index: int, state: State) -> State:
        return self._through(index, range(len(self._graph.nodes[index])), state, self._modes[index])[0]

    def _through(self, index: int, places: range, state: State, mode: ExecState) -> tuple[State, ExecState]:
        """Behind some instructions of a node."""
        code, start = self._graph.nodes[index].function.code, self._graph.nodes[index].start
        for at in range(start + places.start, start + places.stop):
            inst = code.inst(at)
            form = _form_of(inst)
            if form.indexes or form.vector and (mode.indexed or mode.skipping):
                state = state._replace(values={place: known for place, known in state.values.items()
                                               if place[0] is RegFile.SGPR and not form.scalars >> place[1] & 1})
            elif form.writes:
                state = self._transfer_writes(state, inst, form)
            if form.scalars:
                state = self._transfer_masks(state, inst, int(code.pcs[at]))
            if form.switches or mode.skipping is Skipping.ENDING:
                mode = step(self._program.isa, inst, mode)
        return state, mode

    def _read(self, state: State, file: RegFile, index: int) -> Known:
        known = state.values.get((file, index))
        if known is None:
            return UNIFORM if file is RegFile.SGPR else None
        return known[0] if known[1] <= state.active else None

    def _transfer_writes(self, state: State, inst: Inst, form: _Form) -> State:
        found: dict[Dword, tuple[Known, int]] = {}
        for place, known in self._results(state, inst, form).items() if form.evaluates else ():
            scalar = place[0] is RegFile.SGPR
            if known is not None and not (scalar and known == UNIFORM):
                found[place] = known, 0 if scalar else state.active
        values = state.values
        lost = [place for place in form.writes if place in values and place not in found]
        if not lost and all(values.get(place) == known for place, known in found.items()):
            return state
        kept = {**values, **found}
        for place in lost:
            del kept[place]
        return state._replace(values=kept)

    def _results(self, state: State, inst: Inst, form: _Form) -> dict[Dword, Known]:
        """Nothing where a vector register that it reads is not known: what is made of it seldom is, but for the upper
        half of an address. Of two in one, each reads what was there before."""
        if is_dual(inst.op):
            return {place: known for half in halves(inst)
                    for place, known in self._results(state, half, _form_of(half)).items()}
        given: list[Known] = []
        lower: Dword | None = None
        for place in form.reads:
            known = self._read(state, *place)
            if known is None and lower != (place[0], place[1] - 1):
                return {}
            lower = None if known is None else place
            given.append(known)
        key = (inst, *given)
        if key not in self._evaluated:
            self._evaluated[key] = evaluate(inst, lambda file, index: self._read(state, file, index))
        return self._evaluated[key]

    def _transfer_masks(self, state: State, inst: Inst, pc: int) -> State:
        found = {assign.mask: _between(assign.table, tuple([_of(state, source) for source in assign.sources]),
                                       len(state.scopes))
                 for assign in assignments(inst, self._program.isa.wave_size)}
        changed = {mask: between for mask, between in found.items()
                   if mask != EXEC and between != state.masks.get(mask, _ANY)}
        if changed:
            masks = {**state.masks, **changed}
            state = state._replace(masks={mask: between for mask, between in masks.items() if between != _ANY})
        return _with_exec(state, found[EXEC], pc) if EXEC in found else state


class _Form(NamedTuple):
    """What an instruction does, whatever is known before it: dwords that it reads and writes, scalar ones as bits, too;
    whether it is a vector instruction, names registers by an index, may change what vector instructions do, and whether
    what it writes may be known."""

    reads: tuple[Dword, ...]
    writes: tuple[Dword, ...]
    scalars: int
    vector: bool
    indexes: bool
    switches: bool
    evaluates: bool


@lru_cache(maxsize=1 << 14)
def _form_of(inst: Inst) -> _Form:
    flags, scalars, row = inst.op.flags, inst.writes.sgpr, find_meaning(inst.op)
    evaluates = is_dual(inst.op) or isinstance(row, (Lanes, Scalar)) and not is_modified(inst, row)
    indexes = OpFlag.INDEXES_REGISTERS in flags
    return _Form(_places(inst.reads), _places(inst.writes), scalars, bool(flags & _VECTOR), indexes,
                 indexes or bool(scalars >> MODE & 1), evaluates and OpFlag.IGNORES_EXEC not in flags)


def _ids(program: Program, kernel: Kernel) -> dict[Dword, tuple[Known, int]]:
    """Work-item IDs, where a wave starts (AMDGPUUsage, "VGPR Register Set Up Order")."""
    wanted = tuple(_PACKED)[: kernel.record.descriptor.enable_vgpr_workitem_id + 1]
    if program.obj.target.packed_work_item_ids:
        return {(RegFile.VGPR, 0): (sum_of((what, _PACKED[what]) for what in wanted), 1)}
    return {(RegFile.VGPR, index): (sum_of([(what, 1)]), 1) for index, what in enumerate(wanted)}


@lru_cache(maxsize=1 << 14)
def _places(regs: RegSet) -> tuple[Dword, ...]:
    return tuple((reg.file, reg.index) for some in (regs.vectors, regs.scalars) for reg in some)


@lru_cache(maxsize=1 << 14)
def _between(table: BitTable, sources: tuple[Between, ...], scopes: int) -> Between:
    """From the bits of a lane that is in a scope, and of one that is not, for each scope."""
    least, most = None, 0
    for scope in range(scopes):
        outside: tuple[Bit, ...] = tuple(0 if source.most >= scope else None for source in sources)
        if scope and outcome(table, outside) == 0:
            most = scope
        inside: tuple[Bit, ...] = tuple(1 if source.least is not None and source.least <= scope else None
                                        for source in sources)
        if least is None and outcome(table, inside) == 1:
            least = scope
    return Between(least, most)


def _of(state: State, source: int) -> Between:
    if source == EXEC:
        return Between(state.active, state.active)
    if source in (ZERO, ONE):
        return Between(0, 0) if source == ONE else Between(None, len(state.scopes) - 1)
    return state.masks.get(source, _ANY)


def _with_exec(state: State, new: Between, name: int) -> State:
    """EXEC is a scope that there was, or a new one within the smallest that it is known to be in."""
    if new.least == new.most:
        return state._replace(active=new.most)
    most = new.most
    if name in state.scopes:
        at = state.scopes.index(name)
        state, most = _forgotten(state, at), most - (at <= most)
    state = _cut(state, most + 1)
    if len(state.scopes) >= _MOST_SCOPES:
        state = _cut(state, 1)
    scopes = (*state.scopes, name)
    return state._replace(scopes=scopes, active=len(scopes) - 1)


def _cut(state: State, count: int) -> State:
    """With the first ``count`` scopes only; EXEC is to be set."""
    values = {place: known for place, known in state.values.items() if known[1] < count}
    masks = {mask: Between(None if least is None or least >= count else least, min(most, count - 1))
             for mask, (least, most) in state.masks.items()}
    return state._replace(values=values, scopes=state.scopes[:count], masks=masks)


def _forgotten(state: State, at: int) -> State:
    """Without one scope: what was known in it is in the next smaller one; EXEC is to be set if it was this one."""
    if at + 1 == len(state.scopes):
        return _cut(state, at)
    values = {place: (known, scope - (scope > at)) for place, (known, scope) in state.values.items()}
    masks = {mask: Between(least if least is None else least - (least > at), most - (most >= at))
             for mask, (least, most) in state.masks.items()}
    scopes = (*state.scopes[:at], *state.scopes[at + 1 :])
    return state._replace(values=values, scopes=scopes, masks=masks, active=state.active - (state.active > at))


def _along(index: int, target: int, state: State) -> State:
    """The scope of a join is EXEC as it is there now: what was called so before, in a loop, has no name any more."""
    name = _JOINS - target
    if name in state.scopes and state.scopes.index(name) != state.active:
        state = _forgotten(state, state.scopes.index(name))
    return state._replace(node=target)


def _join(a: State, b: State) -> State:
    """A wave comes on one of two ways, with all its lanes."""
    shared = next((place for place, (x, y) in enumerate(zip(a.scopes, b.scopes, strict=False)) if x != y),
                  min(len(a.scopes), len(b.scopes)))
    same = a.active == b.active < shared
    count = shared if same else min(shared, a.active + 1, b.active + 1)
    name = _JOINS - a.node
    scopes = a.scopes[:count] if same else (*a.scopes[:count], name)
    values: dict[Dword, tuple[Known, int]] = {}
    for place in a.values.keys() & b.values.keys():
        first, second = (_in_join(state, state.values[place][1], count, same) for state in (a, b))
        known = either(a.values[place][0], b.values[place][0])
        if first is not None and second is not None and known is not None:
            if not (place[0] is RegFile.SGPR and known == UNIFORM):
                values[place] = known, max(first, second)
    masks = {}
    for mask in a.masks.keys() & b.masks.keys():
        between = [_mask_in_join(state, state.masks[mask], count, same) for state in (a, b)]
        least = None if any(each.least is None for each in between) else max(each.least or 0 for each in between)
        masks[mask] = Between(least, min(each.most for each in between))
    masks = {mask: between for mask, between in masks.items() if between != _ANY}
    return State(values, scopes, a.active if same else count, masks, a.node)


def _in_join(state: State, scope: int, count: int, same: bool) -> int | None:
    """What a scope is where paths have joined: itself, or the new one for those that have all active lanes."""
    if scope < count:
        return scope
    return count if not same and scope <= state.active else None


def _mask_in_join(state: State, between: Between, count: int, same: bool) -> Between:
    least, most = between
    if most >= count:
        most = count if not same and most >= state.active else count - 1
    return Between(None if least is None else _in_join(state, least, count, same), most)


def by_lane(known: Number, group_size: tuple[int, int, int], wave_size: int) -> Number | None:
    """The same in lanes alone, for work-groups of a known size: rows of whole waves, or a single row.

    Work-items are numbered along x first, and a wave takes the next ones (AMDGPUUsage, "Work-Item ID").
    """
    x, y, z = group_size
    if x % wave_size and y * z > 1:
        return known if all(what is Varying.LANE for what, _ in known.terms) else None
    terms = dict(known.terms)
    steps = terms.get(Varying.LANE, 0) + terms.get(Varying.X, 0)
    line = sum_of([(Varying.LANE, steps)])
    unknown = known.constant if set(terms) <= {Varying.LANE} else None
    return Number(line.terms, unknown)
