"""Hooks that tests write: device code is read from files, so each text becomes one."""

from __future__ import annotations

import importlib.util
import itertools
import random
import sys
from pathlib import Path
from types import ModuleType

INTERESTING = [0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, 100, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63]
KINDS = ["u32", "i32", "u64", "i64", "u8", "i8", "u16", "i16"]
numbers = itertools.count()


def load_text(folder: Path, text: str) -> ModuleType:
    """The module that ``text`` is, from a new file in ``folder``."""
    name = f"written_{next(numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def random_expression(rng: random.Random, depth: int, kind: str) -> str:
    """An expression over x, y and z of one integer type."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(["x", "y", "z", f"{kind}({rng.choice(INTERESTING)})", str(rng.randrange(1, 100))])

    def part() -> str:
        return random_expression(rng, depth - 1, kind)

    choice = rng.randrange(10)
    if choice < 6:
        return f"({part()} {rng.choice(['+', '-', '*', '//', '%', '&', '|', '^', '<<', '>>'])} {kind}({part()}))"
    if choice == 6:
        comparison = f"{part()} {rng.choice(['<', '<=', '==', '!=', '>', '>='])} {kind}({part()})"
        return f"({part()} if {comparison} else {kind}({part()}))"
    if choice == 7:
        return f"{rng.choice(['min', 'max'])}({kind}({part()}), {part()})"
    return f"{rng.choice(['-', '~', '+'])}{kind}({part()})"


def random_function(rng: random.Random, header: str, kind: str) -> str:
    """A function of x and y with loops, branches and jumps; ``header`` ends in a colon."""
    jump = rng.choice(["            continue", "            break", "            y += 1", "            return x ^ y"])
    return "\n".join([
        header, f"    z = {kind}(1)",
        f"    for i in range({rng.choice(['2', '3', 'i32(y) & 3'])}):",
        f"        z = {kind}({random_expression(rng, 3, kind)})",
        f"        if {kind}({random_expression(rng, 2, kind)}) > z:",
        f"            x = {kind}({random_expression(rng, 2, kind)})",
        jump,
        f"        y ^= {kind}({random_expression(rng, 2, kind)})",
        f"    return {kind}({random_expression(rng, 3, kind)})", "",
    ])
