"""Members of bundles: which of them a device gets, and what a broken or greedy one costs."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from fat_binaries import bundle
from test_note_and_bundle import compressed

from luthier_py.base.errors import Invalid, LuthierError, Malformed
from luthier_py.binary.loader import Broken, CodeObject, Member, choose, load, load_each, members, open_code, read_code
from luthier_py.features.run.launch import Launch
from luthier_py.features.run.launched import launch_file
from luthier_py.features.run.specs import parse_argument
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.host.worker.bundles import code_for
from luthier_py.host.worker.device import properties
from luthier_py.host.worker.error_boundary import Refused
from luthier_py.isa import parse_target_id
from luthier_py.samples import SAMPLES

FIRST, SECOND = (SAMPLES[i].path.read_bytes() for i in (0, 1))
ELF = b"\x7fELF"


def of(*names: str, prefix: str = "hipv4-amdgcn-amd-amdhsa--") -> bytes:
    """A bundle with a member for each target, whose last bytes are its name."""
    return bundle(*((prefix + name, ELF + name.encode()) for name in names))


CHOICES = [
    ("gfx90a:sramecc+:xnack-", ["gfx90a:xnack+", "gfx90a:xnack-"], "gfx90a:xnack-"),
    ("gfx90a:sramecc+:xnack+", ["gfx90a:xnack-", "gfx90a:xnack+"], "gfx90a:xnack+"),
    ("gfx90a:sramecc+:xnack-", ["gfx90a", "gfx90a:xnack-", "gfx90a:sramecc+:xnack-"], "gfx90a:sramecc+:xnack-"),
    ("gfx90a:sramecc+:xnack-", ["gfx90a", "gfx90a:xnack+"], "gfx90a"),
    ("gfx906:sramecc+:xnack-", ["gfx9-generic:xnack-", "gfx906"], "gfx906"),
    ("gfx906:sramecc+:xnack-", ["gfx9-generic", "gfx906:xnack+"], "gfx9-generic"),
    ("gfx942:sramecc+:xnack-", ["gfx90a", "gfx9-4-generic:xnack-"], "gfx9-4-generic:xnack-"),
    ("gfx1100", ["gfx1170", "spirv64", "gfx1100"], "gfx1100"),
    ("gfx90a:sramecc+:xnack-", ["gfx90a:xnack+"], None),
    ("gfx90a:sramecc+:xnack-", ["gfx90a:sramecc-"], None),
    ("gfx90a:sramecc+:xnack-", [], None),
]


@pytest.mark.parametrize("device, names, chosen", CHOICES)
@pytest.mark.parametrize("prefix", ["hipv4-amdgcn-amd-amdhsa--", "hip-amdgcn-amd-amdhsa-"])
def test_the_member_that_was_made_most_for_the_device(
    device: str, names: list[str], chosen: str | None, prefix: str
) -> None:
    member = choose(members(of(*names, prefix=prefix)), parse_target_id(device))
    assert (member and member.target_name) == chosen


def test_of_equal_members_the_first() -> None:
    data = bundle(*((f"hipv4-amdgcn-amd-amdhsa--{name}", ELF + text) for name, text in (
        ("gfx90a:xnack-", b"first"), ("gfx90a:xnack-", b"second"))))  # fmt: skip
    member = choose(members(data), parse_target_id("gfx90a:sramecc+:xnack-"))
    assert member is not None and member.data == ELF + b"first"


def test_a_running_program_gets_the_same_member(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = properties.architecture(parse_target_id("gfx90a").target)
    assert str(device) == "gfx90a:sramecc+:xnack-"
    assert code_for(of("gfx90a:xnack+", "gfx90a:xnack-"), device) == ELF + b"gfx90a:xnack-"
    with pytest.raises(Refused):
        code_for(of("gfx90a:xnack+", "gfx1100"), device)
    assert "has code for gfx90a:xnack+, gfx1100, but the device is gfx90a:sramecc+:xnack-" in capsys.readouterr().err
    monkeypatch.setenv("HSA_XNACK", "1")
    assert str(properties.architecture(device.target)) == "gfx90a:sramecc+:xnack+"


def test_run_takes_the_member_of_its_device(tmp_path: Path) -> None:
    path = tmp_path / "two.hipfb"
    path.write_bytes(of("gfx90a:xnack+", "gfx1100"))
    assert read_code(path, parse_target_id("gfx90a")) == ELF + b"gfx90a:xnack+"
    with pytest.raises(Invalid, match="has code for gfx90a:xnack., gfx1100, and nothing that runs on gfx90a:xnack-"):
        read_code(path, parse_target_id("gfx90a:xnack-"))
    with pytest.raises(Invalid, match="choose one by --target .run: by --device"):
        read_code(path)
    path.write_bytes(of("gfx1100"))
    assert read_code(path) == ELF + b"gfx1100"


def test_of_several_objects_for_a_device_that_with_the_kernel(tmp_path: Path) -> None:
    path, chosen = tmp_path / "library", parse_target_id("gfx90a")
    codes = {sample.name: sample.path.read_bytes() for sample in SAMPLES[:3]}
    kernels = {name: load(code).kernels[0].name for name, code in codes.items()}
    path.write_bytes(bundle(*(("hipv4-amdgcn-amd-amdhsa--gfx90a", code) for code in codes.values())))
    assert {name: read_code(path, chosen, kernel) for name, kernel in kernels.items()} == codes
    assert read_code(path, None, kernels[SAMPLES[1].name]) == codes[SAMPLES[1].name]
    with pytest.raises(Invalid, match="3 code objects are for gfx90a: choose one by a --kernel"):
        read_code(path, chosen)
    with pytest.raises(Invalid, match="none of its 3 code objects for gfx90a has a kernel missing"):
        read_code(path, chosen, "missing")


def test_a_file_with_broken_members_alone_has_their_error(tmp_path: Path) -> None:
    path = tmp_path / "library"
    path.write_bytes(of("gfx90a")[:-1])
    with pytest.raises(Malformed):
        read_code(path)


def test_run_and_programs_have_the_same_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings choose among members that are for one processor."""
    by_name = {sample.name: sample.path.read_bytes() for sample in SAMPLES}
    triples = [f"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack{sign}" for sign in "+-"]
    path = tmp_path / "two.hipfb"
    path.write_bytes(bundle((triples[0], by_name["reduce"]), (triples[1], by_name["saxpy"])))
    arguments = ("u32=4", "f32=1", "in:f32[4]=ones", "inout:f32[4]=ones")
    launch = Launch("saxpy", (1, 1, 1), (64, 1, 1), tuple(map(parse_argument, arguments)))
    assert launch_file(path, launch, None, RunSettings("emulator:gfx90a")).ran.outputs[3].tolist() == [2, 2, 2, 2]
    monkeypatch.setenv("HSA_XNACK", "1")
    with pytest.raises(Invalid, match="no kernel saxpy; it has 1: reduce"):
        launch_file(path, launch, None, RunSettings("emulator:gfx90a"))


def test_a_broken_member_costs_itself_only() -> None:
    bad = FIRST[:40] + b"\0" * 8 + FIRST[48:60]
    triple = "hipv4-amdgcn-amd-amdhsa--gfx90a"
    good = bundle((triple, FIRST), (triple, bad), (triple, SECOND))
    packed = compressed(2, "zstd", bundle((triple, FIRST)))
    damaged = packed[:40] + bytes([packed[40] ^ 0xFF]) + packed[41:]
    names = b"__CLANG_OFFLOAD_BUNDLE__ is what they begin with"  # as programs have that look for it
    parts = list(load_each(ELF + bytes(60) + damaged + good + names + packed, "app"))
    assert [isinstance(part, Broken) for part in parts] == [True, False, True, False, True, False]
    loaded = [part.kernels[0].name for part in parts if isinstance(part, CodeObject)]
    assert loaded == [SAMPLES[0].name, SAMPLES[1].name, SAMPLES[0].name]
    assert all("\n" not in str(part.error) for part in parts if isinstance(part, Broken))
    with pytest.raises(Malformed, match="damaged|Data corruption|zstd"):
        list(load_each(ELF + bytes(60) + damaged))


def test_an_entry_outside_the_file_costs_itself_only() -> None:
    data = bytearray(of("gfx90a", "gfx942"))
    struct.pack_into("<Q", data, 24 + 8 + 8, 1 << 62)  # the first entry's size
    parts = list(members(bytes(data)))
    assert [type(part) for part in parts] == [Broken, Member]
    member = choose(parts, parse_target_id("gfx942"))
    assert member is not None and member.data == ELF + b"gfx942"


def test_entries_share_memory() -> None:
    """20,000 entries that name one member of a megabyte."""
    large = ELF + bytes(1 << 20)
    triple = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
    table = struct.pack("<3Q", 2 << 20, len(large), len(triple)) + triple
    data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 20_000) + table * 20_000
    data += bytes((2 << 20) - len(data)) + large
    found = [part for part in members(data) if isinstance(part, Member)]
    assert len(found) == 20_000 and all(part.container is data for part in found)
    assert found[-1].data == large
    table = struct.pack("<3Q", 2 << 20, len(FIRST), len(triple)) + triple
    data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 20_000) + table * 20_000
    data = data.ljust(2 << 20, b"\0") + FIRST
    *_, one, other = (part for part in load_each(data) if isinstance(part, CodeObject))
    assert one.kernels is other.kernels  # it is read once


def test_entries_that_overlap_are_read_in_bounds() -> None:
    """5,000 entries, in turn, for two members: as many bytes as 5,000 members have."""
    triple = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
    places = (512 << 10, len(FIRST)), ((512 << 10) + len(FIRST), len(SECOND))
    table = b"".join(struct.pack("<3Q", *place, len(triple)) + triple for place in places)
    data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 5_000) + table * 2_500
    data = data.ljust(512 << 10, b"\0") + FIRST + SECOND
    parts = list(load_each(data))
    read = sum(isinstance(part, CodeObject) for part in parts)
    assert len(parts) == 5_000 and 2 <= read <= 4 * len(data) // (len(FIRST) + len(SECOND)) + 1
    assert isinstance(parts[-1], Broken) and "its members overlap" in str(parts[-1].error)


def test_bundles_in_tables_of_others_are_none() -> None:
    """Each of these entries has the next bundle in its name, whose table would run on to the file's end, too."""
    name = b"hipv4-amdgcn-amd-amdhsa--gfx90a".ljust(32, b"\0")
    unit = (b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<4Q", 1 << 40, 24 + 8 + 24 + 32, 4, 32 + 32 + 32)
            + name + ELF.ljust(32, b"\0"))
    found = list(members(unit * 200))
    assert len(found) == 200 and all(isinstance(each, Member) for each in found[:-1])
    assert isinstance(found[-1], Broken)


def test_limits_hold_for_all_bundles_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would be allowed alone."""
    bomb = compressed(2, "zstd", of("gfx90a") + bytes(30 << 20))
    parts = list(members(ELF + bytes(60) + 4 * bomb))
    assert [type(part) for part in parts] == [Member, Member, Broken, Broken]
    assert isinstance(parts[2], Broken) and "LUTHIER_MAX_CODE_MB raises the limit" in str(parts[2].error)
    monkeypatch.setenv("LUTHIER_MAX_CODE_MB", "200")
    assert [type(part) for part in members(ELF + bytes(60) + 4 * bomb)] == [Member] * 4
    monkeypatch.setenv("LUTHIER_MAX_CODE_MB", "10")
    assert [type(part) for part in members(4 * bomb)] == [Broken] * 4
    monkeypatch.setenv("LUTHIER_MAX_CODE_MB", "much")
    with pytest.raises(Invalid, match="give a number of megabytes"):
        list(members(bomb))


def refused(path: Path) -> str:
    with pytest.raises(LuthierError) as raised, open_code(path) as data:
        list(load_each(data, str(path)))
    return str(raised.value)


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("#include <hip/hip_runtime.h>")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(4 << 30)
    with (tmp_path / "object").open("wb") as file:
        file.write(FIRST)
        file.truncate(4 << 30)
    assert "is a device" in refused(Path("/dev/zero")) and "is a folder" in refused(tmp_path)
    assert "is a pipe" in refused(tmp_path / "pipe")
    for name in ("empty", "text", "sparse"):
        assert "not an ELF file" in refused(tmp_path / name)
    assert "a code object may have 1073741824, and LUTHIER_MAX_CODE_MB raises" in refused(tmp_path / "object")
