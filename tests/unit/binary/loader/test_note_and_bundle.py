"""Notes go back to the same bytes; bundles give up their members."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner
from fat_binaries import bundle
from hypothesis import given
from hypothesis import strategies as st

from luthier_py.base.errors import Invalid, Malformed, Unsupported
from luthier_py.binary.loader import CodeObject, load, load_each, read_code, unbundle
from luthier_py.binary.loader.codeobject import find_metadata
from luthier_py.binary.loader.note import Note, pack_metadata, read_notes, unpack_metadata
from luthier_py.cli import app
from luthier_py.samples import SAMPLES, Sample

DATA = Path(__file__).resolve().parents[3] / "data"


def test_compilers_notes_are_written_as_they_were(sample: Sample) -> None:
    obj = load(sample.path.read_bytes())
    found = find_metadata(obj.elf)
    assert found is not None
    segment, notes = found
    assert b"".join(note.pack() for note in notes) == obj.data[segment.offset : segment.offset + segment.file_size]
    assert pack_metadata(obj.metadata) == notes[0].content


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 99), st.binary(max_size=40)), max_size=4))
def test_notes_round_trip(rows: list[tuple[bytes, int, bytes]]) -> None:
    packed = b"".join(Note(0, *row).pack() for row in rows)
    assert [(note.owner, note.type, note.content) for note in read_notes(packed, "notes")] == rows


def test_metadata_has_its_owner_and_its_type() -> None:
    rows = (b"AMDGPU\0", 32), (b"AMDGPU\0", 33), (b"AMD\0", 32)
    assert [Note(0, owner, kind, b"").is_metadata for owner, kind in rows] == [True, False, False]


@given(st.binary(max_size=60))
def test_any_bytes_are_metadata_or_malformed(content: bytes) -> None:
    try:
        assert isinstance(unpack_metadata(content, "note"), dict)
    except Malformed as error:
        assert str(error).startswith("note: ")


def test_deep_metadata_is_refused_not_recursed() -> None:
    with pytest.raises(Malformed):
        unpack_metadata(b"\x81\x01" + b"\x91" * 100_000 + b"\x01", "note")


def names(data: bytes) -> Iterator[tuple[str, int]]:
    return ((member.triple, len(member.data)) for member in unbundle(data))


def test_members_come_in_order_and_only_device_code() -> None:
    first, second = (SAMPLES[i].path.read_bytes() for i in (0, 1))
    one = bundle(("host-x86_64-unknown-linux--", b""), ("hipv4-amdgcn-amd-amdhsa--gfx90a", first))
    two = bundle(("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", second))
    host = b"\x7fELF" + bytes(5000) + one + bytes(77) + two
    members = list(unbundle(host))
    assert [member.triple for member in members] == [
        "hipv4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
    ]
    assert [member.data for member in members] == [first, second]
    assert list(names(first)) == []


def test_bad_bundles() -> None:
    whole = bundle(("hipv4-amdgcn-amd-amdhsa--gfx90a", SAMPLES[0].path.read_bytes()))
    with pytest.raises(Malformed, match="ends outside the file"):
        list(unbundle(whole[:-1]))
    with pytest.raises(Malformed, match="truncated"):
        list(unbundle(whole[:40]))
    with pytest.raises(Malformed, match=r"k: offload bundle at 0x0: its table .*truncated"):
        list(unbundle(b"__CLANG_OFFLOAD_BUNDLE__\xff\xff\xff\xff\xff\xff\xff\xff", "k"))


HEADS = {1: "<4sHHIQ", 2: "<4sHHIIQ", 3: "<4sHHQQQ"}


def compressed(version: int, method: str, content: bytes, size: int | None = None, flip: int = 0) -> bytes:
    """What clang --offload-compress makes of a bundle; with another size, or a damaged digest."""
    packed = zlib.compress(content) if method == "zlib" else zstandard.compress(content)
    digest = int.from_bytes(hashlib.md5(content).digest()[:8], "little") ^ flip
    sizes = [len(content) if size is None else size]
    if version > 1:
        sizes.insert(0, struct.calcsize(HEADS[version]) + len(packed))
    return struct.pack(HEADS[version], b"CCOB", version, ("zlib", "zstd").index(method), *sizes, digest) + packed


@pytest.mark.parametrize("method", ("zlib", "zstd"))
@pytest.mark.parametrize("version", (1, 2, 3))
def test_compressed_bundles(version: int, method: str) -> None:
    first, second = (SAMPLES[i].path.read_bytes() for i in (0, 1))
    triples = ("hipv4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx942")
    whole = compressed(version, method, bundle((triples[0], first), (triples[1], second)))
    host = b"\x7fELF the letters CCOB alone mean nothing" + bytes(900) + whole + bytes(8) + bundle((triples[0], second))
    for data, extra in ((whole, []), (host, [(triples[0], second)])):
        assert [(member.triple, member.data) for member in unbundle(data)] == [
            (triples[0], first), (triples[1], second), *extra,
        ]  # fmt: skip


def test_the_compilers_own_compressed_bundle() -> None:
    (member,) = unbundle((DATA / "saxpy.ccob").read_bytes())
    assert member.triple == "hipv4-amdgcn-amd-amdhsa--gfx90a"
    assert load(member.data).kernel("saxpy").name == "saxpy"


def test_commands_look_into_bundles(tmp_path: Path) -> None:
    """`luthier info` and `disasm` of a host program: every code object that it carries."""
    objects = [(f"hipv4-amdgcn-amd-amdhsa--{name}", SAMPLES[i].path.read_bytes()) for i, name in enumerate("ab")]
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF" + bytes(60) + b"".join(compressed(2, "zstd", bundle(row)) for row in objects))
    objects_in = load_each(program.read_bytes(), "program")
    kernels = [obj.kernels[0].name for obj in objects_in if isinstance(obj, CodeObject)]
    assert len(kernels) == 2
    found = json.loads(CliRunner().invoke(app, ["info", "--json", str(program)]).stdout)
    assert [facts["kernels"][0]["name"] for facts in found] == kernels
    assert [facts["file"] for facts in found] == [f"{program}, {name}" for name in "ab"]
    commands = ["disasm", str(program)], ["disasm", str(program), "--kernel", kernels[1]]
    whole, one = (CliRunner().invoke(app, command).stdout for command in commands)
    assert all(f"<{name}>:" in whole for name in kernels)
    assert f"<{kernels[1]}>:" in one and f"<{kernels[0]}>:" not in one


def test_one_of_several_targets_is_chosen(tmp_path: Path) -> None:
    """`luthier instrument`: the refusal names the option that serves."""
    codes = {name: SAMPLES[i].path.read_bytes() for i, name in enumerate(("gfx90a:xnack-", "gfx942"))}
    library, output = tmp_path / "library", tmp_path / "out.co"
    library.write_bytes(bundle(*((f"hipv4-amdgcn-amd-amdhsa--{name}", code) for name, code in codes.items())))
    command = ["instrument", str(library), "-t", "none", "-o", str(output)]
    with pytest.raises(Invalid, match="has code for gfx90a:xnack-, gfx942; choose one by --target"):
        read_code(library)
    for target, code in codes.items():
        assert CliRunner().invoke(app, [*command, "--target", target]).exit_code == 0
        assert output.read_bytes() == code


def test_an_empty_entry_is_no_code_object() -> None:
    """What it begins with would be its neighbour's."""
    triple, code = "hipv4-amdgcn-amd-amdhsa--gfx90a", SAMPLES[0].path.read_bytes()
    both = bundle((triple, b""), (triple, code))
    start = both.index(b"\x7fELF")
    struct.pack_into("<Q", both := bytearray(both), 32, start)  # the empty one begins where the other does
    assert [member.data for member in unbundle(bytes(both))] == [code]


@pytest.mark.parametrize("method", ("zlib", "zstd"))
def test_bad_compressed_bundles(method: str) -> None:
    plain = bundle(("hipv4-amdgcn-amd-amdhsa--gfx90a", SAMPLES[0].path.read_bytes()))
    whole = compressed(2, method, plain)
    for bad, words in (
        (compressed(3, method, plain, size=1 << 60), "claim to hold"),
        (compressed(2, method, plain, size=len(plain) - 1), "damaged"),
        (compressed(2, method, plain, size=len(plain) + 1), "damaged"),
        (compressed(2, method, plain, flip=1), "damaged"),
        (compressed(2, method, b"something else"), "no offload bundle"),
        (compressed(2, method, compressed(2, method, plain)), "no offload bundle"),
        (compressed(2, method, plain + bytes(65 << 20)), "claim to hold"),
        (whole[:-5], "outside the file"),
        (whole[:8] + struct.pack("<I", len(whole) - 9) + whole[12:-9], "compressed offload bundle at 0x0"),
    ):
        with pytest.raises(Malformed, match=words):
            list(unbundle(bad))
    for unknown in (b"CCOB" + bytes(40), b"CCOB", whole[:6] + b"\x07" + whole[7:]):
        with pytest.raises(Unsupported, match="versions 1 to 3"):
            list(unbundle(unknown))


@pytest.mark.parametrize("method", ("zlib", "zstd"))
def test_any_damage_to_a_compressed_bundle_is_found(method: str) -> None:
    whole = compressed(2, method, bundle(("hipv4-amdgcn-amd-amdhsa--gfx90a", SAMPLES[0].path.read_bytes())))
    good = [member.data for member in unbundle(whole)]
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0x41
        try:
            assert [member.data for member in unbundle(bytes(damaged))] in (good, [])
        except (Malformed, Unsupported):
            pass
