"""The hook that does an action at a site, as a syntax tree of device Python.

In: an Action, a Site. Out: a Hook, and what it is given there. Invariant: functions of all lanes are called first,
while all are active; then conditions, and what is done. Sites that give values of the same types share a hook.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from luthier_py import ptr, u64
from luthier_py.intrinsics import atomic_add, is_first_lane, push
from luthier_py.rewrite.tool import F64, I64, U64, Hook, Parameter, Pointer, Signature
from luthier_py.rewrite.tool.hooks.generated import build_function
from luthier_py.rewrite.tool.hooks.hook import make_hook
from luthier_py.rewrite.tool.records.channel import RecordType, channel_type

from . import device
from .actions import COMMON, Action
from .expressions import AROUND, Kind, asked_by, called, constant
from .sites import Site
from .tables import AGGREGATIONS, LINEAR, Layout
from .values import given

_UPDATES = {each for found in AGGREGATIONS.values() for each in (found.update, found.update_float) if each}
_AROUND = {
    **AROUND, "u64": u64, "ptr": ptr, "is_first_lane": is_first_lane, "atomic_add": atomic_add, "push": push,
    "NO_ROW": device.NO_ROW, **{f"update_{name}": getattr(device, name) for name in _UPDATES},
}  # fmt: skip


def record_of(action: Action) -> type:
    """What a record of it holds: where it was, and what is not known before it runs."""
    kinds = {Kind.INTEGER: I64, Kind.FLOAT: F64}
    fields = {name: kinds[each.kind] for name, each in zip(action.fields, action.arguments, strict=True)
              if each.kind is not Kind.TEXT}
    return type(f"Record{action.number}", (), {"__annotations__": {**COMMON, **fields}})


class Hooks:
    """Mutable: those of one script that are made already, by what they are given."""

    def __init__(self) -> None:
        self.known: dict[tuple[object, ...], Hook] = {}

    def at(self, action: Action, site: Site, record: RecordType | None) -> tuple[Hook, list[Any]]:
        """The hook that does an action, and what it is given of the site; HookError where that is not there.
        ``record``: what it pushes, if it keeps no table."""
        values = [given(value, site) for value in action.values if not (record and value.name in COMMON)]
        own = any(value.of_lanes(site) for part in action.parts for value in part.open)
        asks = any(value.of_lanes(site) for part in action.parts for value in part.all)
        key = (action.number, own, asks, *(each.parameter for each in values))
        if key not in self.known:
            self.known[key] = _made(action, [each.parameter for each in values], own, asks, record)
        return self.known[key], [each.argument for each in values]


def _made(
    action: Action, parameters: Sequence[Parameter], own: bool, asks: bool, record: RecordType | None
) -> Hook:
    """``own``: it is done in each lane; ``asks``: lanes have values of anything in it."""
    if record is not None:
        first, body = [Parameter("out", channel_type(record), False), Parameter("pc", U64, False)], _pushed(action)
    else:
        first, body = [Parameter(name, Pointer(U64), False) for name in ("lost", "row")], _updated(action)
    if asks and not own:
        body = [ast.If(called("is_first_lane"), body, [])]
    asked = [ast.Assign([_name(name, ast.Store())], node) for name, node in asked_by(action.parts)]
    everything = (*first, *parameters)
    function = build_function(f"{action.kind}_{action.number}", [each.name for each in everything],
                       [*asked, *_guarded(action, body)], _AROUND, f"script:{action.line}")
    return make_hook(function, "active" if asks else "one", Signature(everything, ()), None)


def _guarded(action: Action, body: list[ast.stmt]) -> list[ast.stmt]:
    for condition in reversed(action.conditions):
        body = [ast.If(condition.node, body, [])]
    return body


def _pushed(action: Action) -> list[ast.stmt]:
    values = [each.node for each in action.arguments if each.kind is not Kind.TEXT]
    return [ast.Expr(called("push", _name("out"), _name("pc"), *values))]


def _updated(action: Action) -> list[ast.stmt]:
    aggregation = AGGREGATIONS[action.kind]
    update = aggregation.update_float if action.is_of_floats else aggregation.update
    more: list[ast.expr] = []
    if action.kind == "quantize":
        more = [constant(float(action.detail) if action.is_of_floats else action.detail), constant(LINEAR)]
    values = [each.node for each in action.arguments]

    def into(row: ast.expr) -> ast.stmt:
        return ast.Expr(called(f"update_{update}", row, *values, *more))

    if not action.keys:
        return [into(_name("row"))]
    layout, lost = action.layout, ast.Expr(called("atomic_add", _name("lost"), called("u64", ast.Constant(1))))
    first = ast.BinOp(_name("row"), ast.Add(), ast.Constant(layout.slots))
    words = ast.BinOp(called("u64", _name("at")), ast.Mult(), ast.Constant(layout.words))
    body: list[ast.stmt] = [
        *(ast.Assign([_name(f"key{n}", ast.Store())], typed.node) for n, (_, typed) in enumerate(action.keys)),
        ast.Assign([_name("at", ast.Store())], called("row_of", _name("row"), _packed(layout),
                                                      called("u32", ast.Constant(layout.slots - 1)))),
        ast.If(ast.Compare(_name("at"), [ast.NotEq()], [_name("NO_ROW")]),
               [into(ast.BinOp(first, ast.Add(), words))], [lost]),
    ]
    if layout.keys == 1:
        return body
    fits: list[ast.expr] = [
        ast.Compare(constant(0), [ast.LtE(), ast.Lt()], [_name(f"key{n}"), constant(1 << layout.bits)])
        for n in range(layout.keys)]
    return [*body[:-2], ast.If(ast.BoolOp(ast.And(), fits), body[-2:], [lost])]


def _packed(layout: Layout) -> ast.expr:
    """Several keys as one number."""
    found: ast.expr = _name("key0")
    for n in range(1, layout.keys):
        shifted = ast.BinOp(_name(f"key{n}"), ast.LShift(), ast.Constant(layout.bits * n))
        found = ast.BinOp(found, ast.BitOr(), shifted)
    return found


def _name(name: str, context: ast.expr_context | None = None) -> ast.Name:
    return ast.Name(name, context or ast.Load())
