"""The 64-byte kernel descriptor, from which the hardware's initial state of a wave is set.

In: 64 bytes. Out: every field of AMDGPUUsage, "Kernel Descriptor", as a property, and copies with some
fields replaced. Invariant: bits that no replaced field covers, reserved ones included, stay as they were.

Fields are named as in LLVM's AMDHSAKernelDescriptor.h. Some bits mean different things on different
targets; each meaning has a separate name, and the comment says for which major versions of the ISA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, overload

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.isa.model.target import Target
from luthier_py.isa.properties.vector_modes import float_bits

DESCRIPTOR_BYTES = 64

_Value = TypeVar("_Value")


class _Bits(Generic[_Value]):
    """``width`` bits of the descriptor's dword at byte ``offset``, from bit ``low`` on."""

    def __init__(self, convert: Callable[[int], _Value], offset: int, low: int, width: int, signed: bool) -> None:
        self.convert = convert
        self.low = 8 * offset + low
        self.width = width
        self.signed = signed

    @overload
    def __get__(self, descriptor: None, owner: object) -> _Bits[_Value]: ...
    @overload
    def __get__(self, descriptor: KernelDescriptor, owner: object) -> _Value: ...
    def __get__(self, descriptor: KernelDescriptor | None, owner: object) -> _Value | _Bits[_Value]:
        if descriptor is None:
            return self
        value = int.from_bytes(descriptor.raw, "little") >> self.low & ((1 << self.width) - 1)
        return self.convert(value - (value >> self.width - 1 << self.width) if self.signed else value)

    def put(self, bits: int, value: int, name: str) -> int:
        """``bits`` of a descriptor with ``value`` in this field."""
        least = -(1 << self.width - 1) if self.signed else 0
        if not least <= value < least + (1 << self.width):
            raise Invalid(f"kernel descriptor field {name}: {value} does not fit in {self.width} bits")
        mask = (1 << self.width) - 1
        return bits & ~(mask << self.low) | (value & mask) << self.low


def _bits(offset: int, low: int = 0, width: int = 32, signed: bool = False) -> _Bits[int]:
    return _Bits(int, offset, low, width, signed)


def _flag(offset: int, low: int) -> _Bits[bool]:
    return _Bits(bool, offset, low, 1, False)


_RSRC3, _RSRC1, _RSRC2, _PROPERTIES = 44, 48, 52, 56  # byte offsets
_ACCUM_GRANULE = 4
_MOST_AGPRS = 256


@dataclass(frozen=True, slots=True)
class KernelDescriptor:
    """One kernel descriptor: ``raw`` is the truth, the fields are views of it."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != DESCRIPTOR_BYTES:
            raise Invalid(f"a kernel descriptor has {DESCRIPTOR_BYTES} bytes, not {len(self.raw)}")

    group_segment_fixed_size = _bits(0)
    private_segment_fixed_size = _bits(4)
    kernarg_size = _bits(8)
    kernel_code_entry_byte_offset = _bits(16, width=64, signed=True)

    compute_pgm_rsrc3 = _bits(_RSRC3)
    # targets with a unified file of VGPRs and AGPRs
    granulated_accum_offset = _bits(_RSRC3, 0, 6)
    tg_split = _flag(_RSRC3, 16)
    # 10 and later
    shared_vgpr_count = _bits(_RSRC3, 0, 4)  # 10, 11
    inst_pref_size = _bits(_RSRC3, 4, 8)  # 12; six bits on 11
    trap_on_start = _flag(_RSRC3, 10)  # 11
    trap_on_end = _flag(_RSRC3, 11)  # 11
    glg_en = _flag(_RSRC3, 13)  # 12
    named_bar_cnt = _bits(_RSRC3, 14, 3)  # 12.5
    enable_dynamic_vgpr_rsrc3 = _flag(_RSRC3, 17)  # 12.5
    tcp_split = _bits(_RSRC3, 18, 3)  # 12.5
    enable_didt_throttle = _flag(_RSRC3, 21)  # 12.5
    image_op = _flag(_RSRC3, 31)  # 11 and later

    compute_pgm_rsrc1 = _bits(_RSRC1)
    granulated_workitem_vgpr_count = _bits(_RSRC1, 0, 6)
    granulated_wavefront_sgpr_count = _bits(_RSRC1, 6, 4)
    priority = _bits(_RSRC1, 10, 2)
    float_round_mode_32 = _bits(_RSRC1, 12, 2)
    float_round_mode_16_64 = _bits(_RSRC1, 14, 2)
    float_denorm_mode_32 = _bits(_RSRC1, 16, 2)
    float_denorm_mode_16_64 = _bits(_RSRC1, 18, 2)
    priv = _flag(_RSRC1, 20)
    enable_dx10_clamp = _flag(_RSRC1, 21)  # up to 11
    enable_wg_rr_en = _flag(_RSRC1, 21)  # 12
    debug_mode = _flag(_RSRC1, 22)
    enable_ieee_mode = _flag(_RSRC1, 23)  # up to 11
    disable_perf = _flag(_RSRC1, 23)  # 12
    bulky = _flag(_RSRC1, 24)
    cdbg_user = _flag(_RSRC1, 25)
    fp16_ovfl = _flag(_RSRC1, 26)  # 9 and later
    flat_scratch_is_nv = _flag(_RSRC1, 27)  # 12.5
    wgp_mode = _flag(_RSRC1, 29)  # 10 and later
    mem_ordered = _flag(_RSRC1, 30)  # 10 and later
    fwd_progress = _flag(_RSRC1, 31)  # 10 and later

    compute_pgm_rsrc2 = _bits(_RSRC2)
    enable_private_segment = _flag(_RSRC2, 0)
    user_sgpr_count = _bits(_RSRC2, 1, 5)  # up to 12.0
    user_sgpr_count_6_bits = _bits(_RSRC2, 1, 6)  # 12.5
    enable_trap_handler = _flag(_RSRC2, 6)  # up to 11
    enable_dynamic_vgpr = _flag(_RSRC2, 6)  # 12.0
    enable_sgpr_workgroup_id_x = _flag(_RSRC2, 7)
    enable_sgpr_workgroup_id_y = _flag(_RSRC2, 8)
    enable_sgpr_workgroup_id_z = _flag(_RSRC2, 9)
    enable_sgpr_workgroup_info = _flag(_RSRC2, 10)
    enable_vgpr_workitem_id = _bits(_RSRC2, 11, 2)  # 0: x, 1: x and y, 2: x, y and z
    enable_exception_address_watch = _flag(_RSRC2, 13)
    enable_exception_memory = _flag(_RSRC2, 14)
    granulated_lds_size = _bits(_RSRC2, 15, 9)
    enable_exception_ieee_754_fp_invalid_operation = _flag(_RSRC2, 24)
    enable_exception_fp_denormal_source = _flag(_RSRC2, 25)
    enable_exception_ieee_754_fp_division_by_zero = _flag(_RSRC2, 26)
    enable_exception_ieee_754_fp_overflow = _flag(_RSRC2, 27)
    enable_exception_ieee_754_fp_underflow = _flag(_RSRC2, 28)
    enable_exception_ieee_754_fp_inexact = _flag(_RSRC2, 29)
    enable_exception_int_divide_by_zero = _flag(_RSRC2, 30)

    kernel_code_properties = _bits(_PROPERTIES, 0, 16)
    enable_sgpr_private_segment_buffer = _flag(_PROPERTIES, 0)
    enable_sgpr_dispatch_ptr = _flag(_PROPERTIES, 1)
    enable_sgpr_queue_ptr = _flag(_PROPERTIES, 2)
    enable_sgpr_kernarg_segment_ptr = _flag(_PROPERTIES, 3)
    enable_sgpr_dispatch_id = _flag(_PROPERTIES, 4)
    enable_sgpr_flat_scratch_init = _flag(_PROPERTIES, 5)
    enable_sgpr_private_segment_size = _flag(_PROPERTIES, 6)
    enable_wavefront_size32 = _flag(_PROPERTIES, 10)  # 10 and later
    uses_dynamic_stack = _flag(_PROPERTIES, 11)
    kernarg_preload_length = _bits(_PROPERTIES, 16, 7)  # in dwords
    kernarg_preload_offset = _bits(_PROPERTIES, 23, 9)  # in dwords

    def mode(self, target: Target) -> int:
        """MODE as waves start with it, of the bits that decide what floats compute."""
        rounding = self.float_round_mode_32 | self.float_round_mode_16_64 << 2
        denormals = self.float_denorm_mode_32 | self.float_denorm_mode_16_64 << 2
        others = self.enable_dx10_clamp << 8 | self.enable_ieee_mode << 9 | self.fp16_ovfl << 23
        return (rounding | denormals << 4 | others) & float_bits(target)

    @property
    def wave_size(self) -> int:
        """Lanes of a wave, 32 or 64, as the bit has it; it is reserved on targets whose waves all have 64."""
        return 32 if self.enable_wavefront_size32 else 64

    @property
    def accum_offset(self) -> int:
        """Where AGPRs start in a unified file: the number of VGPRs."""
        return (self.granulated_accum_offset + 1) * _ACCUM_GRANULE

    def vgpr_count(self, target: Target) -> int:
        """Vector registers of a wave as allocated; in a unified file AGPRs count too."""
        count, granule = self.count_addressable_vgprs(target), target.wave_registers(self.wave_size).granule
        return max(min(_round_up(count, granule), target.vgpr_total_limit), count)

    def count_addressable_vgprs(self, target: Target) -> int:
        """Vector registers that code may name: what is allocated beyond cannot be named (AMDGPUUsage,
        COMPUTE_PGM_RSRC1, GRANULATED_WORKITEM_VGPR_COUNT)."""
        granule = target.wave_registers(self.wave_size).encoding_granule
        return (self.granulated_workitem_vgpr_count + 1) * granule

    def arch_vgpr_count(self, target: Target) -> int:
        """VGPRs of a wave without AGPRs; not more than were allocated, wherever AGPRs are said to start."""
        count = self.vgpr_count(target)
        return min(self.accum_offset, count) if target.unified_agprs else count

    def agpr_count(self, target: Target) -> int:
        """AGPRs of a wave that code may name; what granules allocate beyond is unused."""
        if not target.has_agprs:
            return 0
        count = self.vgpr_count(target)
        return min(count - self.arch_vgpr_count(target), _MOST_AGPRS) if target.unified_agprs else count

    def sgpr_count(self, target: Target) -> int:
        """SGPRs of a wave as allocated, VCC and the other special pairs included."""
        return _round_up((self.granulated_wavefront_sgpr_count + 1) * target.sgpr_encoding_granule, target.sgpr_granule)

    def count_shared_vgprs(self, target: Target) -> int:
        """Registers that both halves of a wave of 64 lanes have together, numbered from behind its others (RDNA 2 ISA,
        "Shared VGPRs")."""
        return 8 * self.shared_vgpr_count if target.generation in (10, 11) and self.wave_size == 64 else 0

    def with_vgpr_count(self, target: Target, count: int) -> KernelDescriptor:
        """A copy that gives each wave at least ``count`` vector registers."""
        granule = target.wave_registers(self.wave_size).encoding_granule
        return self.replace(granulated_workitem_vgpr_count=max(-(-count // granule), 1) - 1)

    def with_sgpr_count(self, target: Target, count: int) -> KernelDescriptor:
        """A copy that gives each wave at least ``count`` SGPRs; the same where a wave always has all of them."""
        if target.generation >= 10:
            return self
        count = max(_round_up(count, target.sgpr_granule), target.sgpr_granule)
        return self.replace(granulated_wavefront_sgpr_count=count // target.sgpr_encoding_granule - 1)

    def with_accum_offset(self, count: int) -> KernelDescriptor:
        """A copy whose AGPRs start at register ``count`` or, where that is no multiple of 4, above."""
        return self.replace(granulated_accum_offset=max(-(-count // _ACCUM_GRANULE), 1) - 1)

    def replace(self, **fields: int) -> KernelDescriptor:
        """A copy with fields, named as the properties, set to new values; all other bits stay."""
        bits = int.from_bytes(self.raw, "little")
        for name, value in fields.items():
            field = getattr(KernelDescriptor, name, None)
            if not isinstance(field, _Bits):
                raise Invalid(f"kernel descriptors have no field {name}")
            bits = field.put(bits, value, name)
        return KernelDescriptor(bits.to_bytes(DESCRIPTOR_BYTES, "little"))


def _round_up(count: int, granule: int) -> int:
    return -(-count // granule) * granule
