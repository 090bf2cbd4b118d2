"""Counts how often each opcode is executed."""

from __future__ import annotations

from collections import Counter

from luthier_py import EXEC, LaunchResult, Mutator, Option, Tool, Variable, hook, ptr, sgpr, u64
from luthier_py.intrinsics import atomic_add, popcount


class OpcodeHistogram(Tool):
    """Executions of each opcode, counted once per basic block."""

    name = "opcode_histogram"
    level = Option(
        "wave", choices=("wave", "thread"), help="count an instruction once per wave, or once per active lane"
    )

    @hook(lanes="one")
    def count(executions: ptr[u64]) -> None:
        atomic_add(executions, u64(1))

    @hook(lanes="one")
    def count_lanes(executions: ptr[u64], active: u64) -> None:
        atomic_add(executions, u64(popcount(active)))

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.pieces: list[Counter[str]] = []  # opcodes of each counted piece of code
        self.total: Counter[str] = Counter()

    def instrument(self, m: Mutator) -> None:
        """A counter for each piece of code that runs as a whole: its opcodes are known, its executions are counted."""
        cut = m.stretches if self.level == "thread" else m.runs
        pieces = [piece for function in m.functions() for block in function.blocks for piece in cut(block)]
        self.pieces = [Counter(i.inst.op.mnemonic for i in piece.instrs) for piece in pieces]
        if not pieces:
            return
        self.executions = Variable(u64, len(pieces), name="OpcodeHistogram.executions")
        for slot, piece in enumerate(pieces):
            if self.level == "thread":
                m.at_stretch(piece, self.count_lanes, self.executions[slot], sgpr(EXEC, 2), anywhere=True)
            else:
                m.at_stretch(piece, self.count, self.executions[slot], anywhere=True)

    def report(self, launch: LaunchResult) -> dict[str, dict[str, int]]:
        opcodes: Counter[str] = Counter()
        for executions, piece in zip(launch[self.executions], self.pieces, strict=True):
            opcodes.update({mnemonic: n * executions for mnemonic, n in piece.items() if executions})
        self.total += opcodes
        return {"opcodes": dict(opcodes.most_common())}

    def text(self, launch: LaunchResult, report: dict[str, dict[str, int]]) -> str:
        opcodes = report["opcodes"]
        head = (
            f"kernel {launch.index} - {launch.kernel} - #workgroups {launch.workgroups}, "
            f"kernel instructions {sum(opcodes.values())}, total instructions {sum(self.total.values())}"
        )
        return "\n".join([head, *(f"  {mnemonic} = {n}" for mnemonic, n in opcodes.items())])
