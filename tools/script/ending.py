"""`begin` and `end`: what is printed before anything runs, and of all launches together when a run is over.

In: statements, and actions by the names that probes gave their tables. Out: Printed. Invariant: tables in one line or
one expression have the same keys, or none; that is checked when the script is read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .actions import Action
from .reading import ReadProbe, ScriptText
from .shown import cell, numbers_text
from .whole import (
    EACH,
    OPERATORS,
    OVER_ROWS,
    Column,
    column_of,
    columns_of,
    greatest,
    joined,
    keys_of,
    places,
    single,
)

Tables = Mapping[str, Mapping[str, Any]]
"""Of a report, by name."""
_STATEMENTS = 'print("TEXT", x, ...), printf("FORMAT", x, ...), or NAME = value'


@dataclass(frozen=True, slots=True)
class Made:
    """``of``: the column, once there are tables. ``keys``: of its rows."""

    keys: tuple[str, ...]
    of: Callable[[Tables], Column]


@dataclass(frozen=True, slots=True)
class Printed:
    """A line, or where a part has keys a table below the texts. ``form``: of printf."""

    parts: Sequence[str | Made]
    titles: Sequence[str]
    form: str | None = None

    def lines(self, tables: Tables) -> Iterator[str]:
        parts = [part if isinstance(part, str) else part.of(tables) for part in self.parts]
        columns = {title: part for title, part in zip(self.titles, parts, strict=True) if not isinstance(part, str)}
        keys = next((column.keys for column in columns.values() if column.keys), ())
        if self.form is not None:
            numbers = [part.at(()) for part in parts if not isinstance(part, str)]
            yield from self.formatted(numbers).rstrip("\n").split("\n")
            return
        if not keys:
            yield " ".join(part if isinstance(part, str) else cell(part.at(())) for part in parts)
            return
        yield from filter(None, [" ".join(part for part in parts if isinstance(part, str))])
        rows = [{**dict(zip(keys, key, strict=True)), **{title: column.at(key) for title, column in columns.items()}}
                for key in places(list(columns.values()))]
        yield from numbers_text(keys, rows) if rows else ["    nothing"]

    def formatted(self, numbers: Sequence[int | float | None]) -> str:
        try:
            return str(self.form) % tuple(numbers)
        except (TypeError, ValueError, OverflowError):  # of nothing there is no number, nor one that %d can show
            told = ", ".join(f"{title} is {cell(number) or 'nothing'}"
                             for title, number in zip(self.titles, numbers, strict=True))
            return f"{self.form!r} cannot show this: {told}"


def printed(text: ScriptText, probe: ReadProbe, named: Mapping[str, Action]) -> tuple[Printed, ...]:
    """``named``: actions whose tables there are. Misread where a statement is none of these."""
    if probe.condition is not None:
        text.refuse(probe.condition, f"{probe.head} happens once, and takes no condition")
    return tuple(_Checker(text, named).statements(probe.body))


class _Checker:
    """Statements of one probe (mutable: ``names`` grows by what they assign)."""

    def __init__(self, text: ScriptText, named: Mapping[str, Action]) -> None:
        self.text, self.named, self.names = text, named, dict[str, Made]()

    def statements(self, body: Sequence[ast.stmt]) -> Iterator[Printed]:
        for statement in body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(
                    statement.targets[0], ast.Name):
                self.names[statement.targets[0].id] = self.made(statement.value)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                yield self.printed(statement.value)
            else:
                self.text.refuse(statement, f"here should be what to print: {_STATEMENTS}")

    def printed(self, node: ast.Call) -> Printed:
        name, args = ast.unparse(node.func), list(node.args)
        if name not in ("print", "printf"):
            self.text.suggest(node, name, ("print", "printf"), "action")
        if node.keywords:
            self.text.refuse(node.keywords[0], f"{name} takes values alone")
        form = self.form(node, args.pop(0) if args else node) if name == "printf" else None
        parts = [arg.value if isinstance(arg, ast.Constant) and isinstance(arg.value, str) else self.made(arg)
                 for arg in args]
        made = [(arg, part) for arg, part in zip(args, parts, strict=True) if isinstance(part, Made)]
        keys = next((part.keys for _, part in made if part.keys), ())
        for arg, part in made:
            if part.keys:
                self.check_alike(arg, keys, part.keys)
            if self.text.of(arg) in keys:
                self.text.refuse(arg, "the rows have a key of that name; give this another one")
        found = Printed(parts, tuple(map(self.text.of, args)), form)
        if form is not None:
            self.check_form(node, found)
        return found

    def form(self, node: ast.Call, first: ast.expr) -> str:
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            self.text.refuse(node, 'printf takes a text first, as in printf("%d of %d", hits, all)')
        return first.value

    def check_form(self, node: ast.Call, found: Printed) -> None:
        try:
            if any(not isinstance(part, Made) or part.keys for part in found.parts):
                raise ValueError("printf takes single numbers; print shows tables")
            str(found.form) % tuple(1 for _ in found.parts)
        except (TypeError, ValueError) as error:
            self.text.refuse(node.args[0], f"these values cannot be printed so: {error}")

    def check_alike(self, node: ast.AST, keys: tuple[str, ...], others: tuple[str, ...]) -> None:
        if keys != others:
            have, has = (f"({', '.join(each)})" for each in (keys, others))
            self.text.refuse(node, f"its rows have the keys {has}, and those before it {have}: none can stand beside "
                                   "each other; sum(...) makes one number of a table")

    # -- expressions -----------------------------------------------------------------------------------

    def made(self, node: ast.expr) -> Made:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            number = single(node.value)  # type: ignore[arg-type]
            return Made((), lambda tables: number)
        if isinstance(node, ast.Name):
            return self.names[node.id] if node.id in self.names else self.table(node, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self.table(node, node.value.id, node.attr)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.joined(node, lambda a: -a, node.operand)
        if isinstance(node, ast.BinOp) and type(node.op).__name__ in OPERATORS:
            return self.joined(node, OPERATORS[type(node.op).__name__], node.left, node.right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self.call(node, node.func.id, node.args)
        self.text.refuse(node, "this is no expression of begin and end; they have numbers, names of tables, + - * / // "
                               f"%, {', '.join((*EACH, *OVER_ROWS))} and top(N, x)")

    def table(self, node: ast.expr, name: str, column: str = "") -> Made:
        if name not in self.named:
            if not self.named and not self.names:
                self.text.refuse(node, f"there is no table {name}; at end there is, if it was named: "
                                       f"{name} = count(by=line)")
            self.text.suggest(node, name, [*self.named, *self.names], "table")
        action = self.named[name]
        if column and column not in columns_of(action):
            self.text.suggest(node, column, columns_of(action), f"column of {name}")
        return Made(keys_of(action), lambda tables: column_of(action, tables[name], column))

    def joined(self, node: ast.expr, how: Callable[..., int | float], *operands: ast.expr) -> Made:
        parts = list(map(self.made, operands))
        keyed = [part.keys for part in parts if part.keys]
        for keys in keyed[1:]:
            self.check_alike(node, keyed[0], keys)
        return Made(keyed[0] if keyed else (), lambda tables: joined(how, *(part.of(tables) for part in parts)))

    def call(self, node: ast.Call, name: str, args: Sequence[ast.expr]) -> Made:
        if name not in (*EACH, *OVER_ROWS, "top"):
            self.text.suggest(node, name, (*EACH, *OVER_ROWS, "top"), "function")
        wanted = 2 if name == "top" else 1
        if len(args) != wanted:
            self.text.refuse(node, f"{name} takes {wanted} argument{'s' * (wanted > 1)}, {len(args)} given")
        if name in EACH:
            return self.joined(node, EACH[name], args[0])
        part = self.made(args[-1])
        if name in OVER_ROWS:
            return Made((), lambda tables: OVER_ROWS[name](part.of(tables)))
        most = args[0].value if isinstance(args[0], ast.Constant) else None
        if type(most) is not int or most < 1 or not part.keys:
            self.text.refuse(node, "top takes how many rows, and a table with keys, as in top(10, misses / all)")
        return replace(part, of=lambda tables: greatest(most, part.of(tables)))
