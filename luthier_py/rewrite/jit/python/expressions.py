"""Expressions of device code, as LLVM IR.

In: syntax trees of one function and a Scope. Out: Operands: typed values, or Python numbers for literals. Invariant:
what is not named here is refused, with file and line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from luthier_py.base.errors import how_many
from luthier_py.base.records import replace
from luthier_py.rewrite.jit.python import arithmetic, mathematics, structures
from luthier_py.rewrite.jit.python.arrays import ElementAddress, element_of
from luthier_py.rewrite.jit.python.builder import Builder, IrBlock
from luthier_py.rewrite.jit.python.inline_assembly import inline_assembly
from luthier_py.rewrite.jit.python.lowering import Lowering
from luthier_py.rewrite.jit.python.source import MISSING
from luthier_py.rewrite.jit.python.suggestions import callable_names, suggest_call, suggest_math_function, suggest_value
from luthier_py.rewrite.jit.typed_scope import TypedScope
from luthier_py.rewrite.tool.hooks.hook import Device, Hook
from luthier_py.rewrite.tool.hooks.inline_assembly import EXAMPLE, asm
from luthier_py.rewrite.tool.hooks.intrinsic import Intrinsic, Operand, Result, Value
from luthier_py.rewrite.tool.hooks.types import BOOL, Pointer, Scalar, Struct, is_of_lanes

ALLOWED = ("allowed are numbers, names, + - * // % / << >> & | ^ ~, comparisons, and/or/not, `a if c else b`, "
           "pointer[i], and calls of types, @device functions, intrinsics, min, max and abs")


class Expressions(TypedScope):
    """Compiles expressions of the function in ``scope`` (mutable: writes to ``ir``)."""

    def inline(self, node: ast.Call, function: Device, args: Sequence[Operand]) -> tuple[Value, ...]:
        """Compile a call of a device function in place; statements know how."""
        raise NotImplementedError

    def lower_print(self, node: ast.Call) -> tuple[Operand, ...]:
        """Say something; statements know where to."""
        raise NotImplementedError

    # -- values ------------------------------------------------------------------------------------
    def expression(self, node: ast.expr) -> Operand:
        """One value; a call that yields nothing or several is refused."""
        found = self.values(node)
        if len(found) != 1:
            self.refuse(node, "one value is needed here; this gives " + (str(len(found)) if found else "none"))
        return found[0]

    def values(self, node: ast.expr) -> tuple[Operand, ...]:
        """The values of an expression: several for a tuple or a call, none for a call of a `-> None` function."""
        if isinstance(node, ast.Tuple):
            return tuple(self.expression(item) for item in node.elts)
        if isinstance(node, ast.Call):
            return self.call(node)
        handler = self.HANDLERS.get(type(node))
        if handler is None:
            self.refuse(node, f"`{_brief(node)}` is not allowed in device code; {ALLOWED}")
        with self.at(node):
            return (handler(self, node),)

    def lower_to_value(self, node: ast.expr) -> Value:
        """One value of LLVM's: constants of Python become one, too."""
        return arithmetic.materialise(self.expression(node))

    def literal(self, node: ast.Constant) -> Operand:
        """A number."""
        if isinstance(node.value, (bool, int, float)):
            return node.value
        self.refuse(node, f"{node.value!r} is not allowed in device code; only numbers are")

    def name(self, node: ast.Name) -> Operand:
        """A local, or a constant from around the function; refused where a local may have no value, or is an array."""
        scope = self.scope
        if node.id not in scope.source.local_names:
            return self.outside(node)
        if node.id in scope.arrays:
            self.refuse(node, f"{node.id} is an {scope.arrays[node.id]}; index it, or ask len({node.id})")
        if node.id not in scope.assigned:
            self.refuse(node, f"{node.id} may have no value here; assign it on every path before it is used")
        local = scope.locals[node.id]
        return self.ir.get(local.slot, local.type, self.lane(scope.key(node.id) in self.differs.keys))

    def outside(self, node: ast.expr) -> Operand:
        """A constant from around the function."""
        found = self.scope.source.constant(node)
        if isinstance(found, (bool, int, float)):
            return bool(found) if isinstance(found, bool) else float(found) if isinstance(found, float) else int(found)
        if found is MISSING:
            source = self.scope.source
            around = source.around()
            meant = suggest_value(node.id, around, source.local_names) if isinstance(node, ast.Name) else ""
            self.refuse(node, f"{_brief(node)} is unknown here; device code sees its parameters, its locals and "
                              f"constants of the module{meant}")
        self.refuse(node, f"{_brief(node)} is {type(found).__name__}; only int, float and bool constants can be read")

    def binary(self, node: ast.BinOp) -> Operand:
        """``a + b`` and its like."""
        return arithmetic.binary(self.ir, node.op, self.expression(node.left), self.expression(node.right))

    def unary(self, node: ast.UnaryOp) -> Operand:
        """``-a``, ``~a`` and ``not a``."""
        if isinstance(node.op, ast.Not):
            operand = self.expression(node.operand)
            if not isinstance(operand, Value):
                return not operand
            truth = arithmetic.truth(self.ir, operand)
            return self.ir.emit(BOOL, f"xor i1 {truth.text}, true", truth.lane)
        return arithmetic.unary(self.ir, node.op, self.expression(node.operand))

    def subscript(self, node: ast.Subscript) -> Operand:
        """``pointer[i]``, an element of an array, or a member of what lies there."""
        return self.load_from(self.element(node))

    def load_from(self, where: Value) -> Value:
        """What is there; of a local array what lanes differ in."""
        own = isinstance(where.type, ElementAddress) and self.scope.key(where.type.name) in self.differs.keys
        return self.ir.load(where, self.lane(where.lane or own or is_of_lanes(where.type)))

    def attribute(self, node: ast.Attribute) -> Operand:
        """A constant from around the function, or a member of a structure: only that is loaded of one in memory."""
        if self.scope.source.constant(node) is not MISSING or not self.has_local_root(node):
            return self.outside(node)
        if self.is_in_memory(node):
            return self.load_from(self.address(node))
        with self.at(node):
            return structures.member_of(self.ir, self.lower_to_value(node.value), node.attr)

    def has_local_root(self, node: ast.expr) -> bool:
        """Whether it begins with a value of the function, and not with a name around it."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return not isinstance(node, ast.Name) or node.id in self.scope.source.local_names

    def is_in_memory(self, node: ast.expr) -> bool:
        """Whether it is ``pointer[index]``, or a member of that."""
        return isinstance(node, ast.Subscript) or isinstance(node, ast.Attribute) and self.is_in_memory(node.value)

    def address(self, node: ast.expr) -> Value:
        """The address of ``pointer[index]``, or of a member of that."""
        if isinstance(node, ast.Subscript):
            return self.element(node)
        if not isinstance(node, ast.Attribute) or not self.has_local_root(node):
            self.refuse(node, "only names, pointer[i] and its members can be assigned in device code")
        if not self.is_in_memory(node):
            with self.at(node):
                structures.member_of(self.ir, self.lower_to_value(node.value), node.attr)  # other types have none
            self.refuse(node, f"`{_brief(node.value)}` is a value, of which no part changes; make another of "
                              "members")
        where = self.address(node.value)
        with self.at(node):
            return structures.member_address(self.ir, where, node.attr)

    def element(self, node: ast.Subscript) -> Value:
        """Address of ``pointer[index]``, or of an element of a local array."""
        if isinstance(node.value, ast.Name) and (array := self.scope.arrays.get(node.value.id)) is not None:
            if node.value.id not in self.scope.assigned:
                self.refuse(node, f"{node.value.id} may have no value here; make it on every path before it is used")
            with self.at(node):
                return element_of(self.ir, node.value.id, array, self.expression(node.slice))
        pointer = self.expression(node.value)
        if not isinstance(pointer, Value) or not isinstance(pointer.type, Pointer):
            self.refuse(node, f"`{_brief(node.value)}` is no pointer; only ptr[T], lds[T], scratch[T] can be indexed")
        if isinstance(node.slice, (ast.Slice, ast.Tuple)):
            self.refuse(node, "slices are not allowed in device code; index with one integer")
        index = self.expression(node.slice)
        with self.at(node):
            return arithmetic.element(self.ir, pointer, index)

    # -- conditions --------------------------------------------------------------------------------
    def compare(self, node: ast.Compare) -> Operand:
        """``a < b`` and its like; of several in a row each is computed when those before it hold."""
        if len(node.ops) > 1:
            return self.through_branches(node)
        left, right = self.expression(node.left), self.expression(node.comparators[0])
        return arithmetic.compare(self.ir, node.ops[0], left, right)

    def through_branches(self, node: ast.expr) -> Value:
        """A condition with several parts as a value."""
        ir, slot = self.ir, self.ir.alloca(BOOL)
        yes, no, done = ir.new_block("yes"), ir.new_block("no"), ir.new_block("done")
        lane = self.condition(node, yes, no)
        for block, text in ((yes, "true"), (no, "false")):
            ir.start(block)
            ir.put(slot, Value(BOOL, text, lane=False))
            ir.jump(done)
        ir.start(done)
        return ir.get(slot, BOOL, lane)

    def condition(self, node: ast.expr, yes: IrBlock, no: IrBlock) -> bool:
        """Go to ``yes`` or ``no``, evaluating no more than needed; whether lanes may go different ways."""
        ir = self.ir
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.condition(node.operand, no, yes)
        if isinstance(node, ast.BoolOp):
            return self.sequence(node.values, isinstance(node.op, ast.And), yes, no)
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return self.chain(node, yes, no)
        operand = self.expression(node)
        with self.at(node):
            truth = arithmetic.truth(ir, operand)
        ir.branch(truth, yes, no)
        return truth.lane

    def sequence(self, parts: Sequence[ast.expr], all_of: bool, yes: IrBlock, no: IrBlock) -> bool:
        """A condition's parts, joined by ``and`` (``all_of``) or ``or``; as `condition`."""
        lane = False
        for part in parts[:-1]:
            more = self.ir.new_block("and" if all_of else "or")
            lane |= self.condition(part, more, no) if all_of else self.condition(part, yes, more)
            self.ir.start(more)
        return self.condition(parts[-1], yes, no) or lane

    def chain(self, node: ast.Compare, yes: IrBlock, no: IrBlock) -> bool:
        """``a < b < c``: each operand is evaluated once, and only when those before it hold."""
        left, lane = self.expression(node.left), False
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.expression(right_node)
            with self.at(node):
                truth = arithmetic.compare(self.ir, op, left, right)
            more = yes if right_node is node.comparators[-1] else self.ir.new_block("chain")
            self.ir.branch(truth, more, no)
            if more is not yes:
                self.ir.start(more)
            left, lane = right, lane or truth.lane
        return lane

    def boolean(self, node: ast.BoolOp) -> Operand:
        """``a and b``: each is computed when it decides."""
        return self.through_branches(node)

    def choose(self, node: ast.IfExp) -> Operand:
        """``a if c else b``"""
        ir = self.ir
        yes, no, done = ir.new_block("yes"), ir.new_block("no"), ir.new_block("done")
        differs = self.condition(node.test, yes, no)
        ends, found = [], []
        for start, part in ((yes, node.body), (no, node.orelse)):
            ir.start(start)
            found.append(self.expression(part))
            ends.append(ir.block)
        wanted = arithmetic.unify(Builder(), found[0], found[1])[0].type
        slot = ir.alloca(wanted)
        for end, operand in zip(ends, found, strict=True):
            ir.block = end
            value = arithmetic.implicit(ir, operand, wanted)
            differs = differs or value.lane
            ir.put(slot, value)
            ir.jump(done)
        ir.start(done)
        return ir.get(slot, wanted, differs)

    # -- calls -------------------------------------------------------------------------------------
    def call(self, node: ast.Call) -> tuple[Operand, ...]:
        """What a call gives: of a type, an intrinsic, a device function, or one of Python's that is allowed."""
        kind = self.type_of(node.func)
        callee = kind if kind is not None else self.scope.source.constant(node.func)
        named = bool(node.keywords) and callee is not print and callee is not asm
        if named or any(isinstance(arg, ast.Starred) for arg in node.args):
            self.refuse(node, "only plain positional arguments are allowed in device code")
        with self.at(node):
            if isinstance(callee, Struct):
                return (structures.build_struct(self.ir, callee, [self.expression(arg) for arg in node.args]),)
            if isinstance(callee, (Scalar, Pointer)):
                return (arithmetic.explicit(self.ir, self.one_argument(node, callee), callee),)
            if isinstance(callee, Device):
                return self.inline(node, callee, [self.expression(arg) for arg in node.args])
            if isinstance(callee, Intrinsic):
                return self.intrinsic(node, callee)
            if mathematics.is_mathematical(callee):
                return (mathematics.call(self.ir, callee, [self.expression(arg) for arg in node.args]),)
            if callee is len and len(node.args) == 1 and isinstance(node.args[0], ast.Name) and (
                    node.args[0].id in self.scope.arrays):
                return (self.scope.arrays[node.args[0].id].length,)
            if callee in (min, max):
                return (self.extreme(node, ast.Lt() if callee is min else ast.Gt()),)
            if callee is asm:
                return self.assembly(node)
            if callee is print:
                return self.lower_print(node)
            if callee is abs:
                return (arithmetic.absolute(self.ir, self.one_argument(node, "abs")),)
        self.refuse(node, f"{_brief(node.func)} cannot be called in device code{self.instead(node.func, callee)}; "
                          f"{callable_names()}")

    def assembly(self, node: ast.Call) -> tuple[Value, ...]:
        """``asm(text, inputs..., result=type)``"""
        text = node.args[0] if node.args else node
        given = text.value if isinstance(text, ast.Constant) else self.scope.source.constant(text)
        if not isinstance(given, str) or [each.arg for each in node.keywords] != ["result"]:
            self.refuse(node, f"asm takes a text, inputs and the type of its result, as in {EXAMPLE}")
        wanted = node.keywords[0].value
        types = [self.resolve_annotation(each) for each in (wanted.elts if isinstance(wanted, ast.Tuple) else [wanted])]
        inputs = [arithmetic.materialise(self.expression(arg)) for arg in node.args[1:]]
        found = inline_assembly(self.ir, self.isa, given, inputs, types)
        return tuple(replace(value, lane=self.lane(value.lane)) for value in found)

    def instead(self, node: ast.expr, callee: object) -> str:
        """What to do about a callee that is none."""
        foreign = callable(callee) and not isinstance(callee, FunctionType)
        if foreign and isinstance(node, ast.Attribute) and (hint := suggest_math_function(node.attr)):
            return hint
        if isinstance(callee, Hook) or callable(callee):
            return "; mark functions that hooks share with @device"
        source = self.scope.source
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if callee is not MISSING or not name or name in source.local_names:
            return ""
        return f", it is unknown here{suggest_call(name, source.around())}"

    def one_argument(self, node: ast.Call, callee: object) -> Operand:
        """The only one of a call."""
        if len(node.args) != 1:
            self.refuse(node, f"{callee} takes one argument")
        return self.expression(node.args[0])

    def extreme(self, node: ast.Call, op: ast.cmpop) -> Operand:
        """min (``op`` is Lt) or max (Gt) of two arguments or more; of equal ones the first."""
        if len(node.args) < 2:
            self.refuse(node, "min and max take two numbers or more")
        found = self.expression(node.args[0])
        for arg in node.args[1:]:
            found = arithmetic.least(self.ir, found, self.expression(arg), op)
        return found

    def intrinsic(self, node: ast.Call, callee: Intrinsic) -> tuple[Operand, ...]:
        """The result of an intrinsic, or nothing; refused if an argument differs that must be the same in all lanes."""
        if len(node.args) < callee.arity or len(node.args) > callee.arity and not callee.takes_more:
            self.refuse(node, f"{callee.name} takes {how_many(callee.arity, 'argument')}, {len(node.args)} given")
        args = [self.expression(arg) for arg in node.args]
        for position in callee.effects.uniform:
            arg = args[position]
            if isinstance(arg, Value) and arg.lane:
                message = "must be the same in all lanes, but this one differs"
                self.refuse(node, f"argument {position + 1} of {callee.name} {message}")
        result = callee.lower(Lowering(self, node), *args)
        if result is None:
            return ()
        differs = any(isinstance(arg, Value) and arg.lane for arg in args)
        lane = {Result.UNIFORM: False, Result.LANE: True, Result.ARGUMENTS: differs}[callee.effects.result]
        return (Value(result.type, result.text, self.lane(lane)),)

    HANDLERS: dict[type[ast.expr], Callable[[Expressions, Any], Operand]] = {
        ast.Constant: literal, ast.Name: name, ast.Attribute: attribute, ast.BinOp: binary, ast.UnaryOp: unary,
        ast.Subscript: subscript, ast.Compare: compare, ast.BoolOp: boolean, ast.IfExp: choose,
    }


def _brief(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."
