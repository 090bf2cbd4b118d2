"""Expressions of a script, checked, and as device Python.

In: an expression of Python, and the probe that it is in. Out: Typed: a tree that means the same in a hook, with every
conversion written out. Invariant: integers are 64 bits, with a sign, and wrap; floats are doubles; conditions are
conditions. What is neither listed here nor in `values` is refused, with its place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import Any

from luthier_py import bool_, f16, f32, f64, i32, i64, u16, u32, u64
from luthier_py.intrinsics import clock, from_bits, lane_id, popcount

from . import device
from .reading import AT_INSTRUCTIONS, ScriptText
from .values import VALUES, Level, Value, operand, width_up_to

Refs = frozenset[Value]
NO_REFS: Refs = frozenset()
AROUND: Mapping[str, object] = {
    **{str(type): type for type in (bool_, f16, f32, f64, i32, i64, u16, u32, u64)},
    "clock": clock, "from_bits": from_bits, "lane_id": lane_id, "popcount": popcount, "abs": abs, "min": min,
    "max": max, **{name: getattr(device, name) for name in (
        "distinct", "most", "segments", "lanes", "first", "isnan", "isinf", "row_of")},
}  # fmt: skip
"""What names in hooks of scripts stand for."""
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_INTEGER_OPERATORS = (ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
OPERANDS = ("src0", "src1", "src2", "data", "dst")
_READINGS: Mapping[str, tuple[int, bool]] = {
    "u32": (1, False), "i32": (1, False), "f32": (1, True), "f16": (1, True), "f64": (2, True), "u64": (2, False),
}
"""How an operand's bits may be read: dwords that it must have, and whether that is a float."""
_SEGMENT = range(4, 13)  # of which sizes there are, as powers of two


class Kind(Enum):
    INTEGER = "an integer"
    FLOAT = "a float"
    CONDITION = "a condition"
    TEXT = "a text"


@dataclass(frozen=True, slots=True)
class Typed:
    """``open``: values that it is made of as lanes have them; ``all``: those of functions of all lanes, too."""

    node: ast.expr
    kind: Kind
    open: Refs = NO_REFS
    all: Refs = NO_REFS
    value: Value | None = None
    """It is this one, and nothing else."""
    asked: tuple[tuple[str, ast.expr], ...] = ()
    """What functions of all lanes give, by names that ``node`` has for it: computed first, while all lanes are
    active."""

    @property
    def may_be_of_lanes(self) -> bool:
        return any(ref.level in (Level.LANE, Level.INSTRUCTION) for ref in self.open)


def asked_by(parts: Iterable[Typed]) -> tuple[tuple[str, ast.expr], ...]:
    """What any of them asks all lanes, each once."""
    return tuple({name: (name, node) for part in parts for name, node in part.asked}.values())


def called(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def constant(value: int | float) -> ast.expr:
    return called("f64" if isinstance(value, float) else "i64", ast.Constant(value))


class Expressions:
    """Of one probe (mutable: ``names`` grows by what it assigns, ``asked`` counts calls of functions of all
    lanes)."""

    def __init__(self, text: ScriptText, head: str) -> None:
        self.text, self.head = text, head
        self.names: dict[str, Typed] = {}
        self.asked = 0

    def typed(self, node: ast.expr) -> Typed:
        handler = _HANDLERS.get(type(node))
        if handler is None:
            self.text.refuse(node, "this is no expression of scripts; they have numbers, names, operators, "
                                   "comparisons, `a if c else b` and calls")
        return handler(self, node)

    def number(self, node: ast.expr) -> Typed:
        """An integer or a float; a condition is 1 or 0."""
        found = self.typed(node)
        if found.kind is Kind.TEXT:
            self.text.refuse(node, f"{self.text.of(node)} is a text; it can be a key, or be traced or printed")
        return self.integer_of(found) if found.kind is Kind.CONDITION else found

    def integer(self, node: ast.expr) -> Typed:
        found = self.number(node)
        if found.kind is Kind.FLOAT:
            self.text.refuse(node, f"{self.text.of(node)} is a float, and must be an integer here; int(...) cuts it")
        return found

    def condition(self, node: ast.expr) -> Typed:
        found = self.typed(node)
        if found.kind is Kind.CONDITION:
            return found
        number = self.number(node)
        zero = constant(0.0 if number.kind is Kind.FLOAT else 0)
        return self.made(ast.Compare(number.node, [ast.NotEq()], [zero]), Kind.CONDITION, number)

    def made(self, node: ast.expr, kind: Kind, *parts: Typed) -> Typed:
        return Typed(node, kind, NO_REFS.union(*(part.open for part in parts)),
                     NO_REFS.union(*(part.all for part in parts)), asked=asked_by(parts))

    def integer_of(self, found: Typed) -> Typed:
        return self.made(called("i64", found.node), Kind.INTEGER, found)

    def float_of(self, found: Typed) -> Typed:
        return found if found.kind is Kind.FLOAT else self.made(called("f64", found.node), Kind.FLOAT, found)

    def alike(self, nodes: Sequence[ast.expr]) -> list[Typed]:
        """Numbers of one kind."""
        found = [self.number(node) for node in nodes]
        return list(map(self.float_of, found)) if any(each.kind is Kind.FLOAT for each in found) else found

    # -- leaves --------------------------------------------------------------------------------------

    def literal(self, node: ast.Constant) -> Typed:
        value = node.value
        if isinstance(value, bool):
            return Typed(called("bool_", ast.Constant(value)), Kind.CONDITION)
        if isinstance(value, int) and not 0 <= value < 1 << 63:
            self.text.refuse(node, "this does not fit into an integer, which has 64 bits and a sign")
        if not isinstance(value, (int, float)) or not isfinite(value):
            self.text.refuse(node, "only finite numbers can be worked with; a text is what on() and printf() take")
        return Typed(constant(value), Kind.FLOAT if isinstance(value, float) else Kind.INTEGER)

    def name(self, node: ast.Name) -> Typed:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in OPERANDS:
            return self.operand(node)
        return self.value(node, node.id)

    def value(self, node: ast.expr, name: str) -> Typed:
        if name not in VALUES:
            known = [*VALUES, *OPERANDS, *self.names]
            if name in _FUNCTIONS:
                self.text.refuse(node, f"{name} is a function; write {name}(...)")
            self.text.suggest(node, name, known, "value")
        value = VALUES[name]
        if self.head not in value.heads:
            self.text.refuse(node, f"{name} is not there at {self.head}; it is at {', '.join(value.heads)}")
        refs = frozenset([value])
        if value.text:
            return Typed(ast.Constant(None), Kind.TEXT, refs, refs, value)
        own: ast.expr = ast.Name(value.name, ast.Load())
        if value.give is None:
            own = called({"lane": "lane_id", "clock": "clock"}[value.name])
        if name == "active":
            own = called("popcount", own)
        return Typed(called("i64", own), Kind.INTEGER, refs, refs, value if name != "active" else None)

    def attribute(self, node: ast.Attribute) -> Typed:
        return self.value(node, ast.unparse(node))

    def subscript(self, node: ast.Subscript) -> Typed:
        if not isinstance(node.value, ast.Name) or node.value.id != "op":
            self.text.refuse(node, "only operands have numbers, op[0], or the manuals' names, op['vdata']")
        return self.operand(node)

    # -- operands --------------------------------------------------------------------------------------

    def operand(self, node: ast.expr, dword: int | None = None, dwords: int | None = None) -> Typed:
        """Of the instruction: its bits as a number without a sign."""
        if self.head not in AT_INSTRUCTIONS:
            self.text.refuse(node, f"only instructions have operands: {', '.join(AT_INSTRUCTIONS)}; not {self.head}")
        which: int | str
        if isinstance(node, ast.Name):
            which = 0 if node.id == "dst" else node.id
        else:
            assert isinstance(node, ast.Subscript)
            if not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, (int, str)):
                self.text.refuse(node, 'op takes a number or a name, as in op[0] and op["vdata"]')
            which = node.slice.value
        value = operand(which, isinstance(node, ast.Name) and node.id == "dst", dword, dwords)
        refs = frozenset([value])
        return Typed(called("i64", ast.Name(value.name, ast.Load())), Kind.INTEGER, refs, refs, value)

    def is_operand(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in OPERANDS and node.id not in self.names
        return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "op"

    # -- operators -------------------------------------------------------------------------------------

    def binary(self, node: ast.BinOp) -> Typed:
        if isinstance(node.op, _INTEGER_OPERATORS):
            left, right = self.integer(node.left), self.integer(node.right)
        elif isinstance(node.op, _OPERATORS):
            left, right = self.alike([node.left, node.right])
            if isinstance(node.op, ast.Div):
                left, right = self.float_of(left), self.float_of(right)
        else:
            self.text.refuse(node, "this operator is not there; there are + - * / // % & | ^ << >>")
        return self.made(ast.BinOp(left.node, node.op, right.node), left.kind, left, right)

    def unary(self, node: ast.UnaryOp) -> Typed:
        if isinstance(node.op, ast.Not):
            found = self.condition(node.operand)
            return self.made(ast.UnaryOp(node.op, found.node), Kind.CONDITION, found)
        found = self.integer(node.operand) if isinstance(node.op, ast.Invert) else self.number(node.operand)
        return self.made(ast.UnaryOp(node.op, found.node), found.kind, found)

    def compare(self, node: ast.Compare) -> Typed:
        if not all(isinstance(op, _COMPARISONS) for op in node.ops):
            self.text.refuse(node, "this comparison is not there; there are == != < <= > >=")
        parts = self.alike([node.left, *node.comparators])
        tree = ast.Compare(parts[0].node, node.ops, [part.node for part in parts[1:]])
        return self.made(tree, Kind.CONDITION, *parts)

    def boolean(self, node: ast.BoolOp) -> Typed:
        parts = list(map(self.condition, node.values))
        return self.made(ast.BoolOp(node.op, [part.node for part in parts]), Kind.CONDITION, *parts)

    def choose(self, node: ast.IfExp) -> Typed:
        return self.chosen([node.test, node.body, node.orelse])

    def chosen(self, nodes: Sequence[ast.expr]) -> Typed:
        test, (yes, no) = self.condition(nodes[0]), self.alike(nodes[1:])
        return self.made(ast.IfExp(test.node, yes.node, no.node), yes.kind, test, yes, no)

    # -- calls -----------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Typed:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name in _READINGS:
            return self.read(node, name)
        if name not in _FUNCTIONS:
            self.text.suggest(node, name, [*_FUNCTIONS, *_READINGS], "function")
        fewest, most, how = _FUNCTIONS[name]
        if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args) or not (
                fewest <= len(node.args) <= (most or len(node.args))):
            count = f"{fewest} arguments{'' if most else ' or more'}" if fewest != 1 else "one argument"
            self.text.refuse(node, f"{name} takes {count}, {len(node.args) + len(node.keywords)} given")
        return how(self, node.args, name)

    def read(self, node: ast.Call, name: str) -> Typed:
        """The bits of an operand, or of a dword of one, as a number."""
        dwords, is_float = _READINGS[name]
        arg = node.args[0] if len(node.args) == 1 and not node.keywords else node
        part = isinstance(arg, ast.Call) and isinstance(arg.func, ast.Name) and arg.func.id == "dword"
        if not part and not self.is_operand(arg):
            self.text.refuse(arg, f"{name} reads the bits of an operand, as in {name}(src0) or {name}(dst); int(...) "
                                  "and float(...) convert numbers")
        if part and dwords != 1:
            self.text.refuse(arg, f"{name} has two dwords, and this is one")
        found = self.typed(arg) if part else self.operand(arg, None, dwords)
        assert found.value is not None
        own: ast.expr = ast.Name(found.value.name, ast.Load())
        if name == "f16":
            own = called("from_bits", called("u16", own))
        elif is_float:
            own = called("from_bits", own)
        elif name == "i32":
            own = called("i32", own)
        return Typed(called("f64" if is_float else "i64", own), Kind.FLOAT if is_float else Kind.INTEGER, found.open,
                     found.all, found.value)

    def dword(self, args: Sequence[ast.expr], name: str) -> Typed:
        number = args[1].value if isinstance(args[1], ast.Constant) else None
        if not self.is_operand(args[0]) or type(number) is not int:
            self.text.refuse(args[0], "dword takes an operand and a number, as in dword(data, 1)")
        return self.operand(args[0], number)

    def extreme(self, args: Sequence[ast.expr], name: str) -> Typed:
        parts = self.alike(args)
        return self.made(called(name, *(part.node for part in parts)), parts[0].kind, *parts)

    def absolute(self, args: Sequence[ast.expr], name: str) -> Typed:
        found = self.number(args[0])
        return self.made(called("abs", found.node), found.kind, found)

    def bits(self, args: Sequence[ast.expr], name: str) -> Typed:
        found = self.integer(args[0])
        return self.integer_of(self.made(called("popcount", called("u64", found.node)), Kind.INTEGER, found))

    def of_float(self, args: Sequence[ast.expr], name: str) -> Typed:
        found = self.float_of(self.number(args[0]))
        return self.made(called(name, found.node), Kind.CONDITION, found)

    def converted(self, args: Sequence[ast.expr], name: str) -> Typed:
        found = self.number(args[0])
        if name == "float":
            return self.float_of(found)
        return self.integer_of(found) if found.kind is Kind.FLOAT else found

    def where(self, args: Sequence[ast.expr], name: str) -> Typed:
        return self.chosen(args)

    # -- functions of all lanes ------------------------------------------------------------------------

    def of_all_lanes(self, args: Sequence[ast.expr], name: str) -> Typed:
        found = self.condition(args[0]) if name == "lanes" else self.integer(args[0])
        return self.closed(args[0], name, found)

    def closed(self, node: ast.expr, name: str, found: Typed, *more: ast.expr) -> Typed:
        """One for the wave."""
        if not found.may_be_of_lanes:
            self.text.refuse(node, f"{name} is about what lanes differ in; {self.text.of(node)} is one for the wave")
        own = f"of_lanes{self.asked}"
        self.asked += 1
        asked = (own, called("i64", called(name, found.node, *more)))
        return Typed(ast.Name(own, ast.Load()), Kind.INTEGER, NO_REFS, found.all, asked=(*found.asked, asked))

    def segments(self, args: Sequence[ast.expr], name: str) -> Typed:
        size = args[1].value if isinstance(args[1], ast.Constant) else None
        if type(size) is not int or size not in (1 << shift for shift in _SEGMENT):
            sizes = f"{1 << _SEGMENT[0]}, {2 << _SEGMENT[0]} ... {1 << _SEGMENT[-1]}"
            self.text.refuse(args[1], f"segments takes an address and their size in bytes, a number: {sizes}")
        at = self.integer(args[0])
        if self.head not in AT_INSTRUCTIONS:
            self.text.refuse(args[0], f"segments are what an instruction accesses; there is none at {self.head}")
        width = width_up_to(size)
        found = self.made(at.node, Kind.INTEGER, at, Typed(at.node, Kind.INTEGER, all=frozenset([width])))
        return self.closed(args[0], name, found, ast.Name(width.name, ast.Load()),
                           ast.Constant(size.bit_length() - 1))


_HANDLERS: Mapping[type[ast.expr], Callable[[Expressions, Any], Typed]] = {
    ast.Constant: Expressions.literal, ast.Name: Expressions.name, ast.Attribute: Expressions.attribute,
    ast.Subscript: Expressions.subscript, ast.BinOp: Expressions.binary, ast.UnaryOp: Expressions.unary,
    ast.Compare: Expressions.compare, ast.BoolOp: Expressions.boolean, ast.IfExp: Expressions.choose,
    ast.Call: Expressions.call,
}
_FUNCTIONS: Mapping[str, tuple[int, int, Callable[[Expressions, Sequence[ast.expr], str], Typed]]] = {
    "segments": (2, 2, Expressions.segments), "distinct": (1, 1, Expressions.of_all_lanes),
    "most": (1, 1, Expressions.of_all_lanes), "lanes": (1, 1, Expressions.of_all_lanes),
    "first": (1, 1, Expressions.of_all_lanes), "popcount": (1, 1, Expressions.bits),
    "abs": (1, 1, Expressions.absolute), "min": (2, 0, Expressions.extreme), "max": (2, 0, Expressions.extreme),
    "where": (3, 3, Expressions.where), "isnan": (1, 1, Expressions.of_float), "isinf": (1, 1, Expressions.of_float),
    "int": (1, 1, Expressions.converted), "float": (1, 1, Expressions.converted), "dword": (2, 2, Expressions.dword),
}
"""By name: fewest arguments, most (0: any number), and what is made of them."""
