"""How many bytes an instruction accesses, and where: what its mnemonic says."""

from __future__ import annotations

import pytest
from each_target import EACH_TARGET

from luthier_py.isa import AddressForm, OpFlag, Target, instruction_set, memory_access, target


@pytest.mark.parametrize("text, bytes, offsets", (
    ("global_load_lds_ubyte v1, s[2:3] offset:8", 1, (8,)),
    ("global_load_lds_sshort v1, s[2:3] offset:-16", 2, (-16,)),
    ("global_load_lds_dword v1, s[2:3]", 4, (0,)),
    ("ds_wrxchg2_rtn_b64 v[0:3], v4, v[6:7], v[8:9] offset0:1 offset1:3", 8, (8, 24)),
    ("ds_wrxchg2st64_rtn_b32 v[0:1], v4, v5, v6 offset1:1", 4, (0, 256)),
    ("s_atomic_add_x2 s[4:5], s[2:3], 0x8 glc", 8, (8,)),
    ("global_load_short_d16_hi v1, v[2:3], off", 2, (0,)),
    ("global_store_dwordx3 v[2:3], v[4:6], off", 12, (0,)),
))
def test_sizes_and_places(text: str, bytes: int, offsets: tuple[int, ...]) -> None:
    gpu = target("gfx942")
    access = memory_access(instruction_set(gpu, 64).parse(text))
    assert access is not None and (access.bytes, access.offsets) == (bytes, offsets)


@pytest.mark.parametrize("name, load", (("gfx1030", "s_load_dwordx2"), ("gfx1100", "s_load_b64")))
def test_null_adds_nothing_to_an_address(name: str, load: str) -> None:
    """Compilers write so where the offset is 0."""
    isa = instruction_set(target(name), 32)
    access = memory_access(isa.parse(f"{load} s[2:3], s[0:1], null"))
    assert access is not None and (access.form, access.scalar, access.offsets) == (AddressForm.SCALAR, None, (0,))


@pytest.mark.parametrize("row", EACH_TARGET)
def test_buffers_are_buffers_on_every_target(row: Target) -> None:
    """Every opcode with a resource, whichever way it is addressed: what the text says, as on gfx90a."""
    isa = instruction_set(row)
    ways = set[tuple[bool, bool]]()
    for op in isa.ops:
        if op.format not in ("MUBUF", "MTBUF") or not any(each.name == "srsrc" for each in op.operands):
            continue
        inst = isa.decode(op.value.to_bytes(op.size_bytes, "little"))
        access, words = memory_access(inst), isa.text(inst).split()
        assert access is not None and access.form is AddressForm.BUFFER, isa.text(inst)
        assert (access.indexed, access.offset_enabled) == ("idxen" in words, "offen" in words), isa.text(inst)
        assert access.base is not None and (access.vector is not None) == (access.indexed or access.offset_enabled)
        ways.add((access.indexed, access.offset_enabled))
    assert len(ways) == 4


@pytest.mark.parametrize("row", EACH_TARGET)
def test_images_are_no_buffers(row: Target) -> None:
    """They have a resource, too."""
    isa = instruction_set(row)
    forms = set[AddressForm]()
    for op in isa.ops:
        if op.flags & OpFlag.VMEM and op.format not in ("MUBUF", "MTBUF") and any(
                each.name == "srsrc" for each in op.operands):
            access = memory_access(isa.decode(op.value.to_bytes(op.size_bytes, "little").ljust(28, b"\0")))
            forms.update([access.form] if access is not None else [])
    assert forms <= {AddressForm.OTHER}


@pytest.mark.parametrize("row", EACH_TARGET)
def test_scalar_buffers_are_so_on_every_target(row: Target) -> None:
    isa = instruction_set(row)
    load = "s_buffer_load_dword" if row.generation < 11 else "s_buffer_load_b32"
    access = memory_access(isa.parse(f"{load} s4, s[8:11], 0x10"))
    assert access is not None and (access.form, access.offsets) == (AddressForm.SCALAR_BUFFER, (16,))


def test_offsets_that_count_more_than_bytes() -> None:
    access = memory_access(instruction_set(target("gfx90a")).parse("s_scratch_load_dword s4, s[8:9], s2"))
    assert access is not None and (access.form, access.unit) == (AddressForm.SCALAR, 64)
