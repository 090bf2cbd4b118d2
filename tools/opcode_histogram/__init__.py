"""Counts how often each opcode is executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from luthier_py import (
    COUNT_WARP_LEVEL,
    EXCLUDE_PRED_OFF,
    EXEC,
    LaunchResult,
    Mutator,
    Tool,
    Variable,
    WaveVariable,
    hook,
    ptr,
    sgpr,
    u32,
    u64,
)
from luthier_py.intrinsics import active_mask, atomic_add, popcount
from luthier_py.ir import Instr


@dataclass(frozen=True, slots=True)
class Pieces:
    """Code of one program that is counted together: the opcodes of each piece, and its executions on the device."""

    opcodes: tuple[Counter[str], ...]
    executions: Variable


def pieces_of(pieces: Iterable[tuple[Instr, ...]]) -> Pieces:
    opcodes = tuple(Counter(instr.inst.op.mnemonic for instr in piece) for piece in pieces)
    return Pieces(opcodes, Variable(u64, max(len(opcodes), 1), name="OpcodeHistogram.executions"))


class OpcodeHistogram(Tool):
    """Executions of each opcode, counted once for all blocks that run equally often."""

    name = "opcode_histogram"
    per_wave = COUNT_WARP_LEVEL
    active_only = EXCLUDE_PRED_OFF

    threads = WaveVariable(u32)  # that the wave was launched with

    @hook(lanes="one")
    def count(executions: ptr[u64]) -> None:
        atomic_add(executions, u64(1))

    @hook(lanes="one")
    def count_if_active(executions: ptr[u64], exec: u64, lanes: u64) -> None:
        if exec & lanes != 0:
            atomic_add(executions, u64(1))

    @hook(lanes="one")
    def count_lanes(executions: ptr[u64], exec: u64, lanes: u64) -> None:
        atomic_add(executions, u64(popcount(exec & lanes)))

    @hook(lanes="one")
    def count_threads(executions: ptr[u64], threads: u32) -> None:
        atomic_add(executions, u64(threads))

    @hook
    def start() -> u32:
        return popcount(active_mask())

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.total: Counter[str] = Counter()

    def instrument(self, m: Mutator) -> Pieces:
        """A counter for all code that runs equally often: its opcodes are known, its executions are counted."""
        functions = m.functions()
        if self.active_only:
            counting = self.count_if_active if self.per_wave else self.count_lanes
            lanes = (1 << m.program.isa.wave_size) - 1
            stretches = [s for function in functions for block in m.blocks(function) for s in m.stretches(block)]
            pieces = pieces_of(stretch.instrs for stretch in stretches)
            for slot, stretch in enumerate(stretches):
                m.at_stretch(stretch, counting, pieces.executions[slot], sgpr(EXEC, 2), lanes, anywhere=True)
            return pieces
        if not self.per_wave:
            for kernel in m.kernels:
                m.at_entry(kernel, self.start, into=self.threads)
        regions = [region for function in functions for region in m.regions(function)]
        pieces = pieces_of(region.instrs for region in regions)
        for slot, region in enumerate(regions):
            if self.per_wave:
                m.at_region(region, self.count, pieces.executions[slot])
            else:
                m.at_region(region, self.count_threads, pieces.executions[slot], self.threads)
        return pieces

    def report(self, launch: LaunchResult) -> dict[str, dict[str, int]]:
        opcodes: Counter[str] = Counter()
        pieces: Pieces = launch.notes
        for executions, piece in zip(launch[pieces.executions], pieces.opcodes, strict=False):
            opcodes.update({mnemonic: n * executions for mnemonic, n in piece.items() if executions})
        self.total += opcodes
        return {"opcodes": dict(opcodes.most_common())}

    def text(self, launch: LaunchResult, report: dict[str, dict[str, int]]) -> str:
        opcodes = report["opcodes"]
        head = (
            f"{self.headline(launch)}, kernel instructions {sum(opcodes.values())}, "
            f"total instructions {sum(self.total.values())}"
        )
        return "\n".join([head, *(f"  {mnemonic} = {n}" for mnemonic, n in opcodes.items())])
