"""Random hooks about structures, and what they mean: the same text, run by CPython for one lane after the other.

A hook ``h(v, w, x, n)`` has a row of ``v`` for itself and reads any of ``w``. Structures are values in device code and
objects in CPython, so the text copies wherever one goes to another place.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luthier_py.rewrite.tool.hooks import author_types as types

INTEGERS = ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64")
NUMBERS = (*INTEGERS, "f16", "f32", "f64")
Members = list[tuple[str, str]]


@dataclass
class Program:
    """One text (mutable: it is being written)."""

    rng: random.Random
    structs: dict[str, Members] = field(default_factory=dict)
    loops: int = 0
    values: tuple[str, ...] = ("a", "b", "c")

    def text(self) -> str:
        """The module, from its types to the hook."""
        for name, inner in (("A", ()), ("B", ("A",)), ("S", ("A", "B"))):
            self.structs[name] = [(f"m{k}", self.rng.choice(inner) if inner and self.rng.random() < 0.4
                                   else self.rng.choice(NUMBERS)) for k in range(self.rng.randrange(1, 6))]
        lines = ["from luthier_py.rewrite.tool import Lane, array, device, hook, ptr, " + ", ".join(NUMBERS)]
        for name, members in self.structs.items():
            lines += [f"class {name}:", *(f"    {member}: {kind}" for member, kind in members)]
        for name in self.structs:
            lines += ["@device", f"def copy{name}(s: Lane[{name}]) -> Lane[{name}]:", "    return s"]
        return "\n".join([*lines, *self.functions(), ""])

    def functions(self) -> list[str]:
        """Those that have the same text in CPython."""
        outside, self.values = self.values, ("p", "q")
        mix = [f"    r = {self.made('S', 2, self.values)}", f"    return {self.made('S', 2, self.values)}, copyS(r)"]
        self.values = outside
        start = ["    some = array(S, 4)", "    a = copyS(v[x])", "    b = copyS(w[x])", "    c = copyS(w[7])"]
        return ["@device", "def mix(p: Lane[S], q: Lane[S]) -> tuple[Lane[S], Lane[S]]:", *mix, "@hook",
                "def h(v: ptr[S], w: ptr[S], x: Lane[u32], n: u32) -> None:", *start, *self.statements(2, "    "),
                f"    v[x] = copyS({self.rng.choice(self.values)})", *self.statements(1, "    "), *self.stores()]

    def paths(self, struct: str, before: str = "") -> Iterator[tuple[str, str]]:
        """Members and theirs, and what they are."""
        for name, kind in self.structs[struct]:
            yield before + name, kind
            if kind in self.structs:
                yield from self.paths(kind, f"{before}{name}.")

    def row(self) -> str:
        number = self.rng.randrange(64)
        return self.rng.choice([f"(x ^ {number}) & 63", "x", "(n * x) & 63", f"{number}"])

    def place(self) -> str:
        return self.rng.choice(["v[x]", f"some[{self.row()} & 3]"])

    def whole(self) -> str:
        return self.rng.choice([*self.values, self.place(), f"w[{self.row()}]"])

    def made(self, kind: str, depth: int, roots: tuple[str, ...] = ()) -> str:
        """An expression of a type."""
        root = self.rng.choice(roots) if roots else self.whole()
        members = [f"{root}.{path}" for path, found in self.paths("S") if found == kind]
        if members and (depth <= 0 or self.rng.random() < 0.5):
            found = self.rng.choice(members)
            return f"copy{kind}({found})" if kind in self.structs else found
        if kind in self.structs:
            return f"{kind}({', '.join(self.made(each, depth - 1, roots) for _, each in self.structs[kind])})"
        if depth <= 0:
            return f"{kind}({self.rng.randrange(100)})"
        left, right = self.made(kind, depth - 1, roots), self.made(kind, depth - 1, roots)
        if kind not in INTEGERS:
            return f"{self.rng.choice(['min', 'max'])}({left}, {right})"
        if self.rng.random() < 0.3:
            return f"{kind}({self.made(self.rng.choice(INTEGERS), depth - 1, roots)})"
        return f"{kind}({left} {self.rng.choice('^&|')} {right})"

    def stores(self) -> list[str]:
        """Of single members; what they were given is not stored again behind."""
        paths = self.rng.choices(list(self.paths("S")), k=3)
        return [f"    v[x].{path} = {self.made(kind, 1)}" for path, kind in paths]

    def statements(self, depth: int, margin: str) -> list[str]:
        return [line for _ in range(self.rng.randrange(2, 5)) for line in self.statement(depth, margin)]

    def statement(self, depth: int, margin: str) -> list[str]:
        one, choice = self.rng.choice(self.values), self.rng.randrange(8)
        kind = self.rng.choice(INTEGERS)
        test = f"{self.made(kind, 1)} {self.rng.choice(['<', '>=', '!='])} {self.made(kind, 1)}"
        if choice == 0 and depth:
            rest = self.statements(depth - 1, margin + "    ")
            return [f"{margin}if {test}:", *rest, f"{margin}else:", *self.statements(depth - 1, margin + "    ")]
        if choice == 1 and depth:
            self.loops += 1
            return [f"{margin}for i{self.loops} in range(n):", *self.statements(depth - 1, margin + "    ")]
        if choice == 2:
            return [f"{margin}{one} = copyS({one} if {test} else {self.rng.choice(self.values)})"]
        if choice == 3:
            return [f"{margin}a, b = mix({one}, {self.rng.choice(self.values)})"]
        if choice == 4:
            return [f"{margin}{self.place()} = copyS({self.whole()})"]
        if choice == 5:
            return [f"{margin}{one} = {self.made('S', 2)}"]
        path, kind = self.rng.choice(list(self.paths("S")))
        return [f"{margin}{self.place()}.{path} = {self.made(kind, 2)}"]

    # -- and in CPython ----------------------------------------------------------------------------

    def filled(self, rows: int, rng: np.random.Generator, struct: str = "S") -> NDArray[Any]:
        """Random rows, laid out by NumPy."""
        parts = {name: self.filled(rows, rng, kind) if kind in self.structs else numbers(kind, rows, rng)
                 for name, kind in self.structs[struct]}
        found = np.zeros(rows, np.dtype([(name, part.dtype) for name, part in parts.items()], align=True))
        for name, part in parts.items():
            found[name] = part
        return found

    def run(self, text: str, v: NDArray[Any], w: NDArray[Any], n: int) -> list[Any]:
        """What the hook leaves in ``v``, as tuples."""
        known = {name: getattr(types, name) for name in NUMBERS} | {f"copy{name}": copy.deepcopy for name in "ABS"}
        for name, members in self.structs.items():
            known[name] = self.host_class(name, members, known)
        known |= {"device": lambda f: f, "hook": lambda f: f,
                  "array": lambda _, length: [self.value("S", known, np.zeros(1, v.dtype)[0]) for _ in range(length)]}
        functions = "from __future__ import annotations\n@device\ndef mix" + text.partition("def mix")[2]
        exec(functions, known)
        rows, others = ([self.value("S", known, row) for row in each] for each in (v, w))
        for lane in range(len(rows)):
            known["h"](rows, others, lane, n)
        return [self.tuple_of("S", row) for row in rows]

    def host_class(self, name: str, members: Members, known: dict[str, Any]) -> type:
        kinds = dict(members)

        def store(self: Any, member: str, value: Any) -> None:
            convert = known[kinds[member]] if kinds[member] in NUMBERS else lambda same: same
            object.__setattr__(self, member, convert(value))

        def make(self: Any, *values: Any) -> None:
            for member, value in zip(kinds, values, strict=True):
                setattr(self, member, value)

        return type(name, (), {"__setattr__": store, "__init__": make})

    def value(self, kind: str, known: dict[str, Any], row: Any) -> Any:
        if kind not in self.structs:
            return row.item()
        return known[kind](*[self.value(each, known, row[name]) for name, each in self.structs[kind]])

    def tuple_of(self, kind: str, value: Any) -> Any:
        if kind not in self.structs:
            return value
        return tuple(self.tuple_of(each, getattr(value, name)) for name, each in self.structs[kind])


def numbers(kind: str, rows: int, rng: np.random.Generator) -> NDArray[Any]:
    """Of a type, floats without a rest."""
    dtype = np.dtype(getattr(types, kind).letter)
    if kind not in INTEGERS:
        return (rng.integers(-500, 500, rows) / 4).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, rows, dtype, endpoint=True)
