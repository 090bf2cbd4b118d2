"""Device Python to LLVM IR: one hook with its compile-time arguments becomes one amdgpu_cs function.

In: a Hook, constants, an instruction set. Out: HookIr. Invariant: with the target, the text says all that code depends
on, so that it is the key under which compiled code is cached.
"""

from __future__ import annotations

from luthier_py.base.errors import HookError
from luthier_py.base.records import dataclass
from luthier_py.isa import InstructionSet, RegFile
from luthier_py.rewrite.jit import convention
from luthier_py.rewrite.jit.convention import Seat
from luthier_py.rewrite.jit.python.builder import Builder, constant
from luthier_py.rewrite.jit.python.lowering import Lowering
from luthier_py.rewrite.jit.python.printing import push_deepest
from luthier_py.rewrite.jit.python.pushing import emit_push_functions
from luthier_py.rewrite.jit.python.scope import Differs, Levelled, Scope, context
from luthier_py.rewrite.jit.python.source import source_of
from luthier_py.rewrite.jit.python.statements import Statements
from luthier_py.rewrite.tool.cpp.device_ir import Depth
from luthier_py.rewrite.tool.cpp.native import Native
from luthier_py.rewrite.tool.edits import Constant, Field
from luthier_py.rewrite.tool.hooks.hook import FloatMode, Hook, Lanes, Signature
from luthier_py.rewrite.tool.hooks.types import BOOL

# Code is inlined at every place of a hook: small code is better than unrolled code.
# !0 is for metadata that says no more than that it is there.
# !1 is the range of what a field may hold: anything.
# MODE.IEEE is on in compute kernels by default, and in hooks (analysis.PLAIN_MODE).
TAIL = ('attributes #0 = { nounwind optsize "amdgpu-ieee"="true" "no-jump-tables"="true" }', "!0 = !{}",
        "!1 = !{i64 -1, i64 -1}")
MAX_DWORDS = 16  # of all parameters, or of all results, in one register file


@dataclass(frozen=True, slots=True)
class HookIr:
    """A hook as text. ``function`` has ``@hook`` for its name, for module() to replace."""

    function: str
    declarations: frozenset[str]
    params: tuple[Seat, ...]   # of runtime arguments, in the hook's order
    results: tuple[Seat, ...]  # in the hook's order
    natives: tuple[Native, ...] = ()  # that it calls
    alone: bool = False        # ``function`` is a module, with nothing else in it
    called: bool = False       # it is a function that is called (`jit.called`)
    depths: tuple[tuple[str, Depth], ...] = ()  # of functions in ``function`` that call themselves


def hook_ir(hook: Hook, constants: tuple[Constant | Field | None, ...], isa: InstructionSet) -> HookIr:
    """Compile a hook; HookError names what is not device Python."""
    runtime = [position for position, value in enumerate(constants) if value is None]
    params = convention.seat_parameters(hook.signature, runtime)
    results = convention.seat_results(hook.signature)
    _check_seats(hook, params)
    _check_seats(hook, results)
    differs = Differs()
    while True:
        differs.grew = False
        text, ir, levelled = _function(hook, constants, isa, params, results, differs)
        if not differs.grew:
            natives = tuple(sorted(ir.natives, key=lambda native: native.symbol))
            return HookIr(text, frozenset(ir.declarations), _in_order(params), _in_order(results), natives,
                          depths=tuple(levelled.depths.items()))


def module(hooks: list[HookIr]) -> str:
    """One LLVM module; the functions are called h0, h1, ... A hook that is a module has it for itself."""
    if hooks[0].alone:
        (hook,) = hooks
        return hook.function.replace("@hook(", "@h0(", 1)
    declarations = sorted(frozenset().union(*(hook.declarations for hook in hooks)))
    functions = [hook.function.replace("@hook(", f"@h{i}(", 1) for i, hook in enumerate(hooks)]
    return "\n".join([*declarations, *functions, *TAIL, ""])


def _function(
    hook: Hook, constants: tuple[Constant | Field | None, ...], isa: InstructionSet, params: list[Seat],
    results: list[Seat], differs: Differs,
) -> tuple[str, Builder, Levelled]:
    ir, signature = Builder(), hook.signature
    ir.own_mode = hook.mode is FloatMode.OWN
    single = hook.lanes is Lanes.ONE
    shared = context(ir, differs, isa, single)
    given = {seat.position: convention.receive(ir, seat, signature.parameters[seat.position].lane) for seat in params}
    values = [
        given[i] if number is None else convention.receive_field(ir, i, parameter.type)
        if isinstance(number, Field) else constant(parameter.type, number)
        for i, (parameter, number) in enumerate(zip(signature.parameters, constants, strict=True))
    ]
    slots = tuple(ir.alloca(result.type) for result in signature.results)
    done = ir.new_block("end")
    declared = signature if hook.made is None else Signature(hook.declared, signature.results)
    scope = Scope(source_of(hook.function), declared, next(shared.numbers), 0, done, slots)
    body = Statements(shared, scope)
    if hook.made is not None:
        wanted = (parameter.type for parameter in hook.declared)
        values = [body.evaluate_recipe(how, values, type) for how, type in zip(hook.made, wanted, strict=True)]
    body.run(values)
    ir.start(done)
    if shared.printing is not None and (ir.natives or shared.levelled.names):
        push_deepest(Lowering(body, scope.source.tree), ir, shared.printing)
    returned = [ir.get(slots[seat.position], seat.type, signature.results[seat.position].lane) for seat in results]
    convention.send(ir, results, returned)
    header = f"define amdgpu_cs {convention.return_type(results)} @hook({convention.declare_parameters(params)}) #0"
    others = [*shared.levelled.texts.values(), *emit_push_functions(shared)]
    text = "\n".join([f"{header} {{\n{ir.body()}\n}}", *others])
    return text, ir, shared.levelled


def _check_seats(hook: Hook, seats: list[Seat]) -> None:
    for seat in seats:
        if seat.type == BOOL:
            name = hook.signature.parameters[seat.position].name
            raise HookError(f"{hook.place}: {hook.name}: {name} is bool_ and needs a compile-time True or False")
        if seat.index + seat.type.dwords > MAX_DWORDS:
            taken = max(each.index + each.type.dwords for each in seats if each.file is seat.file)
            kind = "scalar" if seat.file is RegFile.SGPR else "vector"
            message = (f"too many parameters or results; {MAX_DWORDS} dwords at most in {kind} registers, {taken} given"
                       "; what is worked out, as address() is, counts with all that it is made of")
            raise HookError(f"{hook.place}: {hook.name}: {message}")


def _in_order(seats: list[Seat]) -> tuple[Seat, ...]:
    return tuple(sorted(seats, key=lambda seat: seat.position))
