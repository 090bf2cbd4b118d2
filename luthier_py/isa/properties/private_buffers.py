"""Private memory that is reached through a buffer resource, for want of scratch instructions.

In: an instruction. Out: its resource. Sources: AMDGPUUsage, "Private Segment Buffer"; GCN 3 ISA, 8.1.5 (swizzled
addressing). Invariant: the resource adds the lane's number itself, so each lane has separate memory; what has an
index reaches that of others, and is none of these.
"""

from __future__ import annotations

from luthier_py.isa.encoding.instruction import Inst, OpFlag, Space
from luthier_py.isa.model.registers import Reg

_INDEXED = ("IDXEN", "BOTHEN")  # in names of LLVM's records


def private_resource(inst: Inst) -> Reg | None:
    """Registers with the resource by which ``inst`` moves data between each lane and its private memory, if it can be
    that."""
    resource = inst.find("srsrc")
    if resource is None or inst.op.spaces != Space.GLOBAL | Space.SCRATCH or OpFlag.ATOMIC in inst.op.flags or (
            any(word in inst.op.record for word in _INDEXED)):
        return None
    return resource.reg
