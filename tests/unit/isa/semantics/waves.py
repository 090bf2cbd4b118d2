"""A bench for single instructions: assemble, run one wave on chosen registers, look at the registers.

In: instructions, register contents, memory. Out: the wave's state after them. It drives the translator
directly, without code objects, launches or the scheduler, so a failure points at the instruction.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luthier_py.base.llvm import Effort
from luthier_py.emulator.code.engine import link_function, object_code
from luthier_py.emulator.options.settings import FIRST_COUNTER, FIRST_SITE, Settings
from luthier_py.emulator.reading.discover import discover
from luthier_py.emulator.records.layout import (
    AGPR_ROW,
    SITE_BYTES,
    TEMPORARY_ROWS,
    VECTOR_ROWS,
    WAVE,
    WORKER,
    Status,
    row_offset,
)
from luthier_py.emulator.translation.host_functions import translate
from luthier_py.emulator.waves.launch import SHARED_BASE, private_base
from luthier_py.isa import EXEC, SCC, VCC, Inst, InstructionSet, Setting, instruction_set, sgpr, target
from luthier_py.isa import MODE as MODE_REGISTER
from luthier_py.isa.model.target_id import TargetId

Row = NDArray[Any]
FULL = (1 << 64) - 1
DENORMALS = 0xF0
MODE = DENORMALS | 0x300  # denormals kept, DX10_CLAMP, IEEE
ISA = instruction_set(target("gfx90a"), 64)
CODE_BASE = 0x7000_0000_0000


@dataclass
class Setup:
    """What a wave finds. Of wave32 the first half of the lanes counts."""

    vgprs: Mapping[int, Row] = field(default_factory=dict)   # 64 dwords, or 64 quadwords for a pair
    agprs: Mapping[int, Row] = field(default_factory=dict)
    sgprs: Mapping[int, int] = field(default_factory=dict)   # dwords
    exec_mask: int = FULL
    vcc: int = 0
    scc: int = 0
    mode: int = MODE
    lds: Row | None = None
    scratch_bytes: int = 0                                   # of a lane
    scratch: Row | None = None                               # bytes of all lanes before the run, as they are swizzled
    memory: Sequence[Row] = ()                               # arrays that may be accessed
    isa: InstructionSet = ISA
    sramecc: Setting = Setting.ANY                           # of the device


class State:
    """Registers after the run."""

    def __init__(self, memory: NDArray[np.uint8], status: int, scratch: Row, wave_size: int = 64) -> None:
        self._memory, self._size = memory, wave_size
        self.status = Status(status)
        self.scratch = scratch

    def sgpr(self, index: int, dwords: int = 1) -> int:
        return int.from_bytes(self._memory[4 * index : 4 * (index + dwords)].tobytes(), "little")

    @property
    def scc(self) -> int:
        return self.sgpr(SCC)

    @property
    def vcc(self) -> int:
        return self.sgpr(VCC, 2)

    @property
    def exec_mask(self) -> int:
        return self.sgpr(EXEC, 2)

    def vgpr(self, index: int, kind: type = np.uint32) -> Row:
        low = self._row(index)
        if np.dtype(kind).itemsize == 8:
            return (low.astype(np.uint64) | self._row(index + 1).astype(np.uint64) << np.uint64(32)).view(kind)
        return low.view(kind)

    def agpr(self, index: int) -> Row:
        return self._row(index + AGPR_ROW)

    def fault(self) -> tuple[int, int, int]:
        """(kind, lane, address)."""
        kind, lane, address = (self._memory[WAVE[f"fault_{name}"] :][:8].view(np.uint64)[0]
                               for name in ("kind", "lane", "address"))
        return int(kind), int(lane), int(address)

    def _row(self, row: int) -> Row:
        start = row_offset(row, self._size)
        return self._memory[start : start + 4 * self._size].view(np.uint32)


def run(code: Sequence[Inst], setup: Setup | None = None, **changes: Any) -> State:
    """Run ``code``, then leave by s_setpc, after which every register counts; keyword arguments are fields of Setup."""
    setup = setup or Setup(**changes)
    size = setup.isa.wave_size
    raw = b"".join(inst.raw for inst in [*code, setup.isa.make("s_setpc_b64", sgpr(100, 2))])
    blocks = discover(lambda pc: setup.isa.decode(raw, pc), 0)
    (host,) = translate(blocks, 0, Settings(
        size, setup.mode, setup.isa.target,
        d16_clears=TargetId(setup.isa.target, setup.sramecc, Setting.ANY).d16_clears))
    numbers = host.numbers
    code = object_code(host.ir, Effort.GENERATE)
    engine = link_function(host.name, code, size, {FIRST_COUNTER: 0, FIRST_SITE: 0})
    wave = aligned(row_offset(VECTOR_ROWS + TEMPORARY_ROWS, size))
    counters = np.zeros(max(len(numbers.counters), 1), np.uint64)
    sites = np.zeros(max(len(numbers.sites), 1) * SITE_BYTES // 8, np.uint64)
    rows = sorted((array.ctypes.data, array.ctypes.data + array.nbytes, 1) for array in setup.memory)
    allocations = np.array([len(rows), *(word for row in rows for word in row)], np.uint64)
    cell = np.array([allocations.ctypes.data], np.uint64)
    worker = np.zeros(len(WORKER), np.uint64)
    for name, value in {
        "counters": counters.ctypes.data, "sites": sites.ctypes.data, "allocations": cell.ctypes.data,
        "code_base": CODE_BASE, "shared_base": SHARED_BASE, "private_base": private_base(setup.isa.target),
    }.items():
        worker[WORKER[name] // 8] = value
    scratch = aligned(max(setup.scratch_bytes, 4) * 64)
    if setup.scratch is not None:
        scratch[: setup.scratch.nbytes] = setup.scratch
    _fill(wave, setup, worker, scratch)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(engine.address(host.name))
    status = function(wave.ctypes.data)
    return State(wave, status, scratch, size)


def aligned(size: int) -> NDArray[np.uint8]:
    """Zeroed bytes where native code may load whole vectors: registers and private memory of waves lie so."""
    space = np.zeros(size + 64, np.uint8)
    return space[-space.ctypes.data % 64 :][:size]


def _fill(wave: NDArray[np.uint8], setup: Setup, worker: Row, scratch: Row) -> None:
    words, size = wave[:1024].view(np.uint32), setup.isa.wave_size
    masks = {EXEC: setup.exec_mask, VCC: setup.vcc}
    scalars = {
        **{i + w: m >> 32 * w & 0xFFFFFFFF for i, m in masks.items() for w in (0, 1)},
        SCC: setup.scc, MODE_REGISTER: setup.mode,
        **setup.sgprs,
    }
    for index, value in scalars.items():
        words[index] = value
    fields = {"pc": CODE_BASE, "budget": 1 << 40, "worker": worker.ctypes.data, "scratch": scratch.ctypes.data,
              "scratch_bytes": setup.scratch_bytes}
    if setup.lds is not None:
        fields |= {"lds": setup.lds.ctypes.data, "lds_bytes": setup.lds.nbytes}
    for name, value in fields.items():
        wave[WAVE[name] :][:8].view(np.uint64)[0] = value
    for base, registers in ((0, setup.vgprs), (AGPR_ROW, setup.agprs)):
        for index, values in registers.items():
            words_of_lane = np.ascontiguousarray(values).view(np.uint32).reshape(64, -1)
            for word in range(words_of_lane.shape[1]):
                start = row_offset(base + index + word, size)
                wave[start : start + 4 * size].view(np.uint32)[:] = words_of_lane[:size, word]
