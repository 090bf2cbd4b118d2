"""Checks what a tool asks for, and keeps it in order.

In: places, hooks, arguments. Out: Insertions. Invariant: each is at an instruction of a function that may be edited,
fits its hook's signature, and but for entries and exits is at one that the user chose; what is wrong is said at once,
with the tool's file and line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from luthier_py.base.errors import EditConflict, HookError, Location, Unsupported
from luthier_py.base.records import dataclass, field
from luthier_py.isa import Inst, Reg, RegSet
from luthier_py.isa.instead import make_replacement, stays, unlike
from luthier_py.program import ir
from luthier_py.rewrite.tool.arguments.check_parameters import Adapted, arguments, result_place
from luthier_py.rewrite.tool.arguments.computed import out_of_place
from luthier_py.rewrite.tool.arguments.expected import expect
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.chosen.choice import Choice
from luthier_py.rewrite.tool.edits import Destination, Edits, Insertion, Instead, Place, Refusal, Turn
from luthier_py.rewrite.tool.folding import with_fields
from luthier_py.rewrite.tool.hooks.hook import Hook
from luthier_py.rewrite.tool.variables import Element, LookupTable, Variable, WaveVariable, tables_of

V = TypeVar("V", Variable, WaveVariable)
_ALWAYS = (Turn.ENTRY, Turn.EXIT)  # recorded unless nothing is chosen of kernels that run there


@dataclass(slots=True)
class Recorder:
    """Mutable: collects. ``choice``: the user's."""

    program: ir.Program
    choice: Choice
    insertions: list[Insertion] = field(default_factory=list)
    instead: dict[ir.Instr, tuple[Instead, RegSet, str]] = field(default_factory=dict)  # lost writes, and whose
    behind: list[tuple[Insertion, str]] = field(default_factory=list)  # calls after instructions, and whose
    exits: set[tuple[object, ...]] = field(default_factory=set)
    adapted: Adapted = field(default_factory=dict)
    tools: list[tuple[str, int]] = field(default_factory=list)  # of several, as Edits has them

    def record(
        self, places: Sequence[tuple[ir.Instr, Place]], hook: Hook, args: Sequence[object], into: object,
        turn: Turn = Turn.BODY, priority: int = 0, named: ir.Instr | None = None,
    ) -> None:
        """``named``: the instruction that must be chosen, if it is not that of the first place."""
        if not isinstance(hook, Hook):
            raise HookError(f"{caller()}: {hook!r} is not a hook; mark the function with @hook")
        expect(priority, int, name="priority")
        at = places[0][0]
        self.check_editable(at)
        signature, given, order = hook.signature, as_tuple(into), len(self.insertions)
        _check_count(hook, "argument", len(args), len(signature.parameters) - len(hook.captured))
        _check_count(hook, "result", len(given), len(signature.results))
        try:
            called, checked = arguments(hook, (*args, *hook.captured), self.adapted)
            results: tuple[Destination, ...] = tuple(map(result_place, signature.results, given))
        except ValueError as error:
            raise HookError(f"{caller()}: hook {hook.name}: {error}; declared at {hook.place}") from error
        if len(set(results)) != len(results):
            raise HookError(f"{caller()}: hook {hook.name}: two results go into one place")
        if wrong := out_of_place(args, *places[0]):
            raise EditConflict(f"{caller()}: {wrong}", self.where(at))
        for each in places if any(isinstance(result, Reg) for result in results) else ():
            self._check_offsets(*each, results)
        if turn is Turn.EXIT:
            call = (at, called, checked, results)
            if call in self.exits:
                return
            self.exits.add(call)
        around = turn in _ALWAYS and self.choice.runs_with(self.program.function_of(at))
        if around or turn not in _ALWAYS and self.choice.takes(named or at):
            self.insertions.append(Insertion(places, called, checked, results, order, turn, priority))
            if places[0][1] is Place.AFTER:
                self.behind.append((self.insertions[-1], caller()))

    def _check_offsets(self, instr: ir.Instr, place: Place, results: Sequence[Destination]) -> None:
        """A register that is added to the PC is what a copy does not go by: the result of a hook in it would be lost.
        """
        for builder in self.program.function_of(instr).pc_builders:
            if not builder.offset or not (builder.offset[0].at + (place is Place.BEFORE) <= instr.at
                                          <= builder.hi.at - (place is Place.AFTER)):
                continue
            for result in results:
                if isinstance(result, Reg) and any(
                        each.inst.writes.overlaps(RegSet.of(result)) for each in builder.offset):
                    message = f"{caller()}: {result} is a part of an address here, and no hook may change it"
                    raise EditConflict(message, self.where(instr))

    def put(self, instr: ir.Instr, inst: Inst | None, into: tuple[object, ...] = ()) -> None:
        """Replace ``instr`` by ``inst``, None for nothing, while hooks write ``into``; EditConflict if it is replaced
        already, or may not be."""
        self.check_editable(instr)
        if instr in self.instead:
            message = f"{caller()}: something else stands for this instruction already, by {self.instead[instr][2]}"
            raise EditConflict(message, self.where(instr))
        function = self.program.function_of(instr)
        built = [part for builder in function.pc_builders for part in builder.sums]
        why = stays(instr.inst) if inst is None else unlike(instr.inst, inst)
        why = "makes an address" if instr in built else why
        if why is not None:
            raise EditConflict(f"{caller()}: nothing else may stand here: it {why}", self.where(instr))
        given = RegSet.of(*(to for to in into if isinstance(to, Reg)))
        try:
            new = make_replacement(self.program.isa, instr.inst, given) if inst is None else inst
        except Unsupported as error:
            raise EditConflict(f"{caller()}: {error.message}", self.where(instr)) from None
        if self.choice.takes(instr):
            written = instr.inst.writes - new.writes - given
            self.instead[instr] = Instead(instr, new), written, caller()

    def resolve_replacements(self) -> tuple[Instead, ...]:
        """All replacements; EditConflict where a call reads what a replaced instruction would have written."""
        for insertion, place in self.behind:
            known = self.instead.get(insertion.instr)
            regs = RegSet.of(*(arg for arg in insertion.args if isinstance(arg, Reg)))
            if known is not None and known[1].overlaps(regs):
                message = f"{place}: hook {insertion.hook.name} wants {known[1] & regs} of an instruction"
                raise EditConflict(f"{message} that {known[2]} takes away", self.where(insertion.instr))
        return tuple(self.instead[instr][0] for instr in sorted(self.instead, key=lambda instr: instr.pc))

    def edits(
        self, variables: Iterable[Variable], wave_variables: Iterable[WaveVariable], refused: tuple[Refusal, ...]
    ) -> Edits:
        """What was recorded, with the given variables and all that it names."""
        used = [value for i in self.insertions for value in (*i.args, *i.into)]
        globals_used = [v.variable if isinstance(v, Element) else v for v in used if isinstance(v, (Element, Variable))]
        known = _once([*variables, *globals_used])
        return Edits(
            with_fields(self.insertions),
            tuple(v for v in known if not isinstance(v, LookupTable)),
            _once([*wave_variables, *(v for v in used if isinstance(v, WaveVariable))]),
            self.resolve_replacements(), refused, tables_of(known), tools=tuple(self.tools),
        )

    def check_editable(self, instr: ir.Instr) -> None:
        """EditConflict for an instruction of another program, or of a function whose code is not known as a whole."""
        try:
            function = self.program.function_of(instr)
        except KeyError:
            raise EditConflict(f"{caller()}: the instruction at 0x{instr.pc:x} is not of this program") from None
        if function.incomplete:
            message = f"{caller()}: {function.name} cannot be edited: {function.incomplete}"
            raise EditConflict(message, self.where(instr))

    def where(self, instr: ir.Instr) -> Location:
        """The place of an instruction, for an error."""
        return Location(self.program.function_of(instr).name, instr.pc, self.program.isa.text(instr.inst))


def _check_count(hook: Hook, what: str, have: int, want: int) -> None:
    if have != want:
        what = f"{what}{'s' * (want != 1)}{' (into=)' * (what == 'result')}"
        raise HookError(f"{caller()}: hook {hook.name} has {want} {what}, {have} given; declared at {hook.place}")


def _once(values: Iterable[V]) -> tuple[V, ...]:
    return tuple(dict.fromkeys(values))


def as_tuple(into: object) -> tuple[object, ...]:
    """One result or several."""
    if into is None:
        return ()
    return tuple(into) if isinstance(into, (tuple, list)) else (into,)
