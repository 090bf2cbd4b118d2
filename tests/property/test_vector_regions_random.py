"""Random straight code under every form of EXEC change, on the emulator and on a model that knows no strips.

In: a seed. Out: rows for `synthetic.assemble`, and what the vector registers hold at the end by a model in NumPy that
does one instruction after the other. Few registers, so that values die early, and few values, so that masks differ.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulated import ISA, LANES, Bench, code_object
from every_case import check_all
from synthetic import Row

from luthier_py.isa import EXEC, VCC, sgpr, vgpr

REGISTERS = range(2, 6)       # vector registers that programs compute with
OWN, BYTES = vgpr(6), vgpr(7)  # four times the lane's number; an address in private memory, the same in all lanes
MASKS = (8, 10, VCC)          # pairs
SCALAR = 12
IN, OUT = sgpr(0, 2), sgpr(2, 2)
PRIVATE_BYTES = 8
SEEDS = range(30)
LENGTH = 40

Lanes = Any  # NumPy arrays: one element for each lane


class Machine:
    """Mutable: a program, and the state of its wave so far."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        noise = np.random.default_rng(seed)
        self.input = noise.integers(0, 6, LANES, np.uint32)
        self.rows: list[Row] = [
            ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_lshlrev_b32", OWN, 2, vgpr(0)),
            ("v_mov_b32", BYTES, 4)]
        self.v = {number: np.zeros(LANES, np.uint32) for number in REGISTERS}
        self.private = np.zeros(LANES, np.uint32)
        self.exec = np.ones(LANES, bool)
        self.masks = {number: np.zeros(LANES, bool) for number in MASKS}
        self.scalar = 0
        self.labels = 0
        for number in REGISTERS:
            self.emit("global_load_dword", vgpr(number), OWN, IN)
            self.v[number] = self.input.copy()
        for number in MASKS:
            self.emit("s_mov_b64", sgpr(number, 2), 0)
        self.emit("s_mov_b32", sgpr(SCALAR), 0)
        self.emit("scratch_store_dword", BYTES, vgpr(REGISTERS[0]), "off")
        self.private = self.input.copy()

    def emit(self, *row: Any, **modifiers: int) -> None:
        self.rows.append(ISA.make(*row, **modifiers).raw if modifiers or row[0].startswith("global") else row)

    def register(self) -> int:
        return self.rng.choice(REGISTERS)

    def mask(self) -> int:
        return self.rng.choice(MASKS)

    def write(self, number: int, value: Lanes) -> None:
        self.v[number] = np.where(self.exec, value, self.v[number]).astype(np.uint32)

    # Vector instructions

    def move(self) -> None:
        target, value = self.register(), self.rng.randrange(6)
        self.emit("v_mov_b32", vgpr(target), value)
        self.write(target, value)

    def copy(self) -> None:
        target, source = self.register(), self.register()
        self.emit("v_mov_b32", vgpr(target), vgpr(source))
        self.write(target, self.v[source])

    def add(self) -> None:
        target, a, b = self.register(), self.register(), self.register()
        self.emit("v_add_u32", vgpr(target), vgpr(a), vgpr(b))
        self.write(target, self.v[a] + self.v[b])

    def select(self) -> None:
        target, a, b, mask = self.register(), self.register(), self.register(), self.mask()
        self.emit("v_cndmask_b32", vgpr(target), vgpr(a), vgpr(b), sgpr(mask, 2))
        self.write(target, np.where(self.masks[mask], self.v[b], self.v[a]))

    def half(self) -> None:
        """Writes the upper half of a register and keeps the lower."""
        target, source = self.register(), self.register()
        self.emit("v_mov_b32_sdwa", vgpr(target), vgpr(source), dst_sel=5, dst_unused=2, src0_sel=6)
        self.write(target, self.v[target] & 0xFFFF | self.v[source] << 16)

    def shift_lanes(self) -> None:
        """Lanes whose source is off, or outside the row, keep what they have."""
        target, source = self.register(), self.register()
        self.emit("v_mov_b32_dpp", vgpr(target), vgpr(source), dpp_ctrl=0x111, row_mask=15, bank_mask=15)
        given = np.roll(self.exec, 1) & (np.arange(LANES) % 16 != 0)
        self.write(target, np.where(given, np.roll(self.v[source], 1), self.v[target]))

    def scalar_of_first(self) -> None:
        source = self.register()
        self.emit("v_readfirstlane_b32", sgpr(SCALAR), vgpr(source))
        self.scalar = int(self.v[source][np.argmax(self.exec)])

    def broadcast(self) -> None:
        target = self.register()
        self.emit("v_mov_b32", vgpr(target), sgpr(SCALAR))
        self.write(target, self.scalar)

    def write_lane(self) -> None:
        target, lane = self.register(), self.rng.randrange(LANES)
        self.emit("v_writelane_b32", vgpr(target), sgpr(SCALAR), lane)
        self.v[target][lane] = self.scalar

    # Memory

    def load(self) -> None:
        target = self.register()
        self.emit("global_load_dword", vgpr(target), OWN, IN)
        self.write(target, self.input)

    def load_half(self) -> None:
        """Clears the lower half, as every D16 load does where SRAM-ECC is on."""
        target = self.register()
        self.emit("global_load_short_d16_hi", vgpr(target), OWN, IN)
        self.write(target, self.input << 16)

    def load_private(self) -> None:
        target = self.register()
        self.emit("scratch_load_dword", vgpr(target), BYTES, "off")
        self.write(target, self.private)

    def store_private(self) -> None:
        source = self.register()
        self.emit("scratch_store_dword", BYTES, vgpr(source), "off")
        self.private = np.where(self.exec, self.v[source], self.private)

    def permute(self) -> None:
        """Takes the value of the lane itself, by way of LDS."""
        target, source = self.register(), self.register()
        self.emit("ds_bpermute_b32", vgpr(target), OWN, vgpr(source))
        self.write(target, self.v[source])

    # Masks

    def compare(self) -> None:
        a, b, mask = self.register(), self.register(), self.mask()
        self.emit("v_cmp_gt_u32", sgpr(mask, 2), vgpr(a), vgpr(b))
        self.masks[mask] = (self.v[a] > self.v[b]) & self.exec

    def compare_exec(self) -> None:
        a, b, mask = self.rng.choice((20, 3, 1)), self.register(), self.mask()
        self.emit("v_cmpx_gt_u32", sgpr(mask, 2), a, vgpr(b))
        self.exec = (a > self.v[b]) & self.exec
        self.masks[mask] = self.exec.copy()

    def all_on(self) -> None:
        self.emit("s_mov_b64", sgpr(EXEC, 2), -1)
        self.exec = np.ones(LANES, bool)

    def exec_from_mask(self) -> None:
        mask = self.mask()
        self.emit("s_mov_b64", sgpr(EXEC, 2), sgpr(mask, 2))
        self.exec = self.masks[mask].copy()

    def exec_to_mask(self) -> None:
        mask = self.mask()
        self.emit("s_mov_b64", sgpr(mask, 2), sgpr(EXEC, 2))
        self.masks[mask] = self.exec.copy()

    def half_of_exec(self) -> None:
        part, value = self.rng.randrange(2), self.rng.choice((-1, 0, 15))
        self.emit("s_mov_b32", sgpr(EXEC + part), value)
        self.exec[32 * part : 32 * part + 32] = [value >> lane & 1 for lane in range(32)]

    def logic(self) -> None:
        name, how = self.rng.choice(LOGIC)
        mask = self.mask()
        self.emit(f"s_{name}_b64", sgpr(EXEC, 2), sgpr(EXEC, 2), sgpr(mask, 2))
        self.exec = how(self.exec, self.masks[mask])

    def save(self) -> None:
        name, how = self.rng.choice(LOGIC)
        target, source = self.mask(), self.mask()
        self.emit(f"s_{name}_saveexec_b64", sgpr(target, 2), sgpr(source, 2))
        old = self.exec
        self.exec = how(self.masks[source], old)
        self.masks[target] = old

    def write_exec(self) -> None:
        """s_andn1_wrexec: EXEC and the destination get EXEC without the source's lanes."""
        target, source = self.mask(), self.mask()
        self.emit("s_andn1_wrexec_b64", sgpr(target, 2), sgpr(source, 2))
        self.exec = ~self.masks[source] & self.exec
        self.masks[target] = self.exec.copy()

    def block(self) -> None:
        """What follows is another block; sometimes one that is skipped without lanes, of what changes nothing then."""
        self.labels += 1
        if self.rng.random() < 0.5:
            self.emit("s_branch", f"next{self.labels}")
            self.rows.append(f"next{self.labels}:")
            return
        self.emit("s_cbranch_execz", f"next{self.labels}")
        for _ in range(3):
            self.rng.choice((self.move, self.copy, self.add, self.select, self.half, self.load, self.load_private))()
        self.rows.append(f"next{self.labels}:")

    def finish(self) -> list[Row]:
        self.emit("s_mov_b64", sgpr(EXEC, 2), -1)
        for place, number in enumerate(REGISTERS):
            self.emit("global_store_dword", OWN, vgpr(number), OUT, offset=4 * LANES * place)
        return [*self.rows, ("s_endpgm",)]


LOGIC: list[tuple[str, Callable[[Lanes, Lanes], Lanes]]] = [
    ("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b),
    ("andn2", lambda a, b: a & ~b), ("orn2", lambda a, b: a | ~b),
]
VECTOR = (Machine.move, Machine.copy, Machine.add, Machine.select, Machine.half, Machine.shift_lanes, Machine.broadcast,
          Machine.load, Machine.load_half, Machine.load_private, Machine.store_private, Machine.permute,
          Machine.compare, Machine.scalar_of_first, Machine.write_lane, Machine.block)
CHANGES = (Machine.compare_exec, Machine.compare_exec, Machine.all_on, Machine.exec_from_mask, Machine.exec_to_mask,
           Machine.half_of_exec, Machine.logic, Machine.save, Machine.write_exec)


def test_model_and_emulator_agree() -> None:
    for seed in SEEDS:
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 4000, 300))
def test_many_more(first: int) -> None:
    check_all(check, range(first, first + 300))


def check(seed: int) -> None:
    machine = Machine(seed)
    for _ in range(LENGTH):
        machine.rng.choice(VECTOR if machine.rng.random() < 0.65 else CHANGES)(machine)
    data = code_object({"k": machine.finish()}, scratch_bytes=PRIVATE_BYTES)
    bench = Bench(machine.input.tobytes(), bytes(4 * LANES * len(REGISTERS)))
    found = np.frombuffer(bench.run(data, "k").buffers[1], np.uint32).reshape(-1, LANES)
    for number, row in zip(REGISTERS, found, strict=True):
        assert row.tolist() == machine.v[number].tolist(), f"seed {seed}: v{number}"
