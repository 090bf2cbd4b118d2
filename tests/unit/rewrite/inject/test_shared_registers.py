"""Vector registers that both halves of a wave of 64 lanes share (RDNA 2, 3): nothing here has them, and all say so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from assembled import assembled

from luthier_py.base.errors import CheckFailed, Unsupported
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import Launch, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import target
from luthier_py.proof import prove
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

BODY = "v_lshlrev_b32 v0, 2, v0\n s_waitcnt lgkmcnt(0)\n global_store_dword v0, v3, s[0:1]\n s_endpgm"
LAUNCH = Launch("k", (1, 1, 1), (64, 1, 1), (parse_argument("out:u32[64]"),))


@pytest.fixture(scope="module")
def plain(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("shared")
    return assembled(require_tool("clang-22"), folder, "gfx1030", BODY, vgprs=4, wave=64)


def sharing(data: bytes) -> bytes:
    """The same with shared registers in the descriptors of all its kernels."""
    obj = load(data)
    for kernel in obj.kernels:
        place = kernel.descriptor_address
        segment = next(each for each in obj.segments if each.load and each.address <= place < each.end)
        at = segment.offset + place - segment.address
        data = data[:at] + kernel.descriptor.replace(shared_vgpr_count=1).raw + data[at + 64 :]
    return data


def test_they_are_refused_by_name(plain: bytes) -> None:
    with pytest.raises(Unsupported, match=r"share 8 vector registers \(.amdhsa_shared_vgpr_count\), .*kernel k"):
        instrument(sharing(plain), load_tool("instr_count"))
    with pytest.raises(Unsupported, match="kernel k: 8 vector registers that both halves of a wave share"):
        run_original(EmulatorDevice(target("gfx1030")), sharing(plain), LAUNCH)


def test_the_proof_refuses_a_copy_with_other_numbers(plain: bytes) -> None:
    made = instrument(plain, load_tool("mem_trace"))
    had, has = (max(each.descriptor.vgpr_count(target("gfx1030")) for each in load(data).kernels)
                for data in (plain, made.data))
    assert had < has
    prove(plain, made.data, made.patched.claim)
    with pytest.raises(CheckFailed, match="share registers, whose numbers are others in its clone"):
        prove(sharing(plain), sharing(made.data), made.patched.claim)
