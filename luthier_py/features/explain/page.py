"""Why a clone is what it is: its code beside the original's, where the values of calls live, and what all of it costs.

In: a code object and a tool. Out: Explained, as lines, as a page, as data. Invariant: every instruction of the clone is
in it once, in order, with what it is there for; sizes add up to those of the clone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from enum import Enum

from luthier_py.base.errors import printable
from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import Given
from luthier_py.isa import Inst, Reg
from luthier_py.report.cloned import change
from luthier_py.report.html import HtmlRow, HtmlTable, Page
from luthier_py.rewrite.inject.cloned import ClonedKernel
from luthier_py.rewrite.inject.items import Allotted, Cause, Clone, Edit, Label, Referent, Run, Single, Slice
from luthier_py.rewrite.pipeline import Instrumented, instrument
from luthier_py.rewrite.tool import Element, Entry, Insertion, Tool, Variable, WaveVariable


class Role(Enum):
    """What an instruction of a clone is there for."""

    APPLICATION = "application"
    INSTEAD = "instead"     # of another one of the application
    HOOK = "hook"
    AROUND = "around"       # a hook: arguments, results, what is saved and put back
    PROLOGUE = "prologue"
    WAY = "way"             # from inserted code back to the application's
    LOOKUP = "lookup"
    WAIT = "wait"
    ISLAND = "island"


ROLES = {Cause.CALL: Role.AROUND, Cause.PROLOGUE: Role.PROLOGUE, Cause.LOOKUP: Role.LOOKUP, Cause.WAIT: Role.WAIT,
         Cause.ISLAND: Role.ISLAND, Cause.EDGE: Role.WAY, Cause.INSTEAD: Role.INSTEAD}
MARKS = {Role.APPLICATION: " ", Role.INSTEAD: "~", Role.HOOK: "*"}
_HEAT = {Role.APPLICATION: 0.0, Role.INSTEAD: 1.0, Role.HOOK: 0.6, Role.AROUND: 0.35}
_COLOURS = ("Lines without colour are the application's as they were; the strongest colour has what stands instead of "
            "one of these, then come hooks, what goes with each call, and all else that is inserted.")
_LEGEND = ("marks: ~ stands instead of an instruction of the application, * is a hook's, + is what goes with hooks; "
           "what has none is as it was")


@dataclass(frozen=True, slots=True)
class ExplainedLine:
    """One instruction of a clone, ``offset`` bytes behind its start. ``address``: the original's, of the application's
    own; ``call``: number of the call that it belongs to; ``names``: what its literal or target will be."""

    role: Role
    offset: int
    text: str
    size_bytes: int
    address: int | None = None
    call: int | None = None
    names: str = ""

    @property
    def shown(self) -> str:
        """The instruction, with what its literal or target will be as a comment."""
        return f"{self.text:<40} ; {self.names}" if self.names else self.text


@dataclass(frozen=True, slots=True)
class ExplainedCall:
    """One call of a hook. ``values``: its arguments and results, each with where it is and what it is or is assigned
    to."""

    hook: str
    point: int
    side: str
    policy: str
    values: tuple[tuple[str, str], ...]
    saved: tuple[tuple[str, str], ...]
    spilled: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ExplainedFunction:
    """A function's clone. ``calls``: by their numbers."""

    name: str
    clone: str
    lines: tuple[ExplainedLine, ...]
    calls: dict[int, ExplainedCall]

    @property
    def costs(self) -> dict[Role, tuple[int, int]]:
        """Instructions and bytes by what they are there for."""
        count, size = Counter[Role](), Counter[Role]()
        for line in self.lines:
            count[line.role] += 1
            size[line.role] += line.size_bytes
        return {role: (count[role], size[role]) for role in Role if count[role]}


@dataclass(frozen=True, slots=True)
class Explained:
    """``locations``: the persistent values of each wave, and where they are; ``made``: the copy."""

    tool: str
    made: Instrumented
    kernels: tuple[ClonedKernel, ...]
    functions: tuple[ExplainedFunction, ...]
    locations: tuple[tuple[str, str], ...]


def explain(
    code: Given, tool: Tool, name: str, kernels: Sequence[str] | None = None, keep_going: bool = False
) -> Explained:
    """Instrument, and say why; LuthierError where that cannot be done, but with ``keep_going`` for kernels alone."""
    clones: dict[str, Clone] = {}

    def record_clone(_: str, clone: Clone) -> Clone:
        clones[clone.name] = clone
        return clone

    made = instrument(code, tool, name, kernels, keep_going, seen=record_clone)
    there = {chunk.name for chunk in made.patched.chunks}
    functions = tuple(_function(made, clone) for clone in clones.values() if clone.name in there)
    return Explained(tool.name, made, made.patched.report, functions, tuple(_locations(made)))


def _locations(made: Instrumented) -> Iterator[tuple[str, str]]:
    seen: set[tuple[str, str]] = set()
    for function in made.patched.claim.functions:
        for number, location in function.locations.items():
            what = made.edits.wave_variables[number].name if isinstance(number, int) else number
            if (what, str(location)) not in seen:
                seen.add((what, str(location)))
                yield what, str(location)


def _function(made: Instrumented, clone: Clone) -> ExplainedFunction:
    told = made.patched.calls[clone.name]
    lines = tuple(_lines(made, clone))
    edits = {edit.number: edit for item in clone.items
             if isinstance(item, (Run, Single)) and (edit := item.edit) is not None and edit.cause is Cause.CALL}
    calls = {number: _call(edit, *told[number]) for number, edit in edits.items()}
    source = next(each.function.name for each in made.patched.maps if each.chunk == clone.name)
    return ExplainedFunction(source, clone.name, lines, calls)


def _lines(made: Instrumented, clone: Clone) -> Iterator[ExplainedLine]:
    isa, code = made.program.isa, next(chunk.code for chunk in made.patched.chunks if chunk.name == clone.name)
    stop = 0

    def line(
        inst: Inst, role: Role, address: int | None = None, edit: Edit | None = None, names: str = ""
    ) -> ExplainedLine:
        """The instruction as the copy has it: there branches have their distances."""
        nonlocal stop
        start, stop = stop, stop + inst.size_bytes
        there = isa.decode(code, start)
        if (target := there.branch_target(start)) is not None:
            names = f"to +{target:#x}"
        call = edit.number if edit is not None and edit.cause is Cause.CALL else None
        return ExplainedLine(role, start, isa.text(there), inst.size_bytes, address, call, names)

    for item in clone.items:
        if isinstance(item, Label):
            continue
        if isinstance(item, Slice):
            for instr in item.instrs:
                yield line(instr.inst, Role.APPLICATION, instr.pc)
        elif isinstance(item, Run):
            for at in range(item.start, item.stop):
                yield line(item.inst(at), Role.HOOK, edit=item.edit)
        elif item.origin is not None:
            role = Role.INSTEAD if item.instead else Role.APPLICATION
            yield line(item.inst, role, item.origin.pc, item.edit, _names(item))
        elif item.edit is not None:
            role = Role.HOOK if item.payload else ROLES[item.edit.cause]
            yield line(item.inst, role, None, item.edit, _names(item))


def _names(item: Single) -> str:
    return "" if item.reference is None else f"towards {_referent(item.reference.target)}"


def _referent(target: Referent) -> str:
    if target.variable is not None:
        return f"{target.variable} + {target.offset}" if target.offset else target.variable
    if target.function is not None:
        return f"the clone of {target.function:#x}"
    return f"{target.address:#x}" if target.address is not None else "here"


def _call(edit: Edit, insertion: Insertion, allotted: Allotted) -> ExplainedCall:
    hook = insertion.hook
    given = [(parameter, arg) for parameter, arg in zip(hook.signature.parameters, insertion.args, strict=True)]
    places = iter(allotted.arguments)
    values = [
        (str(parameter),
         repr(arg) if isinstance(arg, (int, float)) else _describe_move(next(places), _describe_value(arg)))
        for parameter, arg in given
    ]
    for parameter, to, reg in zip(hook.signature.results, insertion.into, allotted.results, strict=True):
        values.append((f"result {parameter.name}".strip(), _describe_move(reg, _describe_value(to), "goes to")))
    return ExplainedCall(
        hook.name, edit.point, edit.place.value, allotted.policy, tuple(values),
        tuple((str(reg), str(keep)) for reg, keep in allotted.saved),
        tuple((str(reg), str(slot)) for reg, slot in allotted.spilled))


def _describe_move(reg: Reg, other: str, how: str = "is") -> str:
    return str(reg) if str(reg) == other else f"{reg}, {how} {other}"


def _describe_value(value: object) -> str:
    if isinstance(value, (Variable, WaveVariable, Entry)):
        return value.name
    return f"{value.variable.name}[{value.index}]" if isinstance(value, Element) else str(value)


# -- as lines ------------------------------------------------------------------------------------

def as_lines(explained: Explained) -> Iterator[str]:
    """A listing for a terminal."""
    for refusal in explained.made.refused:
        yield f"kernel {printable(demangle(refusal.kernel))} is left alone: {printable(refusal.reason)}"
    for row in explained.kernels:
        facts = "; ".join(f"{name} {value}" for name, value in _facts(row))
        yield f"kernel {printable(demangle(row.name))}: {facts}"
    for what, location in explained.locations:
        yield f"kept for each wave: {what} in {location}"
    yield _LEGEND
    for function in explained.functions:
        yield ""
        yield f"{printable(demangle(function.name))}: the clone is {printable(function.clone)}"
        for role, (count, size) in function.costs.items():
            yield f"  {role.value:<12} {count:>7} instructions {size:>8} bytes"
        yield from _format_listing(function)


def _format_listing(function: ExplainedFunction) -> Iterator[str]:
    told: set[int] = set()
    for line in function.lines:
        if line.call is not None and line.call not in told:
            told.add(line.call)
            yield from (f"{'':30}; {text}" for text in _describe_call(function.calls[line.call]))
        place = "" if line.address is None else f"{line.address:#x}"
        yield f"{place:>16} {f'+{line.offset:#x}':>9}  {MARKS.get(line.role, '+')} {line.shown}"


def _describe_call(call: ExplainedCall) -> Iterator[str]:
    yield f"{call.hook} {call.side} {call.point:#x}, registers {call.policy}"
    yield from (f"  {name} in {where}" for name, where in call.values)
    yield from (f"  {reg} saved in {keep}" for reg, keep in call.saved)
    yield from (f"  {reg} spilled to {slot}" for reg, slot in call.spilled)


def _facts(row: ClonedKernel) -> Iterator[tuple[str, str]]:
    yield "edits", str(row.sites)
    yield "SGPRs", change(row.before.sgprs, row.after.sgprs)
    yield "VGPRs", change(row.before.vgprs, row.after.vgprs)
    yield "waves per SIMD", change(row.before.waves, row.after.waves)
    yield "code bytes", change(row.bytes_before, row.bytes_after)
    yield "private bytes added", str(row.private_bytes)
    yield from ((f"calls {policy}", str(count)) for policy, count in row.schemes.items())


# -- as data -------------------------------------------------------------------------------------

def as_facts(explained: Explained) -> dict[str, object]:
    """JSON-ready: the numbers of each kernel, and every line of each clone."""
    return {
        "tool": explained.tool,
        "refused": [{"kernel": each.kernel, "reason": each.reason} for each in explained.made.refused],
        "kernels": {row.name: _figures(row) for row in explained.kernels},
        "kept": [{"what": what, "where": location} for what, location in explained.locations],
        "functions": [{
            "name": function.name, "clone": function.clone,
            "costs": {role.value: {"instructions": count, "bytes": size}
                      for role, (count, size) in function.costs.items()},
            "calls": {number: asdict(call) for number, call in function.calls.items()},
            "lines": [asdict(line) | {"role": line.role.value} for line in function.lines],
        } for function in explained.functions],
    }


def _figures(row: ClonedKernel) -> dict[str, object]:
    """Of what changes, what it was and is."""
    return {
        "edits": row.sites, "sgprs": [row.before.sgprs, row.after.sgprs], "vgprs": [row.before.vgprs, row.after.vgprs],
        "waves_per_simd": [row.before.waves, row.after.waves], "code_bytes": [row.bytes_before, row.bytes_after],
        "private_bytes": row.private_bytes, "calls": dict(row.schemes),
    }


# -- as a page -----------------------------------------------------------------------------------

def as_page(explained: Explained) -> Page:
    """The same with the clone in a table."""
    facts = [(demangle(row.name), "; ".join(f"{name} {value}" for name, value in _facts(row)))
             for row in explained.kernels]
    facts += [(demangle(each.kernel), f"left alone: {each.reason}") for each in explained.made.refused]
    facts += [(f"kept for each wave: {what}", location) for what, location in explained.locations]
    tables = []
    for function in explained.functions:
        costs = [HtmlRow((role.value, str(count), str(size))) for role, (count, size) in function.costs.items()]
        tables.append(HtmlTable(f"What {function.clone} is made of", ("for", "instructions", "bytes"), tuple(costs), 0))
        rows = tuple(_rows(function))
        tables.append(HtmlTable(function.clone, ("original", "copy", "for", "instruction"), rows, 3))
    return Page(f"{explained.tool}: why the copy is what it is", tuple(facts), tables, notes=(_COLOURS,))


def _rows(function: ExplainedFunction) -> Iterator[HtmlRow]:
    told: set[int] = set()
    for line in function.lines:
        if line.call is not None and line.call not in told:
            told.add(line.call)
            yield HtmlRow(("\n".join(_describe_call(function.calls[line.call])),), heading=True)
        place = "" if line.address is None else f"{line.address:#x}"
        cells = place, f"+{line.offset:#x}", line.role.value, line.shown
        yield HtmlRow(cells, _HEAT.get(line.role, 0.15))
