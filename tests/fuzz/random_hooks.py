"""Random device Python: hooks that are grammatical, and most of the time well typed.

In: a random.Random. Out: the text of a tool that inserts its hooks at blocks, instructions and exits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

ARGUMENTS = {  # by type: what fits
    "u32": ("sgpr(2)", "7", "self.w32"), "i32": ("sgpr(3)", "-7"), "u64": ("sgpr(4, 2)", "sgpr(EXEC, 2)", "1 << 40",
                                                                           "self.w64"),
    "i64": ("sgpr(4, 2)", "-1"), "f32": ("sgpr(2)", "0.5"), "f64": ("sgpr(4, 2)", "0.5"), "bool_": ("True", "False"),
    "ptr[u64]": ("self.a", "self.rows[3]"), "ptr[u32]": ("self.b", "self.b[7]"),
    "channel[Item]": ("self.items",), "channel[Wave]": ("self.waves",),
    "Lane[u32]": ("vgpr(0)",), "Lane[f32]": ("vgpr(1)",), "Lane[u64]": ("vgpr(0, 2)",),
}
INTO = {"u32": "sgpr(2)", "u64": "self.w64", "f32": "sgpr(3)", "Lane[u32]": "vgpr(1)",
        "tuple[u32, u32]": "(self.w32, sgpr(3))"}
ODD_ARGUMENTS = ("1 << 70", "None", "'x'", "vgpr(300)", "self.hook0", "-1", "0.5", "self.b[8]", "sgpr(106, 2)",
                 "self", "[]")
ODD_TYPES = ("int", "None", "tuple[u32, u32]", "ptr", "Lane", "ptr[Lane[u32]]", "'u32'", "u32 | None", "1")
ODD_VALUES = ("'x'", "None", "1 << 70", "[]", "{}", "(1, 2)", "lambda: 0", "self", "y", "0.5", "p0[0]", "print(1)",
              "x.y", "f''",
              "1 if x else y", "abs", "u32", "popcount()", "lane_id(1)", "helper(1, 2)", "range(3)", "1 < 2 < 3",
              "1e999")
SCALARS = ("u32", "u32", "u64", "i32", "i64", "f32", "f64")
INTEGER = ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>")
FLOATING = ("+", "-", "*", "/")
CALLS = {"u32": ("popcount(active_mask())", "lane_id()", "helper({u32})", "read_first_lane({u32})", "wave_size()",
                 "min({u32}, {u32})", "count_trailing_zeros({u32})", "as_bits({f32})", "mbcnt({u64})",
                 "read_lane({u32}, {u32})"),
         "u64": ("active_mask()", "ballot({bool_})", "clock()", "max({u64}, {u64})"), "i32": ("abs({i32})",),
         "f32": ("from_bits({u32})", "abs({f32})"), "bool_": ("any_({bool_})", "all_({bool_})", "is_first_lane()")}
ODD = 0.02
DEPTH = 3


def random_tool(rng: random.Random) -> str:
    hooks = [_Hook(rng, number) for number in range(rng.choice((1, 1, 2)))]
    body = "\n".join(hook.text() for hook in hooks)
    insertions = "\n".join(
        _insertion(rng, rng.choice(hooks)) if rng.random() < 0.7 else _edit(rng, rng.choice(hooks))
        for _ in range(rng.choice((1, 2, 3))))
    exits = rng.choice(("pass", f"m.{rng.choice(('at_exit', 'at_entry'))}(kernel, {hooks[0].given(rng)})"))
    return f'''from luthier_py import *
from luthier_py.intrinsics import *

@device
def helper(x: u32) -> u32:
    return x + u32(1)

class Item:
    x: u32
    y: f64

class Wave:
    x: u64
    y: Lane[u32]

class Fuzzed(Tool):
    items = Channel(Item)
    waves = Channel(Wave)
    a = Variable(u64)
    b = Variable(u32, 8)
    rows = Variable(u64, 64)
    w32 = WaveVariable(u32)
    w64 = WaveVariable(u64)

{body}
    def instrument(self, m):
        for function in m.functions():
            for block in m.blocks(function):
                instr = block.instrs[0]
{insertions}
        for kernel in m.kernels:
            {exits}
'''


def _insertion(rng: random.Random, hook: _Hook) -> str:
    where = rng.choice(("before(instr", "before(instr", "after(instr", "at_block(block", "at_block(block"))
    more = ", anywhere=True" if where.startswith("at_block") and rng.random() < 0.3 else ""
    return f"{' ' * 16}m.{where}, {hook.given(rng)}{more})"


def _edit(rng: random.Random, hook: _Hook) -> str:
    """Another kind of edit, more often than not one that means something; not of each block."""
    given = hook.given(rng)
    text = rng.choice(("v_mov_b32 v1, v0", "v_add_u32 v1, v0, v1", "s_add_u32 s2, s2, s3", "s_nop 0", "s_endpgm", "v_"))
    edit = rng.choice((
        "m.remove(instr)", "m.change(instr, src0=vgpr(1))", "m.change(instr, src0=7)", "m.change(instr, offset=8)",
        f"m.change(instr, {text!r})", f"m.replace(instr, {given})",
        f"m.skip_if(instr, {given.partition(', into=')[0]})",
        f"m.insert({text!r}, before=instr, writes=vgpr(1))", f"m.insert({text!r}, after=instr, writes=())",
        f"[m.at_edge(edge, {given}) for edge in m.edges(function)]",
        f"[m.at_back_edge(loop, {given}) for loop in m.loops(function)]",
        f"[m.at_loop_entry(loop, {given}) for loop in m.loops(function)]",
    ))
    return f"{' ' * 16}if block.address % {rng.choice((8, 16, 64))} == 0:\n{' ' * 20}{edit}"


@dataclass
class _Hook:
    """Mutable: a hook being written; ``names`` are its variables with their types."""

    rng: random.Random
    number: int
    names: dict[str, str] = field(default_factory=dict)
    result: str = "None"
    counter: int = 0

    def __post_init__(self) -> None:
        types = [*ARGUMENTS]
        for index in range(self.rng.choice((0, 1, 2, 2, 3))):
            self.names[f"p{index}"] = self.either(self.rng.choice(types), ODD_TYPES)
        self.parameters = dict(self.names)
        self.result = self.rng.choice(("None", "None", "u32", "u64", "f32", "tuple[u32, u32]", "Lane[u32]"))

    def either(self, right: str, odd: tuple[str, ...]) -> str:
        return self.rng.choice(odd) if self.rng.random() < ODD else right

    def given(self, rng: random.Random) -> str:
        """The hook and its arguments, as an insertion has them."""
        arguments = [self.either(rng.choice(ARGUMENTS.get(type, ("0",))),
                                 ODD_ARGUMENTS) for type in self.parameters.values()]
        into = [] if self.result == "None" else [f"into={self.either(INTO[self.result], ODD_ARGUMENTS)}"]
        return ", ".join([f"self.hook{self.number}", *arguments, *into])

    def text(self) -> str:
        lanes = any("Lane" in type for type in (*self.parameters.values(), self.result))
        how = self.rng.choice(("@hook", "@hook", '@hook(lanes="all")') + (() if lanes else ('@hook(lanes="one")',) * 2))
        parameters = ", ".join(f"{name}: {type}" for name, type in self.parameters.items())
        body = self.block(2, DEPTH) + (f"        return {self.returned()}\n" if self.result != "None" else "")
        return f"    {how}\n    def hook{self.number}({parameters}) -> {self.result}:\n{body}"

    def returned(self) -> str:
        if self.result.startswith("tuple"):
            return f"{self.value('u32', 2)}, {self.value('u32', 2)}"
        return self.value(self.result.removeprefix("Lane[").removesuffix("]"), 2)

    def block(self, indent: int, depth: int) -> str:
        known = dict(self.names)
        text = "".join(self.statement(indent, depth) for _ in range(self.rng.choice((1, 1, 2, 3))))
        if indent > 2:
            self.names = known  # what is first assigned in a branch is not known behind it
        return text

    def statement(self, indent: int, depth: int) -> str:
        pad, rng = "    " * indent, self.rng
        kind = rng.randrange(12 if depth else 8)
        mine = [name for name, type in self.names.items() if type in SCALARS]
        pointers = [name for name, type in self.names.items() if type.startswith("ptr[u")]
        if kind < 3 and mine:
            name = rng.choice(mine)
            return f"{pad}{name} = {self.value(self.names[name], DEPTH)}\n"
        if kind == 3 and mine:
            name = rng.choice(mine)
            operators = FLOATING if self.names[name].startswith("f") else INTEGER
            return f"{pad}{name} {rng.choice(operators)}= {self.value(self.names[name], 2)}\n"
        if kind in (4, 5) and pointers:
            name = rng.choice(pointers)
            value = self.value(self.names[name][4:-1], 2)
            return pad + rng.choice((f"atomic_add({name}, {value})\n", f"{name}[{self.value('u32', 1)}] = {value}\n"))
        channels = [name for name, type in self.names.items() if type.startswith("channel[")]
        if kind == 6 and channels:
            name = rng.choice(channels)
            fields = ("u32", "f64") if self.names[name] == "channel[Item]" else ("u64", "u32")
            return f"{pad}push({name}, {', '.join(self.value(field, 2) for field in fields)})\n"
        if kind == 7 and rng.random() < 0.3:
            said = ", ".join(self.value(rng.choice(SCALARS), 2) for _ in range(rng.choice((1, 2, 6))))
            return pad + rng.choice((f"print('said', {said})\n", f"assert {self.value('bool_', 2)}, 'no'\n",
                                     f"print(f'{{{self.value('u32', 1)}:x}}')\n"))
        if kind < 8:
            self.counter += 1
            name, type = f"v{self.counter}", rng.choice(SCALARS)
            text = f"{pad}{name}{rng.choice((': ' + type, ''))} = {type}({self.value(type, DEPTH)})\n"
            self.names[name] = type
            return text
        inner = self.block(indent + 1, depth - 1)
        if kind == 8:
            return f"{pad}for i in range({rng.choice(('3', 'u32(5)', self.value('u32', 1)))}):\n{inner}"
        if kind == 9:
            return f"{pad}while {self.value('bool_', 2)}:\n{inner}"
        other = f"{pad}else:\n{self.block(indent + 1, depth - 1)}" if kind == 10 else ""
        return f"{pad}if {self.value('bool_', 2)}:\n{inner}{other}"

    def value(self, type: str, depth: int) -> str:
        """An expression of a scalar type."""
        return self.either(self.typed(type, depth), ODD_VALUES)

    def typed(self, type: str, depth: int) -> str:
        rng = self.rng
        fitting = [name for name, its in self.names.items() if its in (type, f"Lane[{type}]")]
        if depth <= 0 or rng.random() < 0.2:
            if fitting and rng.random() < 0.8:
                return rng.choice(fitting)
            number = rng.choice((0, 1, 3, 63, 64, 0x7FFFFFFF))
            return f"{type}({number}{'.5' * type.startswith('f')})" if type != "bool_" else f"({self.compared(depth)})"
        kind = rng.randrange(8)
        if type == "bool_":
            return f"({self.compared(depth)})" if kind < 6 else f"(not {self.typed('bool_', depth - 1)})"
        if kind < 4:
            operator = rng.choice(FLOATING if type.startswith("f") else INTEGER)
            return f"({self.value(type, depth - 1)} {operator} {self.value(type, depth - 1)})"
        if kind == 4:
            return f"({self.value(type, depth - 1)} if {self.value('bool_', 0)} else {self.value(type, depth - 1)})"
        if kind == 5:
            return f"{type}({self.value(rng.choice(SCALARS), depth - 1)})"
        if kind == 6 and type in CALLS:
            return rng.choice(CALLS[type]).format(**{name: self.value(name, 0) for name in (*SCALARS, "bool_")})
        return f"(-{self.value(type, depth - 1)})"

    def compared(self, depth: int) -> str:
        type = self.rng.choice(SCALARS)
        operator = self.rng.choice(("<", "<=", "==", "!=", ">", ">="))
        if depth <= 0:
            return "u32(1) < lane_id()"
        return f"{self.value(type, depth - 1)} {operator} {self.value(type, depth - 1)}"
