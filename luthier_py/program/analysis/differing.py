"""Which results may differ from one device to another, and whether they decide a branch, an address or a mask.

In: a program and its facts. Out: :class:`Differing`. A forward flow over all functions: each register has the set of
instructions whose implementation-defined result (see isa.semantics.readers.implementation_defined) its value may come
from. Memory is one cell for each of its spaces, over all of the launch: whatever is loaded may be anything that is
stored there, by this kernel or one that shares functions with it. What lies in global memory when a launch begins is a
separate cell (``earlier``), but for kernel arguments and packets, which the host writes.

Of a vector register active and inactive lanes are followed separately, so that what is left over in these
does not come up again before EXEC grows.

Invariant: it errs to one side. What is not found here does not decide, but for ways that it says it does not follow:
through EXEC alone (once a mask or branch is decided all behind it is), through code that is not known, and through
registers that are named at run time (``unknown``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass
from luthier_py.binary.loader.initial import Initial, initial_places
from luthier_py.isa import Inst, OpFlag
from luthier_py.isa.encoding.instruction import MOVES, Space
from luthier_py.isa.model.registers import EXEC, SCALARS, set_bits
from luthier_py.isa.properties.private_buffers import private_resource
from luthier_py.isa.semantics.readers.implementation_defined import VALUES, ImplementationDefined
from luthier_py.isa.semantics.readers.lane_bits import ONE, ZERO, assignments, outcome
from luthier_py.isa.semantics.readers.propagation import Propagation, RegBits, compute_dataflow
from luthier_py.program.analysis.cfg import Graph, solve, supergraph
from luthier_py.program.analysis.sharing import group_sharing_kernels

if TYPE_CHECKING:
    from luthier_py.binary.loader.descriptor import KernelDescriptor
    from luthier_py.program.analysis.facts import Facts
    from luthier_py.program.ir import Instr, Program

_FOREIGN, _EARLIER, _THROUGH = 1, 2, 4  # not made of the launch's own pointers and constants; as the two below say
_PRIVATE = 8  # made of the resource of private memory, and so no source
_FIRST = 4  # bit of the first source: one for its value, one for a NaN's bits
_GIVEN = (Initial.KERNARG_SEGMENT_PTR, Initial.DISPATCH_PTR, Initial.QUEUE_PTR, Initial.PRIVATE_SEGMENT_BUFFER,
          Initial.SCRATCH_WAVE_OFFSET, Initial.FLAT_SCRATCH_INIT)
_EXEC_BITS = (EXEC, EXEC + 1)
_RESOURCE = (Initial.PRIVATE_SEGMENT_BUFFER,)
SPACES = Space.GLOBAL, Space.LDS, Space.SCRATCH
_State = dict[int, int]  # by register's bit, what it may come from; of lanes that are not active:
_OTHERS = 1 << 13        # the same, that much further
_VECTORS = SCALARS.bit_length()


class Decides(Enum):
    """What a result that may differ between devices decides."""

    BRANCH = "branch"
    ADDRESS = "address"
    MASK = "mask"  # EXEC: which lanes take part


@dataclass(frozen=True, slots=True)
class Decision:
    """At ``instr``. ``sources``: with which implementation-defined result each got here; none if it is ``earlier``
    alone: what came out of global memory as the launch found it. ``through``: some of it came through memory, so it may
    be another value."""

    instr: Instr
    decides: Decides
    sources: Mapping[Instr, frozenset[ImplementationDefined]]
    earlier: bool
    through: bool


@dataclass(frozen=True, slots=True)
class Differing:
    """``sources``: instructions whose results may differ. ``leaves``: those whose implementation-defined result may
    come into global memory. ``unknown``: ways that are not followed, in words."""

    sources: Mapping[Instr, frozenset[ImplementationDefined]]
    decisions: tuple[Decision, ...]
    leaves: tuple[Instr, ...]
    unknown: tuple[str, ...]


def find_device_dependence(program: Program, facts: Facts) -> Differing:
    """Which instructions of ``program`` may give other results on another device, and where such a result decides a
    branch, an address or EXEC."""
    flow = _ImplementationDefinedFlow(program, facts)
    flow.solve()
    return flow.collect_decisions()


class _ImplementationDefinedFlow:
    """Mutable: what memory holds grows until nothing more does."""

    def __init__(self, program: Program, facts: Facts) -> None:
        self.program, self.facts = program, facts
        self.graph: Graph = supergraph(program)
        self.propagation = cache(compute_dataflow)
        instrs = [instr for function in program.functions for instr in function.instrs]
        self.open = {instr: free for instr in instrs if (free := self._own(instr.inst))}
        self.sources = list(self.open)
        self.number = {instr: number for number, instr in enumerate(self.sources)}
        self.nans = sum(1 << _FIRST + 2 * number + 1 for number in range(len(self.sources)))
        self.group = {function: number for number, kernels in enumerate(group_sharing_kernels(program, program.kernels))
                      for kernel in kernels for function in program.reachable(kernel.function)}
        self.memory = [dict.fromkeys(SPACES, 0) for _ in range(len(self.group) + 1)]
        """Of each group, and of functions that no kernel is seen to reach."""
        self.inputs: list[_State | None] = []
        self.decided: dict[tuple[Instr, Decides], int] | None = None

    def _own(self, inst: Inst) -> frozenset[ImplementationDefined]:
        way = self.propagation(inst)
        return frozenset(way.left).union(*(each.own for each in way.ways))

    def solve(self) -> None:
        boundary = [self._at_start(index) for index in range(len(self.graph.nodes))]
        before: list[dict[Space, int]] = []
        while before != self.memory:
            before = [dict(each) for each in self.memory]
            self.inputs, _ = solve(self.graph.successors, boundary, _join_states, self._through)

    def collect_decisions(self) -> Differing:
        self.decided = {}
        for index, state in enumerate(self.inputs):
            if state is not None:
                self._through(index, state)
        decisions = [self._decision(instr, what, taint) for (instr, what), taint in sorted(
            self.decided.items(), key=lambda each: (each[0][0].pc, each[0][1].value))]
        stored = [each[Space.GLOBAL] for each in self.memory]
        leaves = self._sources(reduce(or_, stored))
        return Differing(self.open, tuple(decisions), tuple(leaves), tuple(self._unknown()))

    def _unknown(self) -> Iterator[str]:
        if self.graph.leaves:
            yield "code that is not in the program runs, too"
        if any(OpFlag.INDEXES_REGISTERS in instr.op.flags for function in self.program.functions
               for instr in function.instrs):
            yield "registers are named at run time"

    def _at_start(self, index: int) -> _State | None:
        """Nothing is known of what code elsewhere leaves; a kernel's wave starts with pointers of the launch."""
        node = self.graph.nodes[index]
        if index in self.graph.kernels:
            descriptors = [kernel.record.descriptor for kernel in self.program.kernels
                           if kernel.function is node.function]
            clean, resource = (self._find_initial_bits(descriptors, wanted) for wanted in (_GIVEN, _RESOURCE))
        elif index in self.graph.arrives:
            clean = resource = frozenset()
        else:
            return None
        live = self.facts.live_before_all_lanes(node.instrs[0]).bits
        return dict.fromkeys(resource, _PRIVATE) | {
            bit: _FOREIGN for bit in set_bits(live) if bit not in clean and bit not in _EXEC_BITS}

    def _find_initial_bits(self, descriptors: Iterable[KernelDescriptor], wanted: Iterable[Initial]) -> frozenset[int]:
        """Bits of registers that hold such values in all kernels with these descriptors."""
        places = [initial_places(self.program.isa.target, each) for each in descriptors]
        return frozenset(set_bits(reduce(and_, (
            reduce(or_, (found[value].bits for value in wanted if value in found), 0) for found in places))))

    # One node

    def _through(self, index: int, state: _State) -> _State:
        node = self.graph.nodes[index]
        first = node.instrs[0]
        active, everywhere = self.facts.live_before(first).bits, self.facts.live_before_all_lanes(first).bits
        state = {bit: taint for bit, taint in state.items()
                 if (active >> bit if bit < _OTHERS else everywhere >> bit - _OTHERS) & 1}
        for instr in node.instrs:
            self._step(instr, state)
        return state

    def _step(self, instr: Instr, state: _State) -> None:
        way = self.propagation(instr.inst)
        if instr.inst.reads.sgpr >> EXEC & 3 and any(bit in state for bit in (*_EXEC_BITS, *_others(state))) and (
                self.facts.exec_as_at_start(instr)):
            for bit in (*_EXEC_BITS, *_others(state)):  # lanes that are not active now have never been
                state.pop(bit, None)
        seen = _all_lanes(state) if OpFlag.READS_OTHER_LANES in instr.op.flags else state
        address = _taint(seen, way.address)
        loaded = self._transfer_access(instr, way, seen, address) if instr.op.spaces and instr.op.flags & MOVES else 0
        self._note(instr, Decides.BRANCH, _taint(seen, way.decides))
        self._note(instr, Decides.ADDRESS, address)
        results = [
            (each.into, _taint(seen, each.of_values) & ~self.nans | _taint(seen, each.of_nans) & self.nans
             | self._fresh(instr, each.own) | loaded)
            for each in way.ways
        ]
        for into, taint in results:
            if into[0] in _EXEC_BITS or into[-1] in _EXEC_BITS:
                self._note(instr, Decides.MASK, taint)
            self._write(instr, state, into, taint)
        if instr.inst.writes.sgpr >> EXEC & 3:
            _change_lanes(state, _only_shrinks(instr.inst, self.program.isa.wave_size))

    def _fresh(self, instr: Instr, own: Iterable[ImplementationDefined]) -> int:
        kinds = frozenset(own)
        if not kinds:
            return 0
        bits = bool(kinds & VALUES) | (ImplementationDefined.NAN in kinds) << 1
        return bits << _FIRST + 2 * self.number[instr]

    def _transfer_access(self, instr: Instr, way: Propagation, state: _State, address: int) -> int:
        """What an access of memory may load; what it stores is added to the memory's cell."""
        op = instr.op
        memory = self.memory[self.group.get(self.program.function_of(instr), -1)]
        spaces = self._spaces(instr, state)
        loaded = 0
        if op.flags & (OpFlag.MAY_LOAD | OpFlag.ATOMIC):
            loaded = 0 if spaces == [Space.SCRATCH] else _FOREIGN
            for space in spaces:
                loaded |= memory[space] | (_THROUGH if memory[space] & ~_FOREIGN else 0)
            if Space.GLOBAL in spaces:
                loaded = loaded | _EARLIER if address & _FOREIGN else _FOREIGN
        if op.flags & (OpFlag.MAY_STORE | OpFlag.ATOMIC):
            stored = (_taint(state, way.stored) | self._fresh(instr, way.left) | loaded) & ~_THROUGH & ~_PRIVATE
            if OpFlag.ATOMIC in op.flags and Space.GLOBAL in spaces:
                stored &= ~_EARLIER  # what was there stays, and no more comes
            for space in spaces:
                memory[space] |= stored if space is Space.SCRATCH else stored & ~_FOREIGN
        return loaded

    def _spaces(self, instr: Instr, state: _State) -> list[Space]:
        """Which may be touched: private memory alone, where that is in buffers and this is its resource."""
        resource = private_resource(instr.inst)
        if resource is not None and _taint(state, set_bits(resource.bits)) == _PRIVATE:
            return [Space.SCRATCH]
        return [space for space in SPACES if instr.op.spaces & (space | (
            Space.SCALAR if space is Space.GLOBAL else Space.NONE))]

    def _write(self, instr: Instr, state: _State, into: RegBits, taint: int) -> None:
        kept = instr.inst.partial_writes.bits
        all_lanes = OpFlag.IGNORES_EXEC in instr.op.flags
        for bit in into:
            if bit >= _VECTORS and (kept >> bit & 1 or all_lanes):
                _add(state, bit, taint)
                _add(state, bit + _OTHERS, taint if all_lanes else 0)
            elif taint:
                state[bit] = taint
            else:
                state.pop(bit, None)

    # What was decided

    def _note(self, instr: Instr, what: Decides, taint: int) -> None:
        if self.decided is not None and taint & ~_FOREIGN & ~_THROUGH & ~_PRIVATE:
            self.decided[instr, what] = self.decided.get((instr, what), 0) | taint

    def _decision(self, instr: Instr, what: Decides, taint: int) -> Decision:
        return Decision(instr, what, self._sources(taint), bool(taint & _EARLIER), bool(taint & _THROUGH))

    def _sources(self, taint: int) -> dict[Instr, frozenset[ImplementationDefined]]:
        found = {}
        for instr, number in self.number.items():
            bits = taint >> _FIRST + 2 * number & 3
            if bits:
                own = self.open[instr]
                found[instr] = (own & VALUES if bits & 1 else frozenset()) | (
                    frozenset({ImplementationDefined.NAN}) if bits & 2 else frozenset())
        return found


def _taint(state: _State, bits: Iterable[int]) -> int:
    found = 0
    for bit in bits:
        found |= state.get(bit, 0)
    return found


def _add(state: _State, bit: int, taint: int) -> None:
    if taint:
        state[bit] = state.get(bit, 0) | taint


def _others(state: _State) -> list[int]:
    return [bit for bit in state if bit >= _OTHERS]


def _all_lanes(state: _State) -> _State:
    """As seen by who reads lanes that are not active."""
    found = dict(state)
    for bit in _others(state):
        _add(found, bit - _OTHERS, state[bit])
    return found


def _change_lanes(state: _State, fewer: bool) -> None:
    """EXEC was written: lanes that were active are not any more, and, unless ``fewer``, others are."""
    for bit, taint in [*state.items()]:
        if _VECTORS <= bit < _OTHERS:
            _add(state, bit + _OTHERS, taint)
        elif bit >= _OTHERS and not fewer:
            _add(state, bit - _OTHERS, taint)


@cache
def _only_shrinks(inst: Inst, wave_size: int) -> bool:
    """Whether a lane that was not active surely is not after it."""
    exec_after = [each for each in assignments(inst, wave_size) if each.mask == EXEC]
    return bool(exec_after) and all(
        outcome(each.table, tuple(0 if source in (EXEC, ZERO) else 1 if source == ONE else None
                                  for source in each.sources)) == 0 for each in exec_after)


def _join_states(a: _State, b: _State) -> _State:
    found = dict(a)
    for bit, taint in b.items():
        found[bit] = found.get(bit, 0) | taint
    return found
