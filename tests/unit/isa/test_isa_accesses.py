"""How many bytes an instruction accesses, and where: what its mnemonic says."""

from __future__ import annotations

import pytest

from luthier_py.isa import AddressForm, instruction_set, memory_access, target


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
    access = memory_access(gpu, instruction_set(gpu, 64).parse(text))
    assert access is not None and (access.bytes, access.offsets) == (bytes, offsets)


@pytest.mark.parametrize("name, load", (("gfx1030", "s_load_dwordx2"), ("gfx1100", "s_load_b64")))
def test_null_adds_nothing_to_an_address(name: str, load: str) -> None:
    """Compilers write so where the offset is 0."""
    isa = instruction_set(target(name), 32)
    access = memory_access(isa.target, isa.parse(f"{load} s[2:3], s[0:1], null"))
    assert access is not None and (access.form, access.scalar, access.offsets) == (AddressForm.SCALAR, None, (0,))
