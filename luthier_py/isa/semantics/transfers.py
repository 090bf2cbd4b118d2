"""What moves more than a lane's own element, or between memory and LDS on its own: blocks, copies, direct loads.

In: nothing. Out: rows. Sources: RDNA 4 ISA, 11.5 (blocks; that a register which M0 leaves out keeps its place in memory
is what LLVM's SIFrameLowering counts on), RDNA 3.5 ISA, 12.4 (LDS_DIRECT_LOAD); for gfx1250 LLVM's intrinsics
global.load.async.to.lds and rocjitsu's async_lds_lane_address: the offset is added on both sides.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.meaning import declare
from luthier_py.isa.semantics.memory import Load

BLOCK = 32
"""Registers of a block."""


@dataclass(frozen=True, slots=True)
class BlockTransfer:
    """Registers from the first on and dwords from the address on, those that have a bit in M0."""

    stores: bool


@dataclass(frozen=True, slots=True)
class LdsCopy:
    """``bytes`` of each lane between memory and LDS, at the lane's address (vdst, or vdata)."""

    bytes: int
    stores: bool


@dataclass(frozen=True, slots=True)
class LdsBroadcast:
    """An element at M0[15:0], of the type M0[18:16], to all lanes of quads in which one is active."""


DATA_TYPES = {0: (8, False), 1: (16, False), 2: (32, False), 4: (8, True), 5: (16, True)}
"""M0[18:16]: bits, and whether the sign is extended."""

for _space in "GLOBAL", "SCRATCH":
    declare(f"{_space}_LOAD_BLOCK", BlockTransfer(False))
    declare(f"{_space}_STORE_BLOCK", BlockTransfer(True))
for _bytes in 1, 4, 8, 16:
    declare(f"GLOBAL_LOAD_ASYNC_TO_LDS_B{8 * _bytes}", LdsCopy(_bytes, False))
    declare(f"GLOBAL_STORE_ASYNC_FROM_LDS_B{8 * _bytes}", LdsCopy(_bytes, True))
for _space in "GLOBAL", "FLAT":  # what is watched shows in what S_MONITOR_SLEEP waits for
    for _dwords in 1, 2, 4:
        declare(f"{_space}_LOAD_MONITOR_B{32 * _dwords}", Load(_dwords))
# Work-groups of a cluster that M0 names share one fetch; each still gets what it asks for (LLVM,
# int_amdgcn_cluster_load_async_to_lds_b32: "mask of workgroups"), where all of them execute it.
for _dwords in 1, 2, 4:
    declare(f"CLUSTER_LOAD_B{32 * _dwords}", Load(_dwords))
for _bytes in 1, 4, 8, 16:
    declare(f"CLUSTER_LOAD_ASYNC_TO_LDS_B{8 * _bytes}", LdsCopy(_bytes, False))
declare("LDS_DIRECT_LOAD DS_DIRECT_LOAD", LdsBroadcast())
