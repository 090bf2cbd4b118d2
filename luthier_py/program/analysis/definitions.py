"""Where values come from and where they go: reaching definitions, and definitions with their uses.

In: a function, and what is known of EXEC. Out: :class:`Definitions`. Invariant: whatever may have written a register
before an instruction is among the definitions that reach it. A write of a vector register hides earlier ones only where
all lanes are surely active and all of its bits are written; a call may write what those touch that it may run, or
anything, where they are not all known; what was there before the function is a definition, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass
from luthier_py.isa import OpFlag, Reg, RegSet
from luthier_py.program.analysis.edges import edges_of, group_edges_by_target

if TYPE_CHECKING:
    import networkx as nx

    from luthier_py.program.analysis.facts import Facts
    from luthier_py.program.ir import Block, CallSite, Function, Instr

_OUTSIDE = -1  # stands for what a register held before the function
_EVERYTHING = -2  # stands for each register that no instruction of a state names: what calls of unknown code write
_State = dict[int, frozenset[int]]  # by the bit of a register, places in the function's code


@dataclass(frozen=True, slots=True)
class Reaching:
    """``instrs``: what may have written it last, calls among them; ``outside``: it may be from before the function."""

    instrs: tuple[Instr, ...]
    outside: bool


class Definitions:
    """Of one function: ``Definitions(function, m.facts)``. ``of_lane``: as a lane sees it that is active all the time,
    to whom each write of a whole register hides earlier ones."""

    def __init__(self, function: Function, facts: Facts, of_lane: bool = False) -> None:
        self.function, self._facts, self._of_lane = function, facts, of_lane
        self._full = (1 << function.isa.wave_size) - 1
        self._instrs = {instr.at: instr for instr in function.instrs}
        self._called = {site.instr.at: self._collect_clobbers(site) for site in facts.program.calls(function)}
        self._starts = self._solve_reaching()

    def reaching(self, instr: Instr, reg: Reg) -> Reaching:
        """What may have written ``reg``, or a part of it, last when ``instr`` begins."""
        state = next(state for each, state in self._inside(self._block(instr)) if each == instr)
        places = frozenset().union(*(_of(state, bit) for bit in _bits(RegSet.of(reg))))
        return Reaching(tuple(self._instrs[at] for at in sorted(places) if at >= 0), _OUTSIDE in places)

    def uses(self, instr: Instr) -> tuple[Instr, ...]:
        """The instructions that may read what ``instr`` writes; of a call, what it may have written."""
        return tuple(self._instrs[at] for at in sorted(self._uses.get(instr.at, ())))

    @cached_property
    def graph(self) -> nx.DiGraph[Instr]:
        """Instructions, and an edge from each definition to each of its uses, whose ``registers`` is a RegSet."""
        import networkx as nx

        graph: nx.DiGraph[Instr] = nx.DiGraph()
        graph.add_nodes_from(self._instrs.values())
        for source, users in self._uses.items():
            for user, bits in users.items():
                graph.add_edge(self._instrs[source], self._instrs[user], registers=RegSet(bits))
        return graph

    @cached_property
    def _uses(self) -> Mapping[int, Mapping[int, int]]:
        """By definition its uses, and the registers that they read of it."""
        found: defaultdict[int, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        for block in self._starts:
            for instr, state in self._inside(block):
                for bit in _bits(instr.inst.reads):
                    for at in _of(state, bit):
                        if at >= 0:
                            found[at][instr.at] |= 1 << bit
        return found

    def _collect_clobbers(self, site: CallSite) -> RegSet | None:
        """What a call may write; None for anything."""
        program = self._facts.program
        reached = {each for target in site.targets for each in program.reachable(target)}
        if any(each.unknown for each in (site, *(call for function in reached for call in program.calls(function)))):
            return None
        return None if any(each.incomplete for each in reached) else self._facts.touched(reached)

    def _block(self, instr: Instr) -> Block:
        return self.function.block(instr.pc)

    def _inside(self, block: Block) -> Iterator[tuple[Instr, _State]]:
        """What reaches each instruction of a block."""
        state = dict(self._starts.get(block, {}))
        for instr in block.instrs:
            yield instr, state
            self._step(instr, state)

    def _step(self, instr: Instr, state: _State) -> None:
        """Past an instruction: ``state`` is changed."""
        inst = instr.inst
        if OpFlag.CALL in inst.op.flags:
            touched = self._called.get(instr.at)
            for bit in [*state, _EVERYTHING] if touched is None else _bits(touched):
                state[bit] = _of(state, bit) | {instr.at}
        all_lanes = self._of_lane or self._facts.exec_constant(instr) == self._full
        kept = inst.partial_writes | (RegSet() if all_lanes else inst.writes.vectors)
        for bit in _bits(inst.writes):
            state[bit] = (_of(state, bit) if kept.bits >> bit & 1 else frozenset()) | {instr.at}

    def _solve_reaching(self) -> dict[Block, _State]:
        """What reaches the beginning of each block."""
        function, before = self.function, group_edges_by_target(edges_of(self.function))
        starts: dict[Block, _State] = {block: {} for block in function.blocks if block.address in function.entries}
        ends: dict[Block, _State] = {}
        after = {block: [function.block(address) for address in block.successors] for block in function.blocks}
        work = list(starts)
        while work:
            block = work.pop()
            states = [ends[edge.source] for edge in before.get(block, ()) if edge.source in ends]
            if block.address in function.entries:
                states.append({})
            starts[block] = _join_states(states)
            end = dict(starts[block])
            for instr in block.instrs:
                self._step(instr, end)
            if ends.get(block) != end:
                ends[block] = end
                work += after[block]
        return starts


def _of(state: _State, bit: int) -> frozenset[int]:
    return state.get(bit) or state.get(_EVERYTHING, frozenset()) | {_OUTSIDE}


def _join_states(states: list[_State]) -> _State:
    bits = {bit for state in states for bit in state}
    return {bit: frozenset().union(*(_of(state, bit) for state in states)) for bit in bits}


def _bits(regs: RegSet) -> Iterator[int]:
    bits = regs.bits
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
