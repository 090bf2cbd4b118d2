"""Statements of device code, as LLVM IR; and calls of device functions, which are inlined.

In: the body of a function and values for its parameters. Out: code that ends in the scope's ``done`` block with the
results stored. Invariant: as for expressions, what is not named here is refused with file and line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from luthier_py.base.records import replace
from luthier_py.rewrite.jit.python import arithmetic, arrays, levels
from luthier_py.rewrite.jit.python.arrays import ElementAddress
from luthier_py.rewrite.jit.python.builder import constant, llvm
from luthier_py.rewrite.jit.python.expressions import Expressions
from luthier_py.rewrite.jit.python.lowering import Lowering
from luthier_py.rewrite.jit.python.native_calls import check_callable, native_call
from luthier_py.rewrite.jit.python.printing import push_line
from luthier_py.rewrite.jit.python.scope import Context, Local, OpenLoop, Scope
from luthier_py.rewrite.jit.python.source import source_of
from luthier_py.rewrite.tool.cpp.native import Native
from luthier_py.rewrite.tool.hooks.author_types import array
from luthier_py.rewrite.tool.hooks.hook import Device, Recipe, Signature
from luthier_py.rewrite.tool.hooks.intrinsic import Operand, Value
from luthier_py.rewrite.tool.hooks.printing import PRINTING, SaidText, make_assert_message, make_print_message
from luthier_py.rewrite.tool.hooks.types import LaneType, NearPointer, Pointer, Type

ALLOWED = "allowed are assignments, if, while, for ... in range(...), break, continue, return, assert, pass and calls"


class Statements(Expressions):
    """Compiles the body of the function in ``scope`` (mutable: writes to ``ir``)."""

    def __init__(self, shared: Context, scope: Scope, callers: tuple[Device, ...] = ()) -> None:
        super().__init__(shared.ir, scope, shared.differs, shared.isa, shared.single_lane)
        self.shared, self.callers = shared, callers

    def run(self, values: Sequence[Value]) -> None:
        """The whole function; ``values`` are its arguments."""
        scope, tree = self.scope, self.scope.source.tree
        if isinstance(scope.source.function, Native):
            takes = len(scope.source.function.takes)
            found = self.native(scope.source.function, scope.signature, values[:takes])
            if any(parameter.name == PRINTING for parameter in scope.signature.parameters[takes:]):
                self.shared.printing = values[-1]
            self.finish(found)
            return
        for parameter, value in zip(scope.signature.parameters, values, strict=True):
            declared = LaneType(parameter.type) if parameter.lane else parameter.type
            if parameter.name == PRINTING:
                self.shared.printing = value
            else:
                self.set_local(tree, parameter.name, value, declared)
        self.block(tree.body)
        if not self.ir.block.closed:
            if scope.results:
                self.refuse(tree, "it may end without returning a value; end every path with return")
            self.ir.jump(scope.done)

    def finish(self, results: Sequence[Value]) -> None:
        for slot, result in zip(self.scope.results, results, strict=True):
            self.ir.put(slot, result)
        self.ir.jump(self.scope.done)

    def evaluate_recipe(self, how: Recipe | int, given: Sequence[Value], wanted: Type) -> Value:
        """A value that is computed of those that a call gives; pointers are computed with as numbers."""
        if isinstance(how, int):
            return arithmetic.explicit(self.ir, given[how], wanted)
        parameters = how.function.signature.parameters
        made = [self.evaluate_recipe(each, given, into.type) for each, into in zip(how.inputs, parameters, strict=True)]
        (result,) = self.lower_call(how.function, made)
        return arithmetic.explicit(self.ir, result, wanted)

    def inline(self, node: ast.Call, function: Device, args: Sequence[Operand]) -> tuple[Value, ...]:
        parameters = function.signature.parameters
        if function in self.callers:
            self.refuse(node, f"{function.name} calls itself; say how deep, as in @device(depth=8), or use a loop")
        if len(args) != len(parameters):
            self.refuse(node, f"{function.name} takes {len(parameters)} arguments, {len(args)} given")
        return self.lower_call(function, [
            self.convert_for_parameter(node, f"argument {parameter.name} of {function.name}", parameter, arg)
            for parameter, arg in zip(parameters, args, strict=True)])  # fmt: skip

    def lower_call(self, function: Device, values: Sequence[Value]) -> tuple[Value, ...]:
        """The results of a function whose parameters have ``values``."""
        results = function.signature.results
        if isinstance(function.function, Native):
            return self.native(function.function, function.signature, values)
        if function.depth is not None:
            levels.compile_once(self.shared, function, lambda *own: Statements(own[0], own[1]).run(own[2]))
            found = levels.level_call(self.ir, self.shared, function, values)
            return tuple(replace(value, lane=self.lane(value.lane)) for value in found)
        done, number = self.ir.new_block("returned"), next(self.shared.numbers)
        slots = tuple(self.ir.alloca(result.type) for result in results)
        scope = Scope(source_of(function.function), function.signature, number, self.scope.region, done, slots)
        Statements(self.shared, scope, (*self.callers, function)).run(values)
        self.ir.start(done)
        return tuple(
            self.ir.get(slot, result.type, scope.result_key(i) in self.differs.keys)
            for i, (slot, result) in enumerate(zip(slots, results, strict=True))
        )

    def native(self, native: Native, signature: Signature, values: Sequence[Value]) -> tuple[Value, ...]:
        """A call of a function that is bitcode."""
        check_callable(native, self.scope.source)
        self.shared.gives_to_bitcode(values)
        found = native_call(self.ir, native, signature, values)
        return tuple(replace(value, lane=self.lane(value.lane)) for value in found)

    def lower_print(self, node: ast.Call) -> tuple[Operand, ...]:
        message, values = make_print_message(node)
        self.say(node, message, values)
        return ()

    def say(self, node: ast.AST, message: SaidText, values: Sequence[ast.expr]) -> None:
        channel = self.shared.printing
        if channel is None:
            self.refuse(node, "a function that prints or asserts must be defined before the hooks that call it")
        with self.at(node):
            push_line(Lowering(self, node), self.ir, channel, message, [self.expression(value) for value in values])

    def assert_(self, node: ast.Assert) -> None:
        """``assert a, message``: said of the lanes where it does not hold."""
        ir, source = self.ir, self.scope.source
        holds, fails = ir.new_block("holds"), ir.new_block("fails")
        self.condition(node.test, holds, fails)
        ir.start(fails)
        with self.at(node):
            message, values = make_assert_message(node, source.file, source.first_line + node.lineno - 1)
        self.say(node, message, values)
        ir.jump(holds)
        ir.start(holds)

    # -- locals ------------------------------------------------------------------------------------
    def set_local(self, node: ast.AST, name: str, operand: Operand, declared: Type | LaneType | None = None) -> None:
        """Assign a local; the first assignment fixes its type."""
        scope, local = self.scope, self.scope.locals.get(name)
        if name in scope.arrays:
            self.refuse(node, f"{name} is an {scope.arrays[name]}; give the number another name")
        if local is None:
            wanted = declared.of if isinstance(declared, LaneType) else declared
            value = self.convert_assigned(node, name, operand, wanted) if wanted else arithmetic.materialise(operand)
            local = scope.locals[name] = Local(value.type, self.ir.alloca(value.type), scope.region, declared)
        elif declared is not None and declared != local.declared:
            had = f"is {local.declared or local.type} already"
            self.refuse(node, f"{name} {had}; a local keeps its type, and is declared where it is first assigned")
        else:
            value = self.convert_assigned(node, name, operand, local.type)
        self.ir.put(local.slot, value)
        scope.assigned.add(name)
        if value.lane or local.region != scope.region:
            self.check_may_differ(node, name, local, value)
            self.differs.add(scope.key(name))

    def check_may_differ(self, node: ast.AST, name: str, local: Local, value: Value) -> None:
        """A local or parameter that is declared without Lane is one for the wave."""
        if local.declared is None or isinstance(local.declared, LaneType):
            return
        what = "what it is given differs between lanes" if value.lane else "only some of the lanes assign it here"
        self.refuse(node, f"{name} is declared {local.type}, one for the wave, but {what}; "
                          f"declare it Lane[{local.type}], or take one lane's value with read_first_lane")

    def convert_assigned(self, node: ast.AST, name: str, operand: Operand, type: Type) -> Value:
        """``operand`` for a local that has this type."""
        try:
            return arithmetic.implicit(self.ir, operand, type)
        except ValueError as error:
            self.refuse(node, f"{name} is {type}, since it was first assigned: {error}")

    def store_to(self, target: ast.expr, operand: Operand) -> None:
        """Assign a name, an element or a member."""
        if isinstance(target, ast.Name):
            self.set_local(target, target.id, operand)
        else:
            self.store_element(target, self.address(target), operand)

    def store_element(self, node: ast.AST, where: Value, operand: Operand) -> None:
        """Write to memory or an array's element; refused of the application's memory, which hooks only read."""
        assert isinstance(where.type, Pointer)
        if isinstance(where.type, NearPointer):
            self.refuse(node, f"{where.type} is the application's memory, which hooks read only")
        with self.at(node):
            value = arithmetic.implicit(self.ir, operand, where.type.element)
        self.ir.store(where, value)
        if isinstance(where.type, ElementAddress) and (
                value.lane or where.lane or where.type.array.region != self.scope.region):
            self.differs.add(self.scope.key(where.type.name))

    def assign(self, node: ast.Assign) -> None:
        """``a, b = c``"""
        if isinstance(node.value, ast.Call) and self.scope.source.constant(node.value.func) is array:
            self.make_array(node, node.value)
            return
        found = self.values(node.value)
        for target in node.targets:
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            if len(targets) != len(found):
                self.refuse(node, f"{len(targets)} names are assigned, but there are {len(found)} values")
            for part, operand in zip(targets, found, strict=True):
                self.store_to(part, operand)

    def make_array(self, node: ast.Assign, call: ast.Call) -> None:
        """``name = array(type, length)``"""
        (target, *others) = node.targets
        if others or not isinstance(target, ast.Name) or len(call.args) != 2:
            self.refuse(node, "an array gets a name of its own, as in counts = array(u32, 8)")
        with self.at(node):
            kind, length = self.type_of(call.args[0]), self.expression(call.args[1])
            if arrays.make(self.ir, self.scope, target.id, kind, length):
                self.differs.add(self.scope.key(target.id))

    def lower_ann_assign(self, node: ast.AnnAssign) -> None:
        """``name: type = value``"""
        if not isinstance(node.target, ast.Name):
            self.refuse(node, "only names can be declared")
        declared = self.resolve_annotation(node.annotation)
        if declared is None:
            self.refuse(node, f"`{ast.unparse(node.annotation)}` is not a device type")
        if node.value is None:
            self.refuse(node, f"{node.target.id} is declared without a value; assign one")
        self.set_local(node, node.target.id, self.expression(node.value), declared)

    def lower_aug_assign(self, node: ast.AugAssign) -> None:
        """``a += b`` and its like; of an element the address is computed once."""
        if isinstance(node.target, ast.Name):
            load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            old = self.name(load)
            with self.at(node):
                new = arithmetic.binary(self.ir, node.op, old, self.expression(node.value))
            self.set_local(node, node.target.id, new)
            return
        where = self.address(node.target)
        with self.at(node):
            new = arithmetic.binary(self.ir, node.op, self.load_from(where), self.expression(node.value))
        self.store_element(node, where, new)

    # -- control flow ------------------------------------------------------------------------------
    def block(self, body: Sequence[ast.stmt]) -> None:
        """Statements in turn; what follows a return, break or continue is never reached."""
        for node in body:
            if self.ir.block.closed:
                return
            handler = self.STATEMENTS.get(type(node))
            if handler is None:
                self.refuse(node, f"`{type(node).__name__.lower()}` is not allowed in device code; {ALLOWED}")
            handler(self, node)

    @contextmanager
    def region(self, separate: bool) -> Iterator[None]:
        """Code that only some of the lanes run is a separate region."""
        outer = self.scope.region
        if separate:
            self.scope.region = next(self.shared.regions)
        yield
        self.scope.region = outer

    def if_(self, node: ast.If) -> None:
        """Afterwards a local has a value if both ways give it one; a way that jumps out does not count."""
        ir, scope = self.ir, self.scope
        yes, no, done = ir.new_block("then"), ir.new_block("else"), ir.new_block("endif")
        differs = self.condition(node.test, yes, no)
        before, ends = set(scope.assigned), []
        for start, body in ((yes, node.body), (no, node.orelse)):
            ir.start(start)
            scope.assigned = set(before)
            with self.region(differs):
                self.block(body)
            if not ir.block.closed:
                ir.jump(done)
                ends.append(scope.assigned)
        if ends:
            scope.assigned = set.intersection(*ends)
            ir.start(done)

    def while_(self, node: ast.While) -> None:
        """``while True`` and the like make no branch: such a loop is left by break and return alone."""
        ir = self.ir
        head, body = ir.new_block("while"), ir.new_block("body")
        loop = OpenLoop(self.scope.key((node.lineno, node.col_offset)), 0, head, ir.new_block("endwhile"))
        ir.jump(head)
        ir.start(head)
        if isinstance(node.test, ast.Constant) and node.test.value:
            differs = False
            ir.jump(body)
        else:
            differs = self.condition(node.test, body, loop.done)
            loop.exits.append(set(self.scope.assigned))
        ir.start(body)
        self.loop(node, loop, differs)

    def for_(self, node: ast.For) -> None:
        """The trips are counted first: Python's range cannot overflow, and the body may change its variable."""
        ir = self.ir
        first, trips, step = self.range_of(node)
        item, trip = ir.alloca(first.type), ir.alloca(trips.type)
        ir.put(item, first)
        ir.put(trip, constant(trips.type, 0))
        head, body, following = ir.new_block("for"), ir.new_block("body"), ir.new_block("next")
        loop = OpenLoop(self.scope.key((node.lineno, node.col_offset)), 0, following, ir.new_block("endfor"))
        ir.jump(head)
        ir.start(head)
        more = arithmetic.compare(ir, ast.Lt(), ir.get(trip, trips.type, trips.lane), trips)
        ir.branch(more, body, loop.done)
        loop.exits.append(set(self.scope.assigned))
        ir.start(body)
        self.loop(node, loop, more.lane, lambda: self.store_to(node.target, ir.get(item, first.type, first.lane)))
        ends = ir.block
        ir.start(following)
        for slot, type, by in ((item, first.type, step), (trip, trips.type, 1)):
            old = ir.get(slot, type, lane=False)
            ir.put(slot, ir.emit(type, f"add {llvm(type)} {old.text}, {by}", lane=False))
        ir.jump(head)
        ir.block = ends

    def loop(
        self, node: ast.While | ast.For, loop: OpenLoop, differs: bool, begin: Callable[[], None] | None = None
    ) -> None:
        """The body of a loop, from the current block on; afterwards in ``loop.done``, if anything leads there."""
        if node.orelse:
            self.refuse(node, "else of a loop is not allowed in device code")
        ir, scope = self.ir, self.scope
        with self.region(differs or loop.key in self.differs.keys):
            loop.region = scope.region
            scope.loops.append(loop)
            if begin is not None:
                begin()
            self.block(node.body)
            scope.loops.pop()
        if not ir.block.closed:
            ir.jump(loop.next)
        if not loop.exits and not any(isinstance(inner, ast.Return) for inner in ast.walk(node)):
            self.refuse(node, "this loop never ends; leave it with break or return")
        if loop.exits:
            scope.assigned = set.intersection(*loop.exits)
            ir.start(loop.done)

    def range_of(self, node: ast.For) -> tuple[Value, Value, int]:
        """First item, number of items (unsigned), and step of ``range(...)``."""
        call = node.iter
        if not isinstance(call, ast.Call) or self.scope.source.constant(call.func) is not range or call.keywords:
            self.refuse(node, "for runs over range(...) only in device code")
        if not 1 <= len(call.args) <= 3:
            self.refuse(call, "range takes one to three integers")
        bounds = [self.expression(arg) for arg in call.args]
        step = bounds[2] if len(bounds) == 3 else 1
        if not isinstance(step, int) or step == 0:
            self.refuse(call, "the step of range must be a constant, and not zero")
        with self.at(call):
            low, high = bounds[:2] if len(bounds) > 1 else (0, bounds[0])
            known = self.scope.locals.get(node.target.id) if isinstance(node.target, ast.Name) else None
            if known is not None and not isinstance(low, Value) and not isinstance(high, Value):
                low = arithmetic.literal(low, known.type)
            start, stop = arithmetic.unify(self.ir, low, high)
            return start, arithmetic.trips(self.ir, start, stop, step), step

    def jump_out(self, node: ast.Break | ast.Continue) -> None:
        """break and continue; where only some of the lanes get here, the whole body becomes a separate region."""
        scope, loop = self.scope, self.scope.loops[-1]
        if scope.region != loop.region:
            self.differs.add(loop.key)
        if isinstance(node, ast.Break):
            loop.exits.append(set(scope.assigned))
        self.ir.jump(loop.done if isinstance(node, ast.Break) else loop.next)

    def return_(self, node: ast.Return) -> None:
        """Store the results and go to ``scope.done``; where only some lanes return, results differ between lanes."""
        scope = self.scope
        none = node.value is None or isinstance(node.value, ast.Constant) and node.value.value is None
        found = () if none or node.value is None else self.values(node.value)
        if len(found) != len(scope.results):
            self.refuse(node, f"{len(found)} values are returned, but {len(scope.results)} are declared")
        for i, (slot, result, operand) in enumerate(zip(scope.results, scope.signature.results, found, strict=True)):
            named = f"result {i}" if len(found) > 1 else "the result"
            passed = self.convert_for_parameter(node, named, result, operand)
            if scope.region != scope.root:
                named += ", returned by some of the lanes only,"
                passed = self.convert_for_parameter(node, named, result, replace(passed, lane=True))
            self.ir.put(slot, passed)
            if passed.lane:
                self.differs.add(scope.result_key(i))
        self.ir.jump(scope.done)

    def effect(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.call(node.value)
        elif not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.refuse(node, f"this statement has no effect; {ALLOWED}")

    def pass_(self, node: ast.Pass) -> None:
        """Nothing."""

    STATEMENTS: dict[type[ast.stmt], Callable[[Statements, Any], None]] = {
        ast.Assert: assert_, ast.Assign: assign, ast.AnnAssign: lower_ann_assign, ast.AugAssign: lower_aug_assign,
        ast.If: if_, ast.For: for_, ast.While: while_, ast.Break: jump_out, ast.Continue: jump_out, ast.Return: return_,
        ast.Expr: effect, ast.Pass: pass_,
    }
