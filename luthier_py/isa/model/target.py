"""AMD GPU targets: one row each, and the questions that depend on a row alone.

In: names and EF_AMDGPU_MACH values. Out: Target rows. Sources: LLVM 22 AMDGPUUsage ("Processors", "ELF
Header") and AMDGPUBaseInfo.cpp / GCNSubtarget (register limits, granules, occupancy). Invariant: what is
special to a target is a field here or a row of the tables, never code elsewhere.
"""

from __future__ import annotations

from functools import cache

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass, replace
from luthier_py.isa.model.registers import EXEC, FLAT_SCRATCH, SCRATCH_BASE, TTMP0, VCC, XNACK_MASK, Reg, RegFile

MAX_WORKITEMS = 1024  # of a work-group (AMDGPUUsage, "amdgpu-flat-work-group-size")


@dataclass(frozen=True, slots=True)
class WaveRegisters:
    """Vector registers as they are allotted to waves of one size, counted per lane."""

    granule: int           # of allocation
    encoding_granule: int  # of the kernel descriptor's count
    per_simd: int          # registers that the waves of one SIMD share


@dataclass(frozen=True, slots=True)
class Target:
    """Facts of one target."""

    name: str                                # LLVM's processor name; the key of its instruction table
    elf_mach: int                            # EF_AMDGPU_MACH field of e_flags
    vgprs: tuple[tuple[int, WaveRegisters], ...]  # by wave size; the first is LLVM's default
    generation: int = 9
    minor: int = 0                           # second number of the version: gfx1030 is 10.3
    sgpr_limit: int = 102                    # SGPRs that a wave can address, without VCC and what lies above
    user_sgpr_limit: int = 16                # SGPRs that the command processor can load before a wave starts
    sgpr_granule: int = 16                   # of allocation; gfx10+ gives every wave all of them
    sgpr_encoding_granule: int = 8           # of the kernel descriptor's count (ignored by gfx10+)
    vgpr_limit: int = 256                    # ArchVGPRs (and AGPRs) that an instruction can name
    vgpr_total_limit: int = 256              # registers of a wave in the descriptor's count
    has_agprs: bool = False
    unified_agprs: bool = False              # AGPRs follow ArchVGPRs in one file, from accum_offset on
    aligned_vgprs: bool = False              # vector tuples must start at an even register
    max_waves_per_simd: int = 10
    simds: int = 4                           # that share one LDS
    half_simds: int = 4                      # of those, that a work-group has which is not in WGP mode
    lds_bytes: int = 65536                   # that a work-group can have
    lds_granule: int = 512
    barriers: int = 16                       # of a compute unit, for work-groups of several waves
    wave_scratch_bytes: int = 1024 * (2**13 - 1)  # COMPUTE_TMPRING_SIZE.WAVESIZE
    xnack: bool = False                      # supports the setting
    sramecc: bool = False
    packed_work_item_ids: bool = False       # v0 holds x, y and z, ten bits each
    architected_flat_scratch: bool = False   # the hardware sets up scratch; no FLAT_SCRATCH SGPRs to initialise
    architected_sgprs: bool = False          # work-group ids come in TTMP registers
    preload_entry: int = 0                   # bytes behind a kernel's entry: there waves with preloaded arguments start
    first_ttmp: int = 108                    # operand number of ttmp0; gfx8 has TBA and TMA before it
    m0_encoding: int = 124                   # operand numbers that gfx11 swapped
    null_encoding: int | None = None
    flat_scratch_operands: bool = True       # operands 102..105 are FLAT_SCRATCH and XNACK_MASK
    constant_bus_limit: int = 1              # scalar registers and literals that one vector instruction may read
    vop3_literals: bool = False              # 8-byte vector encodings take a literal
    literals64: bool = False
    shared_dual_sources: bool = False        # both halves of a dual instruction can read the same register
    scratch_base_sources: bool = False       # sources can name the base address of scratch
    store_counter: bool = False              # stores count on VS_CNT
    gds_modifier: bool = True                # DS instructions have a meaningful gds bit
    sc_cache_bits: bool = False              # cache policy reads sc0, sc1, nt instead of glc, slc, scc
    shift64_bug: bool = False                # 64-bit shifts misread an amount in register 8n+7
    dpp64_broadcasts: bool = False           # DPP of 64-bit operands can only broadcast within a row
    half_products_flush: bool = False        # MFMA of f16 and bf16, and dot products of f16, take denormals as zeros
    dots_keep_denormals: bool = False        # of f32 and bf16, too: sources, sums and results of dot products
    atomics_keep_denormals: bool = False     # of f32 in memory (LLVM, memory-atomic-fadd-f32-denormal-support)
    negates_doubles: bool = False            # blgp of MFMA of f64 negates A, B and C
    replicates_matrices: bool = False        # WMMA has A and B in every 16 lanes
    d16_always_clears: bool = False          # D16 loads write whole registers, whatever the setting of SRAM-ECC
    fnuz_floats: bool = False                # floats of 8 bits have no infinity and no -0 (others: OCP's formats)
    clamp_chooses_fp8: bool = False          # clamp of conversions of fp8 says that it is UE5M3
    fabric_float_atomics: bool = False       # float atomics reach fine-grained memory; elsewhere they do nothing there
    scc_cache_bit: bool = False              # cache policy has scc (sc1)
    wide_resources: bool = False             # buffer resources have addresses of 57 bits, sizes of 45
    signed_lane_offsets: bool = False        # a lane's offset from a scalar base has a sign (LLVM, hasSignedGVSOffset)

    def runs(self, code: Target) -> bool:
        """Whether it runs what was compiled for ``code``: for itself, or for a generic target that it is one of."""
        return code.name == self.name or self.name in _GENERIC.get(code.name, "").split()

    @property
    def stepping(self) -> int:
        """Third number of the version; of generic targets as in LLVM's getIsaVersion (TargetParser.cpp)."""
        if self.name in _GENERIC:
            return 3 if self.generation == 11 else 0
        return int(self.name[-1], 16)

    @property
    def wave_sizes(self) -> tuple[int, ...]:
        """How many lanes its waves may have; the first is LLVM's default."""
        return tuple(size for size, _ in self.vgprs)

    @property
    def scalar_pairs(self) -> frozenset[int]:
        """First registers of the special pairs that scalar operands can name (gfx8: TBA and TMA too)."""
        return frozenset({VCC, EXEC, *range(TTMP0, self.first_ttmp, 2),
                          *((FLAT_SCRATCH, XNACK_MASK) if self.flat_scratch_operands else ())})

    @property
    def extra_sgprs(self) -> int:
        """SGPRs at the end of a wave's allocation that VCC, XNACK_MASK and FLAT_SCRATCH take (getNumExtraSGPRs)."""
        return 6 if self.flat_scratch_operands else 0

    @property
    def scratch_needs_base(self) -> bool:
        """Whether scratch instructions name a register that has the address, or a part of it (what can do without, LLVM
        calls FeatureFlatScratchSTMode)."""
        return not self.architected_flat_scratch and (9, 0) <= (self.generation, self.minor) < (10, 3)

    @property
    def scratch_in_buffers(self) -> bool:
        """Whether code reaches private memory through a buffer resource, for want of scratch instructions (AMDGPUUsage,
        "Private Segment Buffer")."""
        return self.generation < 9

    @property
    def scratch_base(self) -> Reg | None:
        """Where the address of a wave's private memory is, if code has to put it there (AMDGPUUsage, "Flat Scratch"):
        two dwords, operands of gfx9, hardware registers of gfx10."""
        if self.architected_flat_scratch or self.generation not in (9, 10):
            return None
        return Reg(RegFile.SGPR, FLAT_SCRATCH if self.flat_scratch_operands else SCRATCH_BASE, 2)

    @property
    def clamps_by_mode(self) -> bool:
        """Whether MODE has DX10_CLAMP and IEEE (AMDGPUUsage, "compute_pgm_rsrc1": up to gfx11)."""
        return self.generation < 12

    @property
    def numbers_win(self) -> bool:
        """Whether a minimum of a number and any NaN is the number (RDNA 4 ISA, 16.7: V_MIN_NUM_F32)."""
        return self.generation >= 12

    @property
    def first_nan(self) -> bool:
        """Whether of two NaN V_MIN_F32 gives the first (RDNA 3 ISA, 16.7), not the second (RDNA 2 ISA, 12.7)."""
        return self.generation >= 11

    @property
    def mixes_by_f32(self) -> bool:
        """Whether MODE flushes halves that V_FMA_MIX reads as it does f32: gfx90a and gfx950 do (LLVM, pull request
        205101). That gfx10 does not, Mesa relies on (aco_optimizer.cpp mixes where denormals of f16 alone are not
        flushed)."""
        return self.generation == 9

    @property
    def vector_banks(self) -> bool:
        """Whether MODE[19:12] says in which 256 registers vector operands are (LLVM, SIDefines.h, VGPR_MSB)."""
        return self.vgpr_limit > 256

    @property
    def place_registers(self) -> frozenset[int]:
        """Hardware registers that say where a wave runs (LLVM, AMDGPUAsmUtils): HW_ID, or its two parts, the die's
        number, the cluster's."""
        dies = {20} if self.generation == 9 and self.architected_flat_scratch else set[int]()
        clusters = {28} if self.wide_resources else set[int]()
        return frozenset(({4} if self.generation < 10 else {23, 24}) | dies | clusters)

    @property
    def clock_bits(self) -> int:
        """The width of the counter of cycles that code reads: RDNA 3 has SHADER_CYCLES alone (RDNA 3 ISA,
        S_GETREG_B32)."""
        return 20 if self.generation == 11 else 64

    @property
    def lds_unit_bytes(self) -> int:
        """The unit in which LDS_ALLOC[20:12] has the size of LDS: SQ_WAVE_LDS_ALLOC_GRANULARITY of Linux,
        drivers/gpu/drm/amd/amdkfd/cwsr_trap_handler_gfx9.asm, _gfx10.asm and _gfx12.asm."""
        return 256 if self.generation < 12 else 1024 if self.wide_resources else 512

    @property
    def permutes_halves(self) -> bool:
        """Whether DS permutes of a wave64 stay within its halves (it passes as two waves of 32)."""
        return self.generation >= 10

    def wave_registers(self, wave_size: int) -> WaveRegisters:
        """Vector registers of waves of ``wave_size`` lanes; Invalid where the target has no such waves."""
        for size, registers in self.vgprs:
            if size == wave_size:
                return registers
        raise Invalid(f"{self.name} has no waves of {wave_size} lanes, only {self.wave_sizes}")

    def waves_for(self, vgprs: int, sgprs: int = 0, lds_bytes: int = 0, workgroup_size: int = 0,
                  wave_size: int | None = None) -> int:
        """Waves that one SIMD can hold at once (LLVM's occupancy).

        ``vgprs`` counts AGPRs too where the file is unified; ``sgprs`` includes VCC and the other extra
        registers of the descriptor. LDS only limits when a work-group size is given.
        """
        wave_size = wave_size or self.wave_sizes[0]
        waves = min(self._waves_for_vgprs(vgprs, wave_size), self._waves_for_sgprs(sgprs))
        if lds_bytes and workgroup_size:
            waves = min(waves, self._waves_for_lds(lds_bytes, -(-workgroup_size // wave_size)))
        return waves

    def waves_of_group(self, workitems: int, wave_size: int, wgp_mode: bool) -> int:
        """Waves that a SIMD must hold at once for a work-group (AMDGPUBaseInfo.cpp, getWavesPerEUForWorkGroup)."""
        waves, simds = -(-workitems // wave_size), self.simds if wgp_mode else self.half_simds
        return -(-waves // simds)

    def _waves_for_vgprs(self, vgprs: int, wave_size: int) -> int:
        """AMDGPUBaseInfo.cpp, getNumWavesPerEUWithNumVGPRs."""
        registers = self.wave_registers(wave_size)
        if vgprs < registers.granule:
            return self.max_waves_per_simd
        rounded = -(-vgprs // registers.granule) * registers.granule
        return min(max(registers.per_simd // rounded, 1), self.max_waves_per_simd)

    def _waves_for_sgprs(self, sgprs: int) -> int:
        """AMDGPUBaseInfo.cpp, getOccupancyWithNumSGPRs."""
        if self.generation >= 10:
            return self.max_waves_per_simd
        steps = ((80, 10), (88, 9), (100, 8))
        waves = next((waves for most, waves in steps if sgprs <= most), 7)
        return min(waves, self.max_waves_per_simd)

    def _waves_for_lds(self, lds_bytes: int, waves_per_group: int) -> int:
        rounded = -(-lds_bytes // self.lds_granule) * self.lds_granule
        groups = max(self.lds_bytes // rounded, 1)
        return min(max(-(-groups * waves_per_group // self.simds), 1), self.max_waves_per_simd)


def _only64(granule: int, per_simd: int) -> tuple[tuple[int, WaveRegisters], ...]:
    return ((64, WaveRegisters(granule, granule, per_simd)),)


def _both(granule32: int, per_simd32: int) -> tuple[tuple[int, WaveRegisters], ...]:
    """gfx10+: a wave64 register takes two rows; the descriptor counts in eights and fours."""
    return (
        (32, WaveRegisters(granule32, 8, per_simd32)),
        (64, WaveRegisters(granule32 // 2, 4, per_simd32 // 2)),
    )


_GFX9 = Target("gfx900", 0x2C, _only64(4, 256), xnack=True)
_GFX8 = replace(_GFX9, name="gfx801", elf_mach=0x28, generation=8, first_ttmp=112)
_GFX906 = replace(_GFX9, name="gfx906", elf_mach=0x2F, sramecc=True)
_GFX90A = replace(
    _GFX906, name="gfx90a", elf_mach=0x3F, vgprs=_only64(8, 512), vgpr_total_limit=512, has_agprs=True,
    unified_agprs=True, aligned_vgprs=True, max_waves_per_simd=8, packed_work_item_ids=True, preload_entry=256,
    gds_modifier=False, scc_cache_bit=True, shift64_bug=True, dpp64_broadcasts=True, half_products_flush=True,
    d16_always_clears=True)
_GFX942 = replace(
    _GFX90A, name="gfx942", elf_mach=0x4C, minor=4, architected_flat_scratch=True, sc_cache_bits=True,
    shift64_bug=False, half_products_flush=False, negates_doubles=True, fnuz_floats=True, fabric_float_atomics=True,
    atomics_keep_denormals=True)
_GFX1010 = Target(
    "gfx1010", 0x33, _both(8, 1024), generation=10, minor=1, sgpr_limit=106, sgpr_granule=128, max_waves_per_simd=20,
    half_simds=2, barriers=32, xnack=True, null_encoding=125, flat_scratch_operands=False, vop3_literals=True,
    store_counter=True, constant_bus_limit=2)
_GFX1030 = replace(
    _GFX1010, name="gfx1030", elf_mach=0x36, minor=3, vgprs=_both(16, 1024), max_waves_per_simd=16, xnack=False)
_GFX1102 = replace(
    _GFX1030, name="gfx1102", elf_mach=0x47, generation=11, minor=0, wave_scratch_bytes=256 * (2**15 - 1),
    packed_work_item_ids=True, replicates_matrices=True, atomics_keep_denormals=True,
    architected_flat_scratch=True, m0_encoding=125, null_encoding=124)
_GFX1100 = replace(_GFX1102, name="gfx1100", elf_mach=0x41, vgprs=_both(24, 1536))
_GFX1200 = replace(
    _GFX1100, name="gfx1200", elf_mach=0x48, generation=12, wave_scratch_bytes=256 * (2**18 - 1),
    architected_sgprs=True, gds_modifier=False, replicates_matrices=False, dots_keep_denormals=True)
_GFX1250 = replace(
    _GFX1200, name="gfx1250", elf_mach=0x49, minor=5, vgprs=((32, WaveRegisters(16, 16, 1024)),), vgpr_limit=1024,
    vgpr_total_limit=1024, aligned_vgprs=True, half_simds=4, lds_bytes=327680, lds_granule=2048, xnack=True,
    sramecc=True, literals64=True, scratch_base_sources=True,
    user_sgpr_limit=32, shared_dual_sources=True, dpp64_broadcasts=True, wide_resources=True,
    signed_lane_offsets=True, clamp_chooses_fp8=True)


def _like(row: Target, **machs: int) -> list[Target]:
    return [replace(row, name=name.replace("_", "-"), elf_mach=mach) for name, mach in machs.items()]


_TARGETS = (
    *_like(_GFX8, gfx801=0x28), *_like(replace(_GFX8, minor=1), gfx810=0x2B),
    *_like(replace(_GFX8, xnack=False), gfx802=0x29, gfx803=0x2A, gfx805=0x3C),
    *_like(_GFX9, gfx900=0x2C, gfx902=0x2D, gfx904=0x2E, gfx909=0x31, gfx90c=0x32, gfx9_generic=0x51),
    _GFX906, replace(_GFX906, name="gfx908", elf_mach=0x30, has_agprs=True), _GFX90A,
    *_like(_GFX942, gfx942=0x4C, gfx9_4_generic=0x5F),
    replace(_GFX942, name="gfx950", elf_mach=0x4F, minor=5, lds_bytes=163840, lds_granule=1280, fnuz_floats=False),
    *_like(_GFX1010, gfx1010=0x33, gfx1011=0x34, gfx1012=0x35, gfx1013=0x42, gfx10_1_generic=0x52),
    *_like(_GFX1030, gfx1030=0x36, gfx1031=0x37, gfx1032=0x38, gfx1033=0x39, gfx1034=0x3E, gfx1035=0x3D, gfx1036=0x45,
           gfx10_3_generic=0x53),
    *_like(_GFX1100, gfx1100=0x41, gfx1101=0x46),
    *_like(_GFX1102, gfx1102=0x47, gfx1103=0x44, gfx11_generic=0x54),
    replace(_GFX1100, name="gfx1151", elf_mach=0x4A, minor=5),
    *_like(replace(_GFX1102, minor=5), gfx1150=0x43, gfx1152=0x55, gfx1153=0x58),
    *_like(_GFX1200, gfx1200=0x48, gfx1201=0x4E, gfx12_generic=0x59),
    *_like(_GFX1250, gfx1250=0x49, gfx1251=0x5A),
)

_GENERIC = {  # AMDGPUUsage, "Generic Processors": their code runs on these
    "gfx9-generic": "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c",
    "gfx9-4-generic": "gfx942 gfx950",
    "gfx10-1-generic": "gfx1010 gfx1011 gfx1012 gfx1013",
    "gfx10-3-generic": "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
    "gfx11-generic": "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153",
    "gfx12-generic": "gfx1200 gfx1201",
}


def targets() -> tuple[Target, ...]:
    """Every target, in the order of the documentation."""
    return _TARGETS


@cache
def target(name: str) -> Target:
    """The row called ``name``; features after a colon ("gfx90a:xnack+") are not part of it."""
    for row in _TARGETS:
        if row.name == name:
            return row
    raise Invalid(f"unknown target {name!r}: expected one of {', '.join(row.name for row in _TARGETS)}")


@cache
def target_of_mach(mach: int) -> Target | None:
    """The target of an EF_AMDGPU_MACH value, or None for one that Luthier-py does not know."""
    return next((row for row in _TARGETS if row.elf_mach == mach), None)
