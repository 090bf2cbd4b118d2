"""Local data share (DS instructions), as data; lane permutations through LDS hardware among them.

In: nothing. Out: rows. Source: AMD Instinct MI200 ISA, chapter 11 and 12.16.
"""

from __future__ import annotations

from enum import Enum, auto

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.meaning import declare
from luthier_py.isa.semantics.memory import Atomic, Load, Modify, Store


@dataclass(frozen=True, slots=True)
class LoadTwo:
    """Two elements of ``dwords`` at offset0 and offset1, which count in ``stride`` bytes."""

    dwords: int
    stride: int


@dataclass(frozen=True, slots=True)
class StoreTwo:
    """data0 and data1, of ``dwords`` each, to offset0 and offset1, which count in ``stride`` bytes."""

    dwords: int
    stride: int


@dataclass(frozen=True, slots=True)
class ExchangeTwo:
    """data0 and data1, of ``dwords``, into two places as StoreTwo's; what was there to vdst."""

    dwords: int
    stride: int


@dataclass(frozen=True, slots=True)
class FromLds:
    """An atomic without a result, or a store (``modify`` is SWAP), whose data are in LDS as well.

    They are at addr + 4 * offset, of which offset[14:0] counts with its sign; with offset[15] it would be addr[31:17]
    (GCN 3 ISA, 12.14, DS_ADD_SRC2_U32). Those of all lanes are read before any lane's step.
    """

    atomic: Atomic


@dataclass(frozen=True, slots=True)
class LaneCount:
    """The number of lanes in EXEC is added to a dword at M0[15:0] + offset, or taken from it; all get what was there.

    The manuals say "at instr_offset if LDS"; LLVM puts the address in M0 (SIISelLowering, ds_append and ds_consume).
    """

    modify: Modify


@dataclass(frozen=True, slots=True)
class LoadToLds:
    """``dwords`` from memory to LDS, at M0 + the instruction's offset + the lane's number times their size.

    Of M0 the bits that an address in LDS may have: 16, and 18 where it has 160 KiB. Less than a dword
    is extended to one.
    """

    dwords: int = 1
    bits: int = 32
    signed: bool = False

    @property
    def bytes(self) -> int:
        """The size in memory."""
        return self.dwords * self.bits // 8


@dataclass(frozen=True, slots=True)
class StoreFromLds:
    """A dword from LDS to memory, where LoadToLds would put it (GCN 3 ISA, 12.15, BUFFER_STORE_LDS_DWORD)."""


class Permute(Enum):
    """From which lane a lane of vdst gets its value; it passes through LDS hardware, but no memory."""

    FORWARD = auto()   # vdst in lane addr / 4 = data0 of this lane; the highest lane wins
    BACKWARD = auto()  # vdst = data0 of lane addr / 4, 0 if that lane is not in EXEC
    BACKWARD_ANY = auto()  # the same, but whether that lane is in EXEC does not matter
    SWIZZLE = auto()   # vdst = addr of the lane that the offset's pattern says


for _bits, _words in ("32", 1), ("64", 2), ("96", 3), ("128", 4):
    declare(f"DS_READ_B{_bits}", Load(_words))
    declare(f"DS_WRITE_B{_bits}", Store(_words))
for _word, _size, _signed in ("U8", 8, False), ("I8", 8, True), ("U16", 16, False), ("I16", 16, True):
    declare(f"DS_READ_{_word}", Load(bits=_size, signed=_signed))
    if _word != "I16":
        declare(f"DS_READ_{_word}_D16", Load(bits=_size, signed=_signed, half="low"))
        declare(f"DS_READ_{_word}_D16_HI", Load(bits=_size, signed=_signed, half="high"))
for _word, _size in ("B8", 8), ("B16", 16):
    declare(f"DS_WRITE_{_word}", Store(bits=_size))
    declare(f"DS_WRITE_{_word}_D16_HI", Store(bits=_size, half="high"))
for _words in 1, 2:
    declare(f"DS_READ2_B{32 * _words}", LoadTwo(_words, 4 * _words))
    declare(f"DS_READ2ST64_B{32 * _words}", LoadTwo(_words, 256 * _words))
    declare(f"DS_WRITE2_B{32 * _words}", StoreTwo(_words, 4 * _words))
    declare(f"DS_WRITE2ST64_B{32 * _words}", StoreTwo(_words, 256 * _words))
for _suffix, _words in ("", 1), ("X3", 3), ("X4", 4):  # CDNA 3 ISA, 9.1.9 and 10.4; wider ones from CDNA 4 on
    declare(f"GLOBAL_LOAD_LDS_DWORD{_suffix}", LoadToLds(_words))
    declare(f"BUFFER_LOAD_DWORD{_suffix}_LDS", LoadToLds(_words))
declare("SCRATCH_LOAD_LDS_DWORD", LoadToLds())
declare("BUFFER_STORE_LDS_DWORD", StoreFromLds())
for _word, _size, _signed in ("UBYTE", 8, False), ("SBYTE", 8, True), ("USHORT", 16, False), ("SSHORT", 16, True):
    declare(f"GLOBAL_LOAD_LDS_{_word} SCRATCH_LOAD_LDS_{_word} BUFFER_LOAD_{_word}_LDS", LoadToLds(1, _size, _signed))
for _words in 1, 2:
    declare(f"DS_WRXCHG2_B{32 * _words}", ExchangeTwo(_words, 4 * _words))
    declare(f"DS_WRXCHG2ST64_B{32 * _words}", ExchangeTwo(_words, 256 * _words))
declare("DS_READ_ADDTID_B32", Load(by_lane=True))
declare("DS_WRITE_ADDTID_B32", Store(by_lane=True))
declare("DS_APPEND", LaneCount(Modify.ADD))
declare("DS_CONSUME", LaneCount(Modify.SUB))
declare("DS_PERMUTE_B32", Permute.FORWARD)
declare("DS_BPERMUTE_B32", Permute.BACKWARD)
declare("DS_BPERMUTE_FI_B32", Permute.BACKWARD_ANY)
declare("DS_SWIZZLE_B32", Permute.SWIZZLE)

_ATOMICS = {
    "ADD": (Modify.ADD, "u"), "SUB": (Modify.SUB, "u"), "RSUB": (Modify.RSUB, "u"), "INC": (Modify.INC, "u"),
    "DEC": (Modify.DEC, "u"), "MIN_I": (Modify.MIN, "i"), "MAX_I": (Modify.MAX, "i"), "MIN_U": (Modify.MIN, "u"),
    "MAX_U": (Modify.MAX, "u"), "AND": (Modify.AND, "b"), "OR": (Modify.OR, "b"), "XOR": (Modify.XOR, "b"),
    "MSKOR": (Modify.MASK_OR, "b"), "CMPST": (Modify.COMPARE_SWAP, "b"), "ADD_F": (Modify.ADD, "f"),
    "MIN_F": (Modify.MIN, "f"), "MAX_F": (Modify.MAX, "f"), "CMPST_F": (Modify.COMPARE_SWAP, "f"),
    "CMPSTORE": (Modify.COMPARE_SWAP, "b"), "CMPSTORE_F": (Modify.COMPARE_SWAP, "f"),
}  # fmt: skip
for _bits_ in 32, 64:
    for _word, (_modify, _kind) in _ATOMICS.items():
        _name, _type = _word.removesuffix("_I").removesuffix("_U").removesuffix("_F"), _kind.upper() + str(_bits_)
        _row = Atomic(_modify, _kind.replace("b", "u"), _bits_, compare_first=_name == "CMPST")
        declare(f"DS_{_name}_{_type}", _row)
        if _modify not in (Modify.MASK_OR, Modify.COMPARE_SWAP):
            declare(f"DS_{_name}_SRC2_{_type}", FromLds(_row))
    declare(f"DS_WRXCHG_B{_bits_}", Atomic(Modify.SWAP, "u", _bits_))
    declare(f"DS_WRITE_SRC2_B{_bits_}", FromLds(Atomic(Modify.SWAP, "u", _bits_)))
declare("DS_WRAP_B32", Atomic(Modify.WRAP))
declare("DS_COND_SUB_U32", Atomic(Modify.CONDITIONAL_SUB))  # RDNA 4 ISA, 16.15
declare("DS_SUB_CLAMP_U32", Atomic(Modify.CLAMPED_SUB))
declare("DS_CONDXCHG32_B64", Atomic(Modify.MARKED_SWAP, "u", 64))
declare("DS_PK_ADD_F16", Atomic(Modify.ADD, "p"))
declare("DS_PK_ADD_BF16", Atomic(Modify.ADD, "b"))
