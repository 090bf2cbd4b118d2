"""What a launch did: how often each instruction ran, and in how many lanes.

In: counters of a launch. Out: exact counts by address; the oracle of every counting tool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from luthier_py.base.records import dataclass
from luthier_py.emulator.waves.cycle_account import LaunchCycles
from luthier_py.isa.encoding.instruction import Inst


@dataclass(frozen=True, slots=True)
class LaunchProfile:
    """Counts of one launch; addresses are those of the code object."""

    kernel: str
    groups: int
    waves: int
    counts: Mapping[int, int]
    """Wave instructions by address."""
    lanes: Mapping[int, int]
    """Active lanes, summed over those executions."""
    active: Mapping[int, int]
    """Those of these executions that had an active lane."""
    seconds: float
    insts: Mapping[int, Inst]
    base: int = 0
    """Device address of address 0."""
    cycles: LaunchCycles | None = None
    """By the cycle model, where the launch ran with it."""

    @property
    def total(self) -> int:
        """Wave instructions."""
        return sum(self.counts.values())

    @property
    def total_lanes(self) -> int:
        """Instructions counted once for each active lane."""
        return sum(self.lanes.values())

    @property
    def total_active(self) -> int:
        """Wave instructions with an active lane."""
        return sum(self.active.values())

    def opcodes(self) -> Counter[str]:
        """Wave instructions by mnemonic; a dual one is of both."""
        return self._by_opcode(self.counts)

    def lane_opcodes(self) -> Counter[str]:
        """Instructions by mnemonic, counted once for each active lane."""
        return self._by_opcode(self.lanes)

    def active_opcodes(self) -> Counter[str]:
        """Wave instructions with an active lane by mnemonic."""
        return self._by_opcode(self.active)

    def _by_opcode(self, counts: Mapping[int, int]) -> Counter[str]:
        found: Counter[str] = Counter()
        for pc, count in counts.items():
            if count:
                for mnemonic in self.insts[pc].op.mnemonics:
                    found[mnemonic] += count
        return found
