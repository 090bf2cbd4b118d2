"""Kernel descriptors: each field where AMDGPUUsage has it, and copies that change nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import KernelDescriptor, load
from luthier_py.isa.model.target import Target, target, targets
from luthier_py.samples import Sample

# AMDGPUUsage, "Kernel Descriptor": first bit of the 512, and width.
FIELDS = {
    "group_segment_fixed_size": (0, 32), "private_segment_fixed_size": (32, 32), "kernarg_size": (64, 32),
    "compute_pgm_rsrc3": (352, 32), "compute_pgm_rsrc1": (384, 32), "compute_pgm_rsrc2": (416, 32),
    "enable_sgpr_private_segment_buffer": (448, 1), "enable_sgpr_dispatch_ptr": (449, 1),
    "enable_sgpr_queue_ptr": (450, 1), "enable_sgpr_kernarg_segment_ptr": (451, 1), "enable_sgpr_dispatch_id": (452, 1),
    "enable_sgpr_flat_scratch_init": (453, 1), "enable_sgpr_private_segment_size": (454, 1),
    "enable_wavefront_size32": (458, 1), "uses_dynamic_stack": (459, 1), "kernarg_preload_length": (464, 7),
    "kernarg_preload_offset": (471, 9), "kernel_code_properties": (448, 16),
    # compute_pgm_rsrc1
    "granulated_workitem_vgpr_count": (384, 6), "granulated_wavefront_sgpr_count": (390, 4), "priority": (394, 2),
    "float_round_mode_32": (396, 2), "float_round_mode_16_64": (398, 2), "float_denorm_mode_32": (400, 2),
    "float_denorm_mode_16_64": (402, 2), "priv": (404, 1), "enable_dx10_clamp": (405, 1), "enable_wg_rr_en": (405, 1),
    "debug_mode": (406, 1), "enable_ieee_mode": (407, 1), "disable_perf": (407, 1), "bulky": (408, 1),
    "cdbg_user": (409, 1), "fp16_ovfl": (410, 1), "flat_scratch_is_nv": (411, 1), "wgp_mode": (413, 1),
    "mem_ordered": (414, 1), "fwd_progress": (415, 1),
    # compute_pgm_rsrc2
    "enable_private_segment": (416, 1), "user_sgpr_count": (417, 5), "user_sgpr_count_6_bits": (417, 6),
    "enable_trap_handler": (422, 1), "enable_dynamic_vgpr": (422, 1), "enable_sgpr_workgroup_id_x": (423, 1),
    "enable_sgpr_workgroup_id_y": (424, 1), "enable_sgpr_workgroup_id_z": (425, 1),
    "enable_sgpr_workgroup_info": (426, 1), "enable_vgpr_workitem_id": (427, 2),
    "enable_exception_address_watch": (429, 1), "enable_exception_memory": (430, 1), "granulated_lds_size": (431, 9),
    "enable_exception_ieee_754_fp_invalid_operation": (440, 1), "enable_exception_fp_denormal_source": (441, 1),
    "enable_exception_ieee_754_fp_division_by_zero": (442, 1), "enable_exception_ieee_754_fp_overflow": (443, 1),
    "enable_exception_ieee_754_fp_underflow": (444, 1), "enable_exception_ieee_754_fp_inexact": (445, 1),
    "enable_exception_int_divide_by_zero": (446, 1),
    # compute_pgm_rsrc3
    "granulated_accum_offset": (352, 6), "tg_split": (368, 1), "shared_vgpr_count": (352, 4),
    "inst_pref_size": (356, 8), "trap_on_start": (362, 1), "trap_on_end": (363, 1), "glg_en": (365, 1),
    "named_bar_cnt": (366, 3), "enable_dynamic_vgpr_rsrc3": (369, 1), "tcp_split": (370, 3),
    "enable_didt_throttle": (373, 1), "image_op": (383, 1),
}
RAW = st.binary(min_size=64, max_size=64).map(KernelDescriptor)


@given(RAW)
def test_every_field_is_where_the_manual_has_it(descriptor: KernelDescriptor) -> None:
    bits = int.from_bytes(descriptor.raw, "little")
    for name, (low, width) in FIELDS.items():
        value = getattr(descriptor, name)
        assert value == bits >> low & ((1 << width) - 1), name
        assert isinstance(value, bool) == (width == 1)
    offset = int.from_bytes(descriptor.raw[16:24], "little", signed=True)
    assert descriptor.kernel_code_entry_byte_offset == offset


@given(RAW, st.sampled_from(sorted(FIELDS)), st.integers(0, (1 << 32) - 1))
def test_replacing_changes_that_field_alone(descriptor: KernelDescriptor, name: str, value: int) -> None:
    low, width = FIELDS[name]
    value &= (1 << width) - 1
    new = descriptor.replace(**{name: value})
    mask = ((1 << width) - 1) << low
    assert getattr(new, name) == value
    assert (int.from_bytes(new.raw, "little") ^ int.from_bytes(descriptor.raw, "little")) & ~mask == 0
    assert new.replace(**{name: getattr(descriptor, name)}) == descriptor


def test_no_field_is_missing_from_the_test() -> None:
    fields = {name for name in vars(KernelDescriptor) if type(vars(KernelDescriptor)[name]).__name__ == "_Bits"}
    assert fields == {*FIELDS, "kernel_code_entry_byte_offset"}


def test_entry_offsets_are_signed() -> None:
    descriptor = KernelDescriptor(bytes(64))
    for offset in (-(1 << 63), -256, 0, (1 << 63) - 1):
        assert descriptor.replace(kernel_code_entry_byte_offset=offset).kernel_code_entry_byte_offset == offset
    with pytest.raises(Invalid, match="does not fit in 64 bits"):
        descriptor.replace(kernel_code_entry_byte_offset=1 << 63)


def test_refusals() -> None:
    descriptor = KernelDescriptor(bytes(64))
    with pytest.raises(Invalid, match="user_sgpr_count: 32 does not fit in 5 bits"):
        descriptor.replace(user_sgpr_count=32)
    with pytest.raises(Invalid, match="user_sgpr_count: -1"):
        descriptor.replace(user_sgpr_count=-1)
    for name in ("colour", "raw", "replace", "wave_size"):
        with pytest.raises(Invalid, match=f"no field {name}"):
            descriptor.replace(**{name: 1})
    with pytest.raises(Invalid, match="64 bytes, not 63"):
        KernelDescriptor(bytes(63))


@given(st.sampled_from(targets()), st.booleans(), st.integers(1, 256), st.integers(1, 102))
def test_register_counts_are_enough_but_not_wasteful(target: Target, wave32: bool, vgprs: int, sgprs: int) -> None:
    wave_size = target.wave_sizes[0] if (32 if wave32 else 64) not in target.wave_sizes else (32 if wave32 else 64)
    empty = KernelDescriptor(bytes(64)).replace(enable_wavefront_size32=wave_size == 32)
    descriptor = empty.with_vgpr_count(target, vgprs).with_sgpr_count(target, sgprs)
    granule = target.wave_registers(wave_size).granule
    encoded = target.wave_registers(wave_size).encoding_granule
    assert vgprs <= descriptor.vgpr_count(target) < vgprs + max(granule, encoded) + encoded
    assert sgprs <= descriptor.sgpr_count(target) < sgprs + target.sgpr_granule
    assert not target.name.startswith("gfx1") or not descriptor.granulated_wavefront_sgpr_count, "reserved there"
    count = descriptor.vgpr_count(target)
    assert descriptor.with_vgpr_count(target, count).vgpr_count(target) == count


def test_accum_offset_counts_registers() -> None:
    descriptor = KernelDescriptor(bytes(64))
    for wanted, given_count in ((0, 4), (1, 4), (4, 4), (5, 8), (42, 44), (256, 256)):
        assert descriptor.with_accum_offset(wanted).accum_offset == given_count
    with pytest.raises(Invalid):
        descriptor.with_accum_offset(257)


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Invalid, match="granulated_workitem_vgpr_count"):
        KernelDescriptor(bytes(64)).with_vgpr_count(target("gfx90a"), 513)


def test_samples_hold_the_registers_that_their_metadata_counts(sample: Sample) -> None:
    obj = load(sample.path.read_bytes())
    kernel = obj.kernel(sample.kernel)
    assert kernel.descriptor.wave_size == kernel.metadata[".wavefront_size"]
    assert 0 <= kernel.descriptor.vgpr_count(obj.target) - kernel.metadata[".vgpr_count"] < 8
    assert 0 <= kernel.descriptor.sgpr_count(obj.target) - kernel.metadata[".sgpr_count"] < 16
