"""Operations that put a result together of parts of their sources, each of which may be of no account.

In: an operation. Out: whether it is one. Source: AMD ISA manuals, vector operations; compilers give these any register
for a part that no instruction reads.
"""

from __future__ import annotations

from luthier_py.isa.encoding.instruction import OpInfo

_MERGING = frozenset({
    "V_OR_B32", "V_OR_B16", "V_OR3_B32", "V_PERM_B32", "V_BFI_B32", "V_ALIGNBIT_B32", "V_ALIGNBYTE_B32",
    "V_LSHL_OR_B32", "V_AND_OR_B32", "V_PACK_B32_F16", "S_PACK_LL_B32_B16", "S_PACK_LH_B32_B16", "S_PACK_HH_B32_B16",
    "S_PACK_HL_B32_B16", "V_PERM_PK16_B4_U4", "V_PERM_PK16_B6_U4", "V_PERM_PK16_B8_U4",
})  # fmt: skip
_PREFIXES = "V_CVT_PK", "V_FMA_MIXLO", "V_FMA_MIXHI", "V_MAD_MIXLO", "V_MAD_MIXHI"


def merges(op: OpInfo) -> bool:
    """Whether parts of its result come from one source alone."""
    return op.base in _MERGING or op.base.startswith(_PREFIXES)
