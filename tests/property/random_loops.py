"""Random nests of counted loops for gfx90a, whose turns ids, an argument and turns of outer loops decide.

In: a random.Random. Out: rows for `synthetic.assemble`, of a kernel "k", and of functions that it calls. Invariant:
every program ends after a few thousand instructions of a wave; what its loads from LDS decide is nobody's to foresee.
"""

from __future__ import annotations

import random
from typing import Any

from luthier_py.isa import EXEC, VCC, Reg, sgpr, vgpr

Row = tuple[Any, ...] | str
E, V = sgpr(EXEC, 2), sgpr(VCC, 2)
GROUP, WAVE, GIVEN = sgpr(6), sgpr(8), sgpr(9)  # ids, and an argument
DEPTH = 3


def functions(rng: random.Random) -> dict[str, list[Row]]:
    """The kernel may call f and g from all but the innermost loops, and f may call g."""
    found = {"k": Loops(rng, 0, ("f", "g")), "f": Loops(rng, 2, ("g",)), "g": Loops(rng, 3, ())}
    kept, back = sgpr(48, 2), sgpr(30, 2)
    found["f"].rows = [("s_mov_b64", kept, back), *found["f"].rows, ("s_mov_b64", back, kept)]
    begin = [
        ("s_load_dword", GIVEN, sgpr(4, 2), 24), ("v_readfirstlane_b32", WAVE, vgpr(0)), ("s_lshr_b32", WAVE, WAVE, 6),
        ("v_lshlrev_b32", vgpr(1), 2, vgpr(0)), ("v_and_b32", vgpr(1), 252, vgpr(1)),
        ("ds_read_b32", vgpr(2), vgpr(1)), ("s_waitcnt", 0),
    ]
    return {name: [*(begin if name == "k" else ()), *each.rows,
                   ("s_endpgm",) if name == "k" else ("s_setpc_b64", back)] for name, each in found.items()}


class Loops:
    """Mutable: the rows so far. ``depth``: loops around; registers of outer ones are left alone."""

    def __init__(self, rng: random.Random, depth: int, callees: tuple[str, ...]) -> None:
        self.rng, self.rows, self.labels, self.depth, self.callees = rng, list[Row](), 0, depth, callees
        self.outermost = depth
        self.scope: list[Reg] = [GROUP, WAVE, GIVEN]
        for _ in range(3 if not depth else 2):
            self.statement()

    def emit(self, *row: Any) -> None:
        self.rows.append(row)

    def label(self) -> str:
        self.labels += 1
        return f"L{self.outermost}_{self.labels}"

    def some(self, target: Reg) -> None:
        """A small number: a constant, or made of what is in scope."""
        kind = self.rng.randrange(5)
        source = self.rng.choice(self.scope)
        if kind == 0:
            self.emit("s_mov_b32", target, self.rng.randrange(7))
        elif kind == 1:
            self.emit("s_mul_i32", target, source, self.rng.randrange(4))
        elif kind == 2:
            self.emit("s_lshr_b32", target, source, self.rng.randrange(3))
        elif kind == 3:
            self.emit("s_and_b32", target, source, self.rng.choice((1, 3, 6)))
        else:
            self.emit("s_sub_u32", target, self.rng.randrange(9, 40), source)
            self.emit("s_and_b32", target, target, 15)
        self.emit("s_add_u32", target, target, self.rng.randrange(3))

    def statement(self) -> None:
        kinds = [self.work, self.branch]
        if self.depth < DEPTH:
            if self.callees and self.depth <= max(self.outermost, 1):
                kinds += [self.call] * 3
            kinds += [self.up, self.down, self.wide, self.lanes, self.doubling, self.unknown, self.up, self.lanes]
        self.rng.choice(kinds)()

    def work(self) -> None:
        self.emit("v_add_u32", vgpr(3), 1, vgpr(3))

    def call(self) -> None:
        self.emit("s_call_b64", sgpr(30, 2), self.rng.choice(self.callees))

    def body(self, *more: Reg) -> None:
        self.depth += 1
        self.scope += more
        self.work()
        for _ in range(self.rng.randrange(3)):
            self.statement()
        del self.scope[len(self.scope) - len(more):]
        self.depth -= 1

    def branch(self) -> None:
        over = self.label()
        if self.rng.random() < 0.3:
            self.emit("s_bitcmp1_b32", self.rng.choice(self.scope), self.rng.randrange(3))
        else:
            name = self.rng.choice(("s_cmp_lt_u32", "s_cmp_eq_u32", "s_cmp_gt_i32"))
            self.emit(name, self.rng.choice(self.scope), self.rng.randrange(6))
        self.emit(self.rng.choice(("s_cbranch_scc0", "s_cbranch_scc1")), over)
        self.work()
        self.rows.append(f"{over}:")

    def registers(self) -> tuple[Reg, Reg, Reg]:
        first = 12 + 6 * self.depth
        return sgpr(first), sgpr(first + 1), sgpr(first + 2)

    def up(self) -> None:
        """for (i = a; i < b; i += step)"""
        counter, bound, _ = self.registers()
        step, again, over = self.rng.randrange(1, 4), self.label(), self.label()
        self.some(counter)
        self.some(bound)
        signed = self.rng.choice("iu")
        self.emit(f"s_cmp_ge_{signed}32", counter, bound)
        self.emit("s_cbranch_scc1", over)
        self.rows.append(f"{again}:")
        self.body(counter)
        self.emit("s_add_i32" if signed == "i" else "s_add_u32", counter, counter, step)
        self.emit(f"s_cmp_lt_{signed}32", counter, bound)
        self.emit("s_cbranch_scc1", again)
        self.rows.append(f"{over}:")

    def down(self) -> None:
        """while (n-- > 0), perhaps left early"""
        counter, early, _ = self.registers()
        again, over = self.label(), self.label()
        self.some(counter)
        self.some(early)
        self.rows.append(f"{again}:")
        self.emit("s_cmp_eq_u32", counter, 0)
        self.emit("s_cbranch_scc1", over)
        self.body()
        if self.rng.random() < 0.3:
            self.emit("s_cmp_eq_u32", counter, early)
            self.emit("s_cbranch_scc1", over)
        self.emit("s_sub_u32", counter, counter, 1)
        self.emit("s_branch", again)
        self.rows.append(f"{over}:")

    def wide(self) -> None:
        """A counter of 64 bits, perhaps where its lower half carries."""
        first = 12 + 6 * self.depth
        counter, bound, again = sgpr(first, 2), sgpr(first + 2, 2), self.label()
        self.emit("s_mov_b32", sgpr(first), self.rng.choice((0, 0xFFFFFFFC)))
        self.emit("s_mov_b32", sgpr(first + 1), 0)
        self.some(sgpr(first + 2))
        self.emit("s_add_u32", sgpr(first + 2), sgpr(first + 2), 1)
        self.emit("s_add_u32", sgpr(first + 2), sgpr(first + 2), sgpr(first))
        self.emit("s_addc_u32", sgpr(first + 3), 0, 0)
        self.rows.append(f"{again}:")
        self.body()
        self.emit("s_add_u32", sgpr(first), sgpr(first), 1)
        self.emit("s_addc_u32", sgpr(first + 1), sgpr(first + 1), 0)
        self.emit("s_cmp_lg_u64", counter, bound)
        self.emit("s_cbranch_scc1", again)

    def doubling(self) -> None:
        counter, _, _ = self.registers()
        again = self.label()
        self.emit("s_mov_b32", counter, 1)
        self.rows.append(f"{again}:")
        self.body(counter)
        self.emit("s_lshl_b32", counter, counter, 1)
        self.emit("s_cmp_lt_u32", counter, 20)
        self.emit("s_cbranch_scc1", again)

    def lanes(self) -> None:
        """Lanes leave when their counters are at bounds of their own, or all at once."""
        counter, bound, again = vgpr(4 + 2 * self.depth), vgpr(5 + 2 * self.depth), self.label()
        start, end, _ = self.registers()
        mask = sgpr(40 + 2 * self.depth, 2)
        self.some(start)
        self.some(end)
        self.emit("v_mov_b32", counter, start)
        self.emit("v_bfe_u32", bound, vgpr(0), self.rng.randrange(3), self.rng.randrange(4))
        self.emit("v_add_u32", bound, end, bound)
        self.emit("s_mov_b64", mask, E)
        self.rows.append(f"{again}:")
        self.body()
        self.emit("v_add_u32", counter, self.rng.randrange(1, 3), counter)
        self.emit("v_cmp_lt_u32_e32", V, counter, bound)
        self.emit("s_and_b64", E, E, V)
        self.emit("s_cbranch_execnz", again)
        self.emit("s_mov_b64", E, mask)

    def unknown(self) -> None:
        """As often as memory says."""
        counter, _, _ = self.registers()
        again = self.label()
        self.emit("v_readlane_b32", counter, vgpr(2), self.rng.randrange(64))
        self.emit("s_and_b32", counter, counter, 3)
        self.rows.append(f"{again}:")
        self.body()
        self.emit("s_sub_u32", counter, counter, 1)
        self.emit("s_cmp_gt_i32", counter, 0)
        self.emit("s_cbranch_scc1", again)
