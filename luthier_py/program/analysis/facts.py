"""Everything that passes ask about a program, in one place.

In: a Program. Out: :class:`Facts`. Invariant: read-only, and true of the program as it is; changed code has to be
lifted anew. Solutions are computed for the whole program once; details of a place on demand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import copy
from functools import cache, cached_property, lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING

from luthier_py.isa import NO_REGS, Inst, OpFlag, Reg, RegFile, RegSet
from luthier_py.program.analysis.affine import Affine
from luthier_py.program.analysis.cfg import Graph, rebase_graph, supergraph
from luthier_py.program.analysis.changes import EXEC_BITS, find_changes
from luthier_py.program.analysis.execution import ExecState, Skipping, exec_states, step, stretches
from luthier_py.program.analysis.lanes import Lanes
from luthier_py.program.analysis.launch_invariant import LaunchInvariants, find_launch_invariants
from luthier_py.program.analysis.liveness import Live, Liveness
from luthier_py.program.analysis.program_effects import ProgramEffects
from luthier_py.program.analysis.registers import collect_accessed_registers, initial_registers
from luthier_py.program.analysis.waits import Pending, Waits
from luthier_py.program.ir.edited import replace_instructions

if TYPE_CHECKING:
    from luthier_py.isa.semantics.readers.numbers import Number
    from luthier_py.program.ir import Annotator, Block, Function, Instr, Kernel, Program

KEPT_NODES = 64  # of which what holds inside is remembered: passes go from one place to the next


class Facts:
    """Get one from :func:`analyse`. Places are instructions: ``before`` and ``after`` them."""

    def __init__(
        self, program: Program, instead: Mapping[Instr, Inst] | None = None, written: RegSet = NO_REGS
    ) -> None:
        """``instead``: replacements of some instructions of ``program``, whose instructions are still the places;
        ``written``: registers that inserted code writes somewhere."""
        self.program = program
        self._edited = replace_instructions(program, instead) if instead else program
        self._graph: Graph = rebase_graph(program, supergraph(self._edited))
        self._changes = find_changes(self._graph)
        self._foreign = written.sgpr | written.sgpr >> 1  # masks, by their first registers
        self._states = exec_states(program.isa, self._graph, self._changes, self._foreign)
        self._inside = lru_cache(KEPT_NODES)(self._states_inside)
        self._ends = cache(self._stretch_ends)
        self._accessed = cache(lambda function: collect_accessed_registers((function,)))
        self._reads: Mapping[tuple[int, int], RegSet] = {}  # by node and place in it

    def with_instead(self, instead: Mapping[Instr, Inst], written: RegSet = NO_REGS) -> Facts:
        """Facts of a program where other instructions replace some: what the replaced ones read and wrote does not
        count any more, so that registers which they wrote hold what they held before. ``written``: registers that
        inserted code writes somewhere: masks in them are unknown."""
        return Facts(self.program, instead, written) if instead or written.sgpr else self

    def with_reads(
        self, before: Mapping[Instr, RegSet], after: Mapping[Instr, RegSet], taken: Mapping[Instr, RegSet],
    ) -> Facts:
        """Facts of a program where inserted code reads registers, too, before and after some instructions, and where
        some branches are taken."""
        reads: dict[tuple[int, int], RegSet] = defaultdict(RegSet)
        for instr, regs in before.items():
            reads[self._graph.places[instr]] |= regs
        for instr, regs in after.items():
            for following in self._find_successors(instr):
                reads[following] |= regs
        for instr, regs in taken.items():
            reads[self._target(instr), 0] |= regs
        if not reads:
            return self
        _ = self._lanes, self._effects  # what others read is no matter to them
        facts = copy(self)
        facts.__dict__.pop("_liveness", None)
        facts._reads = reads
        return facts

    def _find_successors(self, instr: Instr) -> Iterable[tuple[int, int]]:
        """Where control may come next in the same function, by node; for a call, once it has returned."""
        node, place = self._graph.places[instr]
        if place + 1 < len(self._graph.nodes[node]):
            return ((node, place + 1),)
        following = self._graph.after[node]
        if OpFlag.CONDITIONAL in instr.op.flags:
            following = following[-1:]  # the way of the taken branch is the first
        return ((number, 0) for number in following)

    def _target(self, branch: Instr) -> int:
        """The node that comes next where a branch is taken."""
        node, _ = self._graph.places[branch]
        return self._graph.after[node][0]

    @cached_property
    def _liveness(self) -> Liveness:
        return Liveness(self._lanes, self._effects, self._reads)

    @cached_property
    def _lanes(self) -> Lanes:
        return Lanes(self.program.isa, self._graph, self._changes, self._foreign)

    @cached_property
    def _effects(self) -> ProgramEffects:
        return ProgramEffects(self._edited, self._graph, self._states, self._changes)

    @cached_property
    def _affine(self) -> Affine:
        return Affine(self._edited, self._graph, self._states)

    @cached_property
    def _waits(self) -> Waits:
        return Waits(self.program.isa, self._graph)

    # -- liveness --------------------------------------------------------------------------------

    def live_before(self, instr: Instr) -> RegSet:
        """What code that runs under the EXEC of this place, or part of it, must leave alone."""
        return RegSet(self._before(instr).active)

    def live_after(self, instr: Instr) -> RegSet:
        """The same behind ``instr``; for a call, once it has returned; for a conditional branch, where it is not taken.
        """
        return RegSet(self._after(instr).active)

    def live_taken(self, branch: Instr) -> RegSet:
        """The same where ``branch`` is taken."""
        return RegSet(self._liveness.at_head(self._target(branch)).active)

    def live_before_all_lanes(self, instr: Instr) -> RegSet:
        """What code that makes other lanes active must leave alone."""
        live = self._before(instr)
        return RegSet(live.active | live.inactive)

    def live_after_all_lanes(self, instr: Instr) -> RegSet:
        """The same behind ``instr``."""
        live = self._after(instr)
        return RegSet(live.active | live.inactive)

    def live_taken_all_lanes(self, branch: Instr) -> RegSet:
        """The same where ``branch`` is taken."""
        live = self._liveness.at_head(self._target(branch))
        return RegSet(live.active | live.inactive)

    def _before(self, instr: Instr) -> Live:
        node, place = self._graph.places[instr]
        return self._liveness.inside(node)[place] if place else self._liveness.at_head(node)

    def _after(self, instr: Instr) -> Live:
        node, place = self._graph.places[instr]
        flags, following = instr.inst.op.flags, self._graph.after[node]
        if OpFlag.CALL in flags or place + 1 == len(self._graph.nodes[node]) and following and (
                not flags & OpFlag.TERMINATOR):
            return self._liveness.at_heads(following)
        if OpFlag.CONDITIONAL in flags:
            return self._liveness.at_head(following[-1])
        return self._liveness.inside(node)[place + 1]

    # -- loads on their way ----------------------------------------------------------------------

    def pending_before(self, instr: Instr) -> Pending:
        """Registers that outstanding loads will still write."""
        return self._waits.before(instr)

    def pending_after(self, instr: Instr) -> Pending:
        """The same behind ``instr``; for a call, once it has returned."""
        node, place = self._graph.places[instr]
        if OpFlag.CALL in instr.inst.op.flags:
            return Pending(self._waits.after_call(node))
        return Pending(self._waits.inside(node)[place + 1])

    def wait_for(self, instr: Instr, regs: RegSet, after: bool = False) -> int | None:
        """The immediate of the s_waitcnt that makes ``regs`` ready before (after) ``instr``; None if they are."""
        pending = self.pending_after(instr) if after else self.pending_before(instr)
        return pending.immediate_for(self.program.isa, regs)

    # -- EXEC and registers ----------------------------------------------------------------------

    def exec_constant(self, instr: Instr) -> int | None:
        """EXEC before ``instr``, if it is the same whenever control gets there."""
        return self._state(instr).value

    def exec_as_at_start(self, instr: Instr) -> bool:
        """Whether EXEC before ``instr`` is what it was when the wave started."""
        return self._affine.all_that_started(instr)

    def affine_before(self, instr: Instr, reg: Reg) -> Number | None:
        """One dword before ``instr``, in the lanes that are active there: multiples of the lane's number and of
        work-item IDs, and a constant or what is the same in all of them; `by_lane` has the rest where the size of
        work-groups is known. None where nothing is known. Scalar registers are the same in all lanes."""
        return self._affine.before(instr, reg)

    def uniform_before(self, instr: Instr, reg: Reg) -> bool:
        """Whether ``reg`` surely holds the same in all lanes that are active before ``instr``."""
        if reg.file is RegFile.SGPR:
            return True
        known = [self.affine_before(instr, Reg(reg.file, reg.index + k)) for k in range(reg.dwords)]
        return all(number is not None and number.uniform for number in known)

    def obstacle(self, instr: Instr, after: bool = False) -> str | None:
        """Why no vector code may be inserted before (after) ``instr``; None where it may."""
        state = self._state(instr)
        node, place = self._graph.places[instr]
        state = step(self.program.isa, self._graph.nodes[node].instrs[place].inst, state) if after else state
        if state.indexed:
            banks = self.program.isa.target.vector_banks
            by = "(s_set_vgpr_msb, or s_setreg of MODE)" if banks else "(s_set_gpr_idx_on)"
            return f"VGPR operands may mean other registers here {by}"
        return "vector instructions may be skipped here (s_setvskip)" if state.skipping else None

    def _state(self, instr: Instr) -> ExecState:
        node, place = self._graph.places[instr]
        return self._inside(node)[place] if place else self._states[node]

    def _states_inside(self, index: int) -> tuple[ExecState, ...]:
        """Before each instruction of a node."""
        found, changes = [self._states[index]], dict(self._changes[index])
        for place in range(len(self._graph.nodes[index]) - 1):
            inst, state = changes.get(place), found[-1]
            if inst is None and state.skipping is Skipping.ENDING:
                inst = self._graph.nodes[index].instrs[place].inst
            found.append(state if inst is None else step(self.program.isa, inst, state))
        return tuple(found)

    def stretches(self, block: Block) -> tuple[tuple[int, int], ...]:
        """Index ranges of ``block`` with one value of EXEC; what writes EXEC, and every call, ends its range."""
        return stretches(block, self._ends(self.program.function_of(block.instrs[0])))

    def _stretch_ends(self, function: Function) -> list[int]:
        distinct = function.code.distinct
        writers = function.code.where(distinct.match_writes(EXEC_BITS))
        return sorted({*writers, *(site.instr.at for site in self.program.calls(function))})

    # -- before a launch ------------------------------------------------------------------------

    def find_launch_invariants(self, kernel: Kernel) -> LaunchInvariants:
        """What of a kernel's control flow arguments, ids and constants decide; nothing where instructions are replaced.
        """
        return find_launch_invariants(self.program, self._graph, self._states, self._liveness, kernel)

    def touched(self, functions: Iterable[Function]) -> RegSet:
        """Registers that any instruction of ``functions`` may read or write."""
        return reduce(or_, map(self._accessed, functions), collect_accessed_registers(()))

    def initial(self, kernel: Kernel) -> RegSet:
        """Registers that hold something when a wave of ``kernel`` starts."""
        return initial_registers(self.program.obj.target, kernel.record.descriptor)


def analyse(program: Program) -> Facts:
    """The facts of ``program``. EXEC and MODE are followed through it at once; each other analysis runs when a fact
    first needs it, then for the whole program."""
    return Facts(program)


def live_notes(facts: Facts, every: bool = False) -> Annotator:
    """An annotator for `ir.format_program`: live registers at heads of blocks; ``every``: before instructions too."""

    def note(block: Block, instr: Instr | None) -> str:
        if instr is not None and not every:
            return ""
        place = instr or block.instrs[0]
        live, anywhere = facts.live_before(place), facts.live_before_all_lanes(place)
        others = f", inactive lanes too: {anywhere - live}" if anywhere != live else ""
        return f"live {live}{others}"

    return note
