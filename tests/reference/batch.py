"""Cases run together: one program for the emulator and for the reader, whose states must be equal after it.

In: cases. Out: what differs, as text. Before each case EXEC, VCC and SCC are set, and the registers that hold its
addresses; after it those that it wrote are kept in others, so that every case shows. Every other case makes the vector
registers that it only reads just before, and overwrites them just after.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from luthier_py.emulator.records.layout import Status
from luthier_py.isa import EXEC, M0, MODE, SCC, VCC, Inst, InstructionSet, Reg, RegFile, sgpr, vgpr
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import F16, F32, U32
from luthier_py.isa.semantics.control import Branch, Indexing
from luthier_py.isa.semantics.crossings import RelativeMove
from reference.cases import EXECS, FULL, HALF, INPUTS, WINDOW, Case, Place
from reference.reader import read
from reference.spaces import LDS_BYTES, REGION_BYTES, SCRATCH_BYTES
from reference.values import some
from reference.vector import same
from reference.wave import LANES, M32, Wave

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "isa" / "semantics"))
from waves import MODE as KERNEL_MODE  # noqa: E402
from waves import run  # noqa: E402

LAST_SCALAR = 96
REGIONS = 32
VECTORS = 256
SRAM_ECC = ("gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx9-4-generic", "gfx1250", "gfx1251")


@dataclass
class Batch:
    """Mutable: a program that grows by cases until its registers are used up."""

    isa: InstructionSet
    seed: int
    mode: int = KERNEL_MODE
    code: list[Inst] = field(default_factory=list)
    cases: list[tuple[Case, int, int]] = field(default_factory=list)  # with its first vector and scalar register
    vgprs: dict[int, list[int]] = field(default_factory=dict)
    agprs: dict[int, list[int]] = field(default_factory=dict)
    scalars: dict[int, int] = field(default_factory=dict)
    memory: list[np.ndarray] = field(default_factory=list)
    lds: np.ndarray | None = None
    scratch: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))  # of 64 lanes
    next_vector: int = 0
    next_scalar: int = INPUTS

    def __post_init__(self) -> None:
        generator = random.Random(self.seed)
        for number in range(LAST_SCALAR + 4):
            halves = some(generator, F16) | some(generator, F16) << 16
            before = self.scalars.get(number - 2, 0)
            self.scalars[number] = generator.choice((
                generator.getrandbits(32), number, M32, 0, before, halves, some(generator, F32), some(generator, U32)))
        for number, mask in enumerate(EXECS):
            self.scalars[2 * number], self.scalars[2 * number + 1] = mask & M32, mask >> 32
        self.generator = generator
        # Offsets reach beyond the last record of a region, into the next one.
        self.memory = [np.zeros((REGIONS + 1) * REGION_BYTES + 64, np.uint8)]
        self.lds = np.frombuffer(generator.randbytes(LDS_BYTES), np.uint8).copy()
        self.scratch = np.frombuffer(generator.randbytes(SCRATCH_BYTES * LANES), np.uint8).copy()

    def place(self) -> Place | None:
        """For another case; None if there is no room."""
        full = self.next_vector + WINDOW > self.vectors or self.next_scalar + 24 > LAST_SCALAR
        if full or len(self.cases) == REGIONS:
            return None
        regions = self.memory[0].ctypes.data + 63 & ~63
        return Place(self.next_vector, self.next_scalar, regions + len(self.cases) * REGION_BYTES)

    @property
    def vectors(self) -> int:
        """Registers that every field can name: from RDNA 3 on some have a bit for the half."""
        return VECTORS if self.isa.target.generation < 11 else HALF

    def add(self, case: Case) -> None:
        first, scalar = self.next_vector, self.next_scalar
        self.vgprs.update(case.vgprs)
        self.agprs.update(case.agprs)
        own = _sources_alone(case.inst) if len(self.cases) % 2 else ()
        make, written, masks = self.isa.make, case.inst.writes.sgpr, self.isa.wave_size // 32
        mask = 2 * EXECS.index(case.exec_mask)
        self.code += [make(f"s_mov_b{32 * masks}", sgpr(EXEC, masks), sgpr(mask, masks)),
                      make("s_mov_b64", sgpr(VCC, 2), sgpr(self.generator.choice(range(0, INPUTS, 2)), 2)),
                      make("s_cmp_lg_u32", self.generator.choice((0, 1)) if case.scc is None else case.scc, 0)]
        self.code += [make("s_mov_b32", sgpr(index), value) for index, value in case.scalars.items()]
        for row in own:  # what the instruction reads is made beside it, and nothing reads it after that
            self.vgprs[row] = [value ^ M32 * (case.exec_mask >> lane & 1) for lane, value in enumerate(self.vgprs[row])]
            self.code.append(make("v_not_b32", vgpr(row), vgpr(row)))
        self.code.append(case.inst)
        self.code += [make("v_mov_b32", vgpr(row), 0) for row in own]
        if isinstance(find_meaning(case.inst.op), Branch):
            self.code.append(make("s_not_b32", sgpr(scalar), sgpr(scalar)))
            written |= 1 << scalar
        if case.memory:
            at = (self.memory[0].ctypes.data + 63 & ~63) - self.memory[0].ctypes.data + len(self.cases) * REGION_BYTES
            self.memory[0][at : at + REGION_BYTES] = np.frombuffer(case.memory, np.uint8)
        used = max((i + 1 for i in range(scalar, LAST_SCALAR) if written >> i & 1), default=scalar)
        used = scalar + 8 if isinstance(find_meaning(case.inst.op), Indexing) else used
        self.next_scalar = used + used % 2
        for index, name in ((VCC, "s_mov_b64"), (EXEC, "s_mov_b64"), (SCC, "s_cselect_b32")):
            if written >> index & 1:
                kept = sgpr(self.next_scalar, 2 if name == "s_mov_b64" else 1)
                operands = (sgpr(index, 2),) if index != SCC else (1, 0)
                self.code.append(make(name, kept, *operands))
                self.next_scalar += 2
        registers = [reg.index + reg.dwords for reg in _vectors(case.inst)]
        self.next_scalar += -self.next_scalar % 4
        top = max(registers, default=first)
        top += 8 if isinstance(find_meaning(case.inst.op), RelativeMove) else 0  # M0 is below 8
        self.next_vector = top + top % 2 if registers else first
        self.cases.append((case, first, scalar))

    def differences(self) -> Iterator[str]:
        """Each with the case that it belongs to."""
        wave = self.wave()
        vgprs, agprs = ({index: np.array(lanes, np.uint32) for index, lanes in rows.items()}
                        for rows in (self.vgprs, self.agprs))
        state = run(self.code, isa=self.isa, mode=self.mode, exec_mask=FULL, vgprs=vgprs, agprs=agprs, lds=self.lds,
                    sgprs={**self.scalars, MODE: self.mode}, memory=self.memory, scratch=self.scratch,
                    scratch_bytes=SCRATCH_BYTES)
        if state.status is not Status.JUMP:
            yield f"the emulator stopped: {state.status.name} {state.fault()}: {self._all()}"
            return
        read(wave, self.code)
        yield from self._vectors(wave, RegFile.VGPR, wave.vgprs, state.vgpr)
        yield from self._vectors(wave, RegFile.AGPR, wave.agprs, state.agpr)
        for index in (*range(LAST_SCALAR), M0):
            if not same(wave.free.get((RegFile.SGPR, index, 0)), wave.scalar(index), state.sgpr(index), (0, 0)):
                yield self._blame(f"s{index}", wave.scalar(index), state.sgpr(index), 0, index)
        for array in self.memory:
            ours, theirs = bytes(wave.memory[array.ctypes.data]), array.tobytes()
            yield from self._bytes("memory", ours, theirs)
        if self.lds is not None:
            yield from self._bytes("LDS", bytes(wave.lds), self.lds.tobytes())
        for (lane, dword), value in self._scratch(state.scratch):
            if value != wave.scratch[lane, dword]:
                yield f"scratch {4 * dword} lane {lane}: 0x{value:x}: {self._all()}"

    def _scratch(self, contents: np.ndarray) -> Iterator[tuple[tuple[int, int], int]]:
        """Dwords by (lane, number)."""
        rows = contents.view(np.uint32).reshape(-1, self.isa.wave_size)[: SCRATCH_BYTES // 4]
        return (((lane, dword), int(value)) for dword, row in enumerate(rows) for lane, value in enumerate(row))

    def wave(self) -> Wave:
        """The reader's, as the emulator's starts."""
        scalars = {**self.scalars, EXEC: M32, EXEC + 1: M32, VCC: 0, VCC + 1: 0, SCC: 0, MODE: self.mode}
        memory = {array.ctypes.data: bytearray(array.tobytes()) for array in self.memory}
        lds = bytearray() if self.lds is None else bytearray(self.lds.tobytes())
        return Wave(scalars, {row: list(values) for row, values in self.vgprs.items()},
                    {row: list(values) for row, values in self.agprs.items()}, lds,
                    dict(self._scratch(self.scratch)), memory,
                    half_products_flush=self.isa.target.half_products_flush,
                    d16_clears=self.isa.target.name in SRAM_ECC,
                    permutes_halves=self.isa.target.permutes_halves,
                    fnuz_floats=self.isa.target.fnuz_floats,
                    replicates_matrices=self.isa.target.replicates_matrices,
                    negates_doubles=self.isa.target.negates_doubles,
                    numbers_win=self.isa.target.numbers_win, first_nan=self.isa.target.first_nan,
                    size=self.isa.wave_size, target=self.isa.target)

    def _vectors(self, wave: Wave, file: RegFile, rows: dict[int, list[int]], theirs) -> Iterator[str]:
        for index in range(VECTORS):
            actual = theirs(index)
            expected = rows.get(index)
            if expected is None:
                if actual.any():
                    yield self._blame(f"{'sva'[file]}{index}", 0, int(actual.max()), index, 0)
                continue
            for lane in range(self.isa.wave_size):
                ours, got = expected[lane], int(actual[lane])
                free = wave.free.get((file, index, lane))
                whole = (0, 0)
                if free is not None and free.width == 64:
                    low = index - free.shift // 32
                    whole = (rows[low][lane] | rows[low + 1][lane] << 32,
                             int(theirs(low)[lane]) | int(theirs(low + 1)[lane]) << 32)
                if not same(free, ours, got, whole):
                    yield self._blame(f"{'sva'[file]}{index} lane {lane}", ours, got, index, 0, lane)
                    break

    def _blame(self, what: str, ours: int, got: int, vector: int, scalar: int, lane: int = 0) -> str:
        """``vector`` or ``scalar``: the register that differs, of which only one is not 0."""
        place, key = (1, vector) if vector or not scalar else (2, scalar)
        case = [entry for entry in self.cases if entry[place] <= key][-1:] or self.cases[:1]
        inst = case[0][0].inst
        shown = []
        for reg in _vectors(inst):
            rows = self.agprs if reg.file is RegFile.AGPR else self.vgprs
            value = sum(rows.get(reg.index + i, [0] * LANES)[lane] << 32 * i for i in range(reg.dwords))
            shown.append(f"{reg}=0x{value:x}")
        return (f"{self.isa.target.name} {self.isa.text(inst)} [{case[0][0]}] {what}: the reader 0x{ours:x}, "
                f"the emulator 0x{got:x}; before: {' '.join(shown)}")

    def _bytes(self, name: str, ours: bytes, theirs: bytes) -> Iterator[str]:
        if ours != theirs:
            at = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
            differing = f"the reader {ours[at:at + 8].hex()}, the emulator {theirs[at:at + 8].hex()}"
            yield f"{name}+{at}: {differing}: {self._all()}"

    def _all(self) -> str:
        texts = [self.isa.text(case.inst) for case, _, _ in self.cases]
        return f"{self.isa.target.name}: {'; '.join(texts)}"


def _sources_alone(inst: Inst) -> list[int]:
    """VGPRs that it reads and does not write."""
    if isinstance(find_meaning(inst.op), Branch | Indexing | RelativeMove):
        return []
    reads, writes, _ = inst.effects()
    own = reads.vgpr & ~writes.vgpr
    return [row for row in range(VECTORS) if own >> row & 1]


def _vectors(inst: Inst) -> Sequence[Reg]:
    regs = [operand.reg for operand in inst.operands if operand.reg is not None]
    return [reg for reg in regs if reg.file is not RegFile.SGPR]
