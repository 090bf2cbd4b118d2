"""The banks of LDS: which lanes an access serves in one cycle, and which words stand in each other's way.

In: a target, and decoded DS instructions. Out: the rule by which an instruction takes cycles, as data. The model: an
access of a wave is served in groups of lanes; a bank gives one of its words in a cycle, to all lanes of the group that
want it; so a group takes as many cycles as its busiest bank has different words to give. Lanes that modify a word
(atomics) take a cycle each. Invariant: a group without conflicts takes one cycle, also where none of its lanes is
active; an access without an active lane takes none.

No manual says all of this. Each row names its sources; docs/bank-conflicts.md says where they disagree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from functools import cache

from luthier_py.base.records import dataclass
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.model.target import Target
from luthier_py.isa.semantics import rows
from luthier_py.isa.semantics.cdna4 import TransposedLoad
from luthier_py.isa.semantics.lds import LoadTwo, StoreTwo
from luthier_py.isa.semantics.memory import Atomic, Load, Store


class Way(Enum):
    """What an access does to the words that it meets."""

    READ = "read"
    WRITE = "write"
    ATOMIC = "atomic"


class Evidence(Enum):
    """How well a row is known."""

    MEASURED = "measured"      # on the hardware, by the source
    DOCUMENTED = "documented"  # said by AMD
    ASSUMED = "assumed"        # from a relative of the target


SOURCES = {
    "isa": "AMD ISA manuals (Vega to CDNA3: 32 banks in a compute unit; RDNA: 64 banks in a work-group processor, two "
           "sets of 32), chapter Data Share",
    "opencl": "AMD Accelerated Parallel Processing OpenCL Programming Guide, LDS: conflicts are determined for each "
              "half wavefront; for each quarter with 64-bit accesses",
    "ck": "https://rocm.docs.amd.com/projects/composable_kernel/en/latest/conceptual/ck_tile/hardware/"
          "lds_bank_conflicts.html: ds_write_b128 in eight groups of eight neighbours",
    "triton": "https://github.com/triton-lang/triton/pull/11365: groups of ds_read_b128 on MI300 and MI350",
    "rocroller": "https://github.com/ROCm/rocm-libraries/pull/2157: relative widths; 64 banks on gfx950 for "
                 "ds_read_b64 and ds_read_b128 only",
    "hipkittens": "HipKittens, analysis/paper_experiments/phases: measured on MI350 for ds_read_b64, b96, b128 and "
                  "ds_write_b64",
    "shark": "https://github.com/nod-ai/amd-shark-ai/pull/2919, docs/empirical-lds: measured on W7900 (RDNA 3) and RX "
             "9070 XT (RDNA 4) for ds_read_b128",
    "llvm": "https://github.com/llvm/llvm-project/pull/219063 and /220632: 64 banks on gfx950 and gfx12.5, else 32",
    "idle": "groups without an active lane: https://github.com/tinygrad/tinygrad, extra/sqtt/examples, counters of its "
            "gemm on gfx1100, gfx1200 and gfx950; ROCm Compute Profiler, LDS examples, measured on MI250",
}


@dataclass(frozen=True, slots=True)
class LaneGroups:
    """How accesses of one kind are served."""

    parities: tuple[int, ...]
    """Masks of lane numbers: lanes for which all masks have the same parity of bits are served together."""
    banks: int
    evidence: Evidence
    sources: tuple[str, ...]

    def group(self, lane: int) -> int:
        """Number of the group that serves ``lane``."""
        return sum((bin(lane & mask).count("1") & 1) << bit for bit, mask in enumerate(self.parities))

    def groups(self, wave_size: int) -> tuple[tuple[int, ...], ...]:
        """The lanes of each group."""
        found: dict[int, list[int]] = {}
        for lane in range(wave_size):
            found.setdefault(self.group(lane), []).append(lane)
        return tuple(map(tuple, found.values()))

    def count(self, wave_size: int) -> int:
        """The number of groups: each mask that separates lanes doubles it."""
        return 1 << len(self.parities_in(wave_size))

    def parities_in(self, wave_size: int) -> tuple[int, ...]:
        """The masks that separate lanes of such a wave."""
        return tuple(mask for mask in self.parities if mask & (wave_size - 1))


@dataclass(frozen=True, slots=True)
class BankModel:
    """The services of a target, for reads and writes by dwords of a lane; atomics are served as writes are."""

    name: str
    reads: tuple[LaneGroups, LaneGroups, LaneGroups, LaneGroups]
    writes: tuple[LaneGroups, LaneGroups, LaneGroups, LaneGroups]

    def service(self, way: Way, dwords: int) -> LaneGroups:
        """How an access of ``dwords`` in each lane, from 1 to 4, is served."""
        return (self.reads if way is Way.READ else self.writes)[dwords - 1]

    def least(self, access: LdsAccess, wave_size: int) -> int:
        """Cycles of an access without conflicts."""
        return len(access.offsets_bytes) * self.service(access.way, access.dwords).count(wave_size)


@dataclass(frozen=True, slots=True)
class LdsAccess:
    """What one DS instruction does, in each lane: for each offset, ``dwords`` from the lane's address on.

    A pair (read2, write2) is two accesses, one after the other.
    """

    way: Way
    dwords: int
    offsets_bytes: tuple[int, ...]


# Groups as parity masks: halves, quarters, eighths of neighbours; and the two orders of 128-bit reads.
HALVES, QUARTERS, EIGHTHS = (0x20,), (0x20, 0x10), (0x20, 0x10, 0x08)
CROSSED_EIGHTHS = (0x20, 0x08, 0x14)   # 0-3 with 20-23, 4-7 with 16-19, 8-11 with 28-31, 12-15 with 24-27, ...
CROSSED_QUARTERS = (0x20, 0x1C)        # 0-3, 12-15, 20-23 and 24-27, ...

_WORD = LaneGroups(HALVES, 32, Evidence.DOCUMENTED, ("isa", "opencl"))
_TWO = LaneGroups(QUARTERS, 32, Evidence.DOCUMENTED, ("opencl", "rocroller"))
_WRITE_FOUR = LaneGroups(EIGHTHS, 32, Evidence.DOCUMENTED, ("ck", "rocroller"))
_WRITE_THREE = LaneGroups(EIGHTHS, 32, Evidence.ASSUMED, ("rocroller",))
_READ_FOUR = LaneGroups(CROSSED_EIGHTHS, 32, Evidence.MEASURED, ("triton", "ck"))
_READ_THREE = LaneGroups(CROSSED_EIGHTHS, 32, Evidence.ASSUMED, ("hipkittens", "rocroller"))
_WRITES = (_WORD, _TWO, _WRITE_THREE, _WRITE_FOUR)

GFX9 = BankModel("gfx9, CDNA 1 to 3", (_WORD, _TWO, _READ_THREE, _READ_FOUR), _WRITES)
CDNA4 = BankModel(
    "CDNA 4",
    (
        LaneGroups(HALVES, 32, Evidence.DOCUMENTED, ("rocroller",)),
        LaneGroups(HALVES, 64, Evidence.MEASURED, ("hipkittens", "rocroller")),
        LaneGroups(CROSSED_EIGHTHS, 32, Evidence.MEASURED, ("hipkittens", "rocroller")),
        LaneGroups(CROSSED_QUARTERS, 64, Evidence.MEASURED, ("triton", "hipkittens", "rocroller")),
    ),
    (_WORD, LaneGroups(QUARTERS, 32, Evidence.MEASURED, ("hipkittens", "rocroller")), _WRITE_THREE, _WRITE_FOUR),
)
_RDNA = (
    LaneGroups(HALVES, 32, Evidence.DOCUMENTED, ("isa", "llvm")),
    LaneGroups(QUARTERS, 32, Evidence.ASSUMED, ("isa",)),
    LaneGroups(EIGHTHS, 32, Evidence.ASSUMED, ("isa",)),
    LaneGroups(EIGHTHS, 32, Evidence.ASSUMED, ("isa",)),
)
RDNA = BankModel("RDNA", _RDNA, _RDNA)
RDNA3 = BankModel("RDNA 3", (
    *_RDNA[:2], LaneGroups(CROSSED_EIGHTHS, 32, Evidence.ASSUMED, ("shark",)),
    LaneGroups(CROSSED_EIGHTHS, 32, Evidence.MEASURED, ("shark",)),
), _RDNA)
RDNA4 = BankModel("RDNA 4", (
    *_RDNA[:2], LaneGroups(EIGHTHS, 32, Evidence.ASSUMED, ("shark",)),
    LaneGroups(EIGHTHS, 32, Evidence.MEASURED, ("shark",)),
), _RDNA)
_GFX1250 = (
    LaneGroups(HALVES, 64, Evidence.ASSUMED, ("llvm",)),
    LaneGroups(HALVES, 64, Evidence.ASSUMED, ("llvm",)),
    LaneGroups(QUARTERS, 64, Evidence.ASSUMED, ("llvm",)),
    LaneGroups(QUARTERS, 64, Evidence.ASSUMED, ("llvm",)),
)
GFX1250 = BankModel("gfx12.5", _GFX1250, _GFX1250)

_BY_NAME = {"gfx950": CDNA4, "gfx1250": GFX1250, "gfx1251": GFX1250}
_BY_GENERATION = {9: GFX9, 11: RDNA3, 12: RDNA4}


@cache
def bank_model(target: Target) -> BankModel:
    """The bank model of a target."""
    return _BY_NAME.get(target.name, _BY_GENERATION.get(target.generation, RDNA))


def lds_access(inst: Inst) -> LdsAccess | None:
    """What ``inst`` does to LDS at a separate address for each lane; None when it is not such an instruction."""
    addr, row = inst.find("addr"), rows().get(inst.op.base)
    if not inst.op.base.startswith("DS_") or addr is None or addr.reg is None:
        return None
    if isinstance(row, LoadTwo | StoreTwo):
        offsets = tuple(inst[name].value * row.stride for name in ("offset0", "offset1"))
        return LdsAccess(Way.READ if isinstance(row, LoadTwo) else Way.WRITE, row.dwords, offsets)
    offset = inst.find("offset")
    offsets = (offset.value if offset is not None else 0,)
    if isinstance(row, Load):
        return LdsAccess(Way.READ, row.dwords, offsets)
    if isinstance(row, TransposedLoad):  # assumed: read as any such load, before lanes exchange what they read
        return LdsAccess(Way.READ, row.dwords, offsets)
    if isinstance(row, Store):
        return LdsAccess(Way.WRITE, row.dwords, offsets)
    return LdsAccess(Way.ATOMIC, row.bits // 32, offsets) if isinstance(row, Atomic) else None


def cycles_of(model: BankModel, access: LdsAccess, words: Mapping[int, int], wave_size: int) -> int:
    """What one of an access's passes takes: ``words`` has the first word that each active lane wants."""
    service, count = model.service(access.way, access.dwords), 0
    for lanes in service.groups(wave_size) if words else ():
        wanted = [words[lane] + more for lane in lanes if lane in words for more in range(access.dwords)]
        given = wanted if access.way is Way.ATOMIC else set(wanted)
        count += max(Counter(word % service.banks for word in given).values(), default=1)
    return count
