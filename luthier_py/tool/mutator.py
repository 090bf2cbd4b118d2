"""What a tool sees in `instrument`: the program, and ways to record calls of hooks.

In: a program and its facts. Out: Edits. Nothing is changed here; what is wrong with a call is said at once, with
the tool's file and line. Invariant: every recorded insertion is at an instruction of a function that may be edited, and
but for entries and exits at one that the user's options choose (INSTR_BEGIN, INSTR_END).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, chain, repeat
from typing import TypeVar

from luthier_py.analysis import OUTSIDE, Facts, Flow, Steps, spanning, steps_of
from luthier_py.errors import EditConflict, HookError, Location
from luthier_py.ir import Block, CallSite, Ending, Function, Instr, Kernel, Program, by_address
from luthier_py.ir.model import Instrs
from luthier_py.isa import EXEC, OpFlag, Reg, RegFile, RegSet, sgpr
from luthier_py.tool.arguments import argument, destination
from luthier_py.tool.author import caller
from luthier_py.tool.counting import Counted, Counting, Region, Stretch, counting, regions
from luthier_py.tool.edits import Arg, Before, Destination, Edits, Insertion, Place, Refusal, Turn
from luthier_py.tool.folding import with_fields
from luthier_py.tool.hook import Hook, Lanes
from luthier_py.tool.selection import Selection
from luthier_py.tool.variables import Element, Variable, WaveVariable

_EXEC = sgpr(EXEC, 2)
FOR_HOOKS = 16  # scalar registers that are enough for what most hooks compute
V = TypeVar("V", Variable, WaveVariable)


TAKEN_BY = {
    Instr: "before and after take it", Block: "at_block takes it", Stretch: "at_stretch takes it",
    Region: "at_region takes it", Counted: "at_counted takes it", Function: "at_entry and at_exit take it",
    Kernel: "at_entry and at_exit take it, and kernel.function is its code",
}


class Mutator:
    """Records edits (mutable: collects them in order).

    What ``blocks``, ``instrs``, ``stretches``, ``runs`` and ``regions`` give has only instructions that the user chose,
    and calls before or after others are not recorded.

    Everywhere, ``args`` are one per parameter of the hook: a Python number is a constant of the call; a Reg or an
    operand of an instruction is its value at the place; a Variable is its address; a WaveVariable is its value.
    ``into`` takes the results: WaveVariables, or registers of the application that the hook may change.

    Calls at one point run in this order, whatever the order in which they were recorded: those of ``at_entry``, which
    begin; then all others; then those of ``at_exit``, which end. Those of one kind run in the order of recording.
    """

    def __init__(self, program: Program, facts: Facts, selection: Selection | None = None) -> None:
        self.program = program
        self.facts = facts
        choose = Selection() if selection is None else selection
        self._chosen = {f.code: choose.instructions(len(f.code)) for f in program.functions}
        self._all_chosen = all(chosen == range(len(code)) for code, chosen in self._chosen.items())
        self._calls = {f.code: f.code.flagged(OpFlag.CALL) for f in program.functions}
        self._insertions: list[Insertion] = []
        self._exits: set[tuple[object, ...]] = set()
        self._refused: dict[str, Refusal] = {}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels that can be edited with all that they reach; the others are kept as refused, with the reason."""
        return tuple(kernel for kernel in self.program.kernels if not self._refuses(kernel))

    def functions(self, kernel: Kernel | None = None) -> tuple[Function, ...]:
        """The functions that a kernel reaches, its own body among them; without a kernel, those of all, each once.

        Kernels share the functions that they call: what is inserted there runs for each of them.
        """
        if kernel is not None:
            _expect(kernel, Kernel)
            return self.program.reachable(kernel.function)
        return by_address({f for k in self.kernels for f in self.program.reachable(k.function)})

    def _refuses(self, kernel: Kernel) -> bool:
        broken = [f for f in self.program.reachable(kernel.function) if f.incomplete]
        if broken:
            where = Location(kernel.name, broken[0].address)
            self._refused[kernel.name] = Refusal(kernel.name, f"{broken[0].name}: {broken[0].incomplete}", where)
        return bool(broken)

    def instrs(self, function: Function) -> tuple[Instr, ...]:
        """The function's instructions."""
        _expect(function, Function)
        return tuple(instr for instr in function.instrs if self._takes(instr))

    def blocks(self, function: Function) -> tuple[Block, ...]:
        """The function's blocks; where only a part of one is chosen, a copy with that part."""
        _expect(function, Function)
        cut = self._cut(Stretch(block, 0, len(block.instrs)) for block in function.blocks)
        return tuple(
            part.block if len(part) == len(part.block.instrs) else replace(part.block, instrs=part.instrs)
            for part in cut
        )

    def stretches(self, block: Block) -> tuple[Stretch, ...]:
        """The block cut where EXEC changes: within a stretch the same lanes are active."""
        _expect(block, Block)
        return self._cut(Stretch(block, start, end) for start, end in self.facts.stretches(block))

    def runs(self, block: Block) -> tuple[Stretch, ...]:
        """The block cut behind calls that may end the wave: a run is executed as a whole or not at all."""
        _expect(block, Block)
        return self._cut(_runs(block, self._ending(self.program.function_of(block.instrs[0]))))

    def regions(self, function: Function) -> tuple[Region, ...]:
        """The runs of a function, those together that are executed equally often."""
        _expect(function, Function)
        runs, flow = self._flow(function)
        groups = spanning(flow, [0.0] * len(runs)).equally_often()
        return tuple(region for region in regions([*map(self._part, runs)], groups) if region.stretches)

    def counting(self, function: Function) -> Counting:
        """The fewest counters, in code that runs seldom, from which the executions of all stretches follow."""
        _expect(function, Function)
        runs, flow = self._flow(function)
        steps = _steps(function, runs) if self._chosen[function.code] == range(len(function.code)) else {}
        return counting(function, [*map(self._part, runs)], flow, not _comes_back(function), steps)

    def at_counted(self, counted: Counted, hook: Hook, *args: object, into: object = None) -> None:
        """Call ``hook`` each time that a counter of ``counting`` goes up."""
        _expect(counted, Counted)
        if isinstance(counted.where, Region):
            self.at_region(counted.where, hook, *args, into=into)
        else:
            self.at_entry(counted.where, hook, *args, into=into)

    def spare_scalars(self, kernels: Iterable[Kernel]) -> int:
        """Scalar registers that wave variables can take before fewer waves run at once or hooks are short."""
        return max(0, min(map(self._spare, kernels)))

    def components(self) -> tuple[tuple[Kernel, ...], ...]:
        """Kernels that share functions together: a wave variable has one register in all of them."""
        groups: list[tuple[list[Kernel], set[Function]]] = []
        for kernel in self.kernels:
            kernels, reached = [kernel], set(self.program.reachable(kernel.function))
            sharing = [group for group in groups if group[1] & reached]
            for group in sharing:
                kernels, reached = group[0] + kernels, group[1] | reached
            groups = [*(group for group in groups if group not in sharing), (kernels, reached)]
        return tuple(tuple(kernels) for kernels, _ in groups)

    def _spare(self, kernel: Kernel) -> int:
        target, descriptor = self.program.obj.target, kernel.record.descriptor
        size, vgprs, used = descriptor.wave_size, descriptor.vgpr_count(target), descriptor.sgpr_count(target)
        waves = target.waves_for(vgprs, used, wave_size=size)
        steps = range(min(used, target.sgpr_limit), target.sgpr_limit + 1)
        most = max(n for n in steps if n <= used or target.waves_for(vgprs, n, wave_size=size) == waves)
        touched = self.facts.touched(self.program.reachable(kernel.function)) | self.facts.initial(kernel)
        return most - (touched.sgpr & (1 << most) - 1).bit_count() - FOR_HOOKS

    def _flow(self, function: Function) -> tuple[list[Stretch], Flow]:
        """Runs, and how control gets from one to the next."""
        ending = self._ending(function)
        runs = {block.address: _runs(block, ending) for block in function.blocks}
        first = dict(zip(runs, accumulate(map(len, runs.values()), initial=0), strict=False))
        flow, may_end = [], set(ending)
        for block in function.blocks:
            number = first[block.address]
            flow += [[each, OUTSIDE] for each in range(number + 1, number + len(runs[block.address]))]
            following = [first[address] for address in block.successors]
            flow.append(following if following and block.stop - 1 not in may_end else [*following, OUTSIDE])
        return [*chain.from_iterable(runs.values())], [*flow, [first[entry] for entry in function.entries]]

    def _ending(self, function: Function) -> list[int]:
        """Where calls are that may end the wave, ascending."""
        return [site.instr.at for site in self.program.calls(function) if self._may_end(site)]

    def _cut(self, stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
        """The chosen part of each stretch."""
        return tuple(part for part in map(self._part, stretches) if part is not None)

    def _part(self, stretch: Stretch) -> Stretch | None:
        """What is chosen of it, which is in one piece."""
        if self._all_chosen:
            return stretch
        first, chosen = stretch.block.start, self._chosen[stretch.block.code]
        start = max(stretch.start, chosen.start - first)
        end = min(stretch.end, chosen.stop - first)
        if (start, end) == (stretch.start, stretch.end):
            return stretch
        return Stretch(stretch.block, start, end) if start < end else None

    def _takes(self, instr: Instr) -> bool:
        """Whether the user chose it."""
        return instr.at in self._chosen.get(instr.code, ())

    def before(self, instr: Instr, hook: Hook, *args: object, into: object = None) -> None:
        """Call ``hook`` before ``instr`` each time that it runs."""
        _expect(instr, Instr)
        self._record(((instr, Place.BEFORE),), hook, args, into)

    def after(self, instr: Instr, hook: Hook, *args: object, into: object = None) -> None:
        """Call ``hook`` after ``instr``, which must not be the branch or end of its block."""
        _expect(instr, Instr)
        if instr.inst.op.flags & OpFlag.TERMINATOR:
            message = "nothing can be inserted after the branch or end of a block; insert before it, or at_block"
            raise EditConflict(f"{caller()}: {message}", self._where(instr))
        self._record(((instr, Place.AFTER),), hook, args, into)

    def at_block(self, block: Block, hook: Hook, *args: object, into: object = None, anywhere: bool = False) -> None:
        """Call ``hook`` each time that ``block`` runs: at its entry, or ``anywhere`` with the same lanes."""
        _expect(block, Block)
        own_exec = isinstance(hook, Hook) and hook.lanes is not Lanes.ACTIVE
        end = len(block.instrs) if own_exec else self.facts.stretches(block)[0][1]
        self.at_stretch(Stretch(block, 0, end), hook, *args, into=into, anywhere=anywhere)

    def at_stretch(
        self, stretch: Stretch, hook: Hook, *args: object, into: object = None, anywhere: bool = False
    ) -> None:
        """Call ``hook`` where ``stretch`` begins, or ``anywhere`` in it that is cheapest."""
        _expect(stretch, Stretch)
        self._check_whole([stretch])
        instrs: Sequence[Instr] = self._before_first_call(stretch)
        if anywhere:
            _check_independent((*args, *_tuple(into)))
            instrs = _while_exec_stays(instrs) if _EXEC in args else instrs
        self._record(tuple(Before((instrs if anywhere else instrs[:1],))), hook, args, into)

    def at_region(self, region: Region, hook: Hook, *args: object, into: object = None) -> None:
        """Call ``hook`` as often as each part of ``region`` runs, at the cheapest place in all of it."""
        _expect(region, Region)
        _check_independent((*args, *_tuple(into)))
        if _EXEC in args:
            raise HookError(f"{caller()}: EXEC is not the same everywhere in a region; use at_stretch")
        self._check_whole(region.stretches)
        self._record(Before(tuple(map(self._before_first_call, region.stretches))), hook, args, into)

    def at_entry(self, where: Kernel | Function, hook: Hook, *args: object, into: object = None) -> None:
        """Call ``hook`` once whenever a kernel's wave starts, or a function is entered: before any other call there.

        Where a kernel's arguments are preloaded, its second entry counts, to which the first one leads.
        """
        _expect(where, Kernel, Function)
        function = where.function if isinstance(where, Kernel) else where
        self._record(((self._entry(function), Place.BEFORE),), hook, args, into, Turn.ENTRY)

    def at_exit(self, where: Kernel | Function, hook: Hook, *args: object, into: object = None) -> None:
        """Call ``hook`` when a wave of a kernel ends, wherever that is; or when a function returns: after any other
        call there.

        Where kernels share a function that ends the wave, the same call is recorded there once. The function of a
        kernel, which does not return, stands for its kernel.
        """
        _expect(where, Kernel, Function)
        function = where.function if isinstance(where, Kernel) else where
        if function.kernel:
            blocks = [b for f in self.program.reachable(function) for b in f.blocks if b.ending is Ending.END]
        else:
            blocks = [b for b in function.blocks if b.ending in (Ending.RETURN, Ending.TAIL_CALL)]
        for block in blocks:
            self._record(((block.instrs[-1], Place.BEFORE),), hook, args, into, Turn.EXIT)

    def edits(self, variables: Iterable[Variable] = (), wave_variables: Iterable[WaveVariable] = ()) -> Edits:
        """What was recorded, with the given variables and all that it names."""
        used = [value for i in self._insertions for value in (*i.args, *i.into)]
        globals_used = [v.variable if isinstance(v, Element) else v for v in used if isinstance(v, (Element, Variable))]
        return Edits(
            with_fields(self._insertions),
            _once([*variables, *globals_used]),
            _once([*wave_variables, *(v for v in used if isinstance(v, WaveVariable))]),
            tuple(self._refused.values()),
        )

    def _may_end(self, site: CallSite) -> bool:
        reached = {f for target in site.targets for f in self.program.reachable(target)}
        return site.unknown or any(b.ending is Ending.END for f in reached for b in f.blocks)

    def _entry(self, function: Function) -> Instr:
        """The instruction that runs once each time the function is entered (all entries lead to the last one)."""
        if not function.blocks:
            raise EditConflict(f"{caller()}: {function.name} has no code that can be edited: {function.incomplete}")
        entry = function.block(function.entries[-1]).instrs[0]
        if _comes_back(function):
            message = f"{function.name} loops back to its first instruction; insert at one of its blocks instead"
            raise EditConflict(f"{caller()}: {message}", self._where(entry))
        return entry

    def _before_first_call(self, stretch: Stretch) -> Instrs:
        """Instructions that surely run when the first one does: up to the first call, which may not come back."""
        code, block = stretch.block.code, stretch.block.start
        calls, start, stop = self._calls[code], block + stretch.start, block + stretch.end
        number = bisect_left(calls, start)
        return Instrs(code, start, min(stop, calls[number] + 1) if number < len(calls) else stop)

    def _record(
        self, places: Sequence[tuple[Instr, Place]], hook: Hook, args: tuple[object, ...], into: object,
        turn: Turn = Turn.BODY,
    ) -> None:
        """Entries and exits are kept whether or not the user chose the instruction, but for when none is chosen."""
        if not isinstance(hook, Hook):
            raise HookError(f"{caller()}: {hook!r} is not a hook; mark the function with @hook")
        at = places[0][0]
        self._check_editable(at)
        signature, given, order = hook.signature, _tuple(into), len(self._insertions)
        self._check_count(hook, "arguments", len(args), len(signature.parameters))
        self._check_count(hook, "results (into=)", len(given), len(signature.results))
        try:
            checked: tuple[Arg, ...] = tuple(map(argument, signature.parameters, args))
            results: tuple[Destination, ...] = tuple(map(destination, signature.results, given))
        except ValueError as error:
            raise HookError(f"{caller()}: hook {hook.name}: {error}; declared at {hook.place}") from error
        if len(set(results)) != len(results):
            raise HookError(f"{caller()}: hook {hook.name}: two results go into one place")
        if turn is Turn.EXIT:
            call = (at, hook, checked, results)
            if call in self._exits:
                return
            self._exits.add(call)
        if turn is not Turn.BODY and any(self._chosen.values()) or self._takes(at):
            self._insertions.append(Insertion(places, hook, checked, results, order, turn))

    def _check_count(self, hook: Hook, what: str, have: int, want: int) -> None:
        if have != want:
            raise HookError(f"{caller()}: hook {hook.name} has {want} {what}, {have} given; declared at {hook.place}")

    def _check_whole(self, stretches: Sequence[Stretch]) -> None:
        if any(self._part(stretch) is not stretch for stretch in stretches) and self._cut(stretches):
            message = "INSTR_BEGIN and INSTR_END choose only a part of this; take blocks from Mutator.blocks"
            raise EditConflict(f"{caller()}: {message}", self._where(stretches[0].first))

    def _check_editable(self, instr: Instr) -> None:
        try:
            function = self.program.function_of(instr)
        except KeyError:
            raise EditConflict(f"{caller()}: the instruction at 0x{instr.pc:x} is not of this program") from None
        if function.incomplete:
            message = f"{caller()}: {function.name} cannot be edited: {function.incomplete}"
            raise EditConflict(message, self._where(instr))

    def _where(self, instr: Instr) -> Location:
        return Location(self.program.function_of(instr).name, instr.pc, self.program.isa.text(instr.inst))


def _expect(given: object, *wanted: type) -> None:
    """Refuse what is of another kind."""
    if not isinstance(given, wanted):
        kinds, use = " or ".join(kind.__name__ for kind in wanted), TAKEN_BY.get(type(given))
        raise HookError(f"{caller()}: this needs {kinds}, not {given!r:.60}" + (f"; {use}" if use else ""))


def _runs(block: Block, ending: Sequence[int]) -> list[Stretch]:
    """``ending``: calls that may end the wave."""
    start, stop = block.start, block.stop
    inside = ending[bisect_left(ending, start) : bisect_left(ending, stop - 1)]
    cuts = [at + 1 - start for at in inside]
    return list(map(Stretch, repeat(block), [0, *cuts], [*cuts, stop - start]))


def _steps(function: Function, runs: Sequence[Stretch]) -> dict[int, Steps]:
    """Of loops that are neither begun nor ended at a place where another one is."""
    loops = steps_of(function)
    found: dict[int, Steps] = {}
    places: set[Instr] = set()
    for number, run in enumerate(runs) if loops else ():
        steps = loops.get(run.block.address)
        here = {*steps.before, steps.behind} if steps is not None else set()
        if steps is not None and len(here) == len(steps.before) + 1 and not here & places:
            found[number] = steps
            places |= here
    return found


def _comes_back(function: Function) -> bool:
    """Whether a function that was entered once may run its first instruction again."""
    inside = [block for block in function.blocks if block.address not in function.entries]
    return any(function.entries[-1] in block.successors for block in inside)


def _tuple(into: object) -> tuple[object, ...]:
    if into is None:
        return ()
    return tuple(into) if isinstance(into, (tuple, list)) else (into,)


def _once(values: Iterable[V]) -> tuple[V, ...]:
    return tuple(dict.fromkeys(values))


def _while_exec_stays(instrs: Sequence[Instr]) -> Sequence[Instr]:
    """Instructions before which EXEC is what it is before the first one."""
    for at, instr in enumerate(instrs):
        if instr.inst.writes.overlaps(RegSet.of(_EXEC)):
            return instrs[: at + 1]
    return instrs


def _check_independent(values: tuple[object, ...]) -> None:
    for value in values:
        reg = getattr(value, "reg", value)
        if isinstance(reg, Reg) and not (reg.file is RegFile.SGPR and reg.index == EXEC):
            raise HookError(f"{caller()}: anywhere=True leaves the place open, but the value of {reg} depends on it")
