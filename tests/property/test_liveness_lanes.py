"""Liveness against brute force: whatever it calls dead is destroyed before every instruction, and nothing may change.

Random programs (ifs, loops, else branches, calls, and mask operations that no compiler makes) run on the lane machine
twice: as they are, and with every register destroyed at every step that the analysis says may be. What is stored,
and the way through the program, must be the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
from lane_machine import ALL, LANES, Operation, Wave, run
from synthetic import Row, build

from luthier_py.isa import EXEC, SCC, VCC, RegSet, sgpr, vgpr
from luthier_py.program.analysis import Facts, analyse
from luthier_py.program.ir import Instr, Program, lift, verify

VECTORS = range(3)
MASKS = {"exec": sgpr(EXEC, 2), "vcc": sgpr(VCC, 2), "m0": sgpr(0, 2), "m2": sgpr(2, 2), "m34": sgpr(34, 2)}
SCALARS = {"s8": sgpr(8), "s40": sgpr(40), "p6": sgpr(6), "p7": sgpr(7), "p30": sgpr(30), "p31": sgpr(31)}
CALL = ("getpc", "addlo", "addhi", "swappc")
JUNK = 0xDEAD

BRANCHES = {
    "branch": "s_branch", "scc0": "s_cbranch_scc0", "scc1": "s_cbranch_scc1", "vccz": "s_cbranch_vccz",
    "vccnz": "s_cbranch_vccnz", "execz": "s_cbranch_execz", "execnz": "s_cbranch_execnz",
}
Make = Callable[..., Sequence[object]]


def mask(source: str | int) -> object:
    return (-1 if source else 0) if isinstance(source, int) else MASKS[source]


ROWS: dict[str, Make] = {
    "vmov": lambda d, a: ("v_mov_b32", vgpr(d), vgpr(a)),
    "vadd": lambda d, a, b: ("v_add_u32", vgpr(d), vgpr(a), vgpr(b)),
    "vset": lambda d, s: ("v_mov_b32", vgpr(d), SCALARS[s]),
    "vsel": lambda d, a, b: ("v_cndmask_b32", vgpr(d), vgpr(a), vgpr(b), MASKS["vcc"]),
    "cmp": lambda m, a, b: ("v_cmp_lt_u32", MASKS[m], vgpr(a), vgpr(b)),
    "cmpx": lambda a, b: ("v_cmpx_lt_u32", MASKS["vcc"], vgpr(a), vgpr(b)),
    "first": lambda s, a: ("v_readfirstlane_b32", SCALARS[s], vgpr(a)),
    "readlane": lambda s, a, lane: ("v_readlane_b32", SCALARS[s], vgpr(a), lane),
    "writelane": lambda d, s, lane: ("v_writelane_b32", vgpr(d), SCALARS[s], lane),
    "logic": lambda name, d, a, b: (f"s_{name}_b64", MASKS[d], mask(a), mask(b)),
    "save": lambda name, d, a: (f"s_{name}_saveexec_b64", MASKS[d], mask(a)),
    "mov": lambda d, a: ("s_mov_b64", MASKS[d], mask(a)),
    "half": lambda d, constant: ("s_mov_b32", sgpr(MASKS[d].index), constant),
    "smov": lambda d, constant: ("s_mov_b32", SCALARS[d], constant),
    "sadd": lambda d, a, constant: ("s_add_u32", SCALARS[d], SCALARS[a], constant),
    "sselect": lambda d, a: ("s_cselect_b32", SCALARS[d], SCALARS[a], 1),
    "scmp": lambda a, constant: ("s_cmp_lg_u32", SCALARS[a], constant),
    "store": lambda a, b: ("ds_write_b32", vgpr(a), vgpr(b)),
    "getpc": lambda: ("s_getpc_b64", sgpr(6, 2)),
    "addlo": lambda: ("s_add_u32", sgpr(6), sgpr(6), "function"),
    "addhi": lambda: ("s_addc_u32", sgpr(7), sgpr(7), "function"),
    "swappc": lambda: ("s_swappc_b64", sgpr(30, 2), sgpr(6, 2)),
    "setpc": lambda: ("s_setpc_b64", sgpr(30, 2)),
    "end": lambda: ("s_endpgm",),
}


class Author:
    """Writes random programs."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.labels = 0

    def label(self) -> str:
        self.labels += 1
        return f"l{self.labels}"

    def vector(self) -> int:
        return self.rng.choice(VECTORS)

    def scalar(self) -> str:
        return self.rng.choice(("s8", "s40"))

    def save_mask(self) -> str:
        return self.rng.choice(("m0", "m2", "m34"))

    def source(self) -> str | int:
        return self.rng.choice((*MASKS, 0, 1))

    def simple(self) -> Operation:
        v, s, rng = self.vector, self.scalar, self.rng
        return rng.choice((
            lambda: ("vmov", v(), v()), lambda: ("vadd", v(), v(), v()), lambda: ("vset", v(), s()),
            lambda: ("vsel", v(), v(), v()), lambda: ("store", v(), v()), lambda: ("store", v(), v()),
            lambda: ("cmp", "vcc", v(), v()), lambda: ("first", s(), v()),
            lambda: ("readlane", s(), v(), rng.randrange(LANES)), lambda: ("writelane", v(), s(), rng.randrange(LANES)),
            lambda: ("smov", s(), rng.randrange(4)), lambda: ("sadd", s(), s(), 1), lambda: ("sselect", s(), s()),
            lambda: ("scmp", s(), rng.randrange(4)),
        ))()

    def wild(self) -> Operation:
        """Mask operations as no compiler makes them."""
        rng = self.rng
        logic, saves = ("and", "or", "xor", "andn2", "orn2", "nor"), ("and", "or", "xor", "andn2", "andn1", "orn2")
        return rng.choice((
            lambda: ("logic", rng.choice(logic), rng.choice(tuple(MASKS)), self.source(), self.source()),
            lambda: ("save", rng.choice(saves), self.save_mask(), self.source()),
            lambda: ("mov", rng.choice(tuple(MASKS)), self.source()),
            lambda: ("half", rng.choice(tuple(MASKS)), rng.randrange(16)),
            lambda: ("cmpx", self.vector(), self.vector()),
            lambda: ("cmp", self.save_mask(), self.vector(), self.vector()),
        ))()

    def body(self, depth: int) -> list[Operation | str]:
        found: list[Operation | str] = []
        for _ in range(self.rng.randint(1, 4)):
            kind = self.rng.randrange(12) if depth else 0
            if kind < 6:
                found.append(self.simple())
            elif kind == 6:
                found.append(self.wild())
            else:
                found += (self.branch, self.either, self.loop, self.whole, self.call)[kind - 7](depth - 1)
        return found

    def branch(self, depth: int) -> list[Operation | str]:
        saved, after = self.save_mask(), self.label()
        skip: list[Operation | str] = [("execz", after)] if self.rng.random() < 0.5 else []
        return [("cmp", "vcc", self.vector(), self.vector()), ("save", "and", saved, "vcc"), *skip, *self.body(depth),
                after, ("logic", "or", "exec", "exec", saved)]

    def either(self, depth: int) -> list[Operation | str]:
        saved = self.save_mask()
        return [("cmp", "vcc", self.vector(), self.vector()), ("save", "and", saved, "vcc"),
                ("logic", "xor", saved, "exec", saved), *self.body(depth), ("save", "andn2", saved, saved),
                *self.body(depth), ("logic", "or", "exec", "exec", saved)]

    def loop(self, depth: int) -> list[Operation | str]:
        left, again = self.save_mask(), self.label()
        return [("mov", left, 0), again, *self.body(depth), ("cmp", "vcc", self.vector(), self.vector()),
                ("logic", "or", left, "vcc", left), ("logic", "andn2", "exec", "exec", left), ("execnz", again),
                ("logic", "or", "exec", "exec", left)]

    def whole(self, depth: int) -> list[Operation | str]:
        saved = self.save_mask()
        return [("save", self.rng.choice(("or", "xor")), saved, 1), *self.body(0), ("mov", "exec", saved)]

    def call(self, depth: int) -> list[Operation | str]:
        again = self.label()
        jump: list[Operation | str] = [("scmp", self.scalar(), 2), (self.rng.choice(("scc0", "scc1", "vccz")), again)]
        return [again, *((name,) for name in CALL), *(jump if self.rng.random() < 0.3 else [])]


def programs(rng: random.Random) -> tuple[list[Operation | str], list[Operation | str]]:
    author = Author(rng)
    shown = [("store", 0, 1), ("vset", 0, "s8"), ("vset", 1, "s40"), ("store", 0, 1)]
    kernel = [*author.body(3), *author.body(3), *shown, ("end",)]
    function = [row for row in author.body(2) if isinstance(row, str) or row[0] not in CALL]  # it has no stack
    return kernel, ["function", *function, ("setpc",)]


def rows(program: Sequence[Operation | str]) -> list[Row]:
    found: list[Row] = []
    for operation in program:
        if isinstance(operation, str):
            found.append(f"{operation}:")
        elif operation[0] in BRANCHES:
            found.append((BRANCHES[str(operation[0])], str(operation[1])))
        else:
            found.append(ROWS[str(operation[0])](*operation[1:]))
    return found


def new_wave(seed: int) -> Wave:
    rng = random.Random(seed)
    masks = {name: rng.randrange(ALL + 1) for name in MASKS}
    masks["exec"] = rng.randrange(1, ALL + 1)
    vectors = [[rng.randrange(8) for _ in range(LANES)] for _ in VECTORS]
    return Wave(masks, {name: rng.randrange(4) for name in SCALARS}, vectors)


def destroyer(instrs: dict[int, Instr], facts: Facts, all_lanes: bool) -> Callable[[int, Wave], None]:
    """Destroys what is said to be dead: in active lanes, or in all."""
    live_at = facts.live_before_all_lanes if all_lanes else facts.live_before
    dead = {number: dead_names(live_at(instr)) for number, instr in instrs.items()}

    def destroy(number: int, wave: Wave) -> None:
        vectors, masks, scalars, scc = dead[number]
        for index in vectors:
            for lane in range(LANES) if all_lanes else wave.lanes():
                wave.v[index][lane] = JUNK + number + lane
        for name in masks:
            wave.masks[name] = JUNK + number & ALL
        for name in scalars:
            wave.s[name] = JUNK + number
        wave.scc ^= scc

    return destroy


def dead_names(live: RegSet) -> tuple[list[int], list[str], list[str], bool]:
    """The machine's registers that are not in ``live``: vectors, masks, scalars, SCC."""
    return (
        [index for index in VECTORS if vgpr(index) not in live],
        [name for name, reg in MASKS.items() if not live.overlaps(RegSet.of(reg))],
        [name for name, reg in SCALARS.items() if reg not in live],
        sgpr(SCC) not in live,
    )


def numbered(program: Program) -> dict[int, Instr]:
    """Operation number -> its instruction; operations that cannot be reached have none."""
    obj, numbers = program.obj, count()
    by_pc = {instr.pc: instr for function in program.functions for instr in function.instrs}
    found = {}
    for symbol in obj.symbols:
        pc, code = symbol.address, obj.read(symbol.address, symbol.size)
        while pc < symbol.address + symbol.size:
            number = next(numbers)
            if pc in by_pc:
                found[number] = by_pc[pc]
            pc += program.isa.decode(code, pc - symbol.address).size_bytes
    return found


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 32))
def test_what_is_called_dead_can_be_destroyed(seed: int) -> None:
    kernel, function = programs(random.Random(seed))
    program = lift(build({"k": rows(kernel), "function": rows(function)[1:]}))
    verify(program)
    facts, instrs, whole = analyse(program), numbered(program), [*kernel, *function]
    expected = [run(whole, new_wave(start), lambda number, wave: None) for start in range(4)]
    for all_lanes in (False, True):
        destroy = destroyer(instrs, facts, all_lanes)
        assert [run(whole, new_wave(start), destroy) for start in range(4)] == expected, whole
