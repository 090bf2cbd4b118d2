"""What probes do: actions, checked.

In: a probe that was parsed. Out: its Actions. Invariant: an action happens once for each active lane if a lane has its
own value of anything in it, its conditions included; else once for the wave. Where one for the wave asks something of
all lanes, it happens only if a lane is active.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from luthier_py.base.errors import Invalid
from luthier_py.rewrite.tool import U64
from luthier_py.rewrite.tool.chosen.filters import TEXTS, WORDS, parse_filter

from .expressions import Expressions, Kind, Typed
from .reading import ReadProbe, ScriptText
from .sites import Site
from .tables import AGGREGATIONS, Layout
from .values import VALUES, Level, Value

RECORDING = ("trace", "printf")
ACTIONS = (*AGGREGATIONS, *RECORDING)
COMMON = {"pc": U64}  # what all records have: where it was
_SLOTS = 1024
_FIRST_WAVE = ast.Compare(ast.Name("launch_wave", ast.Load()), [ast.Eq()], [ast.Constant(0)])


@dataclass(frozen=True, slots=True)
class Action:
    """``arguments``: values of it. ``fixed``: keys that are known before anything runs, by name; ``keys``: the others.
    ``detail``: how many of ``top``, the step of ``quantize``, the text of ``printf``."""

    number: int  # in the script
    kind: str
    text: str
    line: int
    arguments: tuple[Typed, ...]
    conditions: tuple[Typed, ...]
    fixed: tuple[tuple[str, Value], ...] = ()
    keys: tuple[tuple[str, Typed], ...] = ()
    columns: tuple[str, ...] = ()
    """Names of all keys, in the order in which they were written; of records those of values."""
    detail: Any = None
    slots: int = _SLOTS
    name: str = ""
    """Of its table, where it is given one for `end`."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Of a record, by argument: names are values' own where they can be."""
        own = [text.isidentifier() and text not in COMMON and self.columns.count(text) == 1 for text in self.columns]
        return tuple(text if is_own else f"v{at}" for at, (text, is_own) in enumerate(
            zip(self.columns, own, strict=True)))

    @property
    def is_of_floats(self) -> bool:
        return any(each.kind is Kind.FLOAT for each in self.arguments)

    @property
    def parts(self) -> tuple[Typed, ...]:
        return (*self.arguments, *self.conditions, *(typed for _, typed in self.keys))

    @property
    def values(self) -> tuple[Value, ...]:
        """All that a hook is given."""
        found = {value.name: value for part in self.parts for value in part.all if value.give is not None}
        return tuple(found[name] for name in sorted(found))

    @property
    def layout(self) -> Layout:
        words = AGGREGATIONS[self.kind].words(self.is_of_floats)
        return Layout(words, 2 * self.slots if self.keys else 0, len(self.keys))

    @property
    def is_constant(self) -> bool:
        """Whether it adds a number that is known before anything runs, once for the wave, each time."""
        return self.kind in ("count", "sum", "avg") and not self.keys and not self.conditions and all(
            part.value is not None and part.value.level is Level.SITE for part in self.arguments)

    def sites(self, found: Iterable[Site]) -> Iterator[Site]:
        """Where it is done: for each element that an instruction accesses, if it asks for addresses; for each line of a
        block, if it sums instructions by lines; for each opcode of a dual instruction, if that is a key."""
        if VALUES["addr"] in self.values:
            return (each for site in found for each in site.elements)
        keys = {value.name for _, value in self.fixed}
        if "opcode" in keys:
            return (each for site in found for each in site.halves)
        lines = {"line", "file"} & {*keys, *(value.name for value in self.values)}
        sums = any(value.name == "instructions" for part in self.arguments for value in part.all)
        if lines and sums and self.kind not in RECORDING:
            return (each for site in found for each in site.parts)
        return iter(found)

    @property
    def waits(self) -> bool:
        """Whether it is about what an instruction leaves."""
        return any(value.behind for part in self.parts for value in part.all)


@dataclass(frozen=True, slots=True)
class Probe:
    """``where``: a filter, at instructions."""

    head: str
    where: str
    actions: tuple[Action, ...]


def probe_of(text: ScriptText, read: ReadProbe, numbers: Iterator[int], named: dict[str, Action]) -> Probe:
    """``named``: actions by names of tables so far, which gets those of this probe."""
    checker = _Checker(text, read.head, numbers, named)
    conditions = () if read.condition is None else (checker.expressions.condition(read.condition),)
    if read.head == "launch":
        conditions = (checker.expressions.condition(_FIRST_WAVE), *conditions)
    return Probe(read.head, _filter(text, read.where), tuple(checker.block(read.body, conditions)))


def _filter(text: ScriptText, where: ast.Constant | None) -> str:
    """A text with a wildcard or an underscore, and nothing else, is an opcode."""
    if where is None:
        return ""
    found = str(where.value).strip()
    is_opcode = found not in {*WORDS, *TEXTS} and all(c.isalnum() or c in "_*?[]-" for c in found) and (
        "_" in found or "*" in found)
    try:
        return parse_filter(f"opcode = {found}" if is_opcode else found).text
    except Invalid as error:
        text.refuse(where, error.message)


def _keeps_a_table(node: ast.expr) -> TypeGuard[ast.Call]:
    """Of `min` and `max`, which are functions of values, too, those of one value."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in AGGREGATIONS:
        return False
    return node.func.id not in ("min", "max") or len(node.args) == 1


class _Checker:
    """Statements of one probe."""

    def __init__(self, text: ScriptText, head: str, numbers: Iterator[int], named: dict[str, Action]) -> None:
        self.text, self.head, self.expressions, self.numbers = text, head, Expressions(text, head), numbers
        self.named = named

    def block(self, body: Sequence[ast.stmt], conditions: tuple[Typed, ...]) -> Iterator[Action]:
        for statement in body:
            if isinstance(statement, ast.If):
                test = self.expressions.condition(statement.test)
                yield from self.block(statement.body, (*conditions, test))
                other = self.expressions.made(ast.UnaryOp(ast.Not(), test.node), Kind.CONDITION, test)
                yield from self.block(statement.orelse, (*conditions, other))
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(
                    statement.targets[0], ast.Name):
                yield from self.assigned(statement, statement.targets[0].id, conditions)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                yield self.action(statement.value, conditions)
            else:
                self.text.refuse(statement, f"here should be what to do: {', '.join(ACTIONS)}; or NAME = value, or if")

    def assigned(self, statement: ast.Assign, name: str, conditions: tuple[Typed, ...]) -> Iterator[Action]:
        """A name for a value in this probe, or for the table of an action, at `end`."""
        if not _keeps_a_table(statement.value):
            self.expressions.names[name] = self.expressions.typed(statement.value)
            return
        if name in self.named:
            self.text.refuse(statement, f"there is a table {name} already; give this one another name")
        found = replace(self.action(statement.value, conditions), name=name, text=self.text.of(statement))
        self.named[name] = found
        yield found

    def action(self, node: ast.Call, conditions: tuple[Typed, ...]) -> Action:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in ACTIONS:
            self.text.suggest(node, name, ACTIONS, "action")
        keywords = {str(each.arg): each for each in node.keywords}
        allowed = ("where",) if name in RECORDING else ("by", "where", "keys")
        for keyword in node.keywords:
            if keyword.arg not in allowed:
                self.text.suggest(keyword, str(keyword.arg), allowed, f"argument of {name}")
        if "where" in keywords:
            conditions = (*conditions, self.expressions.condition(keywords["where"].value))
        made = self.recording if name in RECORDING else self.aggregation
        found = made(node, name, conditions, keywords)
        if found.waits and self.head == "before":
            self.text.refuse(node, "dst is there after the instruction only; use on or after")
        return found

    def aggregation(
        self, node: ast.Call, name: str, conditions: tuple[Typed, ...], keywords: dict[str, ast.keyword]
    ) -> Action:
        wanted, args = AGGREGATIONS[name].arguments, list(node.args)
        if len(args) != wanted:
            shape = {"top": "(10, addr)", "quantize": "(x, 16)", "count": "()"}.get(name, "(x)")
            self.text.refuse(node, f"{name} takes {wanted or 'no'} value{'s' * (wanted != 1)}, as in {name}{shape}; "
                                   f"{len(args)} given")
        keys = list(self.key_nodes(keywords))
        detail: Any = None
        if name == "top":
            detail, keys = self.literal(args.pop(0), "how many"), [*keys, args.pop(0)]
        elif name == "quantize":
            detail = self.literal(args.pop(1), "the step of its buckets", (int, float))
        arguments = tuple(map(self.expressions.number, args))
        if isinstance(detail, float):
            arguments = tuple(map(self.expressions.float_of, arguments))
        fixed, others = list[tuple[str, Value]](), list[tuple[str, Typed]]()
        for key in keys:
            typed = self.expressions.typed(key)
            if typed.value is not None and typed.value.level is Level.SITE:
                fixed.append((self.text.of(key), typed.value))
            else:
                others.append((self.text.of(key), self.expressions.integer(key)))
        slots = self.literal(keywords["keys"].value, "how many keys have room") if "keys" in keywords else _SLOTS
        if slots & (slots - 1):
            self.text.refuse(keywords["keys"].value, "give a power of two")
        columns = tuple(self.text.of(key) for key in keys)
        return Action(next(self.numbers), name, self.text.of(node), node.lineno, arguments, conditions, tuple(fixed),
                      tuple(others), columns, detail, slots)

    def key_nodes(self, keywords: dict[str, ast.keyword]) -> Sequence[ast.expr]:
        if "by" not in keywords:
            return ()
        node = keywords["by"].value
        return node.elts if isinstance(node, ast.Tuple) else (node,)

    def literal(self, node: ast.expr, what: str, kinds: tuple[type, ...] = (int,)) -> Any:
        value: Any = node.value if isinstance(node, ast.Constant) else None
        if type(value) not in kinds or not 0 < value < 1 << 63:
            whole = "" if float in kinds else "whole "
            self.text.refuse(node, f"this is {what}, and must be a {whole}number above 0 and below 2^63")
        return value

    def recording(
        self, node: ast.Call, name: str, conditions: tuple[Typed, ...], keywords: dict[str, ast.keyword]
    ) -> Action:
        args, detail = list(node.args), None
        if name == "printf":
            if not args or not isinstance(args[0], ast.Constant) or not isinstance(args[0].value, str):
                self.text.refuse(node, 'printf takes a text first, as in printf("%d of %d", lane, active)')
            detail = args.pop(0).value  # type: ignore[attr-defined]
        elif not args:
            self.text.refuse(node, "trace takes what is to be traced, as in trace(addr, bytes)")
        found = tuple(map(self.expressions.typed, args))
        values = tuple(self.expressions.integer_of(each) if each.kind is Kind.CONDITION else each for each in found)
        if detail is not None:
            samples = {Kind.TEXT: "", Kind.INTEGER: 1, Kind.FLOAT: 1.0}
            try:
                detail % tuple(samples[each.kind] for each in values)
            except (TypeError, ValueError) as error:
                self.text.refuse(node.args[0], f"these values cannot be printed so: {error}")
        return Action(next(self.numbers), name, self.text.of(node), node.lineno, values, conditions,
                      columns=tuple(map(self.text.of, args)), detail=detail)
