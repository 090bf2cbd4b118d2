"""The cycle model's numbers: how long instructions hold their part of the hardware, and when their results are there.

In: a target. Out: its CycleModel. Each number names its source; docs/time.md says what becomes of them. Invariant:
everything is in cycles of the core's clock, for one wave, as if it ran alone; what waves share (SIMDs, LDS,
the vector memory's path) is worked out from how long they hold it. A number that no source has is said to be assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache

from luthier_py.base.records import dataclass, replace
from luthier_py.isa.model.target import Target


class Work(Enum):
    """What an instruction is to the model."""

    VECTOR = "vector"                    # 16 and 32 bits
    WIDE = "wide"                        # 64-bit integers
    MULTIPLY = "multiply"                # integers of 32 bits
    DOUBLE = "double"
    TRANSCENDENTAL = "transcendental"
    TRANSCENDENTAL_DOUBLE = "transcendental double"
    MATRIX = "matrix"
    SCALAR = "scalar"
    SCALAR_FLOAT = "scalar float"
    BRANCH = "branch"
    SCALAR_MEMORY = "scalar memory"
    VECTOR_MEMORY = "vector memory"
    LDS = "lds"
    OTHER = "other"                      # waits, hints, messages, exports


class Pipe(Enum):
    """What waves share: the first three of a SIMD, the others of a compute unit."""

    VECTOR = 0
    MATRIX = 1
    SCALAR = 2
    LDS = 3
    MEMORY = 4


SOURCES = {
    "llvm": "LLVM, llvm/lib/Target/AMDGPU/SISchedule.td: latencies of SIQuarterSpeedModel, SIDPFullSpeedModel and the "
            "models of gfx942 and gfx950 (in quads of cycles), of GFX10, GFX11, GFX12 and GFX1250SpeedModel; how long "
            "an instruction holds RDNA's SIMD is what its latency has more than an ordinary one's",
    "gcn": "AMD Graphics Cores Next Architecture whitepaper (2012): four SIMDs of 16 lanes, each issues every fourth "
           "cycle; a wave64 instruction takes four cycles",
    "hazards": "LLVM, llvm/lib/Target/AMDGPU/GCNHazardRecognizer.cpp: results of matrices can be read 3 wait states "
               "after their last pass, accumulated on at once",
    "rdna": "RDNA Architecture whitepaper (2019): SIMDs of 32 lanes issue every cycle, a wave64 instruction twice; "
            "transcendentals at a quarter of the rate; vector L0 of 128-byte lines; 128 bytes of LDS a cycle",
    "rates": "peak rates in AMD's data sheets and whitepapers, over compute units and clock: MI100, MI200 (CDNA 2), "
             "MI300X (CDNA 3), MI355X (CDNA 4); RX 7900 XTX, RX 9070 XT",
    "wmma": "https://gpuopen.com/learn/using_matrix_core_amd_rdna4: operations for each clock and compute unit: RDNA 3 "
            "512 in f16, bf16 and i8; RDNA 4 1024 in f16 and bf16, 2048 in i8",
    "omniperf": "https://rocm.docs.amd.com/projects/rocprofiler-compute: pipeline descriptions (a wave gets 64 bytes a "
                "cycle of LDS, a compute unit 128), vector L1 cache (64 bytes a cycle; lines of 64 bytes on MI200, of "
                "128 on MI300)",
    "lottes": "https://gpuopen.com/learn/gcn-memory-coalescing: addresses of 16 lanes a cycle",
    "pyhip": "https://github.com/tingqli/pyhip, docs/mem_latency.md: measured on MI308X with s_memtime: LDS read 52 "
             "(b32) and 64 (b128), of which 4 and 16 are throughput; with all banks in conflict 119, every 64 cycles; "
             "HBM read 500 to 800",
    "trans4": "https://github.com/llvm/llvm-project/pull/156411: transcendentals of gfx950 at half rate",
    "assumed": "from a relative of the target",
}


@dataclass(frozen=True, slots=True)
class Timing:
    """Of one kind of work: cycles until the next instruction of it can issue, and until a reader of its result can.

    ``held`` is for as many lanes as a SIMD's row of waves has (CycleModel.lanes), ``ready`` for all.
    """

    held: int
    ready: int
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class CycleModel:
    """Of a family of targets."""

    name: str
    lanes: int                             # of a wave whose vector instructions hold a SIMD for Timing.held
    step: int                              # cycles from an instruction of a wave to its next, at least
    work: Mapping[Work, Timing]
    passes: Mapping[int, int]              # of four cycles, of matrices of so many rows; with rates, of blocks only
    matrix_rates: Mapping[str, int]        # operations of a SIMD in a cycle, by kind of A's elements ("rates", "wmma")
    matrix_extra: int                      # cycles from the end of a matrix instruction to another's reading its result
    lds_latency: int                       # beside the cycles that its banks take
    memory_latency: int                    # of vector memory, beside the cycles that its lines take
    scalar_latency: int                    # of scalar memory
    lds_bytes: int                         # that a wave gets in a cycle
    memory_bytes: int                      # of the vector cache's way to registers, in a cycle
    address_lanes: int                     # whose addresses are looked at in a cycle
    line_bytes: int                        # of the vector cache; one line is looked up in a cycle
    sources: str                           # of the numbers that have no Timing, by SOURCES' names
    assumed: str = ""                      # what of them is taken from a relative of the targets

    def compute_timing(self, work: Work, wave_size: int) -> tuple[int, int]:
        """(held, ready) of vector or scalar work of a wave."""
        found = self.work[work]
        turns = max(wave_size // self.lanes, 1) if work in _BY_LANES else 1
        held = max(found.held * turns, self.step)
        return held, max(found.ready + held - max(found.held, self.step), held)


_BY_LANES = (Work.VECTOR, Work.WIDE, Work.MULTIPLY, Work.DOUBLE, Work.TRANSCENDENTAL, Work.TRANSCENDENTAL_DOUBLE)


def _gcn(**quads: int | tuple[int, str]) -> dict[Work, Timing]:
    """Latency and rate are one: the next instruction issues when the result is there."""
    found = {}
    for name, value in quads.items():
        cycles, source = value if isinstance(value, tuple) else (value, "llvm")
        found[Work[name]] = Timing(4 * cycles, 4 * cycles, source)
    return found


_COMMON = _gcn(VECTOR=(1, "gcn"), WIDE=2, MULTIPLY=4, DOUBLE=16, TRANSCENDENTAL=4, TRANSCENDENTAL_DOUBLE=16, SCALAR=1,
               SCALAR_FLOAT=(1, "assumed"), BRANCH=8, OTHER=(1, "gcn"))

GCN = CycleModel(
    "gfx8, gfx900", 64, 4, _COMMON, {}, {}, 0, lds_latency=48, memory_latency=320, scalar_latency=20, lds_bytes=64,
    memory_bytes=64, address_lanes=16, line_bytes=64, sources="llvm omniperf lottes pyhip")
GCN_HALF = replace(GCN, name="gfx906", work={
    **_COMMON, **_gcn(DOUBLE=(2, "rates"), TRANSCENDENTAL_DOUBLE=(8, "rates"))})
CDNA1 = replace(GCN_HALF, name="CDNA 1", passes={4: 2, 16: 8, 32: 16}, matrix_extra=12,
               sources=GCN.sources + " hazards")
CDNA2 = replace(CDNA1, name="CDNA 2", work={**_COMMON, **_gcn(
    WIDE=1, MULTIPLY=1, DOUBLE=1, TRANSCENDENTAL_DOUBLE=4)})
CDNA3 = replace(CDNA2, name="CDNA 3", line_bytes=128, sources=CDNA1.sources + " rates", matrix_rates={
    "f32": 64, "f64": 64, "xf32": 256, "f16": 512, "bf16": 512, "i8": 1024, "fp8": 1024, "bf8": 1024})
CDNA4 = replace(CDNA3, name="CDNA 4", work={**CDNA3.work, **_gcn(TRANSCENDENTAL=(2, "trans4"))}, matrix_rates={
    **CDNA3.matrix_rates, "f16": 1024, "bf16": 1024, "i8": 2048, "fp8": 2048, "bf8": 2048, "fp6": 4096, "bf6": 4096,
    "fp4": 4096, "f64": 32})

_RDNA1 = {
    Work.VECTOR: Timing(1, 5, "llvm"), Work.WIDE: Timing(2, 6, "llvm"), Work.MULTIPLY: Timing(4, 8, "llvm"),
    Work.DOUBLE: Timing(16, 22, "llvm"), Work.TRANSCENDENTAL: Timing(4, 10, "llvm"),
    Work.TRANSCENDENTAL_DOUBLE: Timing(16, 24, "llvm"), Work.SCALAR: Timing(1, 2, "llvm"),
    Work.SCALAR_FLOAT: Timing(1, 4, "llvm"), Work.BRANCH: Timing(32, 32, "llvm"), Work.OTHER: Timing(1, 1, "rdna"),
}
_RDNA3 = {**_RDNA1, Work.DOUBLE: Timing(32, 38, "llvm"), Work.TRANSCENDENTAL_DOUBLE: Timing(32, 40, "llvm")}
RDNA1 = CycleModel(
    "RDNA 1 and 2", 32, 1, _RDNA1, {}, {}, 0, lds_latency=20, memory_latency=320, scalar_latency=20, lds_bytes=128,
    memory_bytes=64, address_lanes=32, line_bytes=128, sources="llvm rdna",
    assumed="lanes that are looked at, and bytes of vector memory, in a cycle")
RDNA3 = replace(
    RDNA1, name="RDNA 3", sources="llvm rdna rates wmma", work=_RDNA3, matrix_extra=5,
    assumed=f"{RDNA1.assumed}; cycles after a matrix instruction",
    matrix_rates={"f16": 256, "bf16": 256, "i8": 256, "i4": 512})
RDNA4 = replace(RDNA3, name="RDNA 4", work={**_RDNA3, Work.TRANSCENDENTAL: Timing(4, 9, "llvm")}, matrix_rates={
    "f16": 512, "bf16": 512, "i8": 1024, "fp8": 1024, "bf8": 1024, "i4": 2048})
GFX1250 = replace(RDNA4, name="gfx12.5", sources="llvm", assumed="LDS and the ways to memory", work={
    **_RDNA3, Work.TRANSCENDENTAL: Timing(4, 8, "llvm"), Work.DOUBLE: Timing(32, 37, "llvm"),
    Work.TRANSCENDENTAL_DOUBLE: Timing(32, 38, "llvm")}, matrix_rates={
    "f32": 128, "f16": 2048, "bf16": 2048, "fp8": 4096, "bf8": 4096, "i8": 2048, "i4": 2048, "fp6": 8192, "bf6": 8192,
    "fp4": 8192})

_BY_NAME = {"gfx906": GCN_HALF, "gfx908": CDNA1, "gfx90a": CDNA2, "gfx942": CDNA3, "gfx9-4-generic": CDNA3,
            "gfx950": CDNA4}
_BY_GENERATION = {8: GCN, 9: GCN, 10: RDNA1, 11: RDNA3, 12: RDNA4}


@cache
def cycle_model(target: Target) -> CycleModel:
    """The cycle model of a target."""
    if (target.generation, target.minor) >= (12, 5):
        return GFX1250
    return _BY_NAME.get(target.name, _BY_GENERATION[target.generation])
