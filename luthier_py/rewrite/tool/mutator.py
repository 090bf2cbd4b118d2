"""What a tool gets in `instrument`: the program, and ways to record calls of hooks.

In: a program and its facts, of which the user chose a part (rewrite/tool/chosen/chosen_code). Out: Edits. Nothing is
changed here; what is wrong with a call is said at once, with the tool's file and line. Invariant: every recorded
insertion is at an instruction of a function that may be edited, and but for entries, exits and the ways of loops at one
that the user's options choose (rewrite/tool/chosen/choice).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache
from types import NoneType

from luthier_py.base.errors import EditConflict, HookError
from luthier_py.base.records import replace
from luthier_py.isa import EXEC, OpFlag, Reg, sgpr
from luthier_py.program import analysis, ir
from luthier_py.rewrite.tool.arguments.anywhere import check_independent, while_exec_stays
from luthier_py.rewrite.tool.arguments.computed import asks_exec
from luthier_py.rewrite.tool.arguments.expected import each, expect
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.chosen.chosen_code import ChosenCode
from luthier_py.rewrite.tool.chosen.counting import Counted, Region, Stretch, instrs_at, whole
from luthier_py.rewrite.tool.chosen.selection import Selection
from luthier_py.rewrite.tool.chosen.ways import begins_of, on, ways_into
from luthier_py.rewrite.tool.edits import Before, Edits, Place, Turn
from luthier_py.rewrite.tool.hooks.assembly import assemble_text, conditional
from luthier_py.rewrite.tool.hooks.author_types import u32
from luthier_py.rewrite.tool.hooks.hook import Hook, Lanes, hook, hook_of_text
from luthier_py.rewrite.tool.recorder import Recorder, as_tuple
from luthier_py.rewrite.tool.rewriting import destinations, plain_sources, rewrite_inst
from luthier_py.rewrite.tool.variables import Variable, WaveVariable

_EXEC = sgpr(EXEC, 2)
SKIPS = WaveVariable(u32, name="skips")  # what skip_if carries from a hook to the instruction
_IN_LANES = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS


@hook
def _runs() -> u32:
    return u32(0)


class Mutator(ChosenCode):
    """Records edits (mutable: collects them in order).

    What ``blocks``, ``instrs``, ``stretches``, ``runs`` and ``regions`` give has only instructions that the user chose;
    calls before or after others, or on edges that leave them, are not recorded. Loops go by their headers' blocks.

    Everywhere, ``args`` are one per parameter of the hook: a Python number is a constant of the call; a Reg or an
    operand of an instruction is its value at the place; a Variable is its address; a WaveVariable is its value.
    ``into`` takes the results: WaveVariables, or registers of the application that the hook may change.

    Calls at one point run in this order, whatever the order in which they were recorded: those of ``at_entry``, which
    begin; those of edges that control came over; all others; those of edges that it leaves over; those of ``at_exit``,
    which end. Those of one kind run by ``priority``, the highest first, then in the order of recording. A hook in the
    place of an instruction runs behind all calls before that one.

    Edits that contradict each other are an EditConflict that names both places in the tool: two things in the place of
    one instruction, or a call behind an instruction that reads what no instruction writes any more.

    All else stays: liveness is that of the edited program, so that a register which no instruction writes any more is
    not free for hooks; waits count on operations that are there; wait states are ensured between all instructions of a
    function in which some are others. The proof holds the copy to the program with these edits, and to nothing else.
    """

    def __init__(self, program: ir.Program, facts: analysis.Facts, selection: Selection | None = None) -> None:
        super().__init__(program, facts, selection)
        self._calls = {f.code: f.code.find_flagged(OpFlag.CALL) for f in program.functions}
        self._coming = cache(ways_into)
        self._recorder = Recorder(program, self._choice)

    def at_counted(self, counted: Counted, hook: Hook, *args: object, into: object = None, priority: int = 0) -> None:
        """Call ``hook`` each time that a counter of ``counting`` is to be incremented."""
        expect(counted, Counted)
        if isinstance(counted.where, Region):
            self.at_region(counted.where, hook, *args, into=into, priority=priority)
        elif isinstance(counted.where, analysis.Edge):
            self.at_edge(counted.where, hook, *args, into=into, priority=priority)
        else:
            self.at_entry(counted.where, hook, *args, into=into, priority=priority)

    def before(self, instr: ir.Instr, hook: Hook, *args: object, into: object = None, priority: int = 0) -> None:
        """Call ``hook`` before ``instr`` each time that it runs."""
        expect(instr, ir.Instr)
        self._at((instr, Place.BEFORE), hook, args, into, priority)

    def after(self, instr: ir.Instr, hook: Hook, *args: object, into: object = None, priority: int = 0) -> None:
        """Call ``hook`` after ``instr``, which must not be the branch or end of its block."""
        expect(instr, ir.Instr)
        self._at((instr, Place.AFTER), hook, args, into, priority)

    def _at(
        self, place: tuple[ir.Instr, Place], hook: Hook, args: Sequence[object], into: object, priority: int
    ) -> None:
        instr, side = place
        if side is Place.AFTER and instr.inst.op.flags & OpFlag.TERMINATOR:
            message = ("nothing can be inserted after the branch or end of a block; insert before it, or on the ways "
                       "that leave it (at_edge; `branch` in one-liners)")
            raise EditConflict(f"{caller()}: {message}", self._recorder.where(instr))
        self._recorder.record((place,), hook, args, into, priority=priority)

    def remove(self, instr: ir.Instr) -> None:
        """Take ``instr`` away: what it would write stays as it was. Branches, waits and what changes MODE cannot go.

        A wait state replaces it, or a wait for memory where it accesses that, since waits count on one more access.
        """
        expect(instr, ir.Instr)
        self._recorder.put(instr, None)

    def change(self, instr: ir.Instr, text: str | None = None, **operands: Reg | int | float) -> None:
        """Put another instruction in the place of ``instr``: ``text`` in LLVM's syntax, or itself with other operands,
        by their names in AMD's manuals (``src0=sgpr(5)``, ``offset=16``)."""
        expect(instr, ir.Instr)
        expect(text, str, NoneType, name="text")
        for name, value in operands.items():
            expect(value, Reg, int, float, name=name)
        try:
            inst = rewrite_inst(self.program.isa, instr.inst, text, operands)
        except ValueError as error:
            raise HookError(f"{caller()}: {error}", self._recorder.where(instr)) from None
        self._recorder.put(instr, inst)

    def insert(
        self, text: str, before: ir.Instr | None = None, after: ir.Instr | None = None,
        writes: Reg | Sequence[Reg] = (),
        priority: int = 0,
    ) -> None:
        """Insert instructions, a listing in LLVM's syntax, before or after one of the application's.

        What they read is the application's. Of what they write only the registers in ``writes`` are; the others become
        registers that are free there. They may access global memory, and must wait for what they load.
        """
        if (before is None) == (after is None):
            raise HookError(f"{caller()}: give the instruction before= or after= which the text goes")
        place = (expect(after, ir.Instr), Place.AFTER) if before is None else (expect(before, ir.Instr), Place.BEFORE)
        written = each((writes,) if isinstance(writes, Reg) else writes, Reg, "writes")
        code = assemble_text(self.program.isa, expect(text, str, name="text"), written, caller())
        self._at(place, hook_of_text(code), code.takes, code.gives, priority)

    def skip_if(self, instr: ir.Instr, hook: Hook, *args: object) -> None:
        """Run ``instr`` only where ``hook``, called behind all other calls before it, gives 0: one u32 for the wave.

        A wave variable carries that. Where no lane is active, and ``hook`` makes it of lanes, ``instr`` runs. What
        ``instr`` loads is waited for. What cannot be skipped: instructions that write SCC, VCC, M0 or EXEC, or read one
        of the first three (on some targets LDS needs M0); scalar memory instructions with a result; accesses through a
        descriptor (buffers, images); those that two counters count where no single instruction waits for both (flat
        stores on some targets).
        """
        expect(instr, ir.Instr)
        code, flag = conditional(self.program.isa, instr.inst, caller())
        given = tuple(SKIPS if reg == flag else reg for reg in code.takes)
        self._recorder.put(instr, None, code.gives)
        if instr.inst.writes.sgpr or not instr.op.flags & _IN_LANES:  # else it does nothing where no lane is active
            self._recorder.record(((instr, Place.BEFORE),), _runs, (), SKIPS, Turn.INSTEAD)
        self._recorder.record(((instr, Place.BEFORE),), hook, args, SKIPS, Turn.INSTEAD)
        self._recorder.record(((instr, Place.BEFORE),), hook_of_text(code), given, code.gives, Turn.INSTEAD)

    def replace(self, instr: ir.Instr, hook: Hook, *args: object, into: object = None) -> None:
        """Call ``hook`` in the place of ``instr``, which is taken away as by ``remove``.

        Without ``args`` a hook with parameters gets the sources of ``instr`` in the manuals' order, a destination that
        is one, too (v_fmac), last; refused where modifiers (neg, clamp, op_sel, SDWA, DPP ...) make something else of
        them, or where it takes upper halves. Without ``into`` its results go where those would; refused where ``instr``
        keeps a part of them. It runs behind all calls before ``instr``. Other lanes, and all else that ``instr`` would
        write, stay. To make something of what ``instr`` itself gives, leave it, and call ``after`` with
        ``destination(instr)`` as an argument and ``into=instr.inst["vdst"].reg``.
        """
        expect(instr, ir.Instr)
        wants = isinstance(hook, Hook) and len(hook.signature.parameters) > len(hook.captured)
        try:
            given = args if args or not wants else plain_sources(self.program.isa, instr.inst)
            into = destinations(instr) if into is None and isinstance(hook, Hook) and hook.signature.results else into
        except ValueError as error:
            raise HookError(f"{caller()}: {error}", self._recorder.where(instr)) from None
        self._recorder.record(((instr, Place.BEFORE),), hook, given, into, Turn.INSTEAD)
        self._recorder.put(instr, None, as_tuple(into))

    def at_block(
        self, block: ir.Block, hook: Hook, *args: object, into: object = None, anywhere: bool = False,
        priority: int = 0,
    ) -> None:
        """Call ``hook`` each time that ``block`` runs: at its entry, or ``anywhere`` with the same lanes."""
        expect(block, ir.Block)
        own_exec = isinstance(hook, Hook) and hook.lanes is not Lanes.ACTIVE
        stretch = whole(block) if own_exec else whole(block).until(block.start + self.facts.stretches(block)[0][1])
        self.at_stretch(stretch, hook, *args, into=into, anywhere=anywhere, priority=priority)

    def at_stretch(
        self, stretch: Stretch, hook: Hook, *args: object, into: object = None, anywhere: bool = False,
        priority: int = 0,
    ) -> None:
        """Call ``hook`` where ``stretch`` begins, or ``anywhere`` in it that is cheapest."""
        expect(stretch, Stretch)
        expect(anywhere, bool, name="anywhere")
        self._check_whole([stretch])
        instrs: Sequence[ir.Instr] = self._before_first_call(stretch)
        if anywhere:
            check_independent((*args, *as_tuple(into)))
            instrs = while_exec_stays(instrs) if asks_exec(args) else instrs
        self._recorder.record(tuple(Before((instrs if anywhere else instrs[:1],))), hook, args, into, priority=priority)

    def at_region(self, region: Region, hook: Hook, *args: object, into: object = None, priority: int = 0) -> None:
        """Call ``hook`` as often as each part of ``region`` runs, at the cheapest place in all of it."""
        expect(region, Region)
        check_independent((*args, *as_tuple(into)))
        if asks_exec(args):
            raise HookError(f"{caller()}: EXEC is not the same everywhere in a region; use at_stretch")
        self._check_whole(region.stretches)
        places = Before(tuple(map(self._before_first_call, region.stretches)))
        self._recorder.record(places, hook, args, into, priority=priority)

    def at_edge(self, edge: analysis.Edge, hook: Hook, *args: object, into: object = None, priority: int = 0) -> None:
        """Call ``hook`` each time that control takes this edge from one block to another.

        It runs behind all else in the one block and before all else in the other. Where both have other edges, too, the
        edge gets separate code.
        """
        expect(edge, analysis.Edge)
        self._on_way(edge, edge.instr, hook, args, into, priority)

    def at_loop_entry(
        self, loop: analysis.Loop, hook: Hook, *args: object, into: object = None, priority: int = 0
    ) -> None:
        """Call ``hook`` each time that control comes into ``loop`` from outside."""
        expect(loop, analysis.Loop)
        if loop.begins:
            message = "the function begins with this loop, so that no edge leads into it; use at_entry of what calls it"
            raise EditConflict(f"{caller()}: {message}", self._recorder.where(loop.header.instrs[0]))
        self._on_ways(loop, loop.entries, hook, args, into, priority)

    def at_back_edge(
        self, loop: analysis.Loop, hook: Hook, *args: object, into: object = None, priority: int = 0
    ) -> None:
        """Call ``hook`` each time that ``loop`` begins another iteration."""
        expect(loop, analysis.Loop)
        self._on_ways(loop, loop.backs, hook, args, into, priority)

    def at_loop_exit(
        self, loop: analysis.Loop, hook: Hook, *args: object, into: object = None, priority: int = 0
    ) -> None:
        """Call ``hook`` each time that control leaves ``loop`` for code behind it."""
        expect(loop, analysis.Loop)
        self._on_ways(loop, loop.exits, hook, args, into, priority)

    def _on_ways(
        self, loop: analysis.Loop, edges: Iterable[analysis.Edge], hook: Hook, args: Sequence[object], into: object,
        priority: int,
    ) -> None:
        """A loop is chosen with its header, whichever branches lead there."""
        for header in self._cut([whole(loop.header)]):
            for edge in edges:
                self._on_way(edge, header.first, hook, args, into, priority)

    def _on_way(
        self, edge: analysis.Edge, chosen: ir.Instr, hook: Hook, args: Sequence[object], into: object, priority: int
    ) -> None:
        place, turn = on(edge, self._coming(self.program.function_of(edge.instr))[edge.target])
        self._recorder.record((place,), hook, args, into, turn, priority, chosen)

    def at_entry(
        self, where: ir.Kernel | ir.Function, hook: Hook, *args: object, into: object = None, priority: int = 0
    ) -> None:
        """Call ``hook`` once whenever a kernel's wave starts, or a function is entered: before any other call there.

        Where a kernel's arguments are preloaded it has two entries: the second one counts, if the first one only leads
        there, else each.
        """
        expect(where, ir.Kernel, ir.Function)
        function = where.function if isinstance(where, ir.Kernel) else where
        for first in begins_of(function, self._recorder.where):
            self._recorder.record(((first, Place.BEFORE),), hook, args, into, Turn.ENTRY, priority)

    def at_exit(
        self, where: ir.Kernel | ir.Function, hook: Hook, *args: object, into: object = None, priority: int = 0
    ) -> None:
        """Call ``hook`` when a wave of a kernel ends, wherever that is; or when a function returns: after any other
        call there.

        Where kernels share a function that ends the wave, the same call is recorded there once. The function of a
        kernel, which does not return, means its kernel.
        """
        expect(where, ir.Kernel, ir.Function)
        function = where.function if isinstance(where, ir.Kernel) else where
        if function.kernel:
            blocks = [b for f in self.program.reachable(function) for b in f.blocks if b.ending is ir.Ending.END]
        else:
            blocks = [b for b in function.blocks if b.ending in (ir.Ending.RETURN, ir.Ending.TAIL_CALL)]
        for block in blocks:
            self._recorder.record(((block.instrs[-1], Place.BEFORE),), hook, args, into, Turn.EXIT, priority)

    def edits(self, variables: Iterable[Variable] = (), wave_variables: Iterable[WaveVariable] = ()) -> Edits:
        """What was recorded, with the given variables and all that it names."""
        return self._recorder.edits(variables, wave_variables, tuple(self._refused.values()))

    def _before_first_call(self, stretch: Stretch) -> Sequence[ir.Instr]:
        """Instructions that surely run when the first one does: up to the first call, which may not come back."""
        code = stretch.block.code
        behind = self._calls[code][bisect_left(self._calls[code], stretch.places[0]) :]
        return instrs_at(code, stretch.until(behind[0] + 1).places if behind else stretch.places)

    def _check_whole(self, stretches: Sequence[Stretch]) -> None:
        if any(self._part(stretch) is not stretch for stretch in stretches) and self._cut(stretches):
            message = "the user's options choose only a part of this; take blocks from Mutator.blocks"
            raise EditConflict(f"{caller()}: {message}", self._recorder.where(stretches[0].first))


def derive_mutator(m: Mutator, selection: Selection, tool: str) -> Mutator:
    """``m`` for another choice of instructions, a tool's: what is recorded there is recorded here, as that tool's."""
    other = Mutator(m.program, m.facts, selection)
    m._recorder.tools.append((tool, len(m._recorder.insertions)))
    other._recorder = replace(m._recorder, choice=other._choice)
    other._refused = m._refused
    return other


def count_edits(m: Mutator) -> int:
    """How many edits there are so far."""
    return len(m._recorder.insertions) + len(m._recorder.instead)
