"""What a compute unit can do in a cycle at most: operations on floats, bytes from its vector cache, accesses to LDS.

In: a target's instructions. Out: its Peaks, from what the cycle model (isa/timing/cycles, with its sources) says of
fused multiplications and additions and of matrix instructions. Invariant: what the model says nothing of, as memory
behind the vector cache, has no peak. Sets of banks are AMD's: one in a compute unit, two in a work-group processor
(isa/timing/lds_banks, "isa").
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.base.records import dataclass
from luthier_py.isa.by_target import InstructionSet
from luthier_py.isa.encoding.instruction import Inst, OpFlag
from luthier_py.isa.semantics.readers.work import flops_by_type
from luthier_py.isa.timing.costs import cost_of
from luthier_py.isa.timing.cycles import cycle_model

_FUSED = frozenset("V_FMA_F16 V_PK_FMA_F16 V_FMA_F32 V_PK_FMA_F32 V_DUAL_FMAC_F32_X_FMAC_F32 V_FMA_F64".split())



@dataclass(frozen=True, slots=True)
class Peaks:
    """Of what shares one LDS: a compute unit, on RDNA a work-group processor."""

    flops: Mapping[str, int]  # in a cycle, by type
    bytes: int                # in a cycle, from the vector cache to registers
    lds_sets: int             # of banks, which serve waves side by side
    model: str                # whose numbers these are
    assumed: str              # what of them no source has


def peaks_of(isa: InstructionSet) -> Peaks:
    """For waves of the instruction set's size; of each type the instruction that does most of it in a cycle."""
    target, model = isa.target, cycle_model(isa.target)
    found: dict[str, int] = {}
    for op in isa.ops:
        if op.base in _FUSED or OpFlag.MATRIX in op.flags:
            held = cost_of(target, Inst(op, (), None, b"", ()), isa.wave_size).held
            for type, count in flops_by_type(op).items():
                found[type] = max(count * isa.wave_size * target.simds // held, found.get(type, 0))
    return Peaks(found, model.memory_bytes, 1 if target.generation < 10 else 2, model.name, model.assumed)
